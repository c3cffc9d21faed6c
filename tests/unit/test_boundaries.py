"""Who imports whom, as a process finds it: no torch outside the engine, no textual in the library."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.harness.terminal import Terminal

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "textual", "numpy", "safetensors", "jinja2", "plotext")


# a table of the map -> the folder whose rooms it names
TABLES = {
    "| room |": "core/idbg",
    "| room of `idbg/engine/` |": "core/idbg/engine",
    "| room of `idbg_tui/` |": "idbg_tui",
}


@pytest.mark.parametrize("head", TABLES)
def test_the_map_names_every_room_and_nothing_that_is_not_there(head: str) -> None:
    folder = ROOT / TABLES[head]
    text = (ROOT / "core" / "README.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:] for row in text[text.index(head) :].partition("\n\n")[0].splitlines()[2:]]
    named = [name.removeprefix("idbg/").rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    there = {path.name for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert sorted(named) == sorted(there - {"__init__.py", "__main__.py"})
    for row in rows:
        rooms = [folder / name.removeprefix("idbg/") for name in re.findall(r"`([^`]+)`", row[0])]
        inside = {path.stem for room in rooms for path in [room, *room.rglob("*")]}
        assert {name.rstrip("/") for name in re.findall(r"`([a-z_0-9]+/?)`", row[1])} <= inside, row[0]


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh process has after running this."""
    ask = (
        f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint('|', *{{m.split('.')[0] for m in sys.modules}})"
    )
    result = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}/core:{ROOT}"}
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.rpartition("|")[2].split())


@pytest.mark.parametrize(
    "code",
    [
        "import idbg; idbg.Session, idbg.Accelerator, idbg.IdbgError, idbg.ConstraintViolation, idbg.run_program",
        "import idbg.session.session, idbg.session.store, idbg.config.settings, idbg.api, idbg.config.arguments",
        "import idbg.constraints, idbg.analysis.provenance, idbg.reports.json, idbg.reports.text",
        # a program sets what it likes before it imports torch
        "import idbg.worker.main, idbg.engine.program.main_file, idbg.engine.minify.forks.client",
        "from idbg.cli import main; main(['--help'])",
        "from idbg.cli import main; main(['run', '--help'])",
        "from idbg.cli import main; main(['info'])",
        "from idbg_tui.__main__ import main; main(['--help'])",
        "from idbg_tui.__main__ import main; main([])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    assert loaded(code).isdisjoint(HEAVY)


def names_of_torch(text: str, *, types: bool) -> list[str]:
    """The private names of torch that a module imports or spells. `types`: also those of its types alone."""
    tree, found = ast.parse(text), list[str]()
    blocks = [each for each in ast.walk(tree) if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test)]
    skipped = {id(node) for block in blocks for each in block.body for node in ast.walk(each) if not types}
    for node in ast.walk(tree):
        match node:
            case _ if id(node) in skipped:
                pass
            case ast.Attribute():
                found.append(ast.unparse(node))
            case ast.Import(names=names):
                found += [each.name for each in names]
            case ast.ImportFrom(module=str(module), names=names):
                found += [f"{module}.{each.name}" for each in names]
    private = re.compile(r"torch\.(?!ops\.)(\w+\.)*_[A-Za-z]|idbg\.engine\.compat\.names\.(internals|find)$")
    return [name for name in found if private.match(name)]


def test_private_names_of_torch_are_in_one_room_and_there_behind_one_door() -> None:
    assert names_of_torch("from torch.utils import _pytree", types=True) == ["torch.utils._pytree"]
    assert names_of_torch("import torch._dynamo\ntorch._C.f", types=True) == ["torch._dynamo", "torch._C.f", "torch._C"]
    found = []
    for path in (ROOT / "core").rglob("*.py"):
        is_compat = "engine/compat" in path.as_posix()
        names = names_of_torch(path.read_text(encoding="utf-8"), types=not is_compat)
        found += [f"{path}: {name}" for name in names if not (is_compat and name.startswith("idbg."))]
    assert found == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports in functions and for types alone count too. `idbg` is left out: its names lead everywhere."""
    grimp = pytest.importorskip("grimp", reason="comes with import-linter")
    graph = grimp.build_graph("idbg", "idbg_tui", cache_dir=None)
    imported = {each: graph.find_modules_directly_imported_by(each) - {"idbg"} for each in graph.modules - {"idbg"}}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as circle:
        pytest.fail(f"each imports the one before it: {', '.join(circle.args[1])}")


def test_import_idbg_loads_nothing_of_it() -> None:
    assert loaded("import idbg; assert 'run_program' in dir(idbg)").isdisjoint({*HEAVY, "msgspec"})


def test_the_screen_has_no_torch() -> None:
    found = loaded("import idbg_tui.app")
    assert "textual" in found
    assert "torch" not in found


FIRST_FRAME = {
    "idbg": "plugins whole_file",
    "idbg.cli": "color exits manual parsing screen sessions streams verbs",
    "idbg.config": "arguments command_line environment examples launching options places settings settings_file",
    "idbg.format": "glyphs plain_text spelling",
    "idbg.schema": "errors faults graphs programs strict_json violations",
    "idbg.session": "files",
    "idbg_tui": "__main__ app keymap layout pane_sizes remembered theming",
    "idbg_tui.controllers": "routes",
    "idbg_tui.panes": "base loading",
    "idbg_tui.terminal": "changed_output drawing immediate_screen input_bytes runner watchdog",
    "idbg_tui.widgets": "bars clicks control_characters notices plain_signs titled",
}
"""What the first frame of the screen is painted from, beside Textual: the user waits for each of these modules."""


def test_the_first_frame_loads_these_modules_and_no_others(tmp_path: Path) -> None:
    ask = (
        "import pathlib, sys\n"
        "from idbg_tui.__main__ import main\n"
        "from idbg_tui.app import IdbgApp\n"
        "async def begin(app):\n"
        "    pathlib.Path('loaded').write_text(' '.join(sys.modules))\n"
        "    app.exit()\n"
        "IdbgApp._begin = begin\n"
        f"main([{str(ROOT / 'examples' / 'mlp_train.py')!r}, '--output', 'kept'])\n"
    )
    environ = {"PYTHONPATH": f"{ROOT}/core:{ROOT}", "IDBG_SETTINGS": str(tmp_path / "settings.toml")}
    (tmp_path / "settings.toml").touch()
    terminal = Terminal([sys.executable, "-c", ask], cwd=tmp_path, env=environ)
    terminal.wait()
    terminal.close()
    modules = (tmp_path / "loaded").read_text().split()
    ours = {name for name in modules if name.partition(".")[0] in ("idbg", "idbg_tui")}
    listed = {f"{room}.{name}" for room, names in FIRST_FRAME.items() for name in names.split()} | {*FIRST_FRAME}
    assert sorted(ours - listed) == [], "new before the first frame: import it where it is used"
    assert sorted(listed - ours) == [], "no longer loaded before the first frame: take it off the list"
    assert {name.partition(".")[0] for name in modules}.isdisjoint({*HEAVY} - {"textual"})


def test_a_name_that_idbg_does_not_have_is_an_attribute_error() -> None:
    import idbg

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        idbg.nonsense  # noqa: B018
