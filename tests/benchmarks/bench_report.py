"""How long does the HTML report of a large session take, how large is it, and how soon does it answer a click?

    python tests/benchmarks/bench_report.py [NODES] [KERNELS]

A made session of NODES nodes in modules (half of them at Dynamo's stage, a quarter each at the two below), and KERNELS
kernels with the sources of recorded sessions. Beside the seconds stand those of reading that session's log, in the
same run. The first click is timed in Chromium from the click to the frame after the one that shows it, right after the
page is there; then further clicks, and searches (60 ms of which the page waits for the next letter). Bounds, at 2,000
nodes and 100 kernels: 3 s, 5 MB, 1 s. At 10,000 nodes no task of the page's may take longer than 1 s.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from idbg.reports.documents import SessionData, html
from idbg.schema import event_log
from idbg.schema.runs import fold
from tests.harness.browser import chromium
from tests.harness.large import session

TRIES = 5
Result = TypeVar("Result")


# from the click to the second frame after it: the first one shows it
CLICK = """selector => new Promise(done => {
  const began = performance.now();
  document.querySelector(selector).dispatchEvent(new MouseEvent("click", {bubbles: true}));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""
SEARCH = """words => new Promise(done => {
  const box = document.getElementById("search"), found = document.getElementById("found");
  const ask = words => { box.value = words; box.dispatchEvent(new Event("input", {bubbles: true})); };
  const until = (hidden, then) => found.hidden === hidden ? then() : requestAnimationFrame(() => until(hidden, then));
  box.focus();
  ask("");
  until(true, () => {
    const began = performance.now();
    ask(words);
    until(false, () => done(performance.now() - began));
  });
})"""
LONGEST = """() => new Promise(done => {
  const tasks = [0];
  new PerformanceObserver(seen => tasks.push(...seen.getEntries().map(each => each.duration)))
    .observe({type: "longtask", buffered: true});
  setTimeout(() => done(Math.max(...tasks)), 200);
})"""


def browsed(content: bytes) -> dict[str, float]:
    """What a reader waits for, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "report.html"
        file.write_bytes(content)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        began = time.perf_counter()
        page.goto(file.as_uri(), wait_until="domcontentloaded")
        page.locator("#tree .row").first.wait_for()
        waited = {"until the tree is there": (time.perf_counter() - began) * 1000}
        waited["first click, on a module or node"] = page.evaluate(CLICK, "#tree .row")
        page.wait_for_load_state("load")
        page.fill("#filter", "add")  # nodes alone
        clicks = [page.evaluate(CLICK, f"#tree .row:nth-child({at})") for at in range(2, 12)]
        waited["a click after it, median"] = statistics.median(clicks)
        waited["first search"] = page.evaluate(SEARCH, "add_77")
        waited["a search after it"] = page.evaluate(SEARCH, "block3")
        waited["a kernel's source opens"] = page.evaluate(CLICK, "details[data-find=kernel] summary")
        waited["longest task"] = page.evaluate(LONGEST)
        return waited


def timed(what: Callable[[], Result]) -> tuple[float, Result]:
    """The least seconds of a few tries, and what came of it."""
    seconds = []
    for _ in range(TRIES):
        began = time.perf_counter()
        result = what()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def main(nodes: int, kernels: int) -> None:
    made = session(nodes, kernels)
    text = b"".join(event_log.encode(event) + b"\n" for event in made)
    lines = text.splitlines()
    reading, history = timed(lambda: fold(event_log.decode(line) for line in lines))
    html.render(SessionData("made", fold(made[:3])))  # jinja2, pygments and our templates are loaded once a process
    source = sum(len(kernel.source) for kernel in history.runs[1].kernels)
    print(f"{nodes:,} nodes, {kernels} kernels ({source / 1e6:.1f} MB of source), a log of {len(text) / 1e6:.1f} MB")
    first = time.perf_counter()
    html.render(SessionData("made", history))
    first = time.perf_counter() - first
    seconds, content = timed(lambda: html.render(SessionData("made", history)))
    print(f"  report: {first:.2f} s, again (sources are lexed once a process) {seconds:.2f} s")
    print(f"  reading the session's log: {reading:.3f} s")
    print(f"  size: {len(content) / 1e6:.2f} MB, {len(content) / len(text):.1f} x the log's")
    for what, milliseconds in browsed(content).items():
        print(f"  {what}: {milliseconds:.0f} ms")


if __name__ == "__main__":
    main(*(int(each) for each in (*sys.argv[1:3], *("2000", "100")[len(sys.argv) - 1 :])))
