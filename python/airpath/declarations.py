# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands that Python carries out, each declared once: its words, its help, what it needs.

``commandline.py`` makes parsers and help from them, ``commands.py`` the overview. Nothing heavy is
imported here: help must not wait for it, and packages that a command needs may be missing.
"""

from __future__ import annotations

from airpath.declaration import IMAGES, Argument, Declaration, Option
from airpath.drive.declarations import DRIVE
from airpath.errortrace.declarations import ERROR_TRACES
from airpath.experiment.declarations import EXPERIMENTS
from airpath.fading.declarations import FADING
from airpath.plots.kinds import ALL as PICTURES
from airpath.plots.kinds import TEXTS
from airpath.plots.timing import KINDS as TIMING_PICTURES
from airpath.radiocapture.declarations import RADIO_CAPTURES
from airpath.ui.declarations import PAGE
from airpath.video.declarations import VIDEO

_MEASUREMENTS = Argument(
    "DIR",
    "Directories of measurements, as given to --out of airpath timing",
    "directories",
    several=True,
)
_INCLUDE_UNTRUSTED = "replications whose verdict is not trusted"

_ANALYSIS = (
    Declaration(
        "analyse",
        "Measure runs, summarise sets of replications, compare two sets",
        "airpath.app:analyse",
        (
            "airpath analyse results/ --compare reno cubic",
            "airpath analyse results/ --metrics transfer_time,goodput --csv",
        ),
        (
            Argument(
                "DIR",
                "Directories of runs, of replications, or of sets of replications; or URLs of such",
                "directories",
                "place",
                several=True,
                required=False,
            ),
        ),
        (
            Option(
                "--metrics",
                ("METRIC[,…]",),
                "Metrics, separated by commas; rtt* for all that begin so, all for all",
                several=True,
            ),
            Option(
                "--list",
                (),
                "List all metrics with their definitions, and do nothing else",
                key="list_metrics",
            ),
            Option(
                "--user",
                ("NAME",),
                "Measure only this user of runs of a cell [default: all users together]",
            ),
            Option("--json", (), "Print values, summaries and notes as JSON"),
            Option("--csv", (), "Print values, or with --compare the comparison, as CSV"),
            Option(
                "--compare",
                ("SET", "SET"),
                "Two sets to compare, paired by seed where they share seeds",
            ),
            Option("--include-untrusted", (), f"Keep {_INCLUDE_UNTRUSTED}"),
            Option(
                "--jobs",
                ("N",),
                "Number of processes that measure [default: one per processor where there are "
                "many runs]",
                type="positive",
            ),
        ),
        "Exit status: 0 if everything was read, 1 if there is nothing to show, 2 if an argument is "
        "wrong, 4 if files of some runs are damaged, 123 if packages are missing.",
        "analysis",
    ),
    Declaration(
        "plot",
        "Draw the pictures of a run, or of sets of replications",
        "airpath.app:plot",
        (
            "airpath plot results/ --format svg",
            "airpath plot results/gprs --only time-sequence --from 2 --to 5",
            "airpath plot results/gsm --format multitracer --out traces",
            "airpath plot s3://bucket/sweep --only sweep --out pictures",
        ),
        (
            Argument(
                "DIR",
                "Directory of a run, as given to --out of airpath exec, or one with runs below it: "
                "of those distribution, cdf and courses over time are drawn, by set, and of "
                "experiments the sweep of each parameter (it alone where there are many sets); or "
                "the URL of such",
                "place",
                "place",
            ),
        ),
        (
            Option(
                "--out",
                ("DIR",),
                "Directory of the pictures [default: plots in the directory of the run, of a URL "
                "in the working directory]",
                type="path",
            ),
            Option(
                "--format",
                ("FORMAT",),
                "Format of the pictures; xplot writes the time-sequence diagrams alone, "
                "multitracer the layers of radio bearers as text",
                key="file_format",
                default="png",
                choices=(*IMAGES, *TEXTS),
            ),
            Option(
                "--only",
                ("KIND",),
                "Draw this kind only; may be given several times",
                choices=PICTURES,
                several=True,
            ),
            Option(
                "--metrics",
                ("METRIC[,…]",),
                "Of sets: metrics to draw, separated by commas (airpath analyse --list)",
                several=True,
            ),
            Option("--include-untrusted", (), f"Of sets: keep {_INCLUDE_UNTRUSTED}"),
            Option(
                "--jobs",
                ("N",),
                "Of sets: number of processes that measure [default: one per processor where there "
                "are many runs]",
                type="positive",
            ),
            Option(
                "--from",
                ("TIME",),
                "Start of the part to draw, since the run began, such as '2 s' or 2 (seconds)",
                key="begin",
                type="time",
            ),
            Option(
                "--to",
                ("TIME",),
                "End of the part to draw, since the run began, such as '4 s' or 4 (seconds)",
                key="end",
                type="time",
            ),
            Option(
                "--user",
                ("NAME",),
                "Draw only this user of a run of a cell [default: all users together]",
            ),
        ),
        "Prints the path of each picture.",
        "plots",
    ),
    Declaration(
        "report",
        "Write one page of HTML about runs, complete in itself",
        "airpath.report.command:write",
        (
            "airpath report results/ --out gprs.html",
            "airpath report results/gprs --out gprs.html --figures figures --format pdf",
        ),
        (
            Argument(
                "DIR",
                "Directories of runs, or directories with runs in them, such as replications; or "
                "URLs of such",
                "directories",
                "place",
                several=True,
            ),
        ),
        (
            Option(
                "--out",
                ("FILE",),
                "The page [default: report.html in DIR, or here if there are several or a URL]",
                type="path",
            ),
            Option(
                "--title",
                ("TEXT",),
                "Title of the page [default: from the experiment, or the names of the scenarios]",
            ),
            Option(
                "--pictures",
                ("N",),
                "Number of runs whose pictures the page shows, from the first on",
                type="whole",
                default=2,
            ),
            Option(
                "--figures",
                ("DIR",),
                "Also write all pictures as files to this directory",
                type="path",
            ),
            Option(
                "--format",
                ("FORMAT",),
                "Format of the files of --figures",
                key="file_format",
                default="png",
                choices=IMAGES,
            ),
            Option(
                "--csv",
                ("DIR",),
                "Also write the values of all runs, the summaries of sets and the comparisons as "
                "CSV to this directory",
                type="path",
            ),
            Option(
                "--xplot",
                ("DIR",),
                "Also write a time-sequence diagram of each TCP transfer for xplot to this "
                "directory",
                type="path",
            ),
            Option(
                "--experiment",
                ("FILE",),
                "Experiment file whose notes, references and report keys the page shows [default: "
                "the copy in the directory of results]",
                type="path",
            ),
        ),
        "Prints the path of the page.",
        "report",
    ),
)

_TRACES = (
    Declaration(
        "trace plot",
        "Draw the rates of traces over time, one panel each",
        "airpath.app:trace_plot",
        ("airpath trace plot up.trace down.trace --out rates.svg",),
        (
            Argument(
                "FILE", "Traces in any format that airpath trace show reads", "files", several=True
            ),
        ),
        (
            Option(
                "--out",
                ("FILE",),
                "The picture; its suffix (.png, .svg, .pdf) is its format",
                type="path",
                default="rate.png",
            ),
            Option(
                "--bin",
                ("TIME",),
                "Interval over which opportunities of mm-link are counted to become a rate",
                key="bin_width",
                default="100 ms",
            ),
        ),
        "Prints the path of the picture.",
        "plots",
    ),
)

_TIMING = (
    Declaration(
        "timing plot",
        "Draw the pictures of measurements of sleep methods, side by side",
        "airpath.app:timing_plot",
        ("airpath timing plot quiet/ loaded/ --out figures --format pdf",),
        (_MEASUREMENTS,),
        (
            Option(
                "--out",
                ("DIR",),
                "Directory of the pictures [default: plots in the first DIR]",
                type="path",
            ),
            Option(
                "--format",
                ("FORMAT",),
                "Format of the pictures",
                key="file_format",
                default="png",
                choices=IMAGES,
            ),
            Option(
                "--only",
                ("KIND",),
                "Draw this kind only; may be given several times",
                choices=tuple(TIMING_PICTURES),
                several=True,
            ),
        ),
        "Prints the path of each picture.",
        "plots",
    ),
    Declaration(
        "timing table",
        "Print measurements of sleep methods as Markdown tables, beside those of Gurtov 1999",
        "airpath.app:timing_table",
        ("airpath timing table quiet/ loaded/ > timing.md",),
        (_MEASUREMENTS,),
    ),
)

_SHELLS = (
    Declaration(
        "wireshark",
        "Print a dissector for Wireshark, for the ids and comments of captures",
        "airpath.wireshark:wireshark",
        ("airpath wireshark > ~/.local/lib/wireshark/plugins/airpath.lua",),
        (),
        (),
        "tshark takes the file with -X lua_script:FILE.",
    ),
    Declaration(
        "completions",
        "Print completions for a shell",
        "airpath.shells.command:completions",
        ("airpath completions bash > ~/.local/share/bash-completion/completions/airpath",),
        (Argument("SHELL", "The shell: bash, zsh or fish", "shell", type="text"),),
        (),
        "Completions are of the installed version; print them anew after an upgrade.",
    ),
    Declaration(
        "man",
        "Write manual pages of all commands",
        "airpath.shells.command:man",
        ("airpath man ~/.local/share/man/man1",),
        (Argument("DIR", "Directory of the pages", "directory"),),
        (),
        "The date of the pages is today's, or that of SOURCE_DATE_EPOCH.",
    ),
)

DECLARATIONS = {
    declaration.name: declaration
    for group in (
        EXPERIMENTS,
        DRIVE,
        _ANALYSIS,
        _TRACES,
        ERROR_TRACES,
        RADIO_CAPTURES,
        FADING,
        _TIMING,
        VIDEO,
        PAGE,
        _SHELLS,
    )
    for declaration in group
}
"""Every command of Python's, by name."""

GROUPS = {"video": "Send and receive video over a link, and measure the quality of what arrives"}
"""Commands of Python's that have subcommands alone, with what they are for."""
