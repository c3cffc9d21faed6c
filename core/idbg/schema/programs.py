"""Records of programs, of targets to compile them for and their settings, and of failures."""

import re
from typing import Literal

import msgspec

from idbg.schema.faults import CrashSite

Verdict = Literal["clean", "compiled", "violations", "empty", "wrong", "failed", "waiting"]
"""The result of a run. "clean": no rule is broken, and its numbers were compared and agree; "compiled": no rule is
broken, and its numbers were not compared; "empty": nothing was compiled; "wrong": its numbers differ; "waiting": not
known (yet).
"""
SUCCESSFUL: tuple[Verdict, ...] = ("clean", "compiled", "violations")
"""The verdicts of a run that nothing stopped."""

Plain = bool | int | float | str | None
OptionValue = Plain | list[Plain] | dict[str, Plain]
Float64On = Literal["auto", "cpu"]
"""Where a comparison's float64 is computed: on the program's device where that can, or on the CPU."""


class Program(msgspec.Struct, frozen=True):
    """What the user wants compiled: a file, or a module with `module`; `name` is a function in it ("" = find out).

    Of a test the name begins with a colon, so that its label is what pytest calls it: FILE.py::TEST. `is_trace`: `path`
    is what the job of an imported session left, and no program.
    """

    path: str
    name: str = ""
    module: bool = False
    argv: tuple[str, ...] = ()
    cwd: str = ""
    is_trace: bool = False

    @property
    def is_test(self) -> bool:
        """Whether pytest runs it, and not we."""
        return self.name.startswith(":")

    @property
    def label(self) -> str:
        """The program as the user names it on a command line: FILE.py, FILE.py:NAME or -m MODULE."""
        return ("-m " if self.module else "") + self.path + (f":{self.name}" if self.name else "")


NO_ACCELERATOR = "none"
"""The accelerator of a target for which nobody chose one."""
_RULES = re.compile(r"^\s*(\[\[\s*rules\s*\]\]|rules\s*=)", re.MULTILINE)

OUR_BACKENDS = ("aot", "mock", "inductor", "eager", "aoti")
"""Names that no other package's backend can take."""


class Target(msgspec.Struct, frozen=True):
    """What it is compiled for. `device` "" means where the program puts itself; `rules` is the accelerator's TOML text;
    `dynamic` is torch.compile's; `options` are Inductor config overrides, name -> value, or what the backend
    `options_for` takes (`idbg.config.options.family`). `float64` says where comparisons compute in it,
    and `float64_memory` how many bytes its waiting values may have there (0: what is free).

    `mode` is torch.compile's, `stance` torch.compiler.set_stance's ("": as the program has them); `settings` are
    torch's beside Inductor's, "dynamo.recompile_limit" -> value; `dynamic_sources` are traced as dynamic, as
    torch.compiler.config has them ("L['x']", "L['x']:0"). `cold`: nothing is found in any cache. `own_backend`: nobody
    chose `backend`, so a torch.compile of the program that names another backend gets that one.
    """

    backend: str = "aot"
    device: str = ""
    strict: bool = False
    dynamic: bool | None = None
    accelerator: str = "mock"
    rules: str = ""
    options: dict[str, OptionValue] = {}
    options_for: str = "inductor"
    float64: Float64On = "auto"
    float64_memory: int = 0
    mode: str = ""
    stance: str = ""
    settings: dict[str, OptionValue] = {}
    dynamic_sources: tuple[str, ...] = ()
    cold: bool = False
    own_backend: bool = False

    @property
    def has_rules(self) -> bool:
        """Whether there are rules to hold graphs against: without an accelerator none, unless somebody wrote some."""
        return self.accelerator != NO_ACCELERATOR or _RULES.search(self.rules) is not None


class LoweredNode(msgspec.Struct, frozen=True):
    """The node of a post-grad graph that Inductor lowered as it failed: its name, its op, and the user's line."""

    node: str
    op: str
    file: str = ""
    line: int = 0


class Failure(msgspec.Struct, frozen=True):
    """Why something did not work. `kind` says whose it is; `traceback` is kept only where it is the user's own code or
    torch's; `repro` is the path of a script that was written to show it again; `crash` says where it was, if a
    process or a kernel crashed; `lowering` is the node that was being lowered, if one was. `called_back`: the user's
    code that raised it was called by the compiler (a backend, a lowering, a pass, a fake kernel).
    """

    kind: Literal["user", "torch", "backend", "constraints", "worker", "cancelled", "input", "idbg"]
    message: str
    hint: str = ""
    type: str = ""
    traceback: str = ""
    file: str = ""
    line: int = 0
    repro: str = ""
    crash: CrashSite | None = None
    lowering: LoweredNode | None = None
    called_back: bool = False

    @property
    def first_line(self) -> str:
        """Of its message: a compiler's can be 100 kB."""
        return self.message.strip().partition("\n")[0]


FALLBACK = "Fallback"
"""The type of the failure of a graph, or a partition of one, that eager runs in place of the backend."""


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """On what, and from which checkout, a program was compiled.

    `compilers` by name ("g++", "cuda", "triton"), each with its version. `revision` is the commit of the checkout
    that the worker stood in, "" outside of one; `modified`: tracked files differ from it. `torch_build` is torch's own
    text of how it was built. `environment` are the variables that torch, its compilers and its math libraries read.
    What is not known is empty.
    """

    system: str = ""
    cpu: str = ""
    processors: int = 0
    compilers: dict[str, str] = {}
    revision: str = ""
    modified: bool = False
    torch_build: str = ""
    environment: dict[str, str] = {}


class Switch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One setting: `name` is a key of Target.options (of Inductor's config) or, where `place` says so, of
    Target.settings ("dynamo.…") or a field of the target ("mode"). `default` and `meaning` are torch's own words;
    `choices`: all that it can be, where these are few.
    """

    name: str
    place: Literal["option", "setting", "target"] = "option"
    group: str = ""
    type: str = ""
    default: OptionValue = None
    meaning: str = ""
    choices: tuple[OptionValue, ...] = ()
