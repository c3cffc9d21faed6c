"""How does an error look as a picture in a file? With matplotlib, which the extra `plots` brings."""

from pathlib import Path

from idbg.schema.diff import LARGEST, ErrorMap
from idbg.schema.errors import BadInput, OutputError


def save_error_map(error_map: ErrorMap, path: Path) -> None:
    """Write the map as a PNG, on a logarithmic scale.

    Raises BadInput where nothing differs or without matplotlib, OutputError if the file cannot be written.
    """
    if not any(any(row) for row in error_map.cells):
        raise BadInput("every element of this slice is equal: there is no error to draw", hint="take another slice")
    try:
        from matplotlib.colors import LogNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("pictures need matplotlib", hint='install it: pip install "idbg[plots]"') from error
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot()
    cells = [[cell if 0 < cell < LARGEST else float("nan") for cell in row] for row in error_map.cells]
    known = [cell for row in cells for cell in row if cell == cell]
    rows, columns = error_map.shape
    norm = LogNorm(min(known), max(known)) if known and min(known) < max(known) else None
    picture = axes.imshow(cells, norm=norm, cmap="inferno", aspect="auto", extent=(0, columns, rows, 0))
    axes.set_title(f"{error_map.name}[{''.join(f'{at}, ' for at in error_map.index)}:, :]: largest |test - reference|")
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    axes.set_facecolor("#808080")  # equal, or not finite
    figure.colorbar(picture)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}", hint="make room, or give another folder with --output"
        ) from error
