# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declarations of ``airpath trace send`` and ``airpath trace capture``."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

_OF_PROBES = (
    Option("--packets", ("N",), "Number of packets", type="positive", default=10000),
    Option(
        "--length",
        ("BYTES",),
        "Length of the IP packets in bytes",
        type="whole",
        default=1408,
    ),
)

RADIO_CAPTURES = (
    Declaration(
        "trace send",
        "Send numbered packets of known content, whose errors a capture finds",
        "airpath.radiocapture.commands:send",
        ("airpath trace send 192.0.2.7 --packets 10000 --interval 6.1",),
        (Argument("HOST", "The receiver, over the radio", "to", type="text"),),
        (
            *_OF_PROBES,
            Option("--port", ("N",), "UDP port", type="whole", default=5301),
            Option(
                "--interval",
                ("MS",),
                "Time from one packet to the next in milliseconds",
                key="interval_ms",
                type="number",
                default="6.1",
            ),
        ),
        "UDP over IPv4; nobody needs to listen at the port. Exit status: 0 if all are sent, 2 if "
        "an argument is wrong, 1 if sending fails.",
    ),
    Declaration(
        "trace capture",
        "Find the packets of trace send in a capture, and write their errors as a trace",
        "airpath.radiocapture.commands:capture",
        (
            "airpath trace capture wlan0mon walls.trace --packets 10000",
            "airpath trace capture walls.pcap walls.trace --packets 10000",
        ),
        (
            Argument(
                "SOURCE",
                "A pcap or pcapng file with radiotap headers, or an interface in monitor mode",
                "source",
                type="text",
            ),
            Argument("OUTPUT", "The trace", "output"),
        ),
        (
            *_OF_PROBES,
            Option(
                "--silence",
                ("S",),
                "Of an interface: end after so many seconds without any frame",
                key="silence_s",
                type="number",
                default="10",
            ),
        ),
        "Ethernet, loopback and raw IP are read too, and show losses alone. Exit status: 0 if a "
        "trace was written, 2 if the source or an argument is wrong, 122 if it cannot be written.",
    ),
)
