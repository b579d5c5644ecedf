# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands about video as users call them: bad input, signals, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.commandline import parse
from airpath.declarations import DECLARATIONS
from airpath.engine import find_engine
from airpath.status import LACKING, UNWRITABLE
from airpath.video import about, ffmpeg, rtp, sentlog, transport
from airpath.video import packetise as packetising
from airpath.video.endpoints import Endpoint
from airpath.video.errors import VideoError
from processes import children, has_ended
from videos import needs_ffmpeg, received_without

if TYPE_CHECKING:
    from collections.abc import Iterator

START = "import sys; from airpath.cli import main; sys.exit(main())"


def call(name: str, *words: object) -> int:
    """Carry a command out in this process; return its exit status."""
    declaration = DECLARATIONS[f"video {name}"]
    values = parse(declaration, [str(word) for word in words])
    module, _, function = declaration.runs.partition(":")
    status = getattr(importlib.import_module(module), function)(**values)
    assert isinstance(status, int)
    return status


@contextlib.contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    """Start a command as a process of its own; end it with the block."""
    command = [sys.executable, "-c", START, "video", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(what: str, check: object) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if callable(check) and check():
            return
        time.sleep(0.02)
    pytest.fail(f"not within a minute: {what}")


# Bad input.


@needs_ffmpeg
def test_what_is_no_video_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, empty = tmp_path / "text.h264", tmp_path / "empty.h264"
    text.write_text("no video\n" * 100)
    empty.write_bytes(b"")
    sound = tmp_path / "sound.wav"
    sound.write_bytes(
        bytes.fromhex("52494646 24000000 57415645 666d7420 10000000 01000100 401f0000 803e0000")
        + bytes.fromhex("02001000 64617461 00000000")
    )
    for file in (text, empty, sound, tmp_path / "none.h264", tmp_path):
        for words in (("send", file, "--to", "127.0.0.1:9"), ("compare", file, file)):
            assert call(*words) == 2, words
            told = capfd.readouterr()
            assert told.out == ""
            assert told.err.startswith(f"airpath video {words[0]}: ")
            assert str(file) in told.err
    assert call("send", sound, "--to", "127.0.0.1:9") == 2
    assert capfd.readouterr().err == f"airpath video send: {sound} holds no video\n"


@needs_ffmpeg
def test_a_codec_without_payload_format_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clip.avi"
    made = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=size=32x32", "-frames:v"]
    subprocess.run([*made, "2", "-c:v", "mpeg4", str(file)], check=True)
    assert call("send", file, "--to", "127.0.0.1:9") == 2
    told = capfd.readouterr().err
    assert f"{file} holds video of the codec mpeg4; airpath video sends h263p, h264" in told
    assert "-c:v libx264" in told


WRONG = [
    (("send", "CLIP", "--coverage", "5"), "needs --transport udp-lite"),
    (("send", "CLIP", "--transport", "udp-lite", "--coverage", "7"), "is not within 8 … 508"),
    (("send", "CLIP", "--transport", "udp-lite", "--coverage", "509"), "no packet is longer"),
    (("send", "CLIP", "--packet-bytes", "20"), "--packet-bytes 20 is not within 64 … 16000"),
    (("send", "CLIP", "--to", "server"), "--to server is no HOST:PORT"),
    (("send", "CLIP", "--fps", "0"), "--fps 0 is not within 1 … 1000"),
    (("receive", "--listen", "5004"), "--listen 5004 is no HOST:PORT"),
    (("receive", "--wait", "5"), "--wait: `5` is not a time such as `90 s`"),
    (("receive", "--coverage", "8"), "needs --transport udp-lite"),
    (("make", "--size", "big"), "--size big is no size"),
    (("make", "--size", "33x32"), "must be multiples of 4"),
    (("make", "--frames", "0"), "--frames 0 is not within"),
    (("make", "--rate", "9600"), "--rate: `9600` is not a rate"),
    (("make", "--codec", "av1", "--slice-bytes", "9"), "--slice-bytes is for h263p and h264"),
    (("compare", "CLIP", "CLIP", "--playout-delay", "1 s"), "needs the arrival of frames"),
]


@needs_ffmpeg
@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_options_are_told(
    words: tuple[str, ...],
    said: str,
    clips: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*(str(clips["h264"]) if word == "CLIP" else word for word in words)) == 2
    told = capfd.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_ffmpeg_the_package_is_named(
    clips: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(ffmpeg.VARIABLE, raising=False)
    clip = clips["h264"]
    for words, program in (
        (("make", "--out", tmp_path / "x.h264"), "ffmpeg"),
        (("send", clip, "--to", "127.0.0.1:9"), "ffprobe"),
        (("compare", clip, clip), "ffmpeg"),
    ):
        assert call(str(words[0]), *words[1:]) == LACKING
        assert f"{program} is not here: apt install ffmpeg" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_ffmpeg
def test_a_failing_ffmpeg_is_quoted() -> None:
    with pytest.raises(VideoError) as raised:
        ffmpeg.run(["-f", "lavfi", "-i", "no_such_source", "-f", "null", "-"], "make nothing")
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("ffmpeg cannot make nothing (exit status ")
    assert 2 <= len(lines) <= 1 + ffmpeg.SHOWN_LINES
    assert any("no_such_source" in line for line in lines[1:])


@needs_ffmpeg
def test_places_that_cannot_be_written_are_told(
    clips: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    below = tmp_path / "file" / "x.h264"
    clip = clips["h264"]
    for words in (
        ("make", "--frames", "2", "--out", below),
        ("send", clip, "--to", "127.0.0.1:9", "--log", below, "--pace", "none"),
        ("receive", "--listen", f"127.0.0.1:{free_port()}", "--out", below, "--wait", "100 ms"),
        ("compare", clip, clip, "--out", below),
    ):
        assert call(str(words[0]), *words[1:]) == UNWRITABLE, words
        assert str(tmp_path / "file") in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_port_in_use_and_a_silent_one_are_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert call("receive", "--listen", place, "--out", tmp_path / "x") == 1
        assert "another program listens there" in capfd.readouterr().err
    place = f"127.0.0.1:{free_port()}"
    assert call("receive", "--listen", place, "--out", tmp_path / "x", "--wait", "200 ms") == 1
    assert "no packet of a video arrived within 0.2 s" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_ffmpeg
def test_a_network_that_fails_loses_no_line_of_the_log(
    clips: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        way = "udp"
        left = 5

        def __init__(self, *_: object) -> None:
            pass

        def send(self, _data: bytes, _coverage: int) -> None:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENETDOWN, "Network is down")

        def close(self) -> None:
            pass

    monkeypatch.setattr(transport, "open_sender", Failing)
    log = tmp_path / "sent.csv"
    assert call("send", clips["h264"], "--to", "127.0.0.1:9", "--pace", "none", "--log", log) == 1
    assert sorted(sentlog.read(log)) == list(range(5))


def test_the_example_is_one() -> None:
    examples = Path(__file__).parent.parent / "examples"
    check = [find_engine(), "check", str(examples / "gsm-transparent.toml")]
    assert subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode == 0
    lines = (examples / "video.sh").read_text().replace("\\\n", " ").splitlines()
    lines = [line.replace("$transport", "udp") for line in lines]
    lines = [line for line in lines if not line.startswith("#")]
    lines += [word for line in lines for word in shlex.split(line) if "video receive" in word]
    names = set()
    for words in (shlex.split(line) for line in lines):
        if "video" in words:
            at = words.index("video")
            names.add(words[at + 1])
            assert parse(DECLARATIONS[f"video {words[at + 1]}"], words[at + 2 :])
    assert names == {"make", "send", "receive", "compare"}


# What is carried out.


@needs_ffmpeg
def test_make_takes_the_codec_of_the_suffix(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.h263"
    assert call("make", "--frames", "3", "--size", "sqcif", "--out", file, "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["codec"], report["width"], report["frame_count"]) == ("h263p", 128, 3)
    assert file.stat().st_size == report["bytes"]


@needs_ffmpeg
def test_a_container_is_sent_with_its_own_times(
    clips: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clip.mkv"
    copied = ["-i", str(clips["h264"]), "-c", "copy", str(file)]
    subprocess.run(["ffmpeg", "-loglevel", "error", *copied], check=True)
    source = packetising.inspect(file)
    assert (source.frames_per_second, source.is_bare) == (10, False)
    stream = packetising.packetise(source, 400)
    assert sorted(set(stream.frames)) == list(range(20))
    log = tmp_path / "sent.csv"
    sent = call("send", file, "--to", "127.0.0.1:9", "--pace", "none", "--log", log, "--json")
    assert sent == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["frames"], report["packets"]) == (20, len(log.read_text().splitlines()) - 1)


@needs_ffmpeg
def test_frames_are_sent_at_their_times(clips: dict[str, Path], tmp_path: Path) -> None:
    log = tmp_path / "sent.csv"
    assert call("send", clips["h264"], "--to", "127.0.0.1:9", "--log", log, "--fps", "50") == 0
    rows = [line.split(",") for line in log.read_text().splitlines()[1:]]
    first = int(rows[0][5])
    for row in rows:
        # Never early; how late depends on the machine.
        assert int(row[5]) - first >= int(row[2]) * 20_000_000 - 2_000_000


@needs_ffmpeg
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_reception_with_all_that_came(
    number: int, clips: dict[str, Path], tmp_path: Path
) -> None:
    port, out = free_port(), tmp_path / "received.h264"
    stream = packetising.packetise(packetising.inspect(clips["h264"]), 400)
    with started("receive", "--listen", f"127.0.0.1:{port}", "--out", out, "--json") as process:
        wait_for("a listener", lambda: _listens(port))
        sender = transport.open_sender(Endpoint(socket.AF_INET, "127.0.0.1", port), "udp", "auto")
        for packet in stream.packets:
            sender.send(rtp.build(packet), 0)
        sender.close()
        wait_for("the file", lambda: _length(tmp_path) == clips["h264"].stat().st_size)
        process.send_signal(number)
        told, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    report = json.loads(told)
    assert (report["ended_by"], report["packets_received"]) == ("signal", len(stream.packets))
    assert out.read_bytes() == clips["h264"].read_bytes()
    notes = about.read(out)
    assert notes is not None
    assert len(notes["frames"]) == 20


def _length(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _listens(port: int) -> bool:
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)


@needs_ffmpeg
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ffmpeg_ends_with_the_command(number: int, tmp_path: Path) -> None:
    words = ("make", "--size", "hd720", "--frames", "100000", "--out", tmp_path / "x.h264")
    with started(*words) as process:
        wait_for("ffmpeg", lambda: children(process.pid))
        child = children(process.pid)[0]
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == -number
        wait_for("the end of ffmpeg", lambda: has_ended(child))
    assert not list(tmp_path.iterdir())


@needs_ffmpeg
def test_compare_leaves_no_temporary_file(
    clips: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = set(Path(tempfile.gettempdir()).iterdir())
    file = received_without(clips["h264"], {3}, tmp_path)
    assert call("compare", clips["h264"], file, "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert report["videos"][0]["frames_frozen"] == 1
    assert report["files"] == []
    assert set(Path(tempfile.gettempdir()).iterdir()) == before
