"""Shards as tasks of Ray: whatever dies meanwhile, the folder is that of a run on this machine, byte for byte."""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import polars as pl
import pyarrow.parquet as pq
import pytest
import real_packages
from cases import HELPERS, sized
from waiting import PATIENCE, until, waiting_at

import assay
from assay.functions import registry as fns
from assay.loading.formats.files import Cut
from assay.names import MANIFEST
from assay.runs import on_ray as onray
from assay.runs.shards import Shard

real_packages.needs("ray", "pip install 'assay-rollouts[ray]'")
pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time: two cores have enough to do with three nodes

GATED = HELPERS / "gated_rewards.py"
SPEC = {"id": "v", "checks": [{"type": "contains", "value": "4"}, {"type": "regex", "pattern": r"(?=.)\d$"}]}
SHARDS, ROWS = 9, 20

_QUICK = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 4}
"""A node that is gone is missed in seconds, not in half a minute."""


@pytest.fixture(scope="module")
def cluster():
    import ray
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": _QUICK}
    )
    others = [nodes.add_node(num_cpus=1) for _ in range(sized(2, 1))]
    ray.init(address=nodes.address, log_to_driver=False, logging_level="CRITICAL")
    nodes.others = others
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def gate(tmp_path, monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    fns.register("gated", importlib.import_module(GATED.stem).gated)
    (tmp_path / "gate").mkdir()
    return tmp_path / "gate"


def rollouts(tmp_path, gate, **texts):
    texts = {int(at.removeprefix("at_")) * ROWS + 7: text for at, text in texts.items()}
    completions = [texts.get(row, f"text {row}") for row in range(SHARDS * ROWS)]
    verifier = {"kind": "in_process", "fn_name": "gated", "expected": str(gate)}
    rows = pl.DataFrame(
        {"id": range(len(completions)), "completion": completions, "verifier": [verifier] * len(completions)}
    )
    rows.write_parquet(tmp_path / "rollouts.parquet", row_group_size=ROWS)
    return tmp_path / "rollouts.parquet"


def score(source, out, verifiers=None, **options):
    modules = [GATED.stem] if verifiers is None else []
    return assay.score_file(source, verifiers, f"{out}/", **{"part_bytes": 1, "modules": modules, **options})


def contents(folder):
    assert not list(folder.rglob(".*")), "a draft is left"
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads(found.pop("_manifest.json"))
    return {**found, "_manifest.json": {name: value for name, value in manifest.items() if name != "command"}}


def assert_as_here(folder, source, tmp_path, verifiers=None, **options):
    here = tmp_path / "here"
    score(source, here, verifiers, **options)
    assert contents(folder) == contents(here)
    assert len(list(folder.glob("part-*.parquet"))) == SHARDS
    assert pl.read_parquet(folder / "part-*.parquet")["id"].to_list() == list(range(SHARDS * ROWS))


def command(source, out, *options):
    words = ["score", source, "--out", f"{out}/", "--part-size", "1", "--import", GATED.stem, *options]
    env = {**os.environ, "PYTHONPATH": str(GATED.parent)}
    return subprocess.Popen(
        [sys.executable, "-m", "assay", *map(str, words)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_run_on_ray_is_that_on_this_machine(cluster, tmp_path, gate):
    source = rollouts(tmp_path, gate)
    summary = score(source, tmp_path / "out", SPEC, engine="ray")
    assert (summary.rows, summary.scored) == (SHARDS * ROWS, SHARDS * ROWS)
    assert_as_here(tmp_path / "out", source, tmp_path, SPEC)
    assert score(source, tmp_path / "out", SPEC, engine="ray").earlier == SHARDS * ROWS


def test_functions_of_the_rows_and_a_task_table_go_there(cluster, tmp_path, gate):
    tasks = [{"task_id": str(n), "verifier": {"fn_name": "gated", "expected": str(gate)}} for n in range(3)]
    rows = [{"id": n, "task_id": str(n % 4), "completion": f"text {n}"} for n in range(SHARDS * ROWS)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in tasks))
    pl.DataFrame(rows).write_parquet(tmp_path / "in.parquet", row_group_size=ROWS)
    summary = score(tmp_path / "in.parquet", tmp_path / "out", engine="ray", tasks=tmp_path / "tasks.jsonl")
    assert summary.scored == SHARDS * ROWS * 3 // 4
    assert_as_here(tmp_path / "out", tmp_path / "in.parquet", tmp_path, tasks=tmp_path / "tasks.jsonl")


def test_relative_paths_mean_what_they_mean_to_the_driver(cluster, tmp_path, gate, monkeypatch):
    source = rollouts(tmp_path, gate)
    monkeypatch.chdir(tmp_path)
    score(source.name, "out", SPEC, engine="ray")
    assert_as_here(tmp_path / "out", source.name, tmp_path, SPEC)


PROGRAM = """
import assay, ray, sys

def even(completion):
    return float(len(completion) % 2 == 0)

class Short(assay.Check):
    "At most eight characters."
    type = "short"
    def row(self, row): return float(len(row["completion"]) <= 8)
    def expr(self): return assay.text().str.len_chars() <= 8

ray.init(address=sys.argv[2], log_to_driver=False)
for engine in ("local", "ray"):
    more = {"engine": engine, "part_bytes": 1}
    assay.score_file(sys.argv[1], assay.Rubric([even]), f"rubric-{engine}/", **more)
    assay.score_file(sys.argv[1], {"checks": [{"type": "short"}]}, f"check-{engine}/", checks=[Short], **more)
"""


@pytest.mark.long
def test_what_a_program_defines_itself_goes_there(cluster, tmp_path, gate):
    (tmp_path / "program.py").write_text(PROGRAM)
    source = rollouts(tmp_path, gate)
    ran = subprocess.run(
        [sys.executable, "program.py", source, cluster.address],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for what in ("rubric", "check"):
        assert contents(tmp_path / f"{what}-ray") == contents(tmp_path / f"{what}-local")


def test_an_input_that_cannot_be_read_is_told_as_here(cluster, tmp_path, gate):
    source = rollouts(tmp_path, gate)
    content = bytearray(source.read_bytes())
    content[4:200] = b"\xff" * 196
    source.write_bytes(content)
    said = []
    for name, options in {"there": {"engine": "ray"}, "here": {}}.items():
        with pytest.raises(assay.InputError) as refused:
            score(source, tmp_path / name, SPEC, **options)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert "rollouts.parquet" in said[0]


def test_too_many_errors_stop_the_run(cluster, tmp_path, gate):
    source = rollouts(tmp_path, gate)
    broken = {"checks": [{"type": "regex", "pattern": "("}]}
    with pytest.warns(assay.AssayWarning), pytest.raises(assay.TooManyErrors):
        score(source, tmp_path / "out", broken, engine="ray", max_errors=1)


@pytest.mark.long
def test_a_module_that_only_the_driver_has_is_asked_for(cluster, tmp_path, gate, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "only_here.py").write_text("def good(completion):\n    return 1.0\n")
    rubric = assay.Rubric([importlib.import_module("only_here").good])
    (tmp_path / "only_here.py").unlink()
    with pytest.raises(
        assay.UsageError, match="could not start: ModuleNotFoundError: No module named 'only_here'"
    ) as refused:
        score(rollouts(tmp_path, gate), tmp_path / "out", rubric, engine="ray")
    assert "Every node imports the modules" in refused.value.hint


@pytest.mark.long
def test_a_function_that_is_registered_again_is_that_of_the_next_run(cluster, tmp_path, gate):
    pl.DataFrame({"completion": ["a", "b", "c"]}).write_parquet(tmp_path / "in.parquet")
    for reward in (1.0, 0.25):
        fns.register("again", lambda text, gold, params, reward=reward: reward)
        out = tmp_path / f"out-{reward}"
        score(tmp_path / "in.parquet", out, engine="ray", verifier_name="again")
        assert pl.read_parquet(out / "part-*.parquet")["reward"].to_list() == [reward] * 3


@pytest.mark.long
def test_a_node_with_other_versions_is_refused(cluster, tmp_path, gate, monkeypatch):
    monkeypatch.setattr(onray, "_VERSIONS", (("assay", "0.0.1"), ("polars", "1.0")))
    with pytest.raises(assay.UsageError, match=r"; the driver has assay 0\.0\.1 and polars 1\.0\."):
        score(rollouts(tmp_path, gate), tmp_path / "out", SPEC, engine="ray")


@pytest.mark.parametrize("lacks", ["out", "in.parquet"])
def test_a_node_that_does_not_see_the_files_is_refused(tmp_path, lacks):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).touch()
    (tmp_path / "in.parquet").touch()
    (tmp_path / lacks).rename(tmp_path / "elsewhere")
    files = SimpleNamespace(files=[SimpleNamespace(path=tmp_path / "in.parquet")])
    with pytest.raises(assay.UsageError, match=f"does not see {tmp_path}/{lacks}"):
        onray._refuse_missing_files(SimpleNamespace(folder=tmp_path / "out", files=files), Shard(0, Cut(0, 0, 1)))


def test_a_worker_that_is_killed_costs_nothing(cluster, tmp_path, gate):
    source = rollouts(tmp_path, gate, at_1="waits a", at_5="waits b")
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(score, source, tmp_path / "out", engine="ray")
        [[_, process, _]] = until(lambda: waiting_at(gate, "a"))
        os.kill(int(process), signal.SIGKILL)
        until(lambda: len(waiting_at(gate, "a")) == 2)  # tried again, by another one
        (gate / "open").touch()
        assert run.result().rows == SHARDS * ROWS
    assert_as_here(tmp_path / "out", source, tmp_path)


@pytest.mark.long  # another run on Ray loses a worker
def test_a_node_that_is_removed_costs_nothing(cluster, tmp_path, gate):
    source = rollouts(tmp_path, gate, **{f"at_{at}": f"waits {at}" for at in range(SHARDS)})
    by_id = {node.node_id: node for node in cluster.others}
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(score, source, tmp_path / "out", engine="ray")
        name, _, lost = until(lambda: [one for one in waiting_at(gate) if one[2] in by_id])[0]
        cluster.remove_node(by_id[lost], allow_graceful=False)
        cluster.others.remove(by_id[lost])
        cluster.others.append(cluster.add_node(num_cpus=1))
        (gate / "open").touch()
        assert run.result().rows == SHARDS * ROWS
    assert len(waiting_at(gate, name)) == 2
    assert_as_here(tmp_path / "out", source, tmp_path)


def test_a_shard_that_kills_its_process_is_named_and_the_others_go_on(cluster, tmp_path, gate, monkeypatch):
    monkeypatch.setattr(onray, "_RETRIES", 1)
    source = rollouts(tmp_path, gate, at_3="dies")
    footer = pq.read_metadata(source)
    size = 2 * max(footer.row_group(at).total_byte_size for at in range(SHARDS))  # two row groups to a part, or more
    with pytest.raises(assay.PartsError) as failed:
        score(source, tmp_path / "out", engine="ray", part_bytes=size)
    parts = len(json.loads((tmp_path / "out" / "_manifest.json").read_text())["shards"])
    assert parts < SHARDS
    assert f"1 of {parts} parts" in str(failed.value)
    assert "its process died, tried 2 times, at unit 3 of 9" in str(failed.value)
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) == parts - 1
    (gate / "mended").touch()
    assert score(source, tmp_path / "out", engine="ray", part_bytes=size).rows == SHARDS * ROWS
    score(source, tmp_path / "here", part_bytes=size)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        pytest.param("ray", "ray", marks=pytest.mark.long),
        pytest.param("ray", "local", marks=pytest.mark.long),
        pytest.param("local", "ray", marks=pytest.mark.long),
    ],
    ids=lambda engine: engine,
)
def test_a_run_whose_driver_is_killed_goes_on_anywhere(cluster, tmp_path, gate, begins, goes_on):
    source, out = rollouts(tmp_path, gate, at_6="waits a"), tmp_path / "out"
    where = ("--engine", "ray", "--ray-address", cluster.address) if begins == "ray" else ()
    driver = command(source, out, *where)
    try:
        until(lambda: waiting_at(gate) and len(list(out.glob("part-*.parquet"))) >= 3)
    finally:
        driver.kill()
        driver.communicate()
    (gate / "open").touch()
    summary = score(source, out, engine=goes_on)
    assert summary.earlier >= 3 * ROWS
    assert_as_here(out, source, tmp_path)


@pytest.mark.long
def test_a_run_that_is_interrupted_says_how_to_go_on(cluster, tmp_path, gate):
    source, out = rollouts(tmp_path, gate, at_6="waits a"), tmp_path / "out"
    driver = command(source, out, "--engine", "ray", "--ray-address", cluster.address)
    try:
        until(lambda: waiting_at(gate) and (out / "part-000000.parquet").exists())
        driver.send_signal(signal.SIGINT)
        told, said = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
    assert driver.returncode == 130
    assert told == ""
    assert "Traceback" not in said
    assert "The same command continues from there" in said
    (gate / "open").touch()
    score(source, out, engine="ray")
    assert_as_here(out, source, tmp_path)


@pytest.mark.long
def test_without_an_address_a_ray_of_this_machine_comes_and_goes(tmp_path, gate):
    source = rollouts(tmp_path, gate)
    run = command(source, tmp_path / "out", "--engine", "ray", "--json")
    told, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0
    assert [line for line in said.splitlines() if "rows so far" not in line] == []  # of a busy machine
    assert json.loads(told)["rows"] == SHARDS * ROWS
    assert_as_here(tmp_path / "out", source, tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "rya"}, 'engine="rya": unknown engine.\n\nDid you mean `ray`?'),
        ({"ray_address": "127.0.0.1:1"}, 'ray_address="127.0.0.1:1": requires engine="ray".'),
    ],
)
def test_options_that_cannot_be_used_are_refused(tmp_path, options, said):
    with pytest.raises(assay.UsageError) as refused:
        score({"completion": ["x"]}, tmp_path / "out", SPEC, **options)
    assert str(refused.value) == said


def test_ray_writes_folders_only(tmp_path):
    with pytest.raises(assay.UsageError, match="writes a folder of parts"):
        assay.score_file({"completion": ["x"]}, SPEC, tmp_path / "out.parquet", engine="ray")


@pytest.fixture
def silent():
    def answer():
        door, _ = server.accept()
        with door:
            door.sendall(b"HTTP/1.1 400 Bad Request\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no answer"),
        ("http://127.0.0.1:8265", "expected HOST:PORT"),
        ("nowhere", "expected HOST:PORT"),
        ("host:port", "expected HOST:PORT"),
        ("silent", "the server at this address is not Ray"),
    ],
)
def test_an_address_without_a_cluster_is_refused_at_once(tmp_path, gate, silent, monkeypatch, address, said):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(assay.UsageError) as refused:
        score(
            rollouts(tmp_path, gate),
            tmp_path / "out",
            SPEC,
            engine="ray",
            ray_address=silent if address == "silent" else address,
        )
    assert said in refused.value.fact
    assert not (tmp_path / "out").exists()


def test_without_ray_it_says_how_to_install_it(tmp_path, gate, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(assay.UsageError, match=r"Ray is not installed\.\n\npip install 'assay-rollouts\[ray\]'"):
        score(rollouts(tmp_path, gate), tmp_path / "out", SPEC, engine="ray")
