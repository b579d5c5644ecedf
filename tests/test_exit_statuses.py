# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Exit statuses: declared once, documented from there, the same for the same mistake everywhere."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from airpath import status_table
from airpath.app import run as run_app
from airpath.engine import find_engine
from airpath.facts import EXIT_STATUSES
from airpath.routing import is_of_python
from airpath.shells.shown import all_commands
from airpath.status import LACKING, UNDONE, UNWRITABLE, USAGE, status_of
from experiments import SMALL
from synthetic import write_run

ROOT = Path(__file__).resolve().parent.parent

WSIM = ("--adu-size", "100", "--protocol", "udp", "--trace", "errors.txt")
CBR = ("--workload", "cbr rate='64 kbit/s' size=200 from=client", "--duration", "1 s")

NAMED: dict[str, tuple[str, ...] | None] = {
    "exec": ("--scenario", "{}", "--", "true"),
    "shell": ("--scenario", "{}", "--", "true"),
    "gateway": ("--client-interface", "{}", "--server-interface", "{}2"),
    "relay": ("/dev/{}", "/dev/{}2"),
    "sim": ("--scenario", "{}", *CBR),
    "run": ("{}",),
    "plan": ("{}",),
    "results": ("{}",),
    "profiles": None,
    "profiles show": ("{}",),
    "check": ("{}",),
    "schema": None,
    "facts": None,
    "log": ("{}",),
    "send": None,
    "recv": None,
    "record": ("--from", "{}"),
    "runs": None,
    "state": ("near", "--run", "{}"),
    "set": ("radio.rate=1 Mbit/s", "--run", "{}"),
    "drive": ("{}.csv",),
    "replay": ("{}",),
    "trace": None,
    "trace convert": ("{}", "out.csv"),
    "trace show": ("{}",),
    "trace generate": ("{}", "out.txt"),
    "trace plot": ("{}", "--out", "out.png"),
    "trace fit": ("{}",),
    "trace send": None,
    "trace capture": ("./{}", "out.txt"),
    "fading": None,
    "fading generate": ("{}.toml", "out.csv"),
    "fading show": ("{}.toml",),
    "fading convert": ("{}", "out.csv"),
    "modes": ("{}",),
    "wsim": ("--input", "{}", "--out", "out", *WSIM),
    "timing": None,
    "timing calibrate": None,
    "timing host": None,
    "timing methods": None,
    "timing sync": None,
    "timing correct": ("run", "--by", "{}", "--out", "out"),
    "timing plot": ("{}",),
    "timing table": ("{}",),
    "warp": None,
    "warp setup": None,
    "analyse": ("{}",),
    "plot": ("{}",),
    "report": ("{}",),
    "ui": None,
    "video": None,
    "video make": None,
    "video send": ("{}",),
    "video receive": None,
    "video compare": ("{}", "clip.h264"),
    "wireshark": None,
    "completions": ("{}",),
    "man": None,
}
"""Words of each command that name something to read, or a thing; None: it reads nothing."""

BAD_VALUES: dict[str, tuple[str, ...] | None] = {
    "exec": ("--rate", "fast", "--", "true"),
    "shell": ("--delay", "soon", "--", "true"),
    "gateway": ("--client-interface", "lo", "--server-interface", "lo"),
    "relay": ("pty", "pty", "--delay", "soon"),
    "sim": ("--workload", "tpc bytes=5"),
    "run": ("small.toml", "--jobs", "0"),
    "results": ("run", "--verdict", "good"),
    "log": ("run", "--from", "soon"),
    "send": ("server", "--bytes", "many"),
    "recv": ("--port", "http"),
    "record": ("--to", "server", "--out", "out", "--duration", "soon"),
    "state": ("",),
    "set": ("radio.rate",),
    "drive": ("errors.txt", "--direction", "sideways"),
    "trace convert": ("errors.txt", "out.csv", "--to", "gold"),
    "trace show": ("errors.txt", "--bin", "soon"),
    "trace generate": ("office", "out.txt", "--seed", "none"),
    "trace plot": ("errors.txt", "--out", "out.gif"),
    "trace fit": ("errors.txt", "--held-out", "7"),
    "trace send": ("127.0.0.1", "--port", "70000"),
    "trace capture": ("eth0", "out.txt", "--packets", "many"),
    "fading generate": ("errors.txt", "out.csv", "--slots", "none"),
    "fading show": ("errors.txt", "--out", "out.gif"),
    "modes": ("qam", "--snr", "500"),
    "wsim": ("--input", "errors.txt", "--out", "out", "--adu-size", "0", "--trace", "errors.txt"),
    "timing calibrate": ("--bound", "0 s"),
    "timing sync": ("server", "--interval", "5 us"),
    "warp setup": ("--jobs", "none"),
    "analyse": ("run", "--metrics", "godput"),
    "plot": ("run", "--only", "nonesuch"),
    "report": ("run", "--pictures", "-1"),
    "video make": ("--fps", "0"),
    "video send": ("clip.h264", "--to", "server"),
    "video receive": ("--listen", "5004x"),
    "video compare": ("clip.h264", "clip.h264", "--fps", "0"),
    "completions": ("powershell",),
}

WRITING: dict[str, tuple[str, ...] | None] = {
    "exec": ("--out", "{}", "--", "true"),
    "shell": ("--out", "{}", "--", "true"),
    "sim": ("--out", "{}", *CBR),
    "run": ("small.toml", "--out", "{}"),
    "trace generate": ("office", "{}"),
    "wsim": ("--input", "errors.txt", "--out", "{}", *WSIM),
    "plot": ("run", "--out", "{}"),
    "report": ("run", "--out", "{}"),
    "man": ("{}",),
}
"""Commands that write where they are told to."""


def carry_out(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command, Python's in this process; return its exit status and what it printed."""
    if not is_of_python(list(words)):
        done = subprocess.run(
            [find_engine(), *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, done.stdout + done.stderr
    monkeypatch.setattr("airpath.interrupt.arm", lambda: None)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_app(list(words))
    return status, out.getvalue() + err.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "errors.txt").write_text("ok\nlost\nok\n" * 5)
    (tmp_path / "clip.h264").write_bytes(b"\0\0\0\1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.toml").mkdir()
    write_run(tmp_path / "run", seed=1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def try_all(
    table: dict[str, tuple[str, ...] | None],
    named: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Try each command of a table, whose words have a place for ``named``."""
    wrong = []
    for command, words in table.items():
        if words is None:
            continue
        line = (*command.split(), *(word.format(named) for word in words))
        found, said = carry_out(line, monkeypatch)
        if found != status or not said.strip() or "Errno" in said or "Traceback" in said:
            wrong.append(f"airpath {' '.join(line)}: {found}: {said}")
    assert not wrong, "\n".join(wrong)


def test_every_command_is_tried() -> None:
    assert sorted(NAMED) == sorted(all_commands())


def test_what_is_named_and_not_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(place.iterdir())
    try_all(NAMED, "nowhere", USAGE, monkeypatch)
    assert sorted(place.iterdir()) == before


def test_what_is_named_and_cannot_be_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(place.iterdir())
    try_all(NAMED, "folder", USAGE, monkeypatch)
    assert sorted(place.iterdir()) == before


def test_an_option_that_there_is_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.is_dir()
    # These become a program of its own, which may not be built.
    commands = [name for name in NAMED if name not in ("timing", "timing methods")]
    try_all(dict.fromkeys(commands, ("--no-such-option",)), "", USAGE, monkeypatch)


def test_a_bad_value(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(place.iterdir())
    try_all(BAD_VALUES, "", USAGE, monkeypatch)
    assert sorted(place.iterdir()) == before


def test_output_that_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(place.iterdir())
    # Nobody can make anything below a file, root neither.
    try_all(WRITING, "clip.h264/out", UNWRITABLE, monkeypatch)
    assert sorted(place.iterdir()) == before


def test_a_file_without_permission() -> None:
    """As nobody where the tests are root's, who may read everything."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "closed.toml").write_text("[[hops]]\n")
        (place / "closed.toml").chmod(0)
        words = [find_engine(), "sim", "--scenario", "closed.toml", *CBR]
        if os.geteuid() == 0:
            words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=place)
    assert done.returncode == USAGE, done.stderr
    assert "closed.toml" in done.stderr
    assert "Permission denied" in done.stderr


def test_statuses_have_one_declaration() -> None:
    text = (ROOT / status_table.PAGE).read_text()
    assert text == status_table.renewed(text), "python -m airpath.key_tables"
    for status in EXIT_STATUSES.values():
        assert f"\n| {status} | " in text


def test_each_kind_of_failure_has_its_status() -> None:
    from airpath.engine import EngineError
    from airpath.extras import MissingExtraError
    from airpath.files import UnwritableError

    assert status_of(FileNotFoundError(2, "No such file or directory", "x")) == USAGE
    assert status_of(UnwritableError(13, "Permission denied", "x")) == UNWRITABLE
    assert status_of(OSError(28, "No space left on device", "x")) == UNWRITABLE
    assert status_of(EngineError("there is none")) == LACKING
    assert status_of(MissingExtraError("needs polars")) == LACKING
    assert EXIT_STATUSES["undone"] == UNDONE
