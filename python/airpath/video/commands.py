# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands about video, as the command line calls them."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.status import DONE, INTERRUPTED, fail
from airpath.video.codecs import CODECS
from airpath.video.errors import OptionError, VideoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_FRAMES = 1_000_000


class _Status:
    """Exit status of a command, set where it fails."""

    def __init__(self) -> None:
        self.value = DONE


@contextlib.contextmanager
def _errors_told(command: str, program: Path | None = None) -> Iterator[_Status]:
    """Print errors of the block, and turn them into an exit status; ``program`` is its ffmpeg."""
    from airpath.video import ffmpeg

    status = _Status()
    try:
        with ffmpeg.chosen(program):
            yield status
    except BrokenPipeError:
        raise
    except (VideoError, OSError) as error:
        status.value = fail(f"video {command}", error)


def _print(report: dict[str, Any], text: Callable[[], str], *, as_json: bool) -> None:
    print(json.dumps(report, indent=1) if as_json else text(), flush=True)


def _quantity(flag: str, text: str, read: Callable[[str], int]) -> int:
    from airpath.experiment.quantities import QuantityError

    try:
        return read(text)
    except QuantityError as error:
        message = f"{flag}: {error}"
        raise OptionError(message) from error


def _seconds(flag: str, text: str) -> float:
    from airpath.experiment.quantities import time_ns

    return _quantity(flag, text, time_ns) / 1e9


def _check_fps(fps: float | None) -> None:
    if fps is not None and not (math.isfinite(fps) and 1 <= fps <= 1000):
        message = f"--fps {fps:g} is not within 1 … 1000"
        raise OptionError(message)


def _check_lite(transport: str, coverage: int | None, way: str) -> None:
    if transport != "udp-lite" and (coverage or way != "auto"):
        flag = f"--coverage {coverage}" if coverage else f"--udp-lite-sockets {way}"
        message = f"{flag} needs --transport udp-lite: the checksum of UDP covers every byte"
        raise OptionError(message)


def make(
    *,
    out: Path | None,
    codec: str | None,
    frames: int,
    size: str,
    fps: float,
    rate: str,
    scene: str,
    key_frame_interval: int,
    slice_bytes: int,
    ffmpeg: Path | None,
    as_json: bool,
) -> int:
    """Carry ``airpath video make`` out."""
    from airpath.experiment.quantities import rate_bps
    from airpath.video.make import make as make_video

    with _errors_told("make", ffmpeg) as status:
        _check_fps(fps)
        for flag, value, least in (
            ("--frames", frames, 1),
            ("--key-frame-interval", key_frame_interval, 1),
            ("--slice-bytes", slice_bytes, 0),
        ):
            if not least <= value <= _MOST_FRAMES:
                message = f"{flag} {value} is not within {least} … {_MOST_FRAMES}"
                raise OptionError(message)
        by_suffix = {one.suffix: one.name for one in CODECS.values()}
        chosen = codec or by_suffix.get(out.suffix if out else "", "h264")
        if slice_bytes and chosen not in ("h263p", "h264"):
            message = f"--slice-bytes is for h263p and h264, not for {chosen}"
            raise OptionError(message)
        path = out or Path(f"clip{CODECS[chosen].suffix}")
        notes = make_video(
            path,
            codec=chosen,
            frames=frames,
            size=size,
            fps=fps,
            rate_bps=_quantity("--rate", rate, rate_bps),
            scene_name=scene,
            key_frame_interval=key_frame_interval,
            slice_bytes=slice_bytes,
        )
        _print(
            {"file": str(path), **notes},
            lambda: (
                f"{path}: {notes['frame_count']} frames of {notes['width']}x{notes['height']} at "
                f"{fps:g} frames/s, {chosen}, {notes['bytes']} bytes "
                f"({notes['rate_bps'] / 1000:.4g} kbit/s)"
            ),
            as_json=as_json,
        )
    return status.value


def send(
    file: Path,
    *,
    to: str,
    ipv4: bool,
    transport: str,
    coverage: int | None,
    packet_bytes: int,
    pace: str,
    fps: float | None,
    log: Path | None,
    way: str,
    ffmpeg: Path | None,
    as_json: bool,
) -> int:
    """Carry ``airpath video send`` out."""
    from airpath.video import endpoints, packetise
    from airpath.video import send as sending
    from airpath.video import transport as transports

    with _errors_told("send", ffmpeg) as status:
        _check_fps(fps)
        _check_lite(transport, coverage, way)
        sending.check_packet_bytes(packet_bytes)
        sending.check_coverage(coverage or 0, packet_bytes)
        source = packetise.inspect(file, fps)
        if source.rate_is_guessed:
            print(
                f"airpath video send: {file} does not say its frame rate; taken as "
                f"{source.frames_per_second:g} frames/s (--fps)",
                file=sys.stderr,
            )
        stream = packetise.packetise(source, packet_bytes)
        endpoint = endpoints.resolve(to, "--to", ipv4=ipv4)
        with contextlib.closing(transports.open_sender(endpoint, transport, way)) as sender:
            report = sending.send(
                sender,
                source,
                stream,
                coverage_bytes=(
                    sending.default_coverage(source.codec) if coverage is None else coverage
                ),
                pace=pace,
                log=log,
            )
        _print(report, lambda: sending.summary(report), as_json=as_json)
        if report["interrupted"]:
            status.value = INTERRUPTED
    return status.value


def receive(
    *,
    listen: str,
    out: Path,
    transport: str,
    coverage: int,
    reorder_delay: str,
    wait: str,
    silence: str,
    duration: str | None,
    sent: Path | None,
    way: str,
    as_json: bool,
) -> int:
    """Carry ``airpath video receive`` out."""
    from airpath.experiment.quantities import time_ns
    from airpath.video import endpoints
    from airpath.video import receive as receiving
    from airpath.video import transport as transports

    with _errors_told("receive") as status:
        _check_lite(transport, coverage, way)
        if not 0 <= coverage <= transports.LONGEST_BYTES:
            message = f"--coverage {coverage} is not within 0 … {transports.LONGEST_BYTES}"
            raise OptionError(message)
        limits = receiving.Limits(
            _seconds("--wait", wait),
            _seconds("--silence", silence),
            _seconds("--duration", duration) if duration else None,
        )
        delay_ns = _quantity("--reorder-delay", reorder_delay, time_ns)
        endpoint = endpoints.to_listen(listen)
        opened = transports.open_receiver(endpoint, transport, way, coverage)
        with contextlib.closing(opened) as receiver:
            report = receiving.receive(
                receiver,
                out=out,
                transport_name=transport,
                limits=limits,
                reorder_delay_ns=delay_ns,
                sent=sent,
            )
        # Behind a link the standard output of both ends is one: it is the client's.
        if as_json:
            print(json.dumps(report, indent=1), flush=True)
        else:
            print(receiving.summary(report, out), file=sys.stderr)
    return status.value


def compare(
    reference: Path,
    received: list[Path],
    *,
    out: Path | None,
    playout_delay: str | None,
    fps: float | None,
    file_format: str,
    no_clip: bool,
    ffmpeg: Path | None,
    as_json: bool,
) -> int:
    """Carry ``airpath video compare`` out."""
    from airpath.experiment.quantities import time_ns
    from airpath.video import comparison

    with _errors_told("compare", ffmpeg) as status:
        _check_fps(fps)
        text, reports, files = comparison.run(
            reference,
            received,
            out=out,
            fps=fps,
            playout_ns=(
                _quantity("--playout-delay", playout_delay, time_ns) if playout_delay else None
            ),
            file_format=file_format,
            clip=not no_clip,
        )
        written = [str(file) for file in files]
        report = {"reference": str(reference), "videos": reports, "files": written}
        _print(report, lambda: "\n".join([text, *written]), as_json=as_json)
    return status.value
