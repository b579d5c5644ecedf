# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Many pages on one run: each gets all of it, and its logs are read once for all of them."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from pyarrow import ipc

from airpath.arrow import read_arrow_log
from airpath.ui import follower, follows
from airpath.ui.feed import Feed
from airpath.ui.follower import Follower
from airpath.ui.follows import Follows
from ui.test_feed import merged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path

PARTS = 40


def run_apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run `work` in a thread of its own: a browser of other tests may hold a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, and take no run for killed."""
    monkeypatch.setattr(follower, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(follows, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(follower, "LOOKS_AFTER_END", 1_000_000)


@pytest.fixture
def events(download: Path) -> pl.DataFrame:
    """Return the events of a run."""
    return read_arrow_log(download / "events.arrow").frame


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of rows that go into curves, for all who follow."""
    numbers: list[int] = []
    add = Feed.add

    def counted(feed: Feed, rows: pl.DataFrame, *, last: bool = False) -> Any:
        numbers.append(rows.height)
        return add(feed, rows, last=last)

    monkeypatch.setattr(Feed, "add", counted)
    return numbers


class Log:
    """Log of an active run, which grows a part at a time."""

    def __init__(self, folder: Path, events: pl.DataFrame) -> None:
        """Write the stream's begin."""
        size = -(-events.height // PARTS)
        self.path = folder / "events.arrow"
        whole = folder / "whole.arrow"
        table = events.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
        with ipc.new_stream(whole, table.schema) as stream:
            stream.write_table(table, max_chunksize=size)
        self.rest = whole.read_bytes()
        self.size = -(-len(self.rest) // PARTS)
        self.grow()

    def grow(self) -> None:
        """Add a part."""
        with self.path.open("ab") as file:
            file.write(self.rest[: self.size])
        self.rest = self.rest[self.size :]


async def collected(lines: AsyncIterator[bytes], begun: asyncio.Event | None = None) -> list[Any]:
    """Return all lines of a page; say when the first is there."""
    found = []
    async for each in lines:
        found.append(json.loads(each))
        if begun:
            begun.set()
    return found


def check(lines: list[Any], events: pl.DataFrame) -> None:
    """Compare what a page got with the curves of the whole run."""
    whole = Feed().add(events, last=True)
    assert lines[-1] == {"ended": True, "killed": False}
    updates = [one for one in lines if "curves" in one]
    assert updates[-1]["counts"] == whole["counts"]
    assert updates[-1]["drops"] == whole["drops"]
    got, wanted = merged(updates), merged([whole])
    assert got.keys() == wanted.keys()
    for name, points in wanted.items():
        for place in (0, 1):
            values = [point[place] for point in points]
            assert [point[place] for point in got[name]] == pytest.approx(values), name
    marks = [mark for one in updates for mark in one["marks"]]
    assert marks == whole["marks"]


def test_ten_pages_cost_one_reading(events: pl.DataFrame, tmp_path: Path, added: list[int]) -> None:
    log = Log(tmp_path, events)

    async def all_pages() -> list[list[Any]]:
        shared = Follows()
        begun = [asyncio.Event() for _ in range(10)]
        pages = [
            asyncio.create_task(collected(shared.follow(tmp_path, None), one)) for one in begun
        ]
        for one in begun:
            await one.wait()
        while log.rest:
            log.grow()
            await asyncio.sleep(0.02)
        return await asyncio.gather(*pages)

    found = run_apart(all_pages())
    # Each reads the first part by itself.
    assert events.height <= sum(added) < 2 * events.height
    for lines in found:
        check(lines, events)


def test_a_page_that_comes_late_reads_the_begin_and_joins(
    events: pl.DataFrame, tmp_path: Path, added: list[int]
) -> None:
    log = Log(tmp_path, events)
    later: list[int] = []

    async def both() -> list[list[Any]]:
        shared = Follows()
        extra = {"drive": {"at": 1}}
        pages = [asyncio.create_task(collected(shared.follow(tmp_path, None, lambda: extra)))]
        while log.rest:
            log.grow()
            if len(log.rest) < 20 * log.size and len(pages) == 1:
                begun = asyncio.Event()
                late = collected(shared.follow(tmp_path, None, lambda: extra), begun)
                pages.append(asyncio.create_task(late))
                await begun.wait()
                while sum(added) not in later:
                    later.append(sum(added))
                    await asyncio.sleep(0.5)
            await asyncio.sleep(0.02)
        return await asyncio.gather(*pages)

    found = run_apart(both())
    # Each reads the first half by itself, and one of them the other.
    assert 0.25 * events.height < sum(added) - later[-1] < 0.75 * events.height
    for lines in found:
        check(lines, events)
        assert [one["drive"] for one in lines if "drive" in one] == [{"at": 1}]


def test_a_page_that_cannot_keep_up_goes_on_by_itself_and_loses_nothing(
    events: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follows, "MOST_WAITING_BYTES", 2_000)
    forks: list[Follower] = []
    fork = Follower.fork

    def counted(one: Follower) -> Follower:
        forks.append(fork(one))
        return forks[-1]

    monkeypatch.setattr(Follower, "fork", counted)
    log = Log(tmp_path, events)

    async def both() -> list[list[Any]]:
        shared = Follows()
        begun = asyncio.Event()
        quick = asyncio.create_task(collected(shared.follow(tmp_path, None), begun))
        await begun.wait()
        slow = shared.follow(tmp_path, None)
        taken = [json.loads(await anext(slow))]
        next_of_group = asyncio.ensure_future(anext(slow))
        while not next_of_group.done() and log.rest:
            log.grow()
            await asyncio.sleep(0.02)
        taken.append(json.loads(await next_of_group))
        while log.rest:
            log.grow()
            await asyncio.sleep(0.02)
        return [await quick, [*taken, *await collected(slow)]]

    for lines in run_apart(both()):
        check(lines, events)
    assert forks


def test_the_last_page_that_leaves_ends_the_reading(events: pl.DataFrame, tmp_path: Path) -> None:
    log = Log(tmp_path, events)

    async def left() -> int:
        shared = Follows()
        begun = asyncio.Event()
        pages = [asyncio.create_task(collected(shared.follow(tmp_path, None), begun)) for _ in "ab"]
        await begun.wait()
        log.grow()
        await asyncio.sleep(0.2)
        others = asyncio.all_tasks() - {asyncio.current_task(), *pages}
        assert len(others) == 1
        for page in pages:
            page.cancel()
        await asyncio.wait({*pages, *others}, timeout=60)
        return len(asyncio.all_tasks())

    assert run_apart(left()) == 1


def test_a_damaged_log_is_named_to_all(events: pl.DataFrame, tmp_path: Path) -> None:
    log = Log(tmp_path, events)

    async def told() -> list[list[Any]]:
        shared = Follows()
        begun = [asyncio.Event() for _ in "ab"]
        pages = [
            asyncio.create_task(collected(shared.follow(tmp_path, None), one)) for one in begun
        ]
        for one in begun:
            await one.wait()
        await asyncio.sleep(0.2)
        with log.path.open("ab") as file:
            file.write(b"no message" * 200_000)
        return await asyncio.gather(*pages)

    for lines in run_apart(told()):
        assert "error" in lines[-1]
