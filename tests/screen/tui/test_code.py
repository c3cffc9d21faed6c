"""Does the code view show a big text quickly, with the right colours, one line of repaint at a time?"""

import pytest
from textual.app import App, ComposeResult

from idbg.format.lexing import Lexing
from idbg_tui.widgets.code import CodeView

pytestmark = pytest.mark.usefixtures("painted")


class CodeApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.view = CodeView()
        self.moved: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_code_view_moved(self, event: CodeView.Moved) -> None:
        self.moved.append(event.line)


def looks(text: str, language: str) -> list[list[tuple[str, str]]]:
    """For each line, its coloured pieces with their looks."""
    lexing = Lexing(text, language)
    while lexing.advance(10**6, 1.0):
        pass
    lines = text.split("\n")
    return [[(line[a:b], look) for a, b, look in lexing.spans(number)] for number, line in enumerate(lines)]


def test_a_string_over_several_lines_is_a_string_on_each_of_them() -> None:
    assert looks('x = """a\ndef b\n"""\ndef c(): pass', "python") == [
        [('"""a', "string")],
        [("def b", "string")],
        [('"""', "string")],
        [("def", "keyword"), ("c", "name"), ("pass", "keyword")],
    ]


def test_a_comment_over_several_lines_is_a_comment_on_each_of_them() -> None:
    assert looks("/* for\n int */ int x = 3;", "cpp") == [
        [("/* for", "comment")],
        [(" int */", "comment"), ("int", "keyword"), ("3", "number")],
    ]


@pytest.mark.parametrize("language", ["python", "triton", "cpp", "cuda", "toml", "ptx", "asm", "llvm"])
def test_every_language_of_a_kernel_is_read_to_its_end(language: str) -> None:
    text = "a = 1\n\n// b\n# c\n\tmov.u32 %r1, %r2;"
    lexing = Lexing(text, language)
    while lexing.advance(10**6, 1.0):
        pass
    assert lexing.done == 5


def test_a_language_that_nobody_knows_is_plain_text() -> None:
    lexing = Lexing("def f(): pass", "brainfuck")
    assert lexing.done == 1
    assert lexing.spans(0) == ()


def test_colours_are_made_only_as_far_as_they_are_asked_for() -> None:
    lexing = Lexing("x = 1\n" * 20_000, "python")
    lexing.advance(50, 1.0)
    assert 50 < lexing.done < 200


async def test_a_cursor_key_repaints_two_lines_and_a_scroll_the_view() -> None:
    app = CodeApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.view.load("\n".join(f"line {number}" for number in range(1, 101)))
        await pilot.pause()
        drawn: list[int] = []
        draw = app.view.render_line

        def counting(y: int) -> object:
            drawn.append(y)
            return draw(y)

        app.view.render_line = counting  # type: ignore[method-assign,assignment]
        await pilot.press("down")
        await pilot.pause()
        assert sorted(set(drawn)) == [0, 1]
        drawn.clear()
        await pilot.press("pagedown")
        await pilot.pause()
        assert len(set(drawn)) == 10


async def test_a_line_asked_for_stands_in_the_middle_and_is_not_told_to_anybody() -> None:
    app = CodeApp()
    async with app.run_test(size=(80, 11)) as pilot:
        app.view.load("\n".join(map(str, range(1, 101))))
        app.view.go(50)
        await pilot.pause()
        assert app.view.line == 50
        assert app.view.scroll_offset.y == 44
        assert app.moved == []
        await pilot.press("j", "k", "G", "g")
        assert app.moved == [51, 50, 100, 1]


async def test_marked_lines_have_a_bar_and_others_do_not() -> None:
    app = CodeApp()
    async with app.run_test(size=(20, 4)) as pilot:
        app.view.load("a\nb\nc")
        app.view.mark({2})
        await pilot.pause()
        assert [app.view.render_line(y).text.rstrip() for y in range(3)] == ["  1  a", "▌ 2  b", "  3  c"]


async def test_a_line_too_long_shows_that_it_goes_on_and_can_be_scrolled_to() -> None:
    app = CodeApp()
    async with app.run_test(size=(15, 4)) as pilot:
        app.view.load("0123456789abcdefghij")
        await pilot.pause()
        assert app.view.render_line(0).text == "  1  012345678…"
        await pilot.press("right")
        await pilot.pause()
        assert app.view.render_line(0).text == "  1  89abcdefg…"


async def test_control_characters_and_tabs_cannot_reach_the_terminal() -> None:
    app = CodeApp()
    async with app.run_test(size=(40, 4)) as pilot:
        app.view.load("\ta\x1b[31mb\x07c")
        await pilot.pause()
        assert app.view.render_line(0).text.rstrip() == "  1      a�[31mb�c"


async def test_an_empty_text_takes_every_key() -> None:
    app = CodeApp()
    async with app.run_test(size=(40, 4)) as pilot:
        await pilot.press("j", "k", "G", "g", "pagedown", "y", "n", "left", "right", "escape")
        app.view.load("a\nb")
        app.view.load("")
        await pilot.press("j", "k")
        assert app.view.line_count == 0
        assert app.moved == []
