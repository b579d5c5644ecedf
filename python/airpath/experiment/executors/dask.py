# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Replications on the workers of a dask cluster: one of this machine, or one that was started.

A replication whose worker dies begins anew on another one; its folder is whole or not there.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airpath import interrupt
from airpath.experiment.executors import ExecutorError, Workers, errands
from airpath.experiment.executors.errands import TOKEN, Answer, Errand
from airpath.experiment.executors.inputs import inputs_of
from airpath.experiment.replicate import PART, Outcome, replicate
from airpath.extras import require
from airpath.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distributed import Client

    from airpath.experiment.plan import Plan

CONNECT_S = 10
"""Time limit for reaching a scheduler, and for its first worker."""

QUEUED_PER_SLOT = 2
"""Replications handed out for each that runs, so that no worker waits for the next one."""

LANDING_THREADS = 8
"""Threads that take in what comes back, which is mostly waiting for a disk or a store."""

SWEEPER = """\
import shutil, sys, time
sys.stdin.buffer.read()
for _ in range(20):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    time.sleep(0.1)
"""
"""Removes a folder once its standard input ends, as it does when the process before it is gone.
Several times, because workers that are dying may still make a file."""


@contextmanager
def workers(
    address: str, root: Path, made: Plan, keep: Callable[[Path], None]
) -> Iterator[Workers]:
    """Yield the workers of the scheduler at an address, or of a cluster of this machine.

    Args:
        address: HOST:PORT of a scheduler; "" for a cluster of this machine alone, which ends with
            the context.
        root: folder of the results.
        made: what they shall run.
        keep: called with the folder of each run that is complete, before its outcome is told.

    Raises:
        ExecutorError: the scheduler cannot be reached or has no workers, or a worker has another
            version of Airpath, or no engine.
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
        _swept_folder() as scratch,
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
        run = secrets.token_hex(8)
        token = root / TOKEN
        pool = None
        try:
            write_whole(token, run)
            slots = _check(client, root, run)
            pool = _Pool(client, address or "the local cluster", root, run, made, keep)
            held = pool
            yield Workers(
                pool=lambda: held,
                carry_out=replicate,
                stop=lambda: _stop(client, run),
                slots=slots * QUEUED_PER_SLOT,
            )
        finally:
            token.unlink(missing_ok=True)
            for one in (client, cluster):
                if one is not None:
                    with suppress(OSError, TimeoutError):
                        one.close(timeout=CONNECT_S)


@contextmanager
def _swept_folder() -> Iterator[Path]:
    """Make a temporary folder that goes when the block ends, or the process, even by SIGKILL."""
    with interrupt.temporary_folder("airpath-") as folder:
        with interrupt.held():
            sweeper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SWEEPER, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            yield folder
        finally:
            sweeper.kill()
            sweeper.wait()
            assert sweeper.stdin is not None
            sweeper.stdin.close()


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


def _check(client: Client, root: Path, run: str) -> int:
    """Return the number of replications that the workers run at once, all of which fit."""
    own = errands.about(str(root.resolve()), run)
    found: dict[str, dict[str, Any]] = client.run(
        errands.about, str(root.resolve()), run, on_error="return"
    )
    for worker, about in found.items():
        where = f"the worker {worker}"
        if not isinstance(about, dict):
            raise ExecutorError(
                f"{where} cannot run Airpath ({about}); install the same airpath[distributed] "
                f"there, in the Python of `dask worker`"
            )
        where += f" on {about['host']}"
        if about["facts"] != own["facts"]:
            raise ExecutorError(
                f"{where} has another version of Airpath ({about['version']}, here "
                f"{own['version']}); install the same one there"
            )
        if about["engine_error"]:
            raise ExecutorError(f"{where}: {about['engine_error']}")
    threads: dict[str, int] = cast("Any", client).nthreads()
    return sum(threads.values())


def _stop(client: Client, run: str) -> None:
    """End what runs on the workers, as far as they can be reached."""
    if client.status == "running":
        with suppress(Exception):
            client.run(errands.stop_here, run, wait=False)


class _Pool(Executor):
    """Futures of this process for those of dask."""

    def __init__(
        self,
        client: Client,
        where: str,
        root: Path,
        run: str,
        made: Plan,
        keep: Callable[[Path], None],
    ) -> None:
        self.client: Any = client  # dask has few types
        self.where = where
        self.root = str(root.resolve())
        self.run = run
        self.keep = keep
        self.flying: dict[Future[Any], Any] = {}
        self.landing = ThreadPoolExecutor(LANDING_THREADS, "landing")
        packed = inputs_of(made, root)
        self.digest = hashlib.sha256(packed).hexdigest()[:16]
        # A task like the others: what a dead worker held is sent once more.
        self.inputs = self.client.submit(bytes, packed, key=f"airpath-inputs-{run}", pure=False)

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        del function, options  # replications alone
        (task,) = arguments
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        errand = Errand(task, self.run, self.root, errands.facts(), self.digest)
        key = f"airpath-{self.run}-{secrets.token_hex(8)}"
        inner = self.client.submit(errands.carry_out, errand, self.inputs, key=key, pure=False)
        # Dask forgets a future that nobody holds.
        self.flying[outer] = inner
        inner.add_done_callback(
            lambda done: self.landing.submit(self._settle, outer, done, Path(task.folder))
        )
        return outer

    def _settle(self, outer: Future[Any], inner: Any, folder: Path) -> None:
        try:
            outer.set_result(self._landed(inner, folder))
        except Exception as error:
            outer.set_exception(error)
        finally:
            self.flying.pop(outer, None)

    def _landed(self, inner: Any, folder: Path) -> Outcome:
        """Return the outcome of a replication whose folder is in its place.

        Raises:
            OSError: the cluster is gone, a worker cannot run replications, or the folder cannot be
                written.

        """
        from distributed import KilledWorker

        gone = OSError(errno.ECONNRESET, "the scheduler is gone", self.where)
        if inner.status == "error":
            failure = inner.exception(timeout=CONNECT_S)
            if isinstance(failure, KilledWorker):
                message = "the workers died on which it was tried"
                return Outcome("broken", "unknown", message)
            if isinstance(failure, OSError):
                raise failure
            what = (
                f"a worker failed ({type(failure).__name__}: {failure}); is the same Airpath there?"
            )
            raise OSError(errno.EIO, what, self.where) from failure
        if inner.status != "finished":
            raise gone
        try:
            answer: Answer = inner.result(timeout=CONNECT_S)
        except OSError:
            raise
        except Exception as error:  # whatever dask says, the result is lost
            raise gone from error
        outcome = errands.land(answer, folder)
        if outcome.status != "stopped":
            self.keep(folder)
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures and self.flying:
            with suppress(Exception):
                self.client.cancel(list(self.flying.values()))
        self.landing.shutdown(wait=wait)
        # Of a worker that died while it copied a run.
        for part in Path(self.root).glob(f"runs/*/*/*{PART}"):
            shutil.rmtree(part, ignore_errors=True)
