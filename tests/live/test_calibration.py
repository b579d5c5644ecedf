# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Calibration: measured over a link of its own, stored for host and rights, read by runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from live.harness import Airpath, Result, User

USAGE = 2
UNWRITABLE = 122
DISTURBED = 1
SECONDS = 2


def calibrate(airpath: Airpath, user: User, *options: str) -> Result:
    # Other tests beside this one disturb it.
    how = () if "--dry-run" in options else ("--force", "--replace")
    words = ("timing", "calibrate", "--seconds", str(SECONDS), *how, *options)
    return airpath.run(*words, user=user)


def stored(airpath: Airpath, user: User) -> Path:
    """Calibrate, and return the only file."""
    airpath.folder("data")
    result = calibrate(airpath, user).check()
    (path,) = airpath.work.glob("data/airpath/calibration/*")
    assert f"stored: {path}" in result.out
    return path


def run(airpath: Airpath, user: User, *options: str) -> tuple[Result, dict[str, Any]]:
    """Run something short, and return what the manifest says of its settings."""
    out = airpath.path("run")
    words = ("exec", "--delay", "1 ms", "--out", str(out), *options, "--")
    result = airpath.run(*words, "sleep", "0.1", user=user).check()
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert isinstance(settings, dict)
    return result, settings


def test_a_run_goes_by_what_was_stored(airpath: Airpath, user: User) -> None:
    path = stored(airpath, user)
    calibration = json.loads(path.read_text())
    rights = "root" if user.name == "root" else "user"
    assert path.name.endswith(f"-{rights}.json")
    assert calibration["measured"]["packets"] > 0
    result, settings = run(airpath, user)
    assert "calibration" not in result.err
    assert settings["calibration"]["file"] == str(path)
    assert settings["calibration"]["measured_unix_s"] == calibration["measured_unix_s"]
    course = settings["spin_margin"]
    assert course["start_ns"] == calibration["margin_ns"]
    assert course["least_ns"] <= course["end_ns"] <= course["most_ns"]
    assert 0 <= course["watching_share"] <= 1


def test_what_is_asked_for_goes_first(airpath: Airpath, rootless: User) -> None:
    path = stored(airpath, rootless)
    _, settings = run(airpath, rootless, "--spin", "auto:1%,50us")
    assert settings["spin"] == "auto:1%,50 us"
    assert settings["calibration"]["file"] == str(path)


def test_a_loop_can_poll_all_the_time(airpath: Airpath, user: User) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor: polling is refused")
    _, settings = run(airpath, user, "--spin", "always")
    assert settings["spin"] == "always"
    # Nine tenths on a quiet machine; a busy one takes most of them away.
    assert 0 < settings["spin_margin"]["watching_share"] <= 1


def test_polling_is_refused_where_it_leaves_no_processor(airpath: Airpath, user: User) -> None:
    words = ("exec", "--spin", "always", "--loops", "64", "--quiet", "--", "true")
    result = airpath.run(*words, user=user)
    assert result.status == USAGE
    assert "leaves none for the programs" in result.err
    assert "use --spin auto, or fewer --loops" in result.err


@pytest.mark.parametrize("named", ["none", "file"])
def test_a_calibration_can_be_named_or_refused(
    airpath: Airpath, rootless: User, named: str
) -> None:
    path = stored(airpath, rootless)
    elsewhere = airpath.file("mine.json", path.read_text())
    path.unlink()
    option = str(elsewhere) if named == "file" else named
    _, settings = run(airpath, rootless, "--calibration", option)
    if named == "file":
        assert settings["calibration"]["file"] == str(elsewhere)
    else:
        assert settings["calibration"] == "none: switched off"


def test_without_any_a_run_says_so_in_its_record_only(airpath: Airpath, rootless: User) -> None:
    result, settings = run(airpath, rootless)
    assert "calibrat" not in result.err
    assert "airpath timing calibrate" in settings["calibration"]


@pytest.mark.parametrize("damage", ["stale", "cut"])
def test_what_does_not_fit_is_named_and_ignored(
    airpath: Airpath, rootless: User, damage: str
) -> None:
    path = stored(airpath, rootless)
    text = path.read_text()
    kernel = os.uname().release
    changed = text.replace(f'"{kernel}"', '"1.0"') if damage == "stale" else text[: len(text) // 2]
    path.chmod(0o666)
    path.write_text(changed)
    result, settings = run(airpath, rootless)
    result.check()
    told = f"kernel 1.0, now {kernel}" if damage == "stale" else "is damaged"
    assert told in result.err
    assert str(path) in result.err
    assert "run `airpath timing calibrate`" in result.err
    assert settings["calibration"].startswith("none: ")
    # Told once, however many replications there are.
    again = airpath.run("exec", "--replications", "2", "--", "true", user=rootless).check()
    assert again.err.count(told) == 1


def test_a_named_file_that_is_none_stops_the_run(airpath: Airpath, rootless: User) -> None:
    path = airpath.file("wrong.json", "{}")
    for named, told in ((path, "no format_version"), (path / "x", "cannot be read")):
        result = airpath.run("exec", "--calibration", str(named), "--", "true", user=rootless)
        assert str(named) in result.check(USAGE).err
        assert told in result.err


def test_a_place_that_cannot_be_written_is_told_after_the_table(
    airpath: Airpath, rootless: User
) -> None:
    airpath.file("taken", "")
    environment = {"XDG_DATA_HOME": str(airpath.path("taken"))}
    result = airpath.run(
        "timing", "calibrate", "--seconds", "2", "--force", user=rootless, environment=environment
    )
    result.check(UNWRITABLE)
    assert "selected:" in result.out
    assert "cannot be stored" in result.err
    assert "XDG_DATA_HOME" in result.err


def test_check_tells_whether_there_is_one(airpath: Airpath, rootless: User) -> None:
    check = ("timing", "calibrate", "--check")
    nothing = airpath.run(*check, user=rootless).check(1)
    assert "airpath timing calibrate" in nothing.err
    path = stored(airpath, rootless)
    assert airpath.run(*check, user=rootless).check().out == f"{path}\n"


def test_a_dry_run_stores_nothing_and_json_holds_everything(
    airpath: Airpath, rootless: User
) -> None:
    airpath.folder("data")
    options = ("--dry-run", "--json", "--bound", "5 s", "--budget", "2%")
    report = json.loads(calibrate(airpath, rootless, *options).check().out)
    assert not list(airpath.work.glob("data/*"))
    assert report["file"] is None
    # Everybody is in time within 5 s, so that nothing is watched for.
    assert report["meets"] is True
    assert report["calibration"]["margin_ns"] == 0
    assert report["calibration"]["budget_ppm"] == 20_000
    steps = {candidate["step"] for candidate in report["candidates"]}
    assert {"policy", "margin", "auto"} <= steps
    assert all(candidate["measured"]["packets"] > 0 for candidate in report["candidates"])


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (("--bound", "20"), "no unit"),
        (("--budget", "3"), "write for example 3%"),
        (("--budget", "200%"), "more than a core"),
        (("--seconds", "0"), "2..=600"),
    ],
)
def test_bad_options_are_explained(
    airpath: Airpath, rootless: User, options: tuple[str, ...], fragment: str
) -> None:
    result = airpath.run("timing", "calibrate", *options, user=rootless).check(USAGE)
    assert fragment in result.err


def test_a_disturbed_machine_is_not_calibrated(airpath: Airpath, rootless: User) -> None:
    airpath.folder("data")
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(len(os.sched_getaffinity(0)))
    ]
    try:
        words = ("timing", "calibrate", "--seconds", "2")
        refused = airpath.run(*words, user=rootless).check(DISTURBED)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert "the measurement was disturbed: " in refused.err
    assert re.search(r"other programs use \d+ % of the processors", refused.err)
    assert "nothing was measured or stored" in refused.err
    assert "--force" in refused.err
    assert not list(airpath.work.glob("data/airpath/calibration/*"))


def test_a_calibration_is_forgotten(airpath: Airpath, rootless: User) -> None:
    path = stored(airpath, rootless)
    forget = ("timing", "calibrate", "--forget")
    assert airpath.run(*forget, user=rootless).check().out == f"forgotten: {path}\n"
    assert not path.exists()
    again = airpath.run(*forget, user=rootless).check()
    assert "no calibration of this machine" in again.err


def test_the_better_calibration_is_kept(airpath: Airpath, rootless: User) -> None:
    path = stored(airpath, rootless)
    calibration = json.loads(path.read_text())
    # So early that nothing is better, and undisturbed.
    calibration["measured"]["p99_ns"] = 1
    calibration.pop("disturbed", None)
    path.chmod(0o666)
    path.write_text(json.dumps(calibration))
    words = ("timing", "calibrate", "--seconds", "2", "--force")
    kept = airpath.run(*words, user=rootless).check()
    assert f"the stored calibration {path} is kept: it " in kept.err
    assert "--replace" in kept.err
    assert json.loads(path.read_text()) == calibration
    calibrate(airpath, rootless).check()
    assert json.loads(path.read_text())["measured"]["p99_ns"] > 1
