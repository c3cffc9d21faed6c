"""Make the compilers that torch starts write files in one step.

Torch lets g++ write under the final name in the user's cache, and never checks a file of that name again. Here each
compiler writes into a folder of this process, and a complete file is moved to its place. `scratch.begin` installs this.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from idbg.engine.compat.builds.scratch import is_torn, move, private
from idbg.engine.compat.names import find

if TYPE_CHECKING:
    from torch._inductor import codecache, cpp_builder, cpu_vec_isa
    from torch.utils._filelock import FileLock
else:
    codecache, cpp_builder = find("torch._inductor.codecache"), find("torch._inductor.cpp_builder")
    cpu_vec_isa, FileLock = find("torch._inductor.cpu_vec_isa"), find("torch.utils._filelock.FileLock")

DRAIN_SECONDS = 1.0  # for output of a killed compiler's children
# In g++'s errors about a precompiled header that is incomplete
_BAD_HEADER = (b"precompiled header", b"PCH file", b".gch")
_Done = subprocess.CompletedProcess[object]


_CompileCpp = Callable[[str, Sequence[cpp_builder.CppBuilder]], None]  # the lock's path, what is to be built
_CheckBuild = Callable[[cpu_vec_isa.VecISA, str], bool]


def install() -> None:
    """From now on compilers of this process write privately."""
    cpp_builder.__dict__["subprocess"] = _Compilers("subprocess")
    codecache.__dict__["subprocess"] = _Compilers("subprocess")
    codecache.__dict__["_worker_compile_cpp"] = _over_whole_files(codecache._worker_compile_cpp)
    cpu_vec_isa.VecISA.check_build = _checked_whole(cpu_vec_isa.VecISA.check_build)  # type: ignore[assignment, method-assign]


class _Compilers(ModuleType):
    """`subprocess` for torch's modules: a command with `-o FILE` writes FILE in one step."""

    def __getattr__(self, name: str) -> object:
        return getattr(subprocess, name)

    def run(self, command: str | Sequence[str], **how: object) -> _Done:
        at = _output_at(command)
        if at is None or how.get("shell"):
            return cast("Callable[..., _Done]", subprocess.run)(command, **how)
        return _built(list(command), at, how)

    def check_call(self, command: str | Sequence[str], **how: object) -> int:
        return self.run(command, **how, check=True).returncode

    def check_output(self, command: str | Sequence[str], **how: object) -> object:
        return self.run(command, **how, check=True, stdout=subprocess.PIPE).stdout


def _output_at(command: object) -> int | None:
    """The position of the output file's absolute path in the command."""
    if not isinstance(command, (list, tuple)) or list(command).count("-o") != 1:
        return None
    at = list(command).index("-o") + 1
    return at if at < len(command) and os.path.isabs(str(command[at])) else None


def _built(command: list[str], at: int, how: dict[str, object]) -> _Done:
    place = Path(command[at])
    folder = private.new()
    try:
        made = folder / "made"
        made.mkdir()
        ours = [*command[:at], str(made / place.name), *command[at + 1 :]]
        check = how.pop("check", False)
        # g++ keeps its own half-done files (cc*.s) in TMPDIR, and so does each of its children
        env = cast("Mapping[str, str] | None", how.get("env")) or os.environ
        how["env"] = {**env, "TMPDIR": str(folder)}
        done = _run(ours, folder, **how)
        if done.returncode and (header := _bad_header(command, done.stdout)):
            header.unlink(missing_ok=True)
            private.tell(f"a precompiled header in Inductor's cache was not whole, and was removed: {header}")
            done = _run(ours, folder, **how)
        for file in sorted(made.iterdir()) if not done.returncode else ():
            move(file, place.with_name(file.name))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    done.args = command
    if check and done.returncode:
        done.check_returncode()
    return done


def _run(command: Sequence[str], folder: Path, **how: object) -> _Done:
    """`subprocess.run`, but it does not wait for the children of a compiler that is killed.

    g++ is a driver: killed, it leaves cc1plus running for minutes, which holds the pipe that is read here.
    """
    if how.pop("capture_output", False):
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    over = threading.Event()
    with cast("Callable[..., subprocess.Popen[bytes]]", subprocess.Popen)(command, **how) as process:
        threading.Thread(target=_bury, args=(process.pid, folder, over), daemon=True).start()
        try:
            out, err = process.communicate()
        except BaseException:  # as subprocess.run does: no child survives
            process.kill()
            _end_children(folder)
            raise
        finally:
            over.set()
    if process.returncode == -signal.SIGKILL and isinstance(out, bytes):
        out += f"\n{command[0]} was killed, most often for want of memory (see dmesg): run it again\n".encode()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _bury(compiler: int, folder: Path, over: threading.Event) -> None:
    """End the children of a compiler that is killed before it is `over`. `communicate` reaps the compiler."""
    try:
        ended = os.waitid(os.P_PID, compiler, os.WEXITED | os.WNOWAIT)
    except (ChildProcessError, AttributeError):  # reaped already, or a system without it
        return
    if ended is not None and ended.si_code != os.CLD_EXITED and not over.wait(DRAIN_SECONDS):
        _end_children(folder)


def _end_children(folder: Path) -> None:
    """Kill a compiler's children, on systems with /proc: their TMPDIR is the folder of this build."""
    mark = b"TMPDIR=" + os.fsencode(folder)
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it ended, or is another user's


def _bad_header(command: Sequence[str], output: object) -> Path | None:
    """The precompiled header that the compiler could not read."""
    if not isinstance(output, bytes) or not any(words in output for words in _BAD_HEADER):
        return None
    names = [f"{name}.gch" for word, name in pairwise(command) if word == "-include"]
    return next((Path(name) for name in names if os.path.exists(name)), None)


def _over_whole_files(original: _CompileCpp) -> _CompileCpp:
    """`_worker_compile_cpp` builds missing files: remove torn ones before it."""

    def compile_cpp(lock_path: str, cpp_builders: Sequence[cpp_builder.CppBuilder]) -> None:
        targets = [Path(builder.get_target_file_path()) for builder in cpp_builders]
        if any(map(is_torn, targets)):
            with FileLock(lock_path, timeout=codecache.LOCK_TIMEOUT):  # a writer holds the lock
                for target in targets:
                    _remove_torn(target)
        original(lock_path, cpp_builders)

    return compile_cpp


def _checked_whole(original: _CheckBuild) -> _CheckBuild:
    """`VecISA.check_build`: with a torn library it would find no vector instructions, and kernels stay slow."""

    def check_build(isa: cpu_vec_isa.VecISA, code: str) -> bool:
        extra = cpu_vec_isa._get_isa_dry_compile_fingerprint(isa.build_arch_flags())
        key, source = codecache.write(code, "cpp", extra=extra)
        target = Path(source).with_name(f"{key}.so")
        if is_torn(target):
            lock = os.path.join(codecache.get_lock_dir(), f"{key}.lock")
            with FileLock(lock, timeout=codecache.LOCK_TIMEOUT):
                _remove_torn(target)
        return original(isa, code)

    return check_build


def _remove_torn(target: Path) -> None:
    if is_torn(target):
        target.unlink(missing_ok=True)
        private.tell(
            f"a file in Inductor's cache was not written to its end, by a compile that was killed; it was removed, "
            f"and is built again: {target}"
        )
