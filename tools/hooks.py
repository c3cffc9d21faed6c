"""Lay out the table of hooks by feature, and check it against the installed torch.

docs/versions.md has the table through `python -m tools.pages`. `python -m tools.hooks` lists the functions that the
installed torch lacks, against the versions that the table names.
"""

import sys

from idbg.engine.compat.hook_table import FEATURES, HOOKS, TESTED, Hook

Row = tuple[str, ...]
HEAD: Row = ("what a run records", "functions of torch that it needs", *TESTED)


def rows() -> list[Row]:
    """A row for each feature: what it records, its functions, and whether each version of torch has them all."""
    found = []
    for feature, records in FEATURES.items():
        hooks = [hook for hook in HOOKS if feature in hook.features]
        paths: dict[str, list[str]] = {}
        for hook in hooks:
            paths.setdefault(hook.module, []).append(f"`{hook.path}`")
        functions = "; ".join(f"{', '.join(names)} of `{module}`" for module, names in paths.items())
        has = ("yes" if all(version in hook.versions for hook in hooks) else "no" for version in TESTED)
        found.append((records, functions or "none: it reads torch's trace", *has))
    return found


def main() -> int:
    """Print each function whose presence differs from the table; 1 if there is one."""
    import torch

    from idbg.engine.compat import hooks

    version = ".".join(torch.__version__.split(".")[:2])

    def is_there(hook: Hook) -> bool:
        try:
            hooks.owner_of(hook)
        except (AttributeError, ImportError):
            return False
        return True

    wrong = [hook for hook in HOOKS if is_there(hook) != (version in hook.versions)]
    print(f"torch {torch.__version__} from {torch.__file__}: {len(HOOKS)} functions, {len(wrong)} not as in the table")
    for hook in wrong:
        print(f"  {hook.name}: {'there' if is_there(hook) else 'missing'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
