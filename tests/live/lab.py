# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Three hosts in network namespaces, the far ones with an sshd and a clock of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from live.harness import NOBODY, User, await_true, users

FAR = "10.99.0.2"
FARTHER = "10.99.1.2"
"""The third host, with a cable to each of the others."""
BETWEEN = ("10.99.2.2", "10.99.2.3")
"""Addresses of the second and of the third host on the cable between them."""
SSHD = "/usr/sbin/sshd"
UPTIME_AHEAD_S = 1000
"""The far host was started so much earlier than the near one, and the third one twice as much."""


def missing() -> str:
    """Say what the hosts need and this machine lacks; nothing if they can be had."""
    if os.geteuid() != 0:
        return "namespaces for several hosts need root"
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
    farther: subprocess.Popen[str]
    farther_pid: int

    @property
    def user(self) -> User:
        """Root at the near host."""
        return User("root-near", ("nsenter", "-t", str(self.near.pid), "-n"))

    def options(self, keys: Path | None = None, port: int = 2222) -> list[str]:
        """Return the options of ssh that reach a far host and know nothing of the user's own."""
        return [
            *("-F", "/dev/null", "-i", str((keys or self.folder) / "id"), "-p", str(port)),
            *("-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"),
        ]

    def serve_nobody(self, home: Path) -> tuple[User, list[str], subprocess.Popen[bytes]]:
        """Start an sshd at the far host that belongs to nobody, whose home is `home`.

        Return nobody at the near host, the options of ssh, and the process.
        """
        make_keys(home)
        entries = {
            "passwd": f"nobody:*:{NOBODY}:{NOBODY}:nobody:{home}:/bin/sh\n",
            "shadow": "nobody:*:20000:0:99999:7:::\n",
        }
        at_far = ("nsenter", "-t", str(self.far_pid), "-n", "-m")
        for name, own in entries.items():
            lines = Path("/etc", name).read_text().splitlines(keepends=True)
            kept = [line for line in lines if not line.startswith("nobody:")]
            (home / name).write_text("".join([*kept, own]))
            subprocess.run(
                [*at_far, "mount", "--bind", home / name, Path("/etc", name)], check=True
            )
        config = sshd_config(home, "nobody", FAR, 2223)
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", home], check=True)
        drop = users()[1].prefix
        sshd = subprocess.Popen([*at_far, *drop, SSHD, "-D", "-f", config, "-E", home / "log"])
        return User("nobody-near", (*self.user.prefix, *drop)), self.options(home, 2223), sshd

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

    def engines(self, beside: int | None = None) -> list[int]:
        """Return the processes of far engines, the oldest first; with `beside`, of its host."""
        found = []
        network = Path(f"/proc/{beside}/ns/net").stat().st_ino if beside else None
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                mark = str(self.folder).encode() in (path / "environ").read_bytes()
                is_there = network in (None, (path / "ns/net").stat().st_ino)
            except OSError:
                continue
            if mark and is_there and b"remote-hop" in words:
                found.append(int(path.name))
        return sorted(found)

    def runner(self, beside: int | None = None) -> int:
        """Return the process that runs a far engine: the first one of its process namespace."""
        for pid in self.engines(beside):
            status = Path(f"/proc/{pid}/status").read_text()
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
            if numbers.split()[2:] == ["1"]:
                return pid
        msg = "no far engine runs"
        raise AssertionError(msg)

    def close(self) -> None:
        """End all hosts."""
        for process in (self.farther, self.far, self.near):
            process.send_signal(signal.SIGKILL)
            process.wait()
        # sshd is a child of the process that made its clock.
        for pid in (self.far_pid, self.farther_pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await_true(lambda: not self.engines())


def make_keys(folder: Path) -> None:
    """Make a key of a user and one of a host, and let the user in."""
    for key in ("id", "hostkey"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True
        )
    shutil.copy(folder / "id.pub", folder / "authorized_keys")


def sshd_config(folder: Path, name: str, address: str, port: int) -> Path:
    """Write the configuration of an sshd with the keys in `folder`."""
    settings = {
        "Port": port,
        "ListenAddress": address,
        "HostKey": folder / "hostkey",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "PidFile": folder / f"sshd-{name}.pid",
        "LogLevel": "ERROR",
        "SetEnv": f"XDG_CACHE_HOME={folder}/cache AIRPATH_LAB={folder}",
    }
    config = folder / f"sshd_config-{name}"
    config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return config


def far_host(
    folder: Path, name: str, address: str, ahead_s: int
) -> tuple[subprocess.Popen[str], int]:
    """Start a far host, whose sshd listens once an interface called `name` is there."""
    config = sshd_config(folder, name, address, 2222)
    line = (
        "mount -t tmpfs none /run && mkdir /run/sshd && ip link set lo up && "
        f"echo $$ > {folder}/{name} && until ip addr add {address}/24 dev {name}; do sleep 0.02; "
        f"done 2>/dev/null && ip link set {name} up && exec {SSHD} -D -f {config} -E {folder}/log"
    )
    clock = ("--time", "--monotonic", str(ahead_s), "--boottime", str(ahead_s))
    process = subprocess.Popen(
        ["unshare", *clock, "--fork", "--kill-child", "unshare", "-n", "-m", "sh", "-c", line],
        text=True,
    )
    pid = folder / name
    await_true(lambda: pid.exists() and pid.read_text().strip() != "")
    return process, int(pid.read_text())


def build(folder: Path) -> Lab:
    """Set the hosts up."""
    folder.mkdir()
    folder.chmod(0o755)
    make_keys(folder)
    near = subprocess.Popen(["unshare", "-n", "sleep", "600"], text=True)
    far, far_pid = far_host(folder, "far", FAR, UPTIME_AHEAD_S)
    farther, farther_pid = far_host(folder, "farther", FARTHER, 2 * UPTIME_AHEAD_S)
    lab = Lab(folder, near, far, far_pid, farther, farther_pid)
    wires = (
        "ip link set lo up && "
        f"ip link add near type veth peer name far netns {far_pid} && "
        "ip addr add 10.99.0.1/24 dev near && ip link set near up && "
        f"ip link add near2 type veth peer name farther netns {farther_pid} && "
        "ip addr add 10.99.1.1/24 dev near2 && ip link set near2 up"
    )
    subprocess.run([*lab.user.prefix, "sh", "-c", wires], check=True)
    between = (
        f"ip link add on type veth peer name back netns {farther_pid} && "
        f"ip addr add {BETWEEN[0]}/24 dev on && ip link set on up && "
        f"nsenter -t {farther_pid} -n ip addr add {BETWEEN[1]}/24 dev back && "
        f"nsenter -t {farther_pid} -n ip link set back up"
    )
    subprocess.run(["nsenter", "-t", str(far_pid), "-n", "sh", "-c", between], check=True)
    end = time.monotonic() + 20
    for address in (FAR, FARTHER):
        answers = [*lab.user.prefix, "ssh", *lab.options(), "-oLogLevel=ERROR", f"root@{address}"]
        while subprocess.run([*answers, "true"], check=False).returncode != 0:
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
    return lab
