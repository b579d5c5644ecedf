# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Starts the programs of one end at their times, bounds them, and records what became of them.

Run by the engine at each end of the link, with the standard library alone (python -I -S) and few
modules of it: in a kernel of virtual time, importing dataclasses, pathlib, socket and typing takes
longer than all the rest. The two ends agree through files in a folder that both see: nothing of it
goes over the link.

usage: python -I -S -c 'import agent; agent.main()' SPECIFICATION.json
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEAD_NS = 50_000_000
"""From agreeing on t = 0 to t = 0: time for both ends to hear of it."""

POLL_S = 0.02
"""Interval of looks for an event of which nobody tells."""

LONGEST_WAIT_NS = 3600 * 10**9
"""Argument of every way of waiting."""

STOP_S = 2.0
"""Time limit for a program to end after SIGTERM."""

LINE_LIMIT = 65536


class Stream:
    """One output of a program, on its way into a file of bounded length."""

    def __init__(self, source: int, target: Any, limit: int) -> None:
        """Begin, with nothing written yet."""
        self.source = source
        self.target = target
        self.limit = limit
        self.total = 0
        self.line = b""
        self.open = True


class Running:
    """A program of the workload."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Begin, with nothing started yet."""
        self.spec = spec
        self.process: subprocess.Popen[bytes] | None = None
        self.started_ns: int | None = None
        self.ended_ns: int | None = None
        self.status: int | None = None
        self.reason = ""
        self.ready = False
        self.streams: dict[str, Stream] = {}
        self.stopped = False

    @property
    def over(self) -> bool:
        """True if it has ended, or never will have begun."""
        return self.status is not None or bool(self.reason and self.process is None)


class Agent:
    """The programs of one end, of one user where there are several.

    The ends know each other as parties: "client", "client-1" and so on for the clients of users 0,
    1 and so on, and "server". The first client leads: it settles t = 0.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        """Prepare, start nothing."""
        self.spec = spec
        self.end: str = spec["end"]
        users = int(os.environ.get("AIRPATH_USERS", "1"))
        self.user = os.environ.get("AIRPATH_USER", "") if self.end == "client" else ""
        parties = ["client", *(f"client-{number}" for number in range(1, users)), "server"]
        own = int(os.environ.get("AIRPATH_USER_INDEX", "0")) if self.end == "client" else -1
        self.party = parties[own]
        if spec["alone"]:
            parties.remove("server")
        parties.remove(self.party)
        self.others = parties
        self.folder: str = spec["folder"]
        self.programs = [
            Running(self.of_user(program))
            for program in spec["programs"]
            if self.end == "server" or is_of(program["user"], self.user)
        ]
        self.selector = selectors.DefaultSelector()
        self.epoch_ns = 0
        self.epoch_unix_ns = 0
        self.failure = ""
        self.interrupted = False
        self.bell: int | None = None
        # Looking again and again for the other end's files would be most of what a guest in virtual
        # time has to do. A file system without pipes leaves nothing else.
        with suppress(OSError):
            os.mkfifo(f"{self.folder}/{self.party}.bell")
        with suppress(OSError):
            self.bell = os.open(f"{self.folder}/{self.party}.bell", os.O_RDWR | os.O_NONBLOCK)
            self.selector.register(self.bell, selectors.EVENT_READ, None)

    def of_user(self, program: dict[str, Any]) -> dict[str, Any]:
        """Return a program as this user has it: one of several users has a name of its own."""
        program = {**program, "program": program["name"]}
        if self.user and program["user"] != self.user:
            program["name"] = f"{program['name']}-{self.user}"
            program["directory"] = f"{program['directory']}-{self.user}"
        return program

    # What the ends tell each other.

    def say(self, word: str, content: Any = True) -> None:
        """Put up a file for the other ends, at once or not at all."""
        path = f"{self.folder}/{self.party}.{word}"
        with open(f"{path}.new", "w") as file:
            file.write(json.dumps(content))
        os.rename(f"{path}.new", path)
        for party in self.others:
            # Without anybody to hear it (ENXIO): who begins later looks for files first.
            with suppress(OSError):
                handle = os.open(f"{self.folder}/{party}.bell", os.O_WRONLY | os.O_NONBLOCK)
                try:
                    os.write(handle, b"!")
                finally:
                    os.close(handle)

    def heard(self, word: str, party: str) -> Any:
        """Return what another end said, or None."""
        try:
            with open(f"{self.folder}/{party}.{word}") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def interrupt(self) -> None:
        """End the workload; from a signal's handler."""
        self.interrupted = True
        if self.bell is not None:
            with suppress(OSError):  # full: it rings already
                os.write(self.bell, b"!")

    def patience(self, wait_s: float) -> float:
        """Return how long to wait at most where the other end may have a word to say."""
        return wait_s if self.bell is not None else min(wait_s, POLL_S)

    # One program.

    def start(self, running: Running) -> None:
        """Start a program; what fails is recorded."""
        spec = running.spec
        directory = spec["directory"]
        os.makedirs(directory, exist_ok=True)
        try:
            running.process = subprocess.Popen(
                spec["command"],
                cwd=directory,
                env={**os.environ, **spec["environment"]},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            running.reason = f"cannot be started: {spec['command'][0]}: {error.strerror}"
            return
        running.started_ns = time.monotonic_ns()
        for name in ("stdout", "stderr"):
            pipe = getattr(running.process, name)
            os.set_blocking(pipe.fileno(), False)
            target = open(f"{directory}.{name}", "wb")  # noqa: SIM115 (closed at the end)
            stream = Stream(pipe.fileno(), target, self.spec["output_limit_bytes"])
            running.streams[name] = stream
            self.selector.register(pipe.fileno(), selectors.EVENT_READ, (running, stream))

    def read(self, running: Running, stream: Stream) -> None:
        """Take what a program has written; beyond the limit it is counted and thrown away."""
        try:
            piece = os.read(stream.source, 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self.selector.unregister(stream.source)
            stream.open = False
            return
        room = max(0, stream.limit - stream.total)
        if room:
            try:
                stream.target.write(piece[:room])
                stream.target.flush()
            except OSError as error:
                self.failure = self.failure or f"{stream.target.name}: {error.strerror}"
        stream.total += len(piece)
        pattern = (running.spec.get("ready") or {}).get("output")
        if pattern is not None and not running.ready:
            *whole, rest = (stream.line + piece).split(b"\n")
            stream.line = rest[-LINE_LIMIT:]
            running.ready = any(re.search(pattern, line.decode(errors="replace")) for line in whole)

    def reap(self) -> None:
        """Note which programs have ended, and stop those whose time is up."""
        now = time.monotonic_ns()
        for running in self.programs:
            process = running.process
            if process is None or running.status is not None:
                continue
            status = process.poll()
            if status is not None:
                running.status = status
                running.ended_ns = now
                # A service's children end with it.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGTERM)
            elif running.started_ns is not None:
                limit = running.spec["time_limit_ns"]
                if now - running.started_ns > limit and not running.stopped:
                    running.reason = f"took longer than {limit / 1e9:g} s and was stopped"
                    self.stop([running])

    def stop(self, programs: list[Running]) -> None:
        """Stop programs and what they started: SIGTERM, and SIGKILL for those that stay."""
        for number, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, STOP_S)):
            left = [p for p in programs if p.process is not None and p.status is None]
            for running in left:
                running.stopped = True
                assert running.process is not None
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(running.process.pid, number)
            until = time.monotonic() + patience
            while any(p.status is None for p in left) and time.monotonic() < until:
                self.turn(0.01)

    # The loop.

    def take(self, wait_s: float) -> None:
        """Wait until something happens, for so long at most; take what has been written."""
        for key, _ in self.selector.select(max(0.0, wait_s)):
            if key.data is not None:
                self.read(*key.data)
            elif key.fd == self.bell:
                with suppress(BlockingIOError):
                    os.read(self.bell, 4096)

    def turn(self, wait_s: float) -> None:
        """Wait for output for so long at most, and look after the programs."""
        self.take(wait_s)
        for running in self.programs:
            if running.process is not None and running.status is None:
                self.reap()
                break

    def is_ready(self, running: Running) -> bool:
        """Say whether a program that was started is ready."""
        ready = running.spec["ready"]
        if ready.get("port") is not None:
            running.ready = ready["port"] in listening_ports()
        elif ready.get("command") is not None:
            done = subprocess.run(
                ["/bin/sh", "-c", ready["command"]],
                cwd=running.spec["directory"],
                env={**os.environ, **running.spec["environment"]},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            running.ready = done.returncode == 0
        return running.ready

    def prepare(self) -> None:
        """Start what has to be ready before t = 0, and wait for it."""
        waiting = [running for running in self.programs if running.spec.get("ready")]
        for running in waiting:
            self.start(running)
        for running in waiting:
            within = running.spec["ready"]["within_ns"]
            until = time.monotonic_ns() + within
            while not self.interrupted and not running.reason and not self.is_ready(running):
                if running.status is not None:
                    running.reason = f"ended before it was ready, with status {running.status}"
                elif time.monotonic_ns() > until:
                    running.reason = f"was not ready within {within / 1e9:g} s"
                self.turn(POLL_S)
            if running.reason:
                self.failure = f"{running.spec['name']} {running.reason}"
                return

    def agree(self) -> None:
        """Settle t = 0 with the other ends, if there are any."""
        self.say("ready", {"failure": self.failure})
        if not self.others:
            self.settle(time.monotonic_ns() + LEAD_NS)
            return
        leads = self.party == "client"
        awaited = list(self.others) if leads else ["client"]
        until = time.monotonic_ns() + self.spec["patience_ns"]
        while awaited and not self.interrupted:
            word = self.heard("ready" if leads else "epoch", awaited[0])
            if word is not None:
                if word.get("failure"):
                    self.failure = self.failure or f"at the {awaited[0]}: {word['failure']}"
                    break
                if not leads:
                    self.settle(word["monotonic_ns"])
                awaited.pop(0)
                continue
            if time.monotonic_ns() > until:
                self.failure = self.failure or f"the {awaited[0]} did not get ready"
                break
            self.turn(self.patience((until - time.monotonic_ns()) / 1e9))
        if leads:
            self.settle(time.monotonic_ns() + LEAD_NS)
            self.say("epoch", {"failure": self.failure, "monotonic_ns": self.epoch_ns})

    def settle(self, epoch_ns: int) -> None:
        """Set t = 0."""
        self.epoch_ns = epoch_ns
        self.epoch_unix_ns = time.time_ns() + epoch_ns - time.monotonic_ns()

    def work(self) -> None:
        """Run the programs by the timetable until those that are waited for have ended."""
        todo = sorted(
            (p for p in self.programs if p.process is None and not p.reason),
            key=lambda running: running.spec["start_ns"],
        )
        foreground = [p for p in self.programs if not p.spec["service"]]
        said = False
        busy = list(self.others)
        while not self.interrupted:
            now = time.monotonic_ns() - self.epoch_ns
            if any(self.heard("json", party) is not None for party in self.others):
                self.interrupted = not said  # another end was broken off
                return
            while todo and todo[0].spec["start_ns"] <= now:
                self.start(todo.pop(0))
            if all(running.over for running in foreground) and not any(
                not p.spec["service"] for p in todo
            ):
                if not said and self.others:
                    self.say("done")
                    said = True
                busy = [party for party in busy if self.heard("done", party) is None]
                if not busy:
                    return
            limits = [
                p.started_ns + p.spec["time_limit_ns"] - time.monotonic_ns()
                for p in self.programs
                if p.started_ns is not None and p.status is None and not p.stopped
            ]
            starts = [todo[0].spec["start_ns"] - now] if todo else []
            due = min([*limits, *starts, LONGEST_WAIT_NS])
            # Not before the time is up, which is looked at in nanoseconds.
            self.wait(self.patience(max(0, due) / 1e9 + 0.0005))

    def wait(self, wait_s: float) -> None:
        """Wait until something is due, a program ends or writes."""
        watched = []
        for running in self.programs:
            if running.process is not None and running.status is None:
                with suppress(OSError):
                    handle = os.pidfd_open(running.process.pid)
                    watched.append(handle)
        for handle in watched:
            self.selector.register(handle, selectors.EVENT_READ, None)
        try:
            self.take(wait_s)
        finally:
            for handle in watched:
                self.selector.unregister(handle)
                os.close(handle)
        self.reap()

    def finish(self) -> int:
        """Stop what is left, take the last output, write the record; return the exit status."""
        left = [p for p in self.programs if p.process is not None and p.status is None]
        for running in left:
            if not running.spec["service"] and not running.reason:
                running.reason = "was stopped with the workload"
        self.stop(left)
        until = time.monotonic() + 0.5
        while any(s.open for p in self.programs for s in p.streams.values()):
            if time.monotonic() > until:
                break
            self.turn(0.02)
        records = [self.record(running) for running in self.programs]
        record = {
            "end": self.end,
            "user": self.user or None,
            "epoch_unix_ns": self.epoch_unix_ns,
            "failure": self.failure,
            "interrupted": self.interrupted,
            "programs": records,
        }
        self.say("json", record)
        good = not self.failure and all(one["succeeded"] for one in records)
        return 0 if good else 1

    def record(self, running: Running) -> dict[str, Any]:
        """Return what became of a program."""
        spec = running.spec
        for stream in running.streams.values():
            with suppress(OSError):
                if stream.total > stream.limit:
                    stream.target.write(b"\n[cut off here, of %d bytes]\n" % stream.total)
                stream.target.close()
        epoch = self.epoch_ns
        cut = {
            name: {"bytes": stream.total, "cut_off": stream.total > stream.limit}
            for name, stream in running.streams.items()
        }
        succeeded = not running.reason and (
            running.status in spec["exit_status"] or (spec["service"] and running.stopped)
        )
        if spec["service"] and running.process is None and not running.reason:
            succeeded = True  # it was to start later than the workload lasted
        reason = running.reason
        if not succeeded and not reason and running.status is not None:
            reason = (
                f"ended by signal {-running.status}"
                if running.status < 0
                else f"exit status {running.status}"
            )
        return {
            "name": spec["name"],
            "program": spec["program"],
            "end": self.end,
            "user": self.user or None,
            "command": spec["command"],
            "service": spec["service"],
            "start_ns": None if running.started_ns is None else running.started_ns - epoch,
            "end_ns": None if running.ended_ns is None else running.ended_ns - epoch,
            "elapsed_ns": None
            if running.started_ns is None or running.ended_ns is None
            else running.ended_ns - running.started_ns,
            "exit_status": running.status if (running.status or 0) >= 0 else None,
            "signal": -running.status if (running.status or 0) < 0 else None,  # type: ignore[operator]
            "stopped": running.stopped,
            "succeeded": bool(succeeded),
            "reason": reason,
            "output": cut,
        }


def is_of(pattern: str | None, user: str) -> bool:
    """Say whether a program is one of a user, by the pattern of its users."""
    if pattern is None:
        return True
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, user) is not None


def listening_ports() -> set[int]:
    """Return the ports at which this network namespace listens: TCP, and bound UDP."""
    ports = set()
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            with open(f"/proc/self/net/{protocol}") as file:
                lines = file.read().splitlines()[1:]
            for line in lines:
                words = line.split()
                if protocol.startswith("udp") or words[3] == "0A":
                    ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


def main() -> int:
    """Run one end."""
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    agent = Agent(spec)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: agent.interrupt())
    waiting = None
    if agent.end == "server":
        # The engine starts the client's end once something listens here; the ends wait for each
        # other by themselves.
        from _socket import socket

        waiting = socket()
        waiting.bind(("0.0.0.0", 0))
        waiting.listen()
    agent.prepare()
    agent.agree()
    if waiting is not None:
        waiting.close()
    if not agent.failure:
        agent.work()
    return agent.finish()
