"""Joint layout assignment: layouts of all computations at once, with the fewest bytes moved; and a proof of how few can be."""

from layoutsim.experiments.joint.assignment import assign_jointly
from layoutsim.experiments.joint.distance import Distance, Effort, NotKnown, distance_for_report, distance_to_best
from layoutsim.experiments.joint.measure import Moved
from layoutsim.experiments.joint.objective import DemandReading, Objective
from layoutsim.experiments.joint.result import Change, JointResult

__all__ = [
    "Change",
    "DemandReading",
    "Distance",
    "Effort",
    "JointResult",
    "Moved",
    "NotKnown",
    "Objective",
    "assign_jointly",
    "distance_for_report",
    "distance_to_best",
]
