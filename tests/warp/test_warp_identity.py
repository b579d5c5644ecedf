"""The same seed gives the same run, bit by bit, and another seed another one."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from warp.conftest import Warp

FILES = ("client.pcapng", "server.pcapng", "events.arrow", "input.arrow")


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]


def transfer(warp: Warp, name: str, seed: int, rate: str, length: int) -> list[str]:
    """Fetch `length` bytes over a link that loses some packets; return the hashes of the files."""
    out = warp.airpath.path(name)
    page = warp.airpath.file("page", "x" * length)
    # The server tells the client when the file was written.
    os.utime(page, (1_700_000_000, 1_700_000_000))
    warp.run(
        "--rate", rate, "--delay", "100 ms", "--loss", "2%", "--queue", "20 packets",
        "--cc", "cubic", "--seed", seed, "--out", out, "--snaplen", "full",
        "--server", warp.airpath.server("http-server", 4, 8000, page.parent),
        "--", "curl", "-sS", "-o", "/dev/null", f"http://server:8000/{page.name}",
    ).check()  # fmt: skip
    return hashes(out)


@pytest.mark.parametrize(
    ("rate", "length"), [("9.6 kbit/s", 30_000), ("1 Mbit/s", 1_000_000)], ids=["9.6k", "1M"]
)
def test_the_same_seed_gives_the_same_captures(warp: Warp, rate: str, length: int) -> None:
    first = transfer(warp, "first", 11, rate, length)
    assert transfer(warp, "again", 11, rate, length) == first
    other = transfer(warp, "other", 12, rate, length)
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_folders_that_are_made_first_change_nothing(warp: Warp) -> None:
    warp.airpath.path("there").mkdir()
    first = transfer(warp, "there/run", 11, "1 Mbit/s", 20_000)
    assert transfer(warp, "not-there/run", 11, "1 Mbit/s", 20_000) == first
