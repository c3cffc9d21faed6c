"""Which sign and which colour has an outcome?"""

from idbg.schema.diff import Outcome
from idbg.schema.owner import OwnerKind
from idbg.schema.programs import Verdict

OK, BAD, UNSEEN = "clean", "reject", "dim"
LOOKS: dict[Outcome, Verdict] = {
    "passed": "clean",
    "failed": "wrong",
    "error": "failed",
    "empty": "empty",
    "waiting": "waiting",
}
STYLES: dict[Outcome, str] = {"passed": OK, "failed": BAD, "error": BAD, "empty": "fallback", "waiting": "dim"}
OWNER_LOOKS: dict[OwnerKind, Verdict] = {
    "compiler": "wrong",
    "before": "wrong",
    "graph": "wrong",
    "precision": "violations",
    "nobody": "clean",
    "unjudged": "waiting",
}
OWNER_STYLES: dict[OwnerKind, str] = {
    "compiler": BAD,
    "before": BAD,
    "graph": BAD,
    "precision": "fallback",
    "nobody": OK,
    "unjudged": "dim",
}
