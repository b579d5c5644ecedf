"""What is compared: clocks, TCPs, and whether acknowledgements meet errors."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent.parent
SIZE_BYTES = 102_400
PORT = 5001

Clock = Literal["live", "warp", "virtual"]
CLOCKS: tuple[Clock, ...] = ("live", "warp", "virtual")

NO_TIMESTAMPS = ("--sysctl", "net.ipv4.tcp_timestamps=0")
LIKE_2001 = (
    *NO_TIMESTAMPS,
    # Loss found by time (RACK, RFC 8985), tail loss probes and spurious-timeout detection (F-RTO,
    # RFC 5682) are all younger than Linux 2.4.0, whose first window was 2 segments.
    *("--sysctl", "net.ipv4.tcp_recovery=0"),
    *("--sysctl", "net.ipv4.tcp_early_retrans=0"),
    *("--sysctl", "net.ipv4.tcp_frto=0"),
    *("--initial-window", "2"),
)
LIKE_2001_NO_SACK = (
    *LIKE_2001,
    *("--sysctl", "net.ipv4.tcp_sack=0"),
    *("--sysctl", "net.ipv4.tcp_dsack=0"),
)


@dataclass(frozen=True)
class Kernel:
    """The real TCP of a kernel at both ends, and how it is set."""

    name: str
    text: str
    congestion_control: str | None
    """None: the kernel's default."""
    options: tuple[str, ...] = ()
    """Options of both programs of transfer.py."""

    def command(
        self, common: list[str], clock: Clock, client_options: Sequence[str] = ()
    ) -> list[str]:
        """Return the engine's arguments, ``common`` among them."""
        program = [sys.executable, str(HERE / "seawind_case" / "transfer.py")]
        ends = ["--bytes", str(SIZE_BYTES), *self.options]
        command = ["exec", *common]
        if clock != "live":
            command += ["--clock", clock]
        if self.congestion_control:
            command += ["--cc", self.congestion_control]
        # At 9600 bit/s a packet takes 250 ms: no need to watch the clock for microseconds.
        command += ["--spin", "off"]
        command += ["--server", shlex.join([*program, "send", str(PORT), *ends])]
        client = [*program, "receive", "server", str(PORT), *ends, *client_options]
        return [*command, "--", *client]


@dataclass(frozen=True)
class Endpoint:
    """A small stack in the emulator's own process at both ends, for virtual time."""

    name: str
    text: str
    workload: str
    """Kind and keys, without the amount of data."""
    options: tuple[str, ...] = ()
    """Further options of ``airpath sim``."""

    def command(
        self, common: list[str], clock: Clock, client_options: Sequence[str] = ()
    ) -> list[str]:
        """Return the engine's arguments, ``common`` among them; there is no client program."""
        workload = f"{self.workload} bytes={SIZE_BYTES} from=server"
        return ["sim", *common, *self.options, "--workload", workload]


KERNELS = (
    Kernel("reno", "Reno", "reno", NO_TIMESTAMPS),
    Kernel("reno-like-2001", "Reno as in 2001", "reno", LIKE_2001),
    Kernel("reno-like-2001-no-sack", "the same without SACK", "reno", LIKE_2001_NO_SACK),
    Kernel("cubic", "CUBIC", "cubic", NO_TIMESTAMPS),
    Kernel("defaults", "the kernel's defaults", None),
)

ENDPOINTS = (
    Endpoint("smoltcp-reno", "smoltcp, Reno", "tcp cc=reno"),
    Endpoint("smoltcp-cubic", "smoltcp, CUBIC", "tcp cc=cubic"),
    # QUIC needs packets of 1228 bytes at least; 1280 is the smallest MTU of IPv6.
    Endpoint("quic-cubic", "QUIC (quinn), CUBIC, MTU 1280", "quic cc=cubic", ("--mtu", "1280")),
)

SCENARIOS = {
    "errors-both-ways": HERE / "scenario.toml",
    "clean-acks": HERE / "scenario-clean-acks.toml",
}


@dataclass(frozen=True)
class Variant:
    """One set of replications."""

    ends: Kernel | Endpoint
    acknowledgements: str
    """A key of ``SCENARIOS``."""

    clock: Clock = "live"

    @property
    def name(self) -> str:
        """The name of its folder, and of its table in expected.toml."""
        return f"{self.ends.name}_{self.acknowledgements}"

    def command(
        self,
        airpath: Path,
        out: Path | None,
        replications: int,
        jobs: int,
        seed: int,
        client_options: Sequence[str] = (),
    ) -> list[str]:
        """Return the command that runs all replications into ``out``, or without any files."""
        common = ["--scenario", str(SCENARIOS[self.acknowledgements]), "--seed", str(seed)]
        common += ["--replications", str(replications), "--jobs", str(jobs)]
        common += ["--out", str(out)] if out else ["--log", "none"]
        return [str(airpath), *self.ends.command(common, self.clock, client_options)]


def variants(clock: Clock) -> tuple[Variant, ...]:
    """Return all variants that run by a clock."""
    all_ends = ENDPOINTS if clock == "virtual" else KERNELS
    return tuple(Variant(ends, acks, clock) for ends in all_ends for acks in SCENARIOS)


VARIANTS = variants("live")
