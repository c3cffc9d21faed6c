"""The check's verdicts, costs and reports, on the graphs of recorded runs."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from idbg.accelerators.parse import parse
from idbg.analysis.partition import partition
from idbg.checking.check import Check, NamedAccelerator, check, named, presets
from idbg.cli.commands import check as command
from idbg.constraints import check as check_graph
from idbg.render.text import lines as text_lines
from idbg.reports import check_json
from idbg.reports.json import run_report
from idbg.schema import strict_json
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run, fold
from idbg.views import check as view
from idbg.views.cost_words import cost_lines
from tests.harness.event_lines import events_of

ROOT = Path(__file__).parents[3]

ANYTHING = ""
FLOAT16 = '[[rules]]\nkind = "dtype"\nallowed = ["float16"]\n'
PADS = '[[rules]]\nkind = "alignment"\nmultiple = 64\ndims = "last"\nseverity = "pad"\n'
NO_MATMUL = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm", "addmm"]\nseverity = "fallback"\n'
SLOW = '[[rules]]\nkind = "rank"\nmax = 1\nseverity = "slow"\n'
ONE_STAGE = FLOAT16 + 'stages = ["dynamo"]\n'


@cache
def recorded(name: str) -> Run:
    with (ROOT / "tests" / "recordings" / f"{name}.jsonl").open("rb") as log:
        run = fold(events_of(log)).last
    assert run is not None
    run.violations.clear()  # those of the recorded accelerator
    return run


def rules(name: str, text: str) -> NamedAccelerator:
    return NamedAccelerator(name, parse(text), ())


def checked(*texts: str, run: Run | None = None, level: str = "aten") -> Check:
    return check(run or recorded("mlp_train"), level, [rules(f"a{index}", text) for index, text in enumerate(texts)])


def lines(found: Check, width: int | None = None) -> list[str]:
    return list(text_lines(view.view(found), None, width))


def chain(*targets: str) -> Run:
    """A run with two inference graphs, each a chain of these ops."""
    run = Run(1, Program("chain.py"), Target(), 0.0)
    tensor = TensorMeta("float32", (4, 4), (4, 1), "cpu")
    for frame in ("0/0", "1/0"):
        nodes = [Node(name="x", op="placeholder", target="x", role="input", tensors=(tensor,))]
        for index, target in enumerate(targets):
            nodes.append(
                Node(
                    name=f"n{index}",
                    op="call_function",
                    target=f"aten.{target}.default",
                    inputs=(nodes[-1].name,),
                    tensors=(tensor,),
                    file="chain.py",
                    line=index + 1,
                )
            )
        nodes.append(Node(name="output", op="output", target="output", inputs=(nodes[-1].name,)))
        graph = Graph(GraphId(frame, "inference"), tuple(nodes))
        run.graphs[graph.id] = graph
    run.ended = "clean"
    return run


def test_the_verdict_is_the_worst_that_happens_to_any_node() -> None:
    found = checked(ANYTHING, SLOW, PADS, PADS + NO_MATMUL, PADS + NO_MATMUL + FLOAT16)
    assert [each.verdict for each in found.accelerators] == ["accept", "accept", "pad", "fallback", "reject"]
    assert [each.name for each in found.accepted] == ["a0", "a1", "a2", "a3"]
    assert found.accelerators[1].by_severity["slow"] > 0


def test_all_graphs_of_the_level_are_checked_and_no_others() -> None:
    run = recorded("mlp_train")
    for level, stages in (("aten", ("forward", "backward", "inference")), ("dynamo", ("dynamo",))):
        graphs = [graph for graph in run.graphs.values() if graph.id.stage in stages]
        (only,) = checked(FLOAT16, level=level).accelerators
        wanted = [violation for graph in graphs for violation in check_graph(graph, only.accelerator)]
        assert len(graphs) == (2 if level == "aten" else 1) and wanted
        assert [each for found in only.findings for each in found.violations()] == wanted


def test_a_rule_about_graphs_that_are_not_checked_is_named() -> None:
    (aten,), (dynamo,) = (checked(ONE_STAGE, level=level).accelerators for level in ("aten", "dynamo"))
    assert (aten.verdict, [rule.name for rule in aten.inapplicable_rules]) == ("accept", ["dtype"])
    assert (dynamo.verdict, dynamo.inapplicable_rules) == ("reject", [])
    assert any("not checked: a0: dtype" in line for line in lines(checked(ONE_STAGE)))


def test_padding_and_partitions_are_summed_over_all_graphs() -> None:
    found = checked(PADS + NO_MATMUL)
    (only,) = found.accelerators
    (report,) = encoded(found)["accelerators"]
    assert report["waste_percent"] == pytest.approx(100 * only.waste.wasted_bytes / only.waste.nbytes)
    assert report["wasted_bytes"] > 0
    matmuls = [
        [node.name for node in graph.nodes if re.match(r"aten\.(mm|addmm)\.", node.target)] for graph in found.graphs
    ]
    alone = [partition(graph, names) for graph, names in zip(found.graphs, matmuls, strict=True)]
    assert report["partitions"] == sum(each.count for each in alone)
    assert report["crossing_bytes"] == sum(each.bytes for each in alone) > 0
    assert report["host_nodes"] == sum(map(len, matmuls)) > 0


def test_peak_memory_is_that_of_the_largest_graph() -> None:
    found = checked(ANYTHING, FLOAT16)
    profiles = [each.facts.profile(weights=True).peak_bytes for each in found.accelerators[0].findings]
    told = check_json.check_report(found).accelerators
    assert [each.peak_bytes for each in told] == [max(profiles)] * 2 and min(profiles) > 0


def test_the_best_change_is_made_in_all_graphs_at_once() -> None:
    deny = '[[rules]]\nkind = "unsupported_ops"\nseverity = "fallback"\ndeny = ["sort", "sin"]\n'
    (only,) = checked(deny, run=chain("relu", "sort", "relu", "sort", "relu", "sin", "relu")).accelerators
    assert only.cost[0] == 8
    best = only.best_change
    assert best is not None
    assert ("sort" in best.label, best.count) == (True, 4)
    (left,) = [line for line in cost_lines(only) if "helps most" in line]
    assert "allowing 'sort is denied' (unsupported_ops) leaves 4 partitions, 256 B cross; " in left
    assert left.endswith("; without rule unsupported_ops: nothing falls back")


def test_the_best_change_is_none_where_nothing_falls_back() -> None:
    assert checked(PADS).accelerators[0].best_change is None


def test_what_it_would_take_is_told_for_each_rule() -> None:
    (told,) = encoded(checked(FLOAT16 + PADS + SLOW))["accelerators"]
    assert [(each["rule"], each["severity"], each["off"]) for each in told["relaxations"]] == [
        ("dtype", "reject", False),
        ("alignment", "pad", False),
    ]
    assert "float32" in told["relaxations"][0]["change"]
    assert told["relaxations"][0]["count"] == told["rejects"] > 0


def test_all_presets_come_best_first() -> None:
    order = ("accept", "pad", "fallback", "reject")
    good, _ = presets()
    found = check(recorded("resnet"), "aten", good, best_first=True)
    ranks = [order.index(each.verdict) for each in found.accelerators]
    assert ranks == sorted(ranks) and len(ranks) == len(good)


def test_an_accelerator_that_is_named_twice_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(FLOAT16)
    Path("b.toml").write_text(FLOAT16)
    assert [each.name for each in named(["a.toml", "mock", "./a.toml", "b.toml", "mock"])] == [
        "a.toml",
        "mock",
        "b.toml",
    ]


def test_the_preset_mock_is_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOCK_ALIGNMENT", "32")
    ((_, rules, _),) = named(["mock"])
    assert any(getattr(rule, "multiple", 0) == 32 for rule in rules.rules)


def test_a_bad_file_is_refused_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('name = "x"\n[[rules]]\nkind = "nonsense"\n')
    with pytest.raises(AcceleratorError, match=r"bad\.toml:3: "):
        named(["mock", str(bad)])


# --------------------------------------------------------------- JSON


def encoded(found: Check) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"not strict JSON: {constant}")

    return json.loads(strict_json.formatted(check_json.check_report(found)), parse_constant=refuse)


def test_the_keys_of_the_issue_are_all_there() -> None:
    told = encoded(checked(PADS + NO_MATMUL + FLOAT16))
    keys = "name verdict rejects fallbacks pads waste_percent peak_bytes partitions violations"
    (only,) = told["accelerators"]
    assert set(keys.split()) <= set(only)
    assert only["rejects"] + only["fallbacks"] + only["pads"] == len(only["violations"])


def test_a_violation_reads_as_in_the_report_of_a_run() -> None:
    run = recorded("mlp_train")
    found = checked(FLOAT16)
    again = Run(run.number, run.program, run.target, 0.0)
    again.violations = [each for graph in found.accelerators[0].findings for each in graph.violations()]
    assert check_json.check_report(found).accelerators[0].violations == run_report(again).violations != []


def test_the_document_names_every_key() -> None:
    document = (ROOT / "docs" / "json-schema.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)(?:\[\])?`", document.partition("# The JSON of a check")[2]))
    told = encoded(checked(PADS + NO_MATMUL + FLOAT16))
    deep = {"program", "error", "violations"}  # as in a run

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value))
        if not isinstance(value, dict):
            return set()
        return set(value) | set().union(*(keys(each) for name, each in value.items() if name not in deep))

    assert keys(told) - documented == set()


def test_a_failed_program_tells_its_failure_and_what_was_captured_before_it() -> None:
    run = chain("relu")
    run.ended, run.failure = "failed", Failure("user", "it raised", type="ValueError")
    found = checked(ANYTHING, FLOAT16, run=run)
    told = encoded(found)
    assert told["error"]["message"] == "it raised"  # type: ignore[index]
    assert [each["verdict"] for each in told["accelerators"]] == ["accept", "reject"]  # type: ignore[attr-defined]
    text = command.text(found)
    assert "it raised" in text and "captured before that" in text and "a1 rejects it" in text


def test_of_no_graphs_nobody_says_anything() -> None:
    run = Run(1, Program("empty.py"), Target(), 0.0, ended="clean")
    found = checked(ANYTHING, run=run)
    told = encoded(found)
    assert told["accelerators"] == []
    assert "no aten graph was captured" in told["error"]["message"]  # type: ignore[index]
    assert "no aten graph was captured" in lines(found)[0]


# --------------------------------------------------------------- text


def test_the_table_has_a_row_for_each_and_says_why_below() -> None:
    shown = lines(checked(ANYTHING, PADS, NO_MATMUL, FLOAT16))
    assert shown[0].startswith("✔ 3 of 4 accelerators take it")
    table = {line.split()[1]: line.split() for line in shown if re.match(r"[✔◇⚠✘] a\d  ", line)}
    assert [table[f"a{index}"][2] for index in range(4)] == ["accept", "pad", "fallback", "reject"]
    text = "\n".join(shown)
    assert "a0 takes" not in text
    assert re.search(r"padding: \+[\d.]+ % bytes", text)
    assert re.search(r"\d+ nodes? on the host; crossing between them: \d+ values?, ", text)
    assert "what it would take: dtype: allowed + float32" in text
    assert "examples/mlp_train.py:" in text


def test_one_accelerator_alone_is_told_line_by_line_with_what_mends_it() -> None:
    shown = lines(checked(FLOAT16, run=chain(*["relu"] * 9)))
    assert shown[0].startswith("✘ a0 rejects it")
    places = [line.strip().split()[0] for line in shown if line.strip().startswith("chain.py:")]
    assert places == [f"chain.py:{line}" for line in range(1, 6)]
    assert any("other line" in line for line in shown)
    assert any(" → " in line for line in shown)


def test_what_is_only_slow_is_said_of_an_accelerator_that_accepts() -> None:
    text = "\n".join(lines(checked(SLOW)))
    assert text.startswith("✔ a0 takes it as it is") and "· rank" in text


@pytest.mark.parametrize("recording", ["attention", "mlp_train", "resnet"])
def test_the_table_fits_100_columns(recording: str) -> None:
    path = "/a/very/long/way/to/the/folder/of/an/accelerator/of/somebody/else.toml"
    found = check(recorded(recording), "aten", [*presets()[0], rules(path, PADS + NO_MATMUL + FLOAT16 + SLOW)])
    table = [line for line in lines(found, 100) if line.endswith(" %") or re.search(r" %  +\d+$", line)]
    assert max(map(len, table)) <= 100
    assert any(re.match("✘ .*….*else.toml ", line) for line in table)
