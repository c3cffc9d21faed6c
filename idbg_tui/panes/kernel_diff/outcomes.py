"""Which sign and which colour has an outcome?"""

from idbg.schema.diff import Outcome
from idbg.schema.owner import OwnerKind

OK, BAD, UNSEEN = "clean", "reject", "dim"
STYLES: dict[Outcome, str] = {"passed": OK, "failed": BAD, "error": BAD, "empty": "fallback", "waiting": "dim"}
OWNER_STYLES: dict[OwnerKind, str] = {
    "compiler": BAD,
    "before": BAD,
    "graph": BAD,
    "precision": "fallback",
    "nobody": OK,
    "unjudged": "dim",
}
