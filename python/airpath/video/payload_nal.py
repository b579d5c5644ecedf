# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""RTP payloads of H.264 (RFC 6184) and H.265 (RFC 7798) put together again.

The bitstream has a start code of four bytes in front of every NAL unit, as ``airpath video make``
writes it. Start codes are not sent, so that others of three bytes would not come back.
"""

from __future__ import annotations

import re

START_CODE = b"\0\0\0\1"
_ANY_START_CODE = re.compile(rb"\x00\x00+\x01")


def with_long_start_codes(bitstream: bytes) -> bytes:
    """Return a bitstream in the byte format of Annex B with start codes of four bytes alone."""
    return _ANY_START_CODE.sub(START_CODE, bitstream)


def without_trailing_zeros(payload: bytes, codec: str) -> bytes:
    """Return a payload without zero bytes behind its NAL unit.

    A NAL unit ends with a byte that is not zero (H.264 and H.265, section 7.4.1).

    Args:
        payload: behind the RTP header.
        codec: h264 or h265.

    """
    kind = payload[0] & 0x1F if codec == "h264" else payload[0] >> 1 & 0x3F
    header_bytes, several, fragment = (1, 24, 28) if codec == "h264" else (2, 48, 49)
    if kind == fragment:
        ends = payload[header_bytes] & 0x40
        return (
            payload[: header_bytes + 1] + payload[header_bytes + 1 :].rstrip(b"\0")
            if ends
            else payload
        )
    if kind != several:
        return payload.rstrip(b"\0")
    out, at = payload[:header_bytes], header_bytes
    while at + 2 < len(payload):
        length = int.from_bytes(payload[at : at + 2], "big")
        unit = payload[at + 2 : at + 2 + length].rstrip(b"\0")
        out += len(unit).to_bytes(2, "big") + unit
        at += 2 + length
    return out


class _Depacketiser:
    """NAL units from payloads in order: whole, several in one payload, or in fragments.

    Of a NAL unit in fragments, what follows a lost one is left out: without the bits in between
    an entropy decoder cannot read it.
    """

    def __init__(self) -> None:
        self._open = False
        """True within a NAL unit of which no fragment is missing so far."""

    def begin_frame(self) -> bytes:
        """Return the bytes in front of a frame: none."""
        return b""

    def _several(self, payload: bytes, begin: int) -> bytes:
        """Return the NAL units of a payload with several, each behind its length."""
        self._open = False
        units = []
        while begin + 2 < len(payload):
            length = int.from_bytes(payload[begin : begin + 2], "big")
            units.append(payload[begin + 2 : begin + 2 + length])
            begin += 2 + length
        return b"".join(START_CODE + unit for unit in units)

    def _fragment(
        self, payload: bytes, header: bytes, begin: int, *, flags: int, after_loss: bool
    ) -> bytes:
        starts, ends = bool(flags & 0x80), bool(flags & 0x40)
        usable = starts or (self._open and not after_loss)
        self._open = usable and not ends
        if not usable:
            return b""
        return (START_CODE + header if starts else b"") + payload[begin:]


class H264(_Depacketiser):
    """A decoder's input from payloads of H.264 in packetisation modes 0 and 1."""

    def push(self, payload: bytes, *, after_loss: bool) -> bytes:
        """Return what a payload adds to the bitstream.

        Args:
            payload: behind the RTP header.
            after_loss: whether packets in front of it are missing.

        """
        kind = payload[0] & 0x1F if payload else 0
        if kind == 24:  # STAP-A
            return self._several(payload, 1)
        if kind == 28 and len(payload) >= 2:  # FU-A
            header = bytes([payload[0] & 0xE0 | payload[1] & 0x1F])
            return self._fragment(payload, header, 2, flags=payload[1], after_loss=after_loss)
        self._open = False
        return START_CODE + payload if 1 <= kind <= 23 else b""


class H265(_Depacketiser):
    """A decoder's input from payloads of H.265 without decoding order numbers."""

    def push(self, payload: bytes, *, after_loss: bool) -> bytes:
        """Return what a payload adds to the bitstream.

        Args:
            payload: behind the RTP header.
            after_loss: whether packets in front of it are missing.

        """
        if len(payload) < 2:
            self._open = False
            return b""
        kind = payload[0] >> 1 & 0x3F
        if kind == 48:  # aggregation packet
            return self._several(payload, 2)
        if kind == 49 and len(payload) >= 3:  # fragmentation unit
            header = bytes([payload[0] & 0x81 | (payload[2] & 0x3F) << 1, payload[1]])
            return self._fragment(payload, header, 3, flags=payload[2], after_loss=after_loss)
        self._open = False
        return START_CODE + payload if kind < 48 else b""
