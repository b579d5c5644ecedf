# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The fixture of pytest in real time: both ends, exit status, output, metrics, what is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airpath.testing import Link, LinkError, NotTrustedError
from airpath.testing.marks import read
from test_pytest_plugin import run_tests

TESTS = """
import sys

SERVER = [sys.executable, "-m", "http.server", "8000"]
GET = "curl -4 -s -o /dev/null -w '%{http_code}' http://server:8000/; echo $NAME >&2; exit $STATUS"

@pytest.mark.airpath(rate="10 Mbit/s", delay="5 ms")
@pytest.mark.parametrize("status", [0, 3])
def test_status(airpath_link, status):
    outcome = airpath_link.run(
        GET, server=SERVER, environment={"STATUS": str(status), "NAME": "value"}
    )
    assert outcome.output == "200"
    assert outcome.errors == "value\\n"
    assert "GET / HTTP/1.1" in outcome.server_output
    assert outcome.metric("goodput/downlink") > 0
    assert outcome.metric("transfer_time/downlink") > 0.01
    outcome.check()
"""


def test_both_ends_are_told_and_failures_kept(tmp_path: Path) -> None:
    done = run_tests(tmp_path, TESTS, "--airpath-results", "kept")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "the client's command ended with exit status 3: value" in done.stdout
    section = done.stdout.partition("- airpath -")[2]
    found = re.search(r"^files   (.*)$", section, re.MULTILINE)
    assert found
    folder = Path(found[1])
    assert folder.is_relative_to(tmp_path / "kept")
    assert (folder / "run.json").is_file()
    assert "ended   with exit status 3 after" in section
    assert "verdict " in section
    assert "dropped uplink none, downlink none" in section
    assert "repeat  airpath exec --rate '10 Mbit/s' --delay '5 ms' --seed 1" in section
    assert len([path for path in (tmp_path / "kept").iterdir() if path.is_dir()]) == 1


def link(folder: Path, **keys: object) -> Link:
    """Return a link as the fixture makes it."""
    return Link(read([((), keys)], folder), "live", folder)


def test_a_time_limit_ends_the_client(tmp_path: Path) -> None:
    limited = link(tmp_path, rate="1 Mbit/s", time_limit="1 s")
    outcome = limited.run("echo begun; sleep 60; echo over")
    assert outcome.timed_out
    assert outcome.output == "begun\n"
    with pytest.raises(AssertionError, match=r"was not over after 1 s: begun"):
        outcome.check()
    own = link(tmp_path, rate="1 Mbit/s").run("exit 124")
    assert (own.status, own.timed_out) == (124, False)


def test_what_the_engine_refuses_is_an_error_with_its_message(tmp_path: Path) -> None:
    plain = link(tmp_path, rate="1 Mbit/s")
    with pytest.raises(LinkError, match=r"ended before it was ready.*(?s:.*)--- server\nno port"):
        plain.run("true", server="echo no port; exit 4")
    assert plain.run(["sh", "-c", "exit 125"]).status == 125
    with pytest.raises(LinkError, match="there is no user `alice`"):
        plain.run("true", users={"alice": "true"})
    assert len(plain.outcomes) == 1


def test_strict_takes_no_run_that_tested_nothing(tmp_path: Path) -> None:
    strict = link(tmp_path, rate="1 Mbit/s", strict=True)
    with pytest.raises(NotTrustedError, match=r"the verdict is .*no packet entered"):
        strict.run("true")
    assert len(strict.outcomes) == 1
