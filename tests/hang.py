# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""No test hangs: one that takes too long ends, says where it was, and what its programs were at."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

LIMIT_S = 420
"""Far beyond what any test takes on a slow machine with every processor busy."""
GRACE_S = 120
"""Time for a test to clean up after the signal, before this process gives up, with its stacks."""


class Hung(BaseException):
    """A test took too long. No test catches this."""


def state(pid: int) -> str:
    """Return what a process is at: its command, its state, and where in the kernel it waits."""
    folder = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        letter = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        return f"{pid} {letter} {(folder / 'wchan').read_text()} {words[:150]}"
    return f"{pid} gone"


@contextlib.contextmanager
def limit(item: pytest.Item, seconds: float) -> Iterator[None]:
    """Raise [`Hung`] in whatever is done here once it has taken so long."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback_later(GRACE_S, exit=True)
        command = getattr(item, "funcargs", {}).get("airpath")
        pids = command.processes() if command is not None else []
        lines = "\n".join(state(pid) for pid in pids) or "none that is known"
        raise Hung(f"{item.nodeid} was not over after {seconds:.0f} s; its processes:\n{lines}")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Limit how long a test may take; what hangs fails, and those after it run."""
    try:
        with limit(item, LIMIT_S):
            return (yield)
    except Hung as hung:
        pytest.fail(str(hung))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Forget the last resort: the test has cleaned up."""
    faulthandler.cancel_dump_traceback_later()
