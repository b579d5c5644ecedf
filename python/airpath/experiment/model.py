"""Model of an experiment file: the one declaration, from which checks and schema follow.

pydantic, because it reports every error of a file at once, each with its place, and writes the
JSON Schema from the same declarations; of the alternatives msgspec stops at the first error.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from airpath.experiment.metrics import DEFAULT
from airpath.experiment.quantities import (
    lateness_bound,
    length_bytes,
    rate_bps,
    share,
    time_ns,
)
from airpath.facts import LEAST_MTU_BYTES, LONGEST_PACKET_BYTES

Scalar = str | int | float | bool


def _check(parse: Any) -> AfterValidator:
    def validate(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(validate)


Time = Annotated[str, _check(time_ns)]
LatenessBound = Annotated[str, _check(lateness_bound)]
Length = Annotated[str, _check(length_bytes)]
Rate = Annotated[str, _check(rate_bps)]
Share = Annotated[str, _check(share)]
Amount = int | Length
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=64)]
End = Literal["client", "server"]
Clock = Literal["live", "warp", "virtual"]
LogLevel = Literal["none", "counters", "events", "packets"]
Mtu = Annotated[int, Field(ge=LEAST_MTU_BYTES, le=LONGEST_PACKET_BYTES)]


class Table(BaseModel):
    """A table without keys that are not declared."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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


class Ready(Table):
    """Sign that a program is ready; one of the keys."""

    port: int | None = Field(
        default=None, ge=1, le=65535, description="The program listens at this port."
    )
    command: str | None = Field(
        default=None, description="This shell command succeeds at the program's end."
    )
    output: str | None = Field(
        default=None, description="A line of the program's output matches this regular expression."
    )
    within: Time = Field(default="10 s", description="Time limit for the sign.")


class Common(Table):
    """Common keys of every program, whether written out or made by a template."""

    name: Name | None = Field(default=None, description="What to call it in results")
    start: Time = Field(default="0 s", description="When it starts, after t = 0")
    time_limit: Time = Field(default="10 min", description="How long it may run")
    environment: dict[str, str] = Field(default={}, description="Added to its environment")


class Program(Common):
    """Any program, at one of the ends."""

    end: End = Field(description="End at which the program runs.")
    command: str | list[str] = Field(
        description="Shell command, or a list of a program and its arguments.", min_length=1
    )
    ready: Ready | None = Field(
        default=None,
        description="Sign that the program is ready. The program starts before t = 0, and t = 0 "
        "waits for the sign.",
    )
    service: bool | None = Field(
        default=None,
        description="Whether the program is stopped at the end of the replication, which does not "
        "wait for it.",
    )
    keep: list[str] = Field(
        default=["*"], description="Patterns of the files in the program's folder that are kept."
    )
    exit_status: list[int] = Field(default=[0], description="Exit statuses that mean success.")


class Iperf3(Common):
    """iperf3 at both ends; its JSON is kept."""

    template: Literal["iperf3"]
    bytes: Amount | None = Field(default=None, description="How much to send: bytes, or `1 MB`")
    time: Time | None = Field(default=None, description="How long to send")
    sender: End = Field(default="server", description="The end that sends")
    parallel: int = Field(default=1, ge=1, le=128, description="Streams")
    congestion_control: str | None = Field(default=None, description="The sender's")
    udp_rate: Rate | None = Field(
        default=None, description="Datagrams at this rate of payload instead of TCP; live only"
    )
    length: int | None = Field(
        default=None, ge=16, le=65507, description="Payload of a datagram in bytes"
    )
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")


class Send(Common):
    """``airpath send`` and ``airpath recv``."""

    template: Literal["send"]
    bytes: Amount | None = Field(default=None, description="How much to send: bytes, or `1 MB`")
    time: Time | None = Field(default=None, description="How long to send")
    sender: End = Field(default="server", description="The end that sends")
    parallel: int = Field(default=1, ge=1, le=128, description="Streams")
    congestion_control: str | None = Field(default=None, description="The sender's")
    udp_rate: Rate | None = Field(default=None, description="Datagrams at this rate instead of TCP")
    length: int | None = Field(default=None, ge=16, description="Payload of a datagram in bytes")
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")


class Interactive(Common):
    """Small requests and responses in turn over one connection, as a remote shell has them."""

    template: Literal["interactive"]
    count: int = Field(default=50, ge=1, description="Requests")
    request: int = Field(default=48, ge=1, description="Bytes of a request")
    response: int = Field(default=96, ge=1, description="Bytes of a response")
    think: Time = Field(
        default="0 s", description="From a response to the next request; with exponential the mean"
    )
    think_times: Literal["fixed", "exponential"] = Field(
        default="fixed", description="exponential: drawn anew each time, by the replication's seed"
    )
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")


class Curl(Common):
    """curl fetches files, or pages with their parts, from a small built-in HTTP/1.1 server."""

    template: Literal["curl"]
    size: Amount = Field(default="100 kB", description="Length of the file or of the page itself")
    pages: int = Field(default=1, ge=1, le=1000, description="Pages, one after the other")
    pause: Time = Field(default="0 s", description="From the end of a page to the next")
    parts: int = Field(default=0, ge=0, le=1000, description="Parts of a page, fetched after it")
    part_size: Amount = Field(default="20 kB", description="Length of each part")
    connections: int = Field(default=6, ge=1, le=100, description="Connections for the parts")
    port: int = Field(default=8000, ge=1, le=65535, description="The server's port")


class Ping(Common):
    """Echo requests from the client; that some, or all, are lost is no failure."""

    template: Literal["ping"]
    count: int = Field(default=10, ge=1, description="Requests")
    interval: Time = Field(default="1 s", description="From one to the next")
    size: int = Field(default=56, ge=16, le=65507, description="Payload in bytes")


class Ffmpeg(Common):
    """ffmpeg streams a test picture as MPEG-TS from the server to the client."""

    template: Literal["ffmpeg"]
    time: Time = Field(default="10 s", description="How long to stream")
    transport: Literal["udp", "rtp", "tcp"] = Field(
        default="udp", description="What carries it; rtp: over UDP, with numbered datagrams"
    )
    codec: Literal["mpeg2video", "libx264"] = Field(
        default="mpeg2video", description="ffmpeg's encoder; libx264 is H.264"
    )
    bitrate: str = Field(default="300k", description="ffmpeg's -b:v")
    picture: str = Field(
        default="320x240", pattern="^[0-9]+x[0-9]+$", description="Width and height"
    )
    frames_per_second: int = Field(default=15, ge=1, le=120, description="Frames per second")
    key_frame_interval: Time = Field(
        default="1 s", description="From one picture that needs no other to the next"
    )
    buffer: Time = Field(
        default="500 ms",
        description="How long after the first picture has come a player begins to show it",
    )
    port: int = Field(
        default=5004, ge=1024, le=65535, description="The client's port; with tcp the server's"
    )


def _kind(value: Any) -> str | None:
    template = value.get("template") if isinstance(value, dict) else None
    template = template or getattr(value, "template", None)
    return "program" if template is None else str(template)


AnyProgram = Annotated[
    Annotated[Program, Tag("program")]
    | Annotated[Iperf3, Tag("iperf3")]
    | Annotated[Send, Tag("send")]
    | Annotated[Interactive, Tag("interactive")]
    | Annotated[Curl, Tag("curl")]
    | Annotated[Ping, Tag("ping")]
    | Annotated[Ffmpeg, Tag("ffmpeg")],
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
