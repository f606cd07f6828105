"""HLO text in, :class:`~layoutsim.ir.Module` out (text spec, section 1).

Three kinds of text are read: a module with its ``HloModule`` header, computations without one, and a single instruction.
Bad text raises :class:`~layoutsim.errors.ParseError` at its line and column, and nothing else.

Most lines of a dump have one of a few exact forms; :mod:`layoutsim.text.fast_path` takes those, and hands everything else,
errors included, to the token by token reader here. Both give the same module.
"""

from __future__ import annotations

from attrs import frozen

from layoutsim.errors import ParseError, ShapeError
from layoutsim.garbage import no_collection
from layoutsim.ir import (
    Computation,
    ComputationLayout,
    Instruction,
    Module,
    ModuleConfig,
    Opcode,
    Schedule,
    Shape,
    compatible,
    subshape,
)
from layoutsim.text.annotation_syntax import read_stack_frames
from layoutsim.text.fast_path import FastReader
from layoutsim.text.header_syntax import Header, read_header
from layoutsim.text.instruction_parser import InstructionParser
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.opcodes import fill_layouts
from layoutsim.text.scope import ComputationTable, Scope
from layoutsim.text.shape_syntax import can_start_shape, read_list, read_shape
from layoutsim.text.source import Source


@frozen(kw_only=True)
class ParseOptions:
    """How texts are read.

    Attributes:
        keep_module_auto_layouts: arrays of ``entry_computation_layout`` without a layout stay automatic (unset); otherwise
            they get the default layout.
        fill_missing_layouts: arrays of instructions without a layout get the default one; otherwise they have none.
        strict: unknown attributes of instructions are errors; otherwise their text is kept and printed.
        signature_without_header: also take ``%c (x: f32[]) -> f32[] {...}`` without a header, which XLA refuses.
        fast: use the reader of common lines; its only effect is speed.
    """

    keep_module_auto_layouts: bool = False
    fill_missing_layouts: bool = True
    strict: bool = True
    signature_without_header: bool = False
    fast: bool = True


DEFAULT_OPTIONS = ParseOptions()


def parse_module(text: str, *, path: str = "", options: ParseOptions = DEFAULT_OPTIONS) -> Module:
    """Read one module.

    Args:
        path: shown in error messages.

    Raises:
        ParseError: the text is no module; the error shows where and why.
    """
    source = Source(text, path)
    with no_collection():
        if "\0" in text:
            raise source.error("unexpected NUL character", text.index("\0"))
        return _ModuleParser(source, options).parse()


class _ModuleParser:
    """One parse: the lexer, the tables of names and the module being built."""

    def __init__(self, source: Source, options: ParseOptions) -> None:
        self.source = source
        self.options = options
        self.lexer = Lexer(source)
        self.table = ComputationTable()
        self.entry: Computation | None = None
        self.instructions = InstructionParser(
            self.lexer,
            self.table,
            self._read_body,
            options.strict,
            options.fill_missing_layouts,
        )
        self.fast = FastReader(source, self.table, options.fill_missing_layouts) if options.fast else None

    def parse(self) -> Module:
        try:
            return self._parse()
        except RecursionError as error:
            raise self.source.error("maximum recursion depth exceeded", self.lexer.start) from error

    def _parse(self) -> Module:
        lexer = self.lexer
        if lexer.kind == "HloModule":
            header = read_header(lexer, keep_auto_layouts=self.options.keep_module_auto_layouts)
            stack_frames = read_stack_frames(lexer)
            self._read_computations()
            return self._finish(header, stack_frames)
        if lexer.kind == "ENTRY" or lexer.following_kind() == "{" or self._at_signature():
            self._read_computations()
            header = Header()
            header.name = f"module_{self._chosen_entry().name}"
            return self._finish(header, "")
        return self._parse_single_instruction()

    def _at_signature(self) -> bool:
        allowed = self.options.signature_without_header and self.lexer.kind in (Kind.NAME, Kind.IDENTIFIER)
        return allowed and self.lexer.following_kind() == "("

    # -- computations ----------------------------------------------------------------------------------------------

    def _read_computations(self) -> None:
        lexer = self.lexer
        while True:
            if self.fast is not None:
                self._read_fast_computations(self.fast)
            if lexer.kind == Kind.END and self.table.order:
                return
            self._read_computation()

    def _read_fast_computations(self, fast: FastReader) -> None:
        """Take whole computations while they have the common form."""
        lexer = self.lexer
        while (opened := fast.open_computation(lexer.start)) is not None:
            if opened.name and self.table.find(opened.name) is not None:
                return
            if opened.is_entry and self.entry is not None:
                return
            lexer.end = opened.body_start - 1
            lexer.advance()
            computation = self._read_body(opened.name)
            if not compatible(computation.root.shape, opened.result):
                self._refuse_result(computation, opened.result, opened.result_start)
            self._finish_computation(computation, opened.is_entry)

    def _read_computation(self) -> None:
        lexer = self.lexer
        entry_start = lexer.start
        is_entry = lexer.eat("ENTRY")
        name_start = lexer.start
        name = lexer.name("a computation name" if not is_entry else "a computation name behind ENTRY")
        result, result_start = self._read_signature() if lexer.kind == "(" else (None, 0)
        computation = self._read_body(name)
        if result is not None and not compatible(computation.root.shape, result):
            self._refuse_result(computation, result, result_start)
        if is_entry and self.entry is not None:
            raise self.source.error(f"expected only one ENTRY, got a second one behind %{self.entry.name}", entry_start)
        if self.table.find(name) is not None:
            raise self.source.error(f"expected a new computation name, got {name}, which is defined above already", name_start)
        self._finish_computation(computation, is_entry)

    def _finish_computation(self, computation: Computation, is_entry: bool) -> None:
        """Read what may follow the body, and let the rest of the text refer to it."""
        lexer = self.lexer
        if lexer.eat(","):
            if lexer.kind != Kind.ATTRIBUTE or lexer.value != "execution_thread":
                lexer.fail("execution_thread=")
            lexer.advance()
            computation.execution_thread = lexer.string()
        if is_entry:
            self.entry = computation
        self.table.add(computation)

    def _refuse_result(self, computation: Computation, result: Shape, start: int) -> None:
        root = computation.root
        raise self.source.error(f"expected the shape {root.shape} of the root %{root.name}, got {result}", start)

    def _read_signature(self) -> tuple[Shape, int]:
        """``(x: f32[2]) -> f32[2]``: only the result means something."""
        lexer = self.lexer
        read_list(lexer, "(", ")", _skip_parameter, "'(' of the parameters")
        lexer.expect("->")
        start = lexer.start
        return read_shape(lexer), start

    def _read_body(self, name: str) -> Computation:
        """``{`` instructions ``}``."""
        lexer = self.lexer
        scope = Scope(Computation(name))
        opening = lexer.start
        lexer.expect("{")
        last: Instruction | None = None
        while True:
            if self.fast is not None:
                fast_last = self.fast.read_lines(scope, lexer)
                last = fast_last or last
            if lexer.kind == "}" and last is not None:
                break
            last = self.instructions.read_instruction(scope)
        self._check_parameters(scope, opening)
        scope.computation.root = scope.root or last
        lexer.advance()
        return scope.computation

    def _check_parameters(self, scope: Scope, opening: int) -> None:
        count = len(scope.parameters)
        if count and max(scope.parameters) != count - 1:
            missing = next(n for n in range(count) if n not in scope.parameters)
            raise self.source.error(
                f"expected parameter numbers without gaps, got {count} parameters of which none has number {missing}", opening
            )

    # -- a single instruction --------------------------------------------------------------------------------------

    def _parse_single_instruction(self) -> Module:
        lexer = self.lexer
        if lexer.kind == Kind.END:
            lexer.fail("HloModule, ENTRY, a computation or an instruction")
        scope = Scope(Computation("_"), makes_parameters=True)
        if can_start_shape(lexer):
            instruction = self.instructions.read_rhs(scope, "_")
        else:
            instruction = self.instructions.read_instruction(scope)
        if lexer.kind != Kind.END:
            lexer.fail("the end of the text behind a single instruction (or an HloModule header in front of it)")
        scope.computation.root = instruction
        self._check_parameters(scope, 0)
        self.table.add(scope.computation)
        self.entry = scope.computation
        return self._finish(Header(name="_", is_scheduled=True), "")

    # -- the module ------------------------------------------------------------------------------------------------

    def _chosen_entry(self) -> Computation:
        return self.entry or self.table.order[-1]

    def _finish(self, header: Header, stack_frames: str) -> Module:
        self.table.name_generated()
        entry = self._chosen_entry()
        config = header.config
        if stack_frames:
            config = _with_stack_frames(config, stack_frames)
        module = Module(header.name, config)
        for computation in self.table.order:
            module.add_computation(computation, is_entry=computation is entry)
        module.entry_layout = header.entry_layout or ComputationLayout(
            tuple(p.shape for p in entry.parameters), entry.root.shape
        )
        self._check_aliases(header, entry.root.shape)
        module.input_output_aliases = tuple(sorted(header.aliases, key=lambda a: a.output_index))
        module.buffer_donors = tuple(sorted(set(header.donors)))
        if header.is_scheduled:
            module.schedule = schedule_from_order(module)
        return module

    def _check_aliases(self, header: Header, result: Shape) -> None:
        seen: set[tuple[int, ...]] = set()
        for alias, offset in zip(header.aliases, header.alias_offsets, strict=True):
            try:
                subshape(result, alias.output_index)
            except ShapeError as error:
                raise self.source.error(f"expected an index into the result: {error}", offset) from error
            if alias.output_index in seen:
                raise self.source.error("expected each output index once, got it twice", offset)
            seen.add(alias.output_index)


def _skip_parameter(lexer: Lexer) -> None:
    lexer.name("a parameter name with ':'")
    read_shape(lexer)


def _with_stack_frames(config: ModuleConfig, text: str) -> ModuleConfig:
    from attrs import evolve

    return evolve(config, stack_frames=text)


def schedule_from_order(module: Module) -> Schedule:
    """Stored order as the schedule of every computation that is not the body of a fusion."""
    bodies = {
        callee
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode is Opcode.FUSION
        for callee in instruction.called_computations
    }
    return Schedule({c: list(c.instructions) for c in module.computations if c not in bodies})


def parse_shape(text: str) -> Shape:
    """One shape; missing layouts are filled with the default.

    Raises:
        ParseError: the text is no shape.
    """
    lexer = Lexer(Source(text))
    shape = fill_layouts(read_shape(lexer))
    if lexer.kind != Kind.END:
        lexer.fail("the end of the text behind a shape")
    return shape


__all__ = ["ParseError", "ParseOptions", "parse_module", "parse_shape", "schedule_from_order"]
