# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Recordings of emulated links: what comes back is what was put in, and bad input is named."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from live.harness import Airpath, Way


def test_a_link_is_recorded_and_replayed(airpath: Airpath, any_way: Way) -> None:
    link = (
        "--rate",
        "800 kbit/s,4 Mbit/s",
        "--delay",
        "30 ms,10 ms",
        "--queue",
        "15 packets,60 packets",
    )
    name, out = airpath.command.name, airpath.path("recorded")
    words = ("record", "--to", "server", "--out", str(out), "--duration", "2 s", "--json")
    server = ("--server", f"{name} recv --once")
    result = airpath.exec(any_way, *link, "--seed", "1", *server, "--", name, *words).check()
    found: Any = json.loads(result.out)["estimates"]
    assert found["delay_split"] == "same_clock"
    # Wide bounds: a busy machine delays packets. Narrow ones are in scripts/record-check.
    for direction, rate, delay_ms, queue in (("uplink", 800e3, 30, 15), ("downlink", 4e6, 10, 60)):
        estimates = found[direction]
        assert estimates["capacity"]["rate_bits_per_second"] == pytest.approx(rate, rel=0.15)
        assert estimates["delay"]["propagation_ns"] / 1e6 == pytest.approx(delay_ms, abs=10)
        assert estimates["loss"]["interval"][0] < 0.05
        assert estimates["queue"]["longest_delay_ns"] / 1e9 > 0.5 * queue * 12_000 / rate
    # The packets are kept, and say the same once more.
    again = airpath.run("record", "--from", str(out), "--json").check()
    assert json.loads(again.out)["estimates"] == found
    airpath.exec(any_way, "--scenario", out / "scenario.toml", "--", "true").check()


def test_nobody_listens(airpath: Airpath) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        result = airpath.run("record", "--to", f"127.0.0.1:{port}", "--out", airpath.path("path"))
    result.check(1)
    assert f"airpath recv --port {port}" in result.err
    assert not airpath.path("path").exists()


def test_an_old_receiver_is_named(airpath: Airpath) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def hang_up() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)

        old = threading.Thread(target=hang_up)
        old.start()
        result = airpath.run("record", "--to", f"127.0.0.1:{port}", "--out", airpath.path("path"))
        old.join()
    result.check(1)
    assert "does not serve recordings" in result.err
    assert "the same airpath at both ends" in result.err
    assert not airpath.path("path").exists()


def test_a_recording_that_broke_off_at_once_says_so(airpath: Airpath) -> None:
    folder = airpath.folder("path")
    about = {"format_version": 1, "airpath_version": "0.1.0", "host": "x", "peer": "x", "parts": []}
    about |= {"began_unix_ns": 0, "clocks": {"same": True, "estimates": []}, "warnings": []}
    (folder / "recording.json").write_text(json.dumps(about))
    result = airpath.run("record", "--from", str(folder)).check(1)
    assert "broke off in its first phase" in result.err
    assert not (folder / "scenario.toml").exists()


def test_options_and_folders(airpath: Airpath) -> None:
    out = str(airpath.path("path"))
    wrong = {
        ("--to", ":5201", "--out", out): "no host",
        ("--to", "server", "--out", out, "--duration", "1 ms"): "at least 1 s",
        ("--to", "server", "--out", out, "--length", "20 bytes"): "68 to 9000",
        ("--to", "server", "--out", out, "--train", "9", "--light-interval", "100 us"): "limit",
        ("--from", str(airpath.work)): "recording.json",
        ("--from", str(airpath.work), "--mode", "light"): "cannot be used with",
    }
    for words, message in wrong.items():
        result = airpath.run("record", *words)
        result.check(2)
        assert message in result.err, words
    # Nobody has to listen for this to be told.
    full = airpath.folder("full")
    (full / "notes.txt").write_text("mine")
    result = airpath.run("record", "--to", "127.0.0.1:1", "--out", str(full)).check(2)
    assert "is not empty" in result.err
    assert [path.name for path in full.iterdir()] == ["notes.txt"]
