"""Simulate XLA's layout assignment and memory use on an HLO dump, and explain every copy."""
