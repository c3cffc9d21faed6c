"""What a test costs is read from its file, which lies in the folder of that cost."""

from pathlib import Path

import pytest

from tests.harness.costs import ROOT, cost_of


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("from idbg.analysis import flops\n", "unit"),
        ("from tests.harness.recorded import app_of\n", "screen"),
        ("def test_it():\n    import torch.nn\n", "compile"),
        ("from idbg.engine import capture\n", "compile"),
        ("from idbg.worker import (\n    client,\n    jobs,\n)\n", "compile"),
        ("from idbg.worker import client, jobs\n", "compile"),
        ("from tests.harness import fresh_caches\n", "compile"),  # which imports torch
        ("import pytest\n\npytestmark = [pytest.mark.slow]\n", "matrix"),
        ('text = """\nimport torch\n"""\n', "unit"),
    ],
)
def test_a_file_costs_what_it_imports(tmp_path: Path, text: str, cost: str) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(text)
    assert cost_of(file) == cost


def test_each_file_lies_in_the_folder_of_its_cost() -> None:
    folders = ("unit", "screen", "compile", "matrix")
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "harness" not in path.parts]
    wrong = {str(path): cost for path in files if (cost := cost_of(path)) != path.relative_to(ROOT / "tests").parts[0]}
    assert len(files) > 300 and not wrong, f"move each to tests/COST, one of {folders}"
