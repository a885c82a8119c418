"""Runs in parts: what is there after any end of a run, and what a run that finds it makes of it."""

import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from cases import HELPERS, sized, some
from waiting import PATIENCE, interrupt_at, until, without_waiting

import assay
from assay.functions import registry as fns
from assay.loading.formats.files import Cut, combined, open_each
from assay.loading.formats.reading import Reading
from assay.runs.shards import Shard, cut, read_counts

ROWS = 600
TEXTS = ["a refund is due", '{"refund": 1}', "no", None, "Ünïcödé refund", "refund " * 40]
SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund", "weight": 3}, {"type": "json_valid"}]}
KILLS = int(os.environ.get("ASSAY_KILLS", sized("3", "1")))
"""How often a run is killed; ASSAY_KILLS=60 for a thorough look."""

DEADLY = """
import os, pathlib, signal, assay.fns

@assay.fns.register_fn("deadly")
def deadly(model_output, expected, params):
    if model_output == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if model_output == "once" and not pathlib.Path("died").exists():
        pathlib.Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return float("refund" in model_output)
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"id": range(ROWS), "completion": [TEXTS[at % len(TEXTS)] for at in range(ROWS)]})
    rows.head(400).write_parquet("a.parquet", row_group_size=50)
    rows.tail(200).write_ndjson("b.jsonl")
    Path("v.json").write_text(json.dumps(SPEC), "utf-8")
    return tmp_path


def score(out="out/", **options):
    return assay.score_file(["a.parquet", "b.jsonl"], "v.json", out, **{"part_bytes": 2500, **options})


def content(folder):
    found = {str(one.relative_to(folder)): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}
    found["_manifest.json"] = re.sub(rb'"command": "[^\n]*",', b"", found["_manifest.json"])
    return found


def command(*args, **options):
    words = [sys.executable, "-m", "assay", "score", *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE, **options)


def run(*args):
    return command("a.parquet", "b.jsonl", "-s", "v.json", "--part-size", "2500", *args)


def test_a_folder_holds_the_rewards_of_one_file_in_parts(there):
    one = assay.score_file(["a.parquet", "b.jsonl"], "v.json", "one.parquet")
    many = score()
    parts = sorted(Path("out").glob("*.parquet"))
    assert len(parts) > 4
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet("one.parquet"))
    assert (many.rows, many.scored, many.passed, many.errors) == (ROWS, one.scored, one.passed, one.errors)
    assert many.mean_reward == pytest.approx(one.mean_reward)
    assert [vars(check) for check in many.checks] == [
        {**vars(check), "total": pytest.approx(check.total)} for check in one.checks
    ]
    assert json.loads(Path("out/_summary.json").read_text())["rows"] == ROWS


def test_parts_are_whole_units_of_one_file_or_whole_files_in_order(there):
    files = combined(open_each([Path("a.parquet"), Path("b.jsonl")], Reading()))
    shards = cut(files, 2500)
    assert [one.number for one in shards] == list(range(len(shards)))
    for number, file in enumerate(files.files):
        there = len(file.units)
        units = [at for one in shards if number in one.cut.files for at in range(*one.cut.units(number, there))]
        assert units == list(range(there))
    assert cut(files, 1 << 40) == [Shard(0, Cut(0, 0, len(files.files[1].units), 1), ROWS)]
    assert len(cut(files, 1)) == sum(len(file.units) for file in files.files)


def test_a_file_without_rows_has_a_part_of_its_own(there):
    pl.DataFrame(schema={"completion": pl.String}).write_parquet("none.parquet")
    assert assay.score_file("none.parquet", "v.json", "out/").rows == 0
    assert pl.read_parquet("out/part-000000.parquet").columns[0] == "reward"


def test_a_part_says_which_part_of_which_run_it_is(there):
    score()
    manifest = json.loads(Path("out/_manifest.json").read_text())
    made = assay.read_provenance("out/part-000001.parquet")
    assert (made["run"], made["part"], made["input"]) == (manifest["run"], 1, "a.parquet")
    assert [one["name"] for one in manifest["inputs"]] == ["a.parquet", "b.jsonl"]
    assert manifest["verifiers"][0]["canonical"]


@pytest.mark.parametrize("options", [["--no-isolate"], []], ids=["in this process", "in its own"])
def test_the_bytes_are_the_same_wherever_parts_are_scored(there, options):
    score("here/")
    done = run("--out", "out/", *options)
    assert (done.returncode, done.stdout) == (0, "")
    assert content("out") == content("here")


def test_a_run_does_what_is_missing_and_nothing_else(there):
    score()
    before = content("out")
    kept = Path("out/part-000000.parquet").stat().st_mtime_ns
    for name in ("part-000001.parquet", "_summary.json", "_counts/000002.json"):
        Path("out", name).unlink()
    Path("out/part-000003.parquet").write_bytes(b"PAR1 and then nothing")
    summary = score()
    assert content("out") == before
    assert Path("out/part-000000.parquet").stat().st_mtime_ns == kept
    assert summary.rows == ROWS
    assert [note for note in summary.notes if "complete already" in note]
    assert score().earlier == ROWS


def test_parts_of_another_run_are_not_taken_for_this_ones(there):
    score()
    score("other/", details=False)
    before = content("out")
    shutil.copy("other/part-000000.parquet", "out/part-000000.parquet")
    score()
    assert content("out") == before


@pytest.mark.long
def test_the_summary_does_not_tell_in_which_order_parts_were_done(there):
    uneven = {"id": "v", "checks": [{**SPEC["checks"][0], "weight": 1}, {**SPEC["checks"][1], "weight": 0.7}]}
    chance = random.Random(1)
    rows = [chance.choice([*TEXTS, "1"]) for _ in range(200)]
    pl.DataFrame({"completion": rows}).write_parquet("c.parquet", row_group_size=7)
    assay.score_file("c.parquet", uneven, "out/", part_bytes=1)
    before = content("out")
    for part in chance.sample(sorted(Path("out").glob("part-*")), 15):
        part.unlink()
    again = assay.score_file("c.parquet", uneven, "out/", part_bytes=1)
    assert content("out") == before
    assert again.mean_reward == json.loads(before["_summary.json"])["mean_reward"]


@pytest.mark.long
def test_a_run_that_is_stopped_while_it_begins_anew_leaves_a_folder_to_go_on_with(there, monkeypatch):
    class StopError(Exception):
        """Raised in the place of a kill."""

    unlink, seen = Path.unlink, 0

    def stop(path, **options):
        nonlocal seen
        if path.name != "_lock":
            seen -= 1
            if not seen:
                raise StopError
        unlink(path, **options)

    score("whole/", details=False)
    for at in range(1, 6):
        shutil.rmtree("out", ignore_errors=True)
        score(part_bytes=1)
        with monkeypatch.context() as patched:
            seen = at
            patched.setattr(Path, "unlink", stop)
            with pytest.raises(StopError):
                score(details=False, overwrite=True)
        score(details=False, overwrite=True)
        assert content("out") == content("whole")


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_run_that_is_killed_at_any_time_goes_on_to_the_same_bytes(there, kill):
    score("whole/", part_bytes=1)
    chance = random.Random(kill)
    words = [sys.executable, "-m", "assay", "score", "a.parquet", "b.jsonl", "-s", "v.json", "--part-size", "1"]
    for number in sized((signal.SIGKILL, signal.SIGINT), (signal.SIGKILL,)):
        with subprocess.Popen([*words, "--out", "out/"], stderr=subprocess.DEVNULL) as running:
            parts = chance.randrange(9)
            while len(list(Path("out").glob("part-*"))) < parts and running.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            running.send_signal(number)
        there_now = list(Path("out").glob("part-*"))
        assert all(pl.scan_parquet(part).collect().height for part in there_now)  # none is half a part
    done = command(*words[4:], "--out", "out/")
    assert done.returncode == 0, done.stderr
    assert content("out") == content("whole")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_an_interrupt_says_what_is_missing_and_the_same_command_goes_on(there, number, code):
    gate = there / "gate"
    gate.mkdir()
    rows = pl.read_parquet("a.parquet")
    text = pl.when(pl.col("id") == rows.height - 1).then(pl.lit("waits here")).otherwise("completion")
    rows.with_columns(completion=text).write_parquet("a.parquet", row_group_size=50)
    Path("gated.json").write_text(json.dumps({"checks": [{"type": "gated", "expected": str(gate)}]}))
    words = [sys.executable, "-m", "assay", "score", "a.parquet", "-s", "gated.json", "--import", "gated_rewards"]
    words += ["--no-isolate", "--part-size", "1", "--out", "out/"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(assay.__file__).parents[1]), str(HELPERS)])}
    with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: list(Path("out").glob("part-*")))
        interrupt_at(gate, running, number)
        said = running.stderr.read()
    assert running.returncode == code
    assert re.search(
        r"interrupted; (1 part is|\d parts are) missing in out. The same command continues from there", said
    )
    assert not [one for one in Path("out").rglob("*") if one.name.endswith(("tmp", "lock"))]


def test_an_interrupt_does_not_wait_for_a_function_that_a_process_of_its_own_runs(there):
    Path("own.py").write_text(
        "import time, pathlib, assay\n"
        "def waits(completion):\n    pathlib.Path('begun').touch()\n    time.sleep(1000)\n"
        "rubric = assay.Rubric(funcs=[waits])\n"
    )
    words = [sys.executable, "-m", "assay", "score", "a.parquet", "--rubric", "own:rubric", "--out", "out/"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: Path("begun").exists() or running.poll() is not None)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert without_waiting(said) == "interrupted; 1 part is missing in out. The same command continues from there\n"


def other_spec():
    Path("v.json").write_text(json.dumps({**SPEC, "passThreshold": 0.5}), "utf-8")


def other_input():
    pl.read_parquet("a.parquet").head(300).write_parquet("a.parquet", row_group_size=50)


def touched_input():
    os.utime("b.jsonl", ns=(1, 1))


@pytest.mark.parametrize(
    ("change", "options", "said"),
    some(
        [
            (other_spec, {}, "verifier v: sha256 "),
            (other_input, {}, "input a.parquet: size "),
            (touched_input, {}, "input b.jsonl: modified "),
            (None, {"part_bytes": 4096}, "option part_bytes: 2500 then, 4096 now"),
            (None, {"regex_timeout": 9}, "option regex_timeout: 0.2 then, 9 now"),
            (None, {"details": False}, "column score/v: "),
            (None, {"tasks": "tasks.jsonl"}, "task file tasks.jsonl was not part of it, and is now"),
        ]
    ),
)
def test_a_folder_of_another_run_is_refused_with_what_differs(there, change, options, said):
    Path("tasks.jsonl").write_text('{"task_id": "1"}\n')
    pl.read_parquet("a.parquet").with_columns(task_id=pl.lit("1")).write_parquet("a.parquet", row_group_size=50)
    pl.read_ndjson("b.jsonl").with_columns(task_id=pl.lit("1")).write_ndjson("b.jsonl")
    score()
    before = content("out")
    if change is not None:
        change()
    with pytest.raises(assay.UsageError, match="holds another run") as refused:
        score(**options)
    assert said in refused.value.fact
    assert content("out") == before
    assert score(overwrite=True, **options).earlier == 0


@pytest.mark.parametrize("given", ["object", "frame", "tasks", "tasks/*.jsonl"])
def test_a_task_table_is_known_by_what_it_says_wherever_it_comes_from(there, given):
    def scored(word):
        tasks = [{"task_id": "1", "metadata": {"expectations": {"mustMention": [{"anyOf": [word]}]}}}]
        Path("tasks").mkdir(exist_ok=True)
        Path("tasks/t.jsonl").write_text(json.dumps(tasks[0]))
        table = {"object": tasks, "frame": pl.DataFrame(tasks)}.get(given, given)
        return assay.score_file("c.parquet", {"checks": [{"type": "task_expectations"}]}, "out/", tasks=table)

    pl.DataFrame({"task_id": "1", "completion": ["a refund"]}).write_parquet("c.parquet")
    assert scored("refund").mean_reward == 1
    with pytest.raises(assay.UsageError, match="task table: "):
        scored("nothing")
    assert scored("refund").earlier == 1


def test_columns_in_another_order_are_another_run(there):
    score(keep=["id", "completion"])
    with pytest.raises(assay.UsageError, match="the order of the columns: "):
        score(keep=["completion", "id"])


def test_another_version_of_the_engine_is_another_run(there, monkeypatch):
    score()
    monkeypatch.setattr(pl, "__version__", "9.9.9")
    with pytest.raises(assay.UsageError, match=r"polars version: .* then, \"9\.9\.9\" now"):
        score()


@pytest.mark.parametrize("name", ["thesis.txt", ".thesis.tmp", "_counts/thesis.json", "part-1.parquet"])
def test_files_that_no_run_wrote_are_not_touched(there, name):
    thesis = Path("out", name)
    thesis.parent.mkdir(parents=True)
    thesis.write_text("all I have")
    first = re.escape(name.partition("/")[0])
    for overwrite in (False, True):
        with pytest.raises(assay.UsageError, match=f"holds files that are not part of a run: {first}"):
            score(overwrite=overwrite)
    assert [one for one in Path("out").rglob("*") if one.is_file()] == [thesis]


def test_a_torn_manifest_is_no_invitation(there):
    score()
    Path("out/_manifest.json").write_text('{"manifest": 1, "sh')
    with pytest.raises(assay.InputError, match=r"_manifest\.json: not readable"):
        score()
    score(overwrite=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limit": 3}, "whole files, not --limit"),
        ({"out": "nowhere/out/"}, "there is no folder nowhere"),
        ({"out": "v.json/"}, "is a file"),
        ({"out": "./"}, "one of the inputs"),
        ({"out": ""}, "--out: is empty"),
    ],
)
def test_what_no_folder_can_be_made_of_is_refused(there, options, said):
    with pytest.raises(assay.UsageError) as refused:
        score(**options)
    assert said in refused.value.fact


def test_rows_in_memory_and_functions_that_need_all_rows_ask_for_one_file(there):
    with pytest.raises(assay.UsageError, match="reads files") as refused:
        assay.score_file([{"completion": "x"}], SPEC, "out/")
    assert "--out NAME.parquet" in refused.value.hint

    def best(completions):
        return [1.0] * len(completions)

    with pytest.raises(assay.UsageError, match="sees all rollouts of an example"):
        assay.score_file("a.parquet", assay.Rubric(funcs=[best]), "out/", mapping={"example_id": "id"})


@pytest.mark.parametrize("out", ["out/", "out.parquet"])
def test_of_two_runs_at_one_place_the_second_is_refused(there, out):
    refused = []

    def second(*_):
        if not refused:
            with pytest.raises(assay.UsageError, match=rf"another run is writing there \(process {os.getpid()} on "):
                score(out, overwrite=True)
            refused.append(out)

    score(out, progress=second)
    assert refused
    assert not [one for one in there.rglob("*") if "lock" in one.name]


def test_what_a_killed_run_left_is_gone_after_the_next(there):
    left = [Path(".out.parquet.123-0abc.tmp"), Path(".out.parquet.lock")]
    for one in left:
        one.touch()
    mine = Path(".other.parquet.123-0abc.tmp")
    mine.touch()
    score("out.parquet")
    assert not any(one.exists() for one in left)
    assert mine.exists()


def test_an_input_that_changes_while_it_is_scored_is_told(there):
    for at, out in enumerate(("out/", "out.parquet")):
        with pytest.raises(assay.InputError, match=r"b\.jsonl: changed while it was read"):
            score(out, progress=lambda *_, at=at: os.utime("b.jsonl", ns=(at, at)))
    assert not Path("out.parquet").exists()
    assert score(overwrite=True).rows == ROWS


def test_a_part_that_is_removed_during_the_run_is_told_and_written_again(there):
    def remove(*_):
        Path("out/part-000000.parquet").unlink(missing_ok=True)

    with pytest.raises(assay.OutputError, match=r"^out/part-000000\.parquet: was removed after it was written\."):
        score("out/", part_bytes=1, progress=remove)
    assert not Path("out/_summary.json").exists()
    score("out/", part_bytes=1)
    score("whole/", part_bytes=1)
    assert content("out") == content("whole")


def test_a_manifest_that_is_removed_during_the_run_is_written_again(there):
    score("whole/", part_bytes=1)
    score("out/", part_bytes=1, progress=lambda *_: Path("out/_manifest.json").unlink(missing_ok=True))
    assert content("out") == content("whole")


def deadly(there, *texts):
    Path("deadly.py").write_text(DEADLY)
    rows = pl.DataFrame({"completion": ["refund", "x", *texts, "refund"] * 3, "expected": ["x"] * (9 + 3 * len(texts))})
    rows.write_parquet("d.parquet", row_group_size=3)
    words = ["d.parquet", "--verifier-name", "deadly", "--import", "deadly", "--out", "out/"]
    return command(*words, "--part-size", "100", env={**os.environ, "PYTHONPATH": ""})


def test_a_process_that_dies_once_costs_nothing(there):
    done = deadly(there, "once")
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet("out/*.parquet")["reward"].to_list() == [1.0, 0.0, 0.0, 1.0] * 3
    assert Path("died").exists()


@pytest.mark.long
def test_a_shard_that_always_ends_its_process_fails_alone_and_is_named(there):
    done = deadly(there, "x", "x", "die", "x", "x")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "parts could not be scored" in done.stderr
    assert re.search(
        r"part-\d+\.parquet: its process was ended by SIGKILL, perhaps for lack of memory, at unit 1 of", done.stderr
    )
    assert list(Path("out").glob("part-*"))
    assert not Path("out/_summary.json").exists()


def test_checks_that_cannot_travel_ask_to_stay(there):
    rubric = assay.Rubric(funcs=[lambda completion: 1.0])
    with pytest.raises(assay.UsageError, match="cannot be sent to a separate process"):
        assay.score_file("a.parquet", rubric, "out/", isolate=True)
    assert assay.score_file("a.parquet", rubric, "out/").rows == 400


class Homebound:
    def __call__(self, completion):
        return 1.0

    def __reduce__(self):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no"), RecursionError("no"), SystemExit("no")], ids=repr)
def test_what_refuses_to_travel_in_whatever_way_asks_to_stay(there, error):
    func = Homebound()
    func.error = error
    with pytest.raises(assay.UsageError, match=f"to a separate process: {type(error).__name__}: no") as refused:
        assay.score_file("a.parquet", assay.Rubric([func]), "out/", isolate=True)
    assert "isolate=False" in str(refused.value)


@pytest.mark.long  # processes are started
def test_a_process_that_ends_while_it_starts_is_told(there, monkeypatch):
    monkeypatch.syspath_prepend(there)
    Path("deadly.py").write_text("import os\nif os.path.exists('now'): os._exit(3)\ndef good(completion): return 1.0")
    rubric = assay.Rubric([importlib.import_module("deadly").good])
    Path("now").touch()
    with pytest.raises(assay.UsageError, match="process that scores parts ended with exit code 3 while it started"):
        assay.score_file("a.parquet", rubric, "out/", isolate=True)


@pytest.mark.long
def test_functions_of_a_module_travel_by_their_names_where_a_twin_is_a_lambda(there):
    words = [
        "import assay.fns",
        "def starts(model_output, expected, params): return float(model_output.startswith(expected))",
        "assay.fns.register('starts', starts, expr=lambda text, gold, params: text.str.starts_with(gold))",
    ]
    Path("named.py").write_text("\n".join(words))
    rows = pl.DataFrame({"completion": ["ab", "b"], "fn_name": "starts", "expected": "a"})
    rows.write_parquet("c.parquet")
    options = ["--import", "named", "--isolate"]
    done = command("c.parquet", "--out", "out/", *options)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet("out/part-*.parquet")["reward"].to_list() == [1.0, 0.0]


@pytest.mark.long  # a process is started
def test_a_function_that_its_module_does_not_register_is_asked_for(there, monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    monkeypatch.syspath_prepend(there)
    Path("unregistered.py").write_text("def good(model_output, expected, params): return 1.0")
    good = importlib.import_module("unregistered").good
    fns.register("good", good, expr=lambda model_output, expected, params: model_output.is_not_null())
    with pytest.raises(assay.UsageError, match=r"could not start: .*'good' \(unregistered.good\) is not registered"):
        assay.score_file("a.parquet", None, "out/", isolate=True, verifier_name="good")
    assert not list(Path("out").glob("part-*"))


def test_a_function_that_nothing_asks_for_need_not_travel(there, monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    fns.register("unused", lambda model_output, expected, params: 1.0)
    assert score(isolate=True).rows == ROWS


@pytest.mark.long
def test_workers_of_a_run_that_is_gone_go_without_a_word(there):
    words = [
        "import assay, pathlib, time", "def slow(completion):", " pathlib.Path('begun').touch()", " time.sleep(0.5)",
    ]  # fmt: skip
    Path("slow.py").write_text("\n".join([*words, " return 1.0", "rubric = assay.Rubric(funcs=[slow])"]))
    pl.DataFrame({"completion": ["x"]}).write_parquet("c.parquet")
    words = [sys.executable, "-m", "assay", "score", "c.parquet", "--rubric", "slow:rubric", "--workers", "1"]
    with subprocess.Popen([*words, "--out", "out/"], stderr=subprocess.PIPE, text=True) as running:
        until(lambda: Path("begun").exists() or running.poll() is not None)
        running.kill()
        assert running.stderr.read() == ""  # to its end, which comes when the last of them is gone


@pytest.mark.long
def test_what_a_script_defines_for_itself_is_asked_for_in_a_module(there):
    script = [
        "import assay",
        "def good(completion): return 1.0",
        "try: assay.score_file('a.parquet', assay.Rubric(funcs=[good]), 'out/', isolate=True)",
        "except assay.UsageError as wrong: print(str(wrong).replace('\\n\\n', ' | '))",
    ]
    Path("script.py").write_text("\n".join(script))
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert re.search(r"could not start: .*'good'.* \| Define what the checks call .*isolate=False", done.stdout)
    assert done.stderr == ""


def test_the_limit_of_errors_holds_over_all_parts(there):
    with pytest.raises(assay.TooManyErrors, match="rows have a scoring error") as stopped:
        score(max_errors=20)
    assert "Finished parts are kept" in stopped.value.hint
    parts = len(list(Path("out").glob("part-*")))
    assert 0 < parts < len(json.loads(Path("out/_manifest.json").read_text())["shards"])
    with pytest.raises(assay.TooManyErrors):
        score(max_errors="10%")
    assert score(max_errors="20%").errors == ROWS // len(TEXTS)


def test_bad_rows_of_the_current_folder_are_listed_beside_it(there, monkeypatch):
    Path("bad.jsonl").write_text('{"completion": "a refund"}\n{bad\n')
    Path("rewards").mkdir()
    monkeypatch.chdir("rewards")
    for overwrite in (False, True):
        assay.score_file("../bad.jsonl", "../v.json", "./", max_bad_rows=1, overwrite=overwrite)
    assert (there / "rewards.bad_rows.parquet").exists()
    assert not list(Path().glob("*bad_rows*"))


def test_a_folder_says_what_made_it(there):
    score(command="assay score")
    made = assay.read_provenance("out")
    assert (made["rows"], made["command"], made["verifiers"][0]["id"]) == (ROWS, "assay score", "v")
    Path("out/_summary.json").unlink()
    assert assay.read_provenance("out/")["rows"] is None
    with pytest.raises(assay.InputError, match="not written by Assay"):
        assay.read_provenance(".")


def test_a_folder_of_parts_is_read_as_rollouts_are(there):
    score(keep=["id", "completion"])
    assert assay.scan("out/").collect()["id"].to_list() == list(range(ROWS))


def test_a_run_that_had_too_many_errors_does_no_more_parts(there):
    with pytest.raises(assay.TooManyErrors):
        score(max_errors=20)
    parts = sorted(Path("out").glob("part-*"))
    with pytest.raises(assay.TooManyErrors):
        score(max_errors=20)
    assert sorted(Path("out").glob("part-*")) == parts


def test_a_part_for_which_there_is_no_memory_says_what_to_do(there, monkeypatch):
    def stream(*_):
        raise OSError("Cannot allocate memory (os error 12)")

    monkeypatch.setattr("assay.runs.shards.stream", stream)
    with pytest.raises(assay.OutputError, match="not enough memory") as told:
        score()
    assert "--memory-limit" in told.value.hint


def test_counts_whose_sum_overflows_are_read_and_edited_ones_are_not(tmp_path):
    check = {"id": "a", "type": "x", "weight": 1.0, "rows": 2, "failures": 0, "errors": 0, "total": float("inf")}
    check |= {"reasons": {}, "remarks": {}, "broken": ""}
    counts = {
        "rows": 2, "scored": 2, "passed": 0, "errors": 0, "total": float("inf"), "unscored": {}, "checks": [check],
    }  # fmt: skip
    shard = Shard(0, Cut(0, 0, 1))
    path = tmp_path / "_counts" / shard.counts
    path.parent.mkdir()
    path.write_text(json.dumps(counts))
    assert read_counts(tmp_path, shard).mean_reward is None
    for edit in ({"rows": "2"}, {"rows": -1}, {"unscored": []}, {"checks": [{**check, "reasons": {"a": None}}]}):
        path.write_text(json.dumps(counts | edit))
        with pytest.raises(assay.InputError, match=r"000000\.json: not readable"):
            read_counts(tmp_path, shard)


def test_new_files_are_scored_without_touching_the_parts_that_are_there(there):
    def parts():
        return {path.name: path.read_bytes() for path in Path("out").glob("part-*.parquet")}

    def run(**options):
        return assay.score_file("in", SPEC, "out/", part_bytes=2500, **options)

    Path("in").mkdir()
    whole = {}
    for name in ("m", "b", "z", "a/c", "n"):
        path = Path(f"in/{name}.jsonl")
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'{{"id": "{name}{at}", "completion": "{name} {at} refund"}}\n' for at in range(60)))
        whole[name] = [f"{name}{at}" for at in range(60)]
        before = parts()
        summary = run()
        assert {name: parts()[name] for name in before} == before
        assert (summary.rows, summary.earlier) == (60 * len(whole), 60 * (len(whole) - 1))
        assert (len(whole) > 1) == any("1 file added to the run in out/" in note for note in summary.notes)
        again = run()
        assert (again.earlier, again.notes) == (again.rows, [note for note in again.notes if "added" not in note])
    ids = [ident for names in whole.values() for ident in names]
    assert pl.read_parquet("out/part-*.parquet")["id"].to_list() == ids
    assert assay.verify("out").intact
    assert assay.show("out", row=[299]).cards[0].text == "n 59 refund"
    Path("in/b.jsonl").unlink()
    with pytest.raises(assay.UsageError, match=r"input in/b.jsonl was part of it, and is not now"):
        run()
    assert run(overwrite=True).rows == 240


@pytest.mark.parametrize("engine", ["this process", "a child"])
def test_a_run_that_ends_while_it_grows_continues(there, engine, monkeypatch):
    Path("in").mkdir()
    for name in "ab":
        Path(f"in/{name}.jsonl").write_text('{"completion": "a refund"}\n')
    first = assay.score_file("in", SPEC, "out/")
    Path("in/0.jsonl").write_text('{"completion": "no"}\n')
    with monkeypatch.context() as patched:
        patched.setattr("assay.runs.folder._score", lambda *_: [])
        with pytest.raises(assay.AssayError):
            assay.score_file("in", SPEC, "out/")
    Path("in/1.jsonl").write_text('{"completion": "no"}\n')
    found = assay.score_file("in", SPEC, "out/", isolate=engine == "a child")
    assert (first.rows, found.earlier, found.rows) == (2, 2, 4)
    names = [entry["name"] for entry in assay.read_provenance("out")["inputs"]]
    assert names == ["in/a.jsonl", "in/b.jsonl", "in/0.jsonl", "in/1.jsonl"]
    assert assay.verify("out").intact


def test_new_files_with_other_columns_are_another_run(there):
    Path("in").mkdir()
    Path("in/a.jsonl").write_text('{"completion": "a refund"}\n')
    assay.score_file("in", SPEC, "out/")
    before = content("out")
    Path("in/b.jsonl").write_text('{"completion": "no", "extra": 1}\n')
    with pytest.raises(assay.UsageError, match='column extra: null then, "Int64" now'):
        assay.score_file("in", SPEC, "out/")
    assert content("out") == before
