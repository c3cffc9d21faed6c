"""The pytest plugin. Every pytest loads it where idbg is installed, so it imports nothing heavy.

`--idbg` watches every test, the marker `idbg` the marked tests, and the fixture `idbg` what a test passes to it.
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from idbg.testing.backend_conformance import RowOf
    from idbg.testing.run_report import RunReport
    from idbg.testing.watcher import Watcher

WATCHER: pytest.StashKey["Watcher"] = pytest.StashKey()
WATCHED: pytest.StashKey[ExitStack] = pytest.StashKey()
RAISED: pytest.StashKey[BaseException] = pytest.StashKey()
REPORT: pytest.StashKey["RunReport"] = pytest.StashKey()
FROM_CONTROLLER = "idbg_output"
_TAKES = ("fail_on", "accelerator", "must_compile")
_MARKER = (
    "idbg(fail_on=[...], accelerator=..., must_compile=True): fail the test if what it compiles comes to one of these: "
    "failure, violation, reject, fallback, pad, break, recompile"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags, all of which begin with --idbg."""
    group = parser.getgroup("idbg", "torch.compile, watched by idbg")
    group.addoption("--idbg", action="store_true", help="capture what the tests compile: a session each, and a report")
    group.addoption("--idbg-accelerator", metavar="A", default="", help="ask its rules too: a preset or a TOML file")
    group.addoption(
        "--idbg-fail-on",
        metavar="KIND",
        action="append",
        default=[],
        help="with --idbg: fail the run if this happens (as `idbg run --fail-on`); repeat for more",
    )
    group.addoption("--idbg-baseline", metavar="KNOWN.json", help="with --idbg: what is known, and fails nothing")
    group.addoption("--idbg-update-baseline", action="store_true", help="write what is found now to that file")
    group.addoption("--idbg-output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and reject invalid flags before a test runs."""
    config.addinivalue_line("markers", _MARKER)
    if not config.getoption("idbg"):
        names = ("accelerator", "fail_on", "baseline", "update_baseline")
        if given := next((name for name in names if config.getoption(f"idbg_{name}")), ""):
            raise pytest.UsageError(f"--idbg-{given.replace('_', '-')} does nothing without --idbg")
        return
    if _is_worker(config) or config.option.collectonly:
        return
    from idbg.schema.errors import IdbgError
    from idbg.testing.run_report import RunReport

    try:
        report = RunReport.of(config, _output(config))
    except IdbgError as error:
        raise pytest.UsageError(error.in_one_line) from error
    config.stash[REPORT] = report
    config.pluginmanager.register(report, "idbg-report")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node: Any) -> None:
    """Send the output folder to a process that runs tests."""
    if REPORT in node.config.stash:
        node.workerinput[FROM_CONTROLLER] = str(node.config.stash[REPORT].folder)


@pytest.fixture
def idbg(request: pytest.FixtureRequest) -> "Watcher":
    """Watches what this test compiles: `with idbg.watched(...)`, `idbg.assert_accepts(...)`, and so on."""
    return _watcher(request.node)


@pytest.fixture(scope="module")
def idbg_conformance(tmp_path_factory: pytest.TempPathFactory) -> Iterator["RowOf"]:
    """Runs programs of the conformance kit: of the tests that `idbg.testing.conformance` makes."""
    from idbg.testing.backend_conformance import runners

    with runners(tmp_path_factory.mktemp("idbg-conformance")) as row:
        yield row


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """With --idbg, start to watch before the test's fixtures are set up."""
    if item.config.getoption("idbg"):
        stack = ExitStack()
        stack.enter_context(_watcher(item).captured(accelerator=item.config.getoption("idbg_accelerator")))
        item.stash[WATCHED] = stack
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Run the test; watch a marked one."""
    __tracebackhide__ = True
    marks = list(item.iter_markers("idbg"))
    if not marks:
        return (yield)
    from idbg.schema.errors import BadInput
    from idbg.testing.watcher import Found

    try:
        options = _options(marks)
        with _watcher(item).watched(**options):
            return (yield)
    except (Found, BadInput) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Stop to watch after the test's fixtures are torn down, and complete its session."""
    try:
        return (yield)
    finally:
        if WATCHED in item.stash:
            _end(item.stash[WATCHED], item.stash.get(RAISED, None))
        if WATCHER in item.stash:
            item.stash[WATCHER].close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Attach what a watched test compiled to its last report, which also travels between processes."""
    if call.excinfo is not None and WATCHED in item.stash:
        item.stash[RAISED] = call.excinfo.value
    report = yield
    if report.failed and WATCHED in item.stash and (folder := item.stash[WATCHER].recording.folder) is not None:
        report.sections.append(("idbg", f"what it compiled: {folder}"))
    if call.when == "teardown" and WATCHED in item.stash:
        from idbg.testing.run_report import attach

        attach(report, item.stash[WATCHER])
        del item.stash[WATCHED], item.stash[WATCHER]
        if RAISED in item.stash:
            del item.stash[RAISED]
    return report


def _end(stack: ExitStack, raised: BaseException | None) -> None:
    """Stop to watch, with the exception that the test raised."""
    if raised is None:
        stack.close()
        return
    try:
        stack.__exit__(type(raised), raised, raised.__traceback__)
    except BaseException as error:  # what the test raised comes back, and pytest has it already
        if error is not raised:
            raise


def _watcher(item: pytest.Item) -> "Watcher":
    """The test's own watcher, created on first use."""
    if WATCHER not in item.stash:
        from idbg.schema.programs import Program
        from idbg.testing.watcher import Watcher

        file, _, name = item.nodeid.partition("::")
        program = Program(file, name=f":{name}", cwd=str(item.config.rootpath))
        whole = bool(item.config.getoption("idbg"))
        item.stash[WATCHER] = Watcher(program, _folder(item.config), item.name, live=whole)
    return item.stash[WATCHER]


def _options(marks: list[pytest.Mark]) -> dict[str, Any]:
    """The markers' arguments, the nearest last. Raises BadInput for arguments that `watched` does not take."""
    from idbg.schema.errors import BadInput

    options: dict[str, Any] = {}
    for mark in reversed(marks):
        unknown = [*map(repr, mark.args), *(name for name in mark.kwargs if name not in _TAKES)]
        if unknown:
            hint = f"it takes {', '.join(_TAKES)}, each by its name"
            raise BadInput(f"the marker idbg was given {unknown[0]}", hint=hint)
        options |= mark.kwargs
    return options


def _folder(config: pytest.Config) -> Path:
    """The folder for this run's sessions: with --idbg a folder of the run's own."""
    if REPORT in config.stash:
        return config.stash[REPORT].folder
    folder = getattr(config, "workerinput", {}).get(FROM_CONTROLLER)
    return Path(folder) if folder else _output(config)


def _output(config: pytest.Config) -> Path:
    import os

    from idbg.config import places, settings

    named = config.getoption("idbg_output") or settings.load(os.environ).output
    return Path(config.invocation_params.dir, places.expanded(str(named)))


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
