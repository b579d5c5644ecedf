# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Two ends with an emulator between them, and processor time of its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Setting:
    """A link: the same in both directions. A rate of 0 is no limit."""

    rate_bit_per_s: float = 0.0
    delay_ms: int = 0
    queue_packets: int = 0
    floor: bool = True
    """True if figures without any link are worth having beside those of the link."""

    def name(self) -> str:
        """Return the link in words."""
        rate = f"{self.rate_bit_per_s / 1e6:g} Mbit/s" if self.rate_bit_per_s else "no rate limit"
        return f"{rate}, {self.delay_ms} ms"


@dataclass
class Ends:
    """Namespaces of a client and a server, by a process in each, and what stands between them."""

    client_pid: int
    server_pid: int
    server_address: str
    emulator_pids: Callable[[], list[int]] = list
    """Processes of the emulator; none where the kernel emulates."""

    def at_client(self, *words: object) -> list[str]:
        """Return the words that run a program at the client's end."""
        return _inside(self.client_pid, words)

    def at_server(self, *words: object) -> list[str]:
        """Return the words that run a program at the server's end."""
        return _inside(self.server_pid, words)

    def emulator_seconds(self) -> float:
        """Return the processor time in s that processes of the emulator have used so far."""
        return sum(_processor_seconds(pid) for pid in self.emulator_pids())


def _inside(pid: int, words: Sequence[object]) -> list[str]:
    return ["nsenter", "-t", str(pid), "-n", *map(str, words)]


def _processor_seconds(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def descendants(pid: int) -> list[int]:
    """Return `pid` and the processes below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo.extend(children.get(found[-1], []))
    return found


def wait_for(look: Callable[[], T | None], what: str, seconds: float = 20.0) -> T:
    """Return what `look` finds.

    Raises:
        RuntimeError: it found nothing in time.

    """
    until = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > until:
            message = f"{what}: nothing after {seconds:g} s"
            raise RuntimeError(message)
        time.sleep(0.02)
    return found


def process_in(namespace: str, among: list[int]) -> int | None:
    """Return the last of these processes whose network namespace is `namespace`, if any."""
    for pid in reversed(among):
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/{pid}/ns/net").readlink()) == namespace:
                return pid
    return None


@dataclass
class Started:
    """A process that ends with its descendants."""

    process: subprocess.Popen[bytes]
    folder: Path
    marks: dict[str, Path] = field(default_factory=dict)

    def pids(self) -> list[int]:
        """Return the process and those below it."""
        return descendants(self.process.pid)

    def namespace_of(self, end: str) -> int:
        """Return a process in the namespace whose name `mark` of that end wrote."""

        def look() -> int | None:
            if self.process.poll() is not None:
                message = f"the emulator ended: {(self.folder / 'messages').read_text()[-2000:]}"
                raise RuntimeError(message)
            text = self.marks[end].read_text().strip() if self.marks[end].exists() else ""
            return process_in(text, self.pids()) if text else None

        return wait_for(look, f"the {end}'s end of {self.process.args!r}")


def mark(folder: Path, end: str) -> str:
    """Return a shell command that writes which namespace it is in, and stays."""
    # No other process of it is left once the name is there, so that the one found stays.
    return f"name=$(readlink /proc/self/ns/net); echo $name > {folder / end}; exec sleep 600"


@contextlib.contextmanager
def started(words: Sequence[str], folder: Path, *ends: str) -> Iterator[Started]:
    """Start an emulator whose ends run what `mark` returns; end it afterwards."""
    with (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(
            list(words), stdin=subprocess.DEVNULL, stdout=messages, stderr=messages
        )
    one = Started(process, folder, {end: folder / end for end in ends})
    try:
        yield one
    finally:
        all_of_it = one.pids()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pid in all_of_it[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
