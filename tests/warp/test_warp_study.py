"""The case study runs in virtual time as it does live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawind_case.measure import measure
from seawind_case.recorded import expected
from seawind_case.variants import variants

if TYPE_CHECKING:
    from warp.conftest import Warp


def test_a_transfer_of_the_case_study(warp: Warp) -> None:
    name = "reno_clean-acks"
    variant = next(one for one in variants("warp") if one.name == name)
    out = warp.airpath.path("run")
    words = variant.command(warp.airpath.command, out, 1, 1, 1)
    warp.airpath.run(*words[1:], environment=warp.environment, timeout=150).check()
    found = measure(out)
    assert found.payload_bytes == 102_400
    assert found.verdict == "trusted"
    live = expected("live")[name]["elapsed_seconds"]
    assert 0.9 * live["p10"] < found.elapsed_seconds < 1.1 * live["p90"]
