"""Are the documentation's pictures those of the program: taken by the script, all there, small, and shown?"""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pyte
import pytest

from tools import pictures
from tools.pictures import PICTURES, PICTURES_FOLDER, Picture
from tools.screen_svg import picture

ROOT = Path(__file__).parents[2]
MOST = 150_000  # bytes


def drawn(text: str, columns: int = 20, rows: int = 2) -> str:
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(text)
    return picture(screen)


def test_every_picture_is_there_small_and_on_a_page() -> None:
    there = {path.stem: path for path in PICTURES_FOLDER.iterdir()}
    assert there.keys() == PICTURES.keys()
    assert {name: size for name, path in there.items() if (size := path.stat().st_size) > MOST} == {}
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert [name for name in there if f"pictures/{name}.svg" not in pages] == []


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_stands_alone(name: str) -> None:
    text = (PICTURES_FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    tags = {node.tag.rpartition("}")[2] for node in ET.fromstring(text).iter()}
    assert tags <= {"svg", "style", "rect", "text", "path"} and "text" in tags
    assert re.findall(r"(?:href|src|url\()[^>]*", text) == [] and "/work/" not in text


def test_text_is_text_and_looks_as_the_terminal_has_it() -> None:
    root = ET.fromstring(drawn("a<b>&c \x1b[1;31mred\x1b[0m \x1b[7mback\x1b[0m"))
    texts = [node for node in root if node.tag.endswith("text")]
    assert [node.text for node in texts] == ["a<b>&c", "red", "back"]
    assert texts[1].get("class") == "b" and texts[1].get("fill") == "#cd3131"
    assert [node.get("textLength") for node in texts] == ["50.4", "25.2", "33.6"]
    assert texts[2].get("fill") == "#1e1e1e"  # reversed: the paper's colour on the ink's


def test_frames_and_bars_are_shapes() -> None:
    root = ET.fromstring(drawn("╭───╮ ▁█ ░"))
    assert [node.text for node in root if node.tag.endswith("text")] == []
    assert len([node for node in root if node.tag.endswith("path")]) == 3  # two corners, and one line for three signs
    heights = [node.get("height") for node in root if node.tag.endswith("rect")][1:]  # but the paper's
    assert heights == ["2.25", "18", "18"]


def test_a_picture_is_taken_of_the_program_itself(tmp_path: Path) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes((ROOT / "tests" / "recordings" / "mlp_train.jsonl").read_bytes())
    svg = pictures.take(Picture("", ("7", "z"), "7 Log"), folder)
    words = " ".join(node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("text"))
    assert "mlp_train.py" in words and "Log" in words and "saved" in words
