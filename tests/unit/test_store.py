"""A session's folder holds all that happened, as it happens, and reads back the same."""

import json
from pathlib import Path

import pytest

from idbg.schema import event_log, events
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.errors import OutputError
from idbg.schema.events import FORMAT, SessionEvent
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta
from idbg.schema.programs import Program, Target
from idbg.session import files, reading
from idbg.session.store import Store

PROGRAM = Program(path="examples/resnet.py")
OPENED = events.SessionOpened(version="0.1.0", program=PROGRAM, folder="/there")
NODE = Node(
    name="relu", op="call_function", target="aten.relu.default", tensors=(TensorMeta("float32", (2, 3), (3, 1), "cpu"),)
)


def kept(tmp_path: Path, *log: SessionEvent) -> Path:
    made = Store.create(tmp_path, PROGRAM)
    for event in (OPENED, *log):
        made.append(event)
    made.close()
    return made.folder


def test_every_event_reads_back_in_order(tmp_path: Path) -> None:
    log = [
        events.RunStarted(run=1, program=PROGRAM, target=Target(rules="name = 'x'\n")),
        events.OutputWritten(run=1, stream="stdout", text="line\n\u2028é\n"),
        events.RunEnded(run=1, verdict="clean", seconds=0.5),
    ]
    assert reading.load(kept(tmp_path, *log)) == [OPENED, *log]  # type: ignore[arg-type]


def test_an_event_is_on_disk_before_the_session_closes(tmp_path: Path) -> None:
    made = Store.create(tmp_path, PROGRAM)
    made.append(OPENED)
    assert reading.load(made.folder) == [OPENED]
    made.close()


def test_three_sessions_in_one_second_have_three_folders(tmp_path: Path) -> None:
    folders = {kept(tmp_path) for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.name.startswith("resnet-") for folder in folders)


@pytest.mark.parametrize(
    ("program", "stem"),
    [
        (Program(path="a b/../we/ird:näme!.py"), "ird_n_me"),
        (Program(path="pkg.sub.mod", module=True), "mod"),
        (Program(path=".py"), "py"),
        (Program(path="***.py"), "unnamed"),
        (Program(path="x" * 300 + ".py"), "x" * 80),
    ],
)
def test_a_folder_is_named_after_the_program_whatever_its_name_is(tmp_path: Path, program: Program, stem: str) -> None:
    made = Store.create(tmp_path, program)
    made.close()
    assert made.folder.name.rsplit("-", 2)[0] == stem


def test_graphs_code_kernels_and_rules_become_files(tmp_path: Path) -> None:
    kernel = Kernel(frame="0/0", part="inference", name="cpp_fused/relu", language="cpp", source="int f();")
    extern = Kernel(frame="0/0", part="inference", name="extern_kernels.mm", language="extern")
    folder = kept(
        tmp_path,
        events.RunStarted(run=1, program=PROGRAM, target=Target(rules="name = 'x'\n")),
        events.GraphCaptured(
            run=1, graph=Graph(GraphId("0/0", "post_grad", "inference"), (NODE,), "def forward(): ...")
        ),
        events.CodeCaptured(run=1, code=OutputCode("0/0", "inference", "wrapper", (kernel, extern))),
        events.RunEnded(run=1, verdict="clean", seconds=0.0),
    )
    frame = folder / "run-1" / "frame-0_0"
    assert (folder / "run-1" / "rules.toml").read_text() == "name = 'x'\n"
    assert (frame / "post_grad-inference.py").read_text() == "def forward(): ..."
    assert (frame / "output_code-inference.py").read_text() == "wrapper"
    assert [path.name for path in (frame / "kernels" / "inference").iterdir()] == ["cpp_fused_relu.cpp"]
    described = json.loads((frame / "post_grad-inference.metadata.json").read_text())
    assert described["nodes"][0]["tensors"] == [
        {"dtype": "float32", "shape": [2, 3], "stride": [3, 1], "device": "cpu"}
    ]


def test_a_file_whose_name_is_no_utf8_ends_no_session(tmp_path: Path) -> None:
    node = Node(name="relu", op="call_function", target="aten.relu.default", file="caf\udce9.py")
    graph = Graph(id=GraphId("0/0", "forward"), nodes=(node,), code="")
    folder = kept(
        tmp_path, events.RunStarted(run=1, program=PROGRAM, target=Target()), events.GraphCaptured(run=1, graph=graph)
    )
    assert r"caf\\udce9.py" in (folder / "run-1/frame-0_0/forward.metadata.json").read_text()


def test_an_output_folder_that_cannot_be_written_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(OutputError, match=f"cannot write to the output folder {output}"):
            Store.create(output, PROGRAM)


def test_a_log_whose_writer_was_killed_in_a_line_reads_up_to_there(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    with (folder / files.LOG).open("ab") as log:
        log.write(b'{"type":"run_end')
    assert reading.load(folder) == [OPENED]


def test_a_session_opens_up_to_a_damaged_line_and_says_what_is_left_out(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    with (folder / files.LOG).open("ab") as log:
        log.write(b"rubbish\n" + event_log.encode(OPENED) + b"\n")
    found, missing = reading.read(folder)
    assert found == [OPENED]
    assert "line 2 is damaged" in missing and "are left out" in missing
    (_, note) = reading.load(folder)
    assert isinstance(note, events.Noted) and note.missing and note.text == missing


@pytest.mark.parametrize("text", ["", "rubbish\n", "[1]\n", '{"type":"noted","level":"info","text":""}\n', "\xff\n"])
def test_what_is_not_a_session_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / files.LOG).write_bytes(text.encode("latin-1"))
    with pytest.raises(OutputError):
        reading.load(tmp_path)


def test_a_folder_without_a_log_is_no_session(tmp_path: Path) -> None:
    assert not files.is_session(tmp_path)
    with pytest.raises(OutputError, match="is not a session"):
        reading.load(tmp_path)


def test_a_log_of_a_newer_format_is_refused_and_says_by_whom_it_was_written(tmp_path: Path) -> None:
    newer = events.SessionOpened(version="9.0", program=PROGRAM, folder="", format=FORMAT + 1)
    (tmp_path / files.LOG).write_bytes(event_log.encode(newer) + b"\n")
    with pytest.raises(OutputError, match=r"newer idbg \(9\.0"):
        reading.load(tmp_path)


def test_events_of_a_later_version_are_skipped(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    with (folder / files.LOG).open("ab") as log:
        log.write(b'{"type":"from_the_future","at":1.0}\n' + event_log.encode(OPENED) + b"\n")
    assert reading.load(folder) == [OPENED, OPENED]
