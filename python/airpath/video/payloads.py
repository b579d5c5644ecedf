# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The depacketiser of each codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from airpath.video import payload_av1, payload_h263, payload_nal

if TYPE_CHECKING:
    from collections.abc import Callable


class Depacketiser(Protocol):
    """Puts RTP payloads together to a bitstream."""

    def begin_frame(self) -> bytes:
        """Return the bytes in front of a frame."""

    def push(self, payload: bytes, *, after_loss: bool) -> bytes:
        """Return what a payload adds to the bitstream."""


DEPACKETISERS: dict[str, Callable[[], Depacketiser]] = {
    "h263p": payload_h263.Depacketiser,
    "h264": payload_nal.H264,
    "h265": payload_nal.H265,
    "av1": payload_av1.Depacketiser,
}
"""By the codec's name."""
