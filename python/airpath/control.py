# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Changing a live run from outside: states and parameters, over the run's control socket.

    from airpath import control

    run = control.connect("results/train")
    run.set({"radio.link.rate": "64 kbit/s", "radio.link.propagation": "80 ms"})  # one instant
    run.state("tunnel")
    print(run.get("radio.link.rate"), run.describe().state)
    run.set({"alice.radio.link.propagation": "80 ms"})  # one user of a cell
    print(run.state("alice.tunnel").user_states)  # {"alice": "tunnel", "bob": "initial"}

The protocol is described in docs/control.md.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airpath.facts import CONTROL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

VERSION: int = CONTROL["version"]
"""The version of the protocol."""

_SUFFIX: str = CONTROL["socket_suffix"]

PATIENCE_S = 10.0
"""Time limit for an answer of a run."""


class ControlError(Exception):
    """There is no such run, or it refused; ``kind`` is one word for programs."""

    def __init__(self, kind: str, message: str) -> None:
        """Keep what the run said."""
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Effect:
    """Times of receipt and effect of a command, in nanoseconds of the run's time."""

    time_ns: int
    received_ns: int
    state: str | None
    """The state in force afterwards; None where users are in different ones."""
    user_states: Mapping[str, str] = field(default_factory=dict)
    """That of each user of a cell, by name."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on an active run so far."""

    grade: str
    """trusted, suspect or invalid."""
    reasons: tuple[str, ...]
    """Reasons for a grade other than trusted."""


@dataclass(frozen=True)
class User:
    """A user of a cell in an active run."""

    name: str
    command: tuple[str, ...]
    """Its client's command; empty where it runs none."""
    hops: tuple[str, ...]
    states: tuple[str, ...]
    state: str | None
    """The state in force; None once the user's link is lost, while others go on."""


@dataclass(frozen=True)
class Description:
    """An active run."""

    run: int
    """Its number."""
    folder: Path | None
    command: tuple[str, ...]
    """The client's command; empty where those of users differ."""
    seed: int
    hops: tuple[str, ...]
    states: tuple[str, ...]
    time_ns: int
    state: str | None
    """The state in force; None where users are in different ones."""
    users: tuple[User, ...] = ()
    """The users of a cell."""


def _folder() -> Path:
    """Return the folder of this user's sockets."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        try:
            about = Path(runtime).stat()
        except OSError:
            about = None
        if about is not None and stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
            return Path(runtime) / str(CONTROL["folder_in_runtime"])
    return Path(tempfile.gettempdir()) / f"{CONTROL['folder_in_temporary']}{_user()}"


def _user() -> int:
    """Return this user's number outside of the user namespace in which the process may be."""
    own = os.geteuid()
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return own
    for inside, outside, count in (map(int, line.split()) for line in lines):
        if inside <= own < inside + count:
            return outside + own - inside
    return own


def _numbers(folder: Path) -> list[int]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []
    found = (re.fullmatch(rf"(\d+){re.escape(_SUFFIX)}", name) for name in names)
    return sorted(int(match[1]) for match in found if match)


@dataclass
class Run:
    """A connection to a run; close it, or use it in a ``with`` statement."""

    _socket: socket.socket
    _received: bytes = field(default=b"", repr=False)

    @classmethod
    def of_number(cls, number: int) -> Self:
        """Connect to run ``number``.

        Raises:
            ControlError: nobody listens.

        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        try:
            # Through a descriptor, so that no path is too long for a socket.
            folder = os.open(_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                connection.connect(f"/proc/self/fd/{folder}/{number}{_SUFFIX}")
            finally:
                os.close(folder)
        except OSError as error:
            connection.close()
            raise ControlError("run", f"run {number} does not go on ({error.strerror})") from error
        return cls(connection)

    def close(self) -> None:
        """Close the connection; the run goes on."""
        self._socket.close()

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def state(self, name: str) -> Effect:
        """Put the state called ``name`` in force; ``alice.fade`` is that of one user of a cell.

        Raises:
            ControlError: there is no such state, or the run has ended.

        """
        return _effect(self._ask({"command": "state", "name": name}))

    def set(self, parameters: Mapping[str, object]) -> Effect:
        """Set all ``parameters`` (``{"radio.link.rate": "64 kbit/s"}``) at one instant.

        Raises:
            ControlError: there is no such parameter, a value does not fit, or the run has ended.

        """
        return _effect(self._ask({"command": "set", "parameters": dict(parameters)}))

    def get(self, parameter: str) -> object:
        """Return the value of ``parameter`` that is in force now.

        Of several users who have different ones, a dictionary by user; ``alice.radio.link.rate`` is
        the value of one.

        Raises:
            ControlError: there is no such parameter, or the run has ended.

        """
        value: object = self._ask({"command": "get", "parameter": parameter})["value"]
        return value

    def verdict(self) -> Judgement:
        """Return the verdict on the run from its begin until now.

        Raises:
            ControlError: the run has ended.

        """
        verdict = self._ask({"command": "verdict"})["verdict"]
        return Judgement(
            str(verdict["grade"]), tuple(str(one["what"]) for one in verdict["reasons"])
        )

    def describe(self) -> Description:
        """Return what runs, at what time it is, and in which state.

        Raises:
            ControlError: the run has ended.

        """
        answer = self._ask({"command": "describe"})
        return Description(
            run=answer["run"],
            folder=Path(answer["folder"]) if answer["folder"] else None,
            command=tuple(answer["command"]),
            seed=answer["seed"],
            hops=tuple(answer["hops"]),
            states=tuple(answer["states"]),
            time_ns=answer["time_ns"],
            state=answer["state"],
            users=tuple(
                User(
                    name=user["name"],
                    command=tuple(user.get("command", answer["command"])),
                    hops=tuple(user["hops"]),
                    states=tuple(user["states"]),
                    state=answer["user_states"].get(user["name"]),
                )
                for user in answer.get("users", ())
            ),
        )

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        line = json.dumps({"version": VERSION, **request}) + "\n"
        try:
            self._socket.sendall(line.encode())
            while b"\n" not in self._received:
                chunk = self._socket.recv(65536)
                if not chunk:
                    raise ControlError("ended", "the run has ended")
                self._received += chunk
        except OSError as error:
            raise ControlError("ended", f"the run does not answer: {error}") from error
        first, self._received = self._received.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(first)
        if not answer["ok"]:
            raise ControlError(answer["error"]["kind"], answer["error"]["message"])
        return answer


def _effect(answer: dict[str, Any]) -> Effect:
    return Effect(
        time_ns=answer["time_ns"],
        received_ns=answer["received_ns"],
        state=answer["state"],
        user_states=answer.get("user_states", {}),
    )


def runs() -> list[Description]:
    """Return the runs of this user that go on."""
    found = []
    for number in _numbers(_folder()):
        try:
            with Run.of_number(number) as run:
                found.append(run.describe())
        except ControlError:
            continue
    return found


def connect(run: int | str | os.PathLike[str] | None = None) -> Run:
    """Connect to a run: by its number, its folder, the last part of that, or the only one.

    Raises:
        ControlError: there is none, or it is not clear which.

    """
    known = runs()
    if run is None:
        meant = known
    elif isinstance(run, int):
        meant = [one for one in known if one.run == run]
    else:
        word, path = os.fspath(run), Path(run).resolve()
        meant = [
            one
            for one in known
            if str(one.run) == word
            or (one.folder is not None and (one.folder == path or one.folder.name == word))
        ]
    if len(meant) == 1:
        return Run.of_number(meant[0].run)
    names = ", ".join(f"{one.run} ({one.folder or 'no folder'})" for one in known) or "none"
    what = "the only run" if run is None else f"run {run}"
    raise ControlError("run", f"{what} cannot be told; runs that go on: {names}")
