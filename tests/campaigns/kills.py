# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs that are killed at random, and what they leave behind.

Usage: python -m campaigns.kills [OPTIONS] in the folder `tests`; see --help. Each try starts a
command in one of its ways, sends signals to random processes of its tree at random instants, and
looks afterwards: nothing may be left, every folder must be readable, and say what became of its
run.

A process gets a signal only while its environment bears the mark of the try: it is opened first,
and then looked at, so that a number taken by somebody else meanwhile is never met.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airpath.facts import EXIT_STATUSES
from campaigns.common import Campaign, drawn_seed
from live import harness
from live.harness import Airpath, User

FATAL = (
    signal.SIGKILL,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGSEGV,
)
KINDS = ("exec", "server", "shell", "replications", "sim", "run")
OWN_STATUSES = frozenset(EXIT_STATUSES.values())
"""Exit statuses of a command that no signal has reached."""

PATIENCE_S = 90.0

EXPERIMENT = """\
name = "killed"
seed = 3
[networks.link]
link = { rate = "2 Mbit/s", delay = "10 ms", loss = "1%" }
[workloads.bulk]
virtual = [
    "tcp duration='4 s' from=server cc=reno",
    "cbr rate='100 kbit/s' size=100 duration='4 s'",
]
[[sets]]
name = "virtual"
clock = "virtual"
network = "link"
workload = "bulk"
repetitions = 4
"""

TRAFFIC = """\
import socket, sys, time
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    try:
        box.sendto(bytes(200), ("server", 9))
    except OSError:
        pass
    time.sleep(0.005)
"""


@dataclass
class Try:
    """One command and what befalls it."""

    airpath: Airpath
    runner: tuple[str, ...]
    """The words of the whole command; of the engine alone where there is no Python."""
    random: random.Random
    kind: str
    user: User
    port: str
    sent: list[tuple[str, str]] = field(default_factory=list)
    """The signals, and what each process was."""
    namespaces: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """Folder in which the command records."""
        return self.airpath.folder("files") / "out"

    def __str__(self) -> str:
        signals = ", ".join(f"{name} to {what}" for name, what in self.sent) or "no signal"
        return f"{self.kind} as {self.user} over {self.port}: {signals}"

    def words(self) -> list[str]:
        """Return the words behind the command."""
        recorded = ["--port", self.port, "--out", str(self.out)]
        traffic = [self.airpath.python, "-c", TRAFFIC]
        engine = str(self.airpath.command)
        match self.kind:
            case "exec":
                return ["exec", *recorded, "--delay", "5 ms", "--", *traffic, "1.5"]
            case "server":
                served = ["--server", f"{engine} recv --once", "--rate", "2 Mbit/s"]
                return ["exec", *recorded, *served, "--", engine, "send", "server", "--time", "1 s"]
            case "shell":
                return ["shell", *recorded, "--loss", "5%"]
            case "replications":
                many = ["--replications", "3", "--jobs", "2"]
                return ["exec", *recorded, *many, "--", *traffic, "0.5"]
            case "sim":
                load = "tcp duration='12 s' from=server cc=cubic"
                many = ["--replications", "4", "--jobs", "2", "--workload", load]
                return ["sim", "--rate", "20 Mbit/s", "--out", str(self.out), *many]
            case _:
                file = self.airpath.file("killed.toml", EXPERIMENT)
                return ["run", str(file), "--out", str(self.out), "--jobs", "2"]

    def start(self) -> subprocess.Popen[str]:
        """Start the command in a session of its own."""
        environment = {**self.airpath.environment(), "SHELL": "/bin/sh", "XDG_RUNTIME_DIR": ""}
        environment["AIRPATH_ENGINE"] = str(self.airpath.command)
        environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        environment["HOME"] = str(self.airpath.work)
        command = self.runner if self.kind == "run" else (str(self.airpath.command),)
        return subprocess.Popen(
            [*self.user.prefix, *command, *self.words()],
            env=environment, cwd=self.airpath.work, text=True, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def signal_one(self) -> None:
        """Send a signal to a random process of the tree."""
        pids = self.airpath.processes()
        if not pids:
            return
        pid = self.random.choice(sorted(pids))
        stops = self.random.random() < 0.15
        number = signal.SIGSTOP if stops else self.random.choice(FATAL)
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                # Of the process behind the handle: the number may be another process's by now.
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                what = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                if self.airpath.mark.encode() not in environment:
                    return
                signal.pidfd_send_signal(handle, number)
                self.sent.append((number.name, what.decode(errors="replace")[:60].strip()))
                if stops:
                    time.sleep(self.random.uniform(0.01, 0.3))
                    signal.pidfd_send_signal(handle, signal.SIGCONT)
            finally:
                os.close(handle)

    def run(self) -> None:
        """Start, signal, wait, and look."""
        process = self.start()
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.append(_read(process)), daemon=True)
        reader.start()
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.write("sleep 1\n" if self.kind == "shell" else "")
                process.stdin.close()
        for _ in range(self.random.choice((1, 1, 2, 3))):
            # Half of all signals come while the command is setting up.
            time.sleep(self.random.choice((0.04, 0.2, 0.6, 1.5)) * self.random.random())
            self.namespaces |= harness.namespaces(self.airpath.processes())
            self.signal_one()
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.problems.append(f"still there after {PATIENCE_S} s: {self.airpath.tree()}")
            end(self.airpath)
            status = process.wait(PATIENCE_S)
        reader.join(20)
        self.look(status, "".join(said))

    def look(self, status: int, said: str) -> None:
        """Look at what the command left, and what it says."""
        numbers = {getattr(signal, name) for name, _ in self.sent}
        by_signal = {-number for number in numbers} | {128 + number for number in numbers}
        # A supervisor passes on a signal, or ends its children by another.
        by_signal |= {128 + signal.SIGTERM, 128 + signal.SIGKILL} if numbers else set()
        if status not in OWN_STATUSES | by_signal:
            self.problems.append(f"exit status {status}: {said[-500:]}")
        if "Traceback" in said or "panicked" in said:
            self.problems.append(f"broke: {said[-1500:]}")
        try:
            self.airpath.wait_until_gone()
        except AssertionError as error:
            self.problems.append(f"processes left: {error}")
            end(self.airpath)
        deadline = time.monotonic() + 20
        while (held := harness.holders(self.namespaces)) and time.monotonic() < deadline:
            time.sleep(0.05)
        if held:
            self.problems.append(f"namespaces left: {held}")
        self.look_at_folders(status)
        if self.kind == "run":
            self.resume()
        # Removes what killed runs left of the folder in which all runs of a user meet.
        self.finish(["runs"])
        if left := sorted(str(path) for path in self.airpath.temporary.rglob("*")):
            self.problems.append(f"temporary files left: {left}")
        if str(self.airpath.work) in Path("/proc/self/mountinfo").read_text():
            self.problems.append("a mount is left")

    def finish(self, words: list[str], whole: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command without disturbances."""
        command = self.runner if whole else (str(self.airpath.command),)
        environment = {**self.airpath.environment(), "XDG_RUNTIME_DIR": ""}
        environment["AIRPATH_ENGINE"] = str(self.airpath.command)
        environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        environment["HOME"] = str(self.airpath.work)
        return subprocess.run(
            [*self.user.prefix, *command, *words], env=environment, cwd=self.airpath.work,
            capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            timeout=300, check=False,
        )  # fmt: skip

    def look_at_folders(self, status: int) -> None:
        """Every folder is readable, and none claims more than is true."""
        killed = status == -signal.SIGKILL or status in (125, 128 + signal.SIGKILL)
        for manifest in sorted(self.out.rglob("run.json")) if self.out.exists() else []:
            run = manifest.parent
            name = run.relative_to(self.airpath.work)
            try:
                about: dict[str, Any] = json.loads(manifest.read_text())
            except ValueError as error:
                self.problems.append(f"{name}/run.json: {error}")
                continue
            verdict = ((about.get("results") or {}).get("verdict") or {}).get("grade")
            if about["status"] == "running" and verdict:
                self.problems.append(f"{name} is running and has the verdict {verdict}")
            if killed and self.kind in ("exec", "server", "shell") and verdict == "trusted":
                self.problems.append(f"{name} was killed and is trusted")
            if not (run / "events.arrow").exists():
                # The folder around replications, or one whose run never began.
                continue
            log = self.finish(["log", str(run)])
            if log.returncode != 0:
                self.problems.append(f"log of {name}: status {log.returncode}: {log.stderr[-300:]}")

    def resume(self) -> None:
        """Hold `airpath run --resume` to ending what was begun."""
        words = ["run", str(self.airpath.path("killed.toml")), "--out", str(self.out)]
        resumed = self.finish([*words, "--jobs", "2", "--resume"], whole=True)
        if resumed.returncode != 0:
            self.problems.append(f"--resume: status {resumed.returncode}: {resumed.stderr[-800:]}")
            return
        results = self.finish(["results", str(self.out)], whole=True)
        if results.returncode != 0:
            self.problems.append(f"results: status {results.returncode}: {results.stderr[-500:]}")


def _read(process: subprocess.Popen[str]) -> str:
    return process.stderr.read() if process.stderr else ""


def end(airpath: Airpath) -> None:
    """End the processes of a try that should have ended by themselves."""
    for pid in airpath.processes():
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if airpath.mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class Ground:
    """Place and programs of the tries."""

    folder: Path
    command: Path
    """The engine."""
    runner: tuple[str, ...]
    python: str
    users: tuple[User, ...]
    ports: tuple[str, ...]
    kinds: tuple[str, ...]

    def one(self, seed: int, number: int) -> Try:
        """Prepare try `number` of a seed."""
        generator = random.Random(f"{seed} {number}")
        work = Path(tempfile.mkdtemp(prefix=f"{number}-", dir=self.folder))
        work.chmod(0o1777)
        airpath = Airpath(self.command, work, self.python)
        airpath.folder("tmp")
        kind = generator.choice(self.kinds)
        # Python, which `run` needs, may lie where only its user can go.
        users = [user for user in self.users if kind != "run" or not user.prefix]
        user = generator.choice(users or list(self.users))
        ways = [port for port in self.ports if port == "packet" or harness.tun_opens(user)]
        return Try(airpath, self.runner, generator, kind, user, generator.choice(ways))


def engine() -> Path:
    """Return the engine that the tests drive."""
    found = harness.find_command()
    beside = found.with_name("airpath-engine")
    return Path(
        os.environ.get("AIRPATH_ENGINE") or (beside if beside.exists() else found)
    ).resolve()


def run(
    seed: int, tries: int, *, first: int = 0, seconds: float = 0.0, jobs: int = 4,
    kinds: tuple[str, ...] = KINDS, tell: bool = False,
) -> Campaign:  # fmt: skip
    """Try so often, several at a time."""
    campaign = Campaign("kills", seed)
    folder = Path(tempfile.mkdtemp(prefix="airpath-live-", dir="/tmp"))
    folder.chmod(0o755)
    interfaces = {path.name for path in Path("/sys/class/net").iterdir()}
    command = folder / "airpath-engine"
    shutil.copy(engine(), command)
    command.chmod(0o755)
    runner = (sys.executable, "-c", "import sys; from airpath.cli import main; sys.exit(main())")
    ground = Ground(
        folder, command, runner, harness.python_for_everybody(), tuple(harness.users()),
        ("packet", "tun"), kinds,
    )  # fmt: skip
    deadline = time.monotonic() + seconds if seconds else float("inf")
    signals = 0

    def attempt(number: int) -> None:
        nonlocal signals
        if time.monotonic() >= deadline:
            return
        one = ground.one(seed, number)
        begun = time.monotonic()
        try:
            one.run()
        except Exception as error:  # what breaks the campaign itself is told with its try
            one.problems.append(f"{type(error).__name__}: {error}")
            end(one.airpath)
        if tell:
            print(f"  try {number} took {time.monotonic() - begun:.1f} s: {one}", flush=True)
        campaign.tried += 1
        signals += len(one.sent)
        for problem in one.problems:
            campaign.failed(f"{one.kind}: {problem} [{one}]", label=f"try {number}")
        shutil.rmtree(one.airpath.work, ignore_errors=True)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(attempt, range(first, first + tries)))
        left = {path.name for path in Path("/sys/class/net").iterdir()} - interfaces
        if left:
            campaign.failed(f"interfaces left: {left}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"kills: {signals} signals", flush=True)
    return campaign


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Kill runs at random and look what they leave.")
    parser.add_argument("--tries", type=int, default=100, help="how many runs")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no try after so long")
    parser.add_argument("--seed", type=int, help="drawn and printed if not given")
    parser.add_argument("--first", type=int, default=0, help="begin with this try of the seed")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this; repeatable")
    parser.add_argument("--verbose", action="store_true", help="tell every try")
    options = parser.parse_args()
    seed = drawn_seed() if options.seed is None else options.seed
    print(f"kills: seed {seed}", flush=True)
    kinds = tuple(options.kind or KINDS)
    return run(
        seed, options.tries, first=options.first, seconds=options.seconds,
        jobs=max(1, options.jobs), kinds=kinds, tell=options.verbose,
    ).tell()  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
