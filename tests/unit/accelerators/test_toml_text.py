"""Keys are found where they stand in a TOML text, whatever stands around them."""

import tomllib

import pytest

from idbg.accelerators import toml_text

TEXT = """# a comment with = and [[rules]]
name = "a # b" # why
'quoted key' = 1
[[rules]]
deny = [
    "a", # ] not the end
    "b]",
]
[[rules]]
text = '''
deny = 3
'''
inline = { a = 1, b = [2] }   # end
[other.table]
x=1"""


def test_every_key_is_found_at_its_line_with_its_value() -> None:
    found = {(p.table, p.number, p.key): (p.line, TEXT[p.start : p.end]) for p in toml_text.places(TEXT) if p.key}
    assert found == {
        ("", 0, "name"): (2, '"a # b"'),
        ("", 0, "quoted key"): (3, "1"),
        ("rules", 0, "deny"): (5, '[\n    "a", # ] not the end\n    "b]",\n]'),
        ("rules", 1, "text"): (10, "'''\ndeny = 3\n'''"),
        ("rules", 1, "inline"): (13, "{ a = 1, b = [2] }"),
        ("other.table", 0, "x"): (15, "1"),
    }


def test_a_key_that_is_not_there_is_told_by_its_tables_header() -> None:
    assert toml_text.find_line(TEXT, "rules", 1, "nothing") == 9
    assert toml_text.find_line(TEXT, "rules", 2) == 0


KEYS = [place for place in toml_text.places(TEXT) if place.key]


@pytest.mark.parametrize("place", KEYS, ids=lambda place: place.key)
def test_a_replaced_value_changes_nothing_else(place: toml_text.TomlPlace) -> None:
    table = tomllib.loads(toml_text.replaced(TEXT, place, "42"))
    for name in filter(None, place.table.split(".")):
        table = table[name][place.number] if isinstance(table[name], list) else table[name]
    assert table[place.key] == 42


@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        ('"m\\u0061x"', "max"),
        ('"a \\" = b"', 'a " = b'),
        ("'a # b'", "a # b"),
        ("a . b", "a.b"),
        ("\"a\".'b'", "a.b"),
    ],
)
def test_a_key_and_a_header_are_known_by_what_they_mean(spelled: str, key: str) -> None:
    assert [place.key for place in toml_text.places(f"{spelled} = 1")] == [key]
    assert [place.table for place in toml_text.places(f"[[ {spelled} ]] # ]")] == [key]


@pytest.mark.parametrize("string", ['"""a""""', '""""a"""""', '""""""', "'''a'''''", "''''a'''"])
def test_quotes_at_the_ends_of_a_long_string_are_its_own(string: str) -> None:
    text = f'x = [{string}, "b"] # c\ny = 1\n'
    first, second = toml_text.places(text)
    spelled = text[first.start : first.end]
    assert spelled == f'[{string}, "b"]' and second.key == "y"
    assert toml_text.tokens(spelled) == ["[", string, ",", " ", '"b"', "]"]


def test_a_comment_keeps_its_column_if_the_new_value_leaves_room() -> None:
    text = "x = 1      # why\n"
    (place,) = toml_text.places(text)
    assert toml_text.replaced(text, place, "1000") == "x = 1000   # why\n"
    assert toml_text.replaced(text, place, "1000000000") == "x = 1000000000 # why\n"


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = = 2", 2), ("a", 1), ('a = 1\nb = """\n\n', 2), ("a = 1\na = 2\n", 2)]
)
def test_a_syntax_error_has_a_line_that_exists(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as raised:
        tomllib.loads(text)
    message, found = toml_text.syntax_error(raised.value, text)
    assert found == line and "line" not in message


def test_a_number_that_python_does_not_read_has_a_line() -> None:
    text = f"a = 1\nb = [\n2,\n{'1' * 4999}_1]\nc = 77"
    with pytest.raises(ValueError, match="digits") as raised:
        tomllib.loads(text)
    assert toml_text.syntax_error(raised.value, text) == ("a number is too long: it has 5,000 digits", 4)


def test_only_what_toml_can_say_is_spelled() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        toml_text.spelled(None)


@pytest.mark.parametrize(
    "pair", [("abc", "abc"), ("aa", "aaa"), ("aaa", "aa"), ("", "x"), ("abcab", "ab"), ("axb", "ayb")]
)
def test_the_difference_of_two_texts_makes_one_of_the_other(pair: tuple[str, str]) -> None:
    before, after = pair
    change = toml_text.difference(before, after)
    assert change.of(before) == after
    assert len(change.text) <= abs(len(after) - len(before)) + 1
