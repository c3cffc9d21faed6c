"""Attribute an exception to the program, to torch, or to the backend, by its stack.

What is raised while torch compiles is torch's, unless a frame of the user's or of the backend's package lies below the
compiler. An op that fails on fake tensors in Dynamo is the program's if it fails on real ones too.
"""

import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from idbg import plugins
from idbg.accelerators.adapter import GROUP
from idbg.analysis.raised_text import raised_in_traced_code
from idbg.engine.compat import caches, dynamo, exceptions, registrations
from idbg.schema.errors import exception_text

OURS = str(Path(__file__).resolve().parents[2])
LIBRARIES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))

_TORCH = str(Path(torch.__file__).parent)
_SITES = ("/site-packages/", "/dist-packages/")
# libraries of torch's compilers: their frames are torch's
_OF_TORCH = {"torchgen", "functorch", "sympy", "mpmath", "triton", "networkx", "numpy", "jinja2", "filelock", "fsspec"}
# frames that are on the stack only while something is compiled
_COMPILERS = (
    f"{_TORCH}/_dynamo/convert_frame.py",
    f"{_TORCH}/_dynamo/output_graph.py",
    f"{_TORCH}/_inductor/compile_fx.py",
    f"{OURS}/engine/backends/base.py",
)
_OWN_BACKEND = f"{OURS}/engine/backends/program_backend.py"  # below it the program's own backend runs
_INDEX = "out of bounds"  # in a kernel's error of an index, which eager refuses too

Whose = Literal["user", "torch", "backend"]


@dataclass(frozen=True)
class Owner:
    """The owner of an exception. `error` is the one to show, and `place` the program's stack in Dynamo.

    `package` and `folders` are the backend's, empty for a backend of the program; `compiling`: it was raised during a
    compile. `called_back`: by code of the user's that the compiler calls (a lowering, a pass, a fake kernel);
    `wrong_fake`: of such a fake kernel, whose op returned something else.
    """

    whose: Whose
    error: BaseException
    place: tuple[traceback.FrameSummary, ...] = ()
    package: str = ""
    folders: tuple[str, ...] = ()
    compiling: bool = False
    called_back: bool = False
    wrong_fake: registrations.FakeKernel | None = None


@dataclass(frozen=True)
class BackendHome:
    """The top package of a backend that is neither torch's nor ours; `folders` end in a slash."""

    backend: str = ""
    folders: tuple[str, ...] = ()
    package: str = ""


def home_of(backend: str) -> BackendHome:
    """The package of a backend; an empty BackendHome for torch's backends and ours."""
    if backend in plugins.names(GROUP):
        module = getattr(plugins.load(GROUP).values.get(backend), "__module__", "")
    elif backend in dynamo.backend_names():
        module = exceptions.module_of_backend(backend)
    else:
        return BackendHome()
    root = module.partition(".")[0]
    if root in ("torch", "idbg"):
        return BackendHome()
    # a module that is no package has no folders: the program itself registered it
    return BackendHome(backend, tuple(f"{folder}/" for folder in getattr(sys.modules.get(root), "__path__", ())), root)


def chain(error: BaseException) -> list[BaseException]:
    """The exception and its causes, outermost first."""
    links = [error]
    while (inner := _inner(links[-1])) is not None and not any(inner is link for link in links):
        links.append(inner)
    return links


def _inner(error: BaseException) -> BaseException | None:
    """Its cause. `is None`: an exception may define a truth value and an equality."""
    return error.__cause__ if error.__cause__ is not None else error.__context__


def owner_of(error: BaseException, home: BackendHome) -> Owner:
    """The owner of the exception."""
    links = chain(error)
    stack = [frame for link in links for frame in traceback.extract_tb(link.__traceback__)]
    compiling = [number for number, frame in enumerate(stack) if frame.filename.startswith(_COMPILERS)]
    return replace(
        _owner(links, stack, compiling, home), compiling=bool(compiling) or any(map(exceptions.is_torch_error, links))
    )


def _owner(
    links: Sequence[BaseException], stack: Sequence[traceback.FrameSummary], compiling: Sequence[int], home: BackendHome
) -> Owner:
    error = links[0]
    if exceptions.is_torch_error(error) and (owner := _of_traced_code(links)) is not None:
        return owner
    is_torch = any(map(exceptions.is_torch_error, links))
    own = next((number for number, frame in enumerate(stack) if frame.filename == _OWN_BACKEND), len(stack))
    for number, frame in sorted(enumerate(stack), reverse=True):
        kind, package = _room(frame.filename, home)
        if kind in ("user", "library") and number > own:
            return Owner("backend", links[-1])
        below = bool(compiling) and number > compiling[0]
        if kind == "backend" or (kind == "library" and home.backend and below):
            return Owner("backend", links[-1], package=package, folders=home.folders)
        if kind == "generated" and not compiling and (fake := _wrong_fake(links[-1])) is not None:
            return Owner("user", links[-1], called_back=True, wrong_fake=fake)
        if kind == "generated" and not compiling:
            return Owner("user" if _INDEX in exception_text(links[-1]) else "torch", error)
        if kind in ("user", "library"):
            if below:
                return Owner("user", links[-1], called_back=kind == "user")
            return Owner("torch" if compiling or is_torch else "user", error)
    return Owner("torch" if compiling or is_torch else "user", error)


def _wrong_fake(error: BaseException) -> registrations.FakeKernel | None:
    op = exceptions.op_with_other_result(error)
    return registrations.fake_kernel(op, is_own) if op else None


def _room(
    file: str, home: BackendHome
) -> tuple[Literal["user", "torch", "backend", "library", "generated", "none"], str]:
    """The owner of a source file, and its package's name."""
    if file.startswith(home.folders):
        return "backend", Path(home.folders[0]).name
    if file.startswith(("<", OURS)):
        return "none", ""
    if file.startswith(_TORCH):
        return "torch", "torch"
    for site in _SITES:
        if site in file:
            package = file.rpartition(site)[2].partition("/")[0].removesuffix(".py")
            return ("torch" if package in _OF_TORCH else "library"), package
    if file.startswith(LIBRARIES[-1]):
        return "none", ""
    return ("generated" if caches.is_generated(file) else "user"), ""


def type_and_message(owner: Owner, links: Sequence[BaseException]) -> tuple[str, str]:
    """Type and message of the exception; of the program's, where torch replaces it by another."""
    if exceptions.is_raised_in_traced_code(owner.error):
        for link in filter(exceptions.is_unhandled, links):
            if (raised := raised_in_traced_code(exception_text(link))) is not None:
                return raised
    kind = type(owner.error).__name__
    return kind, exception_text(owner.error).strip() or kind


def _of_traced_code(links: Sequence[BaseException]) -> Owner | None:
    """The owner of an exception of traced code; None for another one."""
    place = next(filter(None, map(exceptions.traced_stack, links)), ())
    for link in links:
        if (call := exceptions.traced_call(link)) is not None:
            if _has_users_frame(links[-1]):  # the fake of an op of the program's own
                return Owner("user", links[-1], place, called_back=True)
            users = _fails_eagerly(call, links[-1])
            return Owner("user", links[-1], place) if users else Owner("torch", links[0], place)
    if exceptions.is_unhandled(links[0]):
        raised = next((link for link in links if exceptions.is_raised_in_traced_code(link)), None)
        return Owner("user", raised, place) if raised is not None else None
    return None


def _has_users_frame(error: BaseException) -> bool:
    raised_by = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return any(_room(file, BackendHome())[0] == "user" for file in raised_by)


def _fails_eagerly(call: exceptions.TracedCall, error: BaseException) -> bool:
    """Whether the op that failed on fake tensors fails on real ones. If that cannot be tried: whether the exception is
    one of a wrong argument.
    """
    try:
        real = exceptions.made_real(call)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        real = None
    if real is None:
        wrong_argument = (RuntimeError, ValueError, TypeError, IndexError)
        return isinstance(error, wrong_argument) and not isinstance(error, NotImplementedError)
    try:
        real()
    except Exception:  # broad on purpose: any op may be called here, and any error is the answer
        return True
    return False


def own_frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    """The frames of a traceback that are the program's own, outermost first."""
    for frame in traceback.extract_tb(error.__traceback__):
        if is_own(frame.filename):
            yield frame


def is_own(file: str) -> bool:
    """Whether a source file is the program's own: in no library, and not generated."""
    if file.startswith((OURS, "<")) or caches.is_generated(file):
        return False
    return not any(folder in file for folder in LIBRARIES)
