"""Passes over loops: what moves out of them, what moves in, and what they carry.

Three imitate XLA's (``while-loop-invariant-code-motion``, ``while-loop-constant-sinking``, ``while-loop-simplifier``); one,
``copy-sinking``, has no counterpart there. :mod:`.carried` holds what all of them need: a loop whose state gets more or fewer
elements.
"""
