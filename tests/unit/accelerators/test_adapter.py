"""What may an adapter say, and what is made of it? Without torch."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import idbg
from idbg import plugins
from idbg.accelerators import adapter, registry
from idbg.accelerators.adapter import AcceleratorAdapter, Capabilities, CompilationResult, CompilationStatus
from idbg.accelerators.parse import parse, unparse
from idbg.accelerators.registry import for_backend, rules_for
from idbg.config.settings import default_accelerator
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.layout import Layout
from idbg.constraints.max_dim import MaxDim
from idbg.constraints.memory import Memory
from idbg.constraints.peak_memory import PeakMemory
from idbg.constraints.rank import Rank
from idbg.constraints.static_shapes import StaticShapes
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.errors import BadInput
from idbg.schema.programs import Target


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path that holds the package `others`, with the entry points that a test writes."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "others-1.0.dist-info").mkdir()
    (tmp_path / "others-1.0.dist-info" / "METADATA").write_text("Name: others\nVersion: 1.0\n")
    yield tmp_path
    for cached in (plugins.load, plugins.names):
        cached.cache_clear()
    sys.modules.pop("others", None)


def install(folder: Path, code: str, points: dict[str, dict[str, str]]) -> None:
    (folder / "others.py").write_text(code)
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = others:{held}\n" for name, held in entries.items())
        for group, entries in points.items()
    )
    (folder / "others-1.0.dist-info" / "entry_points.txt").write_text(text)
    for cached in (plugins.load, plugins.names):
        cached.cache_clear()


def test_28_a_result_runs_what_was_compiled_else_its_fallback_else_nothing() -> None:
    nothing, compiled, fallback = CompilationResult(), (lambda: 1), (lambda: 2)
    assert nothing.status is CompilationStatus.FAILED
    assert CompilationResult(compiled=compiled, fallback=fallback).callable is compiled
    assert CompilationResult(fallback=fallback).callable is fallback
    with pytest.raises(RuntimeError, match="no fallback"):
        nothing.callable  # noqa: B018
    with pytest.raises(RuntimeError, match="out of registers"):
        CompilationResult(message="out of registers").callable  # noqa: B018


def test_statuses_are_known_by_their_words() -> None:
    assert [str(status) for status in CompilationStatus] == ["success", "partial", "failed"]


def test_every_capability_becomes_a_rule_that_a_file_can_hold() -> None:
    able = Capabilities(
        dtypes=("f32",), ops=("mm", "add*"), denied_ops=("sort",), other_ops="fallback", max_bytes=1024,
        peak_bytes=4096, alignment=16, aligned_dims="last", contiguous=True, max_rank=4, max_dim=512,
        dynamic_shapes=False,
    )  # fmt: skip
    made = able.accelerator("npu", "a test's")
    assert made.rules[:-1] == (
        Dtype(allowed=("float32",)),
        UnsupportedOps(allow=("mm", "add*"), deny=("sort",), severity="fallback"),
        Memory(max_bytes=1024),
        PeakMemory(max_bytes=4096),
        Alignment(multiple=16, dims="last"),
        Layout(formats=("contiguous",)),
        Rank(max=4),
        MaxDim(max=512),
        StaticShapes(),
    )
    assert made.rules[-1].kind == "unknown"
    assert parse(unparse(made)) == made


def test_what_is_not_said_is_no_limit() -> None:
    assert Capabilities().accelerator("free").rules == ()


def test_rules_of_ones_own_come_after_and_need_a_name_of_their_own() -> None:
    own = Alignment(name="rows", multiple=64)
    assert Capabilities(alignment=8, rules=(own,)).accelerator("npu").rules[1] == own
    assert Capabilities(rules=[own]).accelerator("npu").rules[0] == own  # type: ignore[arg-type]
    with pytest.raises(BadInput, match='two rules of npu are named "alignment"'):
        Capabilities(alignment=8, rules=(Alignment(multiple=64),)).accelerator("npu")


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"alignment": 0}, "multiple is 0; it must be 1 or more", "1 allows"),
        ({"alignment": "8"}, "alignment is a string", "it must be a whole number"),
        ({"alignment": 8.0}, "alignment must be a whole number", "not 8.0"),
        ({"max_bytes": 10**400}, "max_bytes is too large", "at most"),
        ({"ops": "mm"}, "ops is a string", "it must be a list"),
        ({"denied_ops": [3]}, "denied_ops holds a whole number", "it must hold a string"),
        ({"dtypes": "float32"}, "dtypes is a string", "it must be a list"),
        ({"dtypes": ("f33",)}, 'there is no dtype "f33"', ""),
        ({"other_ops": "nope"}, 'other_ops is "nope"', "reject, fallback"),
        ({"dynamic_shapes": None}, "dynamic_shapes is None", "true or false"),
        ({"rules": None}, "rules must be a list of constraints", "Alignment"),
        ({"rules": ("x",)}, "rules must be a list of constraints", "Alignment"),
    ],
)
def test_a_capability_that_makes_no_sense_is_refused_by_name(given: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(BadInput) as raised:
        Capabilities(**given).accelerator("npu")
    assert raised.value.message.startswith(f"the capabilities of npu cannot be used: {message}")
    assert hint in raised.value.hint


def test_lists_are_as_good_as_tuples() -> None:
    listed = Capabilities(dtypes=["f32"], ops=["mm"], denied_ops=["sort"], alignment=4, aligned_dims=[0, "channels"])  # type: ignore[arg-type]
    paired = Capabilities(dtypes=("f32",), ops=("mm",), denied_ops=("sort",), alignment=4, aligned_dims=(0, "channels"))
    assert listed.accelerator("npu") == paired.accelerator("npu")
    assert hash(listed.accelerator("npu")), "rules are looked up by what they say"


def test_a_result_that_cannot_run_is_refused_where_it_is_made() -> None:
    with pytest.raises(TypeError, match="compiled is of type int, which cannot be called"):
        CompilationResult(compiled=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fallback is of type str"):
        CompilationResult(fallback="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="status is 'done'; it must be one of success, partial, failed"):
        CompilationResult(status="done")  # type: ignore[arg-type]


def test_a_callable_that_is_empty_still_runs() -> None:
    class Empty:
        def __len__(self) -> int:
            return 0

        def __call__(self) -> int:
            return 1

    assert CompilationResult(compiled=Empty(), fallback=print).callable() == 1


def test_an_adapter_must_compile() -> None:
    class Half(AcceleratorAdapter):
        pass

    with pytest.raises(TypeError, match="compile"):
        Half()  # type: ignore[abstract]


def test_every_way_of_being_no_backend_is_named(installed: Path) -> None:
    code = "import idbg\nclass Half(idbg.AcceleratorAdapter): pass\nclass Other: name = 'x'\nnumber = 3\n"
    code += "class Good(idbg.AcceleratorAdapter):\n    def compile(self, graph_module, inputs): ...\n"
    held = {"half": "Half", "other": "Other", "number": "number", "gone": "Gone", "good": "Good"}
    install(installed, code, {"idbg.backends": held})
    broken = adapter.broken()
    assert broken.keys() == {"half", "other", "number", "gone"}
    assert "does not implement compile" in broken["half"]
    assert "it has no checks" in broken["other"]
    assert "is of type int, not a class" in broken["number"]
    assert "Gone" in broken["gone"]


OWN_RULES = """
from idbg import Capabilities
NPU = Capabilities(alignment=16).accelerator("npu")
"""


def test_a_backend_brings_its_own_rules_and_takes_them_away_again(installed: Path) -> None:
    install(installed, OWN_RULES, {"idbg.backends": {"npu": "No"}, "idbg.accelerators": {"npu": "NPU", "bad": "idbg"}})
    assert default_accelerator("npu") == "npu"
    assert (default_accelerator("aot"), default_accelerator("mock")) == ("none", "mock")
    start = Target(backend="aot", rules=rules_for(Target())[0])
    npu = for_backend(start, "npu")
    assert (npu.backend, npu.accelerator, npu.rules) == ("npu", "npu", "")
    text, file = rules_for(npu)
    assert parse(text).rules[0] == Alignment(multiple=16) and file is None
    back = for_backend(msgspec.structs.replace(npu, rules=text), "mock")
    assert (back.accelerator, back.rules) == ("mock", "")


def test_rules_that_somebody_chose_or_edited_stay(installed: Path) -> None:
    install(installed, OWN_RULES, {"idbg.accelerators": {"npu": "NPU"}})
    edited = Target(backend="aot", rules="# mine\n" + rules_for(Target())[0])
    chosen = Target(backend="aot", accelerator="my.toml", rules="name = 'mine'")
    for target in (edited, chosen):
        assert for_backend(target, "npu") == msgspec.structs.replace(target, backend="npu")


def test_an_accelerator_of_others_that_is_none_says_what_it_is(installed: Path) -> None:
    install(installed, "number = 3", {"idbg.accelerators": {"npu": "number"}})
    with pytest.raises(idbg.IdbgError, match="holds a int, not a path or an Accelerator"):
        registry.find("npu")


def test_an_adapters_capabilities_are_read_without_torch() -> None:
    code = "import sys, idbg; idbg.AcceleratorAdapter, idbg.Capabilities(alignment=4).accelerator('x')\n"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
