"""Rollouts in object stores and on the web: read as local files are, refused in a sentence, without a secret shown."""

import decimal
import gzip
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import some
from waiting import PATIENCE, until
from web import Web

import assay
from assay.loading.formats import remote
from assay.loading.formats.remote import SCHEMES, Remote

pytestmark = pytest.mark.xdist_group("store")  # one process of the suite starts it

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}
SECRET = "wJalrXUtnFEMI/K7MDENG+planted"  # noqa: S105  (planted, to be looked for)
SIGNATURE = "5d672d79c15b13162d9279b0planted"
TABLE = pl.DataFrame({"completion": ["a refund", "no", None, "é refund"], "n": [1, 2, 3, 4]})
LINES = b'{"completion": "a refund", "n": 1}\n{"completion": "no", "n": 2}\n'
DIRTY = b'\xef\xbb\xbf{"completion": "a \xff refund", "metadata": {"k": 1}}\r\n\r\n{"completion": "\\ud800", "n": NaN}'


def parquet(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def arrow(frame):
    file = io.BytesIO()
    frame.write_ipc(file)
    return file.getvalue()


OBJECTS = {
    "runs/a.parquet": parquet(TABLE),
    "runs/b.parquet": parquet(TABLE.select(completion=pl.col("completion").reverse())),
    "runs/_c.parquet": b"left out",
    "mixed/a.parquet": parquet(TABLE),
    "mixed/b.jsonl": LINES,
    "lines/a.jsonl": LINES,
    "lines/b.jsonl": b'{"completion": "refund", "other": [1]}',
    "lines/notes.txt": b"left out",
    "x/dirty.jsonl": DIRTY,
    "x/lines.jsonl.gz": gzip.compress(LINES),
    "x/table.arrow": arrow(TABLE),
    "x/table.csv": TABLE.select("completion").write_csv().encode(),
    "x/page.parquet": b"<html>no such page</html>",
    "x/cut.parquet": parquet(TABLE)[:-20],
    "x/bad.jsonl": b'{"completion": "b"}\n{',
    "x/empty.parquet": parquet(TABLE.clear()),
    "x/a[1] b.parquet": parquet(TABLE),
    "x/other.parquet": parquet(pl.DataFrame({"completion": [[1]]})),
}


@pytest.fixture(scope="module")
def store():
    """Options of an S3 server that has the objects."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        aws_access_key_id="planted-key-id",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="bucket")
    for key, content in OBJECTS.items():
        client.put_object(Bucket="bucket", Key=key, Body=content)
    yield {
        "aws_endpoint_url": f"http://{host}:{port}",
        "aws_access_key_id": "planted-key-id",
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
    }
    server.stop()


@pytest.fixture
def local(tmp_path):
    for key, content in OBJECTS.items():
        (tmp_path / key).parent.mkdir(exist_ok=True)
        (tmp_path / key).write_bytes(content)
    return tmp_path


def refusal(source, options=None, **arguments):
    with pytest.raises(assay.InputError) as refused:
        assay.score(source, SPEC, storage_options=options, **arguments)
    assert refused.value.__cause__ is None
    return refused.value.text


@pytest.fixture(autouse=True)
def copies(tmp_path_factory, monkeypatch):
    """Where copies are made; none stays after a run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("copies")))
    return Path(tempfile.tempdir)


@pytest.mark.parametrize(
    "key",
    some(
        [
            *("runs/a.parquet", "runs/*.parquet", "runs/", "lines/*.jsonl", "lines/", "x/dirty.jsonl", "x/table.arrow"),
            *("x/table.csv", "x/empty.parquet", "x/a[1] b.parquet"),
        ]
    ),
)
def test_a_url_is_read_as_the_local_file(store, local, copies, key):
    here = assay.score(str(local / key), SPEC)
    assert assay.score(f"s3://bucket/{key}", SPEC, storage_options=store).equals(here)
    assert not list(copies.iterdir())
    assert (
        assay.scan(f"s3://bucket/{key}", storage_options=store).collect().equals(assay.scan(str(local / key)).collect())
    )


def test_compressed_lines_are_read(store):
    rows = assay.score("s3://bucket/x/lines.jsonl.gz", SPEC, storage_options=store)
    assert rows["reward"].to_list() == [1.0, 0.0]


def test_files_of_stores_the_web_and_the_disk_are_one_run(store, local, tmp_path):
    with Web({"/a.parquet": OBJECTS["runs/a.parquet"]}) as web:
        sources = ["s3://bucket/runs/*.parquet", f"{web.url}/a.parquet", str(local / "lines/a.jsonl")]
        summary = assay.score_file(sources, SPEC, tmp_path / "out.parquet", storage_options=store)
    assert summary.rows == 14
    inputs = assay.read_provenance(tmp_path / "out.parquet")["inputs"]
    names = ["s3://bucket/runs/a.parquet", "s3://bucket/runs/b.parquet", *sources[1:]]
    assert [(one["name"], one["rows"]) for one in inputs] == list(zip(names, [4, 4, 4, 2], strict=True))
    files = [local / "runs/a.parquet", local / "runs/b.parquet", local / "runs/a.parquet", local / "lines/a.jsonl"]
    here = pl.concat([assay.score(one, SPEC) for one in files], how="diagonal")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(
        here.select(pl.read_parquet(tmp_path / "out.parquet").columns)
    )


def test_only_columns_that_are_needed_are_fetched():
    wide = pl.DataFrame({"completion": ["refund"], "state": [os.urandom(2_000_000).hex()]})
    with Web({"/wide.parquet": parquet(wide)}) as web:
        assay.score(f"{web.url}/wide.parquet", SPEC, keep=[])
        fetched = 0
        for _, _, given in web.requests:
            first, _, last = given.removeprefix("bytes=").partition("-")
            fetched += int(last) - int(first) if first else int(last)
    assert fetched < 2_000_000


def test_tasks_may_be_in_a_store(store, tmp_path):
    with Web({"/tasks.jsonl": b'{"task_id": "t", "metadata": {"expectations": [{"text": "refund"}]}}'}) as web:
        rows = [{"task_id": "t", "completion": "refund"}]
        spec = {"id": "t", "checks": [{"type": "task_expectations"}]}
        assay.score_file(rows, spec, tmp_path / "out.parquet", tasks=f"{web.url}/tasks.jsonl?sig={SIGNATURE}")
    assert pl.read_parquet(tmp_path / "out.parquet")["reward"].to_list() == [1.0]
    assert assay.read_provenance(tmp_path / "out.parquet")["tasks"][0]["name"] == f"{web.url}/tasks.jsonl?***"


@pytest.mark.parametrize(
    ("url", "said"),
    some(
        [
            ("s3://bucket/no.parquet", "s3://bucket/no.parquet: no such object."),
            ("s3://bucket/no.jsonl", "s3://bucket/no.jsonl: no such object."),
            ("s3://bucket/no*.parquet", "s3://bucket/no*.parquet: no rollout files found."),
            ("s3://bucket/none/", "s3://bucket/none/: no rollout files found."),
            ("s3://nobody/a.parquet", "s3://nobody/a.parquet: there is no such bucket."),
            ("s3://nobody/*.parquet", "s3://nobody/*.parquet: there is no such bucket."),
            ("s3://bucket/mixed/", "s3://bucket/mixed/: holds jsonl and parquet files."),
            (
                "s3://bucket/x/page.parquet",
                "s3://bucket/x/page.parquet: cannot be read: parquet: File out of specification",
            ),
            (
                "s3://bucket/x/cut.parquet",
                "s3://bucket/x/cut.parquet: cannot be read: parquet: File out of specification",
            ),
            ("s3://bucket/x", "s3://bucket/x: unknown file format."),
            (["s3://bucket/runs/*", "s3://bucket/runs/a.parquet"], "s3://bucket/runs/a.parquet is listed twice."),
            (
                ["s3://bucket/runs/a.parquet", "s3://bucket/x/other.parquet"],
                "`completion` is String in s3://bucket/runs/a.parquet and List(Int64) in s3://bucket/x/other.parquet.",
            ),
        ]
    ),
    ids=str,
)
def test_what_a_store_refuses_is_told_in_a_sentence(store, copies, url, said):
    assert refusal(url, store).startswith(said)
    assert not list(copies.iterdir())


def test_a_bad_line_of_a_store_is_named_by_its_url(store):
    with pytest.raises(assay.BadRowsError, match=r"\n  s3://bucket/x/bad\.jsonl:2: not valid JSON: "):
        assay.score("s3://bucket/x/bad.jsonl", SPEC, storage_options=store)


def test_without_credentials_the_message_says_where_they_come_from(monkeypatch, store):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with Web({"/": 403}) as nobody:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", nobody.url)
        options = {
            "aws_endpoint_url": store["aws_endpoint_url"],
            "aws_metadata_endpoint": nobody.url,
            "max_retries": "0",
        }
        said = refusal("s3://bucket/runs/a.parquet", options)
    assert "AWS_ACCESS_KEY_ID" in said


def test_credentials_that_a_store_does_not_take_are_told():
    with Web({"/bucket/a.parquet": 403}) as web:
        options = {"aws_endpoint_url": web.url, "aws_access_key_id": "planted-key-id", "aws_secret_access_key": SECRET}
        said = refusal("s3://bucket/a.parquet", options)
    assert said.startswith("s3://bucket/a.parquet: access was denied.\n\nCredentials come from the environment (AWS_")


def test_a_signed_url_of_the_web_is_read():
    for name in ["a.parquet", "a b.parquet", "a.jsonl", "d.jsonl", "a.jsonl.gz", "a.arrow", "a.csv"]:
        content = {
            ".parquet": OBJECTS["runs/a.parquet"],
            ".jsonl": DIRTY if name[0] == "d" else LINES,
            ".gz": gzip.compress(LINES),
            ".arrow": OBJECTS["x/table.arrow"],
            ".csv": OBJECTS["x/table.csv"],
        }[Path(name).suffix]
        with Web({f"/x/{name.replace(' ', '%20')}": content}) as web:
            url = f"{web.url}/x/{name.replace(' ', '%20')}?X-Amz-Signature={SIGNATURE}&part=*"
            rewards = assay.score(url, SPEC)["reward"].to_list()
        assert rewards[:2] == [1.0, 0.0]


def test_types_that_polars_reads_wrongly_are_refused_on_the_web():
    for nested in [False, True]:
        wide = pa.array([decimal.Decimal("3.50")], pa.decimal256(40, 2))
        column = pa.StructArray.from_arrays([wide], ["f"]) if nested else pa.array([0], pa.timestamp("us", "+05:30"))
        file = io.BytesIO()
        pq.write_table(pa.table({"completion": ["a"], "x": column}), file)
        with Web({"/a.parquet": file.getvalue()}) as web:
            told = refusal(f"{web.url}/a.parquet")
        assert "a type that Polars cannot read at a URL" in told


def test_what_the_web_refuses_is_told_without_the_signature():
    for path, said in [
        ("no.parquet", "no such object."),
        ("no.jsonl", "no such object."),
        ("denied.parquet", "access was denied."),
        ("page.parquet", "cannot be read: parquet: File out of specification"),
        ("runs/*.parquet", "a web server does not list its files."),
        ("runs/", "a web server does not list its files."),
        ("download", "unknown file format."),
    ]:
        with Web({"/denied.parquet": 403, "/page.parquet": b"<html>"}) as web:
            told = refusal(f"{web.url.replace('//', f'//me:{SIGNATURE}@')}/{path}?sig={SIGNATURE}&se=2026-01-01")
        assert told.startswith(f"http://***@{web.host}/{path}?***: {said}")
        assert SIGNATURE not in told
        assert "2026-01-01" not in told


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_a_server_that_does_not_answer_is_given_up(monkeypatch, name):
    monkeypatch.setattr(remote, "_PATIENCE", 0.3)
    with Web({f"/{name}": None}) as web:
        assert refusal(f"{web.url}/{name}").startswith(f"{web.url}/{name}: the server did not answer for 0 seconds.")


def test_a_copy_that_grows_is_waited_for(monkeypatch, tmp_path):
    monkeypatch.setattr(remote, "_PATIENCE", 0.05)
    store, sizes, is_done = Remote("https://host/a.jsonl"), [], threading.Event()

    def grows():
        sizes.append(len(sizes))
        if len(sizes) == 5:
            is_done.set()
        return len(sizes)

    assert store._request(lambda _: is_done.wait(PATIENCE) and "done", grows) == "done"
    is_done.clear()
    with pytest.raises(assay.InputError, match="did not answer"):
        store._request(lambda _: is_done.wait(PATIENCE), lambda: 7)
    is_done.set()


def closed():
    """A port of loopback where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://b/a.parquet", {"aws_endpoint_url": "URL", "aws_access_key_id": "k", "aws_secret_access_key": SECRET}),
        ("s3a://b/*.jsonl", {"aws_endpoint_url": "URL", "aws_access_key_id": "k", "aws_secret_access_key": SECRET}),
        ("gs://b/a.parquet", {"google_base_url": "URL", "google_skip_signature": "true"}),
        ("gcs://b/a.jsonl", {"google_base_url": "URL", "google_skip_signature": "true"}),
        *(
            (
                f"{scheme}://b/a.parquet",
                {
                    "azure_storage_account_name": "a",
                    "azure_storage_endpoint": "URL/a",
                    "azure_storage_account_key": "cGxhbnRlZA==",
                },
            )
            for scheme in ("az", "azure", "adl")
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_store_that_is_not_there_is_told_of(url, options):
    options = {name: value.replace("URL", closed()) for name, value in options.items()} | {"max_retries": "1"}
    said = refusal(url, options)
    assert said.startswith(f"{url}: the connection was refused.\n\nCheck the endpoint"), said
    assert not any(options[name] in said for name in options if "key" in name and len(options[name]) > 3)


def test_other_schemes_are_refused_with_what_was_meant():
    for url, hint in [
        ("s4://bucket/a.parquet", "Did you mean `s3`?"),
        ("htps://host/a.parquet", "Did you mean `https`?"),
        ("zzzzzz://host/a.parquet", f"Known: {', '.join(SCHEMES)}."),
        ("file:///tmp/a.parquet", "Use the path itself, without file://."),
    ]:
        assert refusal(url).endswith(hint)


def test_what_the_engine_says_becomes_a_sentence():
    for said, told in [
        (ConnectionError("received corrupt message of type InvalidContentType"), "no secure connection could be made."),
        (OSError("invalid peer certificate: UnknownIssuer"), "no secure connection could be made."),
        (OSError("dns error: failed to lookup address information"), "the host's name cannot be resolved."),
        (TimeoutError("operation timed out"), "the server did not answer in time."),
        (pl.exceptions.ComputeError("error sending request for url (https://x)"), "the server could not be reached."),
        (
            OSError("Error performing token request: GET http://169.254.169.254: 403"),
            "there are no credentials for it.",
        ),
        (
            OSError(f"new words, http://u:{SIGNATURE}@h?sig={SIGNATURE}\nmore"),
            "cannot be read: new words, http://***@h?***",
        ),
    ]:
        assert (
            Remote("hf://datasets/org/set/a.parquet").input_error(said).fact
            == f"hf://datasets/org/set/a.parquet: {told}"
        )


def test_an_option_that_must_be_a_number_is_refused_without_its_value():
    with pytest.raises(assay.UsageError, match=r'^storage_options="max_retries": expected a whole number\.$'):
        assay.scan("s3://b/a.parquet", storage_options={"max_retries": SECRET})


def test_rewards_are_not_written_to_a_store():
    with pytest.raises(assay.UsageError, match="rewards can only be written to a local path"):
        assay.score_file([{"completion": "x"}], SPEC, "s3://bucket/out.parquet")


def command(*arguments, **env):
    done = subprocess.run(
        [sys.executable, "-m", "assay", *map(str, arguments)],
        capture_output=True,
        check=False,
        env={**os.environ, **env},
        timeout=PATIENCE,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def options_of(store):
    return [word for name, value in store.items() for word in ("--storage-option", f"{name}={value}")]


def test_no_secret_of_a_run_is_shown_or_kept(store, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    with Web({"/a.jsonl": LINES, "/page.parquet": b"<html>"}) as web:
        signed = [f"http://me:{SIGNATURE}@{web.host}/{name}?sig={SIGNATURE}" for name in ("a.jsonl", "page.parquet")]
        for number, sources in enumerate(
            (["s3://bucket/runs/*.parquet", signed[0]], [signed[1]], ["s3://nobody/a.jsonl"])
        ):
            out = tmp_path / f"out{number}.parquet"
            done = command("score", *sources, "-s", tmp_path / "v.json", "-o", out, "--json", *options_of(store))
            assert done.returncode == (0 if number == 0 else 2), done.stderr
            kept = done.stdout + done.stderr + (out.read_bytes() if out.exists() else b"")
            for secret in (SECRET, SIGNATURE, "planted-key-id"):
                assert secret.encode() not in kept
    provenance = assay.read_provenance(tmp_path / "out0.parquet")
    assert "--storage-option 'aws_secret_access_key=***'" in provenance["command"]
    assert provenance["inputs"][-1]["name"] == f"http://***@{web.host}/a.jsonl?***"


def test_no_secret_is_kept_in_a_folder_of_parts(store, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    sources = ["s3://bucket/runs/*.parquet", "s3://bucket/lines/a.jsonl"]
    with Web({"/a.parquet": OBJECTS["runs/a.parquet"]}) as web:
        sources.append(f"{web.url}/a.parquet?sig={SIGNATURE}")
        done = command("score", *sources, "-s", tmp_path / "v.json", "-o", f"{tmp_path}/out/", *options_of(store))
    assert done.returncode == 0, done.stderr
    parts = pl.concat([pl.read_parquet(one) for one in sorted(tmp_path.glob("out/part-*"))], how="diagonal")
    assert parts["reward"].to_list() == [1.0, 0.0, None, 1.0, 1.0, None, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, None, 1.0]
    kept = b"".join(one.read_bytes() for one in tmp_path.rglob("out/**/*") if one.is_file())
    for secret in (SECRET, SIGNATURE, "planted-key-id"):
        assert secret.encode() not in kept + done.stdout + done.stderr


def test_credentials_of_the_environment_are_used_and_not_shown(store, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    env = {name.upper(): value for name, value in store.items()}
    done = command("score", "s3://bucket/lines/", "-s", tmp_path / "v.json", "-o", "-", **env)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_a_malformed_option_is_refused_without_its_value(tmp_path):
    done = command("score", "s3://b/a.parquet", "--storage-option", SECRET)
    assert done.returncode == 2
    assert b"expected KEY=VALUE" in done.stderr
    assert SECRET.encode() not in done.stderr


def test_a_copy_that_the_temporary_folder_cannot_take_is_not_blamed_on_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Web({"/a.jsonl": LINES * 1000}) as web:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            with pytest.raises(assay.InputError) as caught:
                assay.score(f"{web.url}/a.jsonl", SPEC)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.fact == f"{web.url}/a.jsonl: cannot be copied to {tmp_path}: File too large."
    assert not list(tmp_path.iterdir())


def test_a_temporary_folder_that_the_engine_cannot_make_is_no_internal_error(tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    (tmp_path / "file").touch()
    with Web({"/a.csv": b"completion\na refund\n"}) as web:
        done = command("score", f"{web.url}/a.csv", "-s", tmp_path / "v.json", TMPDIR=str(tmp_path / "file"))
    assert done.returncode == 2
    assert b"/a.csv: Polars could not create a temporary folder.\n" in done.stderr


def test_no_copy_stays_when_a_run_is_ended(tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    (tmp_path / "copies").mkdir()
    with Web({"/a.jsonl": [b'{"completion": "refund"}\n'] * 400_000}) as web:
        running = subprocess.Popen(
            [sys.executable, "-m", "assay", "score", f"{web.url}/a.jsonl", "-s", tmp_path / "v.json"],
            env={**os.environ, "TMPDIR": str(tmp_path / "copies")},
            stderr=subprocess.PIPE,
        )
        until(lambda: list(tmp_path.glob("copies/assay-*")))
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=PATIENCE)
    assert running.returncode == 143
    assert not list(tmp_path.glob("copies/*"))
