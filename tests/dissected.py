# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The TCP packets of a capture, as tshark dissects them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

ANALYSIS = "tcp.analysis."
FIELDS = {
    "time": "frame.time_epoch",
    "frame": "frame.len",
    "stream": "tcp.stream",
    "len": "tcp.len",
    "srcport": "tcp.srcport",
    "dstport": "tcp.dstport",
    "retransmission": f"{ANALYSIS}retransmission",
    "fast": f"{ANALYSIS}fast_retransmission",
    "spurious": f"{ANALYSIS}spurious_retransmission",
    "out_of_order": f"{ANALYSIS}out_of_order",
    "duplicate": f"{ANALYSIS}duplicate_ack",
    "lost_segment": f"{ANALYSIS}lost_segment",
    "ack_rtt": f"{ANALYSIS}ack_rtt",
    "initial_rtt": f"{ANALYSIS}initial_rtt",
}
TIMES = ("time", "ack_rtt", "initial_rtt")
AMOUNTS = ("frame", "stream", "len", "srcport", "dstport")


def need_tshark() -> None:
    """Skip the test where there is no tshark; with CI set, that is a failure."""
    if shutil.which("tshark") is None and not os.environ.get("CI"):
        pytest.skip("tshark is not installed: scripts/system-packages test installs it")


def dissected(path: Path) -> pl.DataFrame:
    """Return a row a TCP packet: times in ns, amounts, and whether tshark calls it so."""
    words = [word for name in FIELDS.values() for word in ("-e", name)]
    rows = [
        line.split("\t")
        for line in _tshark(
            path, "-Y", "tcp", "-T", "fields", "-E", "occurrence=f", *words
        ).splitlines()
    ]
    text = pl.DataFrame(rows, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    return text.with_columns(
        *(
            pl.when(pl.col(name) != "").then(
                pl.col(name).map_elements(_nanoseconds, return_dtype=pl.Int64)
            )
            for name in TIMES
        ),
        *(pl.col(name).cast(pl.Int64) for name in AMOUNTS),
        *(pl.col(name) != "" for name in FIELDS if name not in (*TIMES, *AMOUNTS)),
    ).with_columns(again=pl.col("retransmission") | pl.col("out_of_order"))


def only_from(path: Path, port: int, out: Path) -> Path:
    """Write the packets of a capture that come from a port to another; return that."""
    _tshark(path, "-Y", f"tcp.srcport == {port}", "-w", str(out))
    return out


def conversations(path: Path) -> list[dict[str, str]]:
    """Return the table of TCP conversations: ends, frames each way, and all its other words."""
    table = _tshark(path, "-q", "-z", "conv,tcp")
    found = []
    for line in table.splitlines():
        words = line.split()
        if "<->" in words:
            found.append({"a": words[0], "b": words[2], "to_a": words[3], "to_b": words[6]})
    return found


def _tshark(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["tshark", "-r", str(path), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


def _nanoseconds(seconds: str) -> int:
    whole, _, fraction = seconds.partition(".")
    return int(whole or 0) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9] or 0)
