"""Are the form and the text one, and does "what would it take?" do what it says?"""

import pytest
from rich.cells import cell_len
from textual.widgets import Input, Static

from idbg.accelerators import registry
from idbg.schema.events import RulesEdited
from idbg_tui.messages import CopyRequest
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.picker import Choices
from idbg_tui.widgets.prompt import Prompt
from tests.harness.pane_host import RULES
from tests.harness.rule_bench import SIZE, Bench, answer, question, shown, told

# the form


async def test_the_pane_opens_as_a_form_that_counts_what_each_rule_finds(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        rows = shown(bench.pane.form)
        assert [row.split()[2:5] for row in rows] == [
            ["alignment", "◇", "pad"],
            ["dtype", "✘", "reject"],
            ["unknown", "?", "unknown"],
        ]
        assert "multiple 1 · all dims" in rows[0] and rows[0].endswith("0")
        about = bench.pane.query_one("#about", Static)
        assert "Sizes of dims must be multiples" in str(about.render())


async def test_a_key_of_the_form_changes_the_text_and_the_counts_follow(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus", "plus", "plus", "plus")
        assert "multiple = 16  # elements" in bench.editor.text
        found = sum(len(bench.state.checks.findings(graph)) for graph in queries.level(bench.state))
        assert found > 0 and shown(bench.pane.form)[0].endswith(f"{found} +{found}")
        assert bench.state.rules.text == bench.editor.text
        await bench.press(pilot, *["plus"] * 4, *["underscore"] * 8)
        assert bench.editor.text == RULES, "the way back is the way there"
        assert "edited" not in bench.title


async def test_each_key_of_a_burst_counts(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for _ in range(5):
            bench.pane.form.action_step(True)
        assert "multiple = 32 " in bench.editor.text
        await bench.settle(pilot)
        await bench.press(pilot, "Z")
        assert "multiple = 16 " in bench.editor.text, "each is one step of undo"


async def test_an_answer_does_not_overwrite_what_changed_while_it_was_typed(bench: Bench) -> None:
    other = RULES + "# from disk\n"
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "enter", "j", "enter")
        bench.disk(other, "editor")
        await bench.settle(pilot)
        await answer(pilot, bench, "24")
        assert bench.editor.text == other and "have changed since" in question(bench)


async def test_picking_the_same_preset_again_takes_the_edits_back(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus")
        bench.disk(RULES, "small")
        await bench.settle(pilot)
        assert bench.editor.text == RULES and told(bench) == ["edits of small are one Z away"]
        await bench.press(pilot, "Z")
        assert "multiple = 2" in bench.editor.text


async def test_space_switches_a_rule_off_and_its_row_is_kept(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "j", "space")
        assert bench.editor.text.endswith('kind = "dtype"\nenabled = false\nallowed = ["float32"]\n')
        assert shown(bench.pane.form)[1].split()[1:3] == ["○", "dtype"]
        await bench.press(pilot, "space")
        assert bench.editor.text == RULES


async def test_edits_of_the_form_and_of_the_text_have_one_history(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus")
        await bench.press(pilot, "right_square_bracket", "g", "enter", "#", "escape", "left_square_bracket")
        await bench.press(pilot, "plus")
        assert "multiple = 4" in bench.editor.text and bench.editor.text.startswith("#")
        await bench.press(pilot, "Z")
        assert "multiple = 2" in bench.editor.text and bench.editor.text.startswith("#")
        await bench.press(pilot, "Z")
        assert bench.editor.text == RULES.replace("= 1 ", "= 2 ")
        await bench.press(pilot, "Z")
        assert bench.editor.text == RULES == bench.state.rules.text
        await bench.press(pilot, "ctrl+y", "ctrl+y", "ctrl+y")
        assert "multiple = 4" in bench.editor.text and bench.editor.text.startswith("#")
        assert "multiple 4" in shown(bench.pane.form)[0]


async def test_a_rule_opens_into_its_keys_and_plus_and_underscore_step_a_value(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "l", "j", "plus", "j", "plus", "l")
        assert 'unit = "bytes"' in bench.editor.text and "multiple = 2" in bench.editor.text
        assert [row.split()[0] for row in shown(bench.pane.form)[1:4]] == ["multiple", "unit", "dims"]
        await bench.press(pilot, "underscore", "k", "underscore", "escape")
        assert 'unit = "elements"' in bench.editor.text and "multiple = 1" in bench.editor.text
        assert len(shown(bench.pane.form)) == 3
        assert bench.pane.form.cursor == 0


async def test_a_list_opens_into_what_it_can_hold(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "j", "enter", "j", "enter", "j")
        assert shown(bench.pane.form)[3:5] == ["       ○ float64", "       ● float32"]
        await bench.press(pilot, "space")
        assert 'allowed = ["float32", "float64"]' in bench.editor.text
        assert shown(bench.pane.form)[3] == "       ● float64" and bench.pane.form.cursor == 3
        await bench.press(pilot, "h", "h")
        assert bench.pane.form.cursor == 1 and len(shown(bench.pane.form)) == 3


async def test_a_typed_value_is_taken_and_one_that_cannot_be_says_why_and_changes_nothing(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "enter", "j", "enter")
        assert "alignment: multiple" in question(bench)
        await answer(pilot, bench, "-3")
        assert "multiple is -3; it must be 1 or more" in question(bench)
        assert bench.editor.text == RULES
        await answer(pilot, bench, "24")
        assert "multiple = 24" in bench.editor.text
        assert pilot.app.focused is bench.pane.form
        await bench.press(pilot, "enter", "7", "escape")
        assert "multiple = 24" in bench.editor.text and pilot.app.focused is bench.pane.form


async def test_a_renamed_rule_stays_open_with_the_cursor_on_its_name(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "enter", *"j" * 10)
        row = bench.pane.form.chosen
        assert row is not None and row.key == "name"
        await bench.press(pilot, "enter")
        await answer(pilot, bench, "bus width")
        row = bench.pane.form.chosen
        assert row is not None and (row.rule.name, row.key) == ("bus width", "name")


async def test_a_short_list_of_globs_is_typed_and_a_wrong_one_says_why_and_stays(bench: Bench) -> None:
    text = RULES + '\n[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm"]\n'
    bench.state.apply([RulesEdited(text=text, origin="small")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "j", "j", "enter", "j", "enter")
        assert bench.pane.view == "form" and "unsupported_ops: deny (names or globs, with commas" in question(bench)
        assert bench.pane.query_one(Prompt).query_one(Input).value == "mm"
        await answer(pilot, bench, "[1]")
        assert "deny" in question(bench) and bench.editor.text == text
        await answer(pilot, bench, "mm, relu*")
        assert 'deny = ["mm", "relu*"]' in bench.editor.text and pilot.app.focused is bench.pane.form
        await bench.press(pilot, "enter", "x", "escape")
        assert 'deny = ["mm", "relu*"]' in bench.editor.text and pilot.app.focused is bench.pane.form


async def test_a_long_list_of_globs_is_written_in_the_text_and_escape_goes_back(bench: Bench) -> None:
    names = ", ".join(f'"op_{number}"' for number in range(20))
    text = RULES + f'\n[[rules]]\nkind = "unsupported_ops"\ndeny = [{names}]\n'
    bench.state.apply([RulesEdited(text=text, origin="small")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "j", "j", "enter", "j", "enter")
        assert bench.pane.view == "text" and pilot.app.focused is bench.editor
        assert "a long list is edited as text" in told(bench)[0] and "enter edits" in bench.title
        assert bench.editor.document.get_line(bench.editor.cursor_location[0]).startswith('deny = ["op_0"')
        await bench.press(pilot, "enter", "escape")
        assert bench.pane.view == "text"
        await bench.press(pilot, "escape")
        assert bench.pane.view == "form" and pilot.app.focused is bench.pane.form
        row = bench.pane.form.chosen
        assert row is not None and (row.rule.name, row.key) == ("unsupported_ops", "deny")


async def test_the_text_is_opened_at_the_selected_rule_and_the_form_at_the_lines(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "j", "right_square_bracket")
        assert bench.editor.cursor_location == (7, 0)
        await bench.press(pilot, "g", "j", "j", "j", "left_square_bracket")
        assert bench.pane.form.cursor == 0


async def test_a_rule_is_added_by_its_kind_and_taken_out_again(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "A")
        assert "rank" in "".join(shown(pilot.app.screen.query_one(Choices)))
        await bench.press(pilot, *"rank", "enter")
        assert bench.editor.text == RULES + '\n[[rules]]\nkind = "rank"\nmax = 8\n'
        row = bench.pane.form.chosen
        assert row is not None and (row.rule.kind, row.key) == ("rank", "")
        await bench.press(pilot, "j", "underscore", "ctrl+x")
        assert bench.editor.text == RULES + "" and told(bench) == ["rank is taken out: Z brings it back"]
        await bench.press(pilot, "Z")
        assert bench.editor.text.endswith('kind = "rank"\nmax = 7\n')


async def test_with_a_mistake_in_the_text_the_form_shows_the_last_good_rules_and_changes_nothing(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "j", "j", "enter", "x", "escape", "left_square_bracket")
        broken = bench.editor.text
        assert len(shown(bench.pane.form)) == 3
        assert "line 5" in str(bench.pane.query_one("#status").render())
        await bench.press(pilot, "plus", "space", "ctrl+x", "enter", "j", "enter")
        assert bench.editor.text == broken
        assert any("line 5 of the text has a mistake" in words for words in told(bench))
        await bench.press(pilot, "right_square_bracket")
        assert bench.editor.cursor_location[0] == 4
        await bench.press(pilot, "left_square_bracket", "Z")
        assert bench.editor.text == RULES and not bench.pane.form.wrong


async def test_what_is_valid_and_odd_is_said_and_marked_and_stops_nothing(bench: Bench) -> None:
    text = RULES + '\n[[rules]]\nkind = "unsupported_ops"\ndeny = [\n  "relu",\n  "reluu",\n]\n'
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        bench.disk(text, "small.toml")
        await bench.settle(pilot)
        status = bench.pane.query_one("#status")
        assert 'line 16: no op of torch matches "reluu"; did you mean relu' in str(status.render())
        assert status.has_class("-warned") and not status.has_class("-wrong")
        assert [row.split()[1][:1] + row.split()[1][1:] for row in shown(bench.pane.form)][2] == "●!unsupported_ops"
        assert bench.state.accelerator is not None and len(bench.state.accelerator.rules) == 4
        await bench.press(pilot, "j", "j", "enter")
        assert [row.split()[0] for row in shown(bench.pane.form)][3] == "!deny"
        await bench.press(pilot, "right_square_bracket")
        lines = [bench.editor.get_line(index) for index in (14, 15)]
        backgrounds = [[getattr(span.style, "bgcolor", None) for span in line.spans] for line in lines]
        assert not any(backgrounds[0]) and any(backgrounds[1])


async def test_a_document_that_says_so_is_named_below_the_form(bench: Bench) -> None:
    said = 'kind = "dtype"\nversion = "SDK 3"\nsource = "https://docs.example.org/dtypes"'
    bench.state.apply([RulesEdited(text=RULES.replace('kind = "dtype"', said), origin="small")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        about = bench.pane.query_one("#about", Static)
        assert "SDK 3" not in str(about.render())
        await pilot.press("j")
        assert str(about.render()).split("\n")[1] == "SDK 3  https://docs.example.org/dtypes"


async def test_y_copies_the_rule_and_e_opens_the_editor_at_its_line(bench: Bench) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("j", "y")
        copied = [message.text for message in bench.app.posted if isinstance(message, CopyRequest)]
        assert copied == ['[[rules]]\nkind = "dtype"\nallowed = ["float32"]']


@pytest.mark.parametrize("size", [(42, 14), (60, 14), (160, 45)])
async def test_every_row_of_every_preset_fits(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app.run_test(size=size) as pilot:
        await pilot.pause()
        form = bench.pane.form
        for name in registry.names():
            form.show_text(registry.find(name)[0])
            form._opened = {(rule.name, key) for rule in form.form.rules for key in ("", "allowed", "roles")}
            form._lay()
            assert form.row_count > 3 * len(form.form.rules)
            for at in range(form.row_count):
                text = "".join(text for text, _ in form.row(at, form.line_width))
                assert cell_len(text) <= form.line_width, f"{name}: {text}"


# what would it take?


async def test_what_it_would_take_is_listed_and_space_does_it(bench: Bench) -> None:
    text = RULES.replace('"pad"', '"reject"').replace("= 1 ", "= 16 ").replace('"float32"', '"int8"')
    bench.state.apply([RulesEdited(text=text, origin="small")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "right_square_bracket", "right_square_bracket")
        assert "what would it take?" in bench.title
        assert [row.split()[1] for row in shown(bench.pane.relax)] == ["alignment", "dtype"]
        assert "multiple 16 → 1" in shown(bench.pane.relax)[0] and "allowed + float32" in shown(bench.pane.relax)[1]
        await bench.press(pilot, "j", "enter")
        assert bench.state.rules.text == text
        await bench.press(pilot, "space")
        assert bench.state.rules.text == text.replace('"int8"', '"int8", "float32"')
        assert [row.split()[1] for row in shown(bench.pane.relax)] == ["alignment"]
        await bench.press(pilot, "space")
        assert "nothing is rejected" in shown(bench.pane.relax)[0]
        await bench.press(pilot, "escape")
        assert bench.pane.view == "form" and pilot.app.focused is bench.pane.form
        await bench.press(pilot, "Z", "Z")
        assert bench.editor.text == text


async def test_all_of_it_is_one_step_of_undo_and_H_lists_every_severity(bench: Bench) -> None:
    text = RULES.replace("= 1 ", "= 16 ").replace('"float32"', '"int8"')
    bench.state.apply([RulesEdited(text=text, origin="small")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "right_square_bracket", "right_square_bracket")
        assert len(shown(bench.pane.relax)) == 1
        await bench.press(pilot, "H")
        assert len(shown(bench.pane.relax)) == 2
        await bench.press(pilot, "A")
        assert sum(len(bench.state.checks.findings(graph)) for graph in queries.level(bench.state)) == 0
        assert "no rule is broken" in shown(bench.pane.relax)[0]
        await bench.press(pilot, "Z")
        assert bench.editor.text == text


async def test_a_new_number_is_never_cut_for_a_name_or_a_list(bench: Bench) -> None:
    text = RULES.replace('"float32"', '"int8"') + (
        '\n[[rules]]\nkind = "matmul_tile"\nname = "a matmul tile with a long name"\nm = 2\nk = 4\nn = 2\n'
        'severity = "reject"\n[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm", "relu", "sum"]\n'
    )
    bench.state.apply([RulesEdited(text=text, origin="small")])
    async with bench.app.run_test(size=(48, 20)) as pilot:
        await pilot.pause()
        await bench.press(pilot, "right_square_bracket", "right_square_bracket")
        rows = [row for row in shown(bench.pane.relax) if "→" in row]
        assert len(rows) == 1 and "m 2 → 8, k 4 → 10, n 2 → 7" in rows[0] and "name" in rows[0]
        assert all(cell_len(row) <= bench.pane.relax.line_width for row in shown(bench.pane.relax))


async def test_an_empty_page_says_which_key_fills_it(bench: Bench) -> None:
    async with bench.app.run_test(size=(48, 20)) as pilot:
        await pilot.pause()
        await bench.press(pilot, "right_square_bracket", "right_square_bracket")
        assert shown(bench.pane.relax) == [" nothing is rejected: H lists the rest"]
        await bench.press(pilot, "H")
        assert shown(bench.pane.relax) == [" no rule is broken: A adds one"]
        bench.pane.show(State())
        assert "".join(shown(bench.pane.relax)) == " nothing compiled yet: r compiles the program"
