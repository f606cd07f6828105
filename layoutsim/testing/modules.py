"""Random valid modules: every family of opcodes that layout assignment has rules for, small enough to read when one fails.

A module grows by steps (``steps_*.py``), picked by weight. Afterwards its loose ends become the result, and every parameter
and result leaf gets an entry layout that is the default one, another one, or automatic.
"""

from __future__ import annotations

from functools import cache

from layoutsim.build import Builder
from layoutsim.errors import InputError
from layoutsim.ir import (
    ArrayShape,
    ComputationLayout,
    InputOutputAlias,
    Instruction,
    Module,
    ModuleConfig,
    Shape,
    map_arrays,
    with_default_layout,
)
from layoutsim.ir.traverse import post_order
from layoutsim.testing import steps_async as asynchronous
from layoutsim.testing import steps_collective as collective
from layoutsim.testing import steps_contraction as contraction
from layoutsim.testing import steps_control as control
from layoutsim.testing import steps_elementwise as elementwise
from layoutsim.testing import steps_movement as movement
from layoutsim.testing import steps_opaque as opaque
from layoutsim.testing import steps_reduction as reduction
from layoutsim.testing.chooser import Chooser, SeededChooser, chance, permutation
from layoutsim.testing.scope import DEFAULT_LIMITS, Limits, Scope, Step, World

_SIMPLE: list[tuple[int, Step]] = [
    (4, elementwise.unary),
    (5, elementwise.binary),
    (2, elementwise.ternary),
    (2, elementwise.convert),
    (1, elementwise.reduce_precision),
    (1, elementwise.bitcast_convert),
    (7, movement.transpose),
    (8, movement.reshape),
    (4, movement.broadcast),
    (3, movement.slices),
    (3, movement.dynamic_slice),
    (3, movement.dynamic_update_slice),
    (3, movement.concatenate),
    (2, movement.pad),
    (1, movement.reverse),
    (1, movement.iota),
    (2, movement.gather),
    (2, movement.scatter),
    (2, movement.rounded_copy),
    (1, movement.constant_matrix),
    (6, contraction.dot),
    (4, reduction.reduce),
]
_RARE: list[tuple[int, Step]] = [
    (2, contraction.integer_dot),
    (1, contraction.float8_dot),
    (1, contraction.ragged_dot),
    (3, contraction.convolution),
    (1, contraction.fft),
    (1, contraction.triangular_solve),
    (1, contraction.cholesky),
    (3, reduction.variadic_reduce),
    (1, reduction.reduce_window),
    (1, reduction.select_and_scatter),
    (3, reduction.sort),
    (1, reduction.top_k),
    (1, elementwise.map_elements),
    (3, elementwise.pack),
    (6, collective.all_gather),
    (3, collective.all_reduce),
    (3, collective.reduce_scatter),
    (3, collective.all_to_all),
    (1, collective.collective_permute),
    (1, collective.collective_broadcast),
    (1, collective.replica_number),
    (2, control.make_tuple),
    (2, control.get_element),
    (1, control.tuple_parameter),
    (2, control.barrier),
    (1, control.tokens),
    (2, opaque.free_call),
    (4, opaque.constrained_call),
    (2, opaque.aliased_call),
    (1, opaque.move_to_host),
    (1, opaque.library_convolution),
    (1, opaque.random_bits),
    (1, opaque.batch_norm),
    (1, opaque.constrained_tuple_call),
    (1, opaque.library_gradient),
    (1, opaque.library_sort),
    (1, contraction.packed_dot),
    (1, asynchronous.async_copy),
    (1, asynchronous.dependency),
]
_NOT_EXECUTABLE: list[tuple[int, Step]] = [
    (1, collective.ragged_all_to_all),
    (1, asynchronous.async_collective),
    (1, asynchronous.async_call),
    (1, asynchronous.transfer),
    (1, asynchronous.scan),
    (1, asynchronous.dynamic_size),
]


def _take_simple_steps(scope: Scope, count: int) -> None:
    """Grow by elementwise, movement, dot and reduction steps only, as inside fusions."""
    for _ in range(count):
        scope.chooser.pick(_SIMPLE_TABLE)(scope)


def _take_steps(scope: Scope, count: int) -> None:
    """Grow by any steps that the limits allow."""
    limits = scope.world.limits
    table = _table(executable=limits.executable, only=limits.only)
    for _ in range(count):
        scope.chooser.pick(table)(scope)


_CONTROL: list[tuple[int, Step]] = [
    (5, control.loop(_take_steps)),
    (4, control.branches(_take_steps)),
    (3, control.call(_take_steps)),
    (1, control.fusion(_take_simple_steps)),
]
_CONTROL_NAMES = ("loop", "branches", "call", "fusion")


def _weighted(*families: list[tuple[int, Step]]) -> tuple[Step, ...]:
    return tuple(step for family in families for weight, step in family for _ in range(weight))


_SIMPLE_TABLE = _weighted(_SIMPLE)


def step_names(*, executable: bool) -> frozenset[str]:
    """What :attr:`Limits.only` may name."""
    return frozenset(name for name, _, _ in _named_steps(executable=executable))


def _named_steps(*, executable: bool) -> list[tuple[str, int, Step]]:
    steps = [*_SIMPLE, *_RARE, *([] if executable else _NOT_EXECUTABLE)]
    named = [(step.__name__, weight, step) for weight, step in steps]
    return named + [(name, weight, step) for name, (weight, step) in zip(_CONTROL_NAMES, _CONTROL, strict=True)]


@cache
def _table(*, executable: bool, only: frozenset[str]) -> tuple[Step, ...]:
    """The steps to pick from, each as often as it weighs."""
    named = _named_steps(executable=executable)
    if unknown := sorted(only - {name for name, _, _ in named}):
        raise InputError(f"no steps are called {', '.join(unknown)}; known: {', '.join(name for name, _, _ in named)}")
    return _weighted([(weight, step) for name, weight, step in named if name in only or not only])


def random_module(chooser: Chooser | int, limits: Limits = DEFAULT_LIMITS) -> Module:
    """A random module; an ``int`` is the seed of a :class:`SeededChooser`."""
    source = SeededChooser(chooser) if isinstance(chooser, int) else chooser
    module = Module("random", ModuleConfig(replica_count=limits.devices))
    world = World(module, source, limits, constrains_all_reduces=limits.backend == "gpu" and chance(source, 15))
    entry = Scope(world, Builder("main", module), depth=0)
    _take_steps(entry, source.integer(1, limits.steps))
    entry.builder.build(_result(entry), is_entry=True)
    module.entry_layout = _entry_layout(module, source)
    if chance(source, 8):
        module.input_output_aliases = _aliases(module, source)
    if limits.shuffled and chance(source, 50):
        return in_any_order(module, source)
    return in_post_order(module)


def in_post_order(module: Module) -> Module:
    """The same module stored in the order in which XLA prints it.

    Results of layout assignment depend on the stored order. XLA's dumps do not show it, so a module that goes through the
    real compiler must be stored as it will be printed.
    """
    for computation in module.computations:
        computation.reorder(post_order(computation))
    return module


def in_any_order(module: Module, chooser: Chooser) -> Module:
    """The same module stored in some order in which operands and control predecessors come first."""
    for computation in module.computations:
        waiting = {i: len({*i.operands, *i.control_predecessors}) for i in computation.instructions}
        ready = [instruction for instruction, count in waiting.items() if not count]
        order: list[Instruction] = []
        while ready:
            order.append(ready.pop(chooser.integer(0, len(ready) - 1)))
            for follower in dict.fromkeys((*order[-1].users, *order[-1].control_successors)):
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        computation.reorder(order)
    return module


def _result(scope: Scope) -> Instruction:
    """The values nobody uses: alone, or as a tuple, now and then with one that is used."""
    loose = [v for v in scope.values if not v.user_count] or [scope.any_array()]
    if len(loose) == 1 and chance(scope.chooser, 60):
        return loose[0]
    if len(loose) > 1 and chance(scope.chooser, 25):
        return loose[-1]
    if chance(scope.chooser, 20):
        loose.append(scope.any_array())
    return scope.builder.tuple(*loose)


def _entry_layout(module: Module, chooser: Chooser) -> ComputationLayout:
    def lay_out(leaf: ArrayShape) -> ArrayShape:
        kind = chooser.pick(("default", "default", "other", "automatic"))
        if kind == "automatic" and leaf.rank:
            return leaf.with_layout(None)
        if kind == "other":
            return leaf.with_order(permutation(chooser, leaf.rank))
        return leaf

    def wished(shape: Shape) -> Shape:
        return map_arrays(with_default_layout(shape), lay_out)

    parameters = tuple(wished(p.shape) for p in module.entry.parameters)
    return ComputationLayout(parameters, wished(module.entry.root.shape))


def _aliases(module: Module, chooser: Chooser) -> tuple[InputOutputAlias, ...]:
    """One parameter whose buffer one result of the same shape takes over."""
    from layoutsim.ir import array_leaves, without_layout

    parameters = list(enumerate(module.entry.parameters))
    pairs = [
        InputOutputAlias(index, number)
        for index, leaf in array_leaves(module.entry.root.shape)
        for number, parameter in parameters
        if without_layout(parameter.shape) == without_layout(leaf)
    ]
    return (chooser.pick(pairs),) if pairs else ()
