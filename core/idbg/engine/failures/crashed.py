"""Find the launch of a kernel that raised an exception, and its arguments.

A kernel that raises (an index out of bounds, an integer divided by zero, a device's error) does so at the wrapper's
line that launches it. A device reports errors late, at a later call.
"""

import traceback
from pathlib import Path

from idbg.analysis.crashes import is_wrapper, launch_at
from idbg.analysis.output_code import part_of
from idbg.engine.compat import caches, gpu, kernels
from idbg.engine.failures.owners import chain
from idbg.schema.faults import CrashSite

WAITS = ("wait_for_launch", "wait_for_op")
"""Our functions that wait for the device (instrument/waiting.py): their errors are not late."""


def crash_of(error: BaseException) -> CrashSite | None:
    """The launch that raised it, with its arguments; None if no launch did. A device's error may be of any earlier
    launch.
    """
    links = chain(error)
    is_devices = any(map(gpu.is_device_error, links))
    for link in reversed(links):  # code that restores state after a device's error raises it again
        if (site := _launch_of(link, is_devices)) is not None:
            return site
    return CrashSite(cause=type(links[-1]).__name__, late=not any(map(_waited_for, links))) if is_devices else None


def _launch_of(error: BaseException, is_devices: bool) -> CrashSite | None:
    frames = list(traceback.walk_tb(error.__traceback__))
    late = is_devices and not _waited_for(error)
    for frame, line in reversed(frames):
        file = frame.f_code.co_filename
        text = _text(file) if file.startswith(caches.cache_folder()) else ""
        launch = launch_at(text, line) if is_wrapper(text) else None
        if launch is not None:
            users_file, users_line = kernels.users_line(file, line)
            return CrashSite(
                cause=type(error).__name__,
                kernel=launch.kernel,
                handle=launch.handle,
                part=part_of(text),
                wrapper=file,
                wrapper_line=line,
                file=users_file,
                line=users_line,
                arguments=kernels.launch_arguments(launch.names, frame.f_locals),
                arguments_of="crash",
                late=late,
            )
    return None


def _waited_for(error: BaseException) -> bool:
    return gpu.is_waited_for() or any(
        frame.f_code.co_name in WAITS for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _text(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""
