# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The link does to live packets what its scenario says: delay, loss, queues, states, hops."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.run import Run, load_run
from live.harness import PATIENCE_S, await_true

if TYPE_CHECKING:
    from live.harness import Airpath, Result, Way

MS = 1_000_000
SLACK_MS = 400
"""Lateness of a loaded machine that passes; the decisions of the model are asserted exactly."""


def send(
    airpath: Airpath, way: Way, *arguments: object, count: int = 40, length: int = 500,
    gap: float = 0.002, linger: float = 2, name: str = "run",
) -> tuple[list[int], Run, Result]:  # fmt: skip
    """Send numbered datagrams; return the numbers in order of their arrival."""
    path, report = airpath.path(f"{name}-datagrams"), airpath.path(f"{name}-counters")
    server = airpath.server("datagram-server", 4, "udp", 0, 5000, path, report)
    client = airpath.program("datagram-client", 4, "udp", 0, 5000, count, length, gap, linger)
    out = airpath.path(name)
    plain = ("--out", out, "--log", "events", "--server", server)
    result = airpath.exec(way, *plain, *arguments, "--", *client).check()
    received = [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]
    return [int.from_bytes(data[:4], "big") for data in received], load_run(out), result


def uplink(run: Run, kind: str) -> pl.DataFrame:
    return run.events.filter((pl.col("kind") == kind) & (pl.col("direction") == "uplink"))


def delays_ms(run: Run, direction: str) -> list[float]:
    """Return the one-way delay of each delivered packet, in order of delivery."""
    offered = run.path_events("offered").select("pdu", "direction", begun="time_ns")
    delivered = run.path_events("delivered").select("pdu", "time_ns")
    rows = delivered.join(offered, on="pdu").filter(pl.col("direction") == direction)
    return [float(value) for value in ((rows["time_ns"] - rows["begun"]) / MS).to_list()]


def test_ping_sees_the_delay_of_both_directions(airpath: Airpath, port_way: Way) -> None:
    result = airpath.exec(
        port_way, "--delay", "30 ms,50 ms", "--", "ping", "-c", "5", "-i", "0.1", "server"
    ).check()
    times = result.ping_times_ms()
    assert len(times) == 5
    assert min(times) >= 80
    assert sorted(times)[2] < 80 + SLACK_MS
    summary = result.summary()
    assert summary["uplink"]["delay"]["p50_ns"] == pytest.approx(30 * MS, rel=0.001)
    assert summary["downlink"]["delay"]["p50_ns"] == pytest.approx(50 * MS, rel=0.001)


def test_what_leaves_does_not_leave_early(airpath: Airpath, port_way: Way) -> None:
    _, run, _ = send(airpath, port_way, "--delay", "25 ms")
    delivered = run.path_events("delivered")
    assert delivered.height == 80
    late = (delivered["emitted_ns"] - delivered["time_ns"]).to_list()
    assert min(late) >= 0
    assert sorted(late)[len(late) // 2] < SLACK_MS * MS
    assert set(delays_ms(run, "uplink")) == {25.0}


@pytest.mark.parametrize("keep_order", [True, False])
def test_delay_effect(airpath: Airpath, port_way: Way, keep_order: bool) -> None:
    errors = (
        'radio.uplink.errors={ type = "bernoulli", per = "packet", probability = 0.2, '
        f'effect = "delay", delay = "60 ms", keep_order = {str(keep_order).lower()} }}'
    )
    numbers, run, _ = send(airpath, port_way, "--seed", 1, "--delay", "5 ms", "--set", errors)
    assert sorted(numbers) == list(range(40))
    hit = uplink(run, "frame_delayed").height
    delays = delays_ms(run, "uplink")
    assert hit > 0
    if keep_order:
        assert numbers == list(range(40))
        assert min(delays) >= 5
    else:
        assert numbers != list(range(40))
        assert sorted(delays) == [5.0] * (40 - hit) + [65.0] * hit


def test_loss_is_counted_where_it_happens(airpath: Airpath, port_way: Way) -> None:
    numbers, run, result = send(
        airpath, port_way, "--seed", 3, "--loss", "20%,0", count=100, linger=0.5
    )
    lost = uplink(run, "dropped")
    assert 5 < lost.height < 40
    assert set(lost["cause"].to_list()) == {"channel_error"}
    assert len(numbers) == 100 - lost.height
    summary = result.summary()
    assert summary["uplink"]["delivered_packets"] == len(numbers)
    assert summary["downlink"]["dropped"] == []
    assert [drop["packets"] for drop in summary["uplink"]["dropped"]] == [lost.height]


def test_the_seed_decides_which_packets_are_lost(airpath: Airpath, port_way: Way) -> None:
    def lost(seed: int, name: str) -> list[int]:
        numbers, _, _ = send(
            airpath, port_way, "--seed", seed, "--loss", "30%,0", count=60, linger=0.3, name=name
        )
        return numbers

    first = lost(11, "first")
    assert first == lost(11, "again")
    assert first != lost(12, "other")


def test_two_kinds_of_port_lose_the_same_packets(airpath: Airpath) -> None:
    from live.harness import ways

    losses = [
        send(
            airpath,
            way,
            "--seed",
            5,
            "--loss",
            "30%,0",
            count=60,
            linger=0.3,
            name=str(way),
        )[0]
        for way in ways()
    ]
    if len(losses) == 1:
        pytest.skip("there is only one way to run here")
    assert all(other == losses[0] for other in losses)


def test_asymmetric_link(airpath: Airpath, port_way: Way) -> None:
    # 528-byte packets there, 32-byte ones back.
    _, run, result = send(
        airpath,
        port_way,
        "--rate",
        "1 Mbit/s,2 Mbit/s",
        "--delay",
        "10 ms,40 ms",
        count=20,
        gap=0.02,
    )
    assert min(delays_ms(run, "uplink")) == pytest.approx(10 + 528 * 8 / 1000, abs=0.0001)
    assert min(delays_ms(run, "downlink")) == pytest.approx(40 + 32 * 8 / 2000, abs=0.0001)
    assert result.summary()["uplink"]["delivered_packets"] == 20


def test_queue_limit(airpath: Airpath, port_way: Way) -> None:
    # All come at once: one is under transmission, five wait, the rest finds the queue full.
    numbers, run, _ = send(
        airpath,
        port_way,
        "--rate",
        "100 kbit/s",
        "--queue",
        "5 packets",
        count=30,
        gap=0,
        linger=1.5,
    )
    lost = uplink(run, "dropped")
    assert set(lost["cause"].to_list()) == {"queue_packets"}
    assert lost.height + len(numbers) == 30
    assert lost.height > 5
    assert int(uplink(run, "enqueued")["queue_packets"].max()) == 5  # type: ignore[arg-type]
    assert numbers[:6] == list(range(6))


def test_head_drop_keeps_the_newest(airpath: Airpath, port_way: Way) -> None:
    numbers, _, _ = send(
        airpath, port_way, "--rate", "100 kbit/s", "--queue", "head_drop 5 packets",
        count=30, gap=0, linger=1.5,
    )  # fmt: skip
    assert len(numbers) < 25
    assert numbers[-5:] == list(range(25, 30))


def test_rate_is_kept(airpath: Airpath, port_way: Way) -> None:
    _, run, _ = send(
        airpath,
        port_way,
        "--rate",
        "1 Mbit/s",
        "--queue",
        "1000 packets",
        count=100,
        gap=0,
        linger=3,
    )
    times = run.path_events("delivered").filter(pl.col("direction") == "uplink")["time_ns"]
    gaps = times.diff().drop_nulls().to_list()
    # 528 bytes at 1 Mbit/s; the queue never runs empty after the first few.
    assert sorted(gaps)[len(gaps) // 2] == 528 * 8 * 1000


SCENARIO = """
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
propagation = "10 ms"
fragmentation = { frame_payload = "800 bit", frame_header = "80 bit" }

[[hops]]
name = "core"
[hops.link]
propagation = "20 ms"
rate = "10 Mbit/s"
"""


def test_two_hops_and_fragmentation(airpath: Airpath, port_way: Way) -> None:
    scenario = airpath.file("two.toml", SCENARIO)
    _, run, result = send(airpath, port_way, "--scenario", scenario, count=20, gap=0.03)
    assert result.summary()["uplink"]["delivered_packets"] == 20
    frames = uplink(run, "frame_sent").filter(pl.col("hop") == "radio")
    # 528 bytes are 4224 bits: five frames of 800 and one of 224, each with 80 more.
    assert frames.height == 20 * 6
    assert int(frames["bits"].sum()) == 20 * (4224 + 6 * 80)
    radio_ms, core_ms = (4224 + 480) / 1000, 4224 / 10_000
    assert min(delays_ms(run, "uplink")) == pytest.approx(10 + radio_ms + 20 + core_ms, abs=0.0001)


STATES = """
[[hops]]
name = "radio"
[hops.link]
propagation = "5 ms"

[[states]]
name = "blackout"
at = "1 s"
set = { "radio.uplink.errors" = { type = "bernoulli", per = "packet", probability = 1.0 } }

[[states]]
name = "slow"
at = "1.5 s"
set = { "radio.link.propagation" = "60 ms" }
"""


def test_states_come_into_force_in_time(airpath: Airpath, port_way: Way) -> None:
    scenario = airpath.file("states.toml", STATES)
    _, run, _ = send(airpath, port_way, "--scenario", scenario, count=110, gap=0.02, linger=0.5)
    assert run.state_changes() == [(1000 * MS, "blackout"), (1500 * MS, "slow")]
    offered = run.path_events("offered").filter(pl.col("direction") == "uplink")
    lost = set(uplink(run, "dropped")["pdu"].to_list())
    # The time at which a packet's transmission ends counts; here that is when it was offered.
    blackout = offered.filter(pl.col("time_ns").is_between(1000 * MS, 1500 * MS, closed="none"))
    assert set(blackout["pdu"].to_list()) == lost
    if len(lost) == 0:
        pytest.fail(f"nothing was sent during the blackout: {offered['time_ns'].to_list()}")
    slow = offered.filter(pl.col("time_ns") > 1500 * MS)
    assert set(delays_ms(run, "uplink")) <= {5.0, 60.0}
    assert slow.height > 0


def test_a_run_whose_engine_was_stopped_is_not_trusted(airpath: Airpath, port_way: Way) -> None:
    # Nothing is due while it is stopped: only what waits at the ports suffers.
    ping = ("sh", "-c", "sleep 0.3; ping -i 0.2 -c 10 server")
    options = ("exec", "--port", port_way.port, "--json", "--delay", "5 ms")
    process = airpath.start(*options, "--", *ping, user=port_way.user)
    await_true(lambda: any(words[:1] == ["ping"] for words in airpath.tree().values()))
    time.sleep(0.5)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    engine = int(children.read_text().split()[0])
    os.kill(engine, signal.SIGSTOP)
    time.sleep(1)
    os.kill(engine, signal.SIGCONT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    verdict = json.loads(err.splitlines()[-1])["verdict"]
    assert verdict["grade"] in ("suspect", "invalid"), verdict


def test_an_engine_that_goes_on_does_not_watch_the_clock_for_seconds(
    airpath: Airpath, port_way: Way
) -> None:
    out = airpath.path("run")
    # One packet is under way for so long that the engine is stopped meanwhile, and continues.
    ping = ("ping", "-c", "1", "-W", "30", "server")
    options = ("exec", "--port", port_way.port, "--log", "none", "--out", out, "--delay", "4 s")
    process = airpath.start(*options, "--", *ping, user=port_way.user)
    await_true(lambda: any(words[:1] == ["ping"] for words in airpath.tree().values()))
    time.sleep(0.5)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    engine = int(children.read_text().split()[0])
    os.kill(engine, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(engine, signal.SIGCONT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    loop = load_run(out).manifest["results"]["loop"]
    assert loop["spun_ns"] < 300 * MS, loop
    assert loop["demoted_ns"] is None, loop


def test_idle_link_costs_no_processor_time(airpath: Airpath, any_way: Way) -> None:
    out = airpath.path("run")
    airpath.exec(any_way, "--delay", "10 ms", "--out", out, "--", "sleep", "3").check()
    outcome = {entry["name"]: entry["outcome"] for entry in load_run(out).manifest["privileges"]}
    used = float(outcome["processor time of the loop"].split()[0])
    assert used < 0.1


@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_congestion_control_is_in_force(airpath: Airpath, port_way: Way, name: str) -> None:
    report = airpath.path("counters")
    server = airpath.server("tcp-server", 6, 5000, report)
    program = airpath.program("tcp-client", 6, 5000, 10_000, 10_000)
    arguments = ("--cc", name, "--server-grace", "5 s", "--server", server)
    result = airpath.exec(port_way, *arguments, "--", *program).check()
    assert json.loads(result.out)["congestion"] == name
    assert json.loads(report.read_text())["congestion"] == name


def test_ping_sees_duplicates(airpath: Airpath, port_way: Way) -> None:
    out = airpath.path("run")
    result = airpath.exec(
        port_way, "--out", out, "--log", "packets", "--seed", 1, "--delay", "10 ms",
        "--duplicate", "100%,0%", "--", "ping", "-c", "4", "-i", "0.1", "server",
    ).check()  # fmt: skip
    # Each request arrives twice and is answered twice; ping ends with the first answer to its last.
    assert result.out.count("(DUP!)") >= 3
    run = load_run(out)
    requests = uplink(run, "delivered")
    assert requests.height == 8
    assert requests["pdu"].n_unique() == 4
    assert uplink(run, "duplicated").height == 4
    left = run.captures["server"].filter(pl.col("interface") == "tx")
    assert left["pdu"].to_list() == requests["pdu"].to_list()
    summary = result.summary()
    assert summary["uplink"]["duplicated_packets"] == 4
    assert summary["uplink"]["inside_packets"] == 0


def test_reordered_packets_arrive_out_of_order(airpath: Airpath, port_way: Way) -> None:
    held = 'radio.uplink.reorder={ probability = 1, gap = 4, distance = 2, delay = "5 s" }'
    numbers, run, _ = send(airpath, port_way, "--set", held, "--jitter", "1 ms")
    # Every fourth packet waits for two others to overtake it.
    expected = [number for begin in range(0, 40, 4) for number in range(begin, begin + 3)]
    for number in range(3, 39, 4):
        expected.insert(expected.index(number + 2) + 1, number)
    assert [number for number in numbers if number != 39] == expected
    assert uplink(run, "held_back").height == 10


PIPELINE = """
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
queue = { type = "tail_drop", limit = "4 packets" }
flow_control = { type = "window", packets = 4 }

[[hops]]
name = "core"
[hops.link]
rate = "400 kbit/s"
queue = { type = "tail_drop", limit = "3 packets" }
flow_control = { type = "window", packets = 3 }
"""


def test_windows_stop_the_sender_instead_of_dropping(airpath: Airpath, port_way: Way) -> None:
    scenario = airpath.file("pipeline.toml", PIPELINE)
    # More than the loop reads ahead: the rest waits in the kernel.
    received, run, result = send(
        airpath, port_way, "--scenario", scenario, count=250, gap=0, linger=4
    )
    assert received == list(range(250))
    dropped = run.events.filter(pl.col("kind") == "dropped")
    assert dropped.height == 0
    # Seven packets fit into both hops and their send buffers and queues: the others waited outside.
    begun = uplink(run, "offered")["time_ns"].sort()
    assert int(begun[200]) - int(begun[0]) > 1500 * MS
    assert max(delays_ms(run, "uplink")) < 150
    assert result.summary()["uplink"]["delivered_packets"] == 250
    # Up to seconds in the kernel's queue, by the stamps, are not lateness of the loop.
    timings = json.loads((run.directory / "run.json").read_text())["results"]["timings"]
    assert timings["entries"]["p99_ns"] < SLACK_MS * MS
    replayed = airpath.run("replay", run.directory, user=port_way.user).check()
    assert replayed.out.startswith("identical: ")
