"""Write the arguments of each kernel's first launch to a file that outlives this process.

A signal leaves no time to read them, so they are written before the launch, and as the wrapper returns that none of
its launches runs. From its second call on a wrapper runs its own code again, without cost.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.compat import kernels
from idbg.engine.instrument.wrapper_code import Instrumented, instrumented
from idbg.engine.instrument.wrapper_lines import LEAVING, Launch
from idbg.schema.faults import CrashSite
from idbg.schema.graphs import Part

_BEFORE = "__idbg_before__"


class _FirstCall:
    """One wrapper in its first call."""

    def __init__(self, code: Instrumented, file: str, part: Part, launches: Sequence[Launch], fd: int) -> None:
        self.names = [each.arguments for each in launches]
        self.sites: list[CrashSite | None] = [
            CrashSite(
                cause="",
                kernel=each.name,
                handle=each.handle,
                part=part,
                wrapper=file,
                wrapper_line=each.line,
                arguments_of="first launch",
            )
            for each in launches
        ]
        self.file, self.fd, self.code = file, fd, code
        self.code.start({_BEFORE: self.before})

    def before(self, number: int, function: object, *values: object) -> object:
        """Write the arguments of the launch with this number, the first time; LEAVING ends the first call."""
        if number == LEAVING:
            self.code.rest()
            self.write(CrashSite(cause="", wrapper=self.file))
            return function
        site, self.sites[number] = self.sites[number], None
        if site is None:
            return function
        named = zip(self.names[number], values, strict=True)
        seen = {name: kernels.launch_argument(name, value) for name, value in named if isinstance(value, Tensor)}
        file, line = kernels.users_line(site.wrapper, site.wrapper_line)
        self.write(replace(site, arguments=tuple(seen.values()), file=file, line=line))
        return function

    def write(self, site: CrashSite) -> None:
        with contextlib.suppress(OSError):  # the program closed it
            os.write(self.fd, msgspec.json.encode(site) + b"\n")


@contextmanager
def first_launches(path: Path) -> Iterator[None]:
    """While it lasts, the arguments of each first launch of each loaded wrapper are written to this file, a line of
    JSON each, before the launch.
    """
    calls: list[_FirstCall] = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def loaded(module: ModuleType) -> None:
        if (found := instrumented(module, _BEFORE, "before")) is not None:
            code, part, launches = found
            calls.append(_FirstCall(code, module.__file__ or "", part, launches, fd))

    try:
        with kernels.observe_loads(loaded):
            yield
    finally:
        for call in calls:
            call.code.stop()
        with contextlib.suppress(OSError):  # as above
            os.close(fd)
