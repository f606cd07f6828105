"""Binary HLO protos, read and written without XLA's generated code (extra: ``proto``, the package protobuf)."""

from layoutsim.proto.reader import module_from_bytes
from layoutsim.proto.writer import module_to_bytes

__all__ = ["module_from_bytes", "module_to_bytes"]
