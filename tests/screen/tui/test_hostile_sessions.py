"""A saved session in which anything may stand is refused in a sentence, or shown.

IDBG_HOSTILE=200 pytest tests/screen/tui/test_hostile_sessions.py damages so many. A failure names its seed.
"""

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from idbg.config.settings import Settings
from idbg.schema.errors import OutputError
from idbg.session.session import Session
from tests.harness.recorded import RECORDINGS
from tests.harness.screen import ReadyApp, settle

NUMBERS: tuple[object, ...] = (-1, 0, 1, 2**31, 2**63 - 1, -(2**63), 2**63, 10**30, 10**400, 3.5, 1e308)
TEXTS: tuple[object, ...] = (
    *("", "\0", "/dev/zero", "x" * 100_000, "[bold", "[/]", "$x", "\x1b[2J", "a\nb\nc", "0/0", "../../etc", "漢" * 50),
)
KEYS = (
    *(
        "1",
        "j",
        "G",
        "3",
        "2",
        "full_stop",
        "l",
        "l",
        "4",
        "j",
        "5",
        "j",
        "enter",
        "6",
        "j",
        "enter",
        "7",
        "G",
        "8",
        "j",
        "9",
        "j",
        "enter",
        "escape",
    ),
    *("M", "escape", "P", "escape", "C", "escape", "1", "f", "v", "i", "u", "z", "right_square_bracket", "j", "z"),
    *("question_mark", "escape", "ctrl+p", "a", "escape"),
)
Place = tuple[str | int, ...]


def places(value: object, at: Place = ()) -> Iterator[Place]:
    """Where each plain value and each list stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict):
        yield at
    for key, inner in items:
        yield from places(inner, (*at, key))


def changed(chance: random.Random, value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return chance.choice([[], value * 2, value * 500 if len(value) < 10 else value * 2, value[:1], value[::-1]])
    numbers = isinstance(value, (int, float))
    return chance.choice(NUMBERS if numbers else TEXTS if isinstance(value, str) else NUMBERS + TEXTS)


def damaged(chance: random.Random) -> tuple[str, list[str]]:
    """A recorded session with one to five of its fields changed, in one place or in all of the kind; and which."""
    name = chance.choice(("attention", "planted", "benched", "mlp_train", "minified"))
    log = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]
    said = [name]
    for _ in range(chance.choice((1, 1, 2, 5))):
        event = chance.choice(log)
        kinds: dict[str, list[Place]] = defaultdict(list)
        for at in places(event):
            if at[-1] != "type":
                kinds[".".join("*" if isinstance(key, int) else key for key in at)].append(at)
        kind = chance.choice(sorted(kinds))
        found = kinds[kind] if chance.random() < 0.3 else [chance.choice(kinds[kind])]
        value = changed(chance, _inside(event, found[0]))
        for *above, last in found:
            _inside(event, tuple(above))[last] = value  # type: ignore[index]
        said.append(f"{event['type']}.{kind} x {len(found)} = {value!r:.40}")
    return "".join(json.dumps(event) + "\n" for event in log), said


def _inside(value: object, at: Place) -> object:
    for key in at:
        value = value[key]  # type: ignore[index]
    return value


def opened(folder: Path) -> Session | OutputError:
    try:
        return Session.open(folder)
    except OutputError as refused:
        return refused


async def refused_or_shown(folder: Path, seed: int) -> None:
    text, said = damaged(random.Random(seed))
    (folder / "events.jsonl").write_text(text)
    print(f"seed {seed}:", *said, sep="\n  ")  # pytest shows it where the test fails
    session = opened(folder)
    if isinstance(session, OutputError):
        assert session.hint and len(session.message) < 1000
        return
    app = ReadyApp(lambda: session, Settings())
    async with app.run_test(size=random.Random(seed).choice([(120, 40), (80, 24)])) as pilot:
        await settle(pilot)
        await pilot.press(*KEYS)
        await settle(pilot)
        assert app.is_running and app.return_code is None


@pytest.mark.parametrize("seed", range(4))
async def test_a_damaged_session_is_refused_or_shown(tmp_path: Path, seed: int) -> None:
    await refused_or_shown(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("IDBG_HOSTILE", "8"))))
async def test_damaged_sessions_are_refused_or_shown(tmp_path: Path, seed: int) -> None:
    await refused_or_shown(tmp_path, seed)
