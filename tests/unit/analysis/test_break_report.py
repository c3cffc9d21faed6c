"""What is read of torch's reports of breaks, and of its texts of guards that failed."""

import pytest

from idbg.analysis.decisions.break_report import read_break
from idbg.analysis.decisions.guards import read_failed
from idbg.schema.decisions.dynamo import StackLine

REPORT = """\
Graph break in user code at /a/m.py:16
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with these arguments
  Hint: Avoid calling it.
  Hint: Report an issue.

  Developer debug context: builtin print

 For more details about this graph break, please visit: https://meta-pytorch.github.io/gb/gb0059.html

User code traceback:
  File "<string>", line 1, in <module>
  File "/x/idbg/worker/main.py", line 109, in main
    _run(request, jobs, pipe.emit)
  File "/a/m.py", line 20, in f
    z = inner(x)
        ^^^^^^^^
  File "/a/m.py", line 16, in inner
    print('hi')

Traceback (most recent call last):
  File "/torch/_dynamo/symbolic_convert.py", line 1105, in wrapper
    return inner_fn(self, inst)
torch._dynamo.exc.Unsupported: Failed to trace builtin operator
"""


def test_a_report_gives_title_explanation_hints_page_and_the_users_stack():
    broke = read_break(REPORT, "0/0")
    assert (broke.file, broke.line, broke.frame, broke.way) == ("/a/m.py", 16, "0/0", "call")
    assert broke.kind == "Failed to trace builtin operator"
    assert broke.explanation.splitlines()[1:] == ["with these arguments"]
    assert broke.reason == f"{broke.kind}: {broke.explanation.splitlines()[0]}"
    assert broke.hints == ("Avoid calling it.", "Report an issue.")
    assert broke.context == "builtin print"
    assert broke.page.endswith("gb0059.html")
    assert broke.stack == (
        StackLine("/a/m.py", 20, "f", "z = inner(x)"),
        StackLine("/a/m.py", 16, "inner", "print('hi')"),
    )


def test_a_title_in_lower_case_is_one_too():
    title = "logging.Logger method not supported for non-export cases"
    assert read_break(REPORT.replace("Failed to trace builtin operator\n  E", f"{title}\n  E")).kind == title


def test_of_a_break_while_a_break_is_handled_the_first_counts():
    second = (
        "\n*** While handling this graph break, another graph break occurred: ***\n\nOther title\n  Explanation: no\n"
    )
    text = REPORT.replace("\nUser code traceback:", second + "\nUser code traceback:")
    assert read_break(text).kind == "Failed to trace builtin operator"


@pytest.mark.parametrize("text", ["", "Graph break in user code at m.py:3\n", "something else entirely"])
def test_a_report_of_another_form_is_still_a_break_with_a_reason(text: str):
    broke = read_break(text)
    assert broke.reason == text.strip()[:200]
    assert broke.way == ""


LINE = '  # return x * n  # m.py:3 in f\nUser stack trace:\n  File "/a/m.py", line 3, in f\n    return x * n'


@pytest.mark.parametrize(
    ("text", "kind", "source", "what", "expected", "actual", "ask"),
    [
        ("0/0: L['n'] == 3" + LINE, "value", "L['n']", "", "3", "", "L['n']"),
        ("0/0: n == 3", "value", "n", "", "3", "", "n"),
        ("0/1: len(L['l']) == 1" + LINE, "length", "L['l']", "length", "1", "", "len(L['l'])"),
        ("0/0: len(L['d']) != 1", "length", "L['d']", "length", "1", "", "len(L['d'])"),
        ("0/0: ___dict_contains('a', L['d'])", "key", "L['d']", "", "a key 'a'", "", "list(L['d'])"),
        ("0/0: not ___dict_contains('a', L['d'])", "key", "L['d']", "", "not a key 'a'", "", "list(L['d'])"),
        (
            "0/0: tensor 'L['x']' size mismatch at index 0. expected 2, actual 3",
            "size",
            "L['x']",
            "size 0",
            "2",
            "3",
            "",
        ),
        ("0/0: tensor 'x' rank mismatch. expected 1, actual 2", "size", "x", "rank", "1", "2", ""),
        (
            "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 8. Guard failed on a parameter, consider "
            "using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.",
            *("size", "x", "size 0", "4", "8", ""),
        ),
        (
            "0/0: tensor 'x' dtype mismatch. expected Float, actual Double",
            "tensor",
            "x",
            "dtype",
            "Float",
            "Double",
            "",
        ),
        (
            "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0",
            *("tensor", "x", "requires_grad", "False", "True", ""),
        ),
        (
            "0/0: expected type of 'x' to be <class 'torch.Tensor'>, but found <class 'torch.nn.parameter.Parameter'>",
            *("type", "x", "", "Tensor", "Parameter", ""),
        ),
        (
            "0/0: ___check_type_id(L['l'], 140), type=<class 'list'>  # x + len(l)  # m.py:3 in f (HINT: type list)",
            *("type", "L['l']", "", "list", "", "type(L['l'])"),
        ),
        (
            "0/0: ___check_obj_id(L['f'].__code__, 14), type=<class 'code'>",
            *("identity", "L['f'].__code__", "", "the same code", "", "L['f'].__code__"),
        ),
        (
            "0/0: ___check_obj_id(L['f'].__code__, 14), type=<code object f at 0x7f, file \"/a/m.py\", line 3>  # f(x)",
            *("identity", "L['f'].__code__", "", "the same code", "", "L['f'].__code__"),
        ),
        ("0/0: GLOBAL_STATE changed: grad_mode ", "state", "grad_mode", "", "", "", "grad_mode"),
        (
            "0/0: 2 <= L['x'].size()[0] <= 5  # x.shape[0] > 5  # m.py:3 in f",
            *("size", "L['x']", "size 0", "2 <= L['x'].size()[0] <= 5", "", "L['x'].size()[0]"),
        ),
        ("0/0: words of a torch to come", "other", "", "", "", "", ""),
    ],
)
def test_a_failed_guard_is_read(text: str, kind: str, source: str, what: str, expected: str, actual: str, ask: str):
    read = read_failed(text)
    failed = read.failed
    assert (failed.kind, failed.source, failed.what, failed.expected, failed.actual, read.ask) == (
        *(kind, source, what, expected, actual),
        ask,
    )
    assert failed.against == text[:3]
    if LINE in text:
        assert (failed.file, failed.line, failed.stack[0].code) == ("/a/m.py", 3, "return x * n")
