# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands that Python carries out, each declared once: its words, its help, what it needs.

``commandline.py`` makes parsers and help from them, ``commands.py`` the overview. Nothing heavy is
imported here: help must not wait for it, and packages that a command needs may be missing.
"""

from __future__ import annotations

from airpath.declaration import IMAGES, Argument, Declaration, Option
from airpath.drive.declarations import DRIVE
from airpath.plots.kinds import ALL as PICTURES
from airpath.plots.kinds import TEXTS
from airpath.plots.timing import KINDS as TIMING_PICTURES
from airpath.ui.declarations import PAGE
from airpath.video.declarations import VIDEO

ERROR_MODELS = ("gilbert_elliott", "mta", "on_off", "weibull", "best")
"""Error models that are fitted to traces, and the word for the best of them."""

_ONLY_SET = Option("--only", ("SET",), "This set only; may be given several times", several=True)
_AS_JSON = ("--json", ())
_JUDGEMENT = (
    Option(
        "--expect",
        ("COMPARISON",),
        "Comparison of a metric, parameter or column that every run fulfils, such as "
        "'elapsed < 20'; other runs have failed",
        several=True,
    ),
    Option("--strict", (), "Count runs whose verdict is not trusted as failed"),
    Option(
        "--junit",
        ("FILE",),
        "Write every run as a test case to this file, in JUnit's XML",
        type="path",
    ),
    Option(
        "--summary",
        ("FILE",),
        "Append a summary in Markdown to this file, such as $GITHUB_STEP_SUMMARY",
        type="path",
    ),
)
_MEASUREMENTS = Argument(
    "DIR",
    "Directories of measurements, as given to --out of airpath timing",
    "directories",
    several=True,
)
_VARIABLE = Option(
    "--variable",
    ("NAME",),
    "Of a MAT-file or a .npz file: name of the matrix [default: snr_db, or the only one]",
)
_INCLUDE_UNTRUSTED = "replications whose verdict is not trusted"

_EXPERIMENTS = (
    Declaration(
        "run",
        "Run the sets of an experiment, unattended",
        "airpath.experiment.commands:run",
        (
            "airpath run experiment.toml --jobs auto",
            "airpath run experiment.toml --only gprs --out results/gprs --resume",
            "airpath run experiment.toml --executor dask://10.0.0.5:8786 --out s3://bucket/results",
        ),
        (Argument("FILE", "The experiment", "file"),),
        (
            _ONLY_SET,
            Option(
                "--jobs",
                ("N",),
                "Number of parallel replications, or auto for as many as keep verdicts trusted, "
                "found by trying",
                default="auto",
            ),
            Option(
                "--executor",
                ("NAME",),
                "Where replications run: local, dask (a cluster of this machine), or "
                "dask://HOST:PORT (the scheduler of a cluster); docs/experiments/distributed.md",
                default="local",
            ),
            Option("--resume", (), "Continue with what the directory holds; nothing runs twice"),
            Option(
                "--out",
                ("DIR",),
                "Directory of results, or the URL of one, such as s3://BUCKET/PREFIX "
                "[default: results/NAME]",
                type="place",
            ),
            Option(
                "--manual",
                (),
                "Bring up the network of a set's first cell, and take commands from the terminal",
            ),
            *_JUDGEMENT,
            Option(*_AS_JSON, "Print the outcome as JSON", key="json_"),
        ),
        "Exit status: 0 if every replication succeeded, 1 if some did not, an expectation does not "
        "hold, or it could not go on, "
        "2 if the file or the directory is wrong, 123 if packages are missing, 130 after Ctrl-C. "
        "--resume continues an interrupted run.",
        "experiments",
    ),
    Declaration(
        "plan",
        "Print the runs of an experiment, their duration and size",
        "airpath.experiment.commands:plan",
        ("airpath plan experiment.toml --pilot",),
        (Argument("FILE", "The experiment", "file"),),
        (
            _ONLY_SET,
            Option(
                "--pilot",
                (),
                "Run the first replication of every cell in a temporary directory, and estimate "
                "from it how long everything takes and how much disk space it needs",
            ),
            Option(*_AS_JSON, "Print the plan as JSON", key="json_"),
        ),
        "Without --pilot the duration is the sum of the time limits.",
        "experiments",
    ),
    Declaration(
        "check",
        "Validate scenario and experiment files",
        "airpath.experiment.check:check",
        ("airpath check experiment.toml",),
        (Argument("FILE", "Scenarios and experiments", "files", several=True),),
        (Option(*_AS_JSON, "Print errors as JSON, one object per line", key="json_"),),
        "Experiments need pip install 'airpath[experiments]'; scenarios need nothing.",
    ),
    Declaration(
        "schema",
        "Print the JSON Schema of scenario files, or of experiment files",
        "airpath.experiment.commands:schema",
        ("airpath schema --experiment > experiment.schema.json",),
        (),
        (Option("--experiment", (), "Schema of experiment files [default: of scenario files]"),),
        "",
        "experiments",
    ),
    Declaration(
        "results",
        "List, compare, tag and remove results of experiments",
        "airpath.experiment.commands:results",
        (
            "airpath results results/experiment --where 'elapsed < 20'",
            "airpath results results/experiment --compare model/reno model/cubic --metric goodput",
        ),
        (
            Argument(
                "DIR",
                "Directory of results or its URL, as given to --out of airpath run [default: list "
                "the directories of results beneath results/]",
                "directory",
                "place",
                required=False,
            ),
        ),
        (
            Option(
                "--set",
                ("SET",),
                "Runs of this set only; may be given several times, as may the other filters",
                key="set_",
                several=True,
            ),
            Option("--cell", ("CELL",), "Runs of this cell", several=True),
            Option(
                "--verdict",
                ("VERDICT",),
                "Runs of this verdict: trusted, suspect, invalid or unknown",
                several=True,
            ),
            Option(
                "--status",
                ("STATUS",),
                "Runs of this status: succeeded, failed or broken",
                several=True,
            ),
            Option("--tag", ("TAG",), "Runs with this tag", several=True),
            Option(
                "--where",
                ("COMPARISON",),
                "Runs for which a comparison of a metric, parameter or column holds, such as "
                "'elapsed < 20'",
                several=True,
            ),
            Option(
                "--metric",
                ("METRIC",),
                "Show this metric of airpath analyse --list: NAME or NAME/PLACE "
                "(goodput/downlink); what has not been measured yet is measured "
                "[default: elapsed and goodput]",
                several=True,
            ),
            Option("--runs", (), "List every run instead of one line per cell"),
            Option(
                "--compare",
                ("CELL", "CELL"),
                "Two cells (SET/CELL) to compare, replication by replication",
            ),
            Option("--add-tag", ("TAG",), "Add this tag to the selected runs", several=True),
            Option(
                "--remove-tag", ("TAG",), "Remove this tag from the selected runs", several=True
            ),
            Option("--remove", (), "Delete the selected runs and their directories"),
            Option("--yes", (), "Delete without asking"),
            Option(
                "--rebuild",
                (),
                "First rebuild the catalogue, and what is damaged of the journal, from the "
                "directories of the runs",
            ),
            *_JUDGEMENT,
            Option(*_AS_JSON, "Print JSON, one object per line", key="json_"),
        ),
        "With --expect, --strict, --junit or --summary the exit status is 1 if a run failed.",
        "experiments",
    ),
)

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
            Option(*_AS_JSON, "Print values, summaries and notes as JSON"),
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

_OF_PROBES = (
    Option("--packets", ("N",), "Number of packets", type="positive", default=10000),
    Option(
        "--length",
        ("BYTES",),
        "Length of the IP packets in bytes",
        type="whole",
        default=1408,
    ),
)

_OF_THE_ENGINES_COMMANDS = (
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
            Option(*_AS_JSON, "Print all figures as JSON", key="json_"),
        ),
        "Models: Gilbert-Elliott, MTA, extended on/off, runs of Weibull lengths "
        "(docs/error-traces.md). Exit status: 0 if models were fitted, 2 if the file or an "
        "argument is wrong or the trace has too few errors, 122 if the picture cannot be written, "
        "123 if packages are missing.",
        "analysis",
    ),
    Declaration(
        "trace send",
        "Send numbered packets of known content, whose errors a capture finds",
        "airpath.radiocapture.commands:send",
        ("airpath trace send 192.0.2.7 --packets 10000 --interval 6.1",),
        (Argument("HOST", "The receiver, over the radio", "to", type="text"),),
        (
            *_OF_PROBES,
            Option("--port", ("N",), "UDP port", type="whole", default=5301),
            Option(
                "--interval",
                ("MS",),
                "Time from one packet to the next in milliseconds",
                key="interval_ms",
                type="number",
                default="6.1",
            ),
        ),
        "UDP over IPv4; nobody needs to listen at the port. Exit status: 0 if all are sent, 2 if "
        "an argument is wrong, 1 if sending fails.",
    ),
    Declaration(
        "trace capture",
        "Find the packets of trace send in a capture, and write their errors as a trace",
        "airpath.radiocapture.commands:capture",
        (
            "airpath trace capture wlan0mon walls.trace --packets 10000",
            "airpath trace capture walls.pcap walls.trace --packets 10000",
        ),
        (
            Argument(
                "SOURCE",
                "A pcap or pcapng file with radiotap headers, or an interface in monitor mode",
                "source",
                type="text",
            ),
            Argument("OUTPUT", "The trace", "output"),
        ),
        (
            *_OF_PROBES,
            Option(
                "--silence",
                ("S",),
                "Of an interface: end after so many seconds without any frame",
                key="silence_s",
                type="number",
                default="10",
            ),
        ),
        "Ethernet, loopback and raw IP are read too, and show losses alone. Exit status: 0 if a "
        "trace was written, 2 if the source or an argument is wrong, 122 if it cannot be written.",
    ),
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
            Option(*_AS_JSON, "Print the figures as JSON", key="json_"),
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
    for group in (_EXPERIMENTS, DRIVE, _ANALYSIS, _OF_THE_ENGINES_COMMANDS, VIDEO, PAGE, _SHELLS)
    for declaration in group
}
"""Every command of Python's, by name."""

GROUPS = {"video": "Send and receive video over a link, and measure the quality of what arrives"}
"""Commands of Python's that have subcommands alone, with what they are for."""
