# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declarations of the commands of experiments: ``airpath run``, ``plan``, ``check`` and others."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

_ONLY_SET = Option("--only", ("SET",), "This set only; may be given several times", several=True)
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

EXPERIMENTS = (
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
            Option("--json", (), "Print the outcome as JSON", key="json_"),
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
            Option("--json", (), "Print the plan as JSON", key="json_"),
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
        (Option("--json", (), "Print errors as JSON, one object per line", key="json_"),),
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
            Option("--json", (), "Print JSON, one object per line", key="json_"),
        ),
        "With --expect, --strict, --junit or --summary the exit status is 1 if a run failed.",
        "experiments",
    ),
)
