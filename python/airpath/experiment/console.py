# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The two ends of a network that stands for its user; run as a script by the engine at each end.

The client's end reads lines: commands for either end, until an empty line ends it. What is for the
server's end is handed over through files in a folder that both see.

usage: console.py client|server FOLDER
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

POLL_S = 0.05

HELP = """\
  COMMAND          runs at the client's end
  server COMMAND   runs at the server's end
  COMMAND &        goes on beside the next ones
  start NAME       starts a program of the workload, at its end, beside the next ones
  shell            your shell at the client's end; exit leads back
  an empty line    ends the run"""


class End:
    """Runs commands at one end."""

    def __init__(self) -> None:
        """Begin without any."""
        self.beside: list[subprocess.Popen[bytes]] = []

    def run(self, command: Any, environment: dict[str, str], beside: bool) -> int:
        """Run a command; return its status, or 0 for one that goes on beside."""
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else command
        environment = {**os.environ, **environment}
        try:
            if beside:
                self.beside.append(
                    subprocess.Popen(
                        words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
                    )
                )
                return 0
            return subprocess.run(words, env=environment, check=False).returncode
        except OSError as error:
            print(f"{words[0]}: {error.strerror}", file=sys.stderr)
            return 127

    def end(self) -> None:
        """Stop what goes on beside."""
        for process in self.beside:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.beside:
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def at_server(folder: Path) -> int:
    """Carry out what the client's end hands over, until it says that this is the end."""
    # The engine starts the client's end once something listens here.
    listener = socket.socket()
    listener.bind(("0.0.0.0", 0))
    listener.listen()
    end, number = End(), 1
    while not (folder / "end").exists():
        order = folder / f"order-{number}"
        if not order.exists():
            time.sleep(POLL_S)
            continue
        listener.close()
        asked = json.loads(order.read_text())
        status = end.run(asked["command"], asked["environment"], asked["beside"])
        _write(folder / f"status-{number}", status)
        number += 1
    end.end()
    return 0


def at_client(folder: Path) -> int:
    """Read lines and carry them out."""
    programs = {p["name"]: p for p in json.loads((folder / "programs.json").read_text())}
    print(HELP)
    for program in programs.values():
        words = program["command"]
        shown = words if isinstance(words, str) else " ".join(words)
        print(f"  {program['name']} ({program['end']}): {shown}")
    end, orders = End(), 0
    signal.signal(signal.SIGINT, lambda *_: None)  # ends the command, not the run
    while True:
        print("airpath> ", end="", flush=True)
        line = sys.stdin.readline().strip()
        if not line:
            break
        command: Any = line
        environment: dict[str, str] = {}
        word, _, rest = line.partition(" ")
        side, beside = "client", line.endswith("&")
        if beside:
            command = line.rstrip("& ")
        if word == "start":
            program = programs.get(rest.strip())
            if program is None:
                print(f"there is no program `{rest.strip()}`; there are: {', '.join(programs)}")
                continue
            command, environment = program["command"], program["environment"]
            side, beside = program["end"], True
        elif word == "server":
            side, command = "server", str(command)[len("server ") :]
        elif line == "shell":
            command = [os.environ.get("SHELL", "/bin/sh")]
        if side == "client":
            status = end.run(command, environment, beside)
        else:
            orders += 1
            order = {"command": command, "environment": environment, "beside": beside}
            _write(folder / f"order-{orders}", order)
            answer = folder / f"status-{orders}"
            while not answer.exists():
                time.sleep(POLL_S)
            status = int(answer.read_text())
        if status:
            print(f"exit status {status}")
    end.end()
    _write(folder / "end", 0)
    return 0


def _write(path: Path, content: Any) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(content))
    fresh.rename(path)


if __name__ == "__main__":
    sys.exit((at_client if sys.argv[1] == "client" else at_server)(Path(sys.argv[2])))
