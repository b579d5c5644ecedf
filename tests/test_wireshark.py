# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The dissector that `airpath wireshark` prints: it knows every cause, and tshark loads it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from airpath.facts import CAUSES
from airpath.wireshark import quoted, script
from pcapng import Packet, capture, udp

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = (
    *("pdu", "direction", "fate", "cause", "class", "hop", "after", "flipped_bits"),
    *("kept_bytes", "marked"),
)


def test_every_cause_is_there_with_its_meaning() -> None:
    text = script()
    for cause in CAUSES.values():
        about = f"class = {quoted(cause.group)}, meaning = {quoted(cause.meaning)}"
        assert f"    [{quoted(cause.name)}] = {{ {about} }},\n" in text
    assert quoted('a "b" \\ c\n') == '"a \\"b\\" \\\\ c\\n"'


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_loads_it_and_tells_what_the_link_did(tmp_path: Path) -> None:
    datagram = udp(("10.0.0.1", 4000), ("10.0.0.2", 5000), 20)
    said = (
        (0, ""),
        (0, "dropped: queue_packets at radio.voice after 0.012500000 s"),
        (0, "discarded: noise"),
        (1, "damaged: 3 bits flipped; marked: congestion experienced"),
        (1, "truncated: 40 of 48 bytes left"),
    )
    packets = [
        Packet(number * 1000, way, datagram, 7 + number, comment)
        for number, (way, comment) in enumerate(said)
    ]
    (tmp_path / "client.pcapng").write_bytes(capture(packets))
    (tmp_path / "airpath.lua").write_text(script())
    words = ["tshark", "-X", "lua_script:airpath.lua", "-r", "client.pcapng", "-T", "fields"]
    fields = [word for name in FIELDS for word in ("-e", f"airpath.{name}")]
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [*words, *fields], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "Lua" not in done.stderr, done.stderr
    rows = [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]
    told = [{name: value for name, value in row.items() if value} for row in rows]
    came, went = {"direction": "into the link"}, {"direction": "out of the link"}
    full, noise = CAUSES["queue_packets"].group, CAUSES["noise"].group
    assert told == [
        {"pdu": "7", **came},
        {
            **came,
            "pdu": "8",
            "fate": "dropped",
            "cause": "queue_packets",
            "class": full,
            "hop": "radio.voice",
            "after": "0.0125",
        },
        {"pdu": "9", **came, "fate": "discarded", "cause": "noise", "class": noise},
        {"pdu": "10", **went, "fate": "damaged,marked", "flipped_bits": "3", "marked": "1"},
        {"pdu": "11", **went, "fate": "truncated", "kept_bytes": "40"},
    ]
