"""Compile what another test has compiled by copying its result: `g++` of the tests, first on PATH.

Most tests have caches of their own, and so check the processor's instructions anew (10 calls, 11 s of a processor), and
compile kernels that others have compiled. Two commands are the same where they differ only in the folders of their
files; so are errors and warnings, printed with the names of these files. What may go well the next time, as where a
header is missing, runs each time. The fixture `compiles_anew` turns it off for one test.

A kernel is linked against libraries of torch's names without symbols: reading those of libtorch_cpu took gold 0.1 s and
bfd 0.5 s of a processor, of the 0.7 s that g++ needs for a kernel. When it is loaded, it finds torch's own, which are
there already. Other libraries are linked by gold, where it is installed. The code of the kernel is the same.
"""

import fcntl
import hashlib
import os
import signal
import sys
from contextlib import suppress

FOLDER = "COMPILED_ONCE"  # in the environment: the results of all runs; unset, g++ runs as ever
PYTHON = "COMPILED_ONCE_PYTHON"
READ = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")
# Their result is on stdout, names the folders of files, or is more than one file
OTHERS = ("-M", "-save-temps", "--coverage", "-fprofile", "-gsplit", "-v", "--version", "-print", "-dump", "@")
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
PASSING = (b"fatal error", b"internal compiler error", b"No space left", b"cannot open", b"Cannot allocate")  # errors
LINKED = ".gch"  # 150 MB, and nobody writes into it


def begin(folder: str) -> None:
    """From now on this process, and what it starts, compile each thing once."""
    os.environ["PATH"] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compilers:") + os.environ["PATH"]
    os.environ.update({FOLDER: folder, PYTHON: sys.executable})


def next_on_path(ours: str) -> str:
    """The compiler that would run without us."""
    here = os.path.realpath(os.path.dirname(ours))
    folders = [folder for folder in os.get_exec_path() if folder and os.path.realpath(folder) != here]
    paths = [os.path.join(folder, os.path.basename(ours)) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK)), "/usr/bin/g++")


def key_of(compiler: str, words: list[str]) -> str:
    """What the result depends on, without the folders of files. Empty where it may depend on more."""
    if words.count("-o") != 1 or words[-1] == "-o" or any(word.startswith(OTHERS) for word in words):
        return ""
    if "-E" in words and "-P" not in words:
        return ""
    out = words.index("-o") + 1
    status = os.stat(compiler)
    key = hashlib.sha256(repr((compiler, status.st_size, status.st_mtime_ns)).encode())
    key.update(repr([os.environ.get(name) for name in READ]).encode())
    for at, word in enumerate(words):
        is_input = at != out and not word.startswith("-") and os.path.isfile(word)
        is_named = not words[out].endswith(LINKED)  # Inductor has names of its own for the same header
        key.update(repr(os.path.basename(word) * is_named if is_input or at == out else word).encode())
        if is_input:
            with open(word, "rb") as file:
                content = file.read()
            if b'#include "' in content or b".incbin" in content:
                return ""
            key.update(hashlib.sha256(content).digest())
    return key.hexdigest()


def files_of(words: list[str]) -> list[bytes]:
    """What the command names as files, in its order."""
    out = words.index("-o") + 1
    return [os.fsencode(word) for at, word in enumerate(words) if at == out or os.path.isfile(word)]


def with_files(errors: bytes, old: list[bytes], new: list[bytes]) -> bytes:
    """What the compiler printed, with other names of its files."""
    for before, after in zip(old, new, strict=True):
        errors = errors.replace(before, after)
    return errors


def run(compiler: str, words: list[str]) -> tuple[int, bytes]:
    """How it ended, and what it printed as errors, which are passed on. It ends with this process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        import ctypes

        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        os.dup2(writing, 2)
        os.execv(compiler, [compiler, *words])
    os.close(writing)
    errors = b""
    while part := os.read(reading, 1 << 16):
        errors += part
        os.write(2, part)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), errors


def linked(compiler: str, words: list[str], folder: str) -> list[str]:
    """The command with what makes linking cheaper."""
    if "-shared" not in words:
        return words
    if "-include" not in words:  # no kernel of Inductor's: torch may not be there when it is loaded
        has_gold = any(os.access(os.path.join(path, "ld.gold"), os.X_OK) for path in os.get_exec_path())
        return [*words, "-fuse-ld=gold"] if has_gold else words
    for name in [word[2:] for word in words if word.startswith("-ltorch")]:
        place = os.path.join(folder, f"lib{name}.so")
        if not os.path.exists(place):
            beside = f"{place}.{os.getpid()}"
            run(compiler, ["-shared", "-nostdlib", f"-Wl,-soname,lib{name}.so", "-o", beside, "-x", "c", os.devnull])
            os.rename(beside, place)
    return [f"-L{folder}", "-Wl,--no-as-needed", *words]


def put(source: str, place: str, link: bool) -> None:
    """The same file at another place, in one step."""
    beside = f"{place}.{os.getpid()}"
    try:
        with suppress(OSError):
            if link:
                os.link(source, beside)
        if not os.path.exists(beside):
            with open(source, "rb") as file, open(beside, "wb") as made:
                made.write(file.read())
            os.chmod(beside, os.stat(source).st_mode)
        os.rename(beside, place)
    finally:
        with suppress(OSError):
            os.unlink(beside)


def main(ours: str, words: list[str]) -> int:
    compiler, folder = next_on_path(ours), os.environ.get(FOLDER, "")
    key = key_of(compiler, words) if folder and os.path.isdir(folder) else ""
    if not key:
        os.execv(compiler, [compiler, *words])
    place = words[words.index("-o") + 1]
    stored, link = os.path.join(folder, key), place.endswith(LINKED)
    names = files_of(words)
    marks = [b"\0%d\0" % number for number in range(len(names))]
    with open(f"{stored}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(f"{stored}.errors"):
            os.utime(f"{stored}.errors")
            with open(f"{stored}.errors", "rb") as file:
                os.write(2, with_files(file.read(), marks, names))
            if not os.path.exists(stored):
                return 1
            os.utime(stored)
            put(stored, place, link)
            return 0
        code, errors = run(compiler, linked(compiler, words, folder))
        if code == 0:
            put(place, stored, link)
        if code == 0 or (code == 1 and not any(each in errors for each in PASSING)):
            with open(f"{stored}.errors", "wb") as made:
                made.write(with_files(errors, names, marks))
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
