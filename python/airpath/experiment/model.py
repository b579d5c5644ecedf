"""Model of an experiment file: the one declaration, from which checks and schema follow.

pydantic, because it reports every error of a file at once, each with its place, and writes the
JSON Schema from the same declarations; of the alternatives msgspec stops at the first error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag

from airpath.experiment.keys import (
    Clock,
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
    """A link in short words: each is the option of that name of ``airpath exec``."""

    rate: str | None = Field(default=None, description="Rate, or UPLINK,DOWNLINK")
    delay: str | None = Field(default=None, description="One-way delay, or UPLINK,DOWNLINK")
    jitter: str | None = Field(default=None, description="Standard deviation of the delay")
    loss: str | None = Field(default=None, description="Probability that a packet is lost")
    reorder: str | None = Field(default=None, description="Probability that a packet is held back")
    duplicate: str | None = Field(default=None, description="Probability that a packet comes twice")
    queue: str | None = Field(default=None, description="What the queue before the link holds")
    blackout: str | None = Field(default=None, description="BEGIN,LENGTH[,drop|store]")


class Network(Table):
    """Network between the two ends."""

    profile: str | None = Field(default=None, description="A built-in link (airpath profiles)")
    scenario: str | None = Field(
        default=None, description="A scenario file, beside the experiment's"
    )
    inline: dict[str, Any] | None = Field(default=None, description="A scenario, written here")
    link: Link = Field(default=Link(), description="A link in short words, or changes to one")
    set: dict[str, Scalar] = Field(default={}, description="Parameters of the scenario to override")
    mtu: Mtu | None = Field(default=None, description="MTU of both ends in bytes")


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
        default=None, description="Another workload, from which it takes what it does not say"
    )
    programs: list[AnyProgram] = Field(default=[], description="Programs, for clocks live and warp")
    virtual: list[str] = Field(
        default=[], description="Workloads of airpath sim, for the clock virtual"
    )
    duration: Time | None = Field(default=None, description="Clock virtual: end of the run")
    parameters: dict[str, Scalar] = Field(default={}, description="Values that stand for {{NAME}}")
    congestion_control: str | None = Field(
        default=None, description="Of TCP at both ends; live, warp"
    )
    time_limit: Time = Field(
        default="15 min", description="How long a replication may take, real time"
    )
    output_limit: Length = Field(
        default="10 MB", description="How much of each program's output to keep"
    )


class Until(Table):
    """A stopping rule: replications until the mean of a metric is known well enough."""

    metric: str = Field(description="A metric of airpath analyse --list: NAME or NAME/PLACE")
    half_width: Share = Field(description="Half-width of the 95 % interval, relative to the mean")
    least: int = Field(default=5, ge=2, description="Replications at least")
    most: int = Field(default=100, ge=2, description="Replications at most")


class Sweep(Table):
    """Parameters and their values: network.NAME, workload.NAME, congestion_control or mtu."""

    grid: dict[str, list[Scalar]] = Field(default={}, description="Every value with every other")
    zip: dict[str, list[Scalar]] = Field(
        default={}, description="First values together, then second ones"
    )
    rows: list[dict[str, Scalar]] = Field(default=[], description="Combinations, one a table")


class Set(Table):
    """A replication set: networks with workloads, so many times."""

    name: Name = Field(description="Its name, also of its folder")
    network: str | list[str] = Field(description="Network or networks", min_length=1)
    workload: str | list[str] = Field(description="Workload or workloads", min_length=1)
    repetitions: int | None = Field(default=None, ge=1, le=1_000_000, description="How often")
    until: Until | None = Field(default=None, description="Instead of repetitions: a stopping rule")
    clock: Clock | None = Field(
        default=None, description="By which clock; default: the experiment's"
    )
    lateness_bound: LatenessBound | None = Field(
        default=None, description="As the experiment's, for this set"
    )
    seed: int | None = Field(default=None, ge=0, description="Seed of the first replication")
    random_numbers: Literal["common", "independent"] = Field(
        default="common",
        description="common: replication N has the same seed in every cell and set",
    )
    sweep: Sweep = Field(default=Sweep(), description="Parameters to vary")
    tags: list[Name] = Field(default=[], description="Tags of its runs in the catalogue")


class Figures(Table):
    """Published figure of a metric over their replications."""

    median: float = Field(description="Median")
    p10: float | None = Field(default=None, description="10th percentile")
    p90: float | None = Field(default=None, description="90th percentile")


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

    name: str = Field(description="What it is called on the page", min_length=1)
    source: str = Field(default="", description="Where the figures come from")
    sets: list[str] = Field(
        default=["*"], description="SET/CELL of the results that it stands beside, with * and ?"
    )
    metrics: dict[str, AnyFigures] = Field(
        description="METRIC of airpath analyse or METRIC/DIRECTION, in the metric's unit",
        min_length=1,
    )


class ShownRun(Table):
    """A run whose diagram and pictures are on the page of the report."""

    run: str = Field(description="SET/CELL:REPLICATION, with * and ?")
    caption: str = Field(default="", description="What is to be seen in it")


class ReportPage(Table):
    """Content of the page of ``airpath report`` on the experiment."""

    title: str | None = Field(default=None, description="Title of the page")
    notes: str | None = Field(
        default=None, description="A Markdown file beside this one, shown as a section"
    )
    metrics: list[str] = Field(
        default=[], description="METRIC or METRIC/DIRECTION: columns of the table of sets"
    )
    spread: Literal["interval", "percentiles"] = Field(
        default="interval",
        description="Below medians: their 95 % interval, or 10th and 90th percentile",
    )
    runs: list[ShownRun] = Field(
        default=[], description="Runs with diagrams and pictures; default: all, and the first ones"
    )


class Experiment(Table):
    """An experiment: networks, workloads, and sets of replications that pair them."""

    name: Name = Field(default="experiment", description="Its name")
    description: str = Field(default="", description="What it is about")
    seed: int = Field(
        default=1, ge=0, le=2**63, description="Seed of the first replication of each cell"
    )
    clock: Clock = Field(default="live", description="By which clock its sets run")
    log: LogLevel = Field(default="packets", description="What each run records")
    reruns: int = Field(
        default=2, ge=0, le=20, description="How often a run that became suspect is run again"
    )
    metrics: list[str] = Field(
        default=list(DEFAULT), description="Metrics measured of each replication as it ends"
    )
    lateness_bound: LatenessBound | None = Field(
        default=None,
        description="Clock live: how late a packet may enter or leave before a run is suspect: a "
        "time, or a share of the least time that it takes (default: 5%,100 us)",
    )
    keep_free: Length = Field(default="500 MB", description="Disk space that must stay free")
    networks: dict[Name, Network] = Field(description="What is between the ends", min_length=1)
    workloads: dict[Name, Workload] = Field(description="What runs at the ends", min_length=1)
    sets: list[Set] = Field(description="Replication sets", min_length=1)
    references: list[Reference] = Field(
        default=[], description="Figures from elsewhere, shown beside results"
    )
    report: ReportPage = Field(default=ReportPage(), description="What airpath report shows")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of experiment files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Experiment.model_json_schema(),
    }
