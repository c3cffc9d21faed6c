"""Remember the cache keys of earlier compiles, of this process and of others.

They are in a file of idbg's own cache, as the keys in Inductor's are hashes. It is read at the first miss and written
at a run's end; what another process writes at the same moment may be lost: then a miss has no near key.
"""

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from idbg.analysis.decisions.caches import Key, is_at
from idbg.config import places
from idbg.format.amounts import day
from idbg.schema.decisions.inductor import KeyPart
from idbg.whole_file import write_whole

MOST_KEYS = 200
MOST_SETS = 20  # of all settings of Inductor, which are the same for most keys; some 60 KB each
MOST_LIKE = 40  # keys that a new one is held against, each in 0.2 ms
PROCESS = f"{os.getpid()}-{time.time():.3f}"


class Remembered(msgspec.Struct, frozen=True):
    """A key as it is kept: its settings are a set of those that the file holds once for all keys, by its digest."""

    key: str
    place: str
    process: str
    run: int
    frame: str
    at: float
    settings: str
    parts: tuple[KeyPart, ...]

    def when(self) -> str:
        """Which compile it was, for whoever reads of it."""
        if self.process == PROCESS:
            return f"run {self.run}, frame {self.frame}"
        return f"frame {self.frame} of an earlier process, {day(self.at)}"


class Kept(msgspec.Struct):
    """What the file holds; of one key only the last compile that had it. Sets are most of it, and are decoded when one
    is compared.
    """

    keys: dict[str, Remembered] = {}
    sets: dict[str, msgspec.Raw] = {}


@dataclass
class SeenKeys:
    """The keys that were seen before. Whatever is wrong with the file, it is as if it was not there."""

    path: Path = field(default_factory=lambda: places.cache() / "keys.json")
    _new: Kept = field(default_factory=Kept)

    @cached_property
    def _old(self) -> Kept:
        return self._read()

    def _read(self) -> Kept:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self.path.read_bytes(), type=Kept)
        return Kept()

    def like(self, key: Key) -> list[Key]:
        """Those of the same place, or of a graph with the same code: the last MOST_LIKE, the last one last."""
        code = key.parts.get("gm")
        like = [
            (each, kept.sets[each.settings])
            for kept in (self._old, self._new)
            for each in kept.keys.values()
            if (is_at(each.place, key) or code in each.parts) and each.settings in kept.sets
        ][-MOST_LIKE:]
        raw = {each.settings: settings for each, settings in like}
        sets = {
            digest: {part.name: part for part in msgspec.json.decode(settings, type=tuple[KeyPart, ...])}
            for digest, settings in raw.items()
        }
        return [
            Key(each.key, each.place, each.when(), {part.name: part for part in each.parts} | sets[each.settings])
            for each, _ in like
        ]

    def add(self, key: Key, run: int, frame: str) -> None:
        """Remember a key, whether it was found or not."""
        settings = tuple(part for part in key.parts.values() if part.name.startswith("inductor_config"))
        digest = hashlib.blake2b("".join(part.hash for part in settings).encode(), digest_size=12).hexdigest()
        others = tuple(part for part in key.parts.values() if not part.name.startswith("inductor_config"))
        self._new.keys.pop(key.key, None)
        self._new.keys[key.key] = Remembered(key.key, key.place, PROCESS, run, frame, time.time(), digest, others)
        self._new.sets[digest] = msgspec.Raw(msgspec.json.encode(settings))

    def save(self) -> None:
        """Write what was added, beside what others wrote meanwhile."""
        if not self._new.keys:
            return
        there = self._read()
        keys = {key: each for key, each in there.keys.items() if key not in self._new.keys} | self._new.keys
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, msgspec.json.encode(_bounded(Kept(keys, there.sets | self._new.sets))))


def _bounded(kept: Kept) -> Kept:
    """The last keys, and the sets that these have."""
    keys = list(kept.keys.values())[-MOST_KEYS:]
    sets = list(dict.fromkeys(each.settings for each in reversed(keys)))[:MOST_SETS]
    return Kept(
        {each.key: each for each in keys if each.settings in sets}, {digest: kept.sets[digest] for digest in sets}
    )
