"""One rule of a text is changed; every comment and every other line stays."""

import itertools
import tomllib

import pytest

from idbg.accelerators import edit, registry
from idbg.accelerators.parse import parse
from idbg.schema.errors import AcceleratorError

PRESETS = {name: registry.find(name)[0] for name in registry.names()}
TEXT = """\
# top
name = "a"

[[rules]]
kind = "alignment"  # why
multiple = 8        # eight

[[rules]]
kind = "unsupported_ops"
deny = [
    # first
    "sin", "cos",
    "tan",  # last
]
"""


def test_a_key_is_set_where_it_stands() -> None:
    assert edit.set_key(TEXT, 0, "multiple", 16) == TEXT.replace("8        #", "16       #")


def test_a_key_that_is_not_there_is_added_behind_the_kind() -> None:
    edited = edit.set_key(TEXT, 0, "dims", "last")
    assert edited == TEXT.replace("# why\n", '# why\ndims = "last"\n')


@pytest.mark.parametrize(
    ("wanted", "old", "new"),
    [
        (["cos", "tan"], '"sin", "cos"', '"cos"'),
        (["sin", "cos"], '    "tan",  # last\n', "    # last\n"),
        (["sin", "cos", "tan", "exp", "log"], "# last\n]", '# last\n    "exp", "log",\n]'),
    ],
)
def test_items_of_a_list_come_and_go_alone(wanted: list[str], old: str, new: str) -> None:
    edited = edit.set_key(TEXT, 1, "deny", wanted)
    assert parse(edited).rules[1].deny == tuple(wanted)  # type: ignore[attr-defined]
    assert edited == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ('["a"]', ["a", "b"], '["a", "b"]'),
        ("[]", ["b"], '["b"]'),
        ('["a", ]', ["a", "b"], '["a", "b"]'),
        ('["a", "b"]', ["b"], '["b"]'),
        ("['a']", [], "[]"),
        ('["a", "b"]', ["a"], '["a"]'),
        ('["a", # has "b" in it\n "b"]', ["a"], '["a", # has "b" in it\n ]'),
        ('[\n  "a",\n  # "b",\n  "b",\n  "c",\n]', ["a", "c"], '[\n  "a",\n  # "b",\n  "c",\n]'),
        ("""["x'b'y", 'b']""", ["x'b'y"], """["x'b'y"]"""),
        ('["""a""", "b"]', ["b"], '["b"]'),
        ("['''a''', 'b']", ["b"], "['b']"),
        ('["""a"""", "b"]', ["b"], '["b"]'),
        ('[\n  "a"\n  , "b"\n  , "c"\n]', ["b", "c"], '[\n   "b"\n  , "c"\n]'),
        ('[\n  "a"\n  , "b"\n  , "c"\n]', ["a", "c"], '[\n  "a"\n  , "c"\n]'),
        ('["a\\u0062", "c"]', ["c"], '["c"]'),
        ('["a", "a"]', ["a"], '["a"]'),
        ('["a"] # why', ["b", "a"], '["b", "a"] # why'),
        ('"last"', ["a"], '["a"]'),
        ("[0, -1]", [1], "[1]"),
    ],
)
def test_a_list_is_edited_where_its_items_stand(before: str, wanted: list[object], after: str) -> None:
    text = f'[[rules]]\nkind = "dtype"\nx = {before}\n'
    assert edit.set_key(text, 0, "x", wanted) == text.replace(before, after)


LISTS = [
    '["a", "b", "c"]',
    '["a","b","c",]',
    '[ "a" , # one\n "b", # two "b"\n "c" # three\n]',
    '[\n  "a",\n  # "b",\n  "b",\n  "c",\n]',
    "['a', 'b', \"c\"]",
    "[]",
    "[\n]",
    "[ # c\n]",
    '["a" # x, y\n]',
    '["a", "a"]',
    '["a#b", "c"]',
    '["a\\u0062", "c"]',
    '[\n  "a"\n  , "b"\n  , "c"\n]',
    '["""a""", "b"]',
    '["""a"""", """"b""", """""""", "c"]',
    "['''a'''', 'b']",
    '["a", # has "b" in it\n "b"]',
    '["a", # \'b\'\n "b"]',
    "[\"x'b'y\", 'b']",
    '["\\"b\\"", "b"]',
    '["c", # "a", is bad\n "a"]',
    '[ # "a"\n "a" ]',
    '["b,", "b]"]',
    '["""\na\n""",\n"b"]',
    '["a"\n\n, # c\n\n"b"\n,]',
]


@pytest.mark.parametrize("spelled", LISTS)
def test_any_items_of_any_list_go_and_come_and_nothing_else_changes(spelled: str) -> None:
    text = f'# top\n[[rules]]\nkind = "rank"\nops = {spelled} # tail\nname = "n"\n[numerics]\nops = ["a"]\n'
    before = tomllib.loads(text)
    items = before["rules"][0]["ops"]
    kept = [some for size in range(len(items) + 1) for some in itertools.combinations(items, size)]
    for some, more in itertools.product(kept, ([], ["z"], ["z]", 'q"#'])):
        edited = edit.set_key(text, 0, "ops", (*some, *more))
        before["rules"][0]["ops"] = [*some, *more]
        assert tomllib.loads(edited) == before
        assert "# top" in edited and "# tail" in edited
        assert edited.count("# ") == text.count("# "), "every comment stays"


@pytest.mark.parametrize(
    "rule",
    [
        'kind = "rank"\n"m\\u0061x" = 3',
        "kind = 'rank'\n'max' = 0x1_0 # hex",
        'kind = "rank" # kind = "q"\n#max = 9\nmax = 3',
        'kind = "rank"\nfix = """a\n#b ] } " \n"""\nmax = 3',
        'kind = """rank"""',
        '"kind" = "rank"\nnot.max = 3\n"a \\" = b".c = """\nmax = 1\n"""\nmax = 2',
        'kind = "rank"\n[rules.x]\nmax = 9',
        'kind = "rank"\nx = nan\ny = 8.0',
    ],
)
@pytest.mark.parametrize("header", ["[[rules]]", '[["rules"]] # [x]', "[[ 'rules' ]]", '[["r\\u0075les"]]'])
def test_a_key_is_set_however_it_and_its_neighbours_are_spelled(header: str, rule: str) -> None:
    text = f'description = """\n[[rules]]\nmax = 9\n""""\n{header}\n{rule}\n{header}\nkind = "rank"\nmax = 5\n'
    before, after = tomllib.loads(text), tomllib.loads(edit.set_key(text, 0, "max", 7))
    assert after["rules"][0].pop("max") == 7
    before["rules"][0].pop("max", None)
    assert repr(after) == repr(before)


@pytest.mark.parametrize("keys", ['kind = "rank"\nmax.a = 3', 'kind = "rank"\n[rules.max]\na = 3'])
def test_what_cannot_be_edited_is_refused_with_its_line(keys: str) -> None:
    with pytest.raises(AcceleratorError, match='the key "max" of this rule is written in a way') as raised:
        edit.set_key(f"[[rules]]\n{keys}", 0, "max", 7)
    assert raised.value.line


@pytest.mark.parametrize("text", ['rules = [{kind = "layout"}]', "rules = []"])
def test_no_rule_is_added_to_those_on_one_line(text: str) -> None:
    with pytest.raises(AcceleratorError, match="on one line"):
        edit.add_rule(text, "layout", "enabled", False)


def test_rules_on_one_line_cannot_be_edited() -> None:
    with pytest.raises(AcceleratorError, match="on one line"):
        edit.set_key('rules = [{kind = "layout"}]', 0, "enabled", False)


# rules


@pytest.mark.parametrize("name", PRESETS)
def test_a_rule_that_is_taken_out_leaves_all_the_others(name: str) -> None:
    text = PRESETS[name]
    written = [table.get("name", table["kind"]) for table in tomllib.loads(text)["rules"]]
    for number in range(len(written)):
        left = tomllib.loads(edit.remove_rule(text, number))
        assert left.get("rules", []) == [table for at, table in enumerate(tomllib.loads(text)["rules"]) if at != number]
        assert left.get("numerics") == tomllib.loads(text).get("numerics")


def test_a_kind_of_another_package_begins_with_the_least_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "_STARTS", {})
    assert parse(edit.add_new("", "rank")).rules[0].max == 1  # type: ignore[attr-defined]
    with pytest.raises(AcceleratorError, match="max_height or max_area"):
        edit.add_new("", "window")


def test_a_rule_goes_with_the_comment_above_it_and_the_files_own_comment_stays() -> None:
    text = "# of the file\n[[rules]]\nkind = 'rank'\nmax = 4\n\n# why\n[[rules]]\nkind = 'same_dtype'\n\n# [numerics]\n"
    assert edit.remove_rule(text, 1) == "# of the file\n[[rules]]\nkind = 'rank'\nmax = 4\n\n# [numerics]\n"
    assert edit.remove_rule(text, 0).startswith("# of the file\n# why\n[[rules]]")


def test_a_key_goes_with_all_its_lines() -> None:
    text = '[[rules]]\nkind = "dtype"\nallowed = [\n  "i8", # a\n  "u8",\n]  # b\nseverity = "pad"\n'
    assert edit.remove_key(text, 0, "allowed") == '[[rules]]\nkind = "dtype"\nseverity = "pad"\n'
    assert edit.remove_key(text, 0, "roles") == text


def test_the_name_in_the_file_is_changed_where_it_stands_and_put_first_where_it_is_not() -> None:
    assert edit.rename('# a\nname = "old"  # b\n', "new") == '# a\nname = "new"  # b\n'
    assert edit.rename("[[rules]]\n", 'a "b"') == 'name = "a \\"b\\""\n[[rules]]\n'
    assert edit.rename("name = 'same'\n", "same") == "name = 'same'\n"
