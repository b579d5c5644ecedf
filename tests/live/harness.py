# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Starting the airpath command, and looking for what a run may have left behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
MARK = "AIRPATH_TEST_MARK"
"""Variable by which every process of a test is known, whatever its parent is."""

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

OF_A_RUN = re.compile(r"\.?airpath-(?!live|\d+$)")
# Start of the names of namespaces that a test makes, with the process id of the tests.
NAMESPACE_OF_A_TEST = re.compile(r"\bapt(\d+)x")
"""Temporary files that a run may have left. Not the folder in which all runs of a user meet."""

PATIENCE_S = 60.0
"""Limit for steps that take milliseconds on a quiet machine and must not fail on a loaded one."""


def wall_clock_ahead_ms() -> float:
    """Return the difference of the wall clock from the monotonic one. It changes by steps alone."""
    readings = []
    for _ in range(5):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, wall - (before + after) / 2))
    return min(readings)[1] / 1e6


@dataclass(frozen=True)
class User:
    """User who runs the command."""

    name: str
    prefix: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def users() -> list[User]:
    """Return root and nobody where the tests may change users, otherwise the user who runs them."""
    if os.geteuid() != 0:
        return [User("user", ())]
    # setpriv still has its capabilities when it looks the command up; env has none.
    drop = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env")
    return [User("root", ()), User("nobody", drop)]


@dataclass(frozen=True)
class Way:
    """User who runs the command, and the kind of port."""

    user: User
    port: str

    def __str__(self) -> str:
        return f"{self.user}-{self.port}"


def tun_opens(user: User) -> bool:
    """Return true if `user` may open /dev/net/tun."""
    probe = [*user.prefix, "sh", "-c", ": <>/dev/net/tun"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def ways() -> list[Way]:
    """Return every kind of port that every user may use."""
    everything = [Way(user, port) for user in users() for port in ("tun", "packet")]
    return [way for way in everything if way.port == "packet" or tun_opens(way.user)]


def port_ways() -> list[Way]:
    """Return one way for each kind of port, by the least privileged user who may use it."""
    return list({way.port: way for way in ways()}.values())


@dataclass
class Result:
    """Exit status, output and duration of a finished command."""

    status: int
    out: str
    err: str
    seconds: float
    clock_moved_ms: float = 0.0
    """Steps of the wall clock in that time, backwards below zero."""

    def check(self, status: int = 0) -> Result:
        """Fail, with everything that was printed, unless the exit status is `status`."""
        assert self.status == status, (
            f"exit status {self.status}, not {status}\n"
            f"--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"
        )
        return self

    def summary(self) -> dict[str, Any]:
        """Return the summary that --json prints."""
        lines = [line for line in self.err.splitlines() if line.startswith("{")]
        assert lines, f"no summary in {self.err!r}"
        summary = json.loads(lines[-1])
        assert isinstance(summary, dict)
        return summary

    def ping_times_ms(self) -> list[float]:
        """Return the round-trip times that ping printed.

        ping reads the wall clock. Each time is longer by what the clock was set back meanwhile, so
        that a step of the clock does not make a reply seem early.
        """
        set_back_ms = max(0.0, -self.clock_moved_ms)
        return [float(time) + set_back_ms for time in re.findall(r"time=([\d.]+) ms", self.out)]

    def document(self) -> dict[str, Any]:
        """Return the JSON that makes up all of the standard output."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


@dataclass
class Airpath:
    """The command, with what a test needs around it."""

    command: Path
    work: Path
    """A folder of this test that everybody may write to."""
    python: str
    """A Python that everybody may run."""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def environment(self) -> dict[str, str]:
        """Return the environment of the command."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AIRPATH") and name != "SHELL"
        }
        # A PATH without folders of the user who runs the tests: in one that cannot be entered, even
        # a command that is nowhere is "permission denied".
        return {
            **kept,
            MARK: self.mark,
            "PATH": SYSTEM_PATH,
            "TMPDIR": str(self.temporary),
            # No calibration, unless the test makes one.
            "XDG_DATA_HOME": str(self.work / "data"),
            "LC_ALL": "C.UTF-8",
        }

    @property
    def temporary(self) -> Path:
        """The TMPDIR of the command; must be empty at the end."""
        return self.work / "tmp"

    def folder(self, name: str) -> Path:
        """Return a folder that everybody may write to."""
        path = self.work / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o1777)
        return path

    def path(self, name: str) -> Path:
        """Return a path, in a folder that everybody may write to, where nothing is yet."""
        return self.folder("files") / name

    def file(self, name: str, text: str) -> Path:
        """Write a file that everybody may read."""
        path = self.path(name)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def program(self, *words: object) -> list[str]:
        """Return the words that start a program of `programs.py`."""
        return [self.python, str(self.work.parent / "programs.py"), *map(str, words)]

    def server(self, *words: object) -> str:
        """Return the same as a line for --server."""
        return shlex.join(self.program(*words))

    def start(
        self, *arguments: object, user: User | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start the command in a process group of its own."""
        prefix = user.prefix if user else ()
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            **options,
        }
        return subprocess.Popen(
            [*prefix, str(self.command), *map(str, arguments)],
            env={**self.environment(), **options.pop("environment", {})},
            cwd=options.pop("cwd", self.work),
            text=True,
            errors="replace",
            **options,
        )

    def run(
        self,
        *arguments: object,
        user: User | None = None,
        timeout: float = PATIENCE_S,
        **options: Any,
    ) -> Result:
        """Run the command to its end."""
        begun, ahead_ms = time.monotonic(), wall_clock_ahead_ms()
        process = self.start(*arguments, user=user, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            message = f"not ended after {timeout} s\n--- stdout\n{out}\n--- stderr\n{err}"
            raise AssertionError(message) from None
        seconds, moved_ms = time.monotonic() - begun, wall_clock_ahead_ms() - ahead_ms
        # What is less is from the readings; a step of that size changes no result.
        return Result(
            process.returncode, out, err, seconds, moved_ms if abs(moved_ms) > 0.05 else 0.0
        )

    def exec(self, way: Way, *arguments: object, **options: Any) -> Result:
        """Run `airpath exec` in one of the ways, telling its summary as JSON."""
        return self.run("exec", "--port", way.port, "--json", *arguments, user=way.user, **options)

    def processes(self) -> list[int]:
        """Return the processes that carry this test's mark, wherever they are."""
        return [pid for pid, environment in _environments() if self.mark.encode() in environment]

    def tree(self) -> dict[int, list[str]]:
        """Return the command lines of those processes."""
        tree = {}
        for pid in self.processes():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            except OSError:
                continue
            tree[pid] = [word.decode(errors="replace") for word in words]
        return tree

    def wait_until_gone(self) -> None:
        """Fail if processes of the test are still there after a while."""
        await_true(lambda: not self.processes(), lambda: f"still running: {self.tree()}", 20)


def _environments() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "environ").read_bytes()
            except OSError:
                continue


def await_true(
    condition: Callable[[], object],
    complaint: Callable[[], str] | str = "it never came true",
    seconds: float = PATIENCE_S,
) -> None:
    """Poll `condition` until it holds; fail with `complaint` if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(complaint if isinstance(complaint, str) else complaint())
        time.sleep(0.02)


@dataclass(frozen=True)
class World:
    """Parts of the host that a run must leave as they were."""

    named_namespaces: frozenset[str]
    interfaces: frozenset[str]
    mounts: frozenset[str]
    temporary: frozenset[str]
    nat_rules: str

    @classmethod
    def look(cls, airpath: Airpath) -> World:
        """Look around."""
        names = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=False)
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        folders = [airpath.temporary, Path("/tmp"), Path("/dev/shm"), Path("/run")]
        return cls(
            frozenset(name for name in names.stdout.splitlines() if not _of_another_worker(name)),
            frozenset(path.name for path in Path("/sys/class/net").iterdir()),
            frozenset(
                line
                for line in mounts
                if str(airpath.work) in line or ("nsfs" in line and not _of_another_worker(line))
            ),
            frozenset(
                str(path)
                for folder in folders
                if folder.is_dir()
                for path in folder.iterdir()
                if folder == airpath.temporary or OF_A_RUN.match(path.name)
            ),
            _nat_rules(),
        )

    def left_behind(self, before: World) -> list[str]:
        """Return what is here now and was not before."""
        kinds = ("named_namespaces", "interfaces", "mounts", "temporary")
        return [
            f"{kind}: {thing}"
            for kind in kinds
            for thing in sorted(getattr(self, kind) - getattr(before, kind))
        ]


def _of_another_worker(line: str) -> bool:
    """Say whether `line` names a namespace of a test that another process runs meanwhile."""
    found = NAMESPACE_OF_A_TEST.search(line)
    return found is not None and int(found[1]) != os.getpid()


def _nat_rules() -> str:
    if os.geteuid() != 0 or not shutil.which("nft"):
        return ""
    listing = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False)
    return listing.stdout


def namespaces(pids: list[int]) -> set[str]:
    """Return the namespaces that `pids` are in and this process is not."""
    found: set[str] = set()
    for kind in ("net", "mnt", "pid", "user"):
        own = Path(f"/proc/self/ns/{kind}").readlink()
        for pid in pids:
            try:
                link = Path(f"/proc/{pid}/ns/{kind}").readlink()
            except OSError:
                continue
            if link != own:
                found.add(str(link))
    return found


def holders(wanted: set[str]) -> list[str]:
    """Return what still holds any of these namespaces: processes, descriptors, mounts."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        for folder in ("ns", "fd"):
            try:
                links = [(link, str(link.readlink())) for link in (process / folder).iterdir()]
            except OSError:
                continue
            found.extend(f"{link} -> {target}" for link, target in links if target in wanted)
    mounts = Path("/proc/self/mountinfo").read_text()
    found.extend(name for name in wanted if name in mounts)
    return found


def end_process(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended."""
    if process.poll() is None:
        process.send_signal(number)


def find_command() -> Path:
    """Return the command under test: $AIRPATH, or what was built."""
    if "AIRPATH" in os.environ:
        return Path(os.environ["AIRPATH"]).resolve()
    built = [
        ROOT / ".venv/bin/airpath",
        ROOT / "target/release/airpath-engine",
        ROOT / "target/debug/airpath-engine",
    ]
    for path in built:
        if path.exists() and _works([str(path)]):
            return path
    message = "no airpath to test: run `make setup`, or set AIRPATH to the command"
    raise FileNotFoundError(message)


def _works(command: list[str]) -> bool:
    try:
        probe = subprocess.run(
            [*command, "profiles"], capture_output=True, check=False, cwd="/", timeout=60
        )
    except OSError:
        return False
    return probe.returncode == 0


def for_everybody(command: Path, folder: Path) -> Path:
    """Return the command where every user may run it; a copy of the engine if need be."""
    if all(_works([*user.prefix, str(command)]) for user in users()):
        return command
    beside = command.with_name("airpath-engine")
    engine = beside if beside.exists() else command
    copy = folder / "airpath"
    shutil.copy(engine, copy)
    copy.chmod(0o755)
    print(f"every user may not run {command}; testing a copy of {engine}")
    return copy


def python_for_everybody() -> str:
    """Return a Python that every user may run: this one, or the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [[*user.prefix, python, "-c", "pass"] for user in users()]
        try:
            if all(
                subprocess.run(words, capture_output=True, check=False, cwd="/").returncode == 0
                for words in probe
            ):
                return python
        except OSError:
            continue
    message = f"no Python that every user may run: neither {sys.executable} nor /usr/bin/python3"
    raise FileNotFoundError(message)


def read_lines(stream: IO[str], count: int) -> list[str]:
    """Return the next lines of a stream."""
    return [stream.readline().rstrip("\n") for _ in range(count)]
