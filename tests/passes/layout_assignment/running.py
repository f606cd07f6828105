"""What the tests of layout assignment share: run it on a text, ask for layouts, write a graph as an expression."""

from layoutsim.ir import ArrayShape, BufferShape, Instruction, Module, Opcode, Shape, TupleShape, shape_text
from layoutsim.passes.layout_assignment import (
    GENERIC,
    Backend,
    ComputationOrder,
    LayoutAssignmentResult,
    Procedure,
    assign_layouts,
    cpu_backend,
    gpu_backend,
)
from layoutsim.text import ParseOptions, parse_module

GPU = gpu_backend()
CPU = cpu_backend()

KEEP_AUTOMATIC = ParseOptions(keep_module_auto_layouts=True)
WITHOUT_LAYOUTS = ParseOptions(keep_module_auto_layouts=True, fill_missing_layouts=False)


class Run:
    """A module after layout assignment. An entry layout that the header leaves out is automatic."""

    def __init__(
        self,
        text: str,
        backend: Backend = GENERIC,
        *,
        order: ComputationOrder = ComputationOrder.FORWARD,
        options: ParseOptions = KEEP_AUTOMATIC,
    ) -> None:
        self.module: Module = parse_module(text, options=options)
        self._given = {i.name for c in self.module.computations for i in c.instructions}
        self.result: LayoutAssignmentResult = assign_layouts(self.module, backend, Procedure(order=order))

    def __getitem__(self, name: str) -> Instruction:
        (found,) = [i for c in self.module.computations for i in c.instructions if i.name == name]
        return found

    @property
    def root(self) -> Instruction:
        return self.module.entry.root

    def layout(self, name: str) -> str:
        """Layout of an instruction: ``{1,0}``, or ``({1,0}, {0,1})``."""
        return layouts(self[name].shape)

    def layouts(self, *names: str) -> dict[str, str]:
        return {name: self.layout(name) for name in names}

    def operands(self, name: str) -> list[str]:
        """The operands of an instruction; what was inserted is written out: ``copy{1,0}(p)``."""
        return [self.expression(o) for o in self[name].operands]

    def expression(self, value: Instruction) -> str:
        if value.name in self._given:
            return value.name
        operands = ", ".join(map(self.expression, value.operands))
        if value.opcode is Opcode.GET_TUPLE_ELEMENT:
            return f"{operands}[{value.tuple_index}]"
        return f"{value.opcode}{layouts(value.shape) if value.opcode is Opcode.COPY else ''}({operands})"

    @property
    def copies(self) -> list[str]:
        """What the inserted copies serve, with both layouts."""
        return [f"{c.place}: {c.from_layout} to {c.to_layout}" for c in self.result.copies]

    @property
    def entry_layout(self) -> str:
        entry = self.module.entry_layout
        assert entry is not None
        return f"({', '.join(map(layouts, entry.parameters))}) -> {layouts(entry.result)}"


def layouts(shape: Shape) -> str:
    """The layouts of a shape without types and sizes; ``-`` where there is none."""
    match shape:
        case ArrayShape():
            return "-" if shape.layout is None else str(shape.layout)
        case TupleShape():
            return f"({', '.join(map(layouts, shape.elements))})"
        case BufferShape():
            return f"b({layouts(shape.array)})"
        case _:
            return shape_text(shape)
