"""What is left of a Python file: enough to fail, not one statement too many, and in its own words."""

import ast
from textwrap import dedent, indent
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idbg.reduce.names import inlined
from idbg.reduce.sources import PythonSource
from idbg.reduce.statements import reduce_source, tidied, without_unread
from idbg.reduce.tries import Stopped

PROGRAM = dedent('''\
    """What this file is about."""
    import os, sys
    from math import (sin,
       cos)  # trigonometry


    # about the helper
    def helper(a, b=3):
        """Its words."""
        x = [a, b, 3]  # a list
        if a > 3:
            x.append(1); x.append(2)
        elif a > 2:
            y = 3
        else:
            for i in range(3):
                # here it fails
                culprit(i,   x)  # so
        try:
            return x
        except ValueError:
            pass
        finally:
            print("a")


    class Model(object):
        @staticmethod
        def f(z: int) -> int:
            return helper(z) if z else helper(1)

        def g(self): return 3


    Model().f(1)
''')


class Culprit(Exception):
    pass


def runs_into(text: str) -> bool:
    """Whether the program calls `culprit`."""

    def culprit(*given: object) -> None:
        raise Culprit

    try:
        exec(compile(text, "program", "exec"), {"culprit": culprit, "__name__": "program"})
    except Culprit:
        return True
    except Exception:
        return False
    return False


def test_only_what_leads_to_the_failure_is_left_with_its_comments() -> None:
    asked: list[str] = []

    def fails(text: str) -> bool:
        asked.append(text)
        return runs_into(text)

    reduced = reduce_source(PROGRAM, fails, protected=["culprit(i,   x)"])
    assert runs_into(reduced)
    assert "# here it fails\n" in reduced and "culprit(i,   x)  # so" in reduced
    for gone in ("import", "append", "elif", "try", "finally", "what this file", "words", "trigonometry", "-> "):
        assert gone not in reduced
    assert len(asked) == len(set(asked)) < 110


def test_comments_go_with_what_they_are_about() -> None:
    left = "# about the helper\ndef helper():\n    # here it fails\n    culprit()  # so\n"
    assert reduce_source(PROGRAM, lambda text: "culprit(" in text) == left


def test_a_search_that_is_stopped_has_the_smallest_so_far() -> None:
    best: list[str] = []

    def fails(text: str) -> bool:
        if len(best) == 3:
            raise Stopped("enough")
        return runs_into(text)

    with pytest.raises(Stopped, match="enough"):
        reduce_source(PROGRAM, fails, best.append)
    assert len(best[-1]) < len(PROGRAM)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("with a as b:\n    if b:\n        KEEP\n", "KEEP\n"),
        ("x = (KEEP if a else b) + [1, 2]\n", "KEEP\n"),
        ("f(1, [2, KEEP, 3], c=4)\n", "KEEP\n"),
        ("f(1, 2, KEEP)\n", "KEEP\n"),
        ("KEEP.T\n", "KEEP\n"),
        ("for a in b:\n    KEEP\nelse:\n    c\n", "KEEP\n"),
        ("if a:\n    b\nelif c:\n    KEEP\nelse:\n    d\n", "KEEP\n"),
        ("try:\n    a\nexcept A:\n    b\nexcept B:\n    KEEP\n", "KEEP"),
        ("a; KEEP; b\n", "KEEP\n"),
        ("if a: b; KEEP\n", "KEEP\n"),
        ("def f(a, b=KEEP): pass\n", "def f(b=KEEP):\n    pass\n"),
        ("@KEEP\n@other\ndef f(): a\n", "@KEEP\ndef f():\n    pass\n"),
        ("async def f():\n    async with a:\n        await KEEP\n", "KEEP"),
        ("match a:\n    case 1:\n        KEEP\n    case 2:\n        b\n", "KEEP"),
        ('if a:\n    x = """\n  text\n"""\n    KEEP(x)\n', "KEEP()\n"),
        ("d = {'a': 1, 'b': KEEP, **c}\n", "KEEP"),
        ("class A(B, metaclass=C):\n    KEEP\n", "class A:\n    KEEP\n"),
        ("def f():\n    return 1 + KEEP\n", "KEEP"),
        ("größe = 'ü'; KEEP\n", "KEEP\n"),
        ("try:\n    KEEP\nfinally:\n    a\n", "KEEP\n"),
    ],
)
def test_what_stands_around_it_goes(text: str, left: str) -> None:
    reduced = reduce_source(text, lambda text: "KEEP" in text)
    assert left in reduced
    assert not left.endswith("\n") or reduced == left


class Value:
    def t(self) -> "Value":
        return self

    def __add__(self, other: object) -> "Value":
        return self


@pytest.mark.parametrize(
    ("body", "left", "protected"),
    [
        ("y = x; z = y.t().t(); w = KEEP(z); return w", "f(x):\n    return KEEP(x)", ""),
        ("y = x\nz = y.t().t()\nw = KEEP(z)\nreturn w", "f(x):\n    return KEEP(x)", ""),
        ("y = x\nz = y.t().t()\nw = KEEP(z)\nreturn w", "f(z):\n    w = KEEP(z)\n    return w", "w = KEEP(z)"),
        ("x = x.t()\nx = x + x\nx = KEEP(x)\nreturn x", "f(x):\n    return KEEP(x)", ""),
        ("x = x + 1\nx += x\nreturn KEEP(x)", "f(x):\n    return KEEP(x)", ""),
        ("a, b = x, x.t()\nreturn KEEP(a)", "f(x):\n    return KEEP(x)", ""),
        ("y = KEEP(x)\nreturn", "f(x):\n    KEEP(x)\n    return", ""),
        # what each name is needed for stays
        ("x = x + 1\nx += x\nreturn KEEP(x)", "x = x + 1\n    x += x", "x = x + 1\n    x += x"),
        ("def g():\n    global h\n    h = x\ng()\nreturn KEEP(h)", "h = x", "h = x"),
    ],
)
def test_a_name_that_only_passes_a_value_on_goes(body: str, left: str, protected: str) -> None:
    text = f"def f(x):\n{indent(body, '    ')}\nf(Value())\n"

    def fails(text: str) -> bool:
        def keep(given: object) -> Value:
            raise Culprit(given)

        try:
            exec(compile(text, "program", "exec"), {"KEEP": keep, "Value": Value})
        except Culprit as culprit:
            return isinstance(culprit.args[0], Value) and "return" in text and "f(Value" in text
        except Exception:
            return False
        return False

    assert fails(text)
    assert left in reduce_source(text, fails, protected=[protected])


def test_inlining_reads_a_value_before_its_name_is_bound_again() -> None:
    source = PythonSource("a = 1 + 2\nb = a * 3\nlong = [\n    b\n]\na = long\nprint(a)\nc = d = b\n")
    texts = [source.changed(change) for change in inlined(source)]
    assert texts == [source.text.replace("a = 1 + 2\nb = a * 3", "b = (1 + 2) * 3"), mock.ANY]
    assert texts[1].endswith("]\nprint(long)\nc = d = b\n")


def test_a_string_of_several_lines_is_not_indented_otherwise() -> None:
    text = 'if a:\n    x = """\n  two\n    four\n"""\n    KEEP(x)\n'
    reduced = reduce_source(text, lambda text: "KEEP(x)" in text and "  two\n    four\n" in text and "x =" in text)
    assert reduced == 'x = """\n  two\n    four\n"""\nKEEP(x)\n'


def test_what_is_not_changed_keeps_its_text_inside_of_what_is() -> None:
    """A changed statement is printed anew; the strings, comments and calls in it are as the user wrote them."""
    text = 'def f(a, b):\n    if a:  # why\n        b = """\n  two\n"""\n\n        # so\n        KEEP(1,  \'a\') + b\n'
    reduced = reduce_source(text, lambda text: "KEEP(1,  'a')" in text and "  two\n" in text and "if" in text)
    assert reduced == 'def f():\n    if a:\n        b = """\n  two\n"""\n\n        # so\n        KEEP(1,  \'a\')\n'
    source = PythonSource(text)
    function = source.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    branch = function.body[0]
    assert isinstance(branch, ast.If)
    lifted = 'def f(a, b):\n    b = """\n  two\n"""\n\n    # so\n    KEEP(1,  \'a\') + b\n'
    assert source.changed({branch: branch.body}) == lifted


def test_what_nothing_reads_goes_at_once() -> None:
    text = "import a, b\ndef f(): return g\ndef g(): return f\ndef h(): pass\nclass C: pass\nprint(a, C)\n"
    assert without_unread(text) == "import a, b\nclass C: pass\nprint(a, C)\n"


def test_empty_lines_in_strings_stay() -> None:
    text = 'x = """\n\n\n\n\n"""\n\n\n\n\ny = 1\n'
    assert tidied(text) == text
    assert tidied("# about\n\n\n\nx = 1\n\n\n\n\n\ny = 2\n\n") == "x = 1\n\n\ny = 2\n"


# Generated programs: statements with marks; a program fails if some marks stand in it, some of them in that order


@st.composite
def programs(draw: st.DrawFn, depth: int = 0) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        mark = f"mark({draw(st.integers(0, 9))})"
        kind = draw(st.sampled_from(["call", "call", "comment", "if", "for", "def", "class", "try", "with", "both"]))
        body = (
            indent(draw(programs(depth + 1)), "    ") if depth < 2 and kind not in ("call", "comment", "both") else ""
        )
        match kind:
            case "if" if body:
                other = indent(draw(programs(depth + 1)), "    ")
                lines.append(f"if {mark}:\n{body}{draw(st.sampled_from(['', 'else:', 'elif x:']))}")
                lines[-1] += f"\n{other}" if lines[-1].endswith(":") else ""
            case "for" | "with" if body:
                head = f"for x in {mark}:" if kind == "for" else f"with {mark} as x, y:"
                lines.append(f"{head}\n{body}")
            case "def" | "class" if body:
                head = f"@deco\ndef f(a, b={mark}):" if kind == "def" else "class A(B, C):"
                lines.append(f"{head}\n{body}")
            case "try" if body:
                lines.append(f"try:\n{body}except E:\n    pass\nfinally:\n    {mark}\n")
            case "comment":
                lines.append(f"# über {mark}\nx = [{mark}, 'ü', 3]  # after\n")
            case "both":
                lines.append(f"{mark}; y = {mark}\n")
            case _:
                lines.append(f"{mark}\n")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def marks(text: str) -> list[int]:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args)
    found = [(node.lineno, node.col_offset, node.args[0]) for node in calls if ast.unparse(node.func) == "mark"]
    return [int(ast.unparse(mark)) for *_, mark in sorted(found, key=lambda at: at[:2])]


@settings(max_examples=60)
@given(programs(), st.sets(st.integers(0, 9), max_size=3), st.booleans())
def test_whatever_a_program_is_each_statement_left_is_needed(text: str, needed: set[int], ordered: bool) -> None:
    found = marks(text)
    wanted = [mark for mark in dict.fromkeys(found) if mark in needed]

    def fails(text: str) -> bool:
        there = marks(text)  # a text that is no Python raises
        if ordered:
            return [mark for mark in dict.fromkeys(there) if mark in needed] == wanted
        return set(wanted) <= set(there)

    reduced = reduce_source(text, fails)
    assert fails(reduced)
    source = PythonSource(reduced)
    for node in source.statements:
        smaller = source.without([node])
        assert smaller == reduced or not fails(smaller), smaller
