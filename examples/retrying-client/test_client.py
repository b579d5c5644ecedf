# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the client behind two links, in virtual time.

`pytest examples/retrying-client`: the client passes on Wi-Fi. On the train it gives up within the
tunnel, and its test fails; with pauses that double it arrives behind the tunnel.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airpath.testing import Link, Outcome

HERE = Path(__file__).parent
WIFI = pytest.param(id="wifi", marks=pytest.mark.airpath(profile="wifi-good"))
TRAIN = pytest.param(id="train", marks=pytest.mark.airpath(scenario="train.toml"))

pytestmark = pytest.mark.airpath(clock="warp", time_limit="60 s")


def fetch(link: Link, *options: str) -> Outcome:
    """Run the client behind a link."""
    client: list[str | Path] = [sys.executable, HERE / "client.py", "http://server:8000/", *options]
    return link.run(client, server=[sys.executable, HERE / "server.py", "8000"])


@pytest.mark.parametrize((), [WIFI, TRAIN])
def test_the_page_arrives(airpath_link: Link) -> None:
    """The client as it is: enough for Wi-Fi, not for a tunnel."""
    outcome = fetch(airpath_link).check()
    assert outcome.output.startswith("300000 bytes")


@pytest.mark.airpath(scenario="train.toml")
def test_a_patient_client_arrives_behind_the_tunnel(airpath_link: Link) -> None:
    """The client with more attempts and longer pauses."""
    outcome = fetch(airpath_link, "--attempts", "8", "--factor", "2").check()
    assert outcome.output.startswith("300000 bytes")
    assert 8 < outcome.duration_s < 20
