"""A small git repository with a merge, a commit that cannot run, and a checkout that is dirty."""

import os
import subprocess
from pathlib import Path

OWN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class GitHistory:
    """A repository in `folder`, whose program is p.py. `names` are its commits by their subjects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, str] = {}
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments), cwd=self.folder, capture_output=True, text=True, check=True, env={**os.environ, **OWN}
        )
        return done.stdout.strip()

    def commit(self, subject: str, program: str | None = None, **files: str) -> str:
        """A commit of p.py (as it is, where no text is given) and of these files (`a_txt`: a.txt)."""
        if program is not None:
            (self.folder / "p.py").write_text(program)
        for name, text in files.items():
            (self.folder / name.replace("_", ".")).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        self.names[subject] = self.git("rev-parse", "HEAD")
        return self.names[subject]

    def state(self) -> tuple[str, ...]:
        """All of it that a search must leave as it is: HEAD, index, files, worktrees, branches, what git keeps."""
        kept = sorted(str(path) for path in (self.folder / ".git").iterdir())
        files = {path.name: path.read_text() for path in sorted(self.folder.glob("*.*")) if path.is_file()}
        index = (self.folder / ".git" / "index").read_bytes()
        told = [self.git("rev-parse", "HEAD"), self.git("worktree", "list"), self.git("for-each-ref")]
        return (*told, self.git("symbolic-ref", "HEAD"), str(files), str(index), str(kept))


def eight_commits(folder: Path, good: str = "", bad: str = "raise SystemExit(3)\n") -> GitHistory:
    """one, two, (side), three: which cannot run, merge, four, five: which breaks it, six; then a dirty checkout."""
    history = GitHistory(folder)
    history.commit("one", f"# 1\n{good}")
    history.commit("two", f"# 2\n{good}")
    history.git("checkout", "-q", "-b", "side")
    history.commit("side", a_txt="side\n")
    history.git("checkout", "-q", "main")
    history.commit("three", "raise SystemExit(125)\n")
    history.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    history.names["merge"] = history.git("rev-parse", "HEAD")
    history.commit("four", f"# 4\n{good}")
    history.commit("five", f"# 5\n{bad}", b_txt="five\n")
    history.commit("six", f"# 6\n{bad}")
    (history.folder / "p.py").write_text("not python at all (\n")
    (history.folder / "untracked.txt").write_text("mine\n")
    (history.folder / "staged.txt").write_text("mine too\n")
    history.git("add", "staged.txt")
    return history
