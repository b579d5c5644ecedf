# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A recorded run, played again in virtual time, leaves the same trace; what differs is found."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute
import pytest

from airpath.run import Run, load_run
from live.harness import Airpath, User, await_true, end_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from live.harness import Result, Way

USAGE = 2
DIFFERENT = 1

BIT_ERRORS = (
    'radio.link.errors={ type = "bernoulli", per = "packet", probability = 0.2, '
    'effect = "corrupt", headers = "included", flips = 3 }'
)

EVERYTHING = """
[[hops]]
name = "radio"
[hops.link]
rate = "400 kbit/s"
propagation = "15 ms"
queue = { type = "tail_drop", limit = "20 packets" }
fragmentation = { frame_payload = "1000 bit", frame_header = "24 bit", last_frame = "padded" }
send_buffer = "4 packets"
allocation_delay = "30 ms"
errors = { type = "gilbert_elliott", per = "frame", good_to_bad = 0.05, bad_to_good = 0.3, \
error_in_bad = 0.5, effect = "corrupt", flips = 3 }

[[hops]]
name = "core"
[hops.link]
rate = "2 Mbit/s"
propagation = "3 ms"
errors = { type = "bernoulli", per = "packet", probability = 0.05, effect = "delay", \
delay = "40 ms", keep_order = false }

[[states]]
name = "fast"
at = "300 ms"
set = { "radio.link.rate" = "900 kbit/s", "radio.link.errors.error_in_bad" = 0.9 }

[[states]]
name = "slow"
at = "600 ms"
set = { "radio.link.rate" = "100 kbit/s" }
"""
"""Two hops, three states, fragmentation, damage and delay: much that could go wrong."""


def record(airpath: Airpath, way: Way, *link: object, level: str = "events") -> Path:
    """Send datagrams both ways over a link and return the folder of the run."""
    out = airpath.path("run")
    arguments = ("--out", out, "--log", level, "--seed", 11, *link)
    server = airpath.server(
        "datagram-server", 4, "udp", 0, 9000, airpath.path("received"), airpath.path("counters")
    )
    client = airpath.program("datagram-client", 4, "udp", 0, 9000, 200, 700, 0.004, 0.3)
    airpath.exec(way, *arguments, "--server", server, "--", *client).check()
    return out


def replay(airpath: Airpath, user: User, run: Path, *arguments: object) -> Result:
    return airpath.run("replay", run, *arguments, user=user)


def identical(airpath: Airpath, user: User, run: Path) -> dict[str, Any]:
    """Replay a run, check that its trace is the same, and return what was found."""
    found = json.loads(replay(airpath, user, run, "--json").check().out)
    assert isinstance(found, dict)
    assert found["identical"]
    assert found["difference"] is None
    assert found["positions_compared"]
    assert found["events"] == load_run(run).events.height
    return found


LINKS: dict[str, tuple[object, ...]] = {
    "simple": ("--rate", "10 Mbit/s", "--delay", "5 ms"),
    "lossy": ("--rate", "2 Mbit/s", "--delay", "5 ms", "--loss", "10%"),
    "disorder": (
        "--rate",
        "2 Mbit/s",
        "--delay",
        "5 ms",
        "--jitter",
        "2 ms",
        "--reorder",
        "5% 4 ms",
        "--duplicate",
        "5%",
    ),
    "bit errors": ("--rate", "2 Mbit/s", "--delay", "5 ms", "--set", BIT_ERRORS),
    "everything": (),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_live_run_gives_the_same_trace_again(airpath: Airpath, way: Way, link: str) -> None:
    scenario = airpath.file("scenario.toml", EVERYTHING)
    options = LINKS[link] or ("--scenario", scenario)
    run = record(airpath, way, *options)
    found = identical(airpath, way.user, run)
    assert found["events"] > 1000
    events = load_run(run).events
    kinds = set(events["kind"].cast(str))
    if link == "lossy":
        assert "dropped" in kinds
    if link == "disorder":
        assert {"held_back", "duplicated"} <= kinds
    if link in ("bit errors", "everything"):
        damaged = events.filter(events["kind"] == "damaged")["pdu"].n_unique()
        assert found["damaged_packets"] > 10
        assert found["damaged_packets"] <= damaged
    if link == "everything":
        assert {"frame_delayed", "state_changed", "allocation_started"} <= kinds
        # On a busy machine the first packet may come after the first change.
        assert set(events["state"].cast(str)) - {"initial"} == {"fast", "slow"}


def test_a_run_with_the_widest_quantum_of_departures_gives_the_same_trace_again(
    airpath: Airpath, way: Way
) -> None:
    out = airpath.path("run")
    link = ("--rate", "50 Mbit/s", "--delay", "20 ms", "--loss", "0.5%", "--queue", "100 packets")
    options = ("--economy", "--out", out, "--log", "events", "--seed", 3, *link)
    server = f"{airpath.command} recv --once"
    send = (airpath.command, "send", "server", "--bytes", 2_000_000)
    airpath.exec(way, *options, "--server", server, "--", *send).check()
    found = identical(airpath, way.user, out)
    assert found["events"] > 5000
    manifest = load_run(out).manifest
    assert manifest["settings"]["economy"] == "on"
    timings = manifest["results"]["timings"]
    # 1 ms is allowed; an ordinary user's ports have less room for what comes meanwhile.
    quantum_ns = timings["exactness"]["quantum_ns"]
    assert quantum_ns in (750_000, 200_000)
    # Packets are 240 µs apart: most of them wait for others.
    assert timings["lateness"]["p50_ns"] > quantum_ns / 20


CLASSES = """
[[hops]]
name = "radio"
[hops.link]
rate = "400 kbit/s"
propagation = "5 ms"
[hops.link.queue]
type = "classes"
order = "deficit_round_robin"
limit = "60 packets"
[[hops.link.queue.classes]]
name = "fast"
match = { protocol = "udp", server_port = 9000, shortest = "300 bytes" }
quantum = "800 bytes"
queue = { type = "fq_codel", limit = "30 packets", target = "2 ms", interval = "10 ms" }
[[hops.link.queue.classes]]
name = "short"
match = { protocol = "udp", longest = "299 bytes" }
[[hops.link.queue.classes]]
name = "rest"
queue = { type = "fq_pie" }

[[states]]
name = "narrow"
at = "300 ms"
set = { "radio.link.queue.classes.fast.queue.limit" = "5 packets" }
"""
"""Packets told apart by what their headers say."""


def test_packets_are_classified_again_as_they_were(airpath: Airpath, way: Way) -> None:
    run = record(airpath, way, "--scenario", airpath.file("scenario.toml", CLASSES))
    found = identical(airpath, way.user, run)
    assert found["events"] > 1000
    events = load_run(run).events
    causes = set(events["cause"].cast(str))
    assert causes & {"queue_management", "queue_packets"}
    # Five-tuples are in the log of what came in, and without them the trace is another one.
    with pa.ipc.open_file(run / "input.arrow") as reader:
        inputs = reader.read_all()
    offers = inputs.filter(pa.compute.equal(inputs["kind"].cast(pa.string()), "offer"))
    assert set(offers["protocol"].to_pylist()) == {17}
    ports = zip(
        offers["source_port"].to_pylist(), offers["destination_port"].to_pylist(), strict=True
    )
    assert all(9000 in pair for pair in ports)
    columns = ["source", "destination", "source_port", "destination_port", "protocol"]
    rewrite(run / "input.arrow", lambda table: table.drop_columns(columns))
    assert "different" in replay(airpath, way.user, run).check(DIFFERENT).out


def test_a_log_without_tuples_is_replayed(airpath: Airpath, user: User, recorded: Path) -> None:
    run = airpath.path("older")
    shutil.copytree(recorded, run)
    columns = ["source", "destination", "source_port", "destination_port", "protocol"]
    rewrite(run / "input.arrow", lambda table: table.drop_columns(columns))
    assert replay(airpath, user, run).check().out.startswith("identical: ")


def test_super_packets_are_replayed_as_the_segments_they_are(airpath: Airpath, way: Way) -> None:
    out = airpath.path("run")
    server = airpath.server("tcp-server", 4, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", 4, 5000, 3_000_000, 100_000)
    result = airpath.exec(
        way, "--cc", "cubic", "--delay", "2 ms", "--loss", "0.1%", "--out", out, "--seed", 3,
        "--server", server, "--server-grace", "5 s", "--", *client,
    )  # fmt: skip
    assert json.loads(result.check().out)["longest"] > 1500
    assert identical(airpath, way.user, out)["events"] > 10_000


PPP = """
[[hops]]
name = "radio"
[hops.link]
rate = { type = "slotted", slot = "1 ms", bits = "240 bit" }
propagation = "5 ms"
send_buffer = "20 packets"
errors = { type = "bernoulli", per = "frame", probability = 0.002 }
entity = { type = "transparent", characters = "synchronous", ppp = { stuffing = "counted" } }
"""
"""A bearer of 192 kbit/s on which the contents of a packet decide how long it is."""


def test_escapes_are_counted_and_replayed(airpath: Airpath, way: Way) -> None:
    size, headers, framing = 200, 28, 6
    server = airpath.server(
        "datagram-server", 4, "udp", 0, 9000, airpath.path("received"), airpath.path("counters")
    )
    run = airpath.path("run")
    client = airpath.program("tilde-client", 4, 9000, 40, size)
    airpath.exec(
        way, "--scenario", airpath.file("scenario.toml", PPP), "--out", run, "--log", "events",
        "--seed", 5, "--server", server, "--", *client,
    ).check()  # fmt: skip
    with pa.ipc.open_file(run / "input.arrow") as reader:
        inputs = reader.read_all().to_pylist()
    offers = [row for row in inputs if row["kind"] == "offer" and row["destination_port"] == 9000]
    # Every super-packet has become packets, and each has its own count.
    assert len(offers) == 80
    for row in offers:
        assert row["length"] == size + headers
        assert size <= row["escapes"] <= size + headers + framing
    identical(airpath, way.user, run)

    def refused(*words: str) -> None:
        error = replay(airpath, way.user, run).check(USAGE).err
        assert all(word in error for word in words), error

    whole = (run / "input.arrow").read_bytes()
    row = inputs.index(offers[10])
    rewrite(run / "input.arrow", lambda table: changed(table, "escapes", row, 0))
    assert "different" in replay(airpath, way.user, run).check(DIFFERENT).out
    (run / "input.arrow").write_bytes(whole)
    rewrite(run / "input.arrow", lambda table: changed(table, "escapes", row, 60_000))
    refused("a packet has 60000 escapes in 236 octets", "record the run again")
    (run / "input.arrow").write_bytes(whole)
    rewrite(run / "input.arrow", lambda table: table.drop_columns(["escapes"]))
    refused("it lacks the column `escapes`", "record the run again")


VJ = """
[[hops]]
name = "radio"
[hops.link]
rate = { type = "slotted", slot = "1 ms", bits = "240 bit" }
propagation = "5 ms"
send_buffer = "4 packets"
errors = { type = "bernoulli", per = "frame", probability = 0.001 }
entity = { type = "transparent", characters = "synchronous", \
ppp = { header_compression = "vj", compress_slot_id = false } }
"""
"""The same with compressed headers, which are wrong after a loss."""


def test_compressed_headers_are_replayed(airpath: Airpath, way: Way) -> None:
    run = airpath.path("run")
    server = airpath.server("tcp-server", 4, 5000, airpath.path("counters"))
    program = shlex.join(airpath.program("tcp-client", 4, 5000, 30_000, 20_000))
    # Timestamps would change the options of each segment, which then goes uncompressed.
    client = f"echo 0 > /proc/sys/net/ipv4/tcp_timestamps && exec {program}"
    airpath.exec(
        way, "--scenario", airpath.file("scenario.toml", VJ), "--out", run, "--log", "events",
        "--seed", 5, "--mtu", 576, "--server", server, "--server-grace", "5 s",
        "--", "sh", "-c", client,
    ).check()  # fmt: skip
    identical(airpath, way.user, run)
    events = load_run(run).events
    # A damaged packet is one whose header was not what came in: nothing else damages packets here.
    kinds = dict(events["kind"].value_counts().iter_rows())
    assert kinds["damaged"] > 0
    lengths = events.filter(events["kind"] == "enqueued")["bits"]
    line = events.filter(events["kind"] == "frame_sent").height * 192
    assert line < lengths.sum() + lengths.len() * 7 * 8
    # The replay has the headers from the input log: without one of them it takes more of the line.
    with pa.ipc.open_file(run / "input.arrow") as reader:
        inputs = reader.read_all().to_pylist()
    row = next(number for number, each in enumerate(inputs) if each["length"] == 576)
    rewrite(run / "input.arrow", lambda table: changed(table, "header", row, None))
    assert "different" in replay(airpath, way.user, run).check(DIFFERENT).out


def test_a_log_without_escapes_is_replayed(airpath: Airpath, user: User, recorded: Path) -> None:
    run = airpath.path("older")
    shutil.copytree(recorded, run)
    rewrite(run / "input.arrow", lambda table: table.drop_columns(["escapes"]))
    assert replay(airpath, user, run).check().out.startswith("identical: ")


def on_the_link(run: Run) -> list[tuple[Any, ...]]:
    """Return the counters of a run without what was kept off its link."""
    found = [
        (site["hop"], site["direction"], {**site["kinds"], "discarded": None})
        for site in run.results["counters"]
    ]
    return [site for site in found if len(site[2]) > 1]


def test_a_replay_is_a_run_that_can_be_replayed(airpath: Airpath, user: User) -> None:
    way = next(way for way in _ways() if way.user == user)
    run = record(airpath, way, "--rate", "2 Mbit/s", "--delay", "5 ms", "--set", BIT_ERRORS)
    copy = airpath.path("copy")
    said = replay(airpath, user, run, "--out", copy).check().out
    again = replay(airpath, user, copy).check().out
    assert said == again
    assert said.startswith("identical: ")
    first, second = load_run(run), load_run(copy)
    assert second.clock == "virtual"
    columns = [name for name in first.events.columns if name != "emitted_ns"]
    assert first.events.select(columns).equals(second.events.select(columns))
    assert on_the_link(first) == on_the_link(second)
    refused = replay(airpath, user, run, "--out", copy).check(2)
    assert "not empty" in refused.err


def _ways() -> list[Way]:
    from live.conftest import WAYS

    return WAYS


@pytest.fixture(scope="module")
def recorded(command: Path, public: Path, python: str) -> Path:
    """Return a run with damaged packets; not to be changed."""
    # A name of its own: the fixture is made again where the tests are not run in a row.
    work = Path(tempfile.mkdtemp(prefix="recorded-", dir=public))
    work.chmod(0o1777)
    airpath = Airpath(command, work, python)
    airpath.folder("tmp")
    way = _ways()[0]
    return record(airpath, way, "--rate", "2 Mbit/s", "--delay", "5 ms", "--set", BIT_ERRORS)


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table of a run."""
    with pa.ipc.open_file(path) as reader:
        table = change(reader.read_all())
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def changed(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    assert values[row] != value
    values[row] = value
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, type=field.type))


def first_damaged(table: pa.Table) -> int:
    positions = table["flipped_bits"].to_pylist()
    return min(row for row, flips in enumerate(positions) if flips)


def shorten_last_offer(table: pa.Table) -> pa.Table:
    row = max(row for row, kind in enumerate(table["kind"].to_pylist()) if kind == "offer")
    return changed(table, "length", row, 33)


TAMPERED: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "a number": (lambda table: changed(table, "bits", 700, 9999), "bits is 9,999 in the log"),
    "a time": (lambda table: changed(table, "time_ns", 700, 1), "time_ns is 1 in the log"),
    "a word": (lambda table: changed(table, "kind", 700, "dropped"), "kind is `dropped`"),
    "a flipped bit": (
        lambda table: changed(table, "flipped_bits", first_damaged(table), [1, 2, 3]),
        "flipped_bits is [1, 2, 3] in the log and [",
    ),
    "damage undone": (
        lambda table: changed(table, "flipped_bits", first_damaged(table), None),
        "flipped_bits is none in the log and [",
    ),
    "the end missing": (
        lambda table: table.slice(0, table.num_rows - 1),
        "event is missing in the log and there in the replay",
    ),
    "a row too many": (
        lambda table: pa.concat_tables([table, table.slice(5, 1)]),
        "event is there in the log and missing in the replay",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_changed_event_is_found(airpath: Airpath, user: User, recorded: Path, what: str) -> None:
    change, message = TAMPERED[what]
    run = airpath.path("tampered")
    shutil.copytree(recorded, run)
    rewrite(run / "events.arrow", change)
    result = replay(airpath, user, run).check(DIFFERENT)
    assert result.out.startswith("different: event ")
    assert message in result.out
    found = json.loads(replay(airpath, user, run, "--json").check(DIFFERENT).out)
    assert not found["identical"]
    assert found["difference"]["event"] == found["events"]


def test_a_changed_seed_or_input_is_found(airpath: Airpath, user: User, recorded: Path) -> None:
    for what in ("seed", "input"):
        run = airpath.path(what)
        shutil.copytree(recorded, run)
        if what == "seed":
            manifest = json.loads((run / "run.json").read_text())
            manifest["seed"] += 1
            (run / "run.json").write_text(json.dumps(manifest))
        else:
            rewrite(run / "input.arrow", shorten_last_offer)
        assert "different" in replay(airpath, user, run).check(DIFFERENT).out


def test_a_log_without_positions_is_compared_as_far_as_it_goes(
    airpath: Airpath, user: User, recorded: Path
) -> None:
    run = airpath.path("older")
    shutil.copytree(recorded, run)
    rewrite(run / "events.arrow", lambda table: table.drop_columns(["flipped_bits"]))
    result = replay(airpath, user, run).check()
    assert result.out.startswith("identical: ")
    assert "no positions of flipped bits" in result.err


def test_what_cannot_be_replayed_is_refused(airpath: Airpath, user: User, recorded: Path) -> None:
    def refused(name: str, status: int, *words: str) -> None:
        result = replay(airpath, user, airpath.path(name)).check(status)
        assert not result.out
        for word in words:
            assert word in result.err, result.err

    def copy(name: str) -> Path:
        run = airpath.path(name)
        shutil.copytree(recorded, run)
        return run

    def manifest(name: str, change: Callable[[dict[str, Any]], None]) -> None:
        path = copy(name) / "run.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    refused("nowhere", USAGE, "nowhere", "is not a directory", "--out")
    airpath.folder("files/empty")
    refused("empty", USAGE, "empty is not the folder of a run", "--out")
    airpath.folder("files/many/replication-0001")
    refused("many", USAGE, "holds several replications", "many/replication-0001")
    manifest("counters", lambda content: content.update(log_level="counters"))
    refused("counters", USAGE, "--log counters", "--log events")
    manifest("killed", lambda content: content.update(status="running", results=None))
    refused("killed", USAGE, "was killed", "record the run again")
    manifest("failed", lambda content: content.update(status="failed", results=None))
    refused("failed", USAGE, "the run failed")

    def lose(content: dict[str, Any]) -> None:
        content["results"]["log"].update(complete=False, incomplete=["9 events were lost"])

    manifest("incomplete", lose)
    refused("incomplete", USAGE, "log is incomplete: 9 events were lost")
    manifest("newer", lambda content: content.update(format_version=99))
    refused("newer", USAGE, "format 99", "the version of Airpath that recorded it")
    rewrite(copy("short") / "input.arrow", lambda table: table.slice(0, table.num_rows - 3))
    refused("short", USAGE, "input.arrow", "rows", "record the run again")
    torn = copy("torn") / "input.arrow"
    torn.write_bytes(torn.read_bytes()[:-2000])
    refused("torn", USAGE, "input.arrow", "it is truncated", "record the run again")
    (copy("hollow") / "events.arrow").write_bytes(b"")
    refused("hollow", USAGE, "events.arrow", "it is empty", "record it, or copy it again")
    for name in ("events.arrow", "input.arrow"):
        (copy(f"no {name}") / name).unlink()
        refused(f"no {name}", USAGE, name, "is missing, but", "--log events")


def test_a_killed_run_is_refused(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    process = airpath.start("exec", "--out", out, "--", "sleep", "60", user=user)
    try:
        await_true(lambda: (out / "run.json").exists() and (out / "events.arrow").exists())
    finally:
        end_process(process, signal.SIGKILL)
        process.communicate()
    airpath.wait_until_gone()
    assert "was killed" in replay(airpath, user, out).check(USAGE).err


def test_a_run_of_counters_is_refused(airpath: Airpath, any_way: Way) -> None:
    out = airpath.path("run")
    airpath.exec(any_way, "--out", out, "--log", "counters", "--", "true").check()
    result = replay(airpath, any_way.user, out).check(USAGE)
    assert "--log counters" in result.err
