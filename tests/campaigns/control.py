# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Mutated requests at the control socket of a run that goes on.

Usage: python -m campaigns.control [OPTIONS] in the folder `tests`; see --help. Every line is
answered by one line within a bound, the run goes on, and a replay of what it recorded gives the
same trace.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from campaigns.common import ROOT, Campaign, drawn_seed
from campaigns.kills import end, engine
from live import harness
from live.harness import Airpath, await_true

CORPUS = ROOT / "fuzz" / "corpus" / "control"
SCENARIO = ROOT / "fuzz" / "control-link.toml"
SLOWEST_S = 10.0
"""For an answer that takes microseconds on a quiet machine."""

TRAFFIC = """\
import os, socket, sys, time
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while not os.path.exists(sys.argv[1]):
    try:
        box.sendto(bytes(300), ("server", 9))
    except OSError:
        pass
    time.sleep(0.01)
"""

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 0.5, 1e308, 2**63, 2**64, "", "0", "-1 ms", "1 ns", "1e30 bit/s", "none",
    "1 Gbit/s", "64 kbit/s", "0 bit/s", "100%", "101%", "²", "\0", "x" * 5_000, [], {}, [[[]]],
    {"type": "tail_drop"}, {"type": "codel"}, {"type": "mahimahi", "file": "/dev/zero"},
    {"type": "trace", "file": "."}, "drop", "store", "3 packets", "9 kB", {"type": "nothing"},
)  # fmt: skip

GOOD: dict[str, tuple[Any, ...]] = {
    "rate": ("64 kbit/s", "1 Mbit/s", "10 Mbit/s", "none"),
    "propagation": ("0 ms", "5 ms", "80 ms", {"type": "uniform", "from": "1 ms", "to": "9 ms"}),
    "queue": ({"type": "head_drop", "limit": "9 packets"}, {"type": "codel"}),
    "queue.limit": ("1 packets", "64 kB", "50 packets"),
    "errors": ({"type": "bernoulli", "per": "packet", "probability": 0.3, "effect": "drop"},),
    "errors.probability": (0, 0.5, "1%"),
    "errors.effect": ("drop", "corrupt"),
    "fragmentation": ("none", {"frame_payload": "100 bytes"}),
    "fragmentation.frame_payload": ("20 bytes", "1000 bytes"),
    "send_buffer": ("1 packets", "4 packets"),
    "blackout": ("drop", "store", "none"),
    "allocation_delay": ("0 ms", "7 ms"),
    "overhead": ("0 bytes", "28 bytes"),
    "reorder": ("none", {"probability": 0.4, "delay": "5 ms"}),
    "duplicate": ("none", {"probability": 0.5}),
}  # fmt: skip
"""Values that fit, so that most requests are wrong in one place only."""

HOPS = ("radio",) * 8 + ("core",) * 4 + ("air",)
SIDES = ("link", "uplink", "downlink")
PARAMETERS = (
    "rate", "propagation", "queue", "queue.limit", "queue.type", "errors", "errors.probability",
    "errors.effect", "fragmentation", "fragmentation.frame_payload", "send_buffer", "blackout",
    "receive_buffer", "allocation_delay", "overhead", "reorder", "duplicate", "nonsense",
)  # fmt: skip


def request(generator: random.Random, lines: list[str]) -> str:
    """Return a request that is nearly right, on one line."""
    line = generator.choice(lines)
    document = json.loads(line)
    way = generator.randrange(6)
    if way == 0:
        text = bytearray(line.encode())
        for _ in range(generator.choice((1, 2, 8))):
            at = generator.randrange(len(text))
            text[at : at + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
        return text.decode(errors="replace").replace("\n", " ").replace("\r", " ")
    if way == 1:
        document[generator.choice((*document, "extra"))] = generator.choice(ODD)
    elif way == 2:
        document.pop(generator.choice(tuple(document)))
    else:
        names = [
            f"{generator.choice(HOPS)}.{generator.choice(SIDES)}.{generator.choice(PARAMETERS)}"
            for _ in range(generator.choice((1, 1, 2, 5)))
        ]
        odd = generator.random() < 0.4
        values = {
            name: generator.choice(ODD if odd else GOOD.get(name.split(".", 2)[2], ODD))
            for name in names
        }
        document = {"version": 1, "command": "set", "parameters": values}
    return json.dumps(document)


def run(seed: int, messages: int, *, port: str = "packet") -> tuple[Campaign, str]:
    """Send so many requests to one run."""
    campaign = Campaign("control", seed)
    folder = Path(tempfile.mkdtemp(prefix="airpath-live-", dir="/tmp"))
    folder.chmod(0o755)
    airpath = Airpath(engine(), folder, harness.python_for_everybody())
    airpath.folder("tmp")
    try:
        return campaign, _fuzz(campaign, airpath, messages, port)
    finally:
        end(airpath)
        shutil.rmtree(folder, ignore_errors=True)


def _fuzz(campaign: Campaign, airpath: Airpath, messages: int, port: str) -> str:
    out, stop = airpath.path("out"), airpath.path("stop")
    process = airpath.start(
        "exec", "--port", port, "--scenario", SCENARIO, "--seed", campaign.seed, "--out", out,
        "--log", "events", "--tcp-state", "off", "--", airpath.python, "-c", TRAFFIC, stop,
        stdout=subprocess.DEVNULL, environment={"XDG_RUNTIME_DIR": ""},
    )  # fmt: skip
    place = airpath.temporary / f"airpath-{os.geteuid()}" / "1.sock"
    accepted, slowest = 0, 0.0
    try:
        await_true(lambda: place.exists() or process.poll() is not None, "there is no socket")
        generator = random.Random(campaign.seed)
        lines = [
            line for path in sorted(CORPUS.iterdir()) for line in path.read_text().splitlines()
        ]
        connection = _connect(place)
        for number in range(messages):
            line = request(generator, lines)
            begun = time.monotonic()
            answer = _ask(connection, line)
            slowest = max(slowest, time.monotonic() - begun)
            campaign.tried += 1
            if answer is None:
                campaign.failed(f"no answer to request {number}", line.encode(), str(number))
                if process.poll() is not None:
                    break
                connection = _connect(place)
                continue
            accepted += answer.get("ok") is True
            if "ok" not in answer or (not answer["ok"] and not answer["error"]["message"]):
                campaign.failed(f"a strange answer: {answer}", line.encode(), str(number))
        if slowest > SLOWEST_S:
            campaign.failed(f"an answer took {slowest:.1f} s")
    finally:
        stop.write_text("")
    try:
        said = process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        campaign.failed("the run does not end")
        end(airpath)
        said = process.communicate()[1]
    if process.returncode != 0 or "panicked" in said:
        campaign.failed(f"exit status {process.returncode}: {said[-1500:]}")
    replayed = subprocess.run(
        [str(airpath.command), "replay", str(out)], capture_output=True, text=True, check=False
    )
    if replayed.returncode != 0:
        campaign.failed(f"replay: status {replayed.returncode}: {replayed.stdout}{replayed.stderr}")
    return f", {accepted} accepted, slowest answer {slowest * 1e3:.1f} ms"


def _connect(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(SLOWEST_S + 5)
    # A path to a socket has 107 bytes at most.
    connection.connect(str(place))
    return connection


def _ask(connection: socket.socket, line: str) -> dict[str, Any] | None:
    answer = b""
    with contextlib.suppress(OSError):
        connection.sendall(line.encode(errors="replace") + b"\n")
        while not answer.endswith(b"\n"):
            chunk = connection.recv(65536)
            if not chunk:
                return None
            answer += chunk
        read = json.loads(answer)
        return read if isinstance(read, dict) else {}
    return None


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Mutated requests at a run's control socket.")
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--seed", type=int, help="drawn and printed if not given")
    parser.add_argument("--port", choices=("packet", "tun"), default="packet")
    options = parser.parse_args()
    seed = drawn_seed() if options.seed is None else options.seed
    print(f"control: seed {seed}", flush=True)
    campaign, more = run(seed, options.messages, port=options.port)
    return campaign.tell(more)


if __name__ == "__main__":
    sys.exit(main())
