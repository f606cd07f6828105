"""Random loops of the kinds that passes over loops look for: elements that are unchanged, constant, equal, dead, or count.

Every array is ``f32[4]`` or a stack ``f32[3,4]`` of them, so that any can be used for any other; loops run 0, 1 or 3 times and
may hold loops. ``loop_text(seed)`` is the same module on every machine.
"""

import random

ROW, STACK, INT, SCALAR = "f32[4]", "f32[3,4]", "s32[]", "f32[]"


def loop_text(seed: int) -> str:
    """The module of a seed, as HLO text."""
    return _Writer(random.Random(seed)).module()


class _Scope:
    """A computation that is being written: its lines, and the values it has by shape."""

    def __init__(self, writer: "_Writer", name: str) -> None:
        self.writer, self.name = writer, name
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {ROW: [], STACK: []}

    def add(self, shape: str, expression: str, *, prefix: str = "v") -> str:
        name = self.writer.unique(prefix)
        self.lines.append(f"  {name} = {shape} {expression}")
        if shape in self.values:
            self.values[shape].append(name)
        return name

    def hidden(self, shape: str, expression: str) -> str:
        """A value that later steps do not pick."""
        name = self.add(shape, expression)
        if shape in self.values:
            self.values[shape].pop()
        return name

    def pick(self, shape: str) -> str:
        return self.writer.random.choice(self.values[shape])

    def row(self, scalar: str) -> str:
        return self.add(ROW, f"broadcast({scalar}), dimensions={{}}")

    def text(self, header: str) -> str:
        last = self.lines[-1].replace("  ", "  ROOT ", 1)
        return "\n".join([f"{header} {{", *self.lines[:-1], last, "}"])


class _Writer:
    def __init__(self, source: random.Random) -> None:
        self.random = source
        self._count = 0
        self.computations: list[str] = []

    def unique(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}.{self._count}"

    def module(self) -> str:
        entry = _Scope(self, "main")
        for number, shape in enumerate((ROW, ROW, STACK, STACK)):
            entry.add(shape, f"parameter({number})", prefix="p")
        for _ in range(self.random.randint(1, 2)):
            self.loop(entry, depth=0)
        self.steps(entry, 2)
        results = [self.random.choice(entry.values[ROW]), entry.values[ROW][-1], entry.values[STACK][-1]]
        entry.hidden(f"({ROW}, {ROW}, {STACK})", f"tuple({', '.join(results)})")
        parts = [*self.computations, entry.text("ENTRY main")]
        return "HloModule loops\n\n" + "\n\n".join(parts) + "\n"

    def steps(self, scope: _Scope, count: int) -> None:
        """A few values computed from those at hand."""
        for _ in range(count):
            kind = self.random.choice(["add", "multiply", "negate", "flip", "iota", "constant", "reshape", "stack"])
            match kind:
                case "add" | "multiply":
                    scope.add(ROW, f"{kind}({scope.pick(ROW)}, {scope.pick(ROW)})")
                case "negate":
                    scope.add(ROW, f"negate({scope.pick(ROW)})")
                case "flip":
                    scope.add(ROW, f"reverse({scope.pick(ROW)}), dimensions={{0}}")
                case "iota":
                    scope.add(ROW, "iota(), iota_dimension=0")
                case "constant":
                    scope.row(scope.hidden(SCALAR, f"constant({self.random.randint(1, 3)})"))
                case "reshape":
                    scope.add(ROW, f"reshape({scope.hidden('f32[2,2]', f'reshape({scope.pick(ROW)})')})")
                case _:
                    scope.add(STACK, f"broadcast({scope.pick(ROW)}), dimensions={{1}}")

    def loop(self, scope: _Scope, depth: int) -> None:
        """A loop, and what its elements are behind it."""
        kinds = ["row", "stack", "scalar", "wide", "same", "dead", "grows", "counts", "counts", "written", "pair", "twice"]
        chosen = self.random.sample(kinds, self.random.randint(2, 6))
        shapes, starts = [INT], [scope.hidden(INT, "constant(0)")]
        for kind in chosen:
            shapes_of, starts_of = self.start(scope, kind)
            shapes += shapes_of
            starts += starts_of
        state = f"({', '.join(shapes)})"
        body, condition = self.body(state, shapes, chosen, depth), self.condition(state)
        first = scope.hidden(state, f"tuple({', '.join(starts)})")
        whole = scope.hidden(state, f"while({first}), condition={condition}, body={body}")
        for number, shape in enumerate(shapes):
            if shape in (ROW, STACK) and self.random.random() < 0.5:
                scope.add(shape, f"get-tuple-element({whole}), index={number}")

    def start(self, scope: _Scope, kind: str) -> tuple[list[str], list[str]]:
        """Shapes and first values of the elements of one kind."""
        match kind:
            case "stack":
                return [STACK], [scope.pick(STACK)]
            case "written":
                first = scope.pick(STACK)
                return [STACK, STACK], [first, first if self.random.random() < 0.7 else scope.pick(STACK)]
            case "scalar" | "same":
                return [SCALAR], [scope.hidden(SCALAR, "constant(5)")]
            case "wide":
                return [ROW], [scope.hidden(ROW, f"broadcast({scope.hidden(SCALAR, 'constant(2)')}), dimensions={{}}")]
            case "counts":
                return [INT], [scope.hidden(INT, f"constant({self.random.randint(0, 2)})")]
            case "pair":
                first, second = scope.pick(ROW), scope.pick(ROW)
                return [f"({ROW}, {ROW})"], [scope.hidden(f"({ROW}, {ROW})", f"tuple({first}, {second})")]
            case "twice":
                first = scope.pick(ROW)
                return [ROW, ROW], [first, first]
            case _:
                return [ROW], [scope.pick(ROW)]

    def condition(self, state: str) -> str:
        scope = _Scope(self, self.unique("condition"))
        parameter = scope.hidden(state, "parameter(0)")
        count = scope.hidden(INT, f"get-tuple-element({parameter}), index=0")
        bound = scope.hidden(INT, f"constant({self.random.choice([0, 1, 3, 3, 3])})")
        scope.hidden("pred[]", f"compare({count}, {bound}), direction=LT")
        self.computations.append(scope.text(scope.name))
        return scope.name

    def body(self, state: str, shapes: list[str], kinds: list[str], depth: int) -> str:
        scope = _Scope(self, self.unique("body"))
        parameter = scope.hidden(state, "parameter(0)")
        old = [scope.hidden(shape, f"get-tuple-element({parameter}), index={n}") for n, shape in enumerate(shapes)]
        zero = scope.hidden(INT, "constant(0)")
        new, number = [scope.hidden(INT, f"add({old[0]}, {scope.hidden(INT, 'constant(1)')})")], 1
        later: list[tuple[str, int]] = []
        for kind in kinds:
            count = 2 if kind in ("written", "twice") else 1
            self.use(scope, kind, old[number : number + count], old[0], zero)
            later.append((kind, number))
            number += count
        scope.row(scope.hidden(SCALAR, f"convert({old[0]})"))
        scope.add(STACK, f"broadcast({scope.pick(ROW)}), dimensions={{1}}")
        self.steps(scope, self.random.randint(1, 4))
        if depth == 0 and self.random.random() < 0.5:
            self.loop(scope, depth + 1)
        for kind, at in later:
            new += self.successors(scope, kind, old[at:], old[0], zero)
        scope.hidden(state, f"tuple({', '.join(new)})")
        self.computations.append(scope.text(scope.name))
        return scope.name

    def use(self, scope: _Scope, kind: str, old: list[str], count: str, zero: str) -> None:
        """Let later steps find a row made from an element."""
        match kind:
            case "scalar" | "same":
                scope.row(old[0])
            case "counts":
                scope.row(scope.hidden(SCALAR, f"convert({old[0]})"))
            case "stack":
                slice_ = scope.hidden("f32[1,4]", f"dynamic-slice({old[0]}, {count}, {zero}), dynamic_slice_sizes={{1,4}}")
                scope.add(ROW, f"reshape({slice_})")
            case "pair":
                scope.add(ROW, f"get-tuple-element({old[0]}), index=1")
            case "dead" | "written":
                pass
            case _:
                scope.values[ROW] += old

    def successors(self, scope: _Scope, kind: str, old: list[str], count: str, zero: str) -> list[str]:
        """What the elements of one kind are in the next iteration."""
        match kind:
            case "same":
                return [scope.hidden(SCALAR, "constant(5)")]
            case "dead":
                return [scope.hidden(ROW, f"negate({old[0]})")]
            case "grows":
                return [scope.hidden(ROW, f"add({old[0]}, {scope.pick(ROW)})")]
            case "counts":
                step = scope.hidden(INT, f"constant({self.random.choice([1, 2, -3])})")
                return [scope.hidden(INT, f"add({old[0]}, {step})")]
            case "written":
                row = scope.hidden("f32[1,4]", f"reshape({scope.pick(ROW)})")
                return [scope.hidden(STACK, f"dynamic-update-slice({whole}, {row}, {count}, {zero})") for whole in old[:2]]
            case "twice":
                return old[:2]
            case _:
                return old[:1]
