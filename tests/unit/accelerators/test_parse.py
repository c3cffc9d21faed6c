"""An accelerator file is read, edited and refused with the line that is wrong."""

import os
import tomllib
from math import inf
from pathlib import Path

import pytest

from idbg import plugins
from idbg.accelerators import edit, registry
from idbg.accelerators.parse import parse, unparse
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.memory import Memory
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.errors import AcceleratorError, SettingsError
from idbg.schema.graphs import DTYPES

MOCK, ORIGIN = registry.find("mock")
DENIED = """
_lu_with_info linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve lu_solve lu_unpack
convolution convolution_backward _convolution _convolution_mode _convolution_double_backward
relu_ silu_ gelu_ elu_ celu_ leaky_relu_ rrelu_ selu_ relu6_
prelu _prelu_kernel _prelu_kernel_backward kthvalue value_selecting_reduction_backward
"""


def refused(text: str) -> AcceleratorError:
    with pytest.raises(AcceleratorError) as raised:
        parse(text)
    return raised.value


def test_the_mock_accelerator_has_the_documented_defaults() -> None:
    mock = parse(MOCK)
    rules = {rule.kind: rule for rule in mock.rules}
    assert mock.name == "mock" and Path(ORIGIN).name == "mock.toml"
    assert rules["alignment"] == Alignment(multiple=1)
    assert rules["memory"] == Memory(max_bytes=17179869184)
    assert set(DTYPES) - set(rules["dtype"].allowed) == {"float64", "complex128", "complex64", "complex32"}  # type: ignore[attr-defined]


def test_the_mock_accelerator_denies_exactly_the_documented_ops() -> None:
    (deny,) = [rule.deny for rule in parse(MOCK).rules if isinstance(rule, UnsupportedOps)]
    assert set(deny) == set(DENIED.split())


def test_every_key_of_the_mock_accelerator_is_commented() -> None:
    lines = MOCK.splitlines()
    keys = [
        index for index, line in enumerate(lines) if "=" in line and line[:1].isalpha() and not line.startswith("kind")
    ]
    assert all(lines[index - 1].startswith("#") or lines[index].startswith(("description", "deny")) for index in keys)
    tables = [index for index, line in enumerate(lines) if line == "[[rules]]"]
    assert all(lines[index - 1].startswith("#") for index in tables)


def test_an_empty_file_is_an_accelerator_without_rules() -> None:
    assert parse("").rules == ()


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('name = "a"\nmultiple = = 3', 2, "not valid TOML", "line 2: multiple = = 3"),
        ('name = "a"\n\n[[rules', 3, "not valid TOML", "line 3: [[rules"),
        ('a = """\nb\n', 2, "not valid TOML", "line 2: b"),
        ('[[rules]]\nkind = "alignment"\nmultple = 8', 3, 'no key "multple"', "did you mean multiple?"),
        ('[[rules]]\nkind = "alignement"', 2, 'no kind of rule "alignement"', "did you mean alignment?"),
        ("[[rules]]\nmultiple = 8", 1, "has no kind", "alignment, constant_operand"),
        ('[[rules]]\nkind = "alignment"\n# why\nmultiple = "8"', 4, "multiple is a string", "must be a whole number"),
        ('[[rules]]\nkind = "alignment"\nmultiple = 8.0', 3, "multiple must be a whole number", "not 8.0"),
        ('[[rules]]\nkind = "matmul_tile"\nm = inf', 3, "m must be a whole number", "write 8"),
        (f'[[rules]]\nkind = "alignment"\nmultiple = {2**63}', 3, "multiple is too large", "9,223,372,036,854,775,807"),
        (f'[[rules]]\nkind = "memory"\n\nmax_bytes = {10**400}', 4, "max_bytes is too large", "or inf for no limit"),
        (f'[[rules]]\nkind = "alignment"\nmultiple = 8\ndims = [{-(2**64)}]', 4, "dims is too large", "at most"),
        ('a = "7"\n[[rules]]\nmultiple = ' + "1" * 5000, 3, "a number is too long: it has 5,000 digits", "line 3: mul"),
        (f'[[rules]]\nkind = "alignment"\nmultiple = 8\ndims = "last {"1" * 5000}"', 4, 'dims is "last 11', '"last 2"'),
        ('[[rules]]\nkind = ["a"]', 2, "kind must be a string", "kind ="),
        ("[[rules]]\n\nkind = 3", 3, "kind must be a string", "kind ="),
        ('name = "a"\n[["r\\u0075les"]]\nkind = "rank"\nmax = 3\n"b\\u0061d" = 1', 5, 'no key "bad"', ""),
        ('[[rules]]\nkind = "alignment"\nmultiple = 0', 3, "multiple is 0", "1 allows every size"),
        ('[[rules]]\nkind = "alignment"\nmultiple = -4', 3, "multiple is -4", "1 allows"),
        ('[[rules]]\nkind = "alignment"\nmultiple = 8\ndims = "lst"', 4, 'dims is "lst"', 'did you mean "last"?'),
        (
            '[[rules]]\nkind = "alignment"\nmultiple = 8\ndims = ["a"]',
            4,
            'dims holds "a"',
            "names are: batch, channels",
        ),
        ('[[rules]]\nkind = "dtype"\nallowed = ["flot32"]', 3, 'no dtype "flot32"', 'did you mean "float32"?'),
        ('[[rules]]\nkind = "dtype"\nallowed = "float32"', 3, "allowed is a string", "must be a list"),
        ('[[rules]]\nkind = "dtype"', 2, 'needs "allowed"', "add allowed"),
        ('[[rules]]\nkind = "memory"\nmax_bytes = -1', 3, "max_bytes is -1", "inf for no limit"),
        ('[[rules]]\nkind = "memory"\nmax_bytes = nan', 3, "max_bytes is nan", "inf for no limit"),
        ('[[rules]]\nkind = "layout"\nformats = ["nhwc"]', 3, 'formats holds "nhwc"', "channels_last"),
        ('[[rules]]\nkind = "layout"\n\nseverity = "rejct"', 4, 'severity is "rejct"', "did you mean reject?"),
        ('[[rules]]\nkind = "layout"\nenabled = 1', 3, "enabled is a whole number", "true or false"),
        (
            '[[rules]]\nkind = "layout"\n[[rules]]\nkind = "memory"\nmax = 3\nmax_bytes = 1',
            5,
            'no key "max"',
            "max_bytes",
        ),
        ('[[rule]]\nkind = "layout"', 1, 'no key "rule"', "did you mean rules?"),
        ('x = 1\nname = "a"', 1, 'no key "x"', "name, description, rules"),
        ("name = 3", 1, "name must be a string", "name ="),
        ('[rules]\nkind = "layout"', 1, "rules must be tables", "[[rules]]"),
        ("rules = 3", 1, "rules must be tables", "[[rules]]"),
        (
            '[[rules]]\nname = "a"\nkind = "layout"\n[[rules]]\nname = "a"\nkind = "layout"',
            5,
            'two rules are named "a"',
            "",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_do(text: str, line: int, message: str, hint: str) -> None:
    error = refused(text)
    assert error.line == line
    assert message in error.message and hint in error.hint


@pytest.mark.parametrize(
    ("text", "line", "held"),
    [
        (r'description = "\u001b[2J"', 1, "description holds the character U+001B (control)"),
        ('description = "a\tb"', 1, "description holds the character U+0009"),
        (r'name = "a\nb"', 1, "name holds the character U+000A"),
        ('name = "a\u202eb"', 1, "name holds the character U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ('[[rules]]\nkind = "layout"\nname = "a\u2066b"', 3, "name holds the character U+2066"),
        ('[[rules]]\nkind = "layout"\nfix = "a\u200bb"', 3, "fix holds"),
        ('[[rules]]\nkind = "layout"\nsource = "a\u2028b"', 3, "source holds"),
        ('[[rules]]\nkind = "unsupported_ops"\n\ndeny = ["mm", "a\u0085b"]', 4, "deny holds the character U+0085"),
        (r"[[rules]]" "\n" r'kind = "\u001b[2J"', 2, "kind holds the character U+001B"),
        (r'"\u001b[2J" = 3', 1, "a key holds the character U+001B"),
        ('[numerics]\ncompute = "bf\u202e16"', 2, "compute holds the character U+202E"),
    ],
)
def test_characters_that_a_terminal_obeys_are_refused(text: str, line: int, held: str) -> None:
    error = refused(text)
    assert error.line == line and held in error.message
    assert all(character.isprintable() for character in error.message)


def test_plain_unicode_and_lines_in_a_description_are_text() -> None:
    read = parse('name = "Zürich 日本 ≤ 🚀"\ndescription = """one\ntwo"""')
    assert (read.name, read.description) == ("Zürich 日本 ≤ 🚀", "one\ntwo")
    assert parse(unparse(read)) == read


def test_the_largest_number_and_inf_are_read() -> None:
    text = f'[[rules]]\nkind = "alignment"\nmultiple = {2**63 - 1}\n[[rules]]\nkind = "memory"\nmax_bytes = inf'
    assert parse(text).rules[:2] == (Alignment(multiple=2**63 - 1), Memory(max_bytes=inf))


def test_a_thousand_rules_are_read_and_one_more_is_told_with_its_line() -> None:
    rule = '[[rules]]\nkind = "layout"\n'
    assert len(parse(rule * 1000).rules) == 1001, "and the one of kind unknown"
    error = refused(rule * 1001)
    assert error.line == 2001
    assert error.message == "this file has 1,001 rules; it may have at most 1,000"


def test_brackets_and_hashes_in_strings_do_not_move_the_line() -> None:
    text = (
        'description = """\n[[rules]]\nkind = "x"\n"""\nname = "# no [comment]"\n[[rules]]\nkind = "layout"\nbad = 1\n'
    )
    assert refused(text).line == 8


def test_a_file_of_megabytes_is_refused_before_it_is_parsed() -> None:
    assert "larger than 1 MB" in refused("# x\n" * (1 << 19)).message


def test_second_rules_of_a_kind_get_a_name_of_their_own() -> None:
    rules = parse(
        '[[rules]]\nkind = "layout"\n[[rules]]\nkind = "layout"\n[[rules]]\nkind = "layout"\nname = "l"'
    ).rules
    assert [rule.name for rule in rules] == ["layout", "layout-2", "l", "unknown"]


def test_dtypes_in_a_file_may_be_spelled_short() -> None:
    rule, _ = parse('[[rules]]\nkind = "dtype"\nallowed = ["f32", "torch.int8"]').rules
    assert rule == Dtype(allowed=("float32", "int8"))


def test_an_edited_value_leaves_everything_else_as_it_was() -> None:
    edited = edit.set_first(MOCK, "alignment", "multiple", 16)
    before, after = MOCK.splitlines(), edited.splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("multiple = 1", "multiple = 16")]


def test_a_comment_behind_an_edited_value_keeps_its_column() -> None:
    text = '[[rules]]\nkind = "alignment"\nmultiple = 1    # elements\n'
    assert "multiple = 16   # elements" in edit.set_first(text, "alignment", "multiple", 16)


def test_a_list_over_several_lines_is_replaced_whole() -> None:
    edited = edit.set_first(MOCK, "dtype", "allowed", ["float32"])
    assert next(r for r in parse(edited).rules if r.kind == "dtype") == Dtype(allowed=("float32",))
    assert edited.count("[[rules]]") == MOCK.count("[[rules]]")


def test_a_key_that_is_not_there_is_added_to_its_rule_and_a_rule_to_the_end() -> None:
    edited = edit.set_first(
        '[[rules]]\nkind = "layout" # why\n\n[[rules]]\nkind = "layout"', "layout", "enabled", False
    )
    assert edited == '[[rules]]\nkind = "layout" # why\nenabled = false\n\n[[rules]]\nkind = "layout"'
    assert edit.set_first("", "alignment", "multiple", 8) == '[[rules]]\nkind = "alignment"\nmultiple = 8\n'
    assert [r.kind for r in parse(edit.set_first(edited, "memory", "max_bytes", inf)).rules][-2] == "memory"


def test_rules_written_on_one_line_are_not_edited_by_key() -> None:
    with pytest.raises(AcceleratorError, match="on one line"):
        edit.set_first('rules = [{kind = "layout"}]', "layout", "enabled", False)


@pytest.mark.parametrize("value", [True, 3, 1.5, inf, 'a "b" \\ \n', ["a", "b"], [1, -2]])
def test_any_value_of_a_rule_can_be_written(value: object) -> None:
    assert tomllib.loads(edit.set_first(MOCK, "layout", "name", value))["rules"][2]["name"] == value


def test_the_environment_sets_alignment_and_memory() -> None:
    text = registry.with_mock_variables(MOCK, {"MOCK_ALIGNMENT": "16", "MOCK_MAX_MEMORY": "inf", "MOCK_STRICT": "1"})
    rules = {rule.kind: rule for rule in parse(text).rules}
    assert rules["alignment"] == Alignment(multiple=16) and rules["memory"] == Memory(max_bytes=inf)
    assert registry.with_mock_variables(MOCK, {}) == MOCK


@pytest.mark.parametrize(
    "environ",
    [
        {"MOCK_ALIGNMENT": "0"},
        {"MOCK_ALIGNMENT": str(2**63)},
        {"MOCK_ALIGNMENT": "inf"},
        {"MOCK_MAX_MEMORY": "-1"},
        {"MOCK_MAX_MEMORY": "16GB"},
    ],
)
def test_a_bad_variable_is_named_with_its_value(environ: dict[str, str]) -> None:
    ((name, value),) = environ.items()
    with pytest.raises(SettingsError, match=f"{name} is '{value}'"):
        registry.with_mock_variables(MOCK, environ)


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "mine"\r\n')
    text, origin = registry.find(str(path))
    assert parse(text).name == "mine" and origin == str(path)


def test_an_unknown_name_lists_the_names_there_are() -> None:
    with pytest.raises(AcceleratorError, match='no accelerator "mok"') as raised:
        registry.find("mok")
    assert "did you mean mock?" in raised.value.hint and registry.names()[0] in raised.value.hint


def test_what_cannot_be_read_is_an_error_in_words(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, words in [(tmp_path / "none.toml", "no file"), (binary, "not UTF-8 text"), (tmp_path, "cannot be read")]:
        with pytest.raises(AcceleratorError, match=words):
            registry.find(f"{path}/" if path == tmp_path else str(path))


def test_what_has_no_end_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.toml")
    for path in (pipe, "/dev/zero"):
        with pytest.raises(AcceleratorError, match=f"{path} cannot be read: it is a pipe or a device"):
            registry.find(str(path))


def test_a_huge_file_is_refused_after_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte, of which the disk holds nothing
    with pytest.raises(AcceleratorError, match=r"huge\.toml is no accelerator file: it is larger than 1 MB"):
        registry.find(str(path))


def test_another_packages_preset_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "npu.toml").write_text('name = "npu"')
    loaded = plugins.Loaded(())
    loaded.values["npu"] = tmp_path / "npu.toml"
    loaded.broken["gone"] = "ModuleNotFoundError: no module"
    monkeypatch.setattr(plugins, "load", lambda group: loaded)
    monkeypatch.setattr(plugins, "names", lambda group: ("npu", "gone"))
    assert registry.find("npu")[0] == 'name = "npu"'
    assert {"mock", "npu", "gone"} <= set(registry.names())
    with pytest.raises(AcceleratorError, match="ModuleNotFoundError"):
        registry.find("gone")
