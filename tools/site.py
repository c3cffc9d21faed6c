"""Build the site of docs/: `python -m tools.site [FOLDER]`. A broken link is an error.

Pages of docs/ link to other files of the repository. The site is built from a copy in which those pages (HOMES) have a
place, and links point there. Neither the build nor the site uses the network. `--serve` shows it on this machine.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOMES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "core/README.md": "map.md",
    "examples/README.md": "examples.md",
    "examples/adapter_package/README.md": "adapter-package.md",
}
"""Pages outside of docs/ -> their place in the site."""
FILES = "files"
"""The site's folder of other linked files."""
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def assemble(folder: Path) -> None:
    """Write the sources of the site to `folder`: its settings, and the pages with adapted links."""
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    for source, home in HOMES.items():
        (folder / "docs" / home).write_text((ROOT / source).read_text(encoding="utf-8"), encoding="utf-8")
    origins = {folder / "docs" / home: ROOT / source for source, home in HOMES.items()}
    for page in sorted((folder / "docs").rglob("*.md")):
        origin = origins.get(page, DOCS / page.relative_to(folder / "docs"))
        text = page.read_text(encoding="utf-8")
        page.write_text(_with_links(text, origin, page, folder / "docs"), encoding="utf-8")


def _with_links(text: str, origin: Path, page: Path, docs: Path) -> str:
    """The page's text; links to files of the repository point to their place in the site."""

    def adapt(found: re.Match[str]) -> str:
        target = (origin.parent / found[2]).resolve()
        if target.is_dir():
            target /= "README.md"
        if not (target.is_file() and target.is_relative_to(ROOT)):
            return found[0]  # zensical reports it with its line
        return found[1] + os.path.relpath(_place(target, docs), page.parent)

    return _LINK.sub(adapt, text)


def _place(target: Path, docs: Path) -> Path:
    """The place of a file in the site. A file that is not a page is copied there."""
    name = str(target.relative_to(ROOT))
    if name in HOMES:
        return docs / HOMES[name]
    if target.is_relative_to(DOCS):
        return docs / target.relative_to(DOCS)
    if target == ROOT / "README.md":
        return docs / "index.md"
    # its own folder: a Markdown file in docs/ would become a page
    copy = docs / FILES / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(target, copy)
    return copy


def main(argv: Sequence[str] | None = None) -> int:
    """Build or serve the site. Returns zensical's exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the documentation's site.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site", help="where it goes (site)")
    parser.add_argument("--serve", action="store_true", help="show it on this machine instead")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        assemble(Path(made))
        what = ["serve"] if args.serve else ["build", "--clean", "--strict"]
        status = subprocess.run([sys.executable, "-m", "zensical", *what], cwd=made, check=False).returncode
        if status == 0 and not args.serve:
            shutil.rmtree(args.folder, ignore_errors=True)
            shutil.copytree(Path(made, "site"), args.folder)
            print(f"wrote {args.folder}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
