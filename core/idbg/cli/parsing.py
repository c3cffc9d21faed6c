"""Parse the command line: the parser of each command, the shared flags, and the messages for mistakes."""

import argparse
import difflib
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from idbg.cli import color, manual, verbs
from idbg.format.spelling import did_you_mean

DEFAULTS = {"json": False, "verbose": 0, "quiet": False, "color": "auto"}


class UsageProblem(Exception):
    """The command line is wrong. (`BadInput` takes as long to import as a parser.)"""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class HelpRequested(Exception):
    """--help or --version: print the text and exit."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Parser(argparse.ArgumentParser):
    """Accepts no abbreviated flags: a script that uses one breaks when another flag is added."""

    command: verbs.CliCommand | None = None
    _words: Sequence[str] = ()  # the words that are parsed

    def __init__(self, prog: str = "", description: str | None = None, **_: object) -> None:
        super().__init__(prog=prog, description=description, add_help=False, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]  # argparse's overloads say the same
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """As of argparse. Raises UsageProblem, HelpRequested."""
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raises UsageProblem. An unknown flag is reported before a missing argument: it may be the cause."""
        words = message.removeprefix("argument ")
        missing = "the following arguments are required: "
        if message.startswith(missing) or message.endswith(" is required"):
            flags = [each for each in self._words if each.startswith("-") and each != "-" and " " not in each]
            if unknown := [each for each in flags if each.partition("=")[0] not in self._option_string_actions]:
                raise _unexpected(unknown, self)
        if words.startswith(missing):
            words = f"{words.removeprefix(missing)} is missing"
        raise UsageProblem(words, f"see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        near = did_you_mean(str(value), map(str, action.choices))
        choose = f"choose from: {', '.join(map(str, action.choices))}"
        hint = f"{near} ({choose})" if near else choose
        raise argparse.ArgumentError(action, f"invalid choice {value!r}; {hint}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            kinds: dict[object, str] = {int: "a whole number", float: "a number"}
            if action.type not in kinds:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {kinds[action.type]}") from error


class _Help(argparse.Action):
    """Raises HelpRequested with the parser's page."""

    def __init__(self, option_strings: Sequence[str], page: Callable[[Parser], str], help: str, **_: object) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)
        self._page = page

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, Parser)
        raise HelpRequested(self._page(parser))


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line of `idbg`: `command` of the result is the command's module. Only that one is imported.

    Raises UsageProblem, HelpRequested.
    """
    shared = whole(top(), argv, argparse.Namespace(**DEFAULTS))
    if not shared.words:
        raise UsageProblem("no command is named", "idbg --help lists them; to begin: idbg tour")
    name, *rest = shared.words
    if name not in verbs.names():
        raise unknown(name)
    del shared.words
    return whole(of_command(name), rest, shared)


def whole(parser: Parser, argv: Sequence[str], namespace: argparse.Namespace | None = None) -> argparse.Namespace:
    """Parse all of the words. Raises UsageProblem for words that the parser does not take, HelpRequested."""
    args, extra = parser.parse_known_args(argv, namespace)
    if extra:
        raise _unexpected(extra, getattr(args, "parser", parser))
    assert isinstance(args, argparse.Namespace)
    return args


def check_least(args: argparse.Namespace, **least: float) -> None:
    """Raises BadInput for an argument that is below its least value, or not finite."""
    for name, bound in least.items():
        value = getattr(args, name)
        if value is not None and not bound <= value < math.inf:
            from idbg.schema.errors import BadInput

            option = name.replace("_", "-")
            raise BadInput(f"--{option} is {value:g}", hint=f"give a number from {bound:g} up")


def add_timeout(parser: argparse._ActionsContainer, seconds: float, words: str) -> None:
    """--timeout SECONDS; `words` say of what, and what becomes of it then."""
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=seconds, help=f"{words} ({seconds:g})")


def of_command(name: str) -> Parser:
    """The parser of one command, with the shared flags. Its result has `command` and `parser`."""
    command = verbs.load(name)
    parser = Parser(f"idbg {name}", getattr(command, "ABOUT", "") or f"{command.HELP[:1].upper()}{command.HELP[1:]}.")
    command.add_arguments(parser)
    for each in (parser, *under(parser)):
        each.command = command
        # resolve: the shared flag replaces one of the command
        group = each.add_argument_group(manual.SHARED, conflict_handler="resolve")
        add_shared(group, page_of, has_json=not getattr(command, "NO_JSON", ""))
    parser.set_defaults(command=command, parser=parser)
    return parser


def under(parser: Parser) -> Iterator[Parser]:
    """The parsers of a command's subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def add_shared(
    group: argparse._ArgumentGroup, page: Callable[[Parser], str], *, has_json: bool, has_version: bool = False
) -> None:
    """The flags of every command."""
    absent = argparse.SUPPRESS  # a value from before the command stays
    if has_json:
        group.add_argument(
            "--json", action="store_true", default=absent, help="write JSON to stdout: always one object"
        )
    group.add_argument(
        "-v", "--verbose", action="count", default=absent, help="write more to stderr; -vv: everything that is logged"
    )
    group.add_argument(
        "-q", "--quiet", action="store_true", default=absent, help="write no progress, notes or warnings to stderr"
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
    """--help, and --version."""
    if has_version:
        group.add_argument("-V", "--version", action=_Help, page=_version, help="print the version")
    group.add_argument("-h", "--help", action=_Help, page=page, help="print this page")


def top(*, with_words: bool = True) -> Parser:
    """The parser of the flags before a command; `words` of its result are the command and its arguments."""
    parser = Parser("idbg", manual.ABOUT)
    if with_words:
        parser.add_argument("words", nargs=argparse.REMAINDER)
    flags = parser.add_argument_group("flags")
    add_shared(flags, lambda _: top_page(), has_json=True, has_version=True)
    return parser


def top_page() -> str:
    """The page of `idbg --help`."""
    return manual.top_page(top(), color=_is_colored())


def page_of(parser: Parser) -> str:
    """The page of a command's --help."""
    assert parser.command is not None
    return manual.page(parser, parser.command, color=_is_colored())


def _is_colored() -> bool:
    return color.is_wanted(sys.stdout, os.environ, color.requested(sys.argv[1:]))


def _version(_: Parser) -> str:
    import idbg

    return f"idbg {idbg.__version__}\n"


def unknown(name: str) -> UsageProblem:
    if name.partition(":")[0].endswith(".py"):
        return UsageProblem(f"there is no command {name!r}", f"did you mean idbg run {name}?")
    hint = did_you_mean(name, verbs.names(), "idbg --help lists them", form="idbg {}".format, cutoff=0.5)
    return UsageProblem(f"there is no command {name!r}", hint)


def _unexpected(words: Sequence[str], parser: Parser) -> UsageProblem:
    """The problem with words that no argument takes; for a flag with the nearest known one."""
    flag = next((text.partition("=")[0] for text in words if text.startswith("-")), None)
    page = f"see {parser.prog} --help"
    if flag is None:
        return UsageProblem(f"unexpected argument {' '.join(map(repr, words))}", page)
    near = nearest_flag(flag, parser._option_string_actions)
    return UsageProblem(f"there is no flag {flag}", f"did you mean {near}?" if near else page)


def nearest_flag(flag: str, known: Iterable[str]) -> str:
    """A flag that begins with this one, else one that is spelled nearly the same; "" where there is none."""
    long = [each for each in known if each.startswith("--")]
    longer = [each for each in long if each.startswith(flag)] if flag.startswith("--") and len(flag) > 3 else []
    return next(iter(longer or difflib.get_close_matches(flag, long, 1)), "")
