# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Radio bearers from the command line: what runs leave in the link log, and what replay says."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath.engine import find_engine
from airpath.layers import Frames, layers_of
from airpath.plots import link
from airpath.plots.style import Span
from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run

BLOCKS = 'per = "block", block = "20 ms"'
LOSSES = f'radio.link.errors={{ type = "bernoulli", probability = 0.05, {BLOCKS} }}'
FLIPS = (
    f'radio.link.errors={{ type = "bernoulli", probability = 0.05, {BLOCKS}, '
    'effect = "corrupt", flips = 3 }'
)
WORKLOAD = "tcp bytes=4096 from=server cc=reno"


def engine(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def simulate(folder: Path, profile: str, *options: str, workload: str = WORKLOAD) -> Run:
    result = engine(
        *("sim", "--profile", profile, "--seed", 7, "--out", folder),
        *("--workload", workload, *options),
    )
    assert result.returncode == 0, result.stderr
    return load_run(folder)


def replay(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(engine("replay", folder, "--json").stdout)
    return told


def test_the_link_log_shows_the_protocol(tmp_path: Path) -> None:
    rows = simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES).link
    begins = rows.filter(pl.col("event") == "sent").group_by("frame").agg(pl.col("time_ns").min())
    first = dict(begins.iter_rows())
    # The client asks by XID in the first block; the connection is there a second round trip later.
    assert first["XID"] == 20_000_000
    assert first["XID"] < first["SABM"] < first["UA"] < first["I+RR"]
    assert rows.filter(pl.col("frame") == "SREJ")["n_r"].null_count() == 0
    # Whatever is sent or repeated arrives whole or damaged, but for what is on its way at the end.
    counts = dict(rows["event"].value_counts().iter_rows())
    started = counts["sent"] + counts["repeated"]
    arrived = counts["received"] + counts["damaged"]
    assert 0 <= started - arrived < 50
    assert 0.02 < counts["damaged"] / arrived < 0.09
    server = rows.filter(pl.col("end") == "server")
    # Information is numbered without a gap, modulo 62, and never more than the window ahead.
    fresh = server.filter((pl.col("event") == "sent") & pl.col("n_s").is_not_null())["n_s"]
    assert ((fresh.cast(pl.Int64).diff().drop_nulls()) % 62 == 1).all()
    assert len(fresh) > 62
    assert server["outstanding"].to_numpy().max() <= 61
    repeated = server.filter(pl.col("event") == "repeated")
    assert len(repeated) > 0
    assert repeated["n_s"].null_count() == 0


def test_a_replay_compares_the_link_log(tmp_path: Path) -> None:
    run = simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES)
    told = replay(tmp_path / "run")
    assert told["identical"] is True
    assert told["link_records"] == len(run.link)
    simulate(tmp_path / "other", "gsm-rlp-9.6k", "--set", LOSSES.replace("0.05", "0.06"))
    shutil.copy(tmp_path / "other" / "link.arrow", tmp_path / "run" / "link.arrow")
    told = replay(tmp_path / "run")
    assert told["identical"] is False
    assert "link entity of radio" in told["difference"]["what"]


def test_a_replay_tells_of_a_link_log_that_is_gone(tmp_path: Path) -> None:
    simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES)
    (tmp_path / "run" / "link.arrow").unlink()
    result = engine("replay", tmp_path / "run")
    assert result.returncode == 2
    assert "link.arrow cannot be replayed: it is missing, and the run recorded" in result.stderr


def test_a_loss_of_packets_names_what_to_write_instead(tmp_path: Path) -> None:
    words = ("sim", "--profile", "gsm-rlp-9.6k", "--workload", WORKLOAD, "--seed", 1)
    result = engine(*words, "--loss", "1%")
    assert result.returncode == 2
    assert result.stderr.startswith('airpath: --loss "1%"')
    written = result.stderr.split("instead of --loss write --set '")[1].split("'")[0]
    assert written.startswith("radio.link.errors={")
    assert engine(*words, "--set", written).returncode == 0


def test_the_hop_of_a_generated_trace_has_a_name(tmp_path: Path) -> None:
    process = '{ type = "bernoulli", probability = 0.1 }'
    result = engine("trace", "generate", process, tmp_path / "trace", "--hop", "")
    assert result.returncode == 2
    assert "a hop has a name" in result.stderr
    assert not (tmp_path / "trace").exists()


def test_bit_errors_go_through_a_transparent_bearer(tmp_path: Path) -> None:
    workload = "cbr rate=2kbit/s size=200 from=server duration=60s"
    run = simulate(tmp_path / "run", "gsm-transparent-9.6k", "--set", FLIPS, workload=workload)
    damaged = run.events.filter(pl.col("kind") == "damaged")
    assert len(damaged) > 5
    assert set(run.link["frame"].unique()) == {"block"}
    assert replay(tmp_path / "run")["identical"] is True
    # With the whole FCS each of them is lost.
    whole = simulate(
        *(tmp_path / "whole", "gsm-transparent-9.6k", "--set", FLIPS),
        *("--set", 'radio.link.entity={ type = "transparent" }'),
        workload=workload,
    )
    causes = whole.events.filter(pl.col("kind") == "dropped")["cause"].unique().to_list()
    assert causes == ["integrity"]
    assert whole.events.filter(pl.col("kind") == "damaged").is_empty()


VJ = 'ppp = { header_compression = "vj" }'


def test_compressed_headers_shorten_a_transfer_and_are_replayed(tmp_path: Path) -> None:
    """The replay has the headers from the input log, and so has the replay of its copy."""
    workload = "tcp bytes=10240 from=server cc=reno mss=216 recv_window=1kB timestamps=no"
    plain = simulate(tmp_path / "plain", "gsm-rlp-9.6k", workload=workload)
    entity = ("--set", f'radio.link.entity={{ type = "rlp", {VJ} }}')
    shorter = simulate(tmp_path / "shorter", "gsm-rlp-9.6k", *entity, workload=workload)
    run = simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES, *entity, workload=workload)
    assert run.events.filter(pl.col("kind").is_in(["damaged", "dropped"])).is_empty()

    def information(run: Run) -> int:
        frames = run.link.filter((pl.col("end") == "server") & (pl.col("event") == "sent"))
        return frames.filter(pl.col("frame").cast(pl.String).str.starts_with("I+")).height

    # 48 segments of 263 octets of the line, 34 of them spared: 6 of 40 are left of a header, as
    # the identification stays 0.
    assert 0.84 < information(shorter) / information(plain) < 0.90
    assert replay(tmp_path / "run")["identical"] is True
    copied = engine("replay", tmp_path / "run", "--out", tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr
    assert replay(tmp_path / "copy")["identical"] is True
    rows = pl.read_ipc(tmp_path / "copy" / "input.arrow").filter(pl.col("kind") == "offer")
    assert rows["header"].null_count() == 0
    # Of the data behind a header nothing is known.
    has_data = rows.filter(pl.col("length") > pl.col("header_len").cast(pl.UInt32))
    assert has_data["hash64"].null_count() == has_data.height > 40


@pytest.mark.parametrize("compresses_slots", [True, False])
def test_losses_toss_compressed_packets_or_make_their_headers_wrong(
    tmp_path: Path, compresses_slots: bool
) -> None:
    slots = f"compress_slot_id = {str(compresses_slots).lower()}"
    ppp = f'ppp = {{ header_compression = "vj", {slots} }}'
    options = (
        *("--set", f'radio.link.entity={{ type = "transparent", {ppp} }}'),
        *("--set", LOSSES.replace("0.05", "0.01")),
    )
    workload = "tcp bytes=20480 from=server cc=reno mss=216 timestamps=no"
    run = simulate(tmp_path / "run", "gsm-transparent-9.6k", *options, workload=workload)
    drops = dict(run.events.filter(pl.col("kind") == "dropped")["cause"].value_counts().iter_rows())
    damaged = run.events.filter(pl.col("kind") == "damaged").height
    assert drops["channel_error"] > 0
    if compresses_slots:
        assert drops["decompression"] > 0
    else:
        assert "decompression" not in drops
        assert damaged > 0
    assert replay(tmp_path / "run")["identical"] is True
    # What is wrong is thrown away by TCP, which sends it again uncompressed.
    (told,) = run.manifest["workloads"]
    report = told["report"]
    assert report["downlink"]["delivered_bytes"] == 20480


def test_the_layers_are_drawn_for_each_direction(tmp_path: Path) -> None:
    run = simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES)
    pictures = link.draw(run, Span())
    assert [picture.name for picture in pictures] == ["link-radio-uplink", "link-radio-downlink"]
    frames = Frames.of(run.link, "server")
    fresh = frames.sent.filter(pl.col("event") == "sent")["number"].drop_nulls()
    # Numbers go on behind 61; the last frames are under way when the run ends.
    assert fresh.to_list() == list(range(len(fresh)))
    acknowledged = int(frames.sent["acknowledged"].to_numpy().max())
    delivered = int(frames.arrived["delivered"].to_numpy().max())
    assert len(fresh) - 10 <= acknowledged <= delivered <= len(fresh)
    assert (frames.sent["acknowledged"] <= frames.sent["number"].fill_null(1 << 30)).all()


def test_sockets_of_datagrams_have_a_panel_of_their_own(tmp_path: Path) -> None:
    workload = "cbr rate=2kbit/s size=200 from=server duration=60s"
    run = simulate(tmp_path / "run", "gsm-rlp-9.6k", "--set", LOSSES, workload=workload)
    downlink = next(each for each in layers_of(run) if each.direction == "downlink")
    rows = downlink.sockets
    sent = rows.filter(pl.col("event") == "sent")
    received = rows.filter(pl.col("event") == "received")
    assert set(sent["end"]) == {"server"}
    assert set(received["end"]) == {"client"}
    # Bytes are numbered without a gap, and what arrives has the numbers that it was sent with.
    assert sent["first"].to_list() == [0, *sent["last"][:-1]]
    assert sent["first"][1] > 0
    both = received.join(sent, on="pdu")
    assert both.height == received.height > 50
    assert (both["first"] == both["first_right"]).all()
    assert (both["time_ns"] > both["time_ns_right"]).all()
    (picture,) = [each for each in link.draw(run, Span()) if each.name.endswith("downlink")]
    labels = [axis.get_ylabel() for axis in picture.figure.axes]
    assert labels == ["Sockets (kB)", "Packet delay (s)", "Frames, N(S)", "Waiting"]


def test_blocks_of_a_transparent_bearer_are_counted(tmp_path: Path) -> None:
    workload = "cbr rate=2kbit/s size=200 from=server duration=20s"
    run = simulate(tmp_path / "run", "gsm-transparent-9.6k", "--set", FLIPS, workload=workload)
    downlink = next(each for each in layers_of(run) if each.direction == "downlink")
    frames = downlink.frames
    sent = frames.sent.drop_nulls("number").select("number", "pdu", sent_ns="time_ns")
    arrived = frames.arrived.drop_nulls("number").join(sent, on="number", suffix="_sent")
    assert arrived.height > 100
    assert (arrived["pdu"] == arrived["pdu_sent"]).all()
    # Every block arrives one transmission and one propagation delay after it was begun.
    assert (arrived["time_ns"] - arrived["sent_ns"]).n_unique() == 1
    (picture,) = [each for each in link.draw(run, Span()) if each.name.endswith("downlink")]
    assert "Frames, counted" in [axis.get_ylabel() for axis in picture.figure.axes]


def test_other_links_leave_no_link_log(tmp_path: Path) -> None:
    run = simulate(tmp_path / "run", "gsm-data-9.6k")
    assert not (tmp_path / "run" / "link.arrow").exists()
    assert run.link.is_empty()
    assert "n_s" in run.link.columns
    assert replay(tmp_path / "run")["link_records"] is None


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("radio.link.entity.window=0", "0 is out of range; it must be from 1 to 480"),
        ("radio.link.entity.window=62", "is 62; in version 1 it is from 1 to 61"),
        ("radio.link.entity.windw=3", "has no such key; did you mean `"),
        ('radio.link.entity.ppp={ header_compression = "rohc" }', "valid: none, vj"),
        (
            'radio.link.entity.ppp={ header_compression = "vj", max_slots = 0 }',
            "0 is out of range; it must be from 1 to 256",
        ),
        (
            'radio.link.entity.ppp={ header_compression = "vj", max_slots = 300 }',
            "300 is out of range; it must be from 1 to 256",
        ),
        (
            "radio.link.entity.ppp={ max_slots = 8 }",
            'has no meaning without header_compression = "vj"',
        ),
        (
            'radio.link.entity={ type = "gprs", ppp = { header_compression = "vj" } }',
            "has no such key",
        ),
        (
            'radio.link.entity={ type = "simple", ppp = { header_compression = "vj" } }',
            "has no such key",
        ),
        ("radio.link.rate=unlimited", "is unlimited; frames of this entity take time"),
        (
            'radio.link.errors={ type = "bernoulli", probability = 0.1 }',
            'write "frame", "bit" or "block"',
        ),
        (
            'radio.uplink.entity={ type = "transparent" }',
            "is not the same for both directions",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, assignment: str, message: str) -> None:
    options = ("--set", assignment, "--out", tmp_path / "run", "--workload", WORKLOAD)
    result = engine("sim", "--profile", "gsm-rlp-9.6k", *options)
    assert result.returncode != 0
    assert message in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("profile", ["gprs-cs2-rlc", "egprs-mcs5-rlc"])
def test_packet_radio_repeats_what_is_lost(tmp_path: Path, profile: str) -> None:
    errors = 'radio.link.errors={ type = "bernoulli", probability = 0.1, per = "frame" }'
    run = simulate(tmp_path / "run", profile, "--set", errors)
    rows = run.link.filter(pl.col("hop") == "radio")
    server = rows.filter(pl.col("end") == "server")
    # The first flow of the client, then the answer's: blocks from 0 on, and acknowledgements.
    assert rows.filter(pl.col("event") == "connected")["end"].to_list()[:2] == ["client", "server"]
    fresh = server.filter((pl.col("event") == "sent") & (pl.col("frame") == "data"))["n_s"]
    assert fresh.to_list()[:3] == [0, 1, 2]
    assert rows.filter((pl.col("event") == "repeated") & (pl.col("frame") == "data")).height > 0
    assert rows.filter((pl.col("event") == "received") & (pl.col("frame") == "ACK/NACK")).height > 0
    assert rows.filter(pl.col("event") == "damaged").height > 0
    assert run.events.filter(pl.col("cause") == "link_reset").height == 0
    assert replay(tmp_path / "run")["identical"] is True
    # Flows begin at 0 again and again; the numbers of the layers go on.
    frames = Frames.of(rows, "server")
    sent = frames.sent.filter(pl.col("frame") == "data").drop_nulls("number")["number"]
    first = frames.sent.filter((pl.col("event") == "sent") & (pl.col("frame") == "data"))["number"]
    assert first.to_list() == list(range(first.len()))
    assert sent.max() == first.len() - 1
    arrived = frames.arrived.drop_nulls("number")
    assert set(arrived["number"]) <= set(first)
    assert frames.arrived["delivered"].to_list()[-1] == first.len()
