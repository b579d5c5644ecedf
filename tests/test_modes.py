# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath modes`` from the command line."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from airpath.engine import find_engine

DOCS = Path(__file__).parent.parent / "docs" / "link-adaptation.md"


def modes(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "modes", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_json_has_the_modes_and_their_levels() -> None:
    result = json.loads(modes("--json", "--prediction-error", "0.1", "--snr", "16 dB").stdout)
    assert [mode["bits_per_symbol"] for mode in result["modes"]] == list(range(1, 9))
    assert result["modes"][0]["level_db"] is None
    # 2 (1 - P)^108 of 4-QAM is (1 - P)^108 of BPSK at 8.7014 dB (tests of the models).
    assert result["modes"][1]["level_db"] == pytest.approx(8.7014, abs=1e-3)
    assert result["modes"][1]["level_with_error_db"] < 8.7014
    assert result["modes"][7]["frame_bits"] == 8 * 108


def test_the_documents_state_what_the_command_prints() -> None:
    text = DOCS.read_text(encoding="utf-8")
    stated = re.findall(
        r"([\d.]+) % (?:of the throughput in error-free frames )?at (?:a mean of )?(\d+) dB", text
    )
    losses = {int(snr): float(loss) for loss, snr in stated[:3]}
    assert set(losses) == {12, 16, 20}
    for snr, loss in losses.items():
        result = json.loads(
            modes("--json", "--prediction-error", "0.1", "--snr", f"{snr} dB").stdout
        )
        computed = (
            1 - result["rayleigh_bits_per_symbol_with_error"] / result["rayleigh_bits_per_symbol"]
        )
        assert 100 * computed == pytest.approx(loss, abs=0.05)


def test_a_table_of_a_standard_is_printed_by_its_name() -> None:
    lines = modes("nr_mcs_2").stdout.splitlines()
    assert lines[0].split() == ["MODE", "BITS", "FRAME", "BITS", "LEVEL"]
    name, bits, frame_bits = lines[28].split()[:3]
    assert (name, frame_bits) == ("mcs-27", "799")
    assert float(bits) == pytest.approx(7.40625, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lte",), "unknown variant `lte`, expected one of `lte_cqi`"),
        (('{ type = "qam", bits = [1] }',), "`bits` is no key of this type"),
        (('{ type = "coded", table = "lte_cqi", gap = "30 dB" }',), "`gap` is 30 dB"),
        (("--prediction-error", "1"), "--prediction-error is 1; it must be from 0 to below 1"),
        (("--snr", "90 dB"), "--snr is 90 dB; it must be from -30 to 45 dB"),
    ],
)
def test_wrong_modes_are_refused(arguments: tuple[str, ...], message: str) -> None:
    result = modes(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
