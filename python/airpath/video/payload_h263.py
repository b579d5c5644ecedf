# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""RTP payloads of H.263+ (RFC 4629) put together again."""

from __future__ import annotations

_START_CODE_FOLLOWS = 0x04
_VIDEO_REDUNDANCY = 0x02
"""Flags P and V in the first byte of the payload header (section 5.1)."""


class Depacketiser:
    """A decoder's input from payloads in order; after a loss it waits for the next start code."""

    def __init__(self) -> None:
        self._waits = False

    def begin_frame(self) -> bytes:
        """Return the bytes in front of a frame: none."""
        return b""

    def push(self, payload: bytes, *, after_loss: bool) -> bytes:
        """Return what a payload adds to the bitstream.

        Args:
            payload: behind the RTP header.
            after_loss: whether packets in front of it are missing.

        """
        if len(payload) < 2:
            self._waits = True
            return b""
        first = payload[0]
        begins = bool(first & _START_CODE_FOLLOWS)
        self._waits = not begins and (self._waits or after_loss)
        if self._waits:
            return b""
        extra_picture_header = (first & 1) << 5 | payload[1] >> 3
        begin = 2 + bool(first & _VIDEO_REDUNDANCY) + extra_picture_header
        # The two zero bytes of a start code are not sent.
        return (b"\0\0" if begins else b"") + payload[begin:]
