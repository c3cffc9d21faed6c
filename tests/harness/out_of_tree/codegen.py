"""What Inductor calls to write code for the device: C++ loops, each a line of a list."""

import ast
from typing import Any

from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen


class LoopScheduling(CppScheduling):
    """Writes the CPU's loops."""


class LoopWrapper(PythonWrapperCodegen):
    """Defines kernels by `async_compile.loops`, and compiles them by the runtime of this package."""

    @staticmethod
    def create(is_subgraph: bool, *of_subgraph: Any) -> PythonWrapperCodegen:
        return PythonWrapperCodegen.create(is_subgraph, *of_subgraph) if is_subgraph else LoopWrapper()

    def write_header(self) -> None:
        super().write_header()
        self.header.splice(
            """
            from tests.harness.out_of_tree.runtime import Loop, LoopCompile
            async_compile = LoopCompile()
            """,
            strip=True,
        )

    def define_kernel(self, kernel_name: str, kernel_body: str, *args: object, **kwargs: object) -> None:
        """From `async_compile.cpp_pybinding(types, source)`, as the CPU's scheduling writes it."""
        call = ast.parse(kernel_body.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        types, source = (ast.literal_eval(each) for each in call.args)
        loops = ",\n    ".join(f"Loop({line!r})" for line in source.strip("\n").split("\n"))
        body = f"async_compile.loops({kernel_name!r}, {types!r}, [\n    {loops},\n])"
        super().define_kernel(kernel_name, body, *args, **kwargs)  # type: ignore[arg-type]

    def _generate_kernel_call_helper(self, kernel_name: str, call_args: list[str], **kwargs: object) -> None:
        """A launch is a plain call."""
        self.writeline(f"{kernel_name}({', '.join(call_args)})")
