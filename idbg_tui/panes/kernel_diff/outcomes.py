"""Which sign and which colour has an outcome?"""

from idbg.schema.diff import Outcome
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
