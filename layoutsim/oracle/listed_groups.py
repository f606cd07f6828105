"""Replica groups as lists, for the CPU compiler.

The way into it is StableHLO, and the conversion to that gets groups by mesh axes wrong: of ``mesh['a'=1,'b'=8] {'b'}`` it makes
``mesh['a'=8,'b'=1] {'b'}``, groups of one device, which XLA's own parser does not read.
"""

from __future__ import annotations

import re

from layoutsim.ir.replica_groups import ListReplicaGroups
from layoutsim.text.device_syntax import read_replica_groups
from layoutsim.text.lexer import Lexer
from layoutsim.text.source import Source

_BY_AXES = re.compile(r"(?<=replica_groups=)mesh\[[^\]]*\](?:, device_ids=\((?:[^()]|\([^()]*\))*\))? \{[^}]*\}")


def with_listed_groups(text: str) -> str:
    """The module text with every group by mesh axes written out: ``{{0,1,2,3,4,5,6,7}}``."""
    return _BY_AXES.sub(_listed, text)


def _listed(match: re.Match[str]) -> str:
    return ListReplicaGroups(read_replica_groups(Lexer(Source(match[0]))).groups()).to_text()
