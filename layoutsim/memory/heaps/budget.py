"""How long a search may go on: a number of steps, and perhaps a time."""

from __future__ import annotations

from time import monotonic

from attrs import define, field

_STEPS_BETWEEN_LOOKS = 32


@define
class Budget:
    """Steps left, and a time to stop at.

    With steps alone a search is deterministic: the same problem and budget give the same placement.

    Attributes:
        steps: how many are left.
        deadline: a value of :func:`time.monotonic`, or ``None``.
    """

    steps: int
    deadline: float | None = None
    _late: bool = field(default=False, init=False)

    @property
    def is_spent(self) -> bool:
        return self.steps <= 0 or self._late

    def spend(self) -> bool:
        """Takes one step; false if there is none left, or no time."""
        if self.is_spent:
            return False
        self.steps -= 1
        if self.deadline is not None and self.steps % _STEPS_BETWEEN_LOOKS == 0:
            self._late = monotonic() >= self.deadline
        return True

    def part(self, steps: int) -> Budget:
        """A budget of at most ``steps`` of these, to be given back with :meth:`give_back`."""
        taken = min(steps, self.steps)
        self.steps -= taken
        part = Budget(0 if self._late else taken, self.deadline)
        return part

    def give_back(self, part: Budget) -> None:
        """Adds what ``part`` has left."""
        self.steps += max(part.steps, 0)
        self._late = self._late or part._late
