# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The bench of emulators side by side, on the ones that are here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rivals.bench import measure, tables
from rivals.emulators import all_of, mahimahi_trace
from rivals.ends import Setting
from rivals.measures import Measure, Options, tcp
from rivals.picture import draw

ENGINE = Path(".venv/bin/airpath-engine").resolve()


@pytest.mark.parametrize("rate", [12e6, 120e6, 1e9, 10e9, 5e6, 9600.0])
def test_traces_of_mahimahi_have_the_rate(rate: float) -> None:
    """A trace lets through as many packets as the rate, over its length, in order."""
    lines = [int(line) for line in mahimahi_trace(rate).split()]
    assert lines == sorted(lines)
    assert lines[0] >= 1
    assert len(lines) * 12_000 / (lines[-1] / 1000) == pytest.approx(rate, rel=0.5 / len(lines))


@pytest.mark.skipif(os.geteuid() != 0, reason="makes networks, which needs root")
def test_every_emulator_that_is_here_carries_a_flow(tmp_path: Path) -> None:
    """Each carries TCP, within its rate; the table and the picture have all of them."""
    setting = Setting(20e6, 1, 100)
    one = Measure("tcp", setting, tcp, "one TCP flow, 20 Mbit/s")
    here = [emulator for emulator in all_of(ENGINE) if not emulator.missing()]
    figures, failures = measure(here, [one], Options(Path("unused"), 1.0), 1)
    assert not failures
    by_name = figures["tcp"]["goodput, Gbit/s"]
    assert {"bare veth pair", "airpath"} <= set(by_name)
    assert 0.010 < by_name["airpath"][0] < 0.021
    assert by_name["bare veth pair"][0] > 0.021
    heads, _, row = tables(figures, [one])
    assert all(name in heads for name in by_name)
    assert "one TCP flow" in row
    draw(figures, {"tcp": one.title}, tmp_path / "picture.svg")
    assert "airpath" in (tmp_path / "picture.svg").read_text()


def test_a_measure_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    """An engine that is not there fails in words; nothing else does."""
    nowhere = tmp_path / "engine"
    nowhere.write_text("#!/bin/sh\necho no such link >&2\nexit 3\n")
    nowhere.chmod(0o755)
    emulators = [one for one in all_of(nowhere) if one.name == "airpath"]
    one = Measure("tcp", Setting(), tcp, "one TCP flow")
    figures, failures = measure(emulators, [one], Options(Path("unused"), 0.5), 1)
    assert figures == {}
    assert failures == ["tcp, airpath: the emulator ended: no such link\n"]
