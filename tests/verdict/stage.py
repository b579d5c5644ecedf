# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Stage for a disturbed run: the command, the programs at its ends, and the disturbances.

Everything that is started here ends here: each run and each disturbing program is a process of this
one, and a run takes its own processes down with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verdict.truth import Truth, of_datagrams

NOBODY = 65534
PATIENCE_S = 40.0
"""A run that takes longer than this hangs, and is killed."""
HERE = Path(__file__).parent


class NotHere(Exception):  # noqa: N818
    """A distortion needs something that this machine does not have."""


@dataclass(frozen=True)
class Sender:
    """Parameters of the sender of datagrams."""

    count: int = 120
    interval_s: float = 0.02
    bytes: int = 300
    burst: int = 1


@dataclass(frozen=True)
class Receiver:
    """Parameters of their receiver."""

    buffer_bytes: int = 0
    """The socket's receive buffer; 0 for one in which all datagrams have room."""
    stall_after: int = 0
    stall_s: float = 0.0


@dataclass
class Seen:
    """Result of a disturbed run."""

    truth: Truth
    grade: str
    codes: list[str]
    first_reason: str = ""
    status: int = 0
    note: str = ""
    folder: Path | None = None

    @property
    def trusted(self) -> bool:
        """True if the run's verdict is that it can be trusted."""
        return self.grade == "trusted"


def grade_of(folder: Path) -> tuple[str, list[str], str]:
    """Return the verdict of a run, the codes of its reasons and the first reason's text."""
    try:
        manifest = json.loads((folder / "run.json").read_text())
    except OSError:
        return "none", [], "no run.json"
    results = manifest.get("results")
    if manifest.get("status") == "running" or not results:
        return str(manifest.get("status", "none")), [], "the run did not end by itself"
    verdict = results["verdict"]
    codes = [str(reason["code"]) for reason in verdict["reasons"]]
    first = str(verdict["reasons"][0]["what"]) if verdict["reasons"] else ""
    return str(verdict["grade"]), codes, first


class Running:
    """An active run."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder

    def descendants(self) -> list[int]:
        """Return the processes of the run, the foreground's children first."""
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop(0)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    children = [int(word) for word in task.read_text().split()]
                    found += children
                    waiting += children
        return found

    def engine(self) -> int:
        """Return the engine's process."""
        return self._await(lambda: next(iter(self.descendants()), None), "the engine")

    def program(self, name: str) -> int:
        """Return the process in which one of the programs runs at an end."""

        def look() -> int | None:
            for pid in self.descendants():
                with contextlib.suppress(OSError):
                    line = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                    # The engine's own line holds the client's.
                    if "python" in line[0] and line[2:3] == [name]:
                        return pid
            return None

        return self._await(look, f"the program {name}")

    def _await(self, look: Callable[[], int | None], what: str) -> int:
        end = time.monotonic() + 15
        while time.monotonic() < end and self.process.poll() is None:
            if pid := look():
                return pid
            time.sleep(0.005)
        raise NotHere(f"{what} was not found in the run")

    def await_traffic(self) -> None:
        """Wait until the first datagrams have been sent."""
        end = time.monotonic() + 15
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if (self.folder.parent / "received").stat().st_size > 0:
                    return
            time.sleep(0.005)

    @property
    def over(self) -> bool:
        """True if it has ended."""
        return self.process.poll() is not None

    def stop(self, pid: int, seconds: float) -> None:
        """Stop a process of the run for a while."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            pause(seconds)
            os.kill(pid, signal.SIGCONT)

    def inside(self, pid: int, *words: str) -> None:
        """Run a command in the network namespace of a process of the run."""
        line = ["nsenter", "-t", str(pid), "-n", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=10)
        if done.returncode:
            raise NotHere(f"{shlex.join(words)}: {done.stderr.strip()}")


def pause(seconds: float) -> None:
    """Sleep, exactly for short times."""
    if seconds >= 0.002:
        time.sleep(seconds)
        return
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


Disturb = Callable[[Running], None]


@dataclass
class Stage:
    """A folder, a command and a Python, and who runs them."""

    engine: Path
    python: str
    root: Path
    nobody: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> list[str]:
        """The words that change the user."""
        if not self.nobody:
            return []
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env"]

    def folder(self) -> Path:
        """Return a fresh folder that everybody may write to."""
        path = Path(tempfile.mkdtemp(prefix="case-", dir=self.root))
        path.chmod(0o1777)
        return path

    def program(self, *words: object) -> list[str]:
        """Return the words that start one of the programs."""
        return [self.python, str(self.root / "programs.py"), *map(str, words)]

    @contextlib.contextmanager
    def running(
        self,
        folder: Path,
        options: list[str],
        server: list[str] | None,
        client: list[str],
        environment: dict[str, str] | None = None,
    ) -> Iterator[Running]:
        """Start a run; at the end it is killed if it is still active."""
        out = folder / "run"
        words = [*self.prefix, str(self.engine), "exec", "--quiet", "--out", str(out), *options]
        if server:
            words += ["--server", "exec " + shlex.join(server)]
        errors = (folder / "errors").open("w")
        process = subprocess.Popen(
            [*words, "--", *client],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            text=True,
            cwd=folder,
            start_new_session=True,
            env={
                **{name: text for name, text in os.environ.items() if "AIRPATH" not in name},
                "TMPDIR": str(folder),
                "XDG_DATA_HOME": str(folder / "data"),
                **self.environment,
                **(environment or {}),
            },
        )
        running = Running(process, out)
        try:
            yield running
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            (folder / "hung").touch()
        finally:
            errors.close()
            if process.poll() is None:
                # What was stopped would not hear of it.
                for pid in running.descendants():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                process.kill()
                process.wait()

    @contextlib.contextmanager
    def beside(self, *words: object, prefix: tuple[str, ...] = ()) -> Iterator[None]:
        """Have a program run next to the run."""
        process = subprocess.Popen([*prefix, *self.program(*words)], stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def datagrams(
        self,
        disturb: Disturb | None = None,
        *,
        port: str = "packet",
        options: tuple[str, ...] = (),
        delay_ms: float = 20.0,
        sender: Sender | None = None,
        receiver: Receiver | None = None,
        environment: dict[str, str] | None = None,
        client_prefix: tuple[str, ...] = (),
        server_prefix: tuple[str, ...] = (),
        folder: Path | None = None,
        scenario: Path | None = None,
    ) -> Seen:
        """Send datagrams from the client to the server over a link of a fixed delay."""
        sender, receiver = sender or Sender(), receiver or Receiver()
        folder = folder or self.folder()
        rows, sent = folder / "received", folder / "sent"
        take = self.program(
            "receive", 5000, rows, receiver.buffer_bytes, receiver.stall_after, receiver.stall_s
        )
        give = self.program(
            "send", 5000, sent, sender.count, sender.interval_s, sender.bytes, sender.burst
        )
        link = ["--scenario", str(scenario)] if scenario else ["--delay", f"{delay_ms} ms"]
        words = ["--port", port, *link, *options]
        server, client = [*server_prefix, *take], [*client_prefix, *give]
        note = ""
        with self.running(folder, words, server, client, environment) as running:
            running.await_traffic()
            if disturb:
                try:
                    disturb(running)
                except NotHere as missing:
                    note = str(missing)
        truth = of_datagrams(sent, rows, round(delay_ms * 1e6), sender.count * sender.burst)
        return self.seen(folder, truth, running, note)

    def seen(self, folder: Path, truth: Truth, running: Running, note: str = "") -> Seen:
        """Return how a run ended that is over."""
        grade, codes, first = grade_of(folder / "run")
        if (folder / "hung").exists():
            grade, note = "hung", f"not over after {PATIENCE_S:.0f} s"
        status = running.process.returncode
        if grade in ("none", "running", "hung") and not first:
            first = (folder / "errors").read_text()[-200:]
        return Seen(truth, grade, codes, first, status, note, folder)


@contextlib.contextmanager
def stage(engine: Path, *, nobody: bool = False) -> Iterator[Stage]:
    """Make a stage, with its own copies of what everybody must be able to run."""
    root = Path(tempfile.mkdtemp(prefix="attack-", dir="/tmp"))
    root.chmod(0o755)
    try:
        shutil.copy(HERE / "programs.py", root / "programs.py")
        (root / "programs.py").chmod(0o644)
        copy = root / "airpath-engine"
        shutil.copy(engine, copy)
        copy.chmod(0o755)
        yield Stage(copy, python_for_everybody(), root, nobody)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def python_for_everybody() -> str:
    """Return a Python that every user may run."""
    system = Path("/usr/bin/python3")
    return str(system) if system.exists() else "python3"


def result_file(path: Path) -> dict[str, Any]:
    """Return what a program noted as JSON; nothing if it did not get there."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
