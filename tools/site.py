"""How does docs/ become a site? `python -m tools.site [FOLDER]` builds it, and fails where a link leads nowhere.

docs/ is written to be read in the repository, where its pages point at files beside it. So the site is made of a copy,
in which the repository's own pages (HOMES) have a place, and links to them lead there. Nothing is fetched, neither now
nor by whoever reads it. `--serve` shows it on this machine.
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
"""Pages of the repository that are outside of docs/ -> their place in the site."""
FILES = "files"
"""Where in the site other files of the repository stand, to which a page points."""
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")


def assemble(folder: Path) -> None:
    """Put all that the site is made of into `folder`: its settings, and the pages with their links turned."""
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    for source, home in HOMES.items():
        (folder / "docs" / home).write_text((ROOT / source).read_text(encoding="utf-8"), encoding="utf-8")
    origins = {folder / "docs" / home: ROOT / source for source, home in HOMES.items()}
    for page in sorted((folder / "docs").rglob("*.md")):
        origin = origins.get(page, DOCS / page.relative_to(folder / "docs"))
        text = page.read_text(encoding="utf-8")
        page.write_text(_turned(text, origin, page, folder / "docs"), encoding="utf-8")


def _turned(text: str, origin: Path, page: Path, docs: Path) -> str:
    """The page's text, with each link to a file of the repository leading to where that is in the site."""

    def turned(found: re.Match[str]) -> str:
        target = (origin.parent / found[2]).resolve()
        if target.is_dir():
            target /= "README.md"
        if not (target.is_file() and target.is_relative_to(ROOT)):
            return found[0]  # zensical tells of it, at its line
        return found[1] + os.path.relpath(_place(target, docs), page.parent)

    return _LINK.sub(turned, text)


def _place(target: Path, docs: Path) -> Path:
    """Where a file of the repository is in the site; put there where it is not a page."""
    name = str(target.relative_to(ROOT))
    if name in HOMES:
        return docs / HOMES[name]
    if target.is_relative_to(DOCS):
        return docs / target.relative_to(DOCS)
    if target == ROOT / "README.md":
        return docs / "index.md"
    # a page of Markdown that is no page of the site would be made one
    copy = docs / FILES / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(target, copy)
    return copy


def main(argv: Sequence[str] | None = None) -> int:
    """Build the site (or serve it) and give zensical's exit status."""
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
