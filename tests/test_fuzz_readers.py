# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The fuzzer of the Python readers, for some seconds: its corpus, and that it sees what breaks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import readers
from campaigns import fuzz_readers
from campaigns.common import Campaign

if TYPE_CHECKING:
    from pathlib import Path

QUICK = [one for one in readers.READERS if one.name not in readers.SLOW]


@pytest.mark.parametrize("reader", readers.READERS, ids=lambda reader: reader.name)
def test_what_once_broke_a_reader_breaks_none(reader: readers.Reader) -> None:
    with readers.sample_of(reader) as sample:
        for name, content in fuzz_readers.seeds_of(reader.name):
            assert not sample.try_with(content), name


@pytest.mark.parametrize("reader", QUICK, ids=lambda reader: reader.name)
def test_damaged_samples(reader: readers.Reader) -> None:
    # As many as there is time for, the same ones first.
    end = time.monotonic() + 0.2
    with readers.sample_of(reader) as sample:
        for number in range(200):
            content = fuzz_readers.content_of(sample, 1, number)
            what = sample.try_with(content)
            assert not what, f"input {number} of seed 1: {what}"
            if time.monotonic() > end and number > 5:
                break


def test_a_reader_that_stands_still_is_told_with_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("campaigns.common.FINDINGS", tmp_path)
    campaign = Campaign("readers", 1)
    # Nobody measures a run in so little time.
    fuzz_readers.try_reader(fuzz_readers.Job("run.json", 1, 1, 0.0, 0.0001, 0), campaign)
    assert campaign.failures == 1
    assert "run.json: took longer than" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 1


def test_inputs_depend_on_their_numbers_alone() -> None:
    reader = fuzz_readers.reader_of("qlog")
    with readers.sample_of(reader) as sample:
        first = [fuzz_readers.content_of(sample, 7, number) for number in (50, 51, 52)]
        again = [fuzz_readers.content_of(sample, 7, number) for number in (52, 51, 50)]
    assert first == again[::-1]
    assert len(set(first)) > 1
