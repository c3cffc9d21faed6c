"""Write pictures, and the numbers of charts, to files."""

import re
from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

from idbg.reports.drawings import of_bench, of_diff, style
from idbg.reports.drawings.svg import element, text
from idbg.schema.diff import ErrorMap
from idbg.schema.errors import BadInput, output_errors
from idbg.views import error_maps
from idbg.views.bench_charts import Chart, to_csv, to_json

_GROUND = "svg { background: white; color: black; }"
_HEAD, _MARGIN = 32.0, 12.0
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def write_chart(chart: Chart, folder: Path) -> Iterator[Path]:
    """Write the numbers as CSV and JSON, then the picture, and give each path when it is written. Raises
    OutputError.
    """
    for suffix, numbers in ((".csv", to_csv(chart)), (".json", to_json(chart))):
        yield _write(folder / f"bench-{chart.name}{suffix}", numbers)
    if (picture := of_bench.chart(chart)) is not None:
        yield write(picture, folder / f"bench-{chart.name}.svg", chart.title)


def write_error_map(error_map: ErrorMap, path: Path) -> None:
    """Write the map as a picture. Raises BadInput where nothing differs, OutputError if it cannot be written."""
    picture = of_diff.error_map(error_map)
    if picture is None:
        raise BadInput("every element of this slice is equal: there is no error to draw", hint="take another slice")
    write(picture, path, error_maps.title(error_map))


def write(picture: Markup, path: Path, title: str) -> Path:
    """Write a picture under its title as an SVG file that needs nothing else. Raises OutputError."""
    box = _BOX.search(picture)
    assert box is not None  # each of our pictures has one
    width, height = float(box[1]), float(box[2]) + _HEAD
    inside = Markup(f'<svg x="{_MARGIN}" y="{_HEAD}"') + picture.removeprefix("<svg")  # is Markup
    whole = element(
        "svg",
        element("style", Markup(f"{_GROUND}\n{style()}")),  # is ours
        text(_MARGIN, 18, title),
        Markup(inside),
        class_="idbg-chart",
        xmlns="http://www.w3.org/2000/svg",
        width=width + 2 * _MARGIN,
        height=height + _MARGIN,
    )
    return _write(path, whole)


def _write(path: Path, content: str) -> Path:
    with output_errors(f"cannot write {path}", "make room, or give another folder with --output"):
        path.write_text(content, encoding="utf-8")
    return path
