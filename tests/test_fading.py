# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath fading generate`` from the command line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from airpath.engine import find_engine

DOCS = Path(__file__).parent.parent / "docs" / "fading.md"
CHANNEL = (
    '{ type = "jakes", speed = "75 km/h", snr = "16 dB", resources = 2, prediction_error = 0.1 }'
)


def fading(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "fading", "generate", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_a_file_has_a_line_for_each_slot_and_says_how_it_was_made(tmp_path: Path) -> None:
    for name, further in (("one", ()), ("two", ()), ("guess", ("--predicted",))):
        result = fading(CHANNEL, tmp_path / name, "--slots", 3000, "--seed", 5, *further)
        assert result.returncode == 0, result.stderr
    text = (tmp_path / "one").read_text(encoding="utf-8")
    assert text == (tmp_path / "two").read_text(encoding="utf-8")
    assert "--slots 3000 --seed 5" in text.splitlines()[0]
    values = np.loadtxt(tmp_path / "one", delimiter=",")
    assert values.shape == (3000, 2)
    # A prediction with an error of 0.1 is near, and not the same.
    guess = np.loadtxt(tmp_path / "guess", delimiter=",")
    correlation = np.corrcoef(values[:, 0], guess[:, 0])[0, 1]
    assert 0.5 < correlation < 1


def test_a_file_is_a_recorded_channel_again(tmp_path: Path) -> None:
    assert fading(CHANNEL, tmp_path / "snr.csv", "--slots", 100, "--seed", 5).returncode == 0
    channel = 'type = "recorded"\nfile = "snr.csv"\nresources = 2\n'
    (tmp_path / "again.toml").write_text(channel, encoding="utf-8")
    result = fading(tmp_path / "again.toml", tmp_path / "again.csv", "--slots", 100)
    assert result.returncode == 0, result.stderr
    first, again = (np.loadtxt(tmp_path / name, delimiter=",") for name in ("snr.csv", "again.csv"))
    assert np.abs(first - again).max() < 0.002


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    example = re.search(r"^airpath (fading generate .*)", DOCS.read_text(encoding="utf-8"), re.M)
    assert example is not None
    command = f"{find_engine()} {example[1]}"
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, timeout=60)
    assert np.loadtxt(tmp_path / "snr.csv", delimiter=",").shape == (15_000, 25)


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ('{ type = "jakes", sped = "3 m/s" }', "`sped` is no key"),
        ('{ type = "jakes", prediction_error = 2 }', "`prediction_error` is 2"),
        ('{ type = "jakes", snr = "nan dB" }', "snr"),
        ('{ type = "profile", profile = "tdl_a" }', "delay_spread"),
        ('{ type = "recorded", file = "none.csv" }', "none.csv"),
        ("none.toml", "cannot read the channel none.toml"),
    ],
)
def test_a_wrong_channel_is_told(tmp_path: Path, channel: str, says: str) -> None:
    result = fading(channel, "out.csv", "--slots", 10, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr
    assert not (tmp_path / "out.csv").exists()
