# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Types of keys, and the tables, that the model of an experiment shares with templates."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

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
USER_PATTERN = r"^[A-Za-z0-9_*?.-]+$"
End = Literal["client", "server"]
Clock = Literal["live", "warp", "virtual"]
LogLevel = Literal["none", "counters", "events", "packets"]
Frames = Literal["on", "off"]
Economy = Literal["off", "on", "auto"]
Mtu = Annotated[int, Field(ge=LEAST_MTU_BYTES, le=LONGEST_PACKET_BYTES)]


class Table(BaseModel):
    """A table without keys that are not declared."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
    user: str | None = Field(
        default=None,
        pattern=USER_PATTERN,
        description="User of a cell at whose client's end it runs, or a pattern of users with `*` "
        "and `?`, such as `bbr-*`; without it, at that of every user",
    )


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

    @model_validator(mode="after")
    def _user_has_a_client(self) -> Self:
        if self.user is not None and self.end == "server":
            message = "the server's end is one for all users: leave out `user`"
            raise ValueError(message)
        return self
