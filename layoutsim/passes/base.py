"""What a pass is: a frozen object whose fields are its options, with ``run(module) -> PassResult``.

Contract:

1. Valid IR in, valid IR out; in between a pass may do as it likes.
2. ``changed`` is honest: if it is ``False``, the module prints as before.
3. A pass holds no state between runs: two runs on equal modules give equal results.
4. Every decision that a user may ask about is a :class:`Remark`.

The text form ``name{key=value key=value}`` lists the options that differ from their defaults; names and keys use dashes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, cast

import attrs
from attrs import frozen

from layoutsim.ir.module import Module


@frozen
class Remark:
    """One decision of a pass.

    Attributes:
        where: instruction or computation it is about.
        message: the decision and its reason: ``kept: live ranges of a and b overlap at t=7``.
    """

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@frozen
class PassResult:
    """What a pass did. Passes with more to tell return a subclass."""

    changed: bool
    remarks: tuple[Remark, ...] = ()


class Pass(ABC):
    """Base of all passes; subclasses are ``@frozen``; their fields are the options and have immutable defaults."""

    name: ClassVar[str] = ""

    @abstractmethod
    def run(self, module: Module) -> PassResult:
        """Transform ``module`` in place.

        Raises:
            PassError: the pass cannot run on this module.
            UnsupportedError: the module holds something the pass does not model.
        """

    def to_text(self) -> str:
        """``name`` or ``name{key=value ...}`` with the options that differ from their defaults."""
        options = [
            f"{field.name.replace('_', '-')}={option_text(value)}"
            for field in attrs.fields(type(self))
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{self.name}{{{' '.join(options)}}}" if options else self.name

    def __str__(self) -> str:
        return self.to_text()


def option_text(value: object) -> str:
    """The text of an option's value, as ``layoutsim.passes.registry`` reads it back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "+".join(map(option_text, cast("tuple[object, ...]", value)))
    return "none" if value is None else str(value)
