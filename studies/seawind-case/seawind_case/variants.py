"""What is compared: kernels' settings, and whether acknowledgements meet errors."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SIZE_BYTES = 102_400
PORT = 5001

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
    """How TCP is set at both ends."""

    name: str
    text: str
    congestion_control: str | None
    """None: the kernel's default."""
    options: tuple[str, ...] = ()
    """Options of both programs of transfer.py."""


KERNELS = (
    Kernel("reno", "Reno", "reno", NO_TIMESTAMPS),
    Kernel("reno-like-2001", "Reno as in 2001", "reno", LIKE_2001),
    Kernel("reno-like-2001-no-sack", "the same without SACK", "reno", LIKE_2001_NO_SACK),
    Kernel("cubic", "CUBIC", "cubic", NO_TIMESTAMPS),
    Kernel("defaults", "the kernel's defaults", None),
)

SCENARIOS = {
    "errors-both-ways": HERE / "scenario.toml",
    "clean-acks": HERE / "scenario-clean-acks.toml",
}


@dataclass(frozen=True)
class Variant:
    """One set of replications."""

    kernel: Kernel
    acknowledgements: str
    """A key of ``SCENARIOS``."""

    @property
    def name(self) -> str:
        """The name of its folder, and of its table in expected.toml."""
        return f"{self.kernel.name}_{self.acknowledgements}"

    def command(
        self, airpath: Path, out: Path, replications: int, jobs: int, seed: int
    ) -> list[str]:
        """Return the command that runs all replications into ``out``."""
        program = [sys.executable, str(HERE / "seawind_case" / "transfer.py")]
        ends = ["--bytes", str(SIZE_BYTES), *self.kernel.options]
        command = [str(airpath), "exec", "--scenario", str(SCENARIOS[self.acknowledgements])]
        if self.kernel.congestion_control:
            command += ["--cc", self.kernel.congestion_control]
        # At 9600 bit/s a packet takes 250 ms: no need to watch the clock for microseconds.
        command += ["--spin", "off", "--seed", str(seed), "--out", str(out)]
        command += ["--replications", str(replications), "--jobs", str(jobs)]
        command += ["--server", shlex.join([*program, "send", str(PORT), *ends])]
        return [*command, "--", *program, "receive", "server", str(PORT), *ends]


VARIANTS = tuple(Variant(kernel, acks) for kernel in KERNELS for acks in SCENARIOS)
