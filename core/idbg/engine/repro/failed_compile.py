"""Find the graph of a failed compile, and how it was compiled, for a script that needs only torch.

The script has the Dynamo graph as plain torch, with the program's lines, options and settings. If only a backend of
idbg shows the failure, the script says so.
"""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass

from idbg import __version__
from idbg.accelerators.parse import parse, unparse
from idbg.engine.capture.run import Compiling, RunCapture
from idbg.engine.compat import dynamo, exceptions
from idbg.engine.failures.owners import Owner, chain, home_of, owner_of, type_and_message
from idbg.engine.repro.definitions import named, options_as_python
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Target

TORCH_BACKENDS = {"aot": "inductor", "inductor": "inductor"}  # idbg's backends that torch has, by torch's names


def inline(rules: str) -> str:
    """The accelerator's rules without its comments, as they stand in a script."""
    return unparse(parse(rules))


class NoGraph(ValueError):
    """No graph is known in which the failure could be: what is left is the program itself."""


@dataclass(frozen=True)
class _FailedCompile:
    graph: Graph
    compiling: Compiling
    error: BaseException


def failed_compile(capture: RunCapture, error: BaseException | None, target: Target) -> _FailedCompile:
    """The graph that failed. Raises NoGraph where it failed before there was one, or one graph alone does not show it;
    ValueError where none failed, or it is not known which.
    """
    if error is not None and exceptions.is_of_several_compiles(chain(error)):
        raise NoGraph("it takes several compiles to fail so: the program itself shows it")
    for frame, compiling in reversed(capture.compiles.items()):
        if compiling.error is not None and (error is None or _is_of(compiling.error, error)):
            _refuse_users_own(compiling.error, target)
            return _FailedCompile(_dynamo(capture, frame), compiling, compiling.error)
    if error is None:
        raise ValueError("the compile did not fail: ask for the repro of a violation")
    owner = _refuse_users_own(error, target)
    if owner.compiling:  # raised before or after the backend's call, in the last frame
        frame = next(reversed(capture.frames), "")
        return _FailedCompile(_dynamo(capture, frame), capture.compiles.get(frame) or Compiling(), error)
    if len(capture.compiles) > 1:
        which = f"which of the {len(capture.compiles)} graphs raised it is not known"
        raise ValueError(f"it failed as the compiled code ran, and {which}")
    frame, compiling = next(iter(capture.compiles.items()), ("", Compiling()))
    return _FailedCompile(_dynamo(capture, frame), compiling, error)


def _refuse_users_own(error: BaseException, target: Target) -> Owner:
    owner = owner_of(error, home_of(target.backend))
    if owner.whose == "user" and not owner.called_back:
        words = ": ".join(type_and_message(owner, chain(error)))
        raise ValueError(f"the program itself raised it ({words}): nothing smaller than the program shows it")
    return owner


def _is_of(error: BaseException, whole: BaseException) -> bool:
    """Whether an exception is one of those that another was raised from, or shares its cause."""
    links = chain(whole)
    return any(link is other for link in chain(error) for other in links)


def _dynamo(capture: RunCapture, frame: str) -> Graph:
    captured = capture.frames.get(frame)
    graph = captured.graphs.get(GraphId(frame, "dynamo")) if captured else None
    if graph is None or graph.id not in capture.saved_graphs:
        raise NoGraph("the compile failed before Dynamo had a graph: the program itself shows it")
    return graph


def how_compiled(target: Target, compiling: Compiling, *, has_sizes: bool) -> tuple[str, str, list[str]]:
    """The arguments of torch.compile after the program, a note, and what registers the backend."""
    own = compiling.arguments
    options = own.get("options") or {} if own else compiling.options
    assert isinstance(options, Mapping)
    given = f", mode={own['mode']!r}" if own.get("mode") else ""
    given += f", options={options_as_python(options)}" if options else ""
    given += ", dynamic=True" if has_sizes and target.dynamic is not False else ""
    name = own.get("backend", target.backend)
    if not isinstance(name, str):
        return f"backend={named(name)}{given}", "", []
    if name in TORCH_BACKENDS:
        return f'backend="{TORCH_BACKENDS[name]}"{given}', "", []
    if name in dynamo.backend_names() and name != "mock":
        module = exceptions.module_of_backend(name) if home_of(name).folders else ""
        return f'backend="{name}"{given}', "", [module] if module else []
    made = f'idbg.backend("{name}", strict={target.strict}, accelerator=RULES)'
    note = f'It needs idbg ({__version__}): its backend {name} is what fails. backend="inductor" shows torch\'s own.'
    return f"backend={made}", note, []


def telling(error: BaseException) -> BaseException:
    """The exception that says most: the last that torch made for it, else the one that all were raised from; so also
    of what an op raised on fake tensors, whose words torch only repeats.
    """
    links = chain(error)
    if any(exceptions.traced_call(link) is not None for link in links) and not exceptions.is_torch_error(links[-1]):
        return links[-1]
    own = [link for link in links if exceptions.is_torch_error(link) and not exceptions.is_wrapper(link)]
    return own[-1] if own else links[-1]


def function_of(error: BaseException) -> str:
    """The innermost function of an exception's traceback: what tells it where its message does not."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].name if frames else ""
