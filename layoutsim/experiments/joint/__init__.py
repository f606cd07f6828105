"""Joint layout assignment: layouts of all computations at once, with the fewest bytes moved; and a proof of how few can be."""

from layoutsim.experiments.joint.assignment import Change, JointResult, assign_jointly
from layoutsim.experiments.joint.measure import Moved
from layoutsim.experiments.joint.model import DemandReading

__all__ = ["Change", "DemandReading", "JointResult", "Moved", "assign_jointly"]
