"""Schedulers: orders of instructions that need little memory."""

from layoutsim.passes.schedule.default import Algorithm, Candidate, Weighing
from layoutsim.passes.schedule.minimum_memory import MinimumMemory
from layoutsim.passes.schedule.module_pass import ScheduleModule, ScheduleResult
from layoutsim.passes.schedule.repair import repair_schedule

__all__ = ["Algorithm", "Candidate", "MinimumMemory", "ScheduleModule", "ScheduleResult", "Weighing", "repair_schedule"]
