# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Campaigns for some seconds each, with fixed seeds: kills, soak, the control socket."""

from __future__ import annotations

import os

import pytest

from campaigns import control, kills, soak


@pytest.mark.alone
def test_killed_runs_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ("exec", "server", "shell", "replications", "sim")
    campaign = kills.run(1, 16, kinds=kinds, jobs=4)
    assert not campaign.failures, capsys.readouterr().out
    assert campaign.tried == 16


@pytest.mark.alone
def test_a_killed_set_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    campaign = kills.run(2, 1, kinds=("run",), jobs=1)
    assert not campaign.failures, capsys.readouterr().out


@pytest.mark.alone
@pytest.mark.parametrize("port", ["packet", "tun"])
def test_a_link_bears_hostile_packets(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("a soak sends frames of its own, which only root may")
    if port == "tun" and not os.access("/dev/net/tun", os.W_OK):
        pytest.skip("there is no /dev/net/tun")
    campaign, _ = soak.run(1, 4, port=port, flows=10)
    assert not campaign.failures, capsys.readouterr().out
    assert campaign.tried > 100


def test_mutated_requests_at_the_control_socket(capsys: pytest.CaptureFixture[str]) -> None:
    campaign, _ = control.run(1, 300)
    assert not campaign.failures, capsys.readouterr().out
    assert campaign.tried == 300
