"""HLO text: reading it into modules and printing modules as text."""

from layoutsim.text.parser import ParseOptions, parse_module, parse_shape, schedule_from_order

__all__ = ["ParseOptions", "parse_module", "parse_shape", "schedule_from_order"]
