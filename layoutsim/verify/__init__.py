"""The verifier: does a module keep the rules of HLO (``xla/service/hlo_verifier.cc``; text spec, section 3.1)?

:func:`verify` collects every finding; :func:`check` raises them together. Checks that need a sound graph run only where S1 to
S5, S7 and S8 hold. What each finding is about:

**Structure** (``structure``)

* S1  Module, computations and instructions have names, and are owned by what lists them.
* S2  The module has an entry, which is no fusion's body; every computation has a root of its own.
* S3  Operands are in the same computation as their user.
* S4  The recorded users of an instruction are those that have it as an operand, each once.
* S5  Nothing waits for itself through operands and control predecessors.
* S6  Names of computations are unique in the module, and names of instructions in their computation (option: in the module).
* S7  Parameters are numbered 0 to n - 1.
* S8  Only calling opcodes call; callees are in the module; no computation calls itself, through whatever others.
* S9  A fusion's body has one caller; its root is used by nobody, all else by somebody or for its side effect.
* S10 Callees run on the caller's thread, asynchronous ones on the thread that the start names (option).
* S11 The body of an ``async-start`` has one caller, and is one operation, a group of transfers or of collectives.

**Asynchronous pairs** (``pairs``)

* A1  A start has one user, of its own kind; transfers may also travel in a tuple.
* A2  A done has one operand, its start.
* A3  An update and a done name the computation and the thread of their start.
* A4  Both halves of a transfer have the same channel, and are both host transfers or both not.
* A5  Host transfers on one channel are alike.

**Shapes** (``shapes``)

* T1  The opcode's shape rule accepts the operands, the payload and the callees.
* T2  The stated shape is the inferred one; layouts and, where allowed, precision aside.
* T3  Operands have one floating type, where an opcode cannot mix them (option).
* T4  Reducers take exactly the types of their operands (option).
* T5  No dimension is unbounded (option).
* T6  A custom call's layout constraints fit its operands.
* T7  Aliased parts of an operand and a result exist, and have equal shapes.
* T8  A composite call has a name, and valid attributes and version.
* T9  ``result_accuracy`` stands only on opcodes that take it.

**Collectives** (``collectives``)

* C1  Groups are not empty, and their ids are 0 to n - 1, once each (option, also C2 and C3).
* C2  They name all replicas, partitions or devices of the module, where it says how many there are.
* C3  Groups are of equal size, except in all-reduce.
* C4  Gathers, scatters and exchanges change sizes by the size of a group.
* C5  Pairs name devices that exist, each once as a source and once as a target; offsets of the in-place form fit.
* C6  An all-reduce's channel is positive.
* C7  ``constrain_layout`` is the same on all all-reduces.

**Layouts** (``layouts``; L1, L2, L4, L5 and L7 only in layout-sensitive runs)

* L1  Every array has a layout. (Others compare only what has one.)
* L2  Data that passes through tuples, calls, loops, branches, transfers and updates keeps its layout.
* L3  Opcodes that may not change layouts have operands of the result's layout (option).
* L4  A bitcast has as many bytes as its operand, in the same memory.
* L5  A copy from the host does not transpose.
* L6  Parameters and root of the entry are as ``entry_computation_layout`` says.
* L7  A scan is associative.
* L8  Dimensions of a broadcast ascend (option).
* L9  A reshape is a bitcast (option).

**Buffers** (``buffers``)

* B1  Only parameters of callees, tuples, loops, asynchronous calls, updates in place and custom calls hold buffers ``b(...)``.
* B2  A buffer is written at most once.
* B3  CreateBuffer, Pin and Unpin keep the array's shape; other custom calls alias every buffer once in and once out.
* B4  An update in place of a buffer returns a buffer, and takes no other.

**Schedule** (``schedule``)

* H1  Every live computation of a scheduled thread is scheduled, bodies of fusions aside; no other one is.
* H2  A sequence lists the computation's instructions, each once.
* H3  Operands and control predecessors come first.

**Aliases and donors** (``aliases``)

* D1  They name an array in a parameter, and in the result.
* D2  Aliased arrays have equal sizes (layout-sensitive runs).
* D3  A parameter's array is aliased at most once, and so is an output's.
* D4  Arrays that must alias have equal shapes, layouts and memory spaces included.
* D5  A donor is not aliased as well.

**Shardings** (``shardings``)

* W1  A sharding has the structure and rank of the shape, and the module's number of devices, each once.
* W2  What a loop carries, and what branches return, is sharded alike.

Not checked, though XLA can be asked to: deadlocks between send and recv in a schedule, names unchanged since scheduling,
and the leaves of ``origin`` attributes.
"""

from layoutsim.errors import Diagnostic, VerificationError
from layoutsim.ir import Module
from layoutsim.verify.aliases import verify_aliases
from layoutsim.verify.buffers import verify_buffers
from layoutsim.verify.collectives import verify_collectives
from layoutsim.verify.findings import Findings, VerifyOptions
from layoutsim.verify.layouts import MAY_CHANGE_LAYOUT, reshape_is_bitcast, verify_layouts
from layoutsim.verify.pairs import verify_pairs
from layoutsim.verify.schedule import verify_schedule
from layoutsim.verify.shapes import verify_shapes
from layoutsim.verify.shardings import verify_shardings
from layoutsim.verify.structure import verify_names_and_bodies, verify_structure

__all__ = ["AFTER_LAYOUT_ASSIGNMENT", "MAY_CHANGE_LAYOUT", "VerifyOptions", "check", "reshape_is_bitcast", "verify"]

AFTER_LAYOUT_ASSIGNMENT = VerifyOptions(layout_sensitive=True, layouts_are_preserved=True, element_sizes_agree=False)
"""Options for a module whose layouts have been assigned, as XLA's GPU compiler verifies it from then on."""

_DEFAULT = VerifyOptions()

_CHECKS = (
    verify_names_and_bodies,
    verify_pairs,
    verify_shapes,
    verify_collectives,
    verify_layouts,
    verify_buffers,
    verify_schedule,
    verify_aliases,
    verify_shardings,
)


def verify(module: Module, options: VerifyOptions = _DEFAULT) -> list[Diagnostic]:
    """Every finding, in the order of the checks and then of the module; an empty list means that the module is valid.

    Linear in the size of the module: about 10 microseconds an instruction.
    """
    findings = Findings(module, options)
    verify_structure(findings)
    if not findings.diagnostics:
        for run in _CHECKS:
            run(findings)
    return findings.diagnostics


def check(module: Module, options: VerifyOptions = _DEFAULT, *, after: str = "") -> None:
    """Refuse a module that is not valid.

    Args:
        module: to verify.
        options: how strictly.
        after: what was done to the module last (a pass), for the message.

    Raises:
        VerificationError: with every finding.
    """
    found = verify(module, options)
    if found:
        raise VerificationError(found, after=after)
