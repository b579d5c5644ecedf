# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Frames of a capture: a pcap or pcapng file, or an interface through a packet socket.

Source: draft-ietf-opsawg-pcap and -pcapng; radiotap.org for the header before 802.11 frames.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RADIOTAP = 127
LINK_TYPES = frozenset({1, 12, 101, 105, 113, 127, 228, 276})
"""Ethernet, raw IP, 802.11, Linux cooked, radiotap, IPv4, Linux cooked 2."""
_PCAP = {0xA1B2C3D4, 0xA1B23C4D}
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_LARGEST = 1 << 24
_FCS_BYTES = 4
_RADIOTAP_FLAGS = 1
_FCS_AT_END = 0x10
_ALL_PROTOCOLS = 3
_OUTGOING = 4
_SO_RCVBUFFORCE, _SOL_PACKET, _PACKET_STATISTICS = 33, 263, 6
"""Numbers of Linux that the module socket does not have."""
_BUFFER_BYTES = 16 << 20
_DEVICES = {1: 1, 772: 1, 801: 105, 803: RADIOTAP, 65534: 101}
"""Link types of the kernel's types of interfaces."""


class CaptureError(Exception):
    """A capture cannot be read; the message says what, where, and how to mend it."""


def without_link_extras(frame: bytes, link_type: int) -> bytes:
    """Return a frame without its radiotap header and without a frame check sequence.

    Raises:
        CaptureError: the radiotap header is damaged.

    """
    if link_type != RADIOTAP:
        return frame
    if len(frame) < 8 or frame[0] != 0:
        message = "the frame has no radiotap header"
        raise CaptureError(message)
    length, present = struct.unpack_from("<HI", frame, 2)
    if not 8 <= length <= len(frame):
        message = f"the radiotap header of {length} bytes does not fit into the frame"
        raise CaptureError(message)
    at, more = 8, present
    while more & 1 << 31 and at + 4 <= length:
        (more,) = struct.unpack_from("<I", frame, at)
        at += 4
    if present & 1:
        # The time stamp is aligned to eight bytes, from the beginning of the header on.
        at = -(-at // 8) * 8 + 8
    has_fcs = present & 1 << _RADIOTAP_FLAGS and at < length and frame[at] & _FCS_AT_END
    return frame[length : len(frame) - _FCS_BYTES if has_fcs else len(frame)]


def read(path: Path) -> Iterator[bytes]:
    """Yield the frames of a file, without radiotap headers.

    Raises:
        CaptureError: it is no capture, is damaged, or of a link type that is not read.

    """
    with path.open("rb") as file:
        content = file.read()
    if len(content) < 4:
        message = f"{path} is no capture: it has {len(content)} bytes"
        raise CaptureError(message)
    for order in ("<", ">"):
        (magic,) = struct.unpack_from(f"{order}I", content)
        if magic in _PCAP:
            yield from _read_pcap(path, content, order)
            return
    if magic == _SECTION:
        yield from _read_pcapng(path, content)
        return
    message = f"{path} is no capture: it begins as neither pcap nor pcapng does"
    raise CaptureError(message)


def _frame(path: Path, at: int, frame: bytes, link_type: int) -> bytes:
    if link_type not in LINK_TYPES:
        message = (
            f"{path}: link type {link_type} is not read; capture in monitor mode with radiotap "
            "headers (127), as tcpdump -y IEEE802_11_RADIO does"
        )
        raise CaptureError(message)
    try:
        return without_link_extras(frame, link_type)
    except CaptureError as error:
        message = f"{path}, byte {at}: {error}"
        raise CaptureError(message) from None


def _damaged(path: Path, at: int, what: str) -> CaptureError:
    return CaptureError(f"{path}, byte {at}: {what}; the file is damaged, so capture it anew")


def _cut(path: Path, at: int, captured: int, length: int) -> CaptureError:
    message = (
        f"{path}, byte {at}: the capture has {captured} of the {length} bytes of a packet, and the "
        "rest would count as cut by the radio; capture whole packets (tcpdump -s 0, "
        "airpath exec --snaplen full)"
    )
    return CaptureError(message)


def _read_pcap(path: Path, content: bytes, order: str) -> Iterator[bytes]:
    if len(content) < 24:
        raise _damaged(path, len(content), "the file ends within its header")
    link_type = struct.unpack_from(f"{order}I", content, 20)[0] & 0xFFFF
    at = 24
    while at < len(content):
        if at + 16 > len(content):
            raise _damaged(path, at, "the file ends within a packet")
        captured, length = struct.unpack_from(f"{order}II", content, at + 8)
        if captured > _LARGEST or at + 16 + captured > len(content):
            raise _damaged(path, at, f"a packet of {captured} bytes does not fit into the file")
        if captured < length:
            raise _cut(path, at, captured, length)
        yield _frame(path, at, content[at + 16 : at + 16 + captured], link_type)
        at += 16 + captured


def _read_pcapng(path: Path, content: bytes) -> Iterator[bytes]:
    at, order = 0, "<"
    link_types: list[int] = []
    while at < len(content):
        if at + 12 > len(content):
            raise _damaged(path, at, "the file ends within a block")
        (kind,) = struct.unpack_from(f"{order}I", content, at)
        if kind == _SECTION:
            order = "<" if content[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            link_types = []
        kind, length = struct.unpack_from(f"{order}II", content, at)
        if length < 12 or length % 4 or at + length > len(content):
            raise _damaged(path, at, f"a block of {length} bytes does not fit into the file")
        body = content[at + 8 : at + length - 4]
        if kind == _INTERFACE:
            if len(body) < 8:
                raise _damaged(path, at, "an interface block is too short")
            link_types.append(struct.unpack_from(f"{order}H", body)[0])
        elif kind == _ENHANCED:
            if len(body) < 20:
                raise _damaged(path, at, "a packet block is too short")
            interface, _, _, captured, original = struct.unpack_from(f"{order}IIIII", body)
            if interface >= len(link_types) or captured > len(body) - 20:
                raise _damaged(path, at, "a packet block tells of what is not there")
            if captured < original:
                raise _cut(path, at, captured, original)
            yield _frame(path, at, body[20 : 20 + captured], link_types[interface])
        elif kind == _SIMPLE:
            if len(body) < 4 or not link_types:
                raise _damaged(path, at, "a packet block tells of what is not there")
            yield _frame(
                path, at, body[4:][: struct.unpack_from(f"{order}I", body)[0]], link_types[0]
            )
        at += length


def listen(interface: str, silence_s: float) -> Iterator[bytes]:
    """Yield the frames that an interface receives, until none comes for so many seconds.

    Raises:
        CaptureError: there is no such interface, it cannot be read, it is a wireless one that is
            not in monitor mode, or packets came while the buffer was full.

    """
    about = Path("/sys/class/net") / interface
    if "/" in interface or not (about / "type").exists():
        message = f"there is no interface {interface}; `ip link` lists them"
        raise CaptureError(message)
    kind = int((about / "type").read_text())
    if kind == 1 and ((about / "wireless").exists() or (about / "phy80211").exists()):
        message = (
            f"{interface} is not in monitor mode, where frames with errors are seen; set it: "
            f"ip link set {interface} down; iw dev {interface} set monitor fcsfail; "
            f"ip link set {interface} up"
        )
        raise CaptureError(message)
    if kind not in _DEVICES:
        message = f"{interface} is of type {kind}, which is not read; use a monitor interface"
        raise CaptureError(message)
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EACCES):
            raise
        message = f"capturing from {interface} needs CAP_NET_RAW; run the command as root"
        raise CaptureError(message) from error
    with opened:
        _enlarge(opened)
        opened.bind((interface, _ALL_PROTOCOLS))
        opened.settimeout(0.2)
        last = time.monotonic()
        while time.monotonic() - last < silence_s:
            try:
                frame, address = opened.recvfrom(1 << 16)
            except TimeoutError:
                continue
            if address[2] != _OUTGOING:
                try:
                    whole = without_link_extras(frame, _DEVICES[kind])
                except CaptureError:
                    continue
                yield whole
                last = time.monotonic()
        missed = _missed(opened)
    if missed:
        message = (
            f"{missed} packets came to {interface} while the buffer of the socket was full, and "
            "would count as lost; send with a longer --interval, or capture on a less loaded "
            "machine"
        )
        raise CaptureError(message)


def _enlarge(opened: socket.socket) -> None:
    """Give a socket room for a second or so of packets while the process does not run."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)


def _missed(opened: socket.socket) -> int:
    """Return the number of packets for which the buffer of a packet socket had no room."""
    counts = opened.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    return int(struct.unpack("II", counts)[1])
