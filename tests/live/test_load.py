# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The load generator through an emulated link, and its JSON compared with iperf3's."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from live.harness import PATIENCE_S, await_true

if TYPE_CHECKING:
    from live.harness import Airpath, Way

LINK = ("--rate", "1 Mbit/s", "--delay", "20 ms", "--cc", "reno", "--seed", "1")


def exec_load(airpath: Airpath, way: Way, *words: object, link: tuple[str, ...] = LINK) -> Any:
    """Run `send` behind a link against `recv --once`; return its JSON."""
    name = airpath.command.name
    server = ("--server", f"{name} recv --once")
    client = (name, "send", "server", "--json", *words)
    result = airpath.exec(way, *link, *server, "--", *client).check()
    return json.loads(result.out)


@pytest.mark.parametrize("reverse", [(), ("--reverse",)], ids=["up", "down"])
def test_bulk(airpath: Airpath, way: Way, reverse: tuple[str, ...]) -> None:
    load = exec_load(airpath, way, "--bytes", "100000", "--interval", "200 ms", *reverse)
    end = load["end"]
    assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"] == 100_000
    # 0.8 s of payload at the link's rate; the first segments are not waited for, nor is what came
    # before a busy machine let the receiver run.
    seconds = end["sum_received"]["seconds"]
    assert 0.5 < seconds <= end["sum_sent"]["seconds"]
    assert end["sum_received"]["bits_per_second"] == pytest.approx(800_000 / seconds)
    assert end["sender_tcp_congestion"] == "reno"
    assert end["sum_sent"]["retransmits"] == 0
    assert load["start"]["connect_seconds"] >= 0.04
    assert sum(interval["sum"]["bytes"] for interval in load["intervals"]) == 100_000
    if not reverse:
        assert max(interval["streams"][0]["rtt"] for interval in load["intervals"]) >= 40_000
        assert end["streams"][0]["sender"]["max_snd_cwnd"] > 0


def test_bulk_by_time_and_in_parallel(airpath: Airpath, any_way: Way) -> None:
    load = exec_load(airpath, any_way, "--time", "1 s", "--parallel", "2")
    end = load["end"]
    assert len(end["streams"]) == 2
    assert end["sum_sent"]["bytes"] == end["sum_received"]["bytes"] > 60_000
    assert end["sum_sent"]["seconds"] >= 1


def test_requests(airpath: Airpath, any_way: Way) -> None:
    words = ("--request", "100", "--response", "1000", "--count", "5")
    load = exec_load(airpath, any_way, *words, link=("--delay", "30 ms"))
    times = load["end"]["streams"][0]["response_times"]
    assert len(times["seconds"]) == 5
    assert 0.06 <= times["min_seconds"] <= times["p50_seconds"] <= times["max_seconds"]
    assert load["end"]["sum_received"]["bytes"] == 5_000


@pytest.mark.parametrize("reverse", [(), ("--reverse",)], ids=["up", "down"])
def test_datagrams(airpath: Airpath, way: Way, reverse: tuple[str, ...]) -> None:
    words = ("--udp", "--rate", "400 kbit/s", "--length", "500", "--bytes", "50 kB", *reverse)
    load = exec_load(airpath, way, *words)
    sent, received = load["end"]["sum_sent"], load["end"]["sum"]
    assert (sent["packets"], received["packets"], received["lost_packets"]) == (100, 100, 0)
    # A datagram each 10 ms: 99 gaps.
    assert sent["seconds"] >= 0.99
    assert load["end"]["sum_received"]["bytes"] == 50_000


def test_lost_datagrams_are_counted(airpath: Airpath, any_way: Way) -> None:
    words = ("--udp", "--rate", "800 kbit/s", "--length", "500", "--bytes", "100 kB", "--poisson")
    link = ("--loss", "20%,0%", "--seed", "5")
    received = exec_load(airpath, any_way, *words, "--seed", "3", link=link)["end"]["sum"]
    assert received["packets"] == 200
    # 40 on average with a standard deviation of 5.7; the seed of the link makes it one number.
    assert 15 < received["lost_packets"] < 65
    assert received["lost_percent"] == pytest.approx(received["lost_packets"] / 2)


def test_a_server_that_stays_serves_client_after_client(airpath: Airpath, any_way: Way) -> None:
    name = airpath.command.name
    client = f"{name} send server --bytes 20000 && {name} send server --bytes 30000 --reverse"
    result = airpath.exec(any_way, "--server", f"{name} recv", "--", "sh", "-c", client).check()
    lines = [line for line in result.out.splitlines() if line.startswith("received")]
    assert [line.split()[1:3] for line in lines] == [["20.0", "kB"], ["30.0", "kB"]]
    # The server's lines stand apart, so that a client's JSON stays JSON; its end is no complaint.
    said = [line.split()[1:4] for line in result.err.splitlines() if "]:" in line]
    assert said == [
        ["received", "20.0", "kB"],
        ["sent", "30.0", "kB"],
        ["received", "30.0", "kB"],
    ]
    assert "interrupted" not in result.err


def test_the_command_is_found_behind_the_link(airpath: Airpath, any_way: Way) -> None:
    line = f"command -v {airpath.command.name}; echo $PATH; airpath-no-such-command"
    result = airpath.exec(any_way, "--", "sh", "-c", line).check(127)
    found, path = result.out.splitlines()
    assert path.split(":")[-1] == found.rpartition("/")[0]
    assert path.startswith(airpath.environment()["PATH"])


def free_port() -> int:
    """Return a port that was free just now."""
    with socket.socket() as plain:
        plain.bind(("127.0.0.1", 0))
        return int(plain.getsockname()[1])


def listens(port: int) -> bool:
    """Return true if a socket listens at a port of this host, by the kernel's table."""
    from pathlib import Path

    tables = [Path("/proc/net/tcp").read_text(), Path("/proc/net/tcp6").read_text()]
    return any(f":{port:04X} " in table and " 0A " in table for table in tables)


def test_what_goes_wrong_is_told_with_a_remedy(airpath: Airpath) -> None:
    port = free_port()
    refused = airpath.run("send", "127.0.0.1", "--port", port, "--bytes", "1000").check(1)
    assert f"airpath recv --port {port}" in refused.err
    unknown = airpath.run("send", "no-such-host.invalid").check(1)
    assert "no-such-host.invalid" in unknown.err
    assert "server" in unknown.err
    mixed = airpath.run("send", "127.0.0.1", "--rate", "1 Mbit/s").check(2)
    assert "--udp" in mixed.err
    # Nothing is listening: the options alone decide.
    for words, said in {
        ("--cc", "bbrr"): ("no congestion control `bbrr`", "tcp_available_congestion_control"),
        ("--udp", "--coverage", "10"): ("--coverage", "--udp"),
        ("--udp", "--response", "10"): ("--response", "--udp"),
        ("--bytes", "1000", "--count", "3"): ("--count", "--bytes"),
    }.items():
        wrong = airpath.run("send", "127.0.0.1", "--port", port, *words).check(2)
        for word in said:
            assert word in wrong.err
    tiny = airpath.run("send", "127.0.0.1", "--bytes", "3").check(2)
    assert "at least 7" in tiny.err
    told = json.loads(airpath.run("send", "127.0.0.1", "-p", port, "--json").check(1).out)
    assert "refuses the connection" in told["error"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        again = airpath.run("recv", "--port", port, "--bind", "127.0.0.1").check(1)
        assert "in use" in again.err
        assert "--port" in again.err


def test_no_way_to_the_other_end(airpath: Airpath) -> None:
    # TCP to a multicast group: the one address to which no host has a way.
    result = airpath.run("send", "224.0.0.1", "--bytes", "1000").check(1)
    assert "no route to 224.0.0.1" in result.err


@pytest.mark.parametrize("under_way", [False, True], ids=["waiting", "receiving"])
def test_an_interrupted_receiver(airpath: Airpath, under_way: bool) -> None:
    port = free_port()
    process = airpath.start("recv", "--port", port, "--bind", "127.0.0.1")
    await_true(lambda: listens(port), "it never listened")
    with socket.socket() as plain:
        if under_way:
            plain.connect(("127.0.0.1", port))
            # The header of a megabyte, and its first bytes.
            plain.sendall(b"ap\x01\x00\x04\x01\xc0\x84\x3d" + bytes(1000))
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert ("1 stream had not come to the end" in err) == under_way
    assert under_way or not err


UNLIKE_IPERF3 = {
    "start.cookie",
    "start.sock_bufsize",
    "start.sndbuf_actual",
    "start.rcvbuf_actual",
    "end.cpu_utilization_percent",
    "end.receiver_tcp_congestion",
    # It counts what it could not send for itself.
    "end.streams[].udp.sender",
}
"""Keys of iperf3's report that ours does not have, with everything below."""


def keys(value: Any, place: str = "") -> set[str]:
    """Return the paths of all keys of a document."""
    if isinstance(value, dict):
        return {f"{place}.{key}".lstrip(".") for key in value}.union(
            *(keys(inner, f"{place}.{key}".lstrip(".")) for key, inner in value.items())
        )
    if isinstance(value, list):
        return set().union(*(keys(inner, f"{place}[]") for inner in value))
    return set()


@pytest.mark.skipif(not shutil.which("iperf3"), reason="iperf3 is not installed")
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (("-n", "2M"), ("--bytes", "2 MB")),
        (("-n", "2M", "-R"), ("--bytes", "2 MB", "--reverse")),
        (
            ("-u", "-b", "1M", "-l", "500", "-t", "1"),
            ("--udp", "--rate", "1 Mbit/s", "--length", "500", "--time", "1 s"),
        ),
    ],
    ids=["up", "down", "udp"],
)
def test_every_key_of_iperf3(
    airpath: Airpath, theirs: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    documents = []
    servers = (("iperf3", "-s", "-1", "-p"), (str(airpath.command), "recv", "--once", "-p"))
    clients = (
        ("iperf3", "-c", "127.0.0.1", "-J", *theirs, "-p"),
        (str(airpath.command), "send", "127.0.0.1", "--json", *ours, "-p"),
    )
    for server, client in zip(servers, clients, strict=True):
        port = free_port()
        process = subprocess.Popen(
            [*server, str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=airpath.environment(),
        )
        await_true(lambda port=port: listens(port), "it never listened")  # type: ignore[misc]
        done = subprocess.run(
            [*client, str(port)], capture_output=True, check=True, timeout=PATIENCE_S
        )
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        documents.append(json.loads(done.stdout))
    wanted, have = (keys(document) for document in documents)
    missing = {
        key
        for key in wanted - have
        if not any(key == known or key.startswith(f"{known}.") for known in UNLIKE_IPERF3)
    }
    assert not missing
    assert documents[0]["end"].keys() - {"cpu_utilization_percent"} <= documents[1][
        "end"
    ].keys() | {"receiver_tcp_congestion"}
