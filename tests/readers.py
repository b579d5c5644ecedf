# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Every reader of files in the Python package, with a good sample, for tests with damaged ones.

``READERS`` is the one list of them. A reader gets a file that may hold anything and answers with
what it made of it, or with an error of its own. Anything else is a defect.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airpath.analysis import find, frame
from airpath.analysis.qlog import read as read_qlog
from airpath.app import run as run_app
from airpath.arrow import ArrowLogError, read_arrow_log
from airpath.capture import CaptureError, read_capture
from airpath.experiment.about import RECORD, read_about
from airpath.experiment.catalogue import DATABASE, Filter, FilterError, open_catalogue, rebuild
from airpath.experiment.folder import JOURNAL, PLAN, FolderError, Results, open_results
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.shown import read_text as read_notes
from airpath.fading.table import Table, TableError
from airpath.fading.table import read as read_ratios
from airpath.fading.table import write as write_ratios
from airpath.plots import KINDS, draw
from airpath.plots.style import Span
from airpath.radiocapture import probe
from airpath.radiocapture.commands import records
from airpath.radiocapture.frames import CaptureError as RadioCaptureError
from airpath.radiocapture.frames import read as read_frames
from airpath.run import RunError, load_run
from airpath.timing import FILE, SAMPLES, TimingError, load_report
from airpath.video import about as video_about
from airpath.video import payload_av1, rtp, sentlog
from airpath.video.codecs import CODECS
from airpath.video.errors import VideoError
from airpath.video.receive import Reception
from airpath.video.transport import Arrival
from experiments import SMALL
from radio_frames import as_pcap, as_pcapng, radio_frame
from synthetic import write_run
from test_tcp_state import write_states
from timing_folder import write_timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QLOG = {
    "qlog_version": "0.3",
    "traces": [
        {
            "vantage_point": {"type": "client"},
            "common_fields": {"time_format": "relative"},
            "events": [
                {
                    "time": 1.5,
                    "name": "recovery:metrics_updated",
                    "data": {"cwnd": 12000, "bytes_in_flight": "1200", "latest_rtt": 20.5},
                },
                {"time": 2, "name": "transport:packet_sent", "data": {}},
                {"time": 3, "name": "recovery:packet_lost", "data": {}},
            ],
        }
    ],
}

EXPERIMENT = (
    SMALL
    + """
[[references]]
name = "paper"
source = "a paper"
sets = ["queues/*"]
[references.metrics]
elapsed = { mean = 12.5, low = 12.0, high = 13.0 }
[report]
title = "small"
metrics = ["elapsed"]
"""
)

NOTES = "# Notes\n\nSome *text*, `code`, a [link](https://example.org/), a list:\n\n- one\n- two\n"


@dataclass(frozen=True)
class Reader:
    """A reader, and how to try it."""

    name: str
    make: Callable[[Path], Path]
    """Makes a good sample in an empty folder; returns the file to damage."""
    read: Callable[[Path], object]
    """Reads that file, or the folder that it is in, as the product does."""
    own: tuple[type[Exception], ...]
    """The errors with which it refuses a file."""


def _qlog(folder: Path) -> Path:
    path = folder / "client.qlog"
    path.write_text(json.dumps(QLOG))
    return path


def _qlog_sequence(folder: Path) -> Path:
    trace = QLOG["traces"][0]
    assert isinstance(trace, dict)
    head = {"qlog_version": "0.3", "trace": {k: v for k, v in trace.items() if k != "events"}}
    path = folder / "server.sqlog"
    path.write_text("".join(f"\x1e{json.dumps(one)}\n" for one in [head, *trace["events"]]))
    return path


def _of_run(name: str, *, stream: bool = False) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write_run(folder, size=5_120, stream=stream)
        return folder / name

    return make


def _tcp_state(folder: Path) -> Path:
    write_states(folder)
    return folder / "tcp.arrow"


def _measure_run(path: Path) -> object:
    """Measure a run as a member of a set: damage must not reach the other runs."""
    return frame(find([path.parent]), ["all"], jobs=1)


def _draw_run(path: Path) -> object:
    run = load_run(path.parent)
    _ = run.tcp_state
    return draw(run, list(KINDS), Span())


def _report(path: Path) -> object:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return run_app(["report", str(path.parent), "--pictures", "0"])


def _results(folder: Path) -> Results:
    """Make a results folder of two runs that are done."""
    (folder / PLAN).write_text(json.dumps({"format_version": 1, "cells": []}))
    results = Results(folder)
    for number in (1, 2):
        about = {
            "set_name": "a", "cell": "b", "replication": number, "network": "n", "workload": "w",
            "clock": "virtual", "seed": number, "attempt": 1, "status": "succeeded",
            "verdict": "trusted", "message": "", "wall_s": 1.5, "size_bytes": 1000,
            "ended_unix_s": 1.5, "metrics": {"elapsed": 1.25}, "measured": ["elapsed"],
            "parameters": {"network.rate": 1}, "tags": ["one"], "digest": "d",
        }  # fmt: skip
        run = folder / "runs" / "a" / "b" / f"{number:04}"
        run.mkdir(parents=True)
        (run / RECORD).write_text(json.dumps(about))
        (run / "tags.json").write_text('["one", "two"]')
        results.write("done", **{**about, "set": "a"})
    rebuild(folder)
    return results


def _of_results(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        _results(folder)
        return folder / name

    return make


def _list_results(path: Path) -> object:
    root = next(one for one in (path, *path.parents) if (one / "runs").is_dir())
    with open_catalogue(open_results(root), lambda _line: None) as catalogue:
        return catalogue.select(Filter(where=["elapsed < 20"])), catalogue.parameters()


def _rebuild(path: Path) -> object:
    root = next(one for one in (path, *path.parents) if (one / "runs").is_dir())
    return rebuild(root), read_about(path.parent)


def _experiment(folder: Path) -> Path:
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


def _notes(folder: Path) -> Path:
    path = folder / "notes.md"
    path.write_text(NOTES)
    return path


def _timing(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write_timing(folder, requests=50)
        return folder / name

    return make


def _timing_report(path: Path) -> object:
    report = load_report(path.parent)
    return report.title, [report.errors_of(series) for series in report.measured]


_PAYLOADS = {
    "h263p": ("0400 8002 11223344", "0000 55667788", "0402 80ff 1234"),
    "h264": ("6501020304", "18 0002 6701 0003 680203", "7c85 0102", "7c05 0304", "7c45 0506"),
    "h265": ("4001 0c01", "6001 0002 4001 0003 420101", "6201 93 0102", "6201 53 0304"),
    "av1": ("08 02 0a0b 03 300102", "50 04 30010203", "80 02 0405", "20 01 30 3201"),
}
"""Payloads of each codec in hexadecimal: whole, several in one, and in fragments."""


def _video_stream(codec: str) -> Callable[[Path], Path]:
    """Return what makes datagrams of a stream, each behind its length, and the end of it."""

    def make(folder: Path) -> Path:
        kind = CODECS[codec].payload_type
        payloads = [bytes.fromhex(one) for one in _PAYLOADS[codec] * 3]
        data = [
            rtp.build(rtp.Packet(kind, False, number, 3000 * (number // 2), 7, payload))
            for number, payload in enumerate(payloads)
        ]
        data.append(rtp.build_goodbye(rtp.Goodbye(7, len(data), 99), 0, 0))
        path = folder / "datagrams"
        path.write_bytes(b"".join(len(one).to_bytes(2, "big") + one for one in data))
        return path

    return make


def _receive_video(path: Path) -> object:
    content, at, now = path.read_bytes(), 0, 0
    with path.with_name("out").open("wb") as out:
        reception = Reception(out.fileno(), 20)
        while at + 2 <= len(content):
            end = at + 2 + int.from_bytes(content[at : at + 2], "big")
            now += 10
            reception.push(Arrival(content[at + 2 : end], now, None))
            reception.expire(now)
            at = end
        reception.end()
    return reception.frames


def _video_notes(folder: Path) -> Path:
    frame = video_about.Frame(3000, 0, 10, 1, 5)
    row = {**frame._asdict(), "damaged_packets": 1}
    notes = {"codec": "h264", "frames_per_second": 10, "frames": [row, row]}
    video_about.write(folder / "clip.h264", notes)
    return folder / "clip.h264.json"


def _read_video_notes(path: Path) -> object:
    file = path.with_suffix("")
    notes = video_about.read(file)
    return video_about.frames_per_second(notes, file), video_about.frames(notes, file, 100)


def _sent_log(folder: Path) -> Path:
    rows = [sentlog.Sent(number, 3000 * number, number, 1, 100, 10**18, 7) for number in range(5)]
    sentlog.write(folder / "sent.csv", rows)
    return folder / "sent.csv"


def _av1_bitstream(folder: Path) -> Path:
    path = folder / "clip.obu"
    path.write_bytes(bytes.fromhex("1200 0a020102 3203010203 1200 3601000100"))
    return path


def _ratios(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        values = np.arange(-40, 40).reshape(20, 4) / 2
        write_ratios(folder / name, Table(values, {"slots_per_second": 1500}))
        return folder / name

    return make


def _radio_capture(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / f"radio.{suffix}"
        radio = [radio_frame(probe.payload(number, 200), 200) for number in range(4)]
        path.write_bytes((as_pcap if suffix == "pcap" else as_pcapng)(radio))
        return path

    return make


_OF_RESULTS = (FolderError, FilterError, RunError, OSError)

READERS = (
    Reader("qlog", _qlog, lambda path: read_qlog(path, []), (RunError,)),
    Reader("qlog sequence", _qlog_sequence, lambda path: read_qlog(path, []), (RunError,)),
    Reader("pcapng", _of_run("client.pcapng"), read_capture, (CaptureError,)),
    Reader("arrow file", _of_run("events.arrow"), read_arrow_log, (ArrowLogError,)),
    Reader("arrow stream", _of_run("events.arrow", stream=True), read_arrow_log, (ArrowLogError,)),
    Reader("run.json", _of_run("run.json"), _measure_run, (RunError,)),
    Reader("run's events", _of_run("events.arrow"), _measure_run, (RunError,)),
    Reader("run's packets", _of_run("server.pcapng"), _measure_run, (RunError,)),
    Reader("run's state of TCP", _tcp_state, _draw_run, (RunError,)),
    Reader("report", _of_run("run.json"), _report, ()),
    Reader("journal", _of_results(JOURNAL), _list_results, _OF_RESULTS),
    Reader("plan", _of_results(PLAN), _list_results, _OF_RESULTS),
    Reader("catalogue", _of_results(DATABASE), _list_results, _OF_RESULTS),
    Reader("record", _of_results(f"runs/a/b/0001/{RECORD}"), _rebuild, _OF_RESULTS),
    Reader("tags", _of_results("runs/a/b/0001/tags.json"), _rebuild, _OF_RESULTS),
    Reader("experiment", _experiment, lambda path: load(path, files=False), (ExperimentError,)),
    Reader("notes", _notes, read_notes, (ValueError,)),
    Reader("timing.json", _timing(FILE), _timing_report, (TimingError,)),
    Reader("samples.arrow", _timing(SAMPLES), _timing_report, (TimingError,)),
    *(
        Reader(f"packets of {codec}", _video_stream(codec), _receive_video, ())
        for codec in _PAYLOADS
    ),
    *(
        Reader(f"ratios in {name}", _ratios(name), read_ratios, (TableError,))
        for name in ("snr.csv", "snr.parquet", "snr.mat")
    ),
    *(
        Reader(
            f"frames of a radio in {suffix}",
            _radio_capture(suffix),
            lambda path: records(read_frames(path), 4, 200),
            (RadioCaptureError,),
        )
        for suffix in ("pcap", "pcapng")
    ),
    Reader("notes of a video", _video_notes, _read_video_notes, (VideoError,)),
    Reader("log of a video", _sent_log, sentlog.read, (VideoError,)),
    Reader(
        "AV1 bitstream",
        _av1_bitstream,
        lambda path: payload_av1.temporal_units(path.read_bytes()),
        (VideoError,),
    ),
)
"""All readers. Reports and whole runs are slow: a tenth of a second each."""

SLOW = frozenset({"run.json", "run's events", "run's packets", "run's state of TCP", "report"})
"""The readers that take a tenth of a second or more for a sample."""


@dataclass
class Sample:
    """A good sample that is damaged again and again."""

    reader: Reader
    path: Path
    content: bytes

    def try_with(self, content: bytes) -> str:
        """Read other content in place of the sample's; return how the reader failed, or nothing."""
        # What an earlier reading mended or made anew is put back.
        self.path.write_bytes(content)
        try:
            self.reader.read(self.path)
        except self.reader.own as error:
            if not str(error):
                return f"{type(error).__name__} without a message"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        except pl.exceptions.PanicException as error:
            return f"panic: {error}"
        return ""


@contextlib.contextmanager
def sample_of(reader: Reader) -> Iterator[Sample]:
    """Yield a good sample in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="damaged-reader-"))
    try:
        path = reader.make(folder)
        yield Sample(reader, path, path.read_bytes())
    finally:
        shutil.rmtree(folder)


ODD = (
    b"null", b"true", b"-1", b"1e308", b"1e999", b"NaN", b"-Infinity", b"18446744073709551616",
    b"9223372036854775808", b"[]", b"{}", b'""', '"²"'.encode(), b'"\\ud800"', b'"\x00"',
    b"[" * 2000 + b"]" * 2000, b"\xff\xfe", b"1" * 5000, b"0.5", b"4294967295",
)  # fmt: skip
"""Values to put where something else is expected."""

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)


def damaged(content: bytes, generator: random.Random) -> bytes:
    """Return content with one to four things wrong."""
    if generator.random() < 0.3 and (document := _other_value(content, generator)):
        return document
    made = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        if not made:
            return bytes(made)
        at = generator.randrange(len(made))
        kind = generator.randrange(8)
        if kind == 0:
            made[at] ^= 1 << generator.randrange(8)
        elif kind == 1:
            made[at] = generator.randrange(256)
        elif kind == 2:
            del made[at:]
        elif kind == 3:
            del made[at : at + generator.randrange(1, 40)]
        elif kind == 4:
            other = generator.randrange(len(made))
            made[at:at] = made[other : other + generator.randrange(1, 60)]
        elif kind == 5:
            width = generator.choice((1, 2, 4, 8))
            number = generator.choice(NUMBERS) % (1 << 8 * width)
            made[at : at + width] = number.to_bytes(width, generator.choice(("little", "big")))
        else:
            first, last = _word_at(made, at)
            made[first:last] = generator.choice(ODD)
    return bytes(made)


def _other_value(content: bytes, generator: random.Random) -> bytes:
    """Return JSON with one value, however much is in it, replaced by an odd one; else nothing."""
    try:
        document = json.loads(content)
    except ValueError:
        return b""
    places: list[tuple[Any, Any]] = []
    inner = [document]
    for one in inner:
        keys = one.keys() if isinstance(one, dict) else range(len(one))
        places += [(one, key) for key in keys]
        inner += [one[key] for key in keys if isinstance(one[key], dict | list)]
    if not places:
        return b""
    holder, key = generator.choice(places)
    if isinstance(holder, dict) and generator.random() < 0.2:
        del holder[key]
        return json.dumps(document).encode()
    holder[key] = "PLACE"
    return json.dumps(document).encode().replace(b'"PLACE"', generator.choice(ODD))


def _word_at(content: bytearray, at: int) -> tuple[int, int]:
    """Return the value of a text format at a place: up to the next separators."""
    marks = b',:=[]{}\n"'
    begin = end = at
    while begin > 0 and content[begin - 1] not in marks and at - begin < 40:
        begin -= 1
    while end < len(content) and content[end] not in marks and end - at < 40:
        end += 1
    if begin > 0 and content[begin - 1 : begin] == b'"' and content[end : end + 1] == b'"':
        return begin - 1, end + 1
    return begin, max(end, begin + 1)
