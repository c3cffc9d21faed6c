"""How are the recordings made that drive the UI's tests? `python tests/recordings/record.py [NAME ...]` makes them.

Each is the event log of a real session: an example, compiled by the `aot` backend on a cold Inductor cache. Three are
of programs beside this file: `planted` (a kernel is wrong) and `wrong_pass` (a pass is) were compared stage by stage
and kernel by kernel too, and `benched` is `planted`, checked by mock and measured on four backends: one is wrong, one
is not installed. Of `minified` scripts were searched for, which `minified.json` holds. `breaking` breaks, and compiles
again; `switched` was compiled twice, with other switches; `unruled` is its program without an accelerator, and in
`agreed` it was compared and its numbers agree. `foreign` was compiled by IREE, by IREE for dynamic shapes, and by
OpenVINO. Paths are cut to what is the same on every machine.
`mlp_train_cuda` was recorded on an H200 with torch 2.11 and triton 3.6.
"""

import json
import os
import platform
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from idbg.bench.plan import cases
from idbg.config.arguments import parse_program
from idbg.schema.bench import BenchBackend, BenchCase
from idbg.schema.diff import Comparison
from idbg.schema.programs import NO_ACCELERATOR, Target
from idbg.schema.repros import Budget, Sought
from idbg.session.session import Session

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAMES = (
    *("mlp_train", "resnet", "attention", "planted", "wrong_pass", "benched", "minified", "breaking", "switched"),
    *("unruled", "agreed", "foreign"),
)
_BESIDE = {"benched": "planted", "unruled": "switched", "agreed": "switched"}  # recordings of the program of another
MEASURED = ("eager", "inductor", "mock", "tvm")
RUNS = 30
RULES = """name = "npu"

[[rules]]
kind = "unsupported_ops"
deny = ["cumsum"]

[[rules]]
kind = "peak_memory"
max_bytes = 2400
"""


def record(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/cache"
        compared, benched = name in ("planted", "wrong_pass", "agreed"), name == "benched"
        alone = ("minified", "breaking", "switched", "foreign")
        beside = _BESIDE.get(name, name if compared or name in alone else "")
        file = f"tests/recordings/{beside}.py" if beside else f"examples/{name}.py"
        program = parse_program(file, module=False, argv=(), cwd=str(ROOT))
        target = Target("mock" if benched or name == "minified" else "aot")
        if name in ("unruled", "foreign"):
            target = replace(target, accelerator=NO_ACCELERATOR)
        if name == "foreign":
            target = replace(target, backend="turbine_cpu")
        with Session(program, target, output=Path(folder)) as session:
            session.start()
            session.run(comparison=Comparison(per_kernel=True, runs=2) if compared else None)
            if name == "planted":
                session.map_errors('out["late"]', (1,))
            if benched:
                like = BenchCase(program=program, backend=BenchBackend(""), runs=RUNS, rules=session.target.rules)
                asked = cases([program], [BenchBackend(each) for each in MEASURED], like)
                session.bench(asked, Path(folder, "rows.sqlite"))
            assert session.wait(600)
            if name == "switched":
                session.run(replace(session.target, options={"max_autotune": True, "max_fusion_size": 1}))
                assert session.wait(600)
            if name == "foreign":
                for other in (replace(target, dynamic=True), replace(target, backend="openvino")):
                    session.run(other)
                    assert session.wait(600)
            if name == "minified":
                minify(session)
            text = (session.folder / "events.jsonl").read_text()
        host = f'"host":"{platform.node()}"', '"host":"here"'
        paths = (packages(), "site-packages"), (f"{ROOT}/", ""), (str(ROOT), ".")
        cuts = [(str(session.folder), name), *paths, host]
        (HERE / f"{name}.jsonl").write_text(cut(text, cuts))
        scripts = sorted(session.folder.glob("repros/**/*.py"))
        if scripts:
            kept = {str(script.relative_to(session.folder)): cut(script.read_text(), cuts) for script in scripts}
            (HERE / f"{name}.json").write_text(json.dumps(kept, indent=1))


def packages() -> str:
    """The folder of torch, which is another's where an environment builds on a second one."""
    spec = find_spec("torch")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parents[1])


def cut(text: str, cuts: list[tuple[str, str]]) -> str:
    """The text with what differs from machine to machine put shortly."""
    for there, short in cuts:
        text = text.replace(there, short)
    return text


def minify(session: Session) -> None:
    """A violation as it is; the smallest of another, broken off after five tries and begun again; what feeds a node."""
    session.edit_rules(RULES)
    graphs = session.history.runs[1].graphs
    graph = next(graph for id, graph in graphs.items() if id.stage == "inference")
    session.export_repro(graph.node_id("cumsum"), "unsupported_ops")
    peak = Sought("violation", graph.node_id("addmm"), "peak_memory")
    session.minify(peak, Budget(calls=5))
    session.minify(peak)
    session.minify(Sought("node", graph.node_id("relu")))
    assert session.wait(600)


if __name__ == "__main__":
    os.chdir(ROOT)
    for chosen in sys.argv[1:] or NAMES:
        record(chosen)
        print(chosen, (HERE / f"{chosen}.jsonl").stat().st_size)
