"""The command line says which program, for which target; what it does not say comes from the settings."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest

from idbg.accelerators import registry
from idbg.accelerators.parse import parse
from idbg.config import examples
from idbg.config.arguments import Request, add_arguments, check_device, parse_program, settle
from idbg.config.command_line import split
from idbg.config.program_function import defines_function
from idbg.format.verdicts import rules_words, verdict_words
from idbg.schema.errors import BadInput, ProgramError, SettingsError
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "model.py").write_text("def make(): ...\n")
    return tmp_path


def ask(folder: Path, *arguments: str, strict: bool = True, **environ: str) -> Request:
    ours, programs = split(arguments)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settle(parser.parse_args(ours), programs, strict=strict, environ=environ, cwd=str(folder))


def test_a_file_a_name_in_it_and_the_programs_own_arguments(folder: Path) -> None:
    program = ask(folder, "model.py:make", "--", "--strict", "-m", "--").program
    assert (program.path, program.name, program.module) == ("model.py", "make", False)
    assert program.argv == ("--strict", "-m", "--")
    assert program.cwd == str(folder)


@pytest.mark.parametrize(
    ("text", "is_function"),
    [
        ("def program(): ...", True),
        ("import torch\ndef program(): ...\ntorch.compile(program)", True),
        ("from model import make as program", True),
        ("from zoo import program", True),
        ("from zoo.tiny import program", True),
        ("import re\nfrom zoo import program\nNAME = re.compile('x')", True),
        ("from zoo import program\nimport torch\ntorch.compile(torch.relu)(torch.ones(3))", False),
        ("from zoo import program\nfrom torch import compile as compiled\ncompiled(abs)", False),
        ("from zoo import program\nif __name__ == '__main__':\n    program()", False),
        ("from zoo import command as program", False),
        ("from zoo import nothing as program", False),
        ("from absent import program", False),
        ("from . import program", False),
        ("from round import program", False),
        ("import model as program", False),
    ],
)
def test_an_imported_function_counts_as_the_programs_own_unless_the_file_runs_by_itself(
    folder: Path, text: str, is_function: bool
) -> None:
    (folder / "zoo").mkdir()
    (folder / "zoo" / "__init__.py").write_text("from .tiny import program\ncommand = print\n")
    (folder / "zoo" / "tiny.py").write_text("from model import make as program\nraise SystemExit('imported')\n")
    (folder / "round.py").write_text("from subject import program\n")
    (folder / "subject.py").write_text(text)
    assert defines_function(Program(str(folder / "subject.py"))) is is_function


def test_a_package_that_reexports_a_function_is_a_script_where_it_runs_by_itself(folder: Path) -> None:
    (folder / "zoo" / "deep").mkdir(parents=True)
    (folder / "zoo" / "__init__.py").write_text("from .deep import program\n")
    (folder / "zoo" / "deep" / "__init__.py").write_text("from ...model import program\nfrom ..build import program\n")
    (folder / "zoo" / "build.py").write_text("def program(): ...\n")
    program = ask(folder, "-m", "zoo").program
    assert defines_function(program)
    (folder / "zoo" / "__main__.py").write_text("from zoo import program\nprogram()\n")
    assert not defines_function(program)


def test_a_module_is_found_where_the_user_stands_and_is_not_imported(folder: Path) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("raise SystemExit('imported')")
    program = ask(folder, "-m", "pkg.sub:make").program
    assert (program.path, program.name, program.module) == ("pkg.sub", "make", True)


def test_a_file_whose_own_name_has_a_colon(folder: Path) -> None:
    (folder / "a:b.py").write_text("make = None")
    assert ask(folder, "a:b.py").program.path == "a:b.py"
    assert ask(folder, "a:b.py:make").program.name == "make"


def test_m_and_the_module_may_be_one_word_but_not_in_the_programs_own_arguments(folder: Path) -> None:
    (folder / "mod.py").write_text("")
    program = ask(folder, "-mmod", "--", "-mx").program
    assert (program.path, program.module, program.argv) == ("mod", True, ("-mx",))


@pytest.mark.parametrize(
    "text",
    [
        "def build(): ...",
        "class build: ...",
        "build = lambda: 1",
        "other, (build, x) = 1, (2, 3)",
        "from models import make as build",
        "if True:\n    def build(): ...",
        "try:\n    from a import build\nexcept ImportError:\n    build = None",
        "from models import *",
        "globals()['build'] = 1",
        "def __getattr__(name): ...",
        "def make():\n    global build\n    build = 1",
        "match 1:\n    case build: ...",
        "this is no Python (",
    ],
)
def test_a_name_that_the_file_may_define_is_taken(folder: Path, text: str) -> None:
    (folder / "file.py").write_text(text)
    assert parse_program("file.py:build", cwd=str(folder)).name == "build"


@pytest.mark.parametrize("text", ["", "def outer():\n    build = 1", "x = [build for build in ()]", "print(build)"])
def test_a_name_that_the_file_does_not_define_is_refused(folder: Path, text: str) -> None:
    (folder / "file.py").write_text(text)
    with pytest.raises(ProgramError, match="defines no 'build'"):
        parse_program("file.py:build", cwd=str(folder))


def test_the_names_there_are_given_for_one_that_is_not_and_only_a_near_one_is_meant(folder: Path) -> None:
    (folder / "file.py").write_text("def program(): ...\ndef other(): ...")
    for name, hint in [("progam", "did you mean program?"), ("xyz", "it has program, other")]:
        with pytest.raises(ProgramError) as caught:
            parse_program(f"file.py:{name}", cwd=str(folder))
        assert caught.value.hint == hint
    with pytest.raises(ProgramError) as caught:
        parse_program("bench.py", cwd=str(folder))
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize("name", ["", "cpu", "cuda", "cuda:1", "mps", "privateuseone:0"])
def test_a_device_that_torch_may_have_is_taken(name: str) -> None:
    check_device(name)


@pytest.mark.parametrize("name", ["banana", "cuda:", "cuda:x", "CPU", ":0"])
def test_a_device_that_torch_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="there is no device"):
        check_device(name)


def test_the_target_is_what_the_flags_say(folder: Path) -> None:
    flags = ["--backend", "mock", "--accelerator", "x.toml", "--device", "cpu", "--warn", "--dynamic"]
    target = ask(folder, "model.py", *flags, "--option", "max_autotune=true", "--option", "cutoff=2").target
    assert (target.backend, target.accelerator, target.device) == ("mock", "x.toml", "cpu")
    assert (target.strict, target.dynamic) == (False, True)
    assert target.options == {"max_autotune": True, "cutoff": 2}


def test_strict_is_the_front_ends_default_until_somebody_says(folder: Path) -> None:
    assert ask(folder, "model.py", strict=True).target.strict is True
    assert ask(folder, "model.py", strict=False).target.strict is False
    assert ask(folder, "model.py", strict=False, MOCK_STRICT="1").target.strict is True
    assert ask(folder, "model.py", "--warn", MOCK_STRICT="1").target.strict is False


def test_the_settings_fill_what_the_flags_leave_open(folder: Path) -> None:
    (folder / "s.toml").write_text('backend = "eager"\ndynamic = true\n[options]\na = 1\nb = 2\n')
    asked = ask(folder, "model.py", "--no-dynamic", "--option", "b=3", IDBG_SETTINGS=str(folder / "s.toml"))
    assert (asked.target.backend, asked.target.dynamic) == ("eager", False)
    assert asked.target.options == {"a": 1, "b": 3}
    with pytest.raises(SettingsError):
        ask(folder, "model.py", IDBG_STRICT="perhaps")


def test_options_are_those_of_the_backend_that_is_asked_for(folder: Path) -> None:
    (folder / "s.toml").write_text("[options]\nmax_autotune = true\n")
    given = ("model.py", "--option", "config.A=1", "--backend")
    own = ask(folder, *given, "openvino", IDBG_SETTINGS=str(folder / "s.toml")).target
    assert (own.options, own.options_for) == ({"config.A": 1}, "openvino")  # the settings file's are Inductor's
    for backend in ("aot", "inductor", "mock", "eager"):
        inductors = ask(folder, *given, backend, IDBG_SETTINGS=str(folder / "s.toml")).target
        assert (inductors.options, inductors.options_for) == ({"max_autotune": True, "config.A": 1}, "inductor")


def test_a_folder_names_the_programs_in_it(folder: Path) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program(".", cwd=str(folder))
    assert "model.py" in caught.value.hint


def test_a_name_that_is_not_utf8_is_refused(folder: Path) -> None:
    with pytest.raises(ProgramError, match="not UTF-8"):
        parse_program("\udcff.py", cwd=str(folder))


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    with pytest.raises(ProgramError, match=r"pipe\.py is not a regular file"):
        parse_program("pipe.py:program", cwd=str(folder))


def test_rules_that_nobody_chose_judge_nothing(folder: Path) -> None:
    def chosen(*arguments: str, **environ: Any) -> str:
        return ask(folder, "model.py", *arguments, **environ).target.accelerator

    assert chosen() == chosen("--backend", "inductor") == "none"
    assert chosen("--backend", "mock") == chosen("--accelerator", "mock") == chosen(MOCK_ALIGNMENT="8") == "mock"
    assert not Target(accelerator="none", rules=registry.NO_RULES).has_rules
    assert registry.find("none") == (registry.NO_RULES, "none") and not parse(registry.NO_RULES).rules


def test_a_program_names_the_accelerator_that_it_is_for(folder: Path) -> None:
    model = folder / "model.py"
    model.write_text('IDBG_ACCELERATOR = "tpu"\n')
    assert ask(folder, "model.py").target.accelerator == "tpu"
    assert ask(folder, "model.py", "--backend", "mock").target.accelerator == "tpu"
    assert ask(folder, "model.py", "--accelerator", "none").target.accelerator == "none"
    assert ask(folder, "model.py", IDBG_ACCELERATOR="gaudi").target.accelerator == "gaudi"
    model.write_text('IDBG_ACCELERATOR: str = "own/npu.toml"\n')
    assert ask(folder, "model.py").target.accelerator == str(folder / "own/npu.toml")
    model.write_text("def program():\n    IDBG_ACCELERATOR = 'tpu'\n")
    assert ask(folder, "model.py").target.accelerator == "none"
    model.write_text("import os\nIDBG_ACCELERATOR = os.sep\n")
    with pytest.raises(ProgramError, match="IDBG_ACCELERATOR is not a string"):
        ask(folder, "model.py")


def test_the_examples_that_show_violations_ask_for_the_made_up_rules(folder: Path) -> None:
    named = {each.name: ask(folder, str(each.path)).target.accelerator for each in examples.shipped()}
    assert {name for name, accelerator in named.items() if accelerator == "mock"} == {
        *("attention", "mlp_train", "resnet", "tour")
    }
    assert set(named.values()) == {"mock", "none"}


def test_a_run_without_rules_is_not_called_clean_of_them() -> None:
    target = Target(accelerator="none", rules=registry.NO_RULES)
    graph = GraphId("0/0", "dynamo")
    run = Run(1, Program("model.py"), target, 0.0, graphs={graph: Graph(graph, ())}, ended="clean")
    assert (verdict_words(run), rules_words(target)) == ("compiled, no rules checked", "no accelerator")
    run.target = Target(accelerator="none", rules=registry.NO_RULES + '[[rules]]\nkind = "rank"\nmost = 4\n')
    assert (verdict_words(run), rules_words(run.target)) == ("no rule broken", "none (warn)")  # written on the screen
