"""Do the rows of the form say what the text says, and does each key change one thing in it and nothing else?"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.accelerators import edit, registry
from idbg.accelerators.parse import parse
from idbg.accelerators.values import spelled
from idbg.checking.relax import relaxations, relaxed_text
from idbg.constraints import Constraint, Findings, kinds
from idbg.schema.errors import AcceleratorError, OutputError
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Target
from idbg_tui.panes.rules import form as rule_form
from idbg_tui.panes.rules import words as rule_words
from idbg_tui.panes.rules.document import home_of, home_of_target, write_rules
from idbg_tui.panes.rules.form import Count, Form, FormRow
from idbg_tui.state import queries
from idbg_tui.state.rule_checks import RuleChecks
from tests.harness.pane_host import RULES
from tests.harness.recorded import chain, state_of

PRESETS = {name: registry.find(name)[0] for name in registry.names()}


def every_row(form: Form) -> Iterator[FormRow]:
    opened = {(rule.name, key) for rule in form.rules for key in ("", *rule_words.keys(rule))}
    return rule_form.rows(form, opened)


def row_of(text: str, number: int, key: str = "", choice: str = "") -> tuple[Form, FormRow]:
    form = rule_form.read(text)
    return form, FormRow(number, form.rules[number], key, choice)


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]


# every row of every preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_step_of_any_row_changes_its_key_and_no_comment_and_no_other_rule(name: str) -> None:
    form = rule_form.read(PRESETS[name])
    tried = 0
    for row in every_row(form):
        if not row.key or row.choice:
            continue
        for up in (True, False):
            try:
                text = rule_form.stepped(form, row, up=up)
            except AcceleratorError:
                continue  # a min above a max, which the pane says
            if text is None:
                continue
            tried += 1
            rules = parse(text).rules
            assert rules[row.number] == replace(row.rule, **{row.key: getattr(rules[row.number], row.key)})
            assert rules[row.number] != row.rule
            assert [rule for at, rule in enumerate(rules) if at != row.number] == [
                rule for at, rule in enumerate(form.rules) if at != row.number
            ]
            assert comments(text) == comments(form.text)
    assert tried > 2 * len(form.rules) - 3


@pytest.mark.parametrize("name", PRESETS)
def test_a_rule_that_is_switched_off_and_on_again_leaves_the_text_as_it_was(name: str) -> None:
    form = rule_form.read(PRESETS[name])
    for number in range(len(tomllib.loads(form.text)["rules"])):
        off = rule_form.toggled(form, FormRow(number, form.rules[number]))
        assert off is not None
        assert [rule.enabled for rule in parse(off).rules].count(False) == 1 + [r.enabled for r in form.rules].count(
            False
        )
        assert rule_form.toggled(*row_of(off, number)) == form.text


@pytest.mark.parametrize("name", PRESETS)
def test_every_row_of_a_preset_has_words(name: str) -> None:
    form = rule_form.read(PRESETS[name])
    for row in every_row(form):
        assert rule_words.summary(row.rule)
        assert rule_words.about(row.rule, row.key, form.text, form.lines.get((row.number, row.key), 0))
        assert not row.key or rule_words.value_words(row.rule, row.key)


# rows


def test_a_rule_has_its_keys_below_it_when_it_is_open_and_a_list_its_choices() -> None:
    form = rule_form.read(RULES)
    assert [row.rule.name for row in rule_form.rows(form, ())] == ["alignment", "dtype", "unknown"]
    opened = {("dtype", ""), ("dtype", "allowed")}
    rows = list(rule_form.rows(form, opened))
    assert [(row.key, row.choice, row.on) for row in rows[2:5]] == [
        ("allowed", "", True),
        ("allowed", "float64", False),
        ("allowed", "float32", True),
    ]
    assert form.line(rows[2]) == 10 and form.line(rows[-1]) == 0
    assert form.at(5) == (0, "multiple") and form.at(8) == (1, "") and form.at(1) == (0, "")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('kind = "alignment"\nmultiple = 16', "multiple 16 · all dims"),
        ('kind = "alignment"\nmultiple = 32\nunit = "bytes"\ndims = "last"', "multiple 32 bytes · last dim"),
        (
            'kind = "alignment"\nmultiple = 8\ndims = [0, "width"]\nbatch = false',
            "multiple 8 · dims 0, width · not batch",
        ),
        ('kind = "dtype"\nallowed = ["i8", "u8", "int16"]', "allowed 3: int8, uint8, int16"),
        ('kind = "unsupported_ops"\ndeny = []', "deny none"),
        ('kind = "unsupported_ops"\nallow = ["mm"]', "allow 1: mm"),
        ('kind = "memory"\nmax_bytes = 8_388_608\nroles = ["weights"]', "max_bytes 8 MiB · only weights"),
        ('kind = "rank"\nmax = 4\nops = ["mm", "conv*"]\nstages = ["forward"]', "max 4 · only mm, conv*; forward"),
        ('kind = "same_dtype"', "All tensors that one call reads must have one dtype"),
    ],
)
def test_a_rule_is_said_in_few_words(table: str, words: str) -> None:
    assert rule_words.summary(parse(f"[[rules]]\n{table}\n").rules[0]) == words


def test_what_a_row_is_for_is_the_comment_above_it_and_else_what_its_kind_says() -> None:
    text = "# the file's own\n\n# fits\n# the bus\n[[rules]]\nkind = 'rank'\n# dims\nmax = 4\n"
    rule = parse(text).rules[0]
    assert rule_words.about(rule, "", text, 5) == "fits the bus"
    assert rule_words.about(rule, "max", text, 8) == "dims"
    assert rule_words.about(rule, "min", text, 0) == "Every tensor must have min to max dimensions"
    heading = "# the file's own\n[[rules]]\nkind = 'rank'\nmax = 4\n"
    assert rule_words.about(rule, "", heading, 2) == "Every tensor must have min to max dimensions"


# values


def test_a_choice_is_taken_out_of_a_list_and_put_in_and_its_comments_stay() -> None:
    form, row = row_of(PRESETS["mock"], 1, "allowed", "float32")
    out = rule_form.toggled(form, row)
    assert out is not None and "float32" not in rule_form.read(out).rules[1].allowed  # type: ignore[attr-defined]
    back = rule_form.toggled(*row_of(out, 1, "allowed", "float32"))
    assert back is not None and set(parse(back).rules[1].allowed) == set(row.rule.allowed)  # type: ignore[attr-defined]
    assert comments(back) == comments(form.text)


@pytest.mark.parametrize(
    ("number", "key", "typed", "expected"),
    [
        (0, "multiple", "24", 24),
        (0, "dims", "last 2", "last 2"),
        (0, "dims", '"last"', "last"),
        (0, "dims", '[0, "width"]', (0, "width")),
        (0, "source", "https://x.org/a b", "https://x.org/a b"),
        (0, "name", '17 "inch"', '17 "inch"'),
        (0, "severity", "slow", "slow"),
        (1, "max_bytes", "inf", float("inf")),
        (2, "k", "", None),
    ],
)
def test_what_is_typed_becomes_the_value(number: int, key: str, typed: str, expected: object) -> None:
    text = (
        '[[rules]]\nkind = "alignment"\nmultiple = 8 # a\n\n[[rules]]\nkind = "memory"\nmax_bytes = 1\n\n'
        '[[rules]]\nkind = "matmul_tile"\nm = 1\nk = 2\n'
    )
    new = rule_form.typed_value(*row_of(text, number, key), typed)
    assert new is not None and getattr(parse(new).rules[number], key) == expected
    assert "# a" in new


@pytest.mark.parametrize(
    ("key", "typed", "words"),
    [
        ("multiple", "0", "multiple is 0; it must be 1 or more"),
        ("multiple", "many", "multiple is a string"),
        ("multiple", "", 'needs "multiple"'),
        ("multiple", "{a = 1}", "multiple cannot be that"),
        ("dims", "channel", 'dims is "channel"'),
        ("severity", "rejekt", 'severity is "rejekt"'),
        ("name", "dtype", 'two rules are named "dtype"'),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_the_words_of_the_parser(key: str, typed: str, words: str) -> None:
    with pytest.raises(AcceleratorError, match=words):
        rule_form.typed_value(*row_of(RULES.replace('kind = "dtype"', 'kind = "dtype"\nname = "dtype"'), 0, key), typed)


def test_the_rule_that_is_there_without_being_written_is_written_when_it_is_changed() -> None:
    form, row = row_of(RULES, 2)
    assert row.rule.kind == "unknown"
    text = rule_form.stepped(form, FormRow(2, row.rule, "severity"), up=True)
    assert text is not None and text.startswith(RULES) and parse(text).rules[2].severity == "slow"
    off = rule_form.toggled(form, row)
    assert off is not None and not parse(off).rules[2].enabled
    assert rule_form.removed(form, row) is None


def test_a_step_on_a_rule_is_one_of_its_first_value() -> None:
    text = rule_form.stepped(*row_of(RULES, 0), up=True)
    assert text is not None and "multiple = 2  # elements" in text
    assert rule_form.stepped(*row_of(RULES, 0), up=False) is None, "1 is the least; no other key is meant"
    assert rule_form.stepped(*row_of(RULES, 1), up=True) != RULES


# rules


@pytest.mark.parametrize("kind", kinds())
def test_a_rule_of_every_kind_can_be_added_and_taken_out_again(kind: str) -> None:
    text = edit.add_new(PRESETS["mock"], kind)
    assert text.startswith(PRESETS["mock"].rstrip())
    number = len(tomllib.loads(text)["rules"]) - 1
    assert parse(text).rules[number].kind == kind
    left = rule_form.removed(*row_of(text, number))
    assert left is not None and left.rstrip() == PRESETS["mock"].rstrip()


def test_rules_on_one_line_are_refused_with_what_to_do() -> None:
    text = 'rules = [{kind = "rank", max = 4}]\n'
    for do in (rule_form.toggled, rule_form.removed):
        with pytest.raises(AcceleratorError, match="cannot be edited by key"):
            do(*row_of(text, 0))


# against graphs


def test_the_violations_of_each_rule_are_counted_over_all_graphs_with_what_the_last_edit_changed() -> None:
    checks = RuleChecks()
    graphs = [chain(3), replace(chain(5), id=GraphId("1/0", "inference"))]
    checks.set_rules(parse(RULES.replace("multiple = 1", "multiple = 3").replace('"float32"', '"int8"')).rules)
    before = rule_form.counts((checks.findings(graph), checks.change(graph)) for graph in graphs)
    assert before == {"alignment": Count(8), "dtype": Count(8), "unknown": Count()}
    checks.set_rules(
        parse(
            RULES.replace("multiple = 1", "multiple = 3").replace('kind = "dtype"', 'kind = "dtype"\nenabled = false')
        ).rules
    )
    after = rule_form.counts((checks.findings(graph), checks.change(graph)) for graph in graphs)
    assert after == {"alignment": Count(8), "dtype": Count(0, 0, 8), "unknown": Count()}  # what it took away is told
    assert rule_form.total(after).change_words == " (+0 -8)"
    checks.set_rules(parse(RULES.replace('"float32"', '"int8"')).rules)
    last = rule_form.counts((checks.findings(graph), checks.change(graph)) for graph in graphs)
    assert last == {"alignment": Count(0, 0, 8), "dtype": Count(8, 8, 0), "unknown": Count()}


@pytest.mark.parametrize("name", ["mock", "coral_edgetpu", "ethos_u55", "tpu", "spyre"])
@pytest.mark.parametrize("recording", ["mlp_train", "resnet"])
def test_what_it_would_take_is_enough_when_it_is_done(recording: str, name: str) -> None:
    state = state_of(recording)
    text = PRESETS[name]
    found = relaxations(findings(queries.level(state), parse(text).rules), ("reject", "fallback", "pad"))
    new = relaxed_text(text, found)
    left = relaxations(findings(queries.level(state), parse(new).rules), ("reject", "fallback", "pad"))
    assert [one.rule.name for one in left] == []
    assert comments(new) == comments(text)
    assert found or new == text


def findings(graphs: list[Graph], rules: tuple[Constraint, ...]) -> list[Findings]:
    checks = RuleChecks()
    checks.set_rules(rules)
    return [checks.findings(graph) for graph in graphs]


# files


def test_a_file_is_written_whole_with_its_permissions_and_through_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "a.toml", tmp_path / "link.toml"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_rules(link, "new ü")
    assert path.read_text(encoding="utf-8") == "new ü" and link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.toml", "link.toml"]


def test_a_write_that_fails_says_why_in_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"cannot be written: No such file") as caught:
        write_rules(tmp_path / "none" / "b.toml", "new")
    assert caught.value.hint == "make the folder first"
    with pytest.raises(OutputError, match="cannot be written"):
        write_rules(path, "half \ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.toml"]


def test_rules_that_were_edited_before_we_looked_come_from_the_targets_accelerator(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    home = home_of_target(Target(accelerator=str(path), rules="name = 'edited'"))
    assert (home.saved, home.path, home.label) == (RULES, path, "mine.toml")
    mock = home_of_target(Target(accelerator="mock", rules="name = 'edited'"))
    assert (mock.saved, mock.path, mock.label) == (PRESETS["mock"], None, "mock")
    assert home_of_target(Target(accelerator="gone")).saved == ""
    assert home_of(str(registry.PRESETS / "mock.toml"), "").path is None
    assert str(home_of("a-edited.toml", "").new_path) == "a-edited.toml"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("mm, conv*", ("mm", "conv*")),
        ('"mm", add', ("mm", "add")),
        ('"mm", "add"', ("mm", "add")),
        ('["mm"]', ("mm",)),
        ("", ()),
    ],
)
def test_a_list_of_names_is_typed_with_commas_between(typed: str, expected: tuple[str, ...]) -> None:
    text = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm", "add", "relu"]  # a\n'
    form, row = row_of(text, 0, "deny")
    assert spelled(row.rule, row.key) == "mm, add, relu"
    assert rule_form.typed_value(form, row, "mm, add, relu") is None
    new = rule_form.typed_value(form, row, typed)
    assert new is not None and parse(new).rules[0].deny == expected  # type: ignore[attr-defined]
