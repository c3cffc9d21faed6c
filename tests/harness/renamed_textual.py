"""Run the screen over a Textual in which names are spelled otherwise: python renamed_textual.py NAMES ARGUMENTS."""

import re
import sys
from importlib.machinery import PathFinder, SourceFileLoader

PRIVATE = re.compile("|".join(rf"\b{name}\b" for name in sys.argv.pop(1).split(",")))


class Renaming(SourceFileLoader):
    def get_code(self, fullname: str):  # code objects have no public type
        source = self.get_source(fullname)
        assert source is not None
        return compile(PRIVATE.sub(lambda found: f"{found[0]}_of_another_version", source), self.path, "exec")


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "textual":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Renaming(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, Finder())
if __name__ == "__main__":
    from idbg_tui.__main__ import main

    raise SystemExit(main())
