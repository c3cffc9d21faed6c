"""Create the controllers and collect the actions of their keys."""

from idbg_tui.controllers.comparing import Comparing
from idbg_tui.controllers.compiling import Compiling
from idbg_tui.controllers.context import Actions, Context, Controller, Explaining
from idbg_tui.controllers.costing import Costing
from idbg_tui.controllers.deciding import Deciding
from idbg_tui.controllers.editing import Editing
from idbg_tui.controllers.files import Files
from idbg_tui.controllers.leaving import Leaving
from idbg_tui.controllers.listings import Listings
from idbg_tui.controllers.marks import Marks
from idbg_tui.controllers.measuring import Measuring
from idbg_tui.controllers.navigation import Navigation
from idbg_tui.controllers.pairing import Pairing
from idbg_tui.controllers.repros import Repros
from idbg_tui.controllers.standing_beside import StandingBeside
from idbg_tui.controllers.switching import Switching
from idbg_tui.controllers.targeting import Targeting
from idbg_tui.controllers.touring import Touring
from idbg_tui.controllers.trying import Trying
from idbg_tui.tour.strip import TourStrip


class Controllers:
    """All of them, each with what it needs."""

    def __init__(self, context: Context, keys: dict[str, str], editor: str, tour: TourStrip | None = None) -> None:
        """`keys` are those in force, by the names of keymap.KEYS; `editor` is the settings', or ""."""
        self.listings = Listings(context)
        self.compiling = Compiling(context)
        self.targeting = Targeting(context)
        self.switching = Switching(context)
        self.comparing = Comparing(context, self.listings, keys)
        self.measuring = Measuring(context, self.listings, keys)
        self.costing = Costing(context, self.listings, keys)
        self.deciding = Deciding(context, self.listings, keys)
        self.pairing = Pairing(context, self.listings)
        self.navigation = Navigation(context)
        self.marks = Marks(context, self.navigation)
        self.repros = Repros(context, self.listings)
        self.trying = Trying(context, self.listings)
        self.files = Files(context, editor)
        self.editing = Editing(context, editor)
        self.standing_beside = StandingBeside(context)
        self.leaving = Leaving(context, self.compiling)
        self.touring = Touring(context, tour)

    def why_off(self, name: str) -> str:
        """Why the key of this action does nothing where the cursor is, or ""."""
        explaining: tuple[Explaining, ...] = self.repros, self.files, self.deciding, self.pairing, self.navigation
        for controller in explaining:
            if (reason := controller.reasons().get(name)) is not None:
                return reason()
        return ""

    def actions(self) -> Actions:
        """What every key does that is theirs."""
        controllers: tuple[Controller, ...] = (
            *(self.compiling, self.targeting, self.comparing, self.measuring, self.costing),
            *(self.deciding, self.pairing, self.navigation, self.repros, self.files, self.leaving, self.touring),
            *(self.marks, self.editing),
        )
        return {name: do for controller in controllers for name, do in controller.actions().items()}
