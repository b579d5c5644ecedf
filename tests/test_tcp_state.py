# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading and drawing of the state of TCP, with and without the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.plots import tcp_state
from airpath.plots.style import Span
from airpath.run import TCP_STATE_COLUMNS, load_run
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


def row(seconds: float, **fields: Any) -> dict[str, Any]:
    """Return a row of tcp.arrow; what is not given is null."""
    whose: dict[str, Any] = {
        "time_ns": int(seconds * SECOND), "source": "sample", "end": "server", "socket": 1,
        "state": "established", "local_address": "10.77.0.1", "local_port": 80,
        "remote_address": "10.77.0.2", "remote_port": 40_000, "flow": 1, "reverse_flow": 2,
        "congestion_control": "reno", "congestion_state": "open",
    }  # fmt: skip
    return {**dict.fromkeys(TCP_STATE_COLUMNS), **whose, **fields}


ROWS = [
    row(0.5, cwnd=10, unacked=10, rto_ns=SECOND, bytes_acked=0, total_retrans=0),
    row(1, cwnd=20, unacked=20, srtt_ns=SECOND // 5, rto_ns=SECOND // 2, bytes_acked=20_000,
        total_retrans=0, delivery_rate_bps=64_000),
    row(2, cwnd=11, ssthresh=10, unacked=12, congestion_state="recovery", bytes_acked=40_000,
        total_retrans=1, delivery_rate_bps=60_000),
    row(3, cwnd=1, ssthresh=5, unacked=1, congestion_state="loss", bytes_acked=40_000,
        total_retrans=3, backoff=1, rto_ns=SECOND),
    row(4, cwnd=6, ssthresh=5, unacked=3, bytes_acked=60_000, total_retrans=3),
    row(5, source="closed", state="closed", cwnd=6, ssthresh=5, bytes_acked=90_000,
        total_retrans=3),
    row(0.6, end="client", socket=2, cwnd=10, bytes_acked=100),
    row(5, end="client", socket=2, source="closed", cwnd=10, bytes_acked=100),
]  # fmt: skip


def write_states(folder: Path, *, stream: bool = False) -> None:
    write_run(folder, size=2560)
    # As the engine writes them, narrower than what is read.
    frame = pl.DataFrame(ROWS, schema=TCP_STATE_COLUMNS, orient="row").with_columns(
        pl.col("time_ns").cast(pl.UInt64), pl.col("cwnd", "ssthresh", "socket").cast(pl.UInt32)
    )
    (frame.write_ipc_stream if stream else frame.write_ipc)(folder / "tcp.arrow")


def test_states_have_their_types_and_are_in_order(tmp_path: Path) -> None:
    write_states(tmp_path / "run")
    states = load_run(tmp_path / "run").tcp_state
    assert dict(states.schema) == TCP_STATE_COLUMNS
    assert states["time_ns"].is_sorted()
    assert states.filter(pl.col("end") == "server")["cwnd"].to_list() == [10, 20, 11, 1, 6, 6]
    assert states["ssthresh"][0] is None


def test_a_run_without_them_reads_as_before(download: Path) -> None:
    run = load_run(download)
    assert run.tcp_state.is_empty()
    assert dict(run.tcp_state.schema) == TCP_STATE_COLUMNS
    assert run.notes == []
    assert tcp_state.draw(run, Span()) == []


def test_a_torn_file_and_one_of_another_version_are_read(tmp_path: Path) -> None:
    write_states(tmp_path / "run", stream=True)
    path = tmp_path / "run" / "tcp.arrow"
    path.write_bytes(path.read_bytes()[:-20])
    run = load_run(tmp_path / "run")
    assert dict(run.tcp_state.schema) == TCP_STATE_COLUMNS
    assert any("tcp.arrow is torn" in note for note in run.notes)
    older = pl.DataFrame(ROWS, schema=TCP_STATE_COLUMNS, orient="row").drop("delivered_ce")
    older.write_ipc(path)
    assert load_run(tmp_path / "run").tcp_state["delivered_ce"].null_count() == len(ROWS)


def test_the_picture_shows_window_threshold_timeouts_and_states(tmp_path: Path) -> None:
    write_states(tmp_path / "run")
    [picture] = tcp_state.draw(load_run(tmp_path / "run"), Span(0, 6))
    assert picture.name == "tcp-state-1-server", "the other socket sent next to nothing"
    window, times, rates = picture.figure.axes
    labels = [axis.get_legend_handles_labels()[1] for axis in (window, times, rates)]
    assert labels[0] == [
        "fast recovery", "timeout recovery", "unacknowledged", "congestion window",
        "slow start threshold", "3 retransmissions",
    ]  # fmt: skip
    assert labels[1] == ["RTO", "smoothed RTT"]
    assert labels[2] == ["delivery rate"]
    [line] = [line for line in window.get_lines() if line.get_label() == "congestion window"]
    assert list(line.get_ydata()) == [10, 20, 11, 1, 6, 6]  # type: ignore[arg-type]
    bands = {str(patch.get_label()): patch for patch in window.patches}
    recovery, loss = bands["fast recovery"], bands["timeout recovery"]
    assert [recovery.get_x(), recovery.get_width()] == [2, 1]  # type: ignore[attr-defined]
    assert [loss.get_x(), loss.get_width()] == [3, 1]  # type: ignore[attr-defined]
