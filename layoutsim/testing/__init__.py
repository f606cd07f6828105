"""Help for testing passes, layoutsim's own and yours: random valid modules, and a reducer for those that fail."""

from layoutsim.testing.modules import random_module
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits

__all__ = ["Limits", "random_module", "reduce_module"]
