"""One-line experiments: simulate a module under a preset, compare presets."""

from layoutsim.experiments.compare import Comparison, compare
from layoutsim.experiments.simulate import Simulation, simulate

__all__ = ["Comparison", "Simulation", "compare", "simulate"]
