"""Heap algorithms: plug-ins that pack the intervals of a :class:`~layoutsim.memory.problem.Problem`."""

from layoutsim.memory.heaps.anytime import AnytimeHeap
from layoutsim.memory.heaps.base import HeapAlgorithm, align_up
from layoutsim.memory.heaps.best_fit import BestFit, Order
from layoutsim.memory.heaps.choose_best import ChooseBest, xla_heap
from layoutsim.memory.heaps.constrained import ConstrainedBestFit
from layoutsim.memory.heaps.fast import FastMerge, FastSplit
from layoutsim.memory.heaps.lower_bound import LowerBound, event_peak, live_peak

__all__ = [
    "AnytimeHeap",
    "BestFit",
    "ChooseBest",
    "ConstrainedBestFit",
    "FastMerge",
    "FastSplit",
    "HeapAlgorithm",
    "LowerBound",
    "Order",
    "align_up",
    "event_peak",
    "live_peak",
    "xla_heap",
]
