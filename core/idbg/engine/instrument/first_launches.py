"""Write the arguments of each kernel's first launch to a file that outlives this process.

A signal leaves no time to read them, so they are written before the launch. From its second call on a wrapper runs its
own code again, without cost.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

import msgspec
from msgspec.structs import replace
from torch import Tensor

from idbg.analysis.crashes import is_wrapper
from idbg.analysis.output_code import part_of, read_output_code
from idbg.engine.compat import kernels
from idbg.engine.compat.comparing import WrapperModule
from idbg.engine.instrument.wrapper_code import Instrumented
from idbg.engine.instrument.wrapper_lines import announced
from idbg.schema.faults import CrashSite

_BEFORE = "__idbg_before__"


class _FirstCall:
    """One wrapper in its first call."""

    def __init__(self, module: WrapperModule, text: str, fd: int) -> None:
        part = part_of(text)
        changed, launches = announced(read_output_code(text, frame="", part=part), _BEFORE)
        self.names = [each.arguments for each in launches]
        self.sites: list[CrashSite | None] = [
            CrashSite(
                cause="",
                kernel=each.launch.name,
                handle=each.launch.handle,
                part=part,
                wrapper=module.__file__,
                wrapper_line=each.launch.line,
                arguments_of="first launch",
            )
            for each in launches
        ]
        self.fd = fd
        self.code = Instrumented(module, changed, _BEFORE)
        self.code.start({_BEFORE: self.before})

    def before(self, number: int, *values: object) -> None:
        """Write the arguments of the launch with this number, the first time."""
        site, self.sites[number] = self.sites[number], None
        if site is None:
            self.code.rest()
            return
        named = zip(self.names[number], values, strict=True)
        seen = {name: kernels.launch_argument(name, value) for name, value in named if isinstance(value, Tensor)}
        file, line = kernels.users_line(site.wrapper, site.wrapper_line)
        written = replace(site, arguments=tuple(seen.values()), file=file, line=line)
        with contextlib.suppress(OSError):  # the program closed it
            os.write(self.fd, msgspec.json.encode(written) + b"\n")


@contextmanager
def first_launches(path: Path) -> Iterator[None]:
    """While it lasts, the arguments of each first launch of each loaded wrapper are written to this file, a line of
    JSON each, before the launch.
    """
    calls: list[_FirstCall] = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def loaded(module: ModuleType) -> None:
        text = _text(module)
        if is_wrapper(text) and callable(getattr(module, "call", None)):
            try:
                calls.append(_FirstCall(cast("WrapperModule", module), text, fd))
            except ValueError:  # of an unknown form: it runs unchanged
                return

    try:
        with kernels.observe_loads(loaded):
            yield
    finally:
        for call in calls:
            call.code.stop()
        with contextlib.suppress(OSError):  # as above
            os.close(fd)


def _text(module: ModuleType) -> str:
    try:
        return Path(module.__file__ or "").read_text()
    except OSError:
        return ""
