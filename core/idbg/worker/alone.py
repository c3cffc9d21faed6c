"""How does a script run as with `python FILE`, and its compilers write as those of a run do?

By `python -P -m idbg.worker.alone FILE`. The process is killed when the worker is, and must leave nothing torn in
Inductor's cache either. The script imports torch itself, when it has set what it likes; only then is anything of ours
put into it.
"""

import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

BUILDS = "torch._inductor.codecache"


class _WhenImported(MetaPathFinder):
    """Brings `install` in as soon as torch has what builds kernels."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != BUILDS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None and spec.loader is not None
        run = spec.loader.exec_module

        def run_and_install(module: ModuleType) -> None:
            run(module)
            from idbg.engine import compat_builds

            compat_builds.install()

        spec.loader.exec_module = run_and_install  # type: ignore[method-assign]
        return spec


def main() -> None:
    script = sys.argv[1]
    sys.meta_path.insert(0, _WhenImported())
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
