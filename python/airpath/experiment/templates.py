"""From templates to the programs that they stand for."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.engine import find_engine
from airpath.experiment.model import (
    Curl,
    Ffmpeg,
    Interactive,
    Iperf3,
    Ping,
    Program,
    Ready,
    Send,
)
from airpath.experiment.quantities import length_bytes, rate_bps, time_ns

if TYPE_CHECKING:
    from airpath.experiment.model import Common, Workload

HERE = Path(__file__).parent

PYTHON = [sys.executable, "-I", "-S"]
"""With the standard library alone, so that it starts quickly."""

PACKAGES = {
    "iperf3": "iperf3",
    "curl": "curl",
    "ping": "iputils-ping",
    "ffmpeg": "ffmpeg",
    "ffprobe": "ffmpeg",
}
"""Debian packages of the programs that templates run."""

INNER = {"curl": ["curl"], "ffmpeg": ["ffprobe"]}
"""Programs that those of a template start in their turn."""


def programs(workload: Workload) -> list[Program]:
    """Return the programs of a workload, each with a name of its own."""
    found: list[Program] = []
    for number, one in enumerate(workload.programs, 1):
        if isinstance(one, Program):
            found.append(one.model_copy(update={"name": one.name or f"program-{number}"}))
        else:
            base = one.name or f"{one.template}-{number}"
            found += _made(one, base)
    names: dict[str, int] = {}
    unique = []
    for program in found:
        name = str(program.name)
        names[name] = names.get(name, 0) + 1
        fresh = name if names[name] == 1 else f"{name}-{names[name]}"
        unique.append(program.model_copy(update={"name": fresh}))
    return unique


def missing_programs(workload: Workload, directory: Path) -> list[str]:
    """Return what a workload needs and this host has not, each with how to mend it."""
    missing = []
    for program in programs(workload):
        words = program.command
        in_shell = isinstance(words, str)
        if isinstance(words, str):
            # A shell's own words are for the shell to find.
            if any(c in words for c in ";|&$`(){}<>=\n"):
                continue
            try:
                words = shlex.split(words)
            except ValueError:
                continue
        name = words[0] if words else ""
        if in_shell and "/" in name and not name.startswith("/"):
            missing.append(
                f"program `{program.name}`: programs start in folders of their own, where `{name}` "
                f'is not: write "$AIRPATH_EXPERIMENT/{name.removeprefix("./")}"'
            )
        elif not _is_there(str(directory / name) if "/" in name else name, in_shell):
            missing.append(_remedy(f"program `{program.name}`", name))
    for one in workload.programs:
        if not isinstance(one, Program):
            missing += [
                _remedy(f"template `{one.template}`", name)
                for name in INNER.get(one.template, [])
                if shutil.which(name) is None
            ]
    return missing


def unfit(workload: Workload, clock: str) -> list[str]:
    """Return what of a workload cannot run by a clock, each with what can."""
    return [
        "iperf3 with `udp_rate` does not end by the clock warp, as it waits by looking at the "
        'clock; take `template = "send"` with `udp_rate`'
        for one in workload.programs
        if clock == "warp" and isinstance(one, Iperf3) and one.udp_rate
    ]


def _remedy(who: str, name: str) -> str:
    how = (
        f"install it (Debian: apt-get install {PACKAGES[name]})"
        if name in PACKAGES
        else "install it, or name the file by its full path"
    )
    return f"{who} needs `{name}`, which is not there: {how}"


def _is_there(name: str, in_shell: bool) -> bool:
    if shutil.which(name) is not None:
        return True
    if not in_shell or "/" in name:
        return False
    asked = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name]  # a word of the shell's own
    return subprocess.run(asked, stdout=subprocess.DEVNULL, check=False).returncode == 0


def _made(one: Any, base: str) -> list[Program]:
    common = one.model_dump(include={"start", "time_limit", "environment"})
    if isinstance(one, Iperf3):
        client = ["iperf3", "-c", "server", "-p", str(one.port), "-J", "-P", str(one.parallel)]
        client += ["-n", str(_bytes(one.bytes))] if one.bytes is not None else []
        client += ["-t", f"{time_ns(one.time or '10 s') / 1e9:g}"] if one.bytes is None else []
        client += ["-R"] if one.sender == "server" else []
        client += ["-C", one.congestion_control] if one.congestion_control else []
        client += ["-u", "-b", str(rate_bps(one.udp_rate))] if one.udp_rate else []
        client += ["-l", str(one.length)] if one.length else []
        # With JSON it ends with 0 even if it could not connect.
        script = (
            f"report=$({shlex.join(client)}); status=$?; printf '%s\\n' \"$report\"; "
            """case $report in *'"error":'*) printf '%s\\n' "$report" | """
            """grep '"error":' >&2; exit 1;; esac; exit $status"""
        )
        client = ["/bin/sh", "-c", script]
        server = ["iperf3", "-s", "-1", "-p", str(one.port)]
        return _pair(one, base, server, client, common)
    if isinstance(one, Send):
        engine = find_engine()
        server = [engine, "recv", "--once", "--port", str(one.port)]
        client = [engine, "send", "server", "--port", str(one.port), "--json"]
        client += ["--bytes", str(_bytes(one.bytes))] if one.bytes is not None else []
        client += ["--time", one.time] if one.time else []
        client += ["--reverse"] if one.sender == "server" else []
        client += ["--parallel", str(one.parallel)] if one.parallel > 1 else []
        client += ["--cc", one.congestion_control] if one.congestion_control else []
        client += ["--udp", "--rate", one.udp_rate] if one.udp_rate else []
        client += ["--length", str(one.length)] if one.length else []
        return _pair(one, base, server, client, common)
    if isinstance(one, Interactive):
        keys = [*PYTHON, str(HERE / "interactive.py")]
        lengths = [str(one.port), str(one.request), str(one.response)]
        client = [*keys, "type", *lengths, str(one.count)]
        client += [f"{time_ns(one.think) / 1e9:g}", one.think_times]
        return _pair(one, base, [*keys, "serve", *lengths], client, common)
    if isinstance(one, Curl):
        server = [*PYTHON, str(HERE / "web.py"), str(one.port)]
        server += [str(_bytes(one.size)), str(_bytes(one.part_size))]
        client = [*PYTHON, str(HERE / "pages.py"), f"http://server:{one.port}", str(one.pages)]
        client += [f"{time_ns(one.pause) / 1e9:g}", str(one.parts), str(one.connections)]
        return _pair(one, base, server, client, common)
    if isinstance(one, Ping):
        interval = f"{time_ns(one.interval) / 1e9:g}"
        words = ["ping", "-n", "-c", str(one.count), "-i", interval, "-s", str(one.size), "server"]
        # 1: some echo did not come back, which is a result.
        return [Program(name=base, end="client", command=words, exit_status=[0, 1], **common)]
    assert isinstance(one, Ffmpeg)
    return _stream(one, base, common)


def _stream(one: Ffmpeg, base: str, common: dict[str, Any]) -> list[Program]:
    """Return the sender of a video, and the receiver, which has the figures."""
    seconds = time_ns(one.time) / 1e9
    apart = max(1, round(time_ns(one.key_frame_interval) / 1e9 * one.frames_per_second))
    source = ["-f", "lavfi", "-i", f"testsrc=size={one.picture}:rate={one.frames_per_second}"]
    frames = max(1, round(seconds * one.frames_per_second))
    # One thread and nothing of its own: the receiver makes the same stream once more.
    encoder = ["-c:v", one.codec, "-b:v", one.bitrate, "-g", str(apart), "-threads", "1"]
    encoder += ["-flags", "+bitexact", "-pix_fmt", "yuv420p"]
    encoder += ["-preset", "veryfast", "-tune", "zerolatency"] if one.codec == "libx264" else []
    over_tcp = one.transport == "tcp"
    target, muxer = {
        "udp": (f"udp://client:{one.port}?pkt_size=1316", "mpegts"),
        "rtp": (f"rtp://client:{one.port}?pkt_size=1328", "rtp_mpegts"),
        "tcp": (f"tcp://[::]:{one.port}?listen=1", "mpegts"),
    }[one.transport]
    sender = ["ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-re", *source, *encoder]
    # ffmpeg keeps the end of the last picture back over RTP: one more, which does not count.
    sender += ["-frames:v", str(frames + (one.transport == "rtp"))]
    receiver = [*PYTHON, str(HERE / "video.py"), one.transport, str(one.port)]
    receiver += [f"{seconds:g}", f"{time_ns(one.buffer) / 1e9:g}", *source, *encoder]
    receiver += ["-frames:v", str(frames), "-f", "mpegts"]
    ready = {"ready": Ready(port=one.port), "service": False}
    before = {**common, "start": "0 s"}
    return [
        Program(
            name=f"{base}-sender",
            end="server",
            command=[*sender, "-f", muxer, target],
            **({**before, **ready} if over_tcp else common),
        ),
        Program(
            name=base,
            end="client",
            command=receiver,
            **(common if over_tcp else {**before, **ready}),
        ),
    ]


def _pair(
    one: Common, base: str, server: list[str], client: list[str], common: dict[str, Any]
) -> list[Program]:
    port = getattr(one, "port", None)
    waits = {**common, "start": "0 s"}
    return [
        Program(
            name=f"{base}-server", end="server", command=server, ready=Ready(port=port), **waits
        ),
        Program(name=base, end="client", command=client, **common),
    ]


def _bytes(amount: int | str) -> int:
    return amount if isinstance(amount, int) else length_bytes(amount)
