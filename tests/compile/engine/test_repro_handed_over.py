"""A repro without the program's values, in one file, or as a report; and tensors that are written without a copy."""

import math
import zipfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from idbg.engine.repro.draft import Differs, Draft, Heading
from idbg.engine.repro.files import save
from idbg.engine.repro.recipes import WITHOUT_DATA, recipe, without_data
from idbg.engine.repro.script import render
from idbg.engine.repro.values import kept_as, stored
from idbg.reports.bundle import packed, report_of
from idbg.schema.repros import Minified, Signature
from tests.harness.repro_bench import run

SECRET = 123.456789


def made(text: str) -> torch.Tensor:
    torch.manual_seed(0)
    value = eval(text, {"torch": torch})
    assert isinstance(value, torch.Tensor)
    return value


def test_a_recipe_has_the_statistics_and_none_of_the_values() -> None:
    values = torch.randn(1000) * 3 + 7
    values[::4], values[5], values[9] = 0, math.nan, SECRET
    text = recipe(values, (10, 100))
    again = made(text)
    assert (again.shape, again.dtype) == ((10, 100), torch.float32)
    held = again[(again != 0) & ~again.isnan()]
    assert abs(held.mean().item() - 7) < 1.5
    assert abs((again == 0).float().mean().item() - 0.25) < 0.1
    assert "123.4" not in text


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.uint8, torch.bool, torch.float16, torch.complex64, torch.bfloat16]
)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (40, 2)])
def test_every_dtype_and_shape_is_made_again(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    values = (torch.rand(shape) * 9).to(dtype)
    again = made(recipe(values.reshape(-1), shape))
    assert (again.shape, again.dtype) == (shape, dtype)
    if dtype == torch.int64 and values.numel() > 8:
        assert (int(again.min()) >= int(values.min()), int(again.max()) <= int(values.max())) == (True, True)


def test_a_single_number_is_told_by_its_magnitude_alone() -> None:
    for value in (torch.tensor([SECRET]), torch.tensor([SECRET] * 5), torch.tensor([123456])):
        assert "123" not in recipe(value, tuple(value.shape))


def test_a_draft_without_data_stores_nothing_and_says_so(tmp_path: Path) -> None:
    tensors, arguments = {}, []
    for name, value in (("x", torch.randn(4, 6)), ("y", torch.randn(4, 6).t()), ("z", torch.randn(6).expand(2, 6))):
        tensors[name], argument = stored(name, value)
        arguments.append(argument)
    arguments[0] = replace(arguments[0], requires_grad=True)
    draft = Draft(Differs(), tuple(arguments), ("out = x @ y @ torch.ones(4, 6) @ z.t()",), "out", 'backend="eager"')
    kept = without_data(draft, tensors)
    assert not any(argument.is_stored for argument in kept.arguments)
    script = tmp_path / "repro.py"
    script.write_text(render(kept, Heading("It is right", "torch")))
    status, out = run(script)
    assert status == 0, out
    assert WITHOUT_DATA[:40] in script.read_text()
    assert ".as_strided((2, 6), (0, 1))" in script.read_text()


def test_tensors_are_written_as_they_lie_also_where_they_share_memory(tmp_path: Path) -> None:
    base = torch.randn(1 << 20)
    parts = {"all": base, "half": base[: 1 << 19], "every": base[::2], "none": torch.empty(0), "one": torch.tensor(3)}
    parts |= {str(dtype): torch.arange(4).to(dtype) for dtype in (torch.bool, torch.bfloat16, torch.float8_e5m2)}
    save(parts, tmp_path / "tensors.safetensors")
    again = load_file(tmp_path / "tensors.safetensors")
    assert again.keys() == parts.keys()
    assert all(torch.equal(again[name].double(), value.double()) for name, value in parts.items())


def test_what_is_stored_of_a_weight_is_no_copy_of_it() -> None:
    weight = torch.nn.Parameter(torch.randn(64, 64))
    for value in (weight, weight.t(), weight[2:5]):
        flat, _ = stored("weight", value)
        assert flat.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
    assert stored("part", weight[2:5])[0].numel() == 3 * 64, "no more of it than is asked for"
    assert all(kept_as(dtype) in (dtype, torch.float32) for dtype in (torch.float32, torch.complex64))


@pytest.fixture
def minified(tmp_path: Path) -> Minified:
    folder = tmp_path / "minified"
    folder.mkdir()
    path = folder / "repro.py"
    path.write_text('"""It fails: ```so```\n"""\n\nimport idbg\n\nprint("REPRODUCED")\n')
    save({"x": torch.ones(3)}, folder / "tensors.safetensors")
    printed = "REPRODUCED KeyError what it says"
    signature = Signature("compile", type="KeyError", message="what it says")
    return Minified(
        signature, str(path), True, 1, printed, 2, 40, guarantee="No node can be left out.", failed=3, tried=4
    )


def test_a_zip_holds_all_and_is_the_same_twice(tmp_path: Path, minified: Minified) -> None:
    path = packed(Path(minified.path), "torch 2.14")
    first = path.read_bytes()
    assert packed(Path(minified.path), "torch 2.14").read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "out")
    folder = tmp_path / "out" / "minified"
    assert {each.name for each in folder.iterdir()} == {"repro.py", "tensors.safetensors", "README.md"}
    assert (folder / "repro.py").read_bytes() == Path(minified.path).read_bytes()
    assert load_file(folder / "tensors.safetensors")["x"].tolist() == [1, 1, 1]
    readme = (folder / "README.md").read_text()
    assert "torch 2.14, and needs torch and idbg, safetensors" in readme


def test_a_report_has_the_sections_of_pytorchs_form(minified: Minified) -> None:
    text = report_of(minified, "PyTorch version: 2.14")
    sections = [line for line in text.splitlines() if line.startswith("### ")]
    assert sections == ["### 🐛 Describe the bug", "### Minified repro", "### Error logs", "### Versions"]
    assert "from 40 nodes to 2. No node can be left out." in text
    assert "fails so in a fresh process (exit status 1)" in text
    assert "3 of 4 tries" in text
    assert "````python\n" in text, "the script's own quotes end no block"
    assert "REPRODUCED KeyError what it says" in text
    with pytest.raises(ValueError, match="nothing failed"):
        report_of(Minified(Signature("none")), "")


def test_a_report_shows_the_error_that_warnings_follow(minified: Minified) -> None:
    told = "error: what it says\n" + "warning\n" * 2000
    text = report_of(msgspec.structs.replace(minified, printed=f"{told}{minified.printed}"), "")
    assert "error: what it says\nwarning\n" in text and "\n[...]\nREPRODUCED KeyError what it says\n" in text
    assert text.count("warning") < 500
    last = report_of(msgspec.structs.replace(minified, printed=told, signature=Signature("died", type="SIGSEGV")), "")
    assert "error:" not in last and last.count("warning") == 500, "of what names nothing, the end"
