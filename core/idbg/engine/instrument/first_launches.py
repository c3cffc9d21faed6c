"""What is each kernel given as it is launched first, written where it outlives this process?

A signal leaves no time to look: what a launch is given is written before it is made. From its second call on a wrapper
runs its own code again, which costs nothing.
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
from idbg.engine.capture.arguments import argument
from idbg.engine.compat import wrappers
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
        """Write what the launch of this number is given, the first time."""
        site, self.sites[number] = self.sites[number], None
        if site is None:
            self.code.rest()
            return
        given = zip(self.names[number], values, strict=True)
        seen = {name: argument(name, value) for name, value in given if isinstance(value, Tensor)}
        file, line = wrappers.users_line(site.wrapper, site.wrapper_line)
        told = replace(site, arguments=tuple(seen.values()), file=file, line=line)
        with contextlib.suppress(OSError):  # the program closed it, with others that are not its own
            os.write(self.fd, msgspec.json.encode(told) + b"\n")


@contextmanager
def first_launches(path: Path) -> Iterator[None]:
    """While it lasts, what each launch of each wrapper that is loaded is given the first time goes to this file, a line
    of JSON each, before it is made.
    """
    calls: list[_FirstCall] = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def heard(module: ModuleType) -> None:
        text = _text(module)
        if is_wrapper(text) and callable(getattr(module, "call", None)):
            try:
                calls.append(_FirstCall(cast("WrapperModule", module), text, fd))
            except ValueError:  # written in another way than we know: it runs as it is
                return

    try:
        with wrappers.loaded(heard):
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
