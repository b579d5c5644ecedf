# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declaration of ``airpath trace fit``."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

ERROR_MODELS = ("gilbert_elliott", "mta", "on_off", "weibull", "best")
"""Error models that are fitted to traces, and the word for the best of them."""

ERROR_TRACES = (
    Declaration(
        "trace fit",
        "Fit error models to a trace of errors, and judge them",
        "airpath.errortrace.command:run",
        (
            "airpath trace fit blocks.txt --out fit.png",
            "airpath trace fit blocks.txt --model best",
        ),
        (Argument("FILE", "A trace of errors in any format of airpath trace show", "file"),),
        (
            Option(
                "--from",
                ("FORMAT",),
                "Format of the trace [default: found from its content; positions and g191-compact "
                "have to be named]",
                key="file_format",
                choices=("errors", "positions", "g191-compact"),
            ),
            Option(
                "--units",
                ("N",),
                "Of a list of positions: number of packets, frames, bits or blocks [default: up to "
                "the last position]",
                type="whole",
            ),
            Option(
                "--model",
                ("NAME",),
                "Print the errors of this model alone, for a scenario; best is the one of the "
                "highest held-out likelihood",
                choices=ERROR_MODELS,
            ),
            Option(
                "--held-out",
                ("SHARE",),
                "Share of the trace, at its end, that judges models fitted to the rest",
                type="number",
                default="0.3",
            ),
            Option(
                "--order",
                ("K",),
                "Order of the Markov chain in lossy states of mta",
                type="whole",
                default=6,
            ),
            Option(
                "--out",
                ("FILE",),
                "Draw the models beside the data; its suffix (.png, .svg, .pdf) is its format",
                type="path",
            ),
            Option("--json", (), "Print all figures as JSON", key="json_"),
        ),
        "Models: Gilbert-Elliott, MTA, extended on/off, runs of Weibull lengths "
        "(docs/error-traces.md). Exit status: 0 if models were fitted, 2 if the file or an "
        "argument is wrong or the trace has too few errors, 122 if the picture cannot be written, "
        "123 if packages are missing.",
        "analysis",
    ),
)
