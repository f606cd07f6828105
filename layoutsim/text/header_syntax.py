"""The header of a module: ``HloModule name, attribute=value, ...`` (text spec, section 1.5)."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from layoutsim.ir import BufferDonor, ComputationLayout, InputOutputAlias, ModuleConfig, Shape
from layoutsim.text.annotation_syntax import (
    read_booleans,
    read_frontend_attributes,
    read_recovery_table,
)
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.opcodes import fill_layouts
from layoutsim.text.shape_syntax import read_list, read_shape, read_shape_index


@define
class Header:
    """What the header says; ``alias_offsets`` are where the alias entries stand, for later complaints."""

    name: str = ""
    is_scheduled: bool = False
    config: ModuleConfig = field(factory=ModuleConfig)
    entry_layout: ComputationLayout | None = None
    aliases: list[InputOutputAlias] = field(factory=list[InputOutputAlias])
    alias_offsets: list[int] = field(factory=list[int])
    donors: list[BufferDonor] = field(factory=list[BufferDonor])


def read_header(lexer: Lexer, *, keep_auto_layouts: bool = False) -> Header:
    """The first line of a module, from ``HloModule`` to the last attribute."""
    lexer.expect("HloModule")
    header = Header(lexer.name("a module name"))
    found: dict[str, object] = {}
    while lexer.eat(","):
        name = lexer.value
        if lexer.kind != Kind.ATTRIBUTE or name not in _READERS:
            lexer.fail(f"a header attribute ({', '.join(_READERS)})")
        if name in found:
            raise lexer.source.error(f"expected attribute {name} once, got it twice", lexer.start)
        lexer.advance()
        found[name] = _READERS[name](lexer, header, keep_auto_layouts)
    header.config = _config(found)
    header.is_scheduled = bool(found.get("is_scheduled"))
    return header


def _config(found: dict[str, object]) -> ModuleConfig:
    def text(name: str) -> str:
        return str(found.get(name, ""))

    def count(name: str) -> int:
        value = found.get(name, 1)
        assert isinstance(value, int)
        return value

    return ModuleConfig(
        replica_count=count("replica_count"),
        num_partitions=count("num_partitions"),
        alias_passthrough_params=bool(found.get("alias_passthrough_params")),
        allow_spmd_sharding_propagation_to_parameters=text("allow_spmd_sharding_propagation_to_parameters"),
        allow_spmd_sharding_propagation_to_output=text("allow_spmd_sharding_propagation_to_output"),
        frontend_attributes=text("frontend_attributes"),
        origin_recovery_table=text("origin_recovery_table"),
    )


def _read_aliases(lexer: Lexer, header: Header, _keep: bool) -> None:
    lexer.expect("{")
    while lexer.kind != "}":
        header.alias_offsets.append(lexer.start)
        output = read_shape_index(lexer)
        lexer.expect(":")
        lexer.expect("(")
        number = lexer.integer("a parameter number")
        lexer.expect(",")
        index = read_shape_index(lexer)
        must_alias = lexer.eat(",") and _read_alias_kind(lexer)
        lexer.expect(")")
        header.aliases.append(InputOutputAlias(output, number, index, must_alias))
        if not lexer.eat(","):
            break
    lexer.expect("}", "',' or '}'")


def _read_alias_kind(lexer: Lexer) -> bool:
    if not (lexer.at_word("must-alias") or lexer.at_word("may-alias")):
        lexer.fail("must-alias or may-alias")
    must_alias = lexer.value == "must-alias"
    lexer.advance()
    return must_alias


def _read_donors(lexer: Lexer, header: Header, _keep: bool) -> None:
    lexer.expect("{")
    while lexer.kind != "}":
        lexer.expect("(")
        number = lexer.integer("a parameter number")
        lexer.expect(",")
        header.donors.append(BufferDonor(number, read_shape_index(lexer)))
        lexer.expect(")")
        if not lexer.eat(","):
            break
    lexer.expect("}", "',' or '}'")


def _read_entry_layout(lexer: Lexer, header: Header, keep_auto: bool) -> None:
    def read(inner: Lexer) -> Shape:
        shape = read_shape(inner)
        return shape if keep_auto else fill_layouts(shape)

    lexer.expect("{")
    parameters = tuple(read_list(lexer, "(", ")", read))
    lexer.expect("->")
    header.entry_layout = ComputationLayout(parameters, read(lexer))
    lexer.expect("}")


def _plain(read: Callable[[Lexer], object]) -> Callable[[Lexer, Header, bool], object]:
    return lambda lexer, _header, _keep: read(lexer)


_READERS: dict[str, Callable[[Lexer, Header, bool], object]] = {
    "is_scheduled": _plain(Lexer.boolean),
    "replica_count": _plain(Lexer.integer),
    "num_partitions": _plain(Lexer.integer),
    "alias_passthrough_params": _plain(Lexer.boolean),
    "input_output_alias": _read_aliases,
    "buffer_donor": _read_donors,
    "entry_computation_layout": _read_entry_layout,
    "frontend_attributes": _plain(read_frontend_attributes),
    "allow_spmd_sharding_propagation_to_parameters": _plain(read_booleans),
    "allow_spmd_sharding_propagation_to_output": _plain(read_booleans),
    "origin_recovery_table": _plain(read_recovery_table),
}
