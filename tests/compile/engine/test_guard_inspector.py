"""Does a look at a function's guards tell what torch.compile would do, and leave the process as it was?"""

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo import convert_frame, pgo, utils
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, cached_backends

import idbg

OFFSET = 2


def branching(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x * n + OFFSET
    if y.sum() > 0:
        y = y + 1
    return y * 2


def inner(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x + n
    torch._dynamo.graph_break()
    return y * 2


def outer(x: torch.Tensor, n: int) -> torch.Tensor:
    return inner(x, n) + torch.rand(1)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        self.scale = 3

    def forward(self, x: torch.Tensor, *, parts: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.linear(x) * self.scale + parts["a"]


def _state() -> object:
    """All that a compile of ours could have changed."""
    entries = [_debug_get_cache_entry_list(each.__code__) for each in (branching, inner, outer, Model.forward)]
    return copy.deepcopy(
        [
            [[id(entry.guard_manager) for entry in one] for one in entries],
            {name: dict(counts) for name, counts in utils.counters.items()},
            convert_frame.FRAME_COUNTER,
            dict(convert_frame.FRAME_COMPILE_COUNTER),
            sorted(cached_backends),
            len(utils.guard_failures),
            len(utils._compilation_metrics),
            {name: len(values) for name, values in utils.compilation_time_metrics.items()},
            str(pgo._CODE_STATE),
            torch.get_rng_state().tolist(),
            torch._dynamo.config.get_config_copy(),
            [each.__code__ is code for each, code in CODES],
        ]
    )


CODES = [(each, each.__code__) for each in (branching, inner, outer, Model.forward)]


def test_graphs_breaks_and_guards_are_told_each_with_its_own() -> None:
    told = idbg.GuardInspector(branching).inspect(torch.ones(3), n=5)
    first, second = told.graphs
    assert first.graph is not None and second.graph is not None and first.guards is not None
    codes = [code for guard in first.guards.guards for code in guard.code]
    assert "L['n'] == 5" in codes and "G['OFFSET'] == 2" in codes
    assert second.guards is not None
    assert not any("L['n']" in code for guard in second.guards.guards for code in guard.code)
    (broke,) = told.breaks
    assert broke.file == __file__ and "branching" in broke.reason.lower() and not told.recompiles
    assert str(told).startswith("branching: 2 graphs, 1 graph break, 0 recompiles\ngraph break at ")


def test_the_next_call_tells_what_had_to_be_compiled_again() -> None:
    inspector = idbg.GuardInspector(branching)
    inspector.inspect(torch.ones(3), 5)
    assert not inspector.inspect(torch.ones(3), 5).graphs
    told = inspector.inspect(torch.ones(4), 5)
    assert [each.failed[0].source for each in told.recompiles] and len(told.graphs) == len(told.recompiles) == 2
    assert (told.recompiles[0].failed[0].expected, told.recompiles[0].failed[0].actual) == ("3", "4")


@pytest.mark.parametrize("compiled", [False, True])
def test_modules_dicts_and_keywords(compiled: bool) -> None:
    model = Model()
    given: Callable[..., Any] = torch.compile(model, backend="eager") if compiled else model
    (graph,) = idbg.GuardInspector(given).inspect(torch.ones(3, 4), parts={"a": torch.ones(2)}).graphs
    assert graph.guards is not None and graph.frame.function == "forward"
    sources = {guard.source for guard in graph.guards.guards}
    assert {"L['self'].scale", "L['parts']['a']", "L['x']"} <= sources
    assert not _debug_get_cache_entry_list(Model.forward.__code__)


def test_a_backend_that_makes_more_graphs_of_it_adds_its_guards_and_no_graphs() -> None:
    def written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + y

    x = torch.ones(4)
    told = idbg.GuardInspector(written, backend="aot_eager").inspect(x, torch.ones(4, requires_grad=True))
    lines = str(told).splitlines()
    assert lines[0] == f"{written.__qualname__}: 1 graph, 0 graph breaks, 0 recompiles"
    assert lines[2].startswith("written 0/0")
    assert x.tolist() == [2, 2, 2, 2]


def test_hooks_of_a_module_are_called_and_guarded() -> None:
    model = Model()
    model.register_forward_hook(lambda module, args, result: result + 1)
    told = idbg.GuardInspector(model).inspect(torch.ones(3, 4), parts={"a": torch.ones(2)})
    (graph,) = told.graphs
    assert graph.graph is not None and [node.target for node in graph.graph.nodes].count("operator.add") == 2


def test_what_can_be_called_is_looked_at() -> None:
    model = Model()

    class Called:
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    assert len(idbg.GuardInspector(Called()).inspect(torch.ones(2)).graphs) == 1
    assert len(idbg.GuardInspector(model.linear.forward).inspect(torch.ones(2, 4)).graphs) == 1
    assert len(idbg.GuardInspector(torch.compile(branching, backend="eager")).inspect(torch.ones(2), 1).graphs) == 2
    assert "nothing was compiled" in str(idbg.GuardInspector(len).inspect([1]))


@pytest.fixture
def nothing_hidden() -> Iterator[None]:
    """The tests' own gc.freeze hides functions of modules that were imported before."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.parametrize("compiled_before", [False, True])
@pytest.mark.usefixtures("nothing_hidden")
def test_the_process_is_as_it_was(compiled_before: bool) -> None:
    asked: list[str] = []

    def users(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        asked.append("compiled")
        return gm.forward

    def call() -> int:
        asked.clear()
        torch.compile(outer, backend=users)(torch.ones(3), 1)
        torch.compile(inner, backend=users)(torch.ones(3), 1)
        return len(asked)

    if compiled_before:
        assert call() == 3
    before = _state()
    inspector = idbg.GuardInspector(outer)
    for size in (3, 4, 5):
        inspector.inspect(torch.ones(size), 1)
        assert _state() == before
    assert call() == (0 if compiled_before else 3)
    known = _state()
    del inspector
    gc.collect()
    assert _state() == known and call() == 0


def test_later_sizes_are_compiled_as_if_nobody_had_looked() -> None:
    def sizes(look: bool) -> list[bool]:
        torch._dynamo.reset()
        dynamic: list[bool] = []

        def users(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            dynamic.append(any(isinstance(each, torch.SymInt) for each in inputs))
            return gm.forward

        if look:
            idbg.GuardInspector(Model.forward).inspect(Model(), torch.ones(7, 4), parts={"a": torch.ones(2)})
        model = torch.compile(Model(), backend=users)
        for rows in (2, 3):
            model(torch.ones(rows, 4), parts={"a": torch.ones(2)})
        return dynamic

    assert sizes(look=True) == sizes(look=False) == [False, True]


def test_what_the_function_raises_is_raised_and_all_is_put_back() -> None:
    def failing(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 2:
            raise LookupError("mine")
        return x + 1

    before = _state()
    with pytest.raises(LookupError, match="mine"):
        idbg.GuardInspector(failing).inspect(torch.ones(2))
    with pytest.raises(TypeError):
        idbg.GuardInspector(failing).inspect()  # type: ignore[call-arg]
    assert _state() == before


@pytest.mark.parametrize("given", [3, [1], torch.nn.Linear])
def test_what_cannot_be_looked_at_is_said_in_a_sentence(given: Any) -> None:
    with pytest.raises(idbg.IdbgError, match="looks at a function or a module, and was given"):
        idbg.GuardInspector(given)
    with pytest.raises(idbg.IdbgError, match="no backend 'nonsense'"):
        idbg.GuardInspector(branching, backend="nonsense")
