# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Model of an experiment file: the one declaration, from which checks and schema follow.

pydantic, because it reports every error of a file at once, each with its place, and writes the
JSON Schema from the same declarations; of the alternatives msgspec stops at the first error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag

from airpath.experiment.keys import (
    Clock,
    Economy,
    Frames,
    LatenessBound,
    Length,
    LogLevel,
    Mtu,
    Name,
    Program,
    Scalar,
    Share,
    Table,
    Time,
)
from airpath.experiment.metrics import DEFAULT
from airpath.experiment.templates import TEMPLATES

if TYPE_CHECKING:
    from airpath.experiment.templates.template import Template


class Link(Table):
    """A link by the short options of ``airpath exec`` of the same names."""

    rate: str | None = Field(default=None, description="Rate, or `UPLINK,DOWNLINK`.")
    delay: str | None = Field(default=None, description="One-way delay, or `UPLINK,DOWNLINK`.")
    jitter: str | None = Field(default=None, description="Standard deviation of the delay.")
    loss: str | None = Field(default=None, description="Probability that a packet is lost.")
    reorder: str | None = Field(
        default=None, description="Probability that a packet is held back, and for how long."
    )
    duplicate: str | None = Field(
        default=None, description="Probability that a packet is duplicated."
    )
    queue: str | None = Field(default=None, description="Limit of the queue before the link.")
    blackout: str | None = Field(default=None, description="`BEGIN,LENGTH[,drop|store]`.")


class Network(Table):
    """Network between the two ends."""

    profile: str | None = Field(
        default=None, description="Built-in link (`airpath profiles` lists them)."
    )
    scenario: str | None = Field(
        default=None, description="Scenario file, relative to the experiment file."
    )
    inline: dict[str, Any] | None = Field(
        default=None, description="Scenario as a table. Files that it names need absolute paths."
    )
    link: Link = Field(
        default=Link(),
        description="Short options: a link of their own, or changes to the scenario.",
    )
    set: dict[str, Scalar] = Field(
        default={}, description="Parameters of the scenario to override."
    )
    mtu: Mtu | None = Field(default=None, description="MTU of both ends in bytes.")
    users: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Number of users of a cell: the first of the scenario, or copies of its only "
        "one (--users of airpath exec).",
    )


def _kind(value: Any) -> str | None:
    template = value.get("template") if isinstance(value, dict) else None
    template = template or getattr(value, "template", None)
    return "program" if template is None else str(template)


if TYPE_CHECKING:
    AnyProgram = Program | Template
else:
    AnyProgram = Annotated[
        Union[
            (
                Annotated[Program, Tag("program")],
                *(Annotated[template, Tag(template.tag())] for template in TEMPLATES),
            )
        ],
        Discriminator(_kind),
    ]


class Workload(Table):
    """Programs at the two ends."""

    like: str | None = Field(
        default=None,
        description="Another workload, from which this one takes the keys that it lacks; "
        "parameters one by one.",
    )
    programs: list[AnyProgram] = Field(
        default=[], description="Programs, for the clocks live and warp."
    )
    virtual: list[str] = Field(
        default=[], description="Workloads of `airpath sim`, for the clock virtual."
    )
    duration: Time | None = Field(default=None, description="End of the run, by the clock virtual.")
    parameters: dict[str, Scalar] = Field(
        default={},
        description="Values that replace `{{NAME}}` anywhere in the workload. Sets can sweep them.",
    )
    congestion_control: str | None = Field(
        default=None,
        description="TCP congestion control at both ends, by the clocks live and warp.",
    )
    time_limit: Time = Field(
        default="15 min", description="Longest duration of a replication in real time."
    )
    output_limit: Length = Field(
        default="10 MB",
        description="Length of each program's output that is kept. The rest is counted.",
    )


class Until(Table):
    """A stopping rule: replications until the mean of a metric is known well enough."""

    metric: str = Field(description="Metric of `airpath analyse --list`: `NAME` or `NAME/PLACE`.")
    half_width: Share = Field(
        description="Half-width of the 95 % interval of the mean, relative to the mean."
    )
    least: int = Field(default=5, ge=2, description="Least number of replications.")
    most: int = Field(default=100, ge=2, description="Greatest number of replications.")


class Sweep(Table):
    """Parameters and their values: network.NAME, workload.NAME, congestion_control or mtu."""

    grid: dict[str, list[Scalar]] = Field(
        default={}, description="Lists of values by parameter. Every combination is a cell."
    )
    zip: dict[str, list[Scalar]] = Field(
        default={},
        description="Lists of equal length by parameter. The first values are a cell, then the "
        "second values, and so on.",
    )
    rows: list[dict[str, Scalar]] = Field(
        default=[], description="Tables of parameters and values, each a cell."
    )


class Set(Table):
    """A replication set: networks with workloads, so many times."""

    name: Name = Field(description="Name of the set and of its folder.")
    network: str | list[str] = Field(
        description="Network or networks. Each is combined with each workload.", min_length=1
    )
    workload: str | list[str] = Field(description="Workload or workloads.", min_length=1)
    repetitions: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Number of replications of each cell."
    )
    until: Until | None = Field(default=None, description="Stopping rule.")
    clock: Clock | None = Field(default=None, description="Clock of the set.")
    lateness_bound: LatenessBound | None = Field(
        default=None, description="Lateness that a packet may have in a trusted run of the set."
    )
    economy: Economy | None = Field(
        default=None, description="Trade of exact departures for processor time in the set."
    )
    seed: int | None = Field(default=None, ge=0, description="Seed of the first replication.")
    random_numbers: Literal["common", "independent"] = Field(
        default="common",
        description="`common`: replication N has the same seed in every cell, for comparisons in "
        "pairs. `independent`: each cell has its own seeds.",
    )
    sweep: Sweep = Field(default=Sweep(), description="Parameters to vary.")
    tags: list[Name] = Field(default=[], description="Tags of the runs in the catalogue.")


class Figures(Table):
    """Published figure of a metric over their replications."""

    median: float = Field(description="Median.")
    p10: float | None = Field(default=None, description="10th percentile.")
    p90: float | None = Field(default=None, description="90th percentile.")


def _figures(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and not isinstance(value, dict | Figures):
        message = "must be a number, or a table with `median`"
        raise ValueError(message)
    return {"median": value} if number else value


AnyFigures = Annotated[Figures, BeforeValidator(_figures, json_schema_input_type=float | Figures)]
"""Figures, or their median alone."""


class Reference(Table):
    """Figures from elsewhere, such as a paper's, that the report sets beside results."""

    name: str = Field(description="Name of the figures on the page.", min_length=1)
    source: str = Field(default="", description="Source of the figures.")
    sets: list[str] = Field(
        default=["*"],
        description="Results beside which the figures stand: `SET/CELL`, with `*` and `?`.",
    )
    metrics: dict[str, AnyFigures] = Field(
        description="Figures by metric of the analysis, in its unit. `METRIC/DIRECTION` is the "
        "metric of one direction.",
        min_length=1,
    )


class ShownRun(Table):
    """A run whose diagram and pictures are on the page of the report."""

    run: str = Field(description="`SET/CELL:REPLICATION`, with `*` and `?`.")
    caption: str = Field(default="", description="Caption of the diagram.")


class ReportPage(Table):
    """Content of the page of ``airpath report`` on the experiment."""

    title: str | None = Field(default=None, description="Title of the page.")
    notes: str | None = Field(
        default=None, description="Markdown file beside the experiment file, shown as a section."
    )
    metrics: list[str] = Field(
        default=[],
        description="Metrics of tables, pictures and comparisons of sets, in this order: `METRIC` "
        "or `METRIC/DIRECTION`.",
    )
    spread: Literal["interval", "percentiles"] = Field(
        default="interval",
        description="Values below medians: `interval` is the 95 % interval, `percentiles` are the "
        "10th and the 90th.",
    )
    runs: list[ShownRun] = Field(
        default=[], description="Runs with time-sequence diagrams and pictures."
    )


class Experiment(Table):
    """An experiment: networks, workloads, and sets of replications that pair them."""

    name: Name = Field(
        default="experiment", description="Name of the experiment. Results go to `results/NAME`."
    )
    description: str = Field(default="", description="Description of the experiment.")
    seed: int = Field(
        default=1,
        ge=0,
        le=2**63,
        description="Seed of the first replication of each cell. Replication N has the seed "
        "`seed + N - 1`.",
    )
    clock: Clock = Field(default="live", description="Clock of the sets.")
    log: LogLevel = Field(
        default="packets", description="Level of recording, as `--log` of `airpath exec`."
    )
    frames: Frames | None = Field(
        default=None,
        description="Recording of single frames, as `--frames` of `airpath exec` "
        "[default: `off` where a medium has resources, `on` elsewhere].",
    )
    reruns: int = Field(
        default=2,
        ge=0,
        le=20,
        description="Number of times that a live run is repeated while it is not trusted.",
    )
    metrics: list[str] = Field(
        default=list(DEFAULT),
        description="Metrics measured as each replication ends. Those of programs and of the "
        "engine's counters always are.",
    )
    lateness_bound: LatenessBound | None = Field(
        default=None,
        description="Lateness that a packet may have in a trusted live run, as `--lateness-bound` "
        "of `airpath exec`.",
    )
    economy: Economy | None = Field(
        default=None,
        description="Trade of exact departures for processor time in live runs, as `--economy` of "
        "`airpath exec`.",
    )
    keep_free: Length = Field(default="500 MB", description="Disk space that must stay free.")
    networks: dict[Name, Network] = Field(description="Networks by name.", min_length=1)
    workloads: dict[Name, Workload] = Field(description="Workloads by name.", min_length=1)
    sets: list[Set] = Field(description="Replication sets.", min_length=1)
    references: list[Reference] = Field(
        default=[], description="Figures from elsewhere, which the report shows beside results."
    )
    report: ReportPage = Field(
        default=ReportPage(), description="Content of the page of `airpath report`."
    )


def schema() -> dict[str, Any]:
    """Return the JSON Schema of experiment files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Experiment.model_json_schema(),
    }
