# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading of Arrow logs, whole and torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest

from airpath.arrow import ArrowLogError, read_arrow_log
from synthetic import event, write_events

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    event(number * 1000, kind, pdu=number, cause="channel_error" if number % 7 == 0 else "")
    for number, kind in enumerate(["offered", "enqueued", "dequeued", "delivered"] * 250)
]
BATCH = 100


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("key", [pa.uint8(), pa.uint16(), pa.int16(), pa.int32()], ids=str)
def test_both_formats_and_all_dictionary_keys_give_the_same_rows(
    tmp_path: Path, stream: bool, key: pa.DataType
) -> None:
    path = tmp_path / "events.arrow"
    write_events(path, ROWS, stream=stream, key=key, batch=BATCH)
    log = read_arrow_log(path)
    assert log.torn_bytes == 0
    assert log.clean_end
    assert log.frame["time_ns"].to_list() == [row["time_ns"] for row in ROWS]
    for column in ("kind", "cause"):
        assert log.frame[column].cast(pl.String).to_list() == [row[column] for row in ROWS]
    assert log.frame["emitted_ns"].null_count() == len(ROWS)


def test_a_stream_cut_anywhere_keeps_its_complete_batches(tmp_path: Path) -> None:
    path = tmp_path / "events.arrow"
    write_events(path, ROWS, stream=True, batch=BATCH)
    content = path.read_bytes()
    seen = set()
    for length in [*range(1, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:length])
        log = read_arrow_log(path)
        assert log.frame.height % BATCH == 0
        seen.add(log.frame.height)
        assert log.frame.height == 0 or log.frame["pdu"].to_list() == list(range(log.frame.height))
        assert not log.clean_end
        whole = length - log.torn_bytes
        assert 0 <= whole <= length
    assert seen == set(range(0, len(ROWS) + 1, BATCH))


def test_a_file_cut_anywhere_keeps_its_complete_batches(tmp_path: Path) -> None:
    path = tmp_path / "events.arrow"
    write_events(path, ROWS, batch=BATCH)
    content = path.read_bytes()
    seen = set()
    for length in [*range(12, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:length])
        log = read_arrow_log(path)
        seen.add(log.frame.height)
        assert log.frame.height == 0 or log.frame["pdu"].to_list() == list(range(log.frame.height))
        assert log.torn_file
        assert not log.clean_end
        assert 0 < log.torn_bytes <= length
    assert seen == set(range(0, len(ROWS) + 1, BATCH))


def test_a_stream_without_its_end_mark_is_whole_but_not_ended(tmp_path: Path) -> None:
    path = tmp_path / "events.arrow"
    write_events(path, ROWS, stream=True, batch=BATCH)
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    log = read_arrow_log(path)
    assert log.frame.height == len(ROWS)
    assert log.torn_bytes == 0
    assert not log.clean_end


def test_a_footer_behind_a_stream_is_no_torn_batch(tmp_path: Path) -> None:
    path = tmp_path / "events.arrow"
    write_events(path, ROWS, stream=True, batch=BATCH)
    with path.open("ab") as file:
        file.write(b"a footer whose file has no mark yet")
    log = read_arrow_log(path)
    assert log.torn_bytes == 0
    assert log.clean_end
    assert log.frame.height == len(ROWS)


def test_an_empty_log_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "events.arrow"
    path.write_bytes(b"")
    log = read_arrow_log(path)
    assert log.frame.is_empty()
    assert not log.clean_end


@pytest.mark.parametrize("content", [b"time_ns,kind\n1,offered\n", b"ARROW1\0\0 but no more"])
def test_what_is_not_arrow_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "events.arrow"
    path.write_bytes(content)
    with pytest.raises(ArrowLogError, match=r"events\.arrow"):
        read_arrow_log(path)
