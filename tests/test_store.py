# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results at a URL: written run by run, resumed anywhere, read by commands; errors told."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.store import files, keeper, mirror
from airpath.store.errors import StoreError
from airpath.store.url import Url, place
from experiments import airpath, journal, written

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = """
name = "small"
seed = 1
clock = "virtual"
log = "none"
[networks.link]
link = { rate = "2 Mbit/s", delay = "20 ms" }
[workloads.download]
virtual = ["tcp bytes=5000"]
[[sets]]
name = "set"
network = "link"
workload = "download"
repetitions = 3
"""


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have credentials, a cache of its own, and no network but loopback."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: make setup")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        files,
        "PATIENCE",
        {"connect_timeout": 5, "read_timeout": 20, "retries": {"max_attempts": 1}},
    )
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(account: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the file system of a server of S3 with a bucket called ``bucket``."""
    moto = pytest.importorskip("moto.moto_server.threaded_moto_server", reason="make setup")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    import s3fs

    found = s3fs.S3FileSystem()
    found.mkdir("bucket")
    yield found
    server.stop()


def test_results_in_s3_are_resumed_without_the_cache_and_read(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "s3://bucket/some/results"
    done = airpath("run", written(tmp_path, SMALL), "--out", url)
    assert done.returncode == 0, done.stderr
    assert f"3 succeeded; {url}" in done.stdout
    names = {name.removeprefix("bucket/some/results/") for name in bucket.find("bucket")}
    assert {"plan.json", "journal", "runs/set/all/0003/replication.json"} <= names
    assert not {"lock", "lock.json", "catalogue.sqlite"} & names
    # As a command that is killed leaves it: the last run is there, its line of the journal is not.
    lines = bucket.cat_file("bucket/some/results/journal").splitlines(keepends=True)
    bucket.pipe_file("bucket/some/results/journal", b"".join(lines[:2]))
    bucket.pipe_file("bucket/some/results/runs/set/all/0004/run.json", b"half of a run")
    records = [f"bucket/some/results/runs/set/all/000{n}/replication.json" for n in (1, 2, 3)]
    before = [bucket.cat_file(name) for name in records]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    refused = airpath("run", written(tmp_path, SMALL), "--out", url)
    assert refused.returncode == 2
    assert f"{url} holds 3 replications already" in refused.stderr
    more = written(tmp_path, SMALL.replace("repetitions = 3", "repetitions = 4"))
    resumed = airpath("run", more, "--out", url, "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["succeeded"] == 4
    bucket.invalidate_cache()
    assert [bucket.cat_file(name) for name in records] == before, "nothing twice"
    kept = bucket.cat_file("bucket/some/results/journal").decode().splitlines()
    assert sorted(json.loads(line)["replication"] for line in kept) == [1, 2, 3, 4]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "third"))
    tagged = airpath("results", url, "--add-tag", "good", "--json")
    assert tagged.returncode == 0, tagged.stderr
    assert json.loads(bucket.cat_file(f"{records[0].rpartition('/')[0]}/tags.json")) == ["good"]
    shown = airpath("analyse", url, "--metrics", "elapsed,duration", "--csv")
    assert shown.returncode == 0, shown.stderr
    assert "set/all" in shown.stdout
    with pytest.raises(StoreError, match=r"no bucket `nobody` to write .*aws s3 mb s3://nobody"):
        files.Store(Url("s3://nobody/x")).write("name", b"content")


def test_a_store_of_another_kind_holds_the_same(account: None, tmp_path: Path) -> None:
    file = written(tmp_path, SMALL.replace('log = "none"', 'log = "events"'))
    there = f"local://{tmp_path}/there"
    assert airpath("run", file, "--out", there).returncode == 0
    assert airpath("run", file, "--out", f"file://{tmp_path}/here").returncode == 0
    figures = [
        {one["replication"]: one["metrics"] for one in journal(tmp_path / name)}
        for name in ("there", "here")
    ]
    assert figures[0] == figures[1]
    page = airpath("report", there, "--out", tmp_path / "page.html")
    assert page.returncode == 0, page.stderr
    assert (tmp_path / "page.html").stat().st_size > 10_000
    pictures = tmp_path / "pictures"
    drawn = airpath("plot", there, "--out", pictures, "--only", "distribution")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.split() == [str(path) for path in sorted(pictures.iterdir())]
    nothing = airpath("plot", f"local://{tmp_path}/nowhere", "--out", pictures)
    assert nothing.returncode != 0
    assert "there is nothing" in nothing.stderr


def test_two_runs_do_not_write_to_one_store(account: None, tmp_path: Path) -> None:
    one, other = (keeper.Keeper(mirror.Mirror(Url(f"local://{tmp_path}/there"))) for _ in range(2))
    one.lock()
    with pytest.raises(StoreError, match="in use by another airpath run"):
        other.lock()
    lock = tmp_path / "there" / mirror.LOCK
    held = json.loads(lock.read_text())
    # Of this machine and gone; of another one without a sign of life; of another one and alive.
    lock.write_text(json.dumps(held | {"process": 2**22 + 1}))
    other.lock()
    lock.write_text(json.dumps(held | {"host": "x", "unix_s": time.time() - 3600}))
    other.lock()
    lock.write_text(json.dumps(held | {"host": "x"}))
    with pytest.raises(StoreError, match="on x"):
        other.lock()


@pytest.fixture
def refusing(account: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, str]]]:
    """Return a list whose one entry is what a server of S3 answers to everything."""
    answer: list[tuple[int, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            status, code = answer[0] if self.command == "GET" else (200, "")
            body = f"<Error><Code>{code}</Code><Message>said {code}</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = answer  # noqa: N815 (names of the library)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield answer
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((403, "AccessDenied"), "access denied, to read .*the right to s3:ListBucket"),
        ((400, "QuotaExceeded"), "no space is left there to read .*make room"),
        ((400, "Strange"), r"cannot read \(OSError: .*said Strange"),
    ],
)
def test_refusals_of_a_store_are_told(
    refusing: list[tuple[int, str]], answer: tuple[int, str], said: str
) -> None:
    refusing.append(answer)
    with pytest.raises(StoreError, match=said) as caught:
        files.Store(Url("s3://bucket/x")).read("name")
    assert caught.value.filename == "s3://bucket/x"


def test_a_store_that_is_not_reached_is_told(
    account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match=r"cannot be reached.*check the network"):
        files.Store(Url("s3://bucket/x")).read("name")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match=r"no credentials.*AWS_ACCESS_KEY_ID"):
        files.Store(Url("s3://bucket/x")).read("name")


@pytest.mark.parametrize("name", ["../outside", "a/../../outside"])
def test_names_that_lead_out_of_the_folder_are_refused(
    account: None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = files.Store(Url(f"local://{tmp_path}/there"))
    found = {f"{tmp_path}/there/{name}": {"size": 1, "mtime": 1}}
    monkeypatch.setattr(store.files, "find", lambda *_, **__: found)
    with pytest.raises(StoreError, match="leads out of a folder"):
        store.listed()


def test_words_that_are_places() -> None:
    assert place("a/b") == Path("a/b")
    assert place("file:///a/b%20c") == Path("/a/b c")
    url = place("s3://bucket/prefix/")
    assert isinstance(url, Url)
    assert (url, url.scheme, url.last) == ("s3://bucket/prefix", "s3", "prefix")
    for wrong in ("s3://", "file://host/x", "file://"):
        with pytest.raises(ValueError, match=wrong):
            place(wrong)


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("nothing://a/b", 2, "there is no such kind of URL"),
        ("file://host/x", 2, "not the URL of a folder"),
    ],
)
def test_urls_that_cannot_be_used_are_told(
    account: None, url: str, status: int, said: str, tmp_path: Path
) -> None:
    done = airpath("run", written(tmp_path, SMALL), "--out", url)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
