"""Apply the variables MOCK_ALIGNMENT and MOCK_MAX_MEMORY to the preset `mock`."""

from collections.abc import Mapping

from idbg.accelerators import edit
from idbg.accelerators.tables import LARGEST_NUMBER
from idbg.schema.errors import SettingsError


def applied(text: str, environ: Mapping[str, str]) -> str:
    """The text with MOCK_ALIGNMENT and MOCK_MAX_MEMORY applied. Raises SettingsError for a bad value."""
    if alignment := environ.get("MOCK_ALIGNMENT", "").strip():
        text = edit.set_first(text, "alignment", "multiple", _number("MOCK_ALIGNMENT", alignment, least=1))
    if memory := environ.get("MOCK_MAX_MEMORY", "").strip():
        limit = float("inf") if memory.lower() == "inf" else _number("MOCK_MAX_MEMORY", memory, least=0)
        text = edit.set_first(text, "memory", "max_bytes", limit)
    return text


def _number(variable: str, value: str, *, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if not least <= number <= LARGEST_NUMBER:
        inf = " or inf" if variable == "MOCK_MAX_MEMORY" else ""
        raise SettingsError(
            f"{variable} is {value!r}", hint=f"set it to a whole number, {least} or more{inf}, or unset it"
        )
    return number
