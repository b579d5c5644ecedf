# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Try the ways out of a run, as a command at one of its ends; print what worked, one word a line.

Run by `test_confine.py` with the number of the host's network namespace.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

PTRACE_ATTACH = 16
PTRACE_DETACH = 17
CLONE_NEWNET = 0x40000000
MS_BIND = 4096
DESCRIPTORS_OF_A_PROGRAM = 3

libc = ctypes.CDLL(None, use_errno=True)


def checked(status: int) -> None:
    """Raise what the C library's last call failed with."""
    if status != 0:
        raise OSError(ctypes.get_errno(), "refused")


def enter_network_of_engine() -> None:
    """Enter the namespace of PID 1, which is the host's."""
    descriptor = os.open("/proc/1/ns/net", os.O_RDONLY)
    checked(libc.setns(descriptor, CLONE_NEWNET))


def trace_engine() -> None:
    """Attach to PID 1 as a debugger does."""
    checked(libc.ptrace(PTRACE_ATTACH, 1, None, None))
    os.waitpid(1, 0x40000000)
    libc.ptrace(PTRACE_DETACH, 1, None, None)


def read_engine() -> None:
    """Look into the memory and at the open files of PID 1."""
    list(Path("/proc/1/fd").iterdir())
    Path("/proc/1/mem").open("rb").close()


def mount_over_host() -> None:
    """Mount something where the host's programs would see it."""
    if libc.mount(b"/tmp", b"/mnt", None, MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "refused")
    libc.umount(b"/mnt")


def write(path: str) -> Callable[[], None]:
    """Return an attempt to write what a file of the kernel's holds already."""

    def attempt() -> None:
        content = Path(path).read_bytes()
        Path(path).write_bytes(content)

    return attempt


def kill_engine() -> None:
    """Send PID 1 what nothing can catch; who survives to tell has failed."""
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGSTOP)
    raise PermissionError


def leaked_descriptor() -> None:
    """Look for descriptors beside those that every program has."""
    numbers = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    open_ones = [number for number in numbers if number >= DESCRIPTORS_OF_A_PROGRAM]
    # One of them reads the list.
    if len(open_ones) <= 1:
        raise PermissionError


def see_parents() -> None:
    """Look for a process in the host's network: the engine is one, its parents are more."""
    host = sys.argv[1]
    for process in Path("/proc").iterdir():
        try:
            network = (process / "ns/net").readlink()
        except OSError:
            continue
        # The program itself and those beside it are in namespaces of the run.
        if process.name.isdigit() and str(network) == host:
            return
    raise PermissionError


def set_clock() -> None:
    """Ask whether the clock may be set, by an adjustment that changes nothing."""
    adjustment = (ctypes.c_long * 64)()
    # ADJ_OFFSET_SINGLESHOT with the offset 0 needs the right to set the clock.
    adjustment[0] = 0x8001
    if libc.adjtimex(ctypes.byref(adjustment)) < 0:
        raise OSError(ctypes.get_errno(), "refused")


ATTEMPTS: dict[str, Callable[[], None]] = {
    "network": enter_network_of_engine,
    "trace": trace_engine,
    "memory": read_engine,
    "mount": mount_over_host,
    "sysctl": write("/proc/sys/kernel/panic"),
    "core": write("/proc/sys/kernel/core_pattern"),
    "sys": write("/sys/kernel/uevent_seqnum"),
    "clock": set_clock,
    "kill": kill_engine,
    "descriptors": leaked_descriptor,
    "parents": see_parents,
}


for name, attempt in ATTEMPTS.items():
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 0:
        print(name, flush=True)
