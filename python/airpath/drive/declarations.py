# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declaration of ``airpath drive``."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

DRIVE = (
    Declaration(
        "drive",
        "Play a course of rate, delay and loss over an active run",
        "airpath.drive.command:drive",
        (
            "airpath drive tram.csv",
            "airpath drive tram.csv --run results/train --speed 4 --from 30",
            "airpath drive up.trace --direction uplink --hop radio",
        ),
        (
            Argument(
                "COURSE",
                "CSV with a heading (time_s, downlink_rate_mbps, delay_ms, loss, …), or a trace of "
                "rates in any format of airpath trace",
                "file",
            ),
        ),
        (
            Option("--run", ("RUN",), "Number or folder of the run [default: the only active one]"),
            Option("--hop", ("NAME",), "Hop whose parameters are set [default: the first]"),
            Option("--user", ("NAME",), "User of a cell [default: all]"),
            Option(
                "--direction",
                ("WAY",),
                "Direction of a trace of rates",
                default="both",
                choices=("uplink", "downlink", "both"),
            ),
            Option(
                "--from",
                ("S",),
                "Time of the course at which to begin, in seconds",
                key="start",
                type="number",
            ),
            Option("--speed", ("X",), "Seconds of the course in a second", type="number"),
            Option("--quiet", (), "Print errors alone"),
        ),
        "Each point takes effect as a command of airpath set does, and is an event of the run. The "
        "last values stay in force. Exit status: 0 at the end of the course, 1 if the run ends "
        "before, 2 if a file, a name or a value is wrong.",
    ),
)
"""The command that plays courses."""
