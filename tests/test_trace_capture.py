# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath trace send`` and ``airpath trace capture``."""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from airpath.engine import find_engine
from airpath.radiocapture import commands, frames, probe
from radio_frames import as_pcap, as_pcapng, radio_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LENGTH = 300
IP_BITS = 8 * probe.HEADER_BYTES
FRAME_HEADERS = 18 + 24 + 8 + probe.HEADER_BYTES


def flipped(frame: bytes, bits: list[int]) -> bytes:
    """Return a frame with bits of the payload flipped, counted from the packet's IP header."""
    made = bytearray(frame)
    for bit in bits:
        at = bit - IP_BITS
        made[FRAME_HEADERS + at // 8] ^= 0x80 >> at % 8
    return bytes(made)


def run(source: Path, packets: int, tmp_path: Path) -> tuple[int, list[str]]:
    out = tmp_path / "out.trace"
    status = commands.capture(str(source), out, packets=packets, length=LENGTH, silence_s=1)
    lines = out.read_text().splitlines()[1:] if status == 0 else []
    return status, lines


@pytest.mark.parametrize("write", [as_pcap, as_pcapng, lambda one: as_pcap(one, order=">")])
def test_errors_that_were_planted_are_found(
    write: Callable[[list[bytes]], bytes], tmp_path: Path
) -> None:
    whole = [radio_frame(probe.payload(number, LENGTH), LENGTH) for number in range(8)]
    cut = whole[5][: FRAME_HEADERS + 120] + whole[5][-4:]
    first = [IP_BITS, IP_BITS + 1, IP_BITS + 9, IP_BITS + 2000]
    planted = [
        whole[0],
        flipped(whole[1], first),
        # Packets 2 and 6 are lost, 3 comes twice, and something else is on the air.
        radio_frame(random.Random(1).randbytes(LENGTH - 28), LENGTH),
        whole[3],
        flipped(whole[3], [900]),
        # Headers and the number in the first chunk are damaged.
        flipped(bytes(30) + whole[4][30:], list(range(IP_BITS, IP_BITS + 32, 3))),
        flipped(cut, [IP_BITS + 700]),
        radio_frame(probe.payload(7, LENGTH), LENGTH, flags=0),
    ]
    # The damaged headers are of 802.11; radiotap is the driver's.
    planted[5] = whole[4][:18] + planted[5][18:]
    path = tmp_path / "radio.pcap"
    path.write_bytes(write(planted))
    status, lines = run(path, 8, tmp_path)
    spread = " ".join(str(bit) for bit in range(IP_BITS, IP_BITS + 32, 3))
    assert (status, lines) == (
        0,
        [
            "ok",
            "flipped " + " ".join(map(str, first)),
            "lost",
            "ok",
            f"flipped {spread}",
            f"truncated {120 + probe.HEADER_BYTES} flipped {IP_BITS + 700}",
            "lost",
            "ok",
        ],
    )


def test_random_damage_is_found_to_the_bit() -> None:
    chance = random.Random(7)
    for number in range(60):
        frame = radio_frame(probe.payload(number, LENGTH), LENGTH)[18:-4]
        # One bit in a hundred.
        bits = sorted(chance.sample(range(IP_BITS, 8 * LENGTH), 22))
        damaged = flipped(bytes(18) + frame, bits)[18:]
        line = commands.records([damaged], 60, LENGTH)[number]
        assert line == "flipped " + " ".join(map(str, bits))


def test_what_is_wrong_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = as_pcap([radio_frame(probe.payload(0, LENGTH), LENGTH)])
    path = tmp_path / "file.pcap"
    for content, words in (
        (b"", "is no capture: it has 0 bytes"),
        (b"hello world", "begins as neither pcap nor pcapng does"),
        (good[:-3], "byte 24: a packet of"),
        (good[:30], "byte 24: the file ends within a packet"),
        (as_pcap([b"x"], link_type=147), "link type 147 is not read; capture in monitor mode"),
        (as_pcap([b"\1" * 30]), "byte 24: the frame has no radiotap header"),
        (as_pcap([bytes(2) + b"\xff\0" + bytes(9)]), "radiotap header of 255 bytes does not fit"),
        (as_pcap([]), "has none of the packets of airpath trace send"),
        (as_pcapng([b"x"])[:-8], "a block of"),
    ):
        path.write_bytes(content)
        assert run(path, 5, tmp_path)[0] == 2
        assert words in capsys.readouterr().err
    for source, words in (
        ("nowhere0", "there is no interface nowhere0; `ip link` lists them"),
        (str(tmp_path / "missing.pcap"), "there is no file"),
    ):
        status = commands.capture(source, path, packets=5, length=LENGTH, silence_s=1)
        assert (status, words in capsys.readouterr().err) == (2, True)
    for arguments in ({"packets": 10**8, "length": 300}, {"packets": 5, "length": 20}):
        status = commands.capture("lo", path, silence_s=1.0, **arguments)
        assert status == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="a packet socket needs root")
def test_packets_over_loopback_are_captured(tmp_path: Path) -> None:
    out = tmp_path / "lo.trace"
    status = []

    def listen() -> None:
        status.append(commands.capture("lo", out, packets=30, length=LENGTH, silence_s=5))

    thread = threading.Thread(target=listen)
    thread.start()
    time.sleep(0.5)
    assert commands.send(to="127.0.0.1", port=5301, packets=30, length=LENGTH, interval_ms=1) == 0
    thread.join()
    assert (status, out.read_text().splitlines()[1:]) == ([0], ["ok"] * 30)


def test_the_engine_reads_what_is_captured(tmp_path: Path) -> None:
    path = tmp_path / "radio.pcap"
    frame = radio_frame(probe.payload(1, LENGTH), LENGTH)
    path.write_bytes(as_pcap([flipped(frame, [500])]))
    assert run(path, 4, tmp_path)[0] == 0
    command = [find_engine(), "trace", "show", str(tmp_path / "out.trace"), "--length", "300 bytes"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "loss          75.0000 % of all packets" in shown
    assert "corruption    100.0000 % of those neither lost nor truncated" in shown


def test_radiotap_of_several_words() -> None:
    # Two words of fields, then flags without a time stamp: the frame check sequence is cut off.
    header = bytes.fromhex("0000 0d00 02000080 00000000 10".replace(" ", ""))
    assert frames.without_link_extras(header + b"frame" + bytes(4), frames.RADIOTAP) == b"frame"


def test_captures_of_the_beginnings_of_packets_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = radio_frame(probe.payload(0, LENGTH), LENGTH)
    content = bytearray(as_pcap([whole]))
    content[24 + 12 : 24 + 16] = (len(whole) + 40).to_bytes(4, "little")
    (tmp_path / "cut.pcap").write_bytes(content)
    status, _ = run(tmp_path / "cut.pcap", 1, tmp_path)
    assert status != 0
    said = capsys.readouterr().err
    assert f"has {len(whole)} of the {len(whole) + 40} bytes of a packet" in said
    assert "--snaplen full" in said
