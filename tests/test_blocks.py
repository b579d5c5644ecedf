# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Frames of Reed-Solomon blocks from the command line: link log, replay, and policies compared."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath.engine import find_engine
from airpath.run import load_run

EXAMPLE = Path(__file__).parent.parent / "examples" / "blocks.toml"
WORKLOAD = "tcp bytes=1MB from=server"


def engine(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def simulate(folder: Path, *settings: str, status: int = 0) -> None:
    options = [word for setting in settings for word in ("--set", setting)]
    result = engine(
        *("sim", "--scenario", EXAMPLE, "--seed", 7, "--out", folder),
        *("--workload", WORKLOAD, "--duration", "200 s", *options),
    )
    assert result.returncode == status, result.stderr


def test_the_link_log_has_blocks_and_parity_and_a_replay_finds_them(tmp_path: Path) -> None:
    simulate(tmp_path / "run")
    rows = load_run(tmp_path / "run").link
    assert set(rows["blocks"].unique()) <= {1, 2, 3, 4, 5}
    assert set(rows["parity"].unique()) <= {0, 12, 24, 48, 74, 110, 150, 199}
    # The bursts make FLEX change the redundancy.
    assert rows["parity"].n_unique() > 2
    assert rows.filter(pl.col("event") == "damaged").height > 0
    assert engine("replay", tmp_path / "run").returncode == 0


@pytest.mark.parametrize(
    ("policy", "shape"), [("bold", (5, 0)), ("light", (5, 12)), ("robust", (1, 74))]
)
def test_policies_have_their_shapes(tmp_path: Path, policy: str, shape: tuple[int, int]) -> None:
    simulate(tmp_path / "run", f"radio.link.entity.policy={policy}")
    rows = load_run(tmp_path / "run").link
    longest = rows.select(pl.col("blocks").max(), pl.col("parity").max()).row(0)
    assert longest == shape
    assert rows["parity"].n_unique() == 1


def test_flex_is_fast_where_bold_and_light_fail(tmp_path: Path) -> None:
    """With 0.49 % wrong bits FLEX must be faster than ROBUST, and BOLD delivers nothing."""
    errors = (
        'radio.link.errors={ type = "bernoulli", per = "bit", probability = 0.0049, '
        'effect = "corrupt" }'
    )
    ended: dict[str, float] = {}
    for policy in ("flex", "robust", "bold"):
        # A transfer that is incomplete has the status 1.
        status = int(policy == "bold")
        simulate(tmp_path / policy, f"radio.link.entity.policy={policy}", errors, status=status)
        delivered = load_run(tmp_path / policy).events.filter(
            (pl.col("kind") == "delivered") & (pl.col("direction") == "downlink")
        )
        last: Any = delivered["time_ns"].max()
        ended[policy] = last if delivered.height > 200 else float("inf")
    assert ended["flex"] < ended["robust"] < ended["bold"] == float("inf")


@pytest.mark.parametrize(
    ("entity", "told"),
    [
        ('{ type = "blocks", parity = 3 }', 'write policy = "custom"'),
        ('{ type = "blocks", policy = "custom", blocks = 2 }', "parity"),
        ('{ type = "blocks", policy = "custom", blocks = 6, parity = 0 }', "must be from 1 to 5"),
        (
            '{ type = "blocks", policy = "custom", blocks = 5, parity = 200 }',
            "must be from 0 to 199",
        ),
    ],
)
def test_shapes_that_do_not_exist_are_refused(entity: str, told: str) -> None:
    result = engine("sim", "--scenario", EXAMPLE, "--set", f"radio.link.entity={entity}")
    assert result.returncode != 0
    assert told in result.stderr
