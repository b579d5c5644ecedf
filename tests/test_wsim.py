# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""airpath wsim: losses against counts and closed forms, codecs, files, and what is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

import wsim_loss as study
from airpath.engine import find_engine
from airpath.status import UNWRITABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

BERNOULLI = '{ type = "bernoulli", probability = 0.05 }'
BLOCK, HEADERS = 28, 42


def wsim(
    *words: object, given: bytes | None = None, user: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [find_engine(), "wsim", *(str(word) for word in words)]
    return subprocess.run(
        command, capture_output=True, input=given, timeout=120, check=False, user=user
    )


def sent(*words: object, given: bytes | None = None) -> dict[str, Any]:
    """Return the summary of a simulation that must succeed."""
    done = wsim(*words, "--json", given=given)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Folder:
    """A folder with an input, a trace, and the output beside them."""

    def __init__(self, path: Path, content: bytes, trace: str = "0") -> None:
        self.path = path
        self.input, self.trace, self.out = path / "input", path / "trace.txt", path / "output"
        self.input.write_bytes(content)
        self.trace.write_text(trace)

    def words(self, protocol: str = "udp-lite", adu_size: int = 100) -> list[object]:
        """Return the options that every simulation has, the seed last."""
        files = ["--input", self.input, "--trace", self.trace, "--out", self.out]
        return [*files, "--adu-size", adu_size, "--protocol", protocol, "--seed", 1]

    def names(self) -> list[str]:
        """Return what is in the folder."""
        return sorted(path.name for path in self.path.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder with 1000 bytes and a trace with two errors in 60 blocks."""
    place = tmp_path / "files"
    place.mkdir()
    trace = "000000 000100 000000 010000 000000" + "0" * 30
    return Folder(place, random.Random(1).randbytes(1_000), trace)


# Losses


@pytest.fixture(scope="module", params=study.SOURCES)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a trace of 100,000 blocks, its name, and its elements."""
    trace = tmp_path_factory.mktemp("trace") / "blocks.txt"
    elements = study.generate(study.SOURCES[request.param], trace, 100_000, seed=1)
    return request.param, trace, elements


@pytest.mark.parametrize("adu_bytes", [*study.ADU_SIZES, 1, 100, 517])
@pytest.mark.parametrize("protocol", study.PROTOCOLS)
def test_losses_are_those_of_the_windows_of_the_trace(
    source: tuple[str, Path, str], protocol: str, adu_bytes: int, tmp_path: Path
) -> None:
    name, trace, elements = source
    loss = study.measure(tmp_path, trace, elements, name, adu_bytes, protocol)
    assert loss.dropped == loss.counted > 0
    if name == "independent":
        assert loss.fits, loss


def test_the_interval_of_a_binomial_by_hand() -> None:
    # Ten throws of a coin: P(0) = 1/1024 < 0.005 < P(0 or 1) = 11/1024; the other end likewise.
    assert study.binomial_interval(10, 0.5) == (1, 9)
    assert study.binomial_interval(10, 0.5, level=0.9) == (2, 8)


def reference(
    content: bytes, trace: Sequence[int], adu_size: int, *, lite: bool, coverage: int | None
) -> list[tuple[bytes, set[int]]]:
    """Return the ADUs that arrive, each with its damaged places."""
    blocks = iter(trace)
    arrived = []
    for begin in range(0, len(content), adu_size):
        adu = content[begin : begin + adu_size]
        length = HEADERS + len(adu)
        hit: set[int] = set()
        for block in range(-(-length // BLOCK)):
            if next(blocks):
                hit |= set(range(block * BLOCK, min(length, (block + 1) * BLOCK)))
        checked = HEADERS if coverage is None else max(HEADERS, 27 + coverage)
        fatal = range(length if not lite or coverage == 0 else checked)
        if not hit & set(fatal):
            arrived.append((adu, {place - HEADERS for place in hit}))
    return arrived


@pytest.mark.parametrize("seed", range(12))
def test_the_output_is_that_of_the_algorithm_in_a_few_lines(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    adu_size = draw.choice([1, 13, 14, 15, 90, 500])
    content = draw.randbytes(draw.randrange(1, 40 * adu_size))
    elements = [int(draw.random() < 0.1) for _ in range(3_000)]
    coverage = draw.choice([None, 0, 8, 15, 14 + adu_size, 15 + adu_size])
    folder = Folder(tmp_path, content, "".join(map(str, elements)))
    for lite in (False, True):
        words = folder.words("udp-lite" if lite else "udp", adu_size)
        if lite and coverage is not None:
            words += ["--coverage", coverage]
        sent(*words)
        out = folder.out.read_bytes()
        at = 0
        for adu, damaged in reference(content, elements, adu_size, lite=lite, coverage=coverage):
            found = out[at : at + len(adu)]
            different = {place for place in range(len(adu)) if found[place] != adu[place]}
            assert different == damaged
            at += len(adu)
        assert at == len(out)


def test_damage_is_of_the_seed_alone(folder: Folder) -> None:
    def output(*more: object) -> bytes:
        sent(*folder.words(), *more)
        return folder.out.read_bytes()

    first = output()
    assert output() == first
    assert output("--dropped", "zeros") != first
    sent(*folder.words()[:-1], 2)
    other = folder.out.read_bytes()
    assert (len(other), other != first) == (len(first), True)


# Sources of errors


@pytest.mark.parametrize("form", ["digits", "bytes", "records"])
def test_every_form_of_a_trace_says_the_same(folder: Folder, form: str) -> None:
    digits = folder.trace.read_text().replace(" ", "")
    expected = sent(*folder.words())
    assert (expected["damaged_blocks"], expected["block_error_rate"]) == (2, 2 / 60)
    if form == "bytes":
        folder.trace.write_bytes(bytes(int(digit) for digit in digits))
    elif form == "records":
        hits = [place for place, digit in enumerate(digits) if digit == "1"]
        records = [f"at {place} hit" for place in hits]
        folder.trace.write_text("\n".join([*records, "ok 100"]))
    else:
        folder.trace.write_text("# by hand\n" + "\n".join(digits))
    assert sent(*folder.words()) == expected


def test_a_process_draws_what_its_trace_has(folder: Folder) -> None:
    study.generate(BERNOULLI, folder.trace, 100, seed=7)
    words = [*folder.words()[:-1], 7]
    by_trace = sent(*words)
    assert by_trace["damaged_blocks"] > 0
    with_trace = folder.out.read_bytes()
    place = words.index("--trace")
    del words[place : place + 2]
    assert sent(*words, "--errors", BERNOULLI) == by_trace
    assert folder.out.read_bytes() == with_trace
    link = folder.path / "link.toml"
    link.write_text(f'[[hops]]\nname = "radio"\n[hops.uplink]\nerrors = {BERNOULLI}\n')
    for name in ("radio.uplink", "uplink"):
        assert sent(*words, "--errors", f"{link}#{name}") == by_trace
    assert (
        "per packet in the scenario" in wsim(*words, "--errors", f"{link}#uplink").stderr.decode()
    )
    assert sent(*words, "--errors", f"{link}#downlink")["damaged_blocks"] == 0
    trace = f'{{ type = "trace", per = "block", block = "20 ms", file = "{folder.trace}" }}'
    link.write_text(f"[[hops]]\n[hops.uplink]\nerrors = {trace}\n")
    done = wsim(*words, "--errors", f"{link}#uplink", "--json")
    assert (json.loads(done.stdout), done.stderr) == (by_trace, b"")


def test_a_trace_begins_anywhere_and_repeats_if_asked(folder: Folder) -> None:
    folder.trace.write_text("0" * 11 + "1")
    found = sent(*folder.words("udp"), "--repeat")
    assert (found["blocks"], found["damaged_blocks"], found["elements"]) == (60, 5, 60)
    # Every second packet of six blocks has the error at its end, or from element 6 on the others.
    first = folder.out.read_bytes()
    whole = folder.input.read_bytes()
    even = b"".join(whole[at : at + 100] for at in range(0, 1_000, 200))
    odd = b"".join(whole[at : at + 100] for at in range(100, 1_000, 200))
    assert first == even
    for offset in (6, 18):
        sent(*folder.words("udp"), "--repeat", "--offset", offset)
        assert folder.out.read_bytes() == odd
    folder.trace.write_text("1" * 6 + "0" * 60)
    assert sent(*folder.words("udp"), "--offset", 6)["dropped_packets"] == 0


# Codecs


def nal_units(draw: random.Random) -> bytes:
    """Return units with start codes of either length, some with zeros at their end."""

    def unit() -> bytes:
        code = draw.choice([b"\0\0\1", b"\0\0\0\1"])
        payload = bytes(draw.randrange(1, 256) for _ in range(draw.choice([1, 30, 300, 3_000])))
        return code + payload + bytes(draw.randrange(3))

    return b"".join(unit() for _ in range(60))


def pictures(draw: random.Random) -> bytes:
    def unit(third: int) -> bytes:
        return bytes([0, 0, third]) + bytes(draw.randrange(1, 128) for _ in range(500))

    return b"".join(unit(0x80 if number % 9 == 0 else 0x84) for number in range(40))


def obus(draw: random.Random) -> bytes:
    def unit(kind: int, length: int) -> bytes:
        size = bytes([length & 0x7F | 0x80, length >> 7]) if length > 127 else bytes([length])
        return bytes([kind << 3 | 2]) + size + draw.randbytes(length)

    return b"".join(unit(2, 0) + unit(6, draw.randrange(2_000)) for _ in range(40))


def ivf(draw: random.Random) -> bytes:
    head = b"DKIF" + bytes([0, 0, 32, 0]) + b"AV01" + bytes(20)
    frames = [obus(draw) for _ in range(3)]
    return head + b"".join(len(one).to_bytes(4, "little") + bytes(8) + one for one in frames)


STREAMS = {"h264": nal_units, "h265": nal_units, "h263": pictures, "obu": obus, "ivf": ivf}


@pytest.mark.parametrize("adu_size", [64, 1_400])
@pytest.mark.parametrize("kind", STREAMS)
def test_units_of_a_stream_together_are_the_stream(
    kind: str, adu_size: int, tmp_path: Path
) -> None:
    units = "obu" if kind == "ivf" else kind
    content = STREAMS[kind](random.Random(adu_size))
    folder = Folder(tmp_path, content, "0")
    found = sent(*folder.words(adu_size=adu_size), "--repeat", "--units", units)
    assert folder.out.read_bytes() == content
    assert found["packets"] == found["whole_adus"] > len(content) / adu_size
    # With errors, what arrives is whole units, or pieces of at most the size.
    folder.trace.write_text("0" * 29 + "1")
    lost = sent(*folder.words("udp", adu_size), "--repeat", "--units", units, "--dropped", "zeros")
    assert len(folder.out.read_bytes()) == len(content)
    assert 0 < lost["dropped_packets"] < lost["packets"]


@pytest.mark.parametrize(
    ("units", "said"),
    [
        ("h264", "H.264 with start codes (Annex B) begins with 00 00 01 or 00 00 00 01"),
        ("h265", "H.265 with start codes (Annex B) begins with 00 00 01 or 00 00 00 01"),
        ("h263", "begins with a picture start code, 00 00 and 80 to 83"),
        ("obu", "begins with a temporal delimiter (12 00), IVF with DKIF"),
    ],
)
def test_a_video_that_is_none_is_told(folder: Folder, units: str, said: str) -> None:
    folder.input.write_text("this is no video\n" * 50)
    done = wsim(*folder.words(), "--units", units)
    assert done.returncode == 2
    text = done.stderr.decode()
    assert said in text
    assert "it begins with 74 68 69 73 20 69 73 20" in text
    assert f"{folder.input} has no such units as --units {units}" in text
    assert folder.names() == ["input", "trace.txt"]


# Summary and positions


def test_the_summary_says_losses_first_and_the_air_time_of_both_blocks(folder: Folder) -> None:
    done = wsim(*folder.words(), "--dropped", "zeros", "--positions", folder.path / "list.csv")
    assert done.returncode == 0
    # Block 9 is the fourth of the second packet: its bytes 84 to 111, the ADU's from 42 on. Block
    # 19 is the second of the fourth packet: from byte 28 on, which is of the UDP header.
    assert done.stdout.decode() == (
        "loss       10.0000 %: 1 of 10 packets dropped\n"
        "dropped    hit first in PPP 0, IP 0, UDP 1, RTP 0, payload within coverage 0\n"
        "delivered  8 ADUs whole, 1 damaged, with 28 damaged bytes; 1.00 kB of 1.00 kB written\n"
        "blocks     60, 2 with errors: block error rate 3.3333 %\n"
        "air time   1.20 s with 28 bytes in 20 ms (11.2 kbit/s); 1.20 s with the standard's 24 "
        "(9.60 kbit/s)\n"
        "seed       1\n"
    )
    listed = (folder.path / "list.csv").read_text()
    assert listed == "offset_bytes,length_bytes,kind\n142,28,damaged\n300,100,zeros\n"


def test_the_example_of_the_page_prints_what_is_shown(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs/wsim.md").read_text()
    lines, *shown = re.findall(r"^```(?:sh)?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "airpath").symlink_to(find_engine())
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", lines], cwd=tmp_path, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "".join(shown)


def test_a_packet_of_other_headers_and_blocks(folder: Folder) -> None:
    found = sent(*folder.words("udp"), "--headers", "real", "--block-data", 24, "--repeat")
    # 148 bytes in blocks of 24 are seven.
    assert (found["header_bytes"], found["blocks"], found["standard_blocks"]) == (48, 70, 70)
    assert found["air_time_ns"] == found["standard_air_time_ns"] == 70 * 20_000_000


def test_damage_within_a_block_is_a_share_of_it(folder: Folder) -> None:
    folder.trace.write_text("000001" * 10)
    found = sent(*folder.words(adu_size=126), "--errors-within", "0.2", "--repeat")
    # 168 bytes are six full blocks; 20 % of 28 bytes are 6 of the last of each of seven packets,
    # but for the eighth, which has 160 bytes.
    assert found["packets"] == 8
    assert found["damaged_bytes"] in range(7 * 6, 8 * 6 + 1)
    assert found["damaged_adus"] in (7, 8)


# Streams


def test_standard_input_and_output(folder: Folder) -> None:
    sent(*folder.words())
    expected = folder.out.read_bytes()
    words = folder.words()
    words[1] = words[5] = "-"
    done = wsim(*words, given=folder.input.read_bytes())
    assert (done.returncode, done.stdout) == (0, expected)
    assert done.stderr.startswith(b"loss       10.0000 %: 1 of 10")
    assert wsim(*words, "--quiet", given=folder.input.read_bytes()).stderr == b""
    done = wsim(*words, "--positions", "-", given=b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"are both standard output" in done.stderr
    # Devices are written to, not replaced.
    words = folder.words()
    words[5] = "/dev/null"
    assert sent(*words)["output_bytes"] == len(expected)
    assert not Path("/dev/null").is_file()


def feed(pipe: IO[bytes], megabytes: int, pause: float = 0) -> None:
    for _ in range(megabytes):
        pipe.write(bytes(1_000_000))
        time.sleep(pause)


def test_memory_does_not_depend_on_the_length_of_the_input(folder: Folder) -> None:
    words = folder.words(adu_size=1_000)
    words[1], words[5] = "-", "/dev/null"
    process = subprocess.Popen(
        [find_engine(), "wsim", *map(str, words), "--repeat", "--quiet"], stdin=subprocess.PIPE
    )
    assert process.stdin
    feed(process.stdin, 64)
    status = Path(f"/proc/{process.pid}/status").read_text()
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(peak) < 32_000


def test_a_long_simulation_tells_how_far_it_is(folder: Folder) -> None:
    words = folder.words(adu_size=100)
    words[1], words[5] = "-", "/dev/null"
    process = subprocess.Popen(
        [find_engine(), "wsim", *map(str, words), "--repeat", "--quiet"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    feed(process.stdin, 5, 0.6)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"MB sent" in said


# What is wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--coverage", "7"], "--coverage 7 ends within the UDP-Lite header; write 8 to 115"),
        (["--coverage", "116"], "116 is longer than the datagram, 115 bytes with an ADU of 100"),
        (["--coverage", "121", "--headers", "real"], "longer than the datagram, 120 bytes"),
        (["--errors-within", "20"], "`20` is neither `all` nor a share of a block's bytes"),
        (["--errors-within", "0.2", "--trace-unit", "byte"], "--errors-within is about blocks"),
        (["--errors", BERNOULLI], "'--trace <FILE>' cannot be used with '--errors"),
        (["--offset", "60"], "--offset 60 is behind the end of the trace, which has 60 elements"),
        (["--offset", "59"], "needs 60 blocks, TRACE has 60, 1 of them from --offset 59 on"),
        (["--units", "mpeg"], "possible values: fixed, h264, h265, h263, obu"),
        (["--block-data", "0"], "1..=65535"),
        (["--positions", "OUT"], "--positions OUT is the file of --out"),
        (["--positions", "TRACE"], "--positions TRACE is the file of --trace"),
    ],
)
def test_mistakes_in_options_are_told(folder: Folder, words: list[str], said: str) -> None:
    def named(text: str) -> str:
        return text.replace("TRACE", str(folder.trace)).replace("OUT", str(folder.out))

    done = wsim(*folder.words(), *map(named, words))
    assert done.returncode == 2
    assert named(said) in done.stderr.decode()
    assert folder.names() == ["input", "trace.txt"]


@pytest.mark.parametrize(
    ("place", "word", "status", "said"),
    [
        (1, "none", 2, "cannot read none: No such file or directory"),
        (1, ".", 2, "cannot read .: it is a folder; name a file"),
        (3, "none", 2, "cannot read the trace none: No such file or directory"),
        (3, "/dev/null", 2, "/dev/null is no error trace: there is no record in it"),
        (5, "none/output", UNWRITABLE, "cannot write none/output: No such file or directory"),
        (5, ".", UNWRITABLE, "cannot write .: is a directory"),
        (5, "/dev/full", UNWRITABLE, "cannot write /dev/full: No space left on device"),
        (5, "{input}", 2, "--out {input} is the file of --input; name another file"),
        (7, "65501", 2, "an IP packet of 65535 bytes holds an ADU of 65500 at most"),
        (7, "0", 2, "0 is not in 1..="),
        (9, "tcp", 2, "possible values: udp, udp-lite"),
    ],
)
def test_files_that_cannot_be_used_are_told(
    folder: Folder, place: int, word: str, status: int, said: str
) -> None:
    words = folder.words()
    words[place] = word.format(input=folder.input)
    before = folder.input.read_bytes()
    done = wsim(*words)
    assert done.returncode == status, done.stderr
    assert said.format(input=folder.input) in done.stderr.decode()
    assert folder.names() == ["input", "trace.txt"]
    assert folder.input.read_bytes() == before


def test_a_coverage_is_of_udp_lite(folder: Folder) -> None:
    done = wsim(*folder.words("udp"), "--coverage", 20)
    assert done.returncode == 2
    assert b"--coverage belongs to --protocol udp-lite" in done.stderr


def test_errors_that_name_no_link_are_told(folder: Folder) -> None:
    words = folder.words()
    del words[2:4]
    assert "--trace <FILE>" in wsim(*words).stderr.decode()
    link = folder.path / "link.toml"
    link.write_text(f'[[hops]]\nname = "radio"\n[hops.uplink]\nerrors = {BERNOULLI}\n')
    for errors, said in (
        ("bernoulli", "neither a table such as"),
        (f"{link}#core.uplink", "`core.uplink` names no hop of"),
        (f"{link}#radio.up", "up"),
        ("none.toml#uplink", "cannot read the scenario none.toml"),
        ('{ type = "bernouli" }', "bernoulli"),
    ):
        done = wsim(*words, "--errors", errors)
        assert done.returncode == 2
        assert said in done.stderr.decode()


def test_a_failure_leaves_the_old_output(folder: Folder) -> None:
    folder.out.write_text("old")
    folder.trace.write_text("0" * 59)
    listed = folder.path / "list.csv"
    done = wsim(*folder.words(), "--positions", listed)
    assert done.returncode == 2
    assert f"the input needs 60 blocks, {folder.trace} has 59; use a longer trace, or --repeat" in (
        done.stderr.decode()
    )
    assert folder.out.read_text() == "old"
    done = wsim(*folder.words(), "--repeat", "--positions", "/dev/full")
    assert done.returncode == UNWRITABLE
    assert "cannot write /dev/full: No space left on device" in done.stderr.decode()
    assert folder.out.read_text() == "old"
    assert folder.names() == ["input", "output", "trace.txt"]


def is_writing(process: int, folder: Folder) -> bool:
    """Say whether a process has a file open in the folder that it does not read."""
    with contextlib.suppress(FileNotFoundError):  # a file that was closed between
        files = [file.readlink() for file in Path(f"/proc/{process}/fd").iterdir()]
        return any(file.is_relative_to(folder.path) for file in files)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing_behind(folder: Folder, number: signal.Signals) -> None:
    words = folder.words()
    words[1] = "-"
    folder.out.write_text("old")
    process = subprocess.Popen(
        [find_engine(), "wsim", *map(str, words), "--repeat"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not is_writing(process.pid, folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_writing(process.pid, folder)
    process.send_signal(number)
    ended = process.wait(timeout=30)
    _, said = process.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert ended == -number
    else:
        assert ended == 128 + number
        assert b"no output file was changed" in said
    assert folder.names() == ["input", "output", "trace.txt"]
    assert folder.out.read_text() == "old"


def test_a_full_disk_leaves_nothing_behind(folder: Folder) -> None:
    """A limit of the length of files stands for a disk that is full."""
    folder.input.write_bytes(bytes(3_000_000))
    command = [find_engine(), "wsim", *map(str, folder.words()), "--repeat"]

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    done = subprocess.run(command, capture_output=True, timeout=60, check=False, preexec_fn=limited)
    assert done.returncode == UNWRITABLE
    assert f"cannot write {folder.out}: File too large" in done.stderr.decode()
    assert folder.names() == ["input", "trace.txt"]


def test_files_without_permission_are_told() -> None:
    """Try as nobody where the tests are root's, which may do everything."""
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(dir=os.environ["TMPDIR"]) as name:
        folder = Folder(Path(name), b"content")
        folder.path.chmod(0o555)
        folder.input.chmod(0)
        done = wsim(*folder.words(), "--repeat", user=user)
        assert done.returncode == 2
        assert f"cannot read {folder.input}: Permission denied" in done.stderr.decode()
        folder.input.chmod(0o444)
        done = wsim(*folder.words(), "--repeat", user=user)
        assert done.returncode == UNWRITABLE
        assert f"cannot write {folder.out}: Permission denied" in done.stderr.decode()
        folder.path.chmod(0o755)
