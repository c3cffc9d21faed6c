"""Start the server that forks processes, exchange messages with it, and end it."""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from select import select

from idbg.engine.minify.forks.processes import end_all, process

SERVER = "idbg.engine.minify.forks.server"
START_SECONDS = 300.0  # torch from a cold disk
LEAVE_SECONDS = 2.0  # for the server to end its processes itself
LARGEST = 1 << 17  # bytes of a message
Message = Mapping[str, object]


class ServerGone(Exception):
    """The server ended, or its socket broke."""


class Server:
    """One server. If `warm`, it has torch and the package of `backend` imported when it is
    `ready`. The `variables` are added to the environment of
    its scripts. Its stderr goes to `log`.
    """

    def __init__(
        self,
        cwd: Path,
        environment: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        warm: bool,
        log: Path,
        backend: str = "",
    ) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.warm = warm
        self._channel = ours
        how = ("warm" if warm else "cold", json.dumps(dict(variables)), backend)
        with its, log.open("ab") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", SERVER, str(its.fileno()), *how],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                cwd=cwd,
                env=environment,
                pass_fds=(its.fileno(),),
                start_new_session=True,
            )
        self._ready = False

    @property
    def file(self) -> int:
        """A descriptor that is readable when a message has come."""
        return self._channel.fileno()

    def ready(self) -> None:
        """Wait until it can fork. Raises ServerGone if it cannot fork, or ends."""
        if not self._ready:
            self._ready = bool(self.receive(START_SECONDS).get("ready"))
        if not self._ready:
            raise ServerGone("a device's driver was initialized in it")

    def send(self, message: Message, *files: int) -> None:
        """Send a message and descriptors. Raises ServerGone."""
        try:
            socket.send_fds(self._channel, [json.dumps(message).encode()], list(files))
        except OSError as error:
            raise ServerGone(str(error)) from error

    def receive(self, seconds: float) -> Message:
        """The next message. Raises ServerGone, also if none comes in time."""
        try:
            data = self._channel.recv(LARGEST) if select([self._channel], [], [], seconds)[0] else b""
        except OSError as error:
            raise ServerGone(str(error)) from error
        if not data:
            raise ServerGone("it ended" if self.process.poll() is not None else "it does not answer")
        message: Message = json.loads(data)
        return message

    def end(self) -> None:
        """End it and all its processes: it ends itself when its socket closes, and is killed if it does not."""
        here = process(self.process.pid)  # it is not reaped, so that its number is not reused
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LEAVE_SECONDS)
        if self.process.returncode is None and here is not None:
            end_all(here)
        self.process.kill()
        self.process.wait()
