"""Joint layout assignment: layouts of all computations at once, with the fewest bytes moved; and a proof of how few can be."""

from layoutsim.experiments.joint.assignment import assign_jointly
from layoutsim.experiments.joint.distance import Distance, distance_to_best
from layoutsim.experiments.joint.measure import Moved
from layoutsim.experiments.joint.model import DemandReading, Objective
from layoutsim.experiments.joint.result import Change, JointResult

__all__ = ["Change", "DemandReading", "Distance", "JointResult", "Moved", "Objective", "assign_jointly", "distance_to_best"]
