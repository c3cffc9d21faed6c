"""What did the user type? Every command's parser, with the flags that all share, and what is said of a mistake."""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from idbg.cli import color, manual, verbs

DEFAULTS = {"json": False, "verbose": 0, "quiet": False, "color": "auto"}


class UsageProblem(Exception):
    """The command line is none of ours: a sentence, and what to do. (`BadInput` takes as long to load as a parser.)"""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class HelpAsked(Exception):
    """--help or --version: the text is for stdout, and nothing is done."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Parser(argparse.ArgumentParser):
    """Takes no abbreviation of a flag, as a script that has one breaks when another flag is added."""

    command: verbs.CliCommand | None = None
    _words: Sequence[str] = ()  # those that are parsed

    def __init__(self, prog: str = "", description: str | None = None, **_: object) -> None:
        super().__init__(prog=prog, description=description, add_help=False, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]  # argparse's overloads say the same
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """What argparse makes of them. Raises UsageProblem, HelpAsked."""
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raises UsageProblem. Where an argument is missing, a flag that there is not is why, or comes first."""
        words = message.removeprefix("argument ")
        missing = "the following arguments are required: "
        if message.startswith(missing) or message.endswith(" is required"):
            flags = [each for each in self._words if each.startswith("-") and each != "-" and " " not in each]
            if odd := [each for each in flags if each.partition("=")[0] not in self._option_string_actions]:
                raise _unexpected(odd, self)
        if words.startswith(missing):
            words = f"{words.removeprefix(missing)} is missing"
        raise UsageProblem(words, f"{self.prog} --help tells what can be given")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        near = difflib.get_close_matches(str(value), [str(each) for each in action.choices], 1)
        known = ", ".join(map(str, action.choices))
        said = f"did you mean {near[0]}? (there are: {known})" if near else f"there are: {known}"
        raise argparse.ArgumentError(action, f"{value!r} is none of them; {said}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            kinds: dict[object, str] = {int: "a whole number", float: "a number"}
            if action.type not in kinds:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {kinds[action.type]}") from error


class _Help(argparse.Action):
    """Raises HelpAsked with what `page` gives for the parser."""

    def __init__(self, option_strings: Sequence[str], page: Callable[[Parser], str], help: str, **_: object) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)
        self._page = page

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, Parser)
        raise HelpAsked(self._page(parser))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """A whole command line of ours: `command` is the command's module. Only that one is imported.

    Raises UsageProblem, HelpAsked.
    """
    before = top()
    given, odd = before.parse_known_args(argv, argparse.Namespace(**DEFAULTS))
    if odd:
        raise _unexpected(odd, before)
    if not given.words:
        raise UsageProblem("no command is named", "idbg --help lists all of them; to begin: idbg tour")
    name, *rest = given.words
    if name not in verbs.names():
        raise unknown(name)
    del given.words
    return whole(of_command(name), rest, given)


def whole(parser: Parser, argv: Sequence[str], given: argparse.Namespace | None = None) -> argparse.Namespace:
    """What a parser makes of all of it. Raises UsageProblem where it takes a part of it only, HelpAsked."""
    args, odd = parser.parse_known_args(argv, given)
    if odd:
        raise _unexpected(odd, getattr(args, "parser", parser))
    assert isinstance(args, argparse.Namespace)
    return args


def of_command(name: str) -> Parser:
    """The parser of one command, with the flags that all share; what it parses has `command` and `parser`."""
    command = verbs.load(name)
    parser = Parser(f"idbg {name}", getattr(command, "ABOUT", "") or f"{command.HELP[:1].upper()}{command.HELP[1:]}.")
    command.add_arguments(parser)
    for each in (parser, *under(parser)):
        each.command = command
        # resolve: a flag of its own gives way
        group = each.add_argument_group(manual.SHARED, conflict_handler="resolve")
        add_shared(group, page_of, has_json=not getattr(command, "NO_JSON", ""))
    parser.set_defaults(command=command, parser=parser)
    return parser


def under(parser: Parser) -> Iterator[Parser]:
    """The parsers of a command's own commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def add_shared(
    group: argparse._ArgumentGroup, page: Callable[[Parser], str], *, has_json: bool, has_version: bool = False
) -> None:
    """The flags that every command has."""
    absent = argparse.SUPPRESS  # they may stand before the command, and then keep their value
    if has_json:
        group.add_argument("--json", action="store_true", default=absent, help="as JSON on stdout: one object, always")
    group.add_argument(
        "-v", "--verbose", action="count", default=absent, help="tell more on stderr; -vv tells all that is logged"
    )
    group.add_argument(
        "-q", "--quiet", action="store_true", default=absent, help="no progress, notes or warnings on stderr"
    )
    group.add_argument(
        "--color",
        metavar="WHEN",
        choices=color.WHEN,
        default=absent,
        help="auto (on a terminal, unless NO_COLOR is set), always or never",
    )
    add_pages(group, page, has_version=has_version)


def add_pages(group: argparse._ArgumentGroup, page: Callable[[Parser], str], *, has_version: bool) -> None:
    """The flags that print something and do nothing."""
    if has_version:
        group.add_argument("-V", "--version", action=_Help, page=_version, help="print the version")
    group.add_argument("-h", "--help", action=_Help, page=page, help="print this page")


def top() -> Parser:
    """What stands before a command: its `words` are the command and its own."""
    parser = Parser("idbg", manual.ABOUT)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    flags = parser.add_argument_group("flags")
    add_shared(flags, lambda _: top_page(), has_json=True, has_version=True)
    return parser


def top_page() -> str:
    """What `idbg --help` prints."""
    return manual.top_page(top(), color=_is_colored())


def page_of(parser: Parser) -> str:
    """What --help prints of a command."""
    assert parser.command is not None
    return manual.page(parser, parser.command, color=_is_colored())


def _is_colored() -> bool:
    return color.is_wanted(sys.stdout, os.environ, color.asked(sys.argv[1:]))


def _version(_: Parser) -> str:
    import idbg

    return f"idbg {idbg.__version__}\n"


def unknown(name: str) -> UsageProblem:
    if name.partition(":")[0].endswith(".py"):
        return UsageProblem(f"there is no command {name!r}", f"did you mean idbg run {name}?")
    near = difflib.get_close_matches(name, verbs.names(), 1, 0.5)
    hint = f"did you mean idbg {near[0]}?" if near else "idbg --help lists all of them"
    return UsageProblem(f"there is no command {name!r}", hint)


def _unexpected(odd: Sequence[str], parser: Parser) -> UsageProblem:
    """Of what no argument takes: a flag's nearest is named."""
    flag = next((text.partition("=")[0] for text in odd if text.startswith("-")), None)
    more = f"{parser.prog} --help tells what can be given"
    if flag is None:
        return UsageProblem(f"nothing takes {' '.join(map(repr, odd))}", more)
    near = nearest_flag(flag, parser._option_string_actions)
    return UsageProblem(f"there is no flag {flag}", f"did you mean {near}?" if near else more)


def nearest_flag(flag: str, known: Iterable[str]) -> str:
    """The flag that was meant: one that begins so, else one that is spelled nearly so; "" where there is none."""
    long = [each for each in known if each.startswith("--")]
    begun = [each for each in long if each.startswith(flag)] if flag.startswith("--") and len(flag) > 3 else []
    return next(iter(begun or difflib.get_close_matches(flag, long, 1)), "")
