# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Damaged files through the readers of the Python package.

Usage: python -m campaigns.fuzz_readers [OPTIONS] in the folder `tests`; see --help. A reader may
refuse a file with an error of its own; anything else is a failure. Input N of a seed is the same
everywhere, whatever ran before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import readers
from campaigns.common import ROOT, Campaign, drawn_seed, limit_memory

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

CORPUS = ROOT / "fuzz" / "corpus" / "readers"
"""Files that once broke a reader."""

OF_SUFFIX = {
    ".qlog": ("qlog", "qlog sequence"),
    ".toml": ("experiment",),
    ".sqlite": ("catalogue",),
    ".pcapng": ("pcapng", "run's packets"),
    ".arrow": ("arrow file", "run's events", "report"),
}
SLOW_SHARE = 50
"""A slow reader gets one input for so many of a quick one."""


@dataclass(frozen=True)
class Job:
    """The inputs of one reader."""

    name: str
    seed: int
    inputs: int
    seconds: float
    """Limit of the whole time; 0 for none."""
    limit: float
    """Limit of the time for one input, in seconds."""
    memory: int
    """Limit of the readers' memory, in megabytes; 0 for none."""


def reader_of(name: str) -> readers.Reader:
    """Return the reader of that name."""
    return next(one for one in readers.READERS if one.name == name)


def seeds_of(name: str) -> list[tuple[str, bytes]]:
    """Return the files of the corpus for a reader."""
    return [
        (path.name, path.read_bytes())
        for path in sorted(CORPUS.iterdir())
        if name in OF_SUFFIX.get(path.suffix, ())
    ]


def content_of(sample: readers.Sample, seed: int, number: int) -> bytes:
    """Return input `number` of a seed: first the corpus as it is, then damaged samples."""
    corpus = seeds_of_cached(sample.reader.name)
    if number < len(corpus):
        return corpus[number][1]
    generator = random.Random(f"{seed} {sample.reader.name} {number}")
    pool = [sample.content, sample.content, *(content for _, content in corpus)]
    return readers.damaged(generator.choice(pool), generator)


_CACHE: dict[str, list[tuple[str, bytes]]] = {}


def seeds_of_cached(name: str) -> list[tuple[str, bytes]]:
    """Return the same, read once."""
    if name not in _CACHE:
        _CACHE[name] = seeds_of(name)
    return _CACHE[name]


def work(job: Job, first: int, pipe: Connection, place: str) -> None:
    """Give inputs to a reader in a process of its own; tell each before it is tried."""
    if job.memory:
        limit_memory(job.memory)
    warnings.simplefilter("ignore")
    # In the folder of who started this process, and who removes it however this one ends.
    tempfile.tempdir = place
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    end = time.monotonic() + job.seconds if job.seconds else float("inf")
    with readers.sample_of(reader_of(job.name)) as sample:
        for number in range(first, job.inputs):
            if time.monotonic() >= end:
                break
            content = content_of(sample, job.seed, number)
            pipe.send(("at", number))
            what = sample.try_with(content)
            if what:
                pipe.send(("failed", number, what, content))
    pipe.send(("end",))


def try_reader(job: Job, campaign: Campaign) -> None:
    """Try one reader; a process that dies or stands still is a failure of the input at work."""
    with tempfile.TemporaryDirectory(prefix="damaged-reader-") as place:
        _try_in(place, job, campaign)


def _try_in(place: str, job: Job, campaign: Campaign) -> None:
    first, begun = 0, time.monotonic()
    # Not forked: what has threads of its own must not be copied into a child.
    context = multiprocessing.get_context("spawn")
    while first < job.inputs:
        spent = time.monotonic() - begun
        if job.seconds and spent >= job.seconds:
            break
        left = Job(
            job.name, job.seed, job.inputs, max(job.seconds - spent, 0.1) if job.seconds else 0.0,
            job.limit, job.memory,
        )  # fmt: skip
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(left, first, theirs, place), daemon=True)
        process.start()
        theirs.close()
        at, ended, slow = first - 1, False, False
        while not ended:
            try:
                # Imports and the first sample take their time, too.
                if not ours.poll(job.limit + (60 if at < first else 0)):
                    slow = True
                    break
                message = ours.recv()
            except (EOFError, OSError):
                break
            if message[0] == "at":
                at = message[1]
                campaign.tried += 1
            elif message[0] == "failed":
                campaign.failed(f"{job.name}: {message[2]}", message[3], f"{job.name}-{message[1]}")
            else:
                ended = True
        if slow:
            process.kill()
        process.join()
        if ended:
            return
        with readers.sample_of(reader_of(job.name)) as sample:
            content = content_of(sample, job.seed, max(at, 0))
        how = f"took longer than {job.limit} s" if slow else f"died: status {process.exitcode}"
        campaign.failed(f"{job.name}: {how}", content, f"{job.name}-{at}")
        first = max(at, first) + 1


def shares(chosen: list[readers.Reader], inputs: int) -> dict[str, int]:
    """Return how many of `inputs` each reader gets."""
    weights = {one.name: 1 if one.name in readers.SLOW else SLOW_SHARE for one in chosen}
    total = sum(weights.values())
    return {name: max(1, inputs * weight // total) for name, weight in weights.items()}


def run(
    seed: int, inputs: int, *, names: list[str] | None = None, seconds: float = 0.0,
    limit: float = 30.0, memory: int = 4_000, jobs: int = 1,
) -> Campaign:  # fmt: skip
    """Try every reader, or those named, several at a time."""
    campaign = Campaign("readers", seed)
    chosen = [one for one in readers.READERS if not names or one.name in names]
    parts = shares(chosen, inputs)
    each = seconds * jobs / len(chosen) if seconds else 0.0

    def try_one(reader: readers.Reader) -> None:
        part = max(parts[reader.name], len(seeds_of(reader.name)))
        try_reader(Job(reader.name, seed, part, each, limit, memory), campaign)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(try_one, chosen))
    return campaign


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Damaged files through the readers of Python.")
    parser.add_argument("--inputs", type=int, default=2_000, help="how many in all")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, help="drawn and printed if not given")
    parser.add_argument("--reader", action="append", help="only this reader; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory", type=int, default=4_000, help="of each process, in megabytes")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one input")
    parser.add_argument("--input", type=Path, help="give this file to the only --reader")
    options = parser.parse_args()
    known = [one.name for one in readers.READERS]
    if unknown := [name for name in options.reader or [] if name not in known]:
        parser.error(f"there is no reader {unknown[0]!r}; there are {', '.join(known)}")
    if options.input:
        return one_input(options.reader, options.input)
    seed = drawn_seed() if options.seed is None else options.seed
    print(f"readers: seed {seed}", flush=True)
    return run(
        seed, options.inputs, names=options.reader, seconds=options.seconds, limit=options.limit,
        memory=options.memory, jobs=max(1, options.jobs),
    ).tell()  # fmt: skip


def one_input(names: list[str] | None, path: Path) -> int:
    """Give one file to one reader, and show what it says."""
    if not names or len(names) != 1:
        print("name one reader with --reader", file=sys.stderr)
        return 2
    with readers.sample_of(reader_of(names[0])) as sample:
        what = sample.try_with(path.read_bytes())
    print(what or "nothing is wrong")
    return 1 if what else 0


if __name__ == "__main__":
    sys.exit(main())
