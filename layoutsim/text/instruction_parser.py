"""Reads instructions token by token: every legal form, and every error at its place (text spec, sections 1.8 to 1.10).

Sugar is undone here: nested instructions become instructions of their own, ``x#1`` becomes a get-tuple-element, and
``<op>-start`` an ``async-start`` of a wrapper computation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from attrs import define, evolve

from layoutsim.errors import ShapeError
from layoutsim.infer import CAN_INFER, infer_shape
from layoutsim.ir import (
    Attributes,
    Computation,
    Instruction,
    Opcode,
    Shape,
    TupleShape,
    compatible,
    leaves,
    with_static_dimensions,
)
from layoutsim.ir.payloads import AsyncPayload, ConstantPayload, ParameterPayload, Payload, TupleIndexPayload
from layoutsim.text.instruction_parts import (
    ASYNC_SUFFIXES,
    OPCODES,
    Head,
    Parts,
    async_start,
    common_attributes,
    head_of,
    skip_value,
    without_sharding,
)
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.literal_syntax import read_literal
from layoutsim.text.opcodes import (
    SYNTAX,
    Form,
    Given,
    OpcodeSyntax,
    Reference,
    called_computations,
    fill_layouts,
    fixed_shape,
)
from layoutsim.text.scope import ComputationTable, Scope, sanitized
from layoutsim.text.shape_syntax import can_start_shape, read_list, read_shape

_ASYNC = (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE)


@define(eq=False)
class InstructionParser:
    """Reads instructions of one module.

    Attributes:
        read_body: reads an inline computation, ``{`` to ``}``, and returns it.
        strict: unknown attributes are errors; otherwise they are kept as text.
    """

    lexer: Lexer
    computations: ComputationTable
    read_body: Callable[[str], Computation]
    strict: bool = True
    fill_missing_layouts: bool = True

    def read_instruction(self, scope: Scope) -> Instruction:
        """``ROOT? name = rhs``; the instruction is added to the scope."""
        lexer = self.lexer
        root_start = lexer.start
        is_root = lexer.eat("ROOT")
        if is_root and scope.root is not None:
            raise lexer.source.error(f"expected only one ROOT, got a second one behind %{scope.root.name}", root_start)
        name_start = lexer.start
        name = lexer.name("an instruction name")
        lexer.expect("=")
        self._check_name(scope, name, name_start)
        instruction = self.read_rhs(scope, name)
        if is_root:
            scope.root = instruction
        return instruction

    def _check_name(self, scope: Scope, name: str, start: int) -> None:
        legal = sanitized(name)
        if legal != name:
            raise self.lexer.source.error(f"expected a legal instruction name such as {legal}, got {name}", start)
        scope.make_way_for(name)
        if scope.find(name) is not None:
            raise self.lexer.source.error(
                f"expected a new instruction name, got {name}, which computation {scope.computation.name} has already", start
            )

    def read_rhs(self, scope: Scope, name: str, shape: Shape | None = None, *, nested: bool = False) -> Instruction:
        """``shape? opcode operands attributes``; a nested instruction takes no attributes."""
        lexer = self.lexer
        lexer.deeper()
        if shape is None and can_start_shape(lexer):
            shape = self._shape()
        head = self._read_head(shape)
        parts = Parts()
        if head.opcode is Opcode.PARAMETER:
            payload: Payload | None = self._read_parameter_number(scope, head)
        elif head.opcode is Opcode.CONSTANT:
            payload = self._read_constant(head)
        else:
            payload = None
            parts.operands = self._read_operands(scope)
        syntax = self._syntax_of(head)
        if not nested:
            self._read_attributes(scope, syntax, parts)
        self._check_required(syntax, head, parts)
        if nested:  # named behind the instructions nested in it
            name = scope.free_name(f"{head.opcode}.anon")
            scope.generated.add(name)
        if head.opcode in _ASYNC or head.opcode is Opcode.ASYNC_DONE:
            instruction = self._async(head, name, parts)
        else:
            instruction = self._plain(head, name, parts, payload)
        lexer.depth -= 1
        return self._add(scope, head, instruction, parts)

    def _shape(self) -> Shape:
        shape = read_shape(self.lexer)
        return fill_layouts(shape) if self.fill_missing_layouts else shape

    # -- opcode ----------------------------------------------------------------------------------------------------

    def _read_head(self, shape: Shape | None) -> Head:
        lexer = self.lexer
        start, text = lexer.start, lexer.value
        if lexer.kind != Kind.IDENTIFIER:
            lexer.fail("an opcode")
        head = head_of(start, shape, text)
        if head is None:
            self._unknown_opcode(text)
        if shape is None and head.opcode not in CAN_INFER:
            raise lexer.source.error(f"expected a shape in front of {text}: it cannot be inferred for this opcode", start)
        lexer.advance()
        return head

    def _unknown_opcode(self, text: str) -> NoReturn:
        for suffix in ASYNC_SUFFIXES:
            wrapped = text.removesuffix(suffix)
            if wrapped != text and wrapped not in OPCODES:
                self.lexer.fail(f"an opcode that can run asynchronously in front of {suffix} ({wrapped!r} is none)")
        self.lexer.fail("an opcode")

    @staticmethod
    def _syntax_of(head: Head) -> OpcodeSyntax:
        """What the opcode takes; sugar for async-start takes what the wrapped opcode takes as well."""
        syntax = SYNTAX[head.opcode]
        if head.wrapped is None:
            return syntax
        without_calls = {name: form for name, form in syntax.optional.items() if name != "calls"}
        if head.opcode is not Opcode.ASYNC_START:
            return evolve(syntax, optional=without_calls)
        inner = SYNTAX[head.wrapped]
        return OpcodeSyntax(inner.required, {**without_calls, **inner.optional}, inner.build, True)

    # -- what stands in the parentheses ----------------------------------------------------------------------------

    def _read_parameter_number(self, scope: Scope, head: Head) -> ParameterPayload:
        lexer = self.lexer
        lexer.expect("(")
        start = lexer.start
        number = lexer.integer("a parameter number")
        if number < 0:
            raise lexer.source.error(f"expected a parameter number of at least 0, got {number}", start)
        if number in scope.parameters:
            other = scope.parameters[number].name
            raise lexer.source.error(f"expected an unused parameter number, got {number}, which %{other} has", start)
        lexer.expect(")")
        assert head.shape is not None
        return ParameterPayload(number)

    def _read_constant(self, head: Head) -> ConstantPayload:
        lexer = self.lexer
        assert head.shape is not None
        lexer.expect("(")
        literal = read_literal(lexer, head.shape)
        lexer.expect(")", "')' behind the literal")
        head.shape = with_static_dimensions(head.shape)
        return ConstantPayload(literal)

    def _read_operands(self, scope: Scope) -> list[Instruction]:
        return read_list(self.lexer, "(", ")", lambda _lexer: self._read_operand(scope), "'(' of the operands")

    def _read_operand(self, scope: Scope) -> Instruction:
        lexer = self.lexer
        start = lexer.start
        shape = self._shape() if can_start_shape(lexer) else None
        if lexer.kind == Kind.IDENTIFIER and lexer.following_kind() == "(":
            return self.read_rhs(scope, "", shape, nested=True)
        if lexer.kind in (Kind.NAME, Kind.IDENTIFIER):
            return self._read_named_operand(scope, shape, start)
        if shape is not None and scope.makes_parameters:
            return self._make_parameter(scope, f"_{len(scope.parameters)}", shape)
        lexer.fail("an operand (the name of an instruction above, or a nested instruction)")

    def _read_named_operand(self, scope: Scope, shape: Shape | None, start: int) -> Instruction:
        lexer = self.lexer
        name_start, name = lexer.start, lexer.value
        found = scope.find(name)
        if found is None and scope.makes_parameters:
            if shape is None:
                lexer.fail("a shape in front of an operand that is defined nowhere")
            found = self._make_parameter(scope, name, shape)
        if found is None:
            lexer.fail("an operand (the name of an instruction above, or a nested instruction)")
        lexer.advance()
        while lexer.kind == "#":
            found = self._read_element(scope, found, name_start)
        if shape is not None and not compatible(found.shape, shape):
            raise lexer.source.error(f"expected the shape {found.shape} of %{found.name}, got {shape}", start)
        if lexer.kind not in (",", ")"):
            lexer.fail("',' or ')' behind an operand")
        return found

    def _make_parameter(self, scope: Scope, name: str, shape: Shape) -> Instruction:
        number = len(scope.parameters)
        parameter = Instruction(name, Opcode.PARAMETER, shape, ParameterPayload(number))
        scope.parameters[number] = parameter
        scope.add(parameter)
        return parameter

    def _read_element(self, scope: Scope, base: Instruction, start: int) -> Instruction:
        """``#1`` behind an operand: a get-tuple-element, made once for each base and index."""
        lexer = self.lexer
        lexer.advance()
        index = lexer.integer("a tuple index")
        if not isinstance(base.shape, TupleShape):
            raise lexer.source.error(f"expected a tuple in front of #{index}, got %{base.name} of {base.shape}", start)
        if not 0 <= index < len(base.shape.elements):
            raise lexer.source.error(f"expected an index below {len(base.shape.elements)}, got #{index}", start)
        key = f"%{base.name}#{index}"
        made = scope.names.get(key)
        if made is None:
            name = scope.free_name(f"{base.name}_{index}")
            made = Instruction(name, Opcode.GET_TUPLE_ELEMENT, base.shape.elements[index], TupleIndexPayload(index), [base])
            scope.add(made)
            scope.generated.add(name)
            scope.names[key] = made
        return made

    # -- attributes ------------------------------------------------------------------------------------------------

    def _read_attributes(self, scope: Scope, syntax: OpcodeSyntax, parts: Parts) -> None:
        lexer = self.lexer
        while lexer.eat(","):
            start, name = lexer.start, lexer.value
            if lexer.kind != Kind.ATTRIBUTE:
                lexer.fail("an attribute name")
            if name in parts.offsets:
                raise lexer.source.error(f"expected attribute {name} once, got it twice", start)
            form = syntax.form(name)
            if form is None and self.strict:
                lexer.fail(f"an attribute of this opcode ({', '.join(syntax.names())})")
            parts.offsets[name] = start
            lexer.advance()
            if form is None:
                parts.extra.append(f"{name}={skip_value(lexer)}")
            else:
                parts.values[name] = self._read_value(scope, form)

    def _read_value(self, scope: Scope, form: Form | Reference) -> object:
        if form is Reference.COMPUTATION:
            return self._read_computation()
        if form is Reference.COMPUTATIONS:
            return tuple(read_list(self.lexer, "{", "}", lambda _lexer: self._read_computation()))
        if form is Reference.INSTRUCTIONS:
            return tuple(read_list(self.lexer, "{", "}", lambda _lexer: self._read_predecessor(scope)))
        assert not isinstance(form, Reference)
        return form(self.lexer)

    def _read_computation(self) -> Computation:
        lexer = self.lexer
        if lexer.kind == "{":
            lexer.deeper()
            computation = self.read_body("_")
            lexer.depth -= 1
            self.computations.add_generated(computation)
            return computation
        found = self.computations.find(lexer.value) if lexer.kind in (Kind.NAME, Kind.IDENTIFIER) else None
        if found is None:
            lexer.fail("the name of a computation above, or an inline computation")
        lexer.advance()
        return found

    def _read_predecessor(self, scope: Scope) -> Instruction:
        lexer = self.lexer
        found = scope.find(lexer.value) if lexer.kind in (Kind.NAME, Kind.IDENTIFIER) else None
        if found is None:
            lexer.fail("the name of an instruction above")
        lexer.advance()
        return found

    def _check_required(self, syntax: OpcodeSyntax, head: Head, parts: Parts) -> None:
        for name in syntax.required:
            if name not in parts.values:
                raise self.lexer.source.error(f"expected attribute {name} on {head.opcode}, got none", head.start)

    # -- building --------------------------------------------------------------------------------------------------

    def _refuse(self, head: Head, parts: Parts) -> Callable[[str, str], NoReturn]:
        def refuse(attribute: str, reason: str) -> NoReturn:
            raise self.lexer.source.error(reason, parts.offsets.get(attribute, head.start))

        return refuse

    def _plain(self, head: Head, name: str, parts: Parts, payload: Payload | None) -> Instruction:
        self._check_arity(head, head.opcode, parts.operands)
        given = Given(head.opcode, parts.values, parts.operands, head.shape, self._refuse(head, parts))
        if payload is None:
            payload = SYNTAX[head.opcode].build(given)
        called = called_computations(parts.values)
        shape = fixed_shape(given) or head.shape
        if shape is None:
            shape = self._infer(head, parts.operands, payload, called)
        return Instruction(name, head.opcode, shape, payload, list(parts.operands), called)

    def _check_arity(self, head: Head, opcode: Opcode, operands: list[Instruction]) -> None:
        arity = opcode.spec.arity
        if arity is not None and len(operands) != arity:
            raise self.lexer.source.error(f"expected {arity} operands of {opcode}, got {len(operands)}", head.start)

    def _infer(
        self, head: Head, operands: list[Instruction], payload: Payload | None, called: tuple[Computation, ...]
    ) -> Shape:
        try:
            return infer_shape(head.opcode, [o.shape for o in operands], payload, called)
        except ShapeError as error:
            raise self.lexer.source.error(f"expected operands that determine a shape: {error}", head.start) from error

    def _add(self, scope: Scope, head: Head, instruction: Instruction, parts: Parts) -> Instruction:
        instruction.attributes = self._attributes(head, instruction.shape, parts)
        predecessors = parts.values.get("control-predecessors", ())
        assert isinstance(predecessors, tuple)
        for before in predecessors:  # pyright: ignore[reportUnknownVariableType]
            assert isinstance(before, Instruction)
            instruction.add_control_predecessor(before)
        if isinstance(instruction.payload, ParameterPayload):
            scope.parameters[instruction.payload.number] = instruction
        scope.add(instruction)
        return instruction

    def _attributes(self, head: Head, shape: Shape, parts: Parts) -> Attributes:
        replication = str(parts.values.get("parameter_replication", ""))
        if replication and replication.count("e") != len(leaves(shape)):
            self._refuse(head, parts)(
                "parameter_replication", f"expected {len(leaves(shape))} entries, one for each leaf, got {replication}"
            )
        return common_attributes(parts.values, shape, ", ".join(parts.extra))

    # -- asynchronous operations -----------------------------------------------------------------------------------

    def _async(self, head: Head, name: str, parts: Parts) -> Instruction:
        refuse = self._refuse(head, parts)
        if head.shape is None:
            refuse("", f"expected a shape on {head.opcode}, got none")
        if head.opcode is Opcode.ASYNC_START:
            return self._async_start(head, name, parts)
        if len(parts.operands) != 1 or parts.operands[0].opcode not in _ASYNC:
            refuse("", f"expected one async-start or async-update as the operand of {head.opcode}")
        (previous,) = parts.operands
        if head.opcode is Opcode.ASYNC_UPDATE and previous.shape != head.shape:
            refuse("", f"expected the operand's shape {previous.shape} on {head.opcode}, got {head.shape}")
        start = async_start(previous)
        wrapped = start.to_apply.root.opcode
        if head.wrapped is not None and head.wrapped is not wrapped:
            refuse("", f"expected the operation {wrapped} of %{start.name}, got {head.wrapped}")
        self._check_repeated(start, parts, refuse)
        assert isinstance(start.payload, AsyncPayload)
        payload = AsyncPayload(start.payload.async_execution_thread)
        return Instruction(name, head.opcode, head.shape, payload, list(parts.operands))

    @staticmethod
    def _check_repeated(start: Instruction, parts: Parts, refuse: Callable[[str, str], NoReturn]) -> None:
        """Old dumps repeat the start's attributes on update and done; they must agree."""
        payload = start.payload_as(AsyncPayload)
        thread = parts.values.get("async_execution_thread", payload.async_execution_thread)
        if thread != payload.async_execution_thread:
            refuse("async_execution_thread", f"expected the thread {payload.async_execution_thread!r}, got {thread!r}")
        calls = parts.values.get("calls", start.to_apply)
        if calls is not start.to_apply:
            refuse("calls", f"expected the computation %{start.to_apply.name} of %{start.name}")

    def _async_start(self, head: Head, name: str, parts: Parts) -> Instruction:
        refuse = self._refuse(head, parts)
        shape = head.shape
        if not isinstance(shape, TupleShape) or len(shape.elements) < 2 or not isinstance(shape.elements[0], TupleShape):
            refuse("", f"expected a shape ((operands), result, ...) on {head.opcode}, got {shape}")
        given = Given(head.opcode, parts.values, parts.operands, shape, refuse)
        if head.wrapped is not None:
            payload = self._wrapper_payload(head.wrapped, given)
            body = self._wrap(head, head.wrapped, shape.elements[1], parts)
        else:
            built = SYNTAX[head.opcode].build(given)
            assert isinstance(built, AsyncPayload)
            payload, (body,) = built, called_computations(parts.values)
        if body in self.computations.async_bodies:
            refuse("calls", f"expected a computation that no other async-start calls, got %{body.name}")
        self.computations.async_bodies.add(body)
        return Instruction(name, head.opcode, shape, payload, list(parts.operands), (body,))

    @staticmethod
    def _wrapper_payload(wrapped: Opcode, given: Given) -> AsyncPayload:
        """The aliasing of an operation that has its own such attribute belongs to that operation."""
        own = SYNTAX[wrapped].form("output_to_operand_aliasing") is not None
        return AsyncPayload(given.word("async_execution_thread", "main"), () if own else given.aliasing())

    def _wrap(self, head: Head, wrapped: Opcode, result: Shape, parts: Parts) -> Computation:
        """The implicit computation of an async operation: parameters, and the operation as root."""
        body = Computation("async_wrapped", str(parts.values.get("async_execution_thread", "main")))
        scope = Scope(body)
        parameters = [self._make_parameter(scope, scope.free_name("async_param"), operand.shape) for operand in parts.operands]
        inner = evolve(head, opcode=wrapped, shape=result, wrapped=None)
        root = self._plain(inner, "async_op", evolve(parts, operands=parameters), None)
        root.attributes = evolve(self._attributes(inner, result, evolve(parts, values=without_sharding(parts.values))))
        scope.add(root)
        body.root = root
        self.computations.add_generated(body)
        return body
