"""HLO text: reading it into modules and printing modules as text."""

from layoutsim.text.names import uniquify_names
from layoutsim.text.parser import ParseOptions, parse_module, parse_shape, schedule_from_order
from layoutsim.text.print_options import CANONICAL, DEFAULT, FINGERPRINT, ROUND_TRIP, SHORT_PARSABLE, PrintOptions
from layoutsim.text.printer import print_computation, print_module

__all__ = [
    "CANONICAL",
    "DEFAULT",
    "FINGERPRINT",
    "ROUND_TRIP",
    "SHORT_PARSABLE",
    "ParseOptions",
    "PrintOptions",
    "parse_module",
    "parse_shape",
    "print_computation",
    "print_module",
    "schedule_from_order",
    "uniquify_names",
]
