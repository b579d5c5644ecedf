# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declarations of ``airpath fading show`` and ``airpath fading convert``."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

_VARIABLE = Option(
    "--variable",
    ("NAME",),
    "Of a MAT-file or a .npz file: name of the matrix [default: snr_db, or the only one]",
)

FADING = (
    Declaration(
        "fading show",
        "Print the statistics of a fading channel beside theory, and draw it",
        "airpath.fading.commands:show",
        (
            "airpath fading show channel.toml --out channel.png",
            "airpath fading show snr.csv",
        ),
        (
            Argument(
                "CHANNEL",
                "A channel (a TOML file or a table, as for airpath fading generate), or a file of "
                "ratios (text, .parquet, .mat)",
                "channel",
                type="text",
            ),
        ),
        (
            Option(
                "--slots",
                ("N",),
                "Of a channel: number of slots to draw",
                type="positive",
                default=15_000,
            ),
            Option("--seed", ("N",), "Of a channel: random seed", type="whole", default=1),
            Option(
                "--slots-per-second",
                ("N",),
                "Of a file: number of slots in a second [default: what the file says, or 1500]",
                type="positive",
            ),
            _VARIABLE,
            Option(
                "--out",
                ("FILE",),
                "Draw it; its suffix (.png, .svg, .pdf) is its format",
                type="path",
            ),
            Option("--json", (), "Print the figures as JSON", key="json_"),
        ),
        "Theory is that of Rayleigh fading with the classical Doppler spectrum, where the channel "
        "has it (docs/fading.md). Exit status: 0 if the figures were printed, 2 if the channel or "
        "the file is wrong, 122 if the picture cannot be written, 123 if packages are missing.",
        "analysis",
    ),
    Declaration(
        "fading convert",
        "Convert signal-to-noise ratios between text, Parquet and MAT-files",
        "airpath.fading.commands:convert",
        (
            "airpath fading convert snr.csv snr.parquet",
            "airpath fading convert measured.mat snr.csv --variable snr_db",
            "airpath fading convert sionna.npz snr.csv --variable h",
        ),
        (
            Argument("INPUT", "Ratios in decibels, a row for each slot", "input_"),
            Argument("OUTPUT", "Output file", "output"),
        ),
        (_VARIABLE,),
        "Suffixes are formats: .parquet, .mat (level 5), .npz and .npy (read only: ratios in "
        "decibels, or complex frequency responses by slot and resource), anything else for text. "
        "Exit status: 0 if the file was written, 2 if the input is wrong, 122 if the output "
        "cannot be written, 123 if packages are missing.",
        "analysis",
    ),
)
