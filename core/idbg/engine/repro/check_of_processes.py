"""How does a script tell that its process dies or hangs, or that a command of the user's own fails on it?"""

from idbg.engine.repro.check_pieces import Checked, called, compiled, guarded, indented, toml_of, under
from idbg.engine.repro.draft import Dies, Draft, FailsCommand, Hangs
from idbg.engine.repro.layout import quoted


def of_a_process(draft: Draft, check: Dies | Hangs) -> Checked:
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
    return Checked([alone, main], constants, ending)


def of_a_command(draft: Draft, check: FailsCommand) -> Checked:
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
    return Checked([run, main], constants, guarded("sys.exit(main())"))
