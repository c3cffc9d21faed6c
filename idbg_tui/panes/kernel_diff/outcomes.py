"""Which sign and which colour has an outcome?"""

from idbg.schema.attribution import AttributionKind
from idbg.schema.diff import Outcome

OK, BAD, UNSEEN = "clean", "reject", "dim"
STYLES: dict[Outcome, str] = {"passed": OK, "failed": BAD, "error": BAD, "empty": "fallback", "waiting": "dim"}
OWNER_STYLES: dict[AttributionKind, str] = {
    "compiler": BAD,
    "before": BAD,
    "graph": BAD,
    "precision": "fallback",
    "nobody": OK,
    "unjudged": "dim",
}
