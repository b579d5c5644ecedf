# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""qlog files beside a run: what a QUIC endpoint says of its own recovery.

Encryption hides from captures what TCP shows. Both forms of draft-ietf-quic-qlog-main-schema are
read, JSON and JSON text sequences, with the event names of its drafts: ``recovery:metrics_updated``
and ``quic:recovery_metrics_updated`` mean the same here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.files import read_text, told
from airpath.jsontext import parse_json
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import NoReturn

SUFFIXES = (".qlog", ".sqlog")
RECORD_SEPARATOR = "\x1e"

METRICS = ("metrics_updated", "recovery_metrics_updated")
LOST = ("packet_lost",)
SENT = ("packet_sent",)

MILLISECOND_NS = 1e6

MOST_MILLISECONDS = 9e12
"""Times that fit into 63 bits as nanoseconds: 285 years."""

UPDATE_COLUMNS: dict[str, pl.DataType] = {
    "time_ns": pl.Int64(),
    "congestion_window": pl.Float64(),
    "bytes_in_flight": pl.Float64(),
    "latest_rtt_ns": pl.Float64(),
    "smoothed_rtt_ns": pl.Float64(),
}
"""Updates of an endpoint's recovery; null where one does not tell. Amounts are bytes."""


@dataclass(frozen=True)
class Endpoint:
    """One trace: what one end of one connection logged."""

    name: str
    """The file's name, and the trace's number where it holds several."""
    vantage: str
    """"client", "server", or what the file says otherwise."""
    updates: pl.DataFrame
    """A row an update, with ``UPDATE_COLUMNS``; times count from the trace's first event."""
    packets_sent: int
    packets_lost: int
    end_ns: int
    """The time of the last event."""


def read_folder(folder: Path, notes: list[str], damage: list[str]) -> list[Endpoint]:
    """Read all qlog files in a run's folder, in order of name.

    Args:
        folder: the run's folder.
        notes: what a reader must know is added here.
        damage: which files are no qlog, and were left out; added to the notes too.

    """
    found = []
    for path in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES):
        try:
            found += read(path, notes)
        except RunError as error:
            what = f"{str(error).removeprefix(f'{path.parent}/')}; the file was left out"
            notes.append(what)
            damage.append(what)
    return found


def read(path: Path, notes: list[str]) -> list[Endpoint]:
    """Read the traces of one file.

    Args:
        path: the file.
        notes: what a reader must know is added here.

    Raises:
        RunError: the file is no qlog, or damaged elsewhere than in its last record.

    """
    try:
        text = read_text(path)
    except OSError as error:
        message = f"{told(error)}; it cannot be read as qlog"
        raise RunError(message) from error
    except ValueError as error:
        message = f"{path}: cannot be read as qlog: {error}"
        raise RunError(message) from error
    if text.startswith(RECORD_SEPARATOR):
        return [_sequence(path, text, notes)]
    try:
        content = parse_json(text)
    except ValueError as error:
        message = f"{path}: not a qlog file: {error}; it must be JSON, or JSON text sequences"
        raise RunError(message) from error
    traces = content.get("traces") if isinstance(content, dict) else None
    if not isinstance(traces, list):
        message = f"{path}: not a qlog file: no list of traces"
        raise RunError(message)
    whole = [trace for trace in traces if isinstance(trace, dict) and "events" in trace]
    found = []
    for number, trace in enumerate(whole, start=1):
        name = path.name if len(whole) == 1 else f"{path.name}#{number}"
        found.append(_endpoint(path, name, trace, trace["events"]))
    return found


def _sequence(path: Path, text: str, notes: list[str]) -> Endpoint:
    records: list[Any] = []
    parts = text.split(RECORD_SEPARATOR)[1:]
    for number, part in enumerate(parts, start=1):
        try:
            records.append(parse_json(part))
        except ValueError as error:
            # The writer was killed within its last record: the rest is good.
            if number == len(parts) and records:
                notes.append(f"{path.name} is torn: its last record is incomplete and was left out")
                break
            message = f"{path}: record {number} is not JSON: {error}"
            raise RunError(message) from error
    head = records[0].get("trace") if records and isinstance(records[0], dict) else None
    if not isinstance(head, dict):
        message = f"{path}: not a qlog file: its first record has no trace"
        raise RunError(message)
    return _endpoint(path, path.name, head, records[1:])


def _endpoint(path: Path, name: str, trace: dict[str, Any], events: Any) -> Endpoint:
    def refuse(what: str) -> NoReturn:
        message = f"{path}: damaged: {what}"
        raise RunError(message)

    def table(key: str) -> dict[str, Any]:
        value = trace.get(key) or {}
        return value if isinstance(value, dict) else refuse(f"{key} is {value!r:.40}, no object")

    if not isinstance(events, list):
        refuse(f"events is {events!r:.40}, no list")
    relative = table("common_fields").get("time_format") in ("relative_to_previous_event", "delta")
    vantage = table("vantage_point").get("type")
    rows: list[dict[str, float | None]] = []
    sent = lost = 0
    first = last = None
    now = 0.0
    for place, time, kind, data in _events(events):
        now = now + time if relative else time
        if not -MOST_MILLISECONDS < now < MOST_MILLISECONDS:
            refuse(f"the time of event {place}, {time:g} ms, cannot be")
        first = now if first is None else first
        last = now
        if kind in SENT:
            sent += 1
        elif kind in LOST:
            lost += 1
        elif kind in METRICS:
            rows.append(
                {
                    "time_ns": round((now - first) * MILLISECOND_NS),
                    "congestion_window": _number(data, "congestion_window", "cwnd"),
                    "bytes_in_flight": _number(data, "bytes_in_flight"),
                    "latest_rtt_ns": _scaled(_number(data, "latest_rtt")),
                    "smoothed_rtt_ns": _scaled(_number(data, "smoothed_rtt")),
                }
            )
    span = 0.0 if first is None or last is None else last - first
    return Endpoint(
        name=name,
        vantage=vantage if isinstance(vantage, str) else "unknown",
        updates=pl.DataFrame(rows, schema=UPDATE_COLUMNS),
        packets_sent=sent,
        packets_lost=lost,
        end_ns=round(span * MILLISECOND_NS),
    )


def _events(events: Iterable[Any]) -> Iterator[tuple[int, float, str, dict[str, Any]]]:
    """Yield number, time in ms, name without its namespace, and data.

    What is no event is passed over.
    """
    for number, event in enumerate(events, start=1):
        if not isinstance(event, dict):
            continue
        time, name, data = event.get("time"), event.get("name"), event.get("data")
        if isinstance(time, int | float) and isinstance(name, str):
            fields = data if isinstance(data, dict) else {}
            yield number, float(time), name.rpartition(":")[2], fields


def _number(data: dict[str, Any], *names: str) -> float | None:
    for name in names:
        value = data.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        # The drafts write 64-bit numbers as text where JSON has no room.
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
            return float(value)
    return None


def _scaled(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds * MILLISECOND_NS
