"""Compile HLO through a PJRT plugin's C interface (``xla/pjrt/c/pjrt_c_api.h``), which jax's Python interface does not reach.

The plugin exports one function that returns a table of function pointers. Every function takes one argument struct whose
first two words are the struct's size and an extension pointer, and returns an error or null. Both the table and the
structs only ever grow at their ends, so positions are facts of the interface and not of a release.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Structure, Union, byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from typing import ClassVar

FIRST_FUNCTION = 40
"""Bytes before the table's first function pointer: two words of header, three words of version."""

ERROR_DESTROY, ERROR_MESSAGE, EXECUTABLE_DESTROY, TOPOLOGY_CREATE, COMPILE, MEMORY_STATS = 0, 1, 40, 82, 89, 96
"""Positions in the table."""


class PluginError(Exception):
    """The plugin refused; the message is its own."""


class _Arguments(Structure):
    """Base of the structs: its first two words."""

    _fields_: ClassVar = [("struct_size", c_size_t), ("extension_start", c_void_p)]

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.struct_size = ctypes.sizeof(self)


class ErrorDestroy(_Arguments):
    _fields_: ClassVar = [("error", c_void_p)]


class ErrorMessage(_Arguments):
    _fields_: ClassVar = [("error", c_void_p), ("message", c_void_p), ("message_size", c_size_t)]


class _Value(Union):
    _fields_: ClassVar = [("string_value", c_char_p), ("int64_value", c_int64)]


class NamedValue(_Arguments):
    """A string option (``type`` 0)."""

    _fields_: ClassVar = [
        ("name", c_char_p),
        ("name_size", c_size_t),
        ("type", c_int32),
        ("value", _Value),
        ("value_size", c_size_t),
    ]


class TopologyCreate(_Arguments):
    _fields_: ClassVar = [
        ("name", c_char_p),
        ("name_size", c_size_t),
        ("options", POINTER(NamedValue)),
        ("option_count", c_size_t),
        ("topology", c_void_p),
    ]


class Program(_Arguments):
    _fields_: ClassVar = [("code", c_char_p), ("code_size", c_size_t), ("format", c_char_p), ("format_size", c_size_t)]


class Compile(_Arguments):
    _fields_: ClassVar = [
        ("topology", c_void_p),
        ("program", POINTER(Program)),
        ("options", c_char_p),
        ("options_size", c_size_t),
        ("client", c_void_p),
        ("executable", c_void_p),
    ]


class MemoryStats(_Arguments):
    _fields_: ClassVar = [
        ("executable", c_void_p),
        ("generated_code", c_int64),
        ("argument", c_int64),
        ("output", c_int64),
        ("alias", c_int64),
        ("temp", c_int64),
        ("host_and_later_fields", c_int64 * 10),
    ]


class ExecutableDestroy(_Arguments):
    _fields_: ClassVar = [("executable", c_void_p)]


class Plugin:
    """A loaded plugin and one topology: the machine to compile for, described and not present.

    Args:
        library: path of the plugin's shared object.
        options: string options of the topology, for instance ``target_config``.

    Raises:
        PluginError: the plugin does not take the options.
    """

    def __init__(self, library: str, topology_name: str, options: dict[str, str]) -> None:
        entry = ctypes.CDLL(library).GetPjrtApi
        entry.restype = c_void_p
        self._table: int = entry()
        values = (NamedValue * len(options))(*(_named_value(*item) for item in options.items()))
        name = topology_name.encode()
        created = TopologyCreate(name=name, name_size=len(name), options=values, option_count=len(options))
        self._call(TOPOLOGY_CREATE, created)
        self._topology = created.topology

    def compile(self, module_proto: bytes, compile_options: bytes) -> dict[str, int]:
        """Compile a serialized ``HloModuleProto``; returns the executable's sizes in bytes by kind.

        Raises:
            PluginError: the compiler refused.
        """
        program = Program(code=module_proto, code_size=len(module_proto), format=b"hlo", format_size=3)
        compiled = Compile(
            topology=self._topology,
            program=ctypes.pointer(program),
            options=compile_options,
            options_size=len(compile_options),
        )
        self._call(COMPILE, compiled)
        stats = MemoryStats(executable=compiled.executable)
        self._call(MEMORY_STATS, stats)
        self._call(EXECUTABLE_DESTROY, ExecutableDestroy(executable=compiled.executable))
        return {kind: getattr(stats, kind) for kind in ("generated_code", "argument", "output", "alias", "temp")}

    def _call(self, position: int, arguments: _Arguments) -> None:
        error = self._function(position)(byref(arguments))
        if not error:
            return
        read = ErrorMessage(error=error)
        self._function(ERROR_MESSAGE)(byref(read))
        message = ctypes.string_at(read.message, read.message_size).decode(errors="replace")
        self._function(ERROR_DESTROY)(byref(ErrorDestroy(error=error)))
        raise PluginError(message)

    def _function(self, position: int) -> Callable[[object], int | None]:
        pointer = c_void_p.from_address(self._table + FIRST_FUNCTION + 8 * position).value
        assert pointer, f"the plugin's table has no function at position {position}"
        return ctypes.CFUNCTYPE(c_void_p, c_void_p)(pointer)


def _named_value(name: str, value: str) -> NamedValue:
    key, content = name.encode(), value.encode()
    return NamedValue(name=key, name_size=len(key), type=0, value=_Value(string_value=content), value_size=len(content))
