# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""PPP with Debian's pppd, in a kernel that has PPP."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run

if TYPE_CHECKING:
    from warp.conftest import Warp

PPPD = shutil.which("pppd", path="/usr/sbin:/sbin:/usr/bin")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="pppd needs root"),
    pytest.mark.skipif(PPPD is None, reason="pppd is not installed (Debian package ppp)"),
]


def times_ms(out: str) -> list[float]:
    """Return the round-trip times that ping printed."""
    return [float(time) for time in re.findall(r"time=([\d.]+) ms", out)]


def test_pppd_is_the_server(warp: Warp) -> None:
    out = warp.airpath.path("run")
    server = f"{PPPD} $AIRPATH_PPP_LINE nodetach noauth local"
    line = ("--server-ppp", "pty", "--server", server)
    result = warp.run(
        *("--delay", "50 ms", *line, "--out", out, "--", "ping", "-c", "5", "server")
    ).check()
    times = times_ms(result.out)
    assert len(times) == 5
    assert 100 <= min(times) <= max(times) < 110
    run = load_run(out)
    assert run.manifest["status"] == "finished"
    assert run.path_events("delivered").height >= 10


def test_pppd_is_the_client_and_sends_tcp(warp: Warp) -> None:
    script = (
        f"{PPPD} $AIRPATH_PPP_LINE nodetach noauth local defaultroute >/dev/null & "
        "for i in $(seq 50); do ping -c 1 -W 1 -q server >/dev/null && break; sleep 0.2; done; "
        f"{warp.airpath.command} send server -n 50kB; status=$?; kill $!; wait; exit $status"
    )
    line = ("--client-ppp", "pty", "--server", f"{warp.airpath.command} recv --once")
    result = warp.run("--delay", "20 ms", "--rate", "1 Mbit/s", *line, "--", "sh", "-c", script)
    result.check()


def test_pppd_is_given_the_addresses_and_the_mru_that_were_asked_for(warp: Warp) -> None:
    server = (
        f"{PPPD} $AIRPATH_PPP_LINE nodetach noauth local mru 600 asyncmap 0x000a0000 defaultroute"
    )
    options = "address=192.168.7.1, peer=192.168.7.2, accm=0x000a0000, dns=192.168.7.9, ipv6=off"
    line = ("--server-ppp", "pty", "--ppp", options, "--mtu", "600", "--server", server)
    result = warp.run(*line, "--", "ping", "-c", "2", "-s", "500", "server").check()
    assert "the peer is 192.168.7.2, IPv4" in result.err
    assert "PING server (192.168.7.2)" in result.out


SECRETS = "mobile s3cret\n"


@pytest.mark.parametrize("method", ["pap", "chap"])
def test_pppd_says_who_it_is(warp: Warp, method: str) -> None:
    server = f"{PPPD} $AIRPATH_PPP_LINE nodetach noauth local user mobile password s3cret"
    secrets = warp.airpath.file("secrets", SECRETS)
    line = ("--server-ppp", "pty", "--server", server)
    options = f"secrets={secrets}, auth={method}"
    warp.run("--ppp", options, *line, "--", "ping", "-c", "2", "server").check()
    wrong = warp.airpath.file("wrong", "mobile other\n")
    result = warp.run(
        "--ppp", f"secrets={wrong}, auth={method}", *line, "--", "ping", "-c", "2", "server"
    ).check(125)
    assert "not among the `secrets`" in result.err or "server's command ended" in result.err
