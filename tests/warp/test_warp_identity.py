# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The same seed gives the same run, bit by bit, and another seed another one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from warp.conftest import Warp

FILES = ("client.pcapng", "server.pcapng", "events.arrow", "input.arrow")


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]


@dataclass(frozen=True)
class Case:
    """A link, and how many bytes are fetched over it."""

    rate: str
    delay: str
    loss: str
    queue: str
    length: int


CASES = {
    "9.6k": Case("9.6 kbit/s", "100 ms", "2%", "20 packets", 30_000),
    "1M": Case("1 Mbit/s", "100 ms", "2%", "20 packets", 1_000_000),
    "100M": Case("100 Mbit/s", "10 ms", "0.1%", "200 packets", 5_000_000),
}


def transfer(warp: Warp, name: str, seed: int, case: Case) -> list[str]:
    """Fetch a file over a link that loses some packets; return the hashes of what was recorded."""
    out = warp.airpath.path(name)
    page = warp.airpath.file("page", "x" * case.length)
    # The server tells the client when the file was written.
    os.utime(page, (1_700_000_000, 1_700_000_000))
    warp.run(
        "--rate", case.rate, "--delay", case.delay, "--loss", case.loss, "--queue", case.queue,
        "--cc", "cubic", "--seed", seed, "--out", out, "--snaplen", "full",
        "--server", warp.airpath.server("http-server", 4, 8000, page.parent),
        "--", "curl", "-sS", "-o", "/dev/null", f"http://server:8000/{page.name}",
    ).check()  # fmt: skip
    return hashes(out)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_same_seed_gives_the_same_captures(warp: Warp, case: Case) -> None:
    first = transfer(warp, "first", 11, case)
    assert transfer(warp, "again", 11, case) == first
    other = transfer(warp, "other", 12, case)
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_folders_that_are_made_first_change_nothing(warp: Warp) -> None:
    warp.airpath.path("there").mkdir()
    case = replace(CASES["1M"], length=20_000)
    first = transfer(warp, "there/run", 11, case)
    assert transfer(warp, "not-there/run", 11, case) == first
