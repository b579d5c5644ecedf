# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""PPP with Debian's pppd, in a kernel that has PPP."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run

if TYPE_CHECKING:
    from warp.conftest import Warp

PEER = Path(__file__).parent.parent / "live" / "ppp_peer.py"
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


@pytest.mark.parametrize("method", ["pap", "chap"])
def test_pppd_asks_who_we_are(warp: Warp, method: str) -> None:
    # The guest has mounts of its own: nothing of the host's /etc changes.
    theirs = warp.airpath.file("theirs", "mobile gate s3cret *\n")
    server = (
        f"mount --bind {theirs} /etc/ppp/{method}-secrets && exec {PPPD} $AIRPATH_PPP_LINE "
        f"nodetach auth require-{method} name gate local"
    )
    secrets = warp.airpath.file("secrets", SECRETS)
    line = ("--server-ppp", "pty", "--server", f"sh -c '{server}'")
    options = f"secrets={secrets}, user=mobile"
    warp.run("--ppp", options, *line, "--", "ping", "-c", "2", "server").check()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_between_pppd_and_an_end_wedges_neither(warp: Warp, seed: int) -> None:
    noise = warp.airpath.file("noise", "")
    server = (
        f"{sys.executable} {PEER} noisy $AIRPATH_PPP_LINE {noise} {seed} -- "
        f"{PPPD} @ nodetach noauth local passive persist maxfail 0 lcp-max-configure 100"
    )
    # One byte of a hundred is damaged, from the first one on. The client starts when IPv4 is open.
    pings = "ping -c 200 -i 0.1 -W 1 -q server"
    client = f"{pings}; rm {noise}; sleep 30; exec ping -c 20 -i 0.1 server"
    line = ("--server-ppp", "pty", "--ppp", "timeout=600 s", "--server", server)
    result = warp.run("--delay", "5 ms", *line, "--", "sh", "-c", client).check()
    noisy, quiet = re.findall(r"(\d+) packets transmitted, (\d+) received", result.out)
    assert 0 < int(noisy[1]) < int(noisy[0]), "noise that does something"
    assert quiet == ("20", "20")
