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
from airpath.experiment.quantities import length_bytes, time_ns

if TYPE_CHECKING:
    from airpath.experiment.model import Common, Workload

HERE = Path(__file__).parent

PACKAGES = {"iperf3": "iperf3", "curl": "curl", "ping": "iputils-ping", "ffmpeg": "ffmpeg"}
"""Debian packages of the programs that templates run."""


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
            remedy = (
                f"install it (Debian: apt-get install {PACKAGES[name]})"
                if name in PACKAGES
                else "install it, or name the file by its full path"
            )
            missing.append(f"program `{program.name}` needs `{name}`, which is not there: {remedy}")
    return missing


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
        server = ["iperf3", "-s", "-1", "-p", str(one.port)]
        return _pair(one, base, server, client, common)
    if isinstance(one, Send | Interactive):
        engine = find_engine()
        server = [engine, "recv", "--once", "--port", str(one.port)]
        client = [engine, "send", "server", "--port", str(one.port), "--json"]
        if isinstance(one, Interactive):
            client += ["--request", str(one.request), "--response", str(one.response)]
            client += ["--count", str(one.count), "--nodelay"]
        else:
            client += ["--bytes", str(_bytes(one.bytes))] if one.bytes is not None else []
            client += ["--time", one.time] if one.time else []
            client += ["--reverse"] if one.sender == "server" else []
            client += ["--parallel", str(one.parallel)] if one.parallel > 1 else []
            client += ["--cc", one.congestion_control] if one.congestion_control else []
            client += ["--udp", "--rate", one.udp_rate] if one.udp_rate else []
            client += ["--length", str(one.length)] if one.length else []
        return _pair(one, base, server, client, common)
    if isinstance(one, Curl):
        server = [sys.executable, "-I", "-S", str(HERE / "web.py"), str(one.port)]
        server += [str(_bytes(one.size)), str(_bytes(one.part_size))]
        fetch = "curl -sS --fail -o /dev/null -w '%{json}\\n'"
        script = f"{fetch} http://server:{one.port}/page"
        if one.parts:
            script += (
                f" && {fetch} --parallel --parallel-immediate --parallel-max {one.connections}"
                f" 'http://server:{one.port}/part-[1-{one.parts}]'"
            )
        return _pair(one, base, server, ["/bin/sh", "-c", script], common)
    if isinstance(one, Ping):
        interval = f"{time_ns(one.interval) / 1e9:g}"
        words = ["ping", "-n", "-c", str(one.count), "-i", interval, "-s", str(one.size), "server"]
        return [Program(name=base, end="client", command=words, **common)]
    assert isinstance(one, Ffmpeg)
    seconds = f"{time_ns(one.time) / 1e9:g}"
    source = f"testsrc=size={one.picture}:rate={one.frames_per_second}"
    stream = f"udp://client:{one.port}?pkt_size=1316"
    sender = ["ffmpeg", "-nostdin", "-re", "-f", "lavfi", "-i", source, "-t", seconds]
    sender += ["-b:v", one.bitrate, "-f", "mpegts", stream]
    receiver = ["ffmpeg", "-nostdin", "-y", "-i", f"udp://0.0.0.0:{one.port}"]
    receiver += ["-c", "copy", "-f", "mpegts", "received.ts"]
    return [
        Program(
            name=f"{base}-receiver",
            end="client",
            command=receiver,
            ready=Ready(port=one.port),
            **{**common, "start": "0 s"},
        ),
        Program(name=base, end="server", command=sender, **common),
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
