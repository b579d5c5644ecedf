# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The folder of a run, as analysis sees it: manifest, events, captures.

Everything may be missing or cut short, because a run may have been killed at any point; what could
not be read is told in ``Run.notes``.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath import facts
from airpath.arrow import FILE_MAGIC, ArrowLogError, read_arrow_log
from airpath.capture import CaptureError, read_capture
from airpath.facts import (
    CAPTURES,
    EXIT_STATUSES,
    FILES,
    FILES_OF_A_RUN,
    NO_VERDICT,
    RUN_FORMAT_VERSION,
    TABLES,
)
from airpath.files import REPLICATION, open_plain, read_bytes, told
from airpath.html import table
from airpath.jsontext import parse_json
from airpath.manifest import within_shape
from airpath.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIRECTIONS = facts.DIRECTIONS
"""Client to server, and server to client; also the order in which pictures show them."""

_IDENTITIES = frozenset({"pdu", "flow", "reverse_flow", "snd_una", "snd_nxt"})
"""Columns that name something or wrap around: differences have no meaning."""

_TYPES: dict[str, pl.DataType] = {
    "word": pl.Categorical(),
    "text": pl.Categorical(),
    "boolean": pl.Boolean(),
    "float64": pl.Float64(),
    "uint8": pl.UInt8(),
    "uint16": pl.UInt16(),
    "uint32": pl.Int64(),
    "uint64": pl.Int64(),
    "list of uint32": pl.List(pl.UInt32()),
}
_TYPES_OF_IDENTITIES: dict[str, pl.DataType] = {"uint32": pl.UInt32(), "uint64": pl.UInt64()}


def _columns(table: str) -> dict[str, pl.DataType]:
    """Return the columns of a table; times and amounts are signed so that differences are safe."""
    return {
        column.name: (_TYPES_OF_IDENTITIES if column.name in _IDENTITIES else _TYPES)[column.type]
        for column in TABLES[table]
    }


EVENT_COLUMNS = _columns(FILES["events"])
"""Columns of ``Run.events``."""

TCP_STATE_COLUMNS = _columns(FILES["tcp_state"])
"""Columns of ``Run.tcp_state``; docs/tcp-state.md says what they mean."""

LINK_COLUMNS = _columns(FILES["link"])
"""Columns of ``Run.link``; docs/scenario/radio.md says what they mean."""

_HOSTS = "hosts"
"""The folder of the parts of a run on several hosts."""

_LATER = frozenset(column.name for column in TABLES[FILES["events"]] if column.nullable)
"""Columns that are null where a log does not have them."""


MOST_MANIFEST_BYTES = 64_000_000
"""Maximum size of a manifest: a run of a thousand users has some megabytes."""


class RunError(Exception):
    """A folder holds no run that could be read."""

    status = EXIT_STATUSES["usage"]
    """Exit status of a command that ends with it."""


class NoRunError(RunError):
    """A folder that was named does not exist, or holds no run."""


class NoUserError(RunError):
    """A run has no user of that name."""


SHOWN_USERS = 3
"""Number of users who are named where a state changes; more are counted."""

CONTRADICTIONS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions of computing over files each of which can be read, and which contradict each other:
a flow that ends before it begins, a time centuries long."""


@contextmanager
def contradictions_named(directory: Path) -> Iterator[None]:
    """Have whatever computing over a run's files ends in name the run.

    Raises:
        RunError: it ended in one of ``CONTRADICTIONS``.

    """
    try:
        yield
    except CONTRADICTIONS as error:
        kind = "" if isinstance(error, pl.exceptions.PolarsError) else f"{type(error).__name__}: "
        message = f"{directory}: its logs contradict each other: {kind}{_first_line(error)}"
        raise RunError(message) from error


@dataclass(frozen=True)
class Reason:
    """A reason of a verdict that is not trusted."""

    code: str
    """A fixed word, such as ``late_emissions``; docs/verdict.md lists them."""
    what: str
    """Description of the problem, with its numbers."""
    mend: str
    """Advice for the user."""


@dataclass
class Run:
    """A run's folder. Read with ``load_run``; the logs are read when first asked for."""

    directory: Path
    manifest: dict[str, Any] = field(repr=False)
    """The content of run.json; empty if the run left none."""

    notes: list[str] = field(default_factory=list)
    """Notes on the data: files missing, torn or unreadable."""

    damage: list[str] = field(default_factory=list)
    """Those of the notes that tell of damage: a file of a run that ended is not as it was written.
    A run that is active, or was killed, may lack its end without being damaged."""

    user: str | None = None
    """The only user whose events, captures and counters are read; None for all."""

    _made: dict[object, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: object, make: Callable[[Run], pl.DataFrame]) -> pl.DataFrame:
        """Return a table over the logs that is made when it is first asked for by its key."""
        if key not in self._made:
            self._made[key] = make(self)
        return self._made[key]

    def _repr_html_(self) -> str:
        rows = [
            ("folder", str(self.directory)),
            ("clock", self.clock),
            ("seed", str(self.manifest.get("seed", "unknown"))),
            ("duration", f"{self.results.get('duration_ns', 0) / 1e9:.4g} s"),
            ("verdict", "; ".join([self.verdict, *self.verdict_reasons])),
        ]
        if not self.results:
            rows[3] = ("duration", "unknown: the run is active, or was killed")
        return table(self.name, [], rows)

    @property
    def name(self) -> str:
        """The scenario's name, or that of the experiment's network, or the folder's."""
        scenario = self.manifest.get("scenario")
        if isinstance(scenario, dict):
            name = scenario.get("name") or scenario.get("title")
            if isinstance(name, str) and name:
                return name
        # The folder of a replication is a number, which says nothing by itself.
        return _network(self.directory / REPLICATION) or self.directory.resolve().name

    @property
    def results(self) -> dict[str, Any]:
        """Results of the engine when the run ended; empty while it is active, and after a crash."""
        results = self.manifest.get("results")
        results = results if isinstance(results, dict) else {}
        if self.user is None:
            return results
        # Delays and their like are measured over all users.
        return {
            key: [one for one in value if one.get("user") == self.user]
            if key == "counters"
            else value
            for key, value in results.items()
            if key != "timings"
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the run in addition to the scenario: MTU, congestion control and the like."""
        settings = self.manifest.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def start_unix_ns(self) -> int:
        """The run's t = 0, in nanoseconds since the Unix epoch; 0 if the run did not note it."""
        value = self.manifest.get("start_unix_ns")
        return value if isinstance(value, int) else 0

    @property
    def clock(self) -> str:
        """Clock of the run: live, warp or virtual; live where the run does not say."""
        value = self.manifest.get("clock")
        return value if isinstance(value, str) else "live"

    @property
    def verdict(self) -> str:
        """Verdict of the engine on its own exactness: trusted, suspect, invalid, or unknown."""
        verdict = self.results.get("verdict")
        grade = verdict.get("grade") if isinstance(verdict, dict) else None
        return grade if isinstance(grade, str) else NO_VERDICT

    @property
    def verdict_details(self) -> list[Reason]:
        """Reasons for a verdict other than trusted, with advice; empty for a trusted run."""
        verdict = self.results.get("verdict")
        reasons = verdict.get("reasons") if isinstance(verdict, dict) else None
        if not isinstance(reasons, list):
            return []
        return [
            Reason(*(str(reason.get(key, "")) for key in ("code", "what", "mend")))
            for reason in reasons
            if isinstance(reason, dict)
        ]

    @property
    def verdict_reasons(self) -> list[str]:
        """Reasons for a verdict other than trusted; empty for a trusted run."""
        return [reason.what for reason in self.verdict_details]

    @cached_property
    def events(self) -> pl.DataFrame:
        """All events, with the columns of ``EVENT_COLUMNS``, in order of time."""
        path = self.directory / FILES["events"]
        frame = pl.DataFrame()
        if not path.exists():
            level = self.manifest.get("log_level")
            if level in ("events", "packets"):
                part = _part_with(self.directory, FILES["events"])
                missing = (
                    f"events.arrow is missing, although the run recorded it (--log {level}); "
                    f"restore the file, or run again"
                    if part is None
                    else f"the parts of this run on several hosts were not joined: there is no "
                    f"events.arrow; name one of the parts, such as {part}"
                )
                self.notes.append(missing)
                self.damage.append(missing)
            else:
                self.notes.append(
                    "no events.arrow: the run kept no events; run again with --log packets or "
                    "--log events"
                )
        else:
            frame = self._read_log(path)
        try:
            return self._of_user(_with_event_columns(frame))
        except pl.exceptions.PolarsError as error:
            raise RunError(_misfit(path, error)) from error

    @cached_property
    def tcp_state(self) -> pl.DataFrame:
        """State of the TCP connections in the kernels, in order of time.

        The columns are those of ``TCP_STATE_COLUMNS``; what a kernel did not tell is null. Without
        ``tcp.arrow`` there are no rows. Of one user there are the connections in its captures.
        """
        rows = self._side_log(self.directory / FILES["tcp_state"], TCP_STATE_COLUMNS)
        if self.user is None:
            return rows
        seen = [packets["source"].cast(pl.String).unique() for packets in self.captures.values()]
        of_user = pl.concat(seen).unique() if seen else pl.Series(dtype=pl.String)
        return rows.filter(pl.col("local_address").cast(pl.String).is_in(of_user.implode()))

    @cached_property
    def link(self) -> pl.DataFrame:
        """Frames and state of link entities that have a protocol of their own, in order of time.

        The columns are those of ``LINK_COLUMNS``; what an entity does not have is null. Without
        ``link.arrow`` there are no rows.
        """
        return self._of_user(self._side_log(self.directory / FILES["link"], LINK_COLUMNS))

    def _of_user(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the only user, or all."""
        if self.user is None:
            return rows
        return rows.filter(pl.col("user").cast(pl.String) == self.user)

    def _side_log(self, path: Path, schema: dict[str, pl.DataType]) -> pl.DataFrame:
        """Return the rows of a log that not every run has."""
        if not path.exists():
            return pl.DataFrame(schema=schema)
        frame = self._read_log(path)
        # A frame without columns is a log that was killed before it was begun.
        columns = [
            pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
            for name, dtype in schema.items()
        ]
        if not frame.columns:
            return pl.DataFrame(schema=schema)
        try:
            return frame.select(columns).sort("time_ns", maintain_order=True)
        except pl.exceptions.PolarsError as error:
            raise RunError(_misfit(path, error)) from error

    def _read_log(self, path: Path) -> pl.DataFrame:
        """Return the rows of an Arrow log; note what is missing of it."""
        try:
            log = read_arrow_log(path)
        except ArrowLogError as error:
            raise RunError(str(error)) from error
        except OSError as error:
            raise RunError(told(error)) from error
        if log.torn_bytes:
            self._torn(
                f"{path.name} is torn: its last {log.torn_bytes} bytes are incomplete "
                f"and were left out",
                damaged=log.torn_file,
            )
        elif not log.clean_end:
            self.notes.append(f"{path.name} was not ended: the run is active, or was killed")
        return log.frame

    def _torn(self, note: str, *, damaged: bool = False) -> None:
        """Note what is missing of a file; in a run that ended, nothing should be."""
        self.notes.append(note)
        if damaged or self.results:
            self.damage.append(note)

    @cached_property
    def has_bearers(self) -> bool:
        """True if a hop has bearers: each has a queue and link entities of its own."""
        return has_bearers(self.events)

    def queue_name(self) -> pl.Expr:
        """Return the name of the queue of an event or record, as ``alice.radio.voice``.

        It is that of the hop, with the user's before it where there are several, and the bearer's
        behind it where the hop has bearers.
        """
        return queue_name(of_users=self.tells_users, has_bearers=self.has_bearers)

    @cached_property
    def users(self) -> list[str]:
        """Names of the users of a cell, in the order of the scenario; empty for a run of one."""
        users = self.manifest.get("users")
        names = [user.get("name") for user in users] if isinstance(users, list) else []
        names = [name for name in names if isinstance(name, str)]
        return names if len(names) > 1 else []

    @property
    def tells_users(self) -> bool:
        """True if the run is that of several users together."""
        return bool(self.users) and self.user is None

    def of_user(self, name: str) -> Run:
        """Return the same run as one user has it: only the events, captures and counters of that.

        Raises:
            NoUserError: the run has no such user.

        """
        if name not in self.users:
            hint = nearest(name, self.users) or "; the run has one user, without a name"
            message = f"{self.directory}: there is no user `{name}`{hint}"
            raise NoUserError(message)
        return Run(self.directory, self.manifest, list(self.notes), list(self.damage), name)

    @cached_property
    def captures(self) -> dict[str, pl.DataFrame]:
        """Packets seen at ``client`` and ``server``, as ``read_capture`` gives them.

        An end without a capture is left out. Times count from the run's t = 0. With several users
        each frame has the packets of all of them, in order of time, and a column ``user``.
        """
        captures: dict[str, pl.DataFrame] = {}
        for name in CAPTURES:
            if self.users:
                of_users = [
                    packets.with_columns(user=pl.lit(user, pl.Categorical))
                    for user in ([self.user] if self.user else self.users)
                    if (packets := self._capture(f"{user}-{name}")) is not None
                ]
                packets = (
                    pl.concat(of_users).sort("time_ns", maintain_order=True) if of_users else None
                )
            else:
                packets = self._capture(name)
            if packets is not None:
                captures[Path(name).stem] = packets
        start = self.start_unix_ns or self._inferred_start_ns(captures)
        return {
            end: packets.with_columns(pl.col("time_ns") - start)
            for end, packets in captures.items()
        }

    def _capture(self, name: str) -> pl.DataFrame | None:
        """Read the capture of that name, if there is one."""
        path = self.directory / name
        try:
            if not path.exists():
                return None
            capture = read_capture(path)
        except CaptureError as error:
            raise RunError(str(error)) from error
        except OSError as error:
            raise RunError(told(error)) from error
        if capture.torn_bytes:
            self._torn(
                f"{path.name} is torn or damaged: its last {capture.torn_bytes} bytes "
                f"are no complete packets and were left out"
            )
        return capture.packets

    def _inferred_start_ns(self, captures: dict[str, pl.DataFrame]) -> int:
        """Find t = 0 in the captures' clock for a run that was killed before it noted it."""
        offered = self.path_events("offered").select("pdu", offered_ns="time_ns")
        starts = []
        for packets in captures.values():
            entered = packets.filter((pl.col("interface") == "rx") & (pl.col("pdu") != 0))
            joined = entered.join(offered, on="pdu").select(
                pl.col("time_ns") - pl.col("offered_ns")
            )
            # Without events the first packet has to do.
            times = joined["time_ns"] if not joined.is_empty() else packets["time_ns"]
            starts += times.head(1).to_list()
        return min(starts, default=0)

    @cached_property
    def duration_ns(self) -> int:
        """Length of the run; for a run without an end, the time of its last event."""
        value = self.results.get("duration_ns")
        if isinstance(value, int) and value > 0:
            return value
        last = self.events["time_ns"].max()
        return last if isinstance(last, int) else 0

    def path_events(self, kind: str) -> pl.DataFrame:
        """Return one row for each packet at the path's own border, copies included.

        Args:
            kind: "offered" (entering the path) or "delivered" (leaving it).

        """
        return self.once(("path", kind), lambda run: path_events(run.events, kind))

    def drops(self) -> pl.DataFrame:
        """Return the events of endpoints' packets that the link dropped."""
        return self.once("drops", lambda run: drops(run.events))

    def state_changes(self) -> list[tuple[int, str]]:
        """Return (time_ns, state) of each change, once however many hops it concerns.

        Where only some of several users change, they come first: "alice, bob: far".
        """
        rows = (
            self.events.filter(pl.col("kind") == "state_changed")
            .select("time_ns", pl.col("state").cast(pl.String), pl.col("user").cast(pl.String))
            .unique(maintain_order=True)
            .group_by("time_ns", "state", maintain_order=True)
            .agg("user")
        )
        count = 1 if self.user is not None else max(1, len(self.users))

        def title(state: str, users: list[str]) -> str:
            if len(users) == count:
                return state
            who = ", ".join(users) if len(users) <= SHOWN_USERS else f"{len(users)} users"
            return f"{who}: {state}"

        return [(int(time), title(state, users)) for time, state, users in rows.iter_rows()]


def path_events(events: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return the rows of ``Run.path_events`` of a table of events."""
    rows = events.filter(pl.col("kind") == kind)
    if kind == "delivered":
        return rows
    return rows.unique(subset=["direction", "pdu"], keep="first", maintain_order=True)


def drops(events: pl.DataFrame) -> pl.DataFrame:
    """Return the events of endpoints' packets that the link dropped."""
    return events.filter((pl.col("kind") == "dropped") & (pl.col("origin") == "user"))


def has_bearers(events: pl.DataFrame) -> bool:
    """Return true if a hop has bearers: each has a queue and link entities of its own."""
    return bool((events["bearer"].cast(pl.String) != "").any())


def queue_name(*, of_users: bool, has_bearers: bool) -> pl.Expr:
    """Return the column ``hop`` as ``Run.queue_name`` tells it.

    Args:
        of_users: names begin with that of the user.
        has_bearers: names end with that of the bearer, if there is one.

    """
    name = pl.col("hop").cast(pl.String)
    if of_users:
        name = pl.concat_str(pl.col("user").cast(pl.String), name, separator=".")
    if has_bearers:
        bearer = pl.col("bearer").cast(pl.String).fill_null("")
        behind = pl.when(bearer == "").then(pl.lit("")).otherwise(pl.lit(".") + bearer)
        name = pl.concat_str(name, behind)
    return name.alias("hop")


def load_run(directory: Path) -> Run:
    """Open a run's folder.

    Raises:
        NoRunError: the folder does not exist, or holds neither manifest nor logs.
        RunError: the run has another format.

    """
    if not directory.is_dir():
        message = f"{directory}: no such folder; name the one given to --out"
        raise NoRunError(message)
    notes: list[str] = []
    damage: list[str] = []
    manifest: dict[str, Any] = {}
    path = directory / FILES["manifest"]
    if path.exists():
        try:
            content = parse_json(read_bytes(path, MOST_MANIFEST_BYTES))
        except ValueError as error:
            damage.append(f"run.json is unreadable and was left out: {error}")
        except OSError as error:
            raise RunError(told(error)) from error
        else:
            if isinstance(content, dict):
                _check_format(content, path)
                wrong: list[str] = []
                manifest = within_shape(content, wrong)
                damage += [f"run.json: {what}; it was left out" for what in wrong]
            else:
                damage.append("run.json is no JSON object and was left out")
    else:
        if _has_ended(directory):
            damage.append(
                "run.json is missing, although the run ended: verdict, scenario and seed are "
                "unknown; restore the file, or run again"
            )
        else:
            notes.append("no run.json: the run was killed before its end")
    logs = [name for name in FILES_OF_A_RUN if name != FILES["manifest"]]
    if not manifest and not any((directory / log).exists() for log in logs):
        if (part := directory / _HOSTS / "local").is_dir():
            message = (
                f"{directory}: holds the parts of a run on several hosts that was killed before "
                f"they were joined, or is active; name one of them, such as {part}"
            )
            raise NoRunError(message)
        message = (
            f"{directory}: not the folder of a run (neither run.json nor {', '.join(logs)}); "
            f"runs made with --out have one"
        )
        raise NoRunError(message)
    return Run(directory, manifest, [*notes, *damage], damage)


def _part_with(directory: Path, name: str) -> Path | None:
    """Return the folder of a part of a run on several hosts that has a file, the first by name."""
    parts = (directory / _HOSTS).glob(f"*/{name}")
    return min((file.parent for file in parts), default=None)


def _has_ended(directory: Path) -> bool:
    """Say whether the log of a run was ended: then it is an Arrow file, before that a stream."""
    try:
        with os.fdopen(open_plain(directory / FILES["events"]), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(FILE_MAGIC)))
            return file.read() == FILE_MAGIC
    except OSError:
        return False


def _network(record: Path) -> str:
    """Return the network that an experiment's record of a run names; nothing if it names none."""
    try:
        about = parse_json(read_bytes(record, MOST_MANIFEST_BYTES).decode())
    except (OSError, ValueError):
        return ""
    name = about.get("network") if isinstance(about, dict) else None
    return name if isinstance(name, str) else ""


def _misfit(path: Path, error: Exception) -> str:
    """Say that a log's columns hold what these columns never do."""
    return f"{path}: damaged: a column has values of another kind: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_format(manifest: dict[str, Any], path: Path) -> None:
    """Refuse a run of another format: what its logs mean is not for this version to guess."""
    found = manifest.get("format_version", RUN_FORMAT_VERSION)
    if found != RUN_FORMAT_VERSION:
        message = (
            f"{path} has format {found!r:.40}, but this version of Airpath reads "
            f"format {RUN_FORMAT_VERSION}; use the version of Airpath that recorded it"
        )
        raise RunError(message)


def _with_event_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring a log to the columns and types of ``EVENT_COLUMNS``."""
    columns = []
    for name, dtype in EVENT_COLUMNS.items():
        if name not in frame.columns:
            # Logs of earlier versions knew no background load.
            text = "user" if name == "origin" else ""
            default = text if dtype == pl.Categorical else None if name in _LATER else 0
            columns.append(pl.lit(default).cast(dtype).alias(name))
        elif dtype == pl.Categorical:
            columns.append(pl.col(name).cast(pl.Categorical).fill_null(""))
        else:
            columns.append(pl.col(name).cast(dtype))
    if not frame.columns:
        return pl.DataFrame(schema=EVENT_COLUMNS)
    return frame.select(columns).sort("time_ns", maintain_order=True)
