# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Bytes of one packet, and what they mean: headers field by field, with the place of each."""

from __future__ import annotations

import ipaddress
from typing import Any

_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_EXTENSIONS = {0: "hop-by-hop options", 43: "routing", 60: "destination options"}


class _Fields:
    """Fields of a packet, collected layer by layer."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.layers: list[dict[str, Any]] = []

    def layer(self, name: str) -> None:
        self.layers.append({"layer": name, "fields": []})

    def number(self, name: str, at: int, size: int, text: str = "") -> int:
        """Add a field of ``size`` bytes; return its number.

        Raises:
            IndexError: the capture ends before it.

        """
        if at + size > len(self.content):
            raise IndexError
        value = int.from_bytes(self.content[at : at + size], "big")
        self.add(name, at, size, text or str(value))
        return value

    def add(self, name: str, at: int, size: int, text: str) -> None:
        self.layers[-1]["fields"].append({"name": name, "at": at, "size": size, "text": text})


def dissected(content: bytes) -> list[dict[str, Any]]:
    """Return the layers of an IP packet, each with its fields: name, place, size, text."""
    fields = _Fields(content)
    try:
        if content[0] >> 4 == 4:
            _ipv4(fields)
        elif content[0] >> 4 == 6:
            _ipv6(fields)
        else:
            fields.layer("unknown")
    except IndexError:
        fields.layer("cut off: the capture has no more bytes of this packet")
    return fields.layers


def _ipv4(fields: _Fields) -> None:
    content = fields.content
    fields.layer("IPv4")
    header = (content[0] & 15) * 4
    fields.number("version, header length", 0, 1, f"4, {header} bytes")
    fields.number("DSCP, ECN", 1, 1, f"{content[1] >> 2}, {content[1] & 3}")
    fields.number("total length", 2, 2)
    fields.number("identification", 4, 2)
    fragment = int.from_bytes(content[6:8], "big")
    flags = " ".join(name for bit, name in ((0x4000, "DF"), (0x2000, "MF")) if fragment & bit)
    fields.number("flags, fragment offset", 6, 2, f"{flags or '-'}, {(fragment & 0x1FFF) * 8}")
    fields.number("time to live", 8, 1)
    protocol = fields.number("protocol", 9, 1)
    fields.number("checksum", 10, 2, content[10:12].hex())
    fields.number("source", 12, 4, str(ipaddress.IPv4Address(content[12:16].ljust(4, b"\0"))))
    fields.number("destination", 16, 4, str(ipaddress.IPv4Address(content[16:20].ljust(4, b"\0"))))
    if not fragment & 0x1FFF:
        _transport(fields, protocol, header)


def _ipv6(fields: _Fields) -> None:
    content = fields.content
    fields.layer("IPv6")
    fields.number("version, class, flow label", 0, 4, content[0:4].hex())
    fields.number("payload length", 4, 2)
    protocol = fields.number("next header", 6, 1)
    fields.number("hop limit", 7, 1)
    fields.number("source", 8, 16, str(ipaddress.IPv6Address(content[8:24].ljust(16, b"\0"))))
    fields.number(
        "destination", 24, 16, str(ipaddress.IPv6Address(content[24:40].ljust(16, b"\0")))
    )
    at = 40
    while protocol in _EXTENSIONS:
        fields.layer(f"IPv6 {_EXTENSIONS[protocol]}")
        following = fields.number("next header", at, 1)
        size = (fields.number("length", at + 1, 1) + 1) * 8
        protocol, at = following, at + size
    _transport(fields, protocol, at)


def _transport(fields: _Fields, protocol: int, at: int) -> None:
    content = fields.content
    if protocol == 6:
        fields.layer("TCP")
        fields.number("source port", at, 2)
        fields.number("destination port", at + 2, 2)
        fields.number("sequence number", at + 4, 4)
        fields.number("acknowledgement number", at + 8, 4)
        header = (content[at + 12] >> 4) * 4
        fields.number("header length", at + 12, 1, f"{header} bytes")
        flags = [name for bit, name in enumerate(_FLAGS) if content[at + 13] >> bit & 1]
        fields.number("flags", at + 13, 1, " ".join(flags) or "-")
        fields.number("window", at + 14, 2)
        fields.number("checksum", at + 16, 2, content[at + 16 : at + 18].hex())
        if header > 20:
            fields.number("options", at + 20, header - 20, content[at + 20 : at + header].hex())
        at += header
    elif protocol in (17, 136):
        fields.layer("UDP" if protocol == 17 else "UDP-Lite")
        fields.number("source port", at, 2)
        fields.number("destination port", at + 2, 2)
        fields.number("length" if protocol == 17 else "checksum coverage", at + 4, 2)
        fields.number("checksum", at + 6, 2, content[at + 6 : at + 8].hex())
        at += 8
    elif protocol in (1, 58):
        fields.layer("ICMP" if protocol == 1 else "ICMPv6")
        fields.number("type", at, 1)
        fields.number("code", at + 1, 1)
        fields.number("checksum", at + 2, 2, content[at + 2 : at + 4].hex())
        at += 4
    else:
        fields.layer(f"protocol {protocol}")
    if at < len(content):
        fields.layer("payload")
        fields.add("bytes", at, len(content) - at, f"{len(content) - at} bytes captured")
