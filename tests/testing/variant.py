"""The variant that the README shows: ten lines, and wrong."""

from typing import ClassVar

from attrs import evolve, frozen

from layoutsim.ir import Module, Opcode
from layoutsim.passes import Pass, PassResult
from layoutsim.passes.layout_assignment import assign_layouts, gpu_backend


@frozen
class FreeGathers(Pass):
    """Layout assignment in which an all-gather takes any layout."""

    name: ClassVar[str] = "free-gathers"
    backend: ClassVar[str] = "gpu"

    def run(self, module: Module) -> PassResult:
        rules = gpu_backend()
        others = {opcode: rule for opcode, rule in rules.demands.items() if opcode is not Opcode.ALL_GATHER}
        return assign_layouts(module, evolve(rules, demands=others))
