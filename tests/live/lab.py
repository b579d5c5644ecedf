# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Two hosts in network namespaces of their own, the far one with an sshd and a clock of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from live.harness import User, await_true

FAR = "10.99.0.2"
SSHD = "/usr/sbin/sshd"
UPTIME_AHEAD_S = 1000
"""The far host was started so much earlier."""


def missing() -> str:
    """Say what the two hosts need and this machine lacks; nothing if they can be had."""
    if os.geteuid() != 0:
        return "namespaces for two hosts need root"
    tools = [
        tool for tool in (SSHD, "ssh", "ssh-keygen", "nsenter", "ip") if not shutil.which(tool)
    ]
    if tools:
        return f"missing: {', '.join(tools)}"
    probe = ["unshare", "--time", "--monotonic", "1", "--fork", "unshare", "-n", "-m", "true"]
    refused = subprocess.run(probe, capture_output=True, check=False).returncode != 0
    return "namespaces of network, mounts and time are refused" if refused else ""


@dataclass
class Lab:
    """The hosts, and how the near one reaches the far one."""

    folder: Path
    near: subprocess.Popen[str]
    far: subprocess.Popen[str]
    far_pid: int

    @property
    def user(self) -> User:
        """Root at the near host."""
        return User("root-near", ("nsenter", "-t", str(self.near.pid), "-n"))

    def options(self) -> list[str]:
        """Return the options of ssh that reach the far host and know nothing of the user's own."""
        return [
            *("-F", "/dev/null", "-i", str(self.folder / "id"), "-p", "2222"),
            *("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"),
        ]

    def at_far(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the far host's network."""
        prefix = ("nsenter", "-t", str(self.far_pid), "-n", "-p")
        return subprocess.run([*prefix[:4], *words], text=True, capture_output=True, check=True)

    def cut(self) -> None:
        """Cut the network between the hosts."""
        self.at_far("ip", "link", "set", "far", "down")

    def cache(self) -> Path:
        """Return the folder in which far engines keep what they record."""
        return self.folder / "cache/airpath/hosts"

    def engines(self) -> list[int]:
        """Return the processes of far engines, the oldest first."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                mark = str(self.folder).encode() in (path / "environ").read_bytes()
            except OSError:
                continue
            if mark and b"remote-hop" in words:
                found.append(int(path.name))
        return sorted(found)

    def close(self) -> None:
        """End both hosts."""
        for process in (self.far, self.near):
            process.send_signal(signal.SIGKILL)
            process.wait()
        # sshd is a child of the process that made its clock.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.far_pid, signal.SIGKILL)
        await_true(lambda: not self.engines())


def build(folder: Path) -> Lab:
    """Set the two hosts up."""
    folder.mkdir()
    folder.chmod(0o755)
    for key in ("id", "hostkey"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True
        )
    shutil.copy(folder / "id.pub", folder / "authorized_keys")
    settings = {
        "Port": 2222,
        "ListenAddress": FAR,
        "HostKey": folder / "hostkey",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "PidFile": folder / "sshd.pid",
        "LogLevel": "ERROR",
        "SetEnv": f"XDG_CACHE_HOME={folder}/cache AIRPATH_LAB={folder}",
    }
    config = folder / "sshd_config"
    config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    near = subprocess.Popen(["unshare", "-n", "sleep", "600"], text=True)
    line = (
        "mount -t tmpfs none /run && mkdir /run/sshd && ip link set lo up && "
        f"echo $$ > {folder}/far && until ip addr add {FAR}/24 dev far; do sleep 0.02; done "
        f"2>/dev/null && ip link set far up && exec {SSHD} -D -f {config} -E {folder}/log"
    )
    clock = ("--time", "--monotonic", str(UPTIME_AHEAD_S), "--boottime", str(UPTIME_AHEAD_S))
    far = subprocess.Popen(
        ["unshare", *clock, "--fork", "--kill-child", "unshare", "-n", "-m", "sh", "-c", line],
        text=True,
    )
    pid = folder / "far"
    await_true(lambda: pid.exists() and pid.read_text().strip() != "")
    lab = Lab(folder, near, far, int(pid.read_text()))
    wires = (
        "ip link set lo up && "
        f"ip link add near type veth peer name far netns {lab.far_pid} && "
        "ip addr add 10.99.0.1/24 dev near && ip link set near up"
    )
    subprocess.run([*lab.user.prefix, "sh", "-c", wires], check=True)
    answers = [*lab.user.prefix, "ssh", *lab.options(), "-oLogLevel=ERROR", f"root@{FAR}", "true"]
    end = time.monotonic() + 20
    while subprocess.run(answers, check=False).returncode != 0:
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.05)
    return lab
