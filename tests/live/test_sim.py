# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs in virtual time: exact, the same on any number of threads, with files as of live runs."""

from __future__ import annotations

import json
import re
import signal
import time
from itertools import product
from typing import TYPE_CHECKING

import polars as pl
import pytest
from matplotlib.text import Text

import pcapng
from airpath.plots import KINDS, draw
from airpath.plots.style import Span
from airpath.run import load_run
from airpath.tcp import transfers
from live.harness import PATIENCE_S, ROOT, await_true, end_process

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, Result, User

USAGE = 2
UNDONE = 1

SEAWIND = ROOT / "studies/seawind-case/scenario.toml"
TCP = "tcp bytes=102400 from=server cc=reno"
FILES = ("events.arrow", "input.arrow", "client.pcapng", "server.pcapng")

BIT_ERRORS = (
    'radio.link.errors={ type = "bernoulli", per = "packet", probability = 0.1, '
    'effect = "corrupt", headers = "included", flips = 3 }'
)


def sim(airpath: Airpath, *arguments: object, user: User | None = None) -> Result:
    return airpath.run("sim", *arguments, user=user)


def seconds(run: Path, kind: str) -> list[float]:
    events = load_run(run).path_events(kind)
    return [time / 1e9 for time in events["time_ns"].to_list()]


def test_times_are_those_of_the_formula(airpath: Airpath) -> None:
    """500 bytes at 80 kbit/s take 50 ms, and 20 ms more to get there; they come every 40 ms."""
    out = airpath.path("run")
    sim(
        airpath, "--rate", "80 kbit/s", "--delay", "20 ms", "--out", out,
        "--workload", 'cbr interval="40 ms" size=500 packets=20 from=client start="1 s"',
    ).check()  # fmt: skip
    assert seconds(out, "offered") == pytest.approx([1 + 0.04 * n for n in range(20)], abs=1e-12)
    # The link is busy from the first packet on.
    expected = [1 + 0.05 * (n + 1) + 0.02 for n in range(20)]
    assert seconds(out, "delivered") == pytest.approx(expected, abs=1e-12)
    run = load_run(out)
    assert run.results["duration_ns"] == 2_020_000_000
    assert run.results["verdict"] == {"grade": "trusted", "reasons": []}
    emitted = run.path_events("delivered").select(pl.col("emitted_ns") == pl.col("time_ns"))
    assert emitted.to_series().all()


def test_a_run_is_as_files_of_a_live_run(airpath: Airpath, user: User) -> None:
    out = airpath.path("run")
    result = sim(
        airpath, "--scenario", SEAWIND, "--workload", TCP, "--seed", 5, "--out", out, user=user
    )
    lines = result.check().err.splitlines()
    assert lines[0].startswith("tcp-1: complete in ")
    assert [line.split()[0] for line in lines[1:]] == [
        "delivered", "dropped", "delay", "clock", "verdict",
    ]  # fmt: skip
    assert re.search(r"virtual, run in .* times real-time speed", result.err)
    assert {path.name for path in out.iterdir()} == {"run.json", *FILES}
    run = load_run(out)
    assert run.clock == "virtual"
    assert run.notes == []
    assert run.verdict == "trusted"
    assert run.state_changes() == [(40_000_000_000, "poor")]
    assert set(run.captures) == {"client", "server"}
    assert run.manifest["settings"]["mtu_bytes"] == 296
    (workload,) = run.manifest["workloads"]
    assert workload["workload"] == "tcp bytes=102400 cc=reno"
    report = workload["report"]
    assert report["outcome"] == "complete"
    assert report["downlink"]["delivered_bytes"] == 102_400
    # What the endpoints say agrees with what the link counted.
    offered = run.path_events("offered")
    sent = report["downlink"]["packets_sent"]
    assert offered.filter(pl.col("direction") == "downlink").height == sent
    (transfer,) = transfers(run)
    assert (transfer.direction, transfer.payload_bytes) == ("downlink", 102_400)
    said = airpath.run("log", out, "--tcpdump", user=user).check().out
    assert len(said.splitlines()) == offered.height
    assert "Flags [S], seq" in said
    assert airpath.run("replay", out, user=user).check().out.startswith("identical: ")


def test_a_run_is_drawn(airpath: Airpath) -> None:
    out = airpath.path("run")
    sim(airpath, "--scenario", SEAWIND, "--workload", TCP, "--seed", 5, "--out", out).check()
    pictures = draw(load_run(out), KINDS, Span())
    names = {picture.name for picture in pictures}
    assert {"throughput", "queue-packets", "queue-bytes", "delay"} < names
    assert any(name.startswith("time-sequence") for name in names)
    texts = [text.get_text() for text in pictures[0].figure.findobj(Text)]
    assert any("virtual clock" in text for text in texts)


# A load over two hops, which the machine leaves undone for as long as nobody looks.
TWO_HOPS = """
[[hops]]
name = "radio"
[hops.link]
rate = "20 Mbit/s"
propagation = "5 ms"

[[hops]]
name = "core"
[hops.link]
rate = "12 Mbit/s"
propagation = { type = "normal", mean = "20 ms", deviation = "2 ms" }
queue = { limit = "50 packets" }

[[background]]
name = "others"
type = "poisson"
hop = "core"
until = "radio"
direction = "downlink"
rate = "11 Mbit/s"
packet_size = "700 bytes"
"""


def test_real_time_leaves_no_trace_in_files(airpath: Airpath) -> None:
    """A run that is stopped now and then by the wall clock leaves the bytes of one that is not."""
    scenario = airpath.file("two-hops.toml", TWO_HOPS)
    workload = 'cbr interval="1 s" packets=120 size=100 from=client'
    arguments = ("--scenario", scenario, "--workload", workload, "--seed", 42, "--replications", 2)
    folders = [airpath.path(f"stops-{stops}") for stops in (0, 3, 9)]
    for folder, stops in zip(folders, (0, 3, 9), strict=True):
        process = airpath.start("sim", *arguments, "--jobs", 1 + stops % 2, "--out", folder)
        try:
            for number in range(stops):
                time.sleep(0.02 + 0.013 * number)
                if process.poll() is not None:
                    break
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.25)
                process.send_signal(signal.SIGCONT)
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            end_process(process)
        assert process.returncode == 0, said
    rows = len(pl.read_ipc(folders[0] / "replication-0001" / "events.arrow"))
    assert rows > 2 * 65_536
    for replication, file in product(("replication-0001", "replication-0002"), FILES):
        first, *others = ((folder / replication / file).read_bytes() for folder in folders)
        assert all(other == first for other in others), f"{replication}/{file}"


def test_equal_seeds_leave_equal_files_whatever_the_number_of_threads(airpath: Airpath) -> None:
    common = ("--scenario", SEAWIND, "--workload", "tcp bytes=20000 cc=reno", "--set", BIT_ERRORS)
    folders = {}
    for name, jobs in (("one", 1), ("four", 4)):
        folders[name] = airpath.path(name)
        arguments = ("--seed", 7, "--replications", 6, "--jobs", jobs, "--out", folders[name])
        result = sim(airpath, *common, *arguments).check()
        told = re.findall(r"replication (\d)/6, seed (\d+): ", result.err)
        assert told == [(str(n), str(n + 6)) for n in range(1, 7)]
        assert re.search(r"6 replications: median .* 6 trusted", result.err)
    names = sorted(path.name for path in folders["one"].iterdir())
    assert names == [f"replication-000{n}" for n in range(1, 7)]
    for name in names:
        for file in FILES:
            first, second = (folder / name / file for folder in folders.values())
            assert first.read_bytes() == second.read_bytes(), f"{name}/{file}"
    single = airpath.path("single")
    sim(airpath, *common, "--seed", 9, "--out", single).check()
    for file in FILES:
        same = folders["one"] / "replication-0003" / file
        assert (single / file).read_bytes() == same.read_bytes()
    other = (folders["one"] / "replication-0001" / "events.arrow").read_bytes()
    assert other != (single / "events.arrow").read_bytes()


def test_every_kind_of_workload_repeats_and_replays(airpath: Airpath) -> None:
    first = airpath.path("first")
    sim(airpath, "--delay", "10 ms", "--workload", "tcp bytes=20000", "--out", first).check()
    workloads = [
        "tcp bytes=100000 from=client",
        "request count=3 response=20000",
        "cbr rate='64 kbit/s' size=200 packets=50",
        "poisson rate='64 kbit/s' size=200 packets=50",
        "on-off on='1 s' off='exponential 1 s' rate='64 kbit/s' size=200 packets=50",
        "saturate packets=50",
        "media bitrate='300 kbit/s' frames=50",
        f"pcap file={first / 'client.pcapng'}",
    ]
    link = ("--rate", "1 Mbit/s", "--delay", "30 ms", "--loss", "1%", "--seed", 1)
    words = [word for workload in workloads for word in ("--workload", workload)]
    runs = [airpath.path("one"), airpath.path("other")]
    for run in runs:
        found = sim(airpath, *link, *words, "--out", run, "--json").check().document()
        assert [flow["outcome"] for flow in found["workloads"]] == ["complete"] * len(workloads)
    for file in FILES:
        assert (runs[0] / file).read_bytes() == (runs[1] / file).read_bytes(), file
    assert airpath.run("replay", runs[0]).check().out.startswith("identical: ")


def test_quic_repeats_but_for_what_it_encrypts(airpath: Airpath) -> None:
    link = ("--rate", "1 Mbit/s", "--delay", "30 ms", "--loss", "1%", "--seed", 1)
    runs = [airpath.path("one"), airpath.path("other")]
    for run in runs:
        sim(airpath, *link, "--workload", "quic bytes=50000", "--out", run).check()
        assert airpath.run("replay", run).check().out.startswith("identical: ")
    events = [(run / "events.arrow").read_bytes() for run in runs]
    assert events[0] == events[1]


def test_damage_is_recorded_and_replayed(airpath: Airpath) -> None:
    out = airpath.path("run")
    sim(
        airpath, "--rate", "1 Mbit/s", "--delay", "5 ms", "--set", BIT_ERRORS, "--seed", 2,
        "--snaplen", "full", "--out", out,
        "--workload", "cbr rate='400 kbit/s' size=500 packets=500",
    ).check()  # fmt: skip
    found = json.loads(airpath.run("replay", out, "--json").check().out)
    # 500 draws of probability 0.1: 50 expected, standard deviation 6.7; five of them.
    assert 17 <= found["damaged_packets"] <= 83
    sent, got = captured(out / "server.pcapng", 0), captured(out / "client.pcapng", 1)
    positions = pl.read_ipc(out / "events.arrow").filter(pl.col("kind") == "delivered")
    damaged = 0
    for pdu, flips in positions.select("pdu", "flipped_bits").iter_rows():
        whole = bytearray(sent[pdu])
        for position in flips or []:
            whole[position // 8] ^= 0x80 >> position % 8
        assert bytes(whole) == got[pdu]
        damaged += flips is not None
    assert damaged == found["damaged_packets"]


def captured(capture: Path, interface: int) -> dict[int, bytes]:
    """Return the bytes of each packet by its number: of those that entered (0) or left (1)."""
    packets = pcapng.packets(capture.read_bytes())
    return {packet.pdu: packet.content for packet in packets if packet.interface == interface}


def test_several_workloads_and_a_duration(airpath: Airpath) -> None:
    result = sim(
        airpath, "--rate", "1 Mbit/s", "--delay", "50 ms", "--queue", "20 packets", "--seed", 1,
        "--duration", "10 s", "--json", "--workload", "tcp",
        "--workload", 'cbr rate="64 kbit/s" size=200 from=client start="2 s" name=voice',
    ).check()  # fmt: skip
    summary = result.document()
    assert summary["clock"] == "virtual"
    assert summary["duration_ns"] == 10_000_000_000
    bulk, voice = summary["workloads"]
    assert (bulk["name"], voice["name"]) == ("tcp-1", "voice")
    # 40 packets of 200 bytes a second for 8 s; the last two or three are in the link at the end.
    assert voice["uplink"]["packets_sent"] in (320, 321)
    assert 317 <= voice["uplink"]["packets_received"] <= 320
    assert 0.2e6 < bulk["downlink"]["goodput_bits_per_second"] < 1e6


def test_equal_replications_are_told(airpath: Airpath) -> None:
    common = ("--rate", "100 kbit/s", "--workload", "tcp bytes=5000", "--replications", 3)
    said = "all 3 runs are identical: this link and workload have no randomness"
    assert said in sim(airpath, *common).check().err
    assert said not in sim(airpath, *common, "--loss", "20%", "--seed", 1).check().err
    assert said not in sim(airpath, *common, "--quiet").check().err


def test_json_of_replications(airpath: Airpath) -> None:
    common = ("--delay", "20 ms", "--workload", "request count=3 response=2000", "--seed", 4)
    found = sim(airpath, *common, "--replications", 3, "--jobs", 2, "--json").check().document()
    assert [one["seed"] for one in found["replications"]] == [4, 5, 6]
    assert all(one["workloads"][0]["requests"]["completed"] == 3 for one in found["replications"])
    assert not sim(airpath, *common, "--quiet").check().err


@pytest.mark.parametrize("workload", [TCP, "quic bytes=102400 from=server"])
def test_the_case_study_takes_next_to_no_time(airpath: Airpath, workload: str) -> None:
    """Twenty replications; the bound is for a loaded machine and a build without optimisation."""
    # QUIC wants packets of 1200 bytes and more (RFC 9000, section 14).
    mtu = 1280 if workload.startswith("quic") else 296
    link = ("--scenario", SEAWIND, "--mtu", mtu, "--seed", 1)
    arguments = (*link, "--workload", workload, "--replications", 20)
    result = sim(airpath, *arguments, "--json").check()
    replications = result.document()["replications"]
    assert len(replications) == 20
    simulated = sum(one["duration_ns"] for one in replications) / 1e9
    assert simulated > 20 * 90
    assert result.seconds < 30


BAD: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "no workload": ((), USAGE, ("no workload is given", "--workload 'tcp bytes=")),
    "unknown kind": (
        ("--workload", "tpc bytes=1"), USAGE, ("--workload, word 1", "did you mean `tcp`"),
    ),
    "unknown key": (("--workload", "tcp bites=1"), USAGE, ("word 2", "did you mean `bytes`")),
    "no end": (
        ("--workload", "saturate"), USAGE, ("never ends", "--duration '60 s'"),
    ),
    "two of the same name": (
        ("--workload", f"{TCP} name=a", "--workload", f"{TCP} name=a"), USAGE,
        ("name=a", "the same name as workload 1"),
    ),
    "above the MTU": (
        ("--mtu", "500", "--workload", "cbr rate='1 Mbit/s' size=900 packets=3"), USAGE,
        ("size=900", "MTU of 500"),
    ),
    "duration without a unit": (
        ("--duration", "3", "--workload", "tcp"), USAGE, ("--duration", "no unit"),
    ),
    "log without a folder": (
        ("--log", "events", "--workload", TCP), USAGE, ("--log events", "--out DIR"),
    ),
    "nothing to saturate": (
        ("--workload", "saturate packets=10"), USAGE, ("link without a rate", "--rate '1 Mbit/s'"),
    ),
    "unknown hop": (("--set", "radoi.link.rate=1", "--workload", TCP), USAGE, ("radoi", "radio")),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_told_and_leaves_nothing(airpath: Airpath, user: User, what: str) -> None:
    arguments, status, words = BAD[what]
    out = airpath.path("run")
    record = () if what == "log without a folder" else ("--out", out)
    result = sim(airpath, *arguments, *record, user=user).check(status)
    for word in words:
        assert word in result.err, result.err
    assert not out.exists()


def test_a_folder_in_use_is_refused(airpath: Airpath) -> None:
    out = airpath.path("run")
    sim(airpath, "--delay", "1 ms", "--workload", TCP, "--out", out).check()
    again = sim(airpath, "--delay", "1 ms", "--workload", TCP, "--out", out).check(2)
    assert "not empty" in again.err


def test_a_workload_that_is_not_done_is_an_exit_status(airpath: Airpath) -> None:
    result = sim(airpath, "--rate", "10 kbit/s", "--workload", TCP, "--duration", "5 s").check(
        UNDONE
    )
    assert "tcp-1: incomplete at the end of the run" in result.err


@pytest.mark.parametrize("workload", [TCP, "quic bytes=102400", "request request=10 response=10"])
def test_a_dead_link_is_given_up(airpath: Airpath, workload: str) -> None:
    result = sim(airpath, "--rate", "1 Mbit/s", "--loss", "100%", "--workload", workload)
    result.check(UNDONE)
    assert re.search(
        r"-1: failed: (nothing came from the other end for 924.6 s|timed out)", result.err
    )


@pytest.mark.parametrize("replications", [1, 3])
def test_an_interrupted_run_is_complete_until_then(airpath: Airpath, replications: int) -> None:
    out = airpath.path("run")
    process = airpath.start(
        "sim", "--rate", "1 Mbit/s", "--workload", "saturate packets=100000000", "--out", out,
        "--replications", replications, "--jobs", 2, "--log", "events",
    )  # fmt: skip
    first = out if replications == 1 else out / "replication-0001"
    await_true(lambda: (first / "events.arrow").exists(), lambda: "no events yet", PATIENCE_S)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT
    assert "SIGINT: aborted after" in err
    assert load_run(first).manifest["settings"]["interrupted_by"] == "SIGINT"
    assert "identical" in airpath.run("replay", first).check().out


def test_options_print_a_scenario(airpath: Airpath) -> None:
    out = sim(airpath, "--profile", "umts-384", "--print-scenario").check().out
    assert "[[hops]]" in out
