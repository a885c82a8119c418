"""Whether a result is what its footer says: each changed cell is found, and what cannot be checked is not called intact."""

import contextlib
import json
import math
import random
import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from cases import sized
from insight_cases import content_of

import assay
from assay.errors import AssayError, InputError, UsageError

CHECKS = [
    {"id": "a", "type": "contains", "value": "a", "weight": 2},
    {"id": "b", "type": "contains_all", "values": ["a", "b"], "score": "share"},
    {"id": "n", "type": "regex", "pattern": "[0-9]", "negate": True},
]
SPEC = {"id": "v", "checks": CHECKS}
CHANGES = sized(200, 4)


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with rollouts and their result."""
    rng = random.Random(1)
    columns = {"completion": [rng.choice(["ab 1", "a", "b", "", None, "ab"]) for _ in range(60)]}
    columns |= {"task_id": [f"t{at % 4}" for at in range(60)], "step": [at // 20 for at in range(60)]}
    rows = pl.DataFrame(columns | {"marks": [[0.5, 0.0]] * 60})
    folder = tmp_path_factory.mktemp("scored")
    with contextlib.chdir(folder):
        rows.write_parquet("rows.parquet", row_group_size=17)
        assay.score_file("rows.parquet", SPEC, "rewards.parquet", seal=True)
    return folder


@pytest.fixture(autouse=True)
def desk(scored, tmp_path, monkeypatch):
    """A copy of the folder, to work in."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def rewrite(path, frame=None, change=None, *, consistent=False):
    """Write a result with other rows or another footer; with digests that fit, if it is to be consistent."""
    footer = json.loads(pq.read_metadata(path).metadata[b"assay"])
    frame = pl.read_parquet(path) if frame is None else frame
    if consistent:
        footer["content"] = content_of([frame], frame.schema)
    if change is not None:
        change(footer)
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(table.replace_schema_metadata({b"assay": json.dumps(footer)}), path)


def with_other_cell(frame, rng):
    """The frame with one changed cell, and the name of its column."""
    name, row = rng.choice(frame.columns), rng.randrange(frame.height)
    values = frame[name].to_list()
    value, is_null = values[row], values[row] is None
    kind = str(frame.schema[name])
    if is_null:
        choices = [{"Boolean": True, "Int64": 0, "Float64": 0.5}.get(kind, "x")]
    elif kind == "Float64":
        choices = [math.nextafter(value, 2.0), value / 2 or -0.0, 0.25 if value != 0.25 else 0.75]
    elif kind == "String":
        choices = [value + " ", value[:-1] + "\u200b", value.upper() + "!"]
    else:
        choices = [not value] if kind == "Boolean" else [value + 1] if kind == "Int64" else [[0.5, -0.0], [7.0]]
    values[row] = rng.choice(choices if is_null else [*choices, None])
    return frame.with_columns(pl.Series(name, values, dtype=frame.schema[name])), name, row


def test_every_changed_cell_is_found():
    original, root = pl.read_parquet("rewards.parquet"), assay.read_provenance("rewards.parquet")["content"]["root"]
    for seed in range(CHANGES):
        frame, name, row = with_other_cell(original, random.Random(seed))
        rewrite("rewards.parquet", frame)
        found = assay.verify("rewards.parquet", sample="all")
        assert (found.columns_differ, found.cells_differ, found.intact) == ([name], 1, False), (seed, name, row)
        assert (found.cells[0]["row"], found.cells[0]["column"]) == (row, name)
        rewrite("rewards.parquet", frame, consistent=True)
        found = assay.verify("rewards.parquet", sample="all", root=root)
        assert (found.columns_differ, found.root_differs, found.cells_differ) == ([], True, 1), (seed, name, row)
        rewrite("rewards.parquet", original, consistent=True)
    found = assay.verify("rewards.parquet", sample="all", root=root)
    assert (found.intact, found.root, found.sampled, found.misses_up_to) == (True, root, 60, 0.0)


def settings(footer, **values):
    footer["settings"] |= values


def verifier(footer, **values):
    footer["verifiers"][0] |= values


def respec(footer):
    """Another spec, with all hashes that it needs."""
    loaded = assay.load_verifier({**SPEC, "checks": [{**CHECKS[0], "weight": 3}, *CHECKS[1:]]})
    checks = [{"id": check.id, "type": check.type, "weight": check.weight} for check in loaded.checks]
    verifier(footer, canonical=loaded.canonical, sha256=loaded.sha256, checks=checks)


ALTERED = {
    "the root": lambda footer: footer["content"].update(root="0" * 64),
    "a digest": lambda footer: footer["content"]["columns"][0].__setitem__(2, "0" * 64),
    "a column": lambda footer: footer["content"]["columns"].pop(),
    "the order": lambda footer: footer["content"]["columns"].reverse(),
    "a number of rows": lambda footer: footer["content"].update(rows=59),
    "the number of rows": lambda footer: footer.update(rows=61),
    "a hash of a spec": lambda footer: verifier(footer, sha256="0" * 64),
    "a weight": lambda footer: footer["verifiers"][0]["checks"][0].update(weight=9),
    "an id": lambda footer: verifier(footer, id="w"),
    "a kind": lambda footer: verifier(footer, kind="in_process"),
    "a spec": respec,
    "what is kept": lambda footer: settings(footer, keep=["task_id"]),
    "the details": lambda footer: settings(footer, details=False),
    "a limit": lambda footer: settings(footer, limit=30),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_footer_is_found(name):
    rewrite("rewards.parquet", change=ALTERED[name])
    assert not assay.verify("rewards.parquet", sample=20).intact


UNCHECKED = {
    "no digests": (lambda footer: footer.pop("content"), "has no digests"),
    "no settings": (lambda footer: footer.pop("settings"), "does not say with which options"),
    "another version": (lambda footer: footer.update(assay_version="9.9"), "was made with Assay 9.9, this is"),
    "an input": (lambda footer: footer["inputs"][0].update(sha256="0" * 64), "is not the file that was scored"),
    "an input elsewhere": (lambda footer: footer["inputs"][0].update(name="no.parquet"), "no.parquet: no such file"),
    "no input": (lambda footer: footer.update(inputs=[]), "does not say which files"),
    "a task table": (lambda footer: footer.update(task_table="0" * 64), "its tasks were not read from a file"),
    "a preset at a path": (lambda footer: settings(footer, preset="/etc/x.json"), "options in its footer cannot be"),
    "an unknown option": (lambda footer: settings(footer, bogus=1), "options in its footer cannot be read"),
    "a wrong option": (lambda footer: settings(footer, keep=3), "options in its footer cannot be read"),
    "code": (lambda footer: verifier(footer, code=[{"name": "x", "sha256": "0"}]), "the code of `v` is not what it"),
    "a canonical form": (lambda footer: verifier(footer, canonical="{}"), "the verifier v in the footer"),
    "verifiers": (lambda footer: footer.update(verifiers=[]), "does not say which verifiers"),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_cannot_be_checked(name):
    change, message = UNCHECKED[name]
    rewrite("rewards.parquet", change=change)
    try:
        found = assay.verify("rewards.parquet")
    except InputError as error:
        assert message in str(error)  # noqa: PT017  (or a finding)
    else:
        assert not found.intact
        assert any(message in words for words in (*found.columns_differ, *found.notes))


def test_a_finding_is_told_even_if_the_rest_cannot_be_checked():
    frame, name, _ = with_other_cell(pl.read_parquet("rewards.parquet"), random.Random(3))
    rewrite("rewards.parquet", frame)
    Path("rows.parquet").unlink()
    found = assay.verify("rewards.parquet")
    assert (found.columns_differ, found.sampled, found.misses_up_to) == ([name], 0, None)
    assert found.notes == ("what made it is not checked: rows.parquet: no such file or folder.",)


def test_another_version_only_if_asked_for():
    rewrite("rewards.parquet", change=lambda footer: footer.update(polars_version="0.1"))
    found = assay.verify("rewards.parquet", any_version=True)
    assert (found.intact, found.notes[0][:40]) == (True, "it was made with Polars 0.1, this is " + pl.__version__[:3])


def test_moved_inputs_are_known_by_their_hash_or_size():
    def known_by(result, **options):
        return [(entry["name"], entry["by"]) for entry in assay.verify(result, **options).inputs]

    Path("rows.parquet").rename("moved.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: no such file"):
        assay.verify("rewards.parquet")
    assert known_by("rewards.parquet", rollouts=["moved.parquet"]) == [("moved.parquet", "sha256")]
    assay.score_file("moved.parquet", SPEC, "plain.parquet")
    assert known_by("plain.parquet") == [("moved.parquet", "size and time")]
    assert not assay.verify("plain.parquet").sealed
    Path("moved.parquet").rename("again.parquet")
    assert known_by("plain.parquet", rollouts="again.parquet") == [("again.parquet", "size")]
    pl.read_parquet("again.parquet").head(3).write_parquet("again.parquet")
    with pytest.raises(InputError, match=r"again\.parquet: is not the file that was scored: another size"):
        assay.verify("plain.parquet", rollouts="again.parquet")
    assay.score_file(pl.read_parquet("again.parquet"), SPEC, "memory.parquet")
    with pytest.raises(InputError, match="does not say which files"):
        assay.verify("memory.parquet")


@pytest.mark.parametrize("tasks", ["tasks.jsonl", "harbor", "table"])
def test_tasks_are_checked(tasks):
    table = pl.DataFrame({"task_id": [f"t{at}" for at in range(4)], "answer": ["a", "b", "ab", "1"]})
    table.write_ndjson("tasks.jsonl")
    Path("harbor/t1").mkdir(parents=True)
    Path("harbor/dataset.toml").write_text("")
    Path("harbor/t1/task.json").write_text('{"answer": "a"}')
    spec = {"id": "v", "checks": [*CHECKS, {"type": "contains", "value": {"column": "answer"}}]}
    for seal in (True, False):
        given = table if tasks == "table" else tasks
        assay.score_file("rows.parquet", spec, "out.parquet", tasks=given, overwrite=True, seal=seal, lenient=True)
        options = {"tasks": table} if tasks == "table" else {}
        assert assay.verify("out.parquet", **options).intact
    if tasks == "table":
        with pytest.raises(InputError, match="its tasks were not read from a file"):
            assay.verify("out.parquet")
        with pytest.raises(InputError, match="was made with other tasks"):
            assay.verify("out.parquet", tasks=table.with_columns(answer=pl.lit("z")))
    elif tasks == "harbor":
        Path("harbor/t1/task.json").write_text('{"answer": "b"}')
        with pytest.raises(InputError, match="was made with other tasks"):
            assay.verify("out.parquet")
    else:
        table.with_columns(answer=pl.lit("zz")).write_ndjson("tasks.jsonl")
        with pytest.raises(InputError, match=r"tasks\.jsonl: is not the file that was scored"):
            assay.verify("out.parquet")


def test_a_damaged_byte_is_found_or_changes_nothing():
    raw, rows, rng = Path("rewards.parquet").read_bytes(), pl.read_parquet("rewards.parquet"), random.Random(9)
    ends = set()
    for _ in range(sized(400, 16)):
        damaged = bytearray(raw)
        damaged[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        Path("damaged.parquet").write_bytes(damaged)
        try:
            found = assay.verify("damaged.parquet", sample="all")
        except AssayError:
            ends.add("cannot be read")
            continue
        ends.add("intact" if found.intact else "differs")
        assert not found.intact or pl.read_parquet("damaged.parquet").equals(rows)
    assert {"cannot be read", "differs"} <= ends


def test_a_sample_says_what_it_can_miss():
    for sample, size in (("all", 60), ("5%", 3), (7, 7), ("60", 60), ("1000", 60)):
        found = assay.verify("rewards.parquet", sample=sample)
        assert (found.sampled, found.intact) == (size, True)
        assert found.misses_up_to == (0.0 if size == 60 else 1 - 0.05 ** (1 / size))


def test_options_that_cannot_be_used():
    for sample in ("", "0", "-1", "x", "200%", "1.5", "٣", "9" * 400 + "x"):
        with pytest.raises(UsageError, match="sample"):
            assay.verify("rewards.parquet", sample=sample)
    for root in ("", "xyz", "a" * 15, "g" * 64, "a" * 65):
        with pytest.raises(UsageError, match="root"):
            assay.verify("rewards.parquet", root=root)
    for value in (None, 3, pl.DataFrame({"reward": [1.0]})):
        with pytest.raises(UsageError, match="is a path"):
            assay.verify(value)


def test_a_seed_chooses_the_rows():
    frame = pl.read_parquet("rewards.parquet").with_columns(reward=pl.lit(0.123))
    rewrite("rewards.parquet", frame, consistent=True)
    rows = [[cell["row"] for cell in assay.verify("rewards.parquet", sample=9, seed=seed).cells] for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]
    assert rows[0] == sorted(rows[0])
    assert assay.verify("rewards.parquet", root=assay.verify("rewards.parquet").root[:16]).root_differs is False


def test_an_empty_result():
    pl.read_parquet("rows.parquet").head(0).write_parquet("none.parquet")
    assay.score_file("none.parquet", SPEC, "out.parquet")
    found = assay.verify("out.parquet", sample="all")
    assert (found.intact, found.rows, found.sampled, found.misses_up_to) == (True, 0, 0, None)


def test_each_part_of_a_folder():
    assay.score_file("rows.parquet", SPEC, "parts/", part_bytes=1, seal=True)
    parts = sorted(Path("parts").glob("*.parquet"))
    assert len(parts) == 4
    found = assay.verify("parts", sample="all")
    assert found.intact
    assert (found.rows, found.sealed) == (60, True)
    assert found.root == assay.read_provenance("rewards.parquet")["content"]["root"]
    frame = pl.read_parquet(parts[2])
    rewrite(parts[2], frame.with_columns(step=pl.lit(9, dtype=pl.Int64)))
    found = assay.verify("parts", sample="all")
    assert (found.columns_differ, found.cells_differ) == (["part-000002.parquet: step"], frame.height)
    rewrite(parts[2], frame, lambda footer: footer.update(part=1), consistent=True)
    assert assay.verify("parts").columns_differ == ["part-000002.parquet: is a part of another run"]
    rewrite(parts[2], frame, lambda footer: footer.update(part=2), consistent=True)
    assert assay.verify("parts").intact
    manifest = json.loads(Path("parts/_manifest.json").read_text())
    manifest["settings"]["any_role"] = True
    Path("parts/_manifest.json").write_text(json.dumps(manifest))
    assert assay.verify("parts").columns_differ == ["_manifest.json"]


def test_functions_that_rows_name():
    rows = [{"completion": f"{at}", "fn_name": "exact_match", "expected": "3"} for at in range(9)]
    pl.DataFrame(rows).write_parquet("named.parquet")
    for spec, name in ((None, None), (SPEC, "exact_match")):
        assay.score_file("named.parquet", spec, "out.parquet", verifier_name=name, overwrite=True)
        found = assay.verify("out.parquet", sample="all")
        assert found.intact, found.as_json()
        assert [entry["same"] for entry in found.verifiers] == [True] * (1 if spec is None else 2)


def test_rubrics_cannot_be_made_from_a_footer():
    assay.score_file("rows.parquet", assay.Rubric(funcs=[one]), "out.parquet")
    with pytest.raises(InputError, match="is a reward function of a rubric"):
        assay.verify("out.parquet")


def one(completion):
    return float(bool(completion))


class Polite(assay.Check):
    """A check of the user's."""

    type = "polite"

    def row(self, row):
        return float("a" in row["completion"])


def test_own_checks_have_to_be_there_and_to_be_the_same():
    assay.score_file("rows.parquet", {"id": "v", "checks": [{"type": "polite"}]}, "out.parquet", checks=[Polite])
    assert assay.verify("out.parquet", checks=[Polite]).intact
    with pytest.raises(AssayError):
        assay.verify("out.parquet")
    other = type("Polite", (Polite,), {"type": "polite", "__module__": "elsewhere", "row": lambda self, row: 1.0})
    with pytest.raises(InputError, match="the code of `v` is not what it was"):
        assay.verify("out.parquet", checks=[other])


def test_what_is_derived_or_reused_is_verified_like_others():
    from assay.insight.whatifs import write_rewards

    write_rewards("rewards.parquet", "new.parquet", weights={"a": 5})
    assert assay.verify("new.parquet", sample="all").intact
    assay.score_file("rows.parquet", {"id": "w", "checks": CHECKS[:2]}, "re.parquet", reuse="rewards.parquet")
    assert assay.verify("re.parquet", sample="all").intact


def test_a_folder_that_has_grown_is_verified_as_far_as_it_was_scored():
    Path("in/model=m").mkdir(parents=True)
    shutil.copy("rows.parquet", "in/model=m/m.parquet")
    assay.score_file("in", SPEC, "out/")
    more = pl.read_parquet("rows.parquet").with_columns(new=1)
    Path("in/model=a").mkdir()
    for name in ("in/model=a/a.parquet", "in/z.parquet"):
        more.write_parquet(name)
    found = assay.verify("out", rollouts="in")
    assert found.intact
    assert "2 files not scored yet: in/model=a/a.parquet, in/z.parquet" in found.notes
    more.head(7).write_parquet("in/model=m/m.parquet")
    with pytest.raises(InputError, match="is not the file that was scored"):
        assay.verify("out", rollouts="in")
    Path("in/model=m/m.parquet").unlink()
    with pytest.raises(InputError, match="was made from 1 file, and there are 2"):
        assay.verify("out", rollouts="in")
