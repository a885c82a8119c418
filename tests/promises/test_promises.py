"""The eight promises of docs/faults.md, as properties."""

import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from cases import HELPERS, each, sized
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

import assay
from assay.checks.registry import CHECKS
from assay.testing import hostile_texts

RESULT = ["reward", "passed", "feedback", "error"]
SPECS = [
    {
        "id": "text",
        "passThreshold": 0.4,
        "checks": [
            {"type": "contains", "value": "refund", "weight": 0.7},
            {"type": "regex", "pattern": r"(?i)\bre(?:fund|turn)", "weight": 1.1},
            {"id": "alike", "type": "regex", "pattern": r"(\w)\1", "weight": 0.3},
            {"type": "max_length", "value": 40, "negate": True},
            {"type": "equals", "value": "Straße"},
        ],
    },
    {
        "id": "structure",
        "checks": [
            {"type": "json_valid"},
            {"type": "json_keys", "requiredKeys": ["a"], "weight": 0.1},
            {"type": "expected_output_schema", "weight": 0.2},
            {"type": "task_expectations", "weight": 3},
        ],
    },
]
PAYLOADS = [
    "[1],[2", "3]", '{"a": 1}, {"b"', ": 2}", "]", "[", '"', "\\", "\0", "\n", "<think>", "```json\n{}", None, "",
    " ",
]  # fmt: skip
METADATA = [None, "{", '{"expectations": [{"text": "a"}, {"anyOf": ["ß", "]"]}, {}]}', '{"expectations": ["refund"]}']
SCHEMAS = [None, '{"required": ["a"]}', "[", '{"a": 1}']
quick = settings(max_examples=sized(12, 4), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "completion": st.sampled_from([*PAYLOADS, *hostile_texts(60, seed=3)]),
            "metadata": st.sampled_from(METADATA),
            "expected_output_schema": st.sampled_from(SCHEMAS),
        }
    ),
    min_size=1,
    max_size=12,
)
TYPES = dict.fromkeys(("completion", "metadata", "expected_output_schema"), pl.String)


def frame_of(rows):
    return pl.DataFrame([{"id": at, **row} for at, row in enumerate(rows)], schema={"id": pl.Int64, **TYPES})


def rollouts(count=300):
    rng = random.Random(5)
    texts = [*PAYLOADS, *hostile_texts(count, seed=11)]
    rows = [(text, rng.choice(METADATA), rng.choice(SCHEMAS)) for text in texts]
    return frame_of([dict(zip(TYPES, row, strict=True)) for row in rows])


def results(frame):
    rows = frame.select("id", *RESULT).rows()
    return [(ident, None if reward is None else reward.hex(), *said) for ident, reward, *said in rows]


def child(code, *args, **options):
    paths = [str(Path(assay.__file__).parents[1]), str(Path(__file__).parent), str(HELPERS)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **options.pop("env", {})}
    words = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE, **options)


EVERY_WAY = """
import sys, warnings
import polars as pl
import assay, test_promises as t
folder = sys.argv[1]
warnings.simplefilter("ignore")
found = {}
for name in ("groups.parquet", "one.parquet", "rows.jsonl", "rows.arrow"):
    found["memory " + name] = assay.score(f"{folder}/{name}", t.SPECS)
    for out in ("out.parquet", "part/"):
        to = f"{folder}/{sys.argv[2]}-{name}-{out}"
        assay.score_file(f"{folder}/{name}", t.SPECS, to, part_bytes=int(sys.argv[3]), isolate=False)
        found[f"{name} {out}"] = pl.read_parquet(to + "*.parquet" if out == "part/" else to)
for how, frame in found.items():
    print(t.digest(frame), how)
"""


def digest(frame):
    return hashlib.sha256(repr(results(frame)).encode()).hexdigest()


def test_p1_the_same_rows_give_the_same_bytes_however_they_are_read_and_cut(tmp_path):
    frame = rollouts(sized(300, 120))
    frame.write_parquet(tmp_path / "groups.parquet", row_group_size=40)
    frame.write_parquet(tmp_path / "one.parquet")
    frame.write_ndjson(tmp_path / "rows.jsonl")
    frame.write_ipc(tmp_path / "rows.arrow", record_batch_size=50)
    expected = digest(assay.score(frame, SPECS))
    for threads, piece, part in sized(((1, 7, 1), (3, 7, 1), (3, 100_000, 5_000)), ((3, 7, 1),)):
        env = {"POLARS_MAX_THREADS": str(threads), "POLARS_IDEAL_MORSEL_SIZE": str(piece)}
        done = child(EVERY_WAY, tmp_path, threads, part, env=env)
        assert done.returncode == 0, done.stderr
        found = [line.split(" ", 1) for line in done.stdout.splitlines()]
        assert len(found) == 12
        assert [how for said, how in found if said != expected] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("promises")


@given(rows=ROWS)
@quick
def test_p2_rows_out_are_rows_in_in_order(rows, folder):
    frame = frame_of(rows)
    frame.write_ndjson(folder / "in.jsonl")
    assay.score_file(folder / "in.jsonl", SPECS, folder / "out.parquet", overwrite=True)
    for found in (assay.score(frame, SPECS), pl.read_parquet(folder / "out.parquet")):
        assert found["id"].to_list() == list(range(len(rows)))
        assert found["reward"].is_null().to_list() == [row["completion"] is None for row in rows]


@given(rows=ROWS, hostile=ROWS, random=st.randoms(use_true_random=False), data=st.data())
@quick
def test_p3_a_row_is_scored_as_if_it_were_alone(rows, hostile, random, data):
    frame = frame_of(rows)
    alone = [results(assay.score(frame[at], SPECS))[0] for at in range(frame.height)]
    order = random.sample(range(frame.height), frame.height)
    assert results(assay.score(frame[order], SPECS)) == [alone[at] for at in order]
    others = frame_of(hostile).with_columns(id=pl.lit(-1, pl.Int64))
    together = assay.score(pl.concat([others, frame, others]), SPECS)
    assert results(together.filter(pl.col("id") >= 0)) == alone
    cut = data.draw(st.integers(0, frame.height))
    halves = [assay.score(part, SPECS) for part in (frame[:cut], frame[cut:])]
    assert results(pl.concat(halves)) == alone


@pytest.mark.parametrize("out", ["out.parquet", "out/"])
def test_p4_nobody_sees_half_a_result(tmp_path, out):
    many = pl.concat([rollouts()] * 60).drop("metadata", "expected_output_schema")
    many.write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    (tmp_path / "v.json").write_text(json.dumps(SPECS[0]))
    old = pl.DataFrame({"old": [1]})
    if out == "out.parquet":
        old.write_parquet(tmp_path / out)
    words = ["score", "in.parquet", "-s", "v.json", "--out", out, "--overwrite", "--part-size", "100kB", "--no-isolate"]
    seen = set()
    with subprocess.Popen([sys.executable, "-m", "assay", *words], cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None:
            parts = [tmp_path / out] if out == "out.parquet" else [*(tmp_path / out).glob("[!._]*")]
            time.sleep(0.005)
            seen |= {(path.name, pl.read_parquet(path.read_bytes()).width) for path in parts}
    assert run.returncode == 0
    new = len(["id", *RESULT, "score/text", *SPECS[0]["checks"]])
    assert {width for _, width in seen} <= {old.width, new}
    assert {name for name, _ in seen} <= {"out.parquet", *(f"part-{at:06}.parquet" for at in range(200))}


BAD = [
    b"{", b'{"completion": "a refund"', b"[1]", b"null", b'"x"', b"{'a': 1}", b'{"completion": ' + b"[" * 600,
    b"\x00",
]  # fmt: skip


@given(rows=ROWS, bad=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(BAD)), min_size=1, max_size=5))
@quick
def test_p5_a_bad_line_costs_itself_only_and_is_named(rows, bad, folder):
    frame = frame_of(rows)
    lines = [(at, frame[at].write_ndjson().strip().encode()) for at in range(frame.height)]
    for place, line in bad:
        lines.insert(min(place, len(lines)), (None, line))
    path = folder / "bad.jsonl"
    path.write_bytes(b"\n".join(line for _, line in lines) + b"\n")
    summary = assay.score_file(path, SPECS, folder / "some.parquet", overwrite=True, max_bad_rows="100%")
    found = pl.read_parquet(folder / "some.parquet")
    assert summary.rows == found.height == len(lines)
    good = found.filter(pl.Series([at is not None for at, _ in lines]))
    assert results(good) == results(assay.score(frame, SPECS))
    places = [number for number, (at, _) in enumerate(lines, 1) if at is None]
    assert found["reward"].is_null().to_list() == [at is None or rows[at]["completion"] is None for at, _ in lines]
    assert pl.read_parquet(folder / "some.parquet.bad_rows.parquet")["line"].to_list() == places
    with pytest.raises(assay.AssayError, match=f":{places[0]}: "):
        assay.score_file(path, SPECS, folder / "none.parquet")
    assert not (folder / "none.parquet").exists()


LOOPS = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
import assay, test_promises as t
warnings.simplefilter("ignore")
patterns = [r"(?s)<think>.*?</think>", r"<answer>(.*)</answer>\\s*$", r"(a+)+$", r"^(?:[^<]|<(?!/))*</x>", r"(\\w+\\s?)*!"]
spec = {"id": "v", "checks": [*t.SPECS[0]["checks"], *t.SPECS[1]["checks"], *({"type": "regex", "pattern": p} for p in patterns)]}
texts = ["<think>" * 20_000, "<answer>" * 20_000, "a" * 140_000, "[" * 140_000, '{"a":' * 40_000, "\\\\" * 140_000, "a " * 5_000_000]
rows = [{"completion": text, "metadata": t.METADATA[2], "expected_output_schema": t.SCHEMAS[1]} for text in texts]
found = assay.score(rows, spec)
print(found["reward"].is_finite().sum(), len(found))
"""


def test_p6_a_model_that_loops_costs_what_its_bytes_cost():
    done = child(LOOPS)
    assert (done.returncode, done.stdout.split()) == (0, ["7", "7"]), done.stderr[-2000:]


WATCHED = """
import os, re, sys, sysconfig, tempfile, warnings
import polars as pl, pyarrow.parquet, rich.console
import assay, assay.runs.score_file, assay.scoring.in_memory, test_promises
folder, url = sys.argv[1:]
roots = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), os.path.dirname(assay.__file__), *sys.path[1:]}
roots = tuple(os.path.realpath(root) for root in roots if root)
named = tuple(os.path.join(os.path.realpath(folder), name) for name in ("in.jsonl", "in.csv", "v.json", "v.yaml", "t.yaml", "out", ".out"))
strange = []

def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(args[0]))
        if path == os.path.realpath(folder) or path.startswith((*roots, *named, "/proc/", "/dev/", "/sys/", "/usr/share/zoneinfo/")):
            return
        if re.fullmatch("assay-[0-9a-f]{16}/lock", os.path.relpath(path, tempfile.gettempdir())):
            return  # of a folder for temporary files, whose process may be gone
        strange.append((event, path))
    elif event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess", "os.system", "os.exec", "os.posix_spawn", "os.fork")):
        strange.append((event, str(args)))
    elif event == "import" and "canary" in args[0]:
        strange.append((event, args[0]))

tempfile.gettempdir()  # Python tries at the first call whether it can write there
sys.addaudithook(watch)
warnings.simplefilter("ignore")
os.chdir(folder)
for source, spec, more in (
    ("in.jsonl", ["v.json", "v.yaml"], {"tasks": "t.yaml"}),
    ("in.csv", ["v.json", "v.yaml"], {}),
    ("in.jsonl", None, {"verifier_name": "exact_match"}),
    ("in.jsonl", "canary.yaml", {}),
    ("in.jsonl", {"kind": "canary", "params": {"path": "canary.json"}}, {}),
    ("in.jsonl", {"checks": [{"type": "canary.check", "value": "canary.json"}]}, {}),
):
    if spec == "canary.yaml":
        named += (os.path.join(os.path.realpath(folder), spec),)
    try:
        print(assay.score_file(source, spec, "out.parquet", overwrite=True, **more).rows)
    except assay.AssayError as wrong:
        print(type(wrong).__name__)
for event in strange:
    print(*event, file=sys.stderr)
"""


def test_p7_nothing_is_opened_fetched_or_run_that_nobody_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/canary.json"
        for path in ("canary.json", "canary", "defs.json"):
            os.mkfifo(tmp_path / path)  # whoever opened it would wait for ever
        (tmp_path / "canary.py").write_text("raise SystemExit('imported')")
        refers = [
            {"$ref": f"file://{tmp_path}/canary.json"},
            {"$ref": url},
            {"$ref": "defs.json#/a"},
            {"$schema": url, "$id": url},
        ]
        verifier = {
            "kind": "in_process", "fn_name": None, "expected": "@canary.json", "params": {"path": "canary.json"},
        }  # fmt: skip
        rows = [
            {
                "task_id": f"file://{tmp_path}/canary.json",
                "completion": json.dumps([ref, url, "!!python/name:canary.x", "{{canary}}", "canary.json"]),
                "metadata": {"expectations": [{"anyOf": [url, "canary.json"], "$ref": url}], "import": "canary"},
                "expected_output_schema": {"properties": {"a": ref}, **ref},
                "verifier": verifier,
            }
            for ref in refers
        ]
        (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / "in.csv").write_text(f'completion,metadata,expected_output_schema\n=canary!A1,"{{}}",{url}\n')
        checks = [*SPECS[0]["checks"], *SPECS[1]["checks"], {"id": "f", "type": "contains", "value": "@canary.json"}]
        (tmp_path / "v.json").write_text(json.dumps({"$schema": url, "name": "canary.py", "checks": checks}))
        (tmp_path / "v.yaml").write_text(f"id: w\n$schema: {url}\nchecks: [{{type: regex, pattern: '(?i){url}'}}]\n")
        (tmp_path / "canary.yaml").write_text("checks: !!python/object/apply:canary.x [a]\n")
        (tmp_path / "t.yaml").write_text(f"- task_id: file://{tmp_path}/canary.json\n  metadata: {{$ref: '{url}'}}\n")
        done = child(WATCHED, tmp_path, url)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.split() == ["4", "1", "4", "SpecError", "SpecError", "SpecError"]


def is_scored_or_says_why_not(found):
    numbers = [name for name in found.columns if name == "reward" or name.startswith(("score/", "check/"))]
    for row in found.to_dicts():
        if row["reward"] is None:
            assert row["error"]
            assert [name for name in ["passed", *numbers] if row[name] is not None] == []
        else:
            assert row["passed"] is not None
    floats = [found[name].drop_nulls() for name in numbers]
    assert all(column.is_finite().all() for column in floats)
    return found["reward"].is_null().to_list()


@each("check", CHECKS, ids=lambda check: check.type)
@each("negate", [False, True])
def test_p8_unscored_is_never_a_number(check, negate):
    example = check.examples[0]
    spec = {"checks": [{"type": check.type, "params": dict(example.params or {}), "negate": negate}]}
    rows = [{"completion": text, "task_id": task} for text in (None, "a", "") for task in ("known", "unknown", None)]
    told = {"metadata": example.metadata, "expected_output_schema": example.expected_output_schema}
    told |= dict(example.columns or {})
    tasks = [{"task_id": "known", **{name: value for name, value in told.items() if value is not None}}]
    unscored = is_scored_or_says_why_not(assay.score([{**told, **row} for row in rows], spec, tasks=tasks))
    assert unscored == [row["completion"] is None or row["task_id"] != "known" for row in rows]


@each("name", ["exact_match", "contains", "regex_match", "tool_calls_match"])
def test_p8_holds_of_functions_that_rows_name(name):
    golds = ["a", None, "(", "{}", 1]
    rows = [
        {"completion": text, "verifier": {"fn_name": name, "expected": gold}} for text in (None, "a") for gold in golds
    ]
    unscored = is_scored_or_says_why_not(assay.score(rows))
    assert unscored == [row["completion"] is None or row["verifier"]["expected"] is None for row in rows]
