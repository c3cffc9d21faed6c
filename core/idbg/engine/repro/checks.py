"""Write the check of a script: the code that recognizes its failure, for each kind."""

from idbg.engine.repro.check_pieces import (
    CheckCode,
    called,
    compiled,
    faults_of,
    guarded,
    indented,
    says,
    toml_of,
    under,
)
from idbg.engine.repro.draft import MARK, Breaks, Dies, Differs, Draft, FailsCommand, Hangs, Raises
from idbg.engine.repro.layout import quoted
from idbg.engine.repro.value_check import of_values, of_what_runs


def lines_of(draft: Draft) -> CheckCode:
    """The check of a draft as Python."""
    match draft.check:
        case Raises() as check:
            return _raises(draft, check)
        case Breaks() as check:
            return _breaks(draft, check)
        case Differs() as check:
            return of_values(draft, check)
        case Dies() | Hangs() as check:
            return of_a_process(draft, check)
        case FailsCommand() as check:
            return of_a_command(draft, check)
    return of_what_runs(draft)


def _raises(draft: Draft, check: Raises) -> CheckCode:
    names, values = ["ERROR", "MESSAGE"], [check.error, check.fragment]
    has_message = says(check.error, check.fragment, "MESSAGE in {}")
    same = [f"    if any({has_message} for link in links if type(link).__name__ == ERROR):"]
    if not check.fragment and check.function:
        names, values = ["ERROR", "FUNCTION"], [check.error, check.function]
        same = [
            "    stacks = [traceback.extract_tb(link.__traceback__) for link in links if type(link).__name__ == ERROR]",
            "    if any(frame.name == FUNCTION for stack in stacks for frame in stack[-1:]):",
        ]
    constants = [*toml_of(draft), f"{', '.join(names)} = {', '.join(map(quoted, values))}", *faults_of(check.fragment)]
    main = [
        "def main():",
        "    try:",
        *indented(called(draft), 2),
        "    except Exception as error:",
        "        traceback.print_exc()",
        "        return verdict(error)",
        "    return 0",
    ]
    verdict = [
        "def verdict(error):",
        "    links = [error]",
        "    while link := links[-1].__cause__ or links[-1].__context__:",
        "        links.append(link)",
        *same,
        f'        print("REPRODUCED", {", ".join(names)})',
        "        return 1",
        '    root = getattr(error, "inner_exception", error)',
        '    print(f"OTHER {type(root).__name__}: {str(root).strip().partition(chr(10))[0]}")',
        "    return 2",
    ]
    return CheckCode([main, verdict], constants)


def _breaks(draft: Draft, check: Breaks) -> CheckCode:
    where = {
        "node": [
            "    arguments = [each for each in found if backend.is_argument(each)]",
            "    found = [each for each in found if each.line in lines_of_node() and each not in arguments]",
        ],
        "input": ["    found = [each for each in found if backend.is_argument(each)]"],
        "graph": [],
    }[check.subject]
    call = under(draft.modes, ["torch.compile(program, backend=backend)(*inputs())"])
    main = [
        "def main():",
        '    backend = idbg.backend("mock", strict=False, accelerator=RULES)',
        "    try:",
        *indented(call, 2),
        "    except Exception:",
        "        traceback.print_exc()  # the rules were checked before it ran",
        f"    found = [each for each in backend.violations if each.rule == {quoted(check.rule)}]",
        *where,
        "    for violation in found:",
        '        print(f"REPRODUCED {violation}")',
        "    return 1 if found else 0",
    ]
    marked = [
        "def lines_of_node():",
        '    """The lines of the node: another, or an argument, may break the rule as well."""',
        '    lines = Path(__file__).read_text(encoding="utf-8").splitlines()',
        f'    return [number for number, line in enumerate(lines, 1) if line.endswith("{MARK}")]',
    ]
    blocks = [main, marked] if check.subject == "node" else [main]
    return CheckCode(blocks, toml_of(draft))


def of_a_process(draft: Draft, check: Dies | Hangs) -> CheckCode:
    """A script that runs itself in a process of its own, with `--alone`."""
    hangs = isinstance(check, Hangs)
    constants = [*toml_of(draft), f"SECONDS = {check.seconds:g}"]
    if isinstance(check, Dies):
        constants[-1] = f"SIGNAL, SECONDS = {quoted(check.signal)}, {check.seconds:g}"
    alone = ["def alone():", *indented(called(draft))]
    overdue = 'print(f"REPRODUCED hang: it has not ended after {SECONDS} s")'
    main = [
        "def main():",
        "    try:",
        '        status = subprocess.run([sys.executable, __file__, "--alone"], timeout=SECONDS).returncode',
        "    except subprocess.TimeoutExpired:",
        f"        {overdue if hangs else overdue.replace('REPRODUCED', 'OTHER')}",
        f"        return {1 if hangs else 2}",
        '    died = signal.Signals(-status).name if status < 0 else ""',
    ]
    if not hangs:
        main += [
            "    if died == SIGNAL:",
            '        print("\\nREPRODUCED", died)  # a process that dies may leave a line half-printed',
            "        return 1",
        ]
    main += ["    if died:", '        print("OTHER", died)', "    return 2 if status else 0"]
    ending = ['    if "--alone" not in sys.argv:', "        sys.exit(main())", *guarded("alone()")]
    return CheckCode([alone, main], constants, ending)


def of_a_command(draft: Draft, check: FailsCommand) -> CheckCode:
    """A script that hands itself to the command; that may import `program`, `inputs` and `run` from it."""
    command = f"[{', '.join(map(quoted, check.command))}]"
    run = ["def run():", *indented(under(draft.modes, [f"return {compiled(draft)}(*inputs())"]))]
    main = [
        "def main():",
        '    if "REPRO_IN_CHECK" in os.environ:  # the command runs this script',
        "        run()",
        "        return 0",
        '    status = subprocess.run([*COMMAND, __file__], env={**os.environ, "REPRO_IN_CHECK": "1"}).returncode',
        "    if status:",
        '        print("REPRODUCED" if status == STATUS else "OTHER", f"exit status {status}")',
        "    return 1 if status == STATUS else 2 if status else 0",
    ]
    constants = [*toml_of(draft), f"COMMAND, STATUS = {command}, {check.status}"]
    return CheckCode([run, main], constants, guarded("sys.exit(main())"))
