# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Replications on the workers of a dask cluster: one of this machine, or one that was started.

Workers write into the folder of results themselves, so all of them have to see it. A replication
whose worker dies begins anew on another one; its folder is whole or not there.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airpath import interrupt
from airpath.engine import EngineError, find_engine
from airpath.experiment import replicate as replication
from airpath.experiment.executors import ExecutorError, Workers
from airpath.experiment.replicate import Outcome, Task
from airpath.extras import require
from airpath.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

CONNECT_S = 10
"""Time limit for reaching a scheduler, and for its first worker."""

QUEUED_PER_SLOT = 2
"""Replications handed out for each that runs, so that no worker waits for the next one."""

PROBE = ".workers"
"""Beginning of the name of the file by which workers are known to see the results."""


@contextmanager
def workers(address: str, root: Path) -> Iterator[Workers]:
    """Yield the workers of the scheduler at an address, or of a cluster of this machine.

    Args:
        address: HOST:PORT of a scheduler; "" for a cluster of this machine alone, which ends with
            the context.
        root: folder of the results.

    Raises:
        ExecutorError: the scheduler cannot be reached or has no workers, or a worker has another
            version of Airpath, no engine, or does not see the folder.
        MissingExtraError: dask is not installed.

    """
    require("distributed", "airpath run --executor dask")
    import dask
    from distributed import Client, LocalCluster

    # What matters of its warnings and tracebacks is told as an error of this command.
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings = {
        "distributed.scheduler.worker-ttl": "30s",
        "distributed.admin.tick.limit": "1h",
        "distributed.comm.timeouts.connect": f"{CONNECT_S}s",
    }
    with (
        interrupt.temporary_folder("airpath-") as scratch,
        dask.config.set({**settings, "temporary-directory": str(scratch)}),
    ):
        if address:
            client = _connect(address)
            cluster = None
        else:
            processors = max(1, len(os.sched_getaffinity(0)))
            cluster = LocalCluster(
                n_workers=processors,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=50,
                local_directory=str(scratch),
            )
            client = Client(cluster, timeout=CONNECT_S)
        try:
            slots = _check(client, root)
            yield Workers(
                pool=lambda: _Pool(client, address or "the local cluster"),
                carry_out=carry_out,
                stop=lambda: _stop(client),
                slots=slots * QUEUED_PER_SLOT,
            )
        finally:
            for one in (client, cluster):
                if one is not None:
                    with suppress(OSError, TimeoutError):
                        one.close(timeout=CONNECT_S)


def _connect(address: str) -> Client:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ExecutorError(
            f"--executor dask://{address}: no scheduler answers there ({reason}); start one with "
            f"`dask scheduler`, or name its address as HOST:PORT"
        ) from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError as error:
        client.close()
        raise ExecutorError(
            f"--executor dask://{address}: the scheduler has no workers; start some with "
            f"`dask worker {address}`"
        ) from error
    return client


def _check(client: Client, root: Path) -> int:
    """Return the number of replications that the workers run at once, all of which fit."""
    token = secrets.token_hex(8)
    probe = root / f"{PROBE}-{os.getpid()}"
    write_whole(probe, token)
    try:
        own = _about(str(probe))
        found: dict[str, dict[str, Any]] = client.run(_about, str(probe), on_error="return")
    finally:
        probe.unlink(missing_ok=True)
    for worker, about in found.items():
        where = f"the worker {worker}"
        if not isinstance(about, dict):
            raise ExecutorError(
                f"{where} cannot run Airpath: {about}; install the same airpath[distributed] there"
            )
        where += f" on {about['host']}"
        if about["facts"] != own["facts"]:
            raise ExecutorError(
                f"{where} has another version of Airpath ({about['version']}, here "
                f"{own['version']}); install the same one there"
            )
        if about["engine_error"]:
            raise ExecutorError(f"{where}: {about['engine_error']}")
        if about["token"] != token:
            raise ExecutorError(
                f"{where} does not see the folder of results, {root.resolve()}; name a folder "
                f"with --out that all workers share, such as one on NFS"
            )
    threads: dict[str, int] = cast("Any", client).nthreads()
    return sum(threads.values())


def _about(probe: str) -> dict[str, Any]:
    """Return the version, the engine and the view of a worker; runs there."""
    import hashlib

    import airpath.facts

    replication.STOP.clear()
    facts = Path(airpath.facts.__file__).with_name("facts.json")
    try:
        find_engine()
        engine_error = ""
    except EngineError as error:
        engine_error = str(error)
    try:
        token = Path(probe).read_text(encoding="utf-8")
    except OSError:
        token = ""
    return {
        "host": socket.gethostname(),
        "version": _version(),
        "facts": hashlib.sha256(facts.read_bytes()).hexdigest(),
        "engine_error": engine_error,
        "token": token,
    }


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("airpath")
    except PackageNotFoundError:
        return "of unknown version"


def _stop(client: Client) -> None:
    """End what runs on the workers, as far as they can be reached."""
    if client.status == "running":
        with suppress(Exception):
            client.run(_stop_here, wait=False)


def _stop_here() -> None:
    replication.STOP.set()


def carry_out(task: Task) -> Outcome:
    """Run a replication with the worker's own engine."""
    return replication.replicate(replace(task, command=(find_engine(), *task.command[1:])))


class _Pool(Executor):
    """Futures of this process for those of dask."""

    def __init__(self, client: Client, where: str) -> None:
        self.client: Any = client  # dask has few types
        self.where = where
        self.flying: dict[Future[Any], Any] = {}

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        inner = self.client.submit(
            function, *arguments, **options, key=f"airpath-{secrets.token_hex(12)}", pure=False
        )
        # Dask forgets a future that nobody holds.
        self.flying[outer] = inner
        inner.add_done_callback(lambda done: self._settle(outer, done))
        return outer

    def _settle(self, outer: Future[Any], inner: Any) -> None:
        from distributed import KilledWorker

        self.flying.pop(outer, None)
        gone = OSError(errno.ECONNRESET, "the scheduler is gone", self.where)
        if inner.status == "finished":
            try:
                outer.set_result(inner.result(timeout=CONNECT_S))
            except Exception as error:  # whatever dask says, the result is lost
                outer.set_exception(error if isinstance(error, OSError) else gone)
        elif inner.status == "error":
            failure = inner.exception(timeout=CONNECT_S)
            if isinstance(failure, KilledWorker):
                message = "the workers died on which it was tried"
                outer.set_result(Outcome("broken", "unknown", message))
            else:
                outer.set_exception(failure)
        else:
            outer.set_exception(gone)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait
        if cancel_futures and self.flying:
            with suppress(Exception):
                self.client.cancel(list(self.flying.values()))
