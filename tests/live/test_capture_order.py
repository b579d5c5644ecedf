# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Captures of live runs tell causes before their effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pcapng

if TYPE_CHECKING:
    from live.harness import Airpath

ECHO_REPLY, ECHO_REQUEST = 0, 8


def test_an_answer_is_never_older_than_what_it_answers(airpath: Airpath) -> None:
    """The kernel answers a ping within the very write that hands it over."""
    out = airpath.path("run")
    ping = ("ping", "-4", "-n", "-q", "-c", "400", "-i", "0.002", "server")
    airpath.run("exec", "--delay", "1 ms", "--out", out, "--quiet", "--", *ping).check()
    left: dict[int, int] = {}
    answered = 0
    for packet in pcapng.packets((out / "server.pcapng").read_bytes()):
        if packet.content[9] != 1:
            continue
        kind, number = packet.content[20], int.from_bytes(packet.content[26:28])
        if kind == ECHO_REQUEST and packet.interface == 1:
            left[number] = packet.unix_ns
        elif kind == ECHO_REPLY and packet.interface == 0:
            assert number in left, f"the answer {number} stands before its request"
            assert packet.unix_ns >= left[number]
            answered += 1
    assert answered == 400
