"""Live and warp in one picture: distributions of elapsed times, and one transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from airpath.plots.style import BLACK, BLUE, GREEN, ORANGE, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seawind_case.compare import Pair

COLOURS = (BLUE, ORANGE, GREEN, VERMILLION)
SIZE_INCHES = (7.2, 3.1)
DOTS_PER_INCH = 130
SETTINGS = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "legend.fontsize": 7,
}


def draw(found: Mapping[str, Mapping[int, Pair]], shown: tuple[str, int], path: Path) -> None:
    """Draw the pairs of all variants, and one transfer packet by packet, into a PNG file."""
    with mpl.rc_context(cast("Any", SETTINGS)):
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        left, right = figure.subplots(1, 2)
        for colour, (name, pairs) in zip(COLOURS, found.items(), strict=False):
            share = np.arange(1, len(pairs) + 1) / max(len(pairs), 1)
            for which, line, width in (("live", "-", 1.1), ("warp", ":", 2.0)):
                seconds = sorted(getattr(pair, which).elapsed_seconds for pair in pairs.values())
                left.step(seconds, share, line, where="post", color=colour, linewidth=width)
            left.plot([], [], color=colour, label=name.replace("_", ", ").replace("-", " "))
        left.plot([], [], "-", color=BLACK, label="live")
        left.plot([], [], ":", color=BLACK, linewidth=2.0, label="warp")
        left.set_xlabel("Elapsed time (s)")
        left.set_ylabel("Share of transfers")
        left.legend(loc="lower right")
        pair = found.get(shown[0], {}).get(shown[1])
        if pair is not None:
            live, warp = pair.packets.first, pair.packets.second
            for side, name, style in (
                (live, "live", {"marker": "o", "color": "#9ABFDA", "markersize": 3.6}),
                (warp, "warp", {"marker": ".", "color": BLACK, "markersize": 1.6}),
            ):
                rows = [
                    (time / 1e3, packet.sequence / 1e3)
                    for time, packet in zip(side.times_ms, side.packets, strict=True)
                    if packet.way == "sent" and packet.payload_bytes
                ]
                right.plot(*np.array(rows).T, linestyle="none", label=name, **cast("Any", style))
            right.set_xlabel("Time since the first packet (s)")
            right.set_ylabel("Sequence number (kB)")
            right.set_title(f"{shown[0]}, seed {shown[1]}", fontsize=7.5, loc="left")
            right.legend(loc="upper left")
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
