"""Read the user's git repository, and check out its commits in a separate worktree.

The user's files, index and HEAD do not change. The worktree is removed with all that git records about it.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from idbg.schema.bisection import Commit
from idbg.schema.errors import BadInput, IdbgError

# no hooks and no housekeeping for a temporary worktree
_QUIET = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "advice.detachedHead=false",
)
_PREFIX = "idbg-commits-"


class Git:
    """The repository around a folder. Raises BadInput where there is none, or no git."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        answer = self.query("rev-parse", "--show-toplevel")
        if answer is None or not answer.strip():
            raise BadInput(
                f"{folder} is in no git checkout", hint="commits can be searched where the program's are kept"
            )
        self.root = Path(answer.strip())

    def commit(self, revision: str) -> str:
        """The full hash of a revision's commit. Raises BadInput if there is none."""
        answer = self.query("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if answer is None:
            raise BadInput(f"git knows no revision {revision!r} in {self.root}", hint="git log --oneline names them")
        return answer.strip()

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether the first commit is an ancestor of the second, or the same."""
        return self.query("merge-base", "--is-ancestor", one, other) is not None

    def between(self, bad: str, good: Sequence[str], *, first_parent: bool) -> list[str]:
        """The commits that may be the first bad one, `bad` included; the best to test comes first."""
        way = ("--first-parent",) if first_parent else ()
        answer = self.run("rev-list", "--bisect-all", *way, bad, *(f"^{each}" for each in good))
        return [line.split()[0] for line in answer.splitlines() if line.strip()]

    def in_order(self, commits: Sequence[str], good: str) -> list[str]:
        """The same, oldest first."""
        answer = self.run("rev-list", "--topo-order", "--reverse", *commits, f"^{good}")
        return [line for line in answer.split() if line in set(commits)]

    def describe(self, sha: str) -> Commit:
        """Author, date, subject and diff stat of a commit."""
        form = "%H%x00%an <%ae>%x00%aI%x00%s%x00"
        answer = self.run("show", "--no-color", "--stat=100", "-m", "--first-parent", f"--format={form}", sha)
        name, author, date, subject, stat = answer.split("\0", 4)
        return Commit(name, author, date, subject, stat.strip("\n"))

    def short(self, sha: str) -> str:
        """The abbreviated hash and the subject."""
        return self.run("show", "--no-patch", "--no-color", "--format=%h %s", sha).strip()

    def has(self, sha: str, path: str) -> bool:
        """Whether the commit has this file; the path is from the repository's root."""
        return self.query("cat-file", "-e", f"{sha}:{path}") is not None

    def run(self, *arguments: str, folder: Path | None = None) -> str:
        """Git's output. Raises IdbgError with git's message if it fails."""
        done = self._done(arguments, folder)
        if done.returncode != 0:
            message = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise IdbgError(
                f"git {arguments[0]} failed: {message[-1] if message else done.returncode}", hint=f"in {self.root}"
            )
        return done.stdout

    def query(self, *arguments: str) -> str | None:
        """Git's output; None if it fails."""
        done = self._done(arguments, None)
        return done.stdout if done.returncode == 0 else None

    def _done(self, arguments: Sequence[str], folder: Path | None) -> "subprocess.CompletedProcess[str]":
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
        try:
            return subprocess.run(
                ("git", "-C", str(folder or self.root), *_QUIET, *arguments),
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                env=environ,
                start_new_session=True,  # Ctrl+C is for us: we tidy up
                check=False,
            )
        except OSError as error:
            raise BadInput(f"git cannot be run: {error}", hint="install git, or search without commits") from error


@dataclass
class Worktree:
    """A folder beside the user's checkout in which one commit after another is checked out."""

    git: Git
    folder: Path

    def at(self, sha: str) -> None:
        """Check out this commit, and remove all files that earlier tries left. Raises IdbgError."""
        self.git.run("checkout", "--quiet", "--force", "--detach", sha, folder=self.folder)
        self.git.run("clean", "-ffdxq", folder=self.folder)


@contextmanager
def worktree(git: Git, sha: str) -> Iterator[Worktree]:
    """A temporary worktree at this commit. Raises IdbgError."""
    _tidy(git)
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    folder = made / git.root.name
    try:
        git.run("worktree", "add", "--quiet", "--detach", str(folder), sha)
        yield Worktree(git, folder)
    finally:
        git.query("worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(made, ignore_errors=True)
        git.query("worktree", "prune")


def _tidy(git: Git) -> None:
    """Remove the worktrees of searches whose process was killed."""
    for line in (git.query("worktree", "list", "--porcelain") or "").splitlines():
        found = re.match(rf"worktree (.*/{_PREFIX}(\d+)-[^/]*)/", line)
        if found and not _is_alive(int(found[2])):
            git.query("worktree", "remove", "--force", "--force", line.removeprefix("worktree "))
            shutil.rmtree(found[1], ignore_errors=True)


def _is_alive(process: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True
