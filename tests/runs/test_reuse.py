"""Scores of an earlier result in place of checks that have not changed: the content is that of a full run, whatever was edited."""

import hashlib
import itertools
import json
import os
import random
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from cases import each, sized
from fuzz_specs import draw_check, draw_rows, draw_spec
from insight_cases import golden

import assay
from assay.errors import InputError, SpecError, UsageError
from assay.spec.canonical import canonical_check, fingerprint
from assay.spec.verifier import load_verifier

pytestmark = pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")  # of skipped and broken checks

EDITS = sized(600, 6)
ROWS = 24
PLAIN = (
    *({"type": "contains", "value": value} for value in ("refund", "a", "42")),
    *({"type": "min_length", "value": value} for value in (3, 9)),
    *({"type": "regex", "pattern": pattern} for pattern in (r"\d+", r"(?i)the\b")),
    {"type": "contains_all", "values": ["a", "refund"], "score": "share"},
    {"type": "count", "of": "words", "max": 4},
    {"type": "length_penalty", "max": 9, "buffer": 4},
    {"type": "similarity", "value": "a refund", "metric": "ratio", "threshold": 0.5},
    {"type": "similarity", "value": "a refund", "metric": "ratio"},
    {"type": "equals", "value": {"column": "answer"}, "missingGold": "fail"},
    {"type": "contains", "value": {"column": "answer"}},
    {"type": "contains", "value": "a", "when": {"column": "level", "equals": 2}},
    {"type": "number", "value": "42", "on": ["afterThink"], "notFound": "pass"},
    {"type": "json_keys", "keys": ["a"]},
)


def plain_spec(rng):
    return {"id": "v", "checks": [dict(rng.choice(PLAIN)) for _ in range(rng.randrange(1, 6))]}


def named(spec, rng):
    for at, check in enumerate(spec["checks"]):
        check["id"] = f"{rng.choice(('c', 'c', 'x: y', 'refund'))}{at}"
    return spec


def edited(spec, rng):  # noqa: C901, PLR0912  (one kind of edit after another)
    spec = json.loads(json.dumps(spec))
    checks = spec["checks"]
    for _ in range(rng.randrange(5)):
        check = rng.choice(checks)
        kind = rng.randrange(12)
        if kind == 0 and not {"gate", "penalty"} & {*check}:
            check["weight"] = rng.choice((0.3, 1, 2, 7))
        elif kind == 1:
            check["id"] = f"new{rng.randrange(99)}"
        elif kind == 2:  # before or behind others
            checks.insert(rng.randrange(len(checks) + 1), {**rng.choice(PLAIN), "id": f"added{rng.randrange(99)}"})
        elif kind == 3 and len(checks) > 1:
            checks.remove(check)
        elif kind == 4:
            rng.shuffle(checks)
        elif kind == 5 and not {"gate", "penalty"} & {*check}:
            check["required"] = not check.get("required", False)
        elif kind == 6:
            check["negate"] = not check.get("negate", False)
        elif kind == 7:
            check["threshold"] = rng.choice((0.1, 0.3, 0.5, 1))
        elif kind == 8:
            check.pop("threshold", None)
        elif kind == 9:
            spec["passThreshold"] = rng.choice((0.2, 0.5, 1))
        elif kind == 10 and isinstance(check.get("value"), str):
            check["value"] += rng.choice("ab")
        elif kind == 11:
            spec["id"] = rng.choice(("v", "w", "v2"))
    return spec


def drawn(seed):
    rng = random.Random(seed)
    rich = rng.random() < 0.4
    before = [named((draw_spec if rich else plain_spec)(rng), rng) for _ in range(1 + (rng.random() < 0.3))]
    for at, spec in enumerate(before):
        spec["id"] = f"v{at}"
    if rich and rng.random() < 0.5:
        before[0]["checks"].append({**draw_check(rng), "id": "drawn"})
    after = [edited(spec, rng) for spec in before]
    after = [*after, named(plain_spec(rng), rng) | {"id": "third"}] if rng.random() < 0.1 else after
    after = after[: rng.randrange(1, 3)] if rng.random() < 0.2 else after
    rows = draw_rows(rng, ROWS)
    if not rich:
        rows = [row | {"completion": row["completion"] or "", "answer": row["answer"] or "a"} for row in rows]
        for row in rng.sample(rows, rng.randrange(3)):
            row[rng.choice(("completion", "answer"))] = None
    try:
        return [[load_verifier(spec) for spec in side] for side in (before, after)], rows
    except SpecError:
        return None


def ran_and_reused(folder, seed):
    found = drawn(seed)
    if found is None:
        return None
    (before, after), rows = found
    if len({verifier.id for verifier in after}) < len(after):
        return None
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "rows.parquet", row_group_size=9)
    options = {"overwrite": True, "lenient": True, "details": True, "seal": seed % 3 == 0}
    assay.score_file(folder / "rows.parquet", before, folder / "earlier.parquet", **options)
    full = assay.score_file(folder / "rows.parquet", after, folder / "full.parquet", **options)
    new = assay.score_file(
        folder / "rows.parquet", after, folder / "new.parquet", reuse=folder / "earlier.parquet", **options
    )
    assert pl.read_parquet(folder / "new.parquet").equals(pl.read_parquet(folder / "full.parquet")), seed
    assert new.root == full.root, seed
    footers = [assay.read_provenance(folder / f"{name}.parquet") for name in ("new", "full", "earlier")]
    reused = footers[0].get("reused")
    assert reused is None or reused["root"] == footers[2]["content"]["root"]
    assert footers[0]["content"] == footers[1]["content"]
    checks = sum(len(verifier.runnable) for verifier in after)
    return checks, len(reused["checks"]) if reused else 0


def test_random_edits_have_the_content_of_a_full_run(tmp_path):
    seeds = itertools.count(int(os.environ.get("ASSAY_FUZZ_SEED", "0")))
    found = (ran_and_reused(tmp_path, seed) for seed in seeds)
    counts = [*itertools.islice((count for count in found if count is not None), EDITS)]
    ran, reused = (sum(column) for column in zip(*counts, strict=True))
    assert reused > ran / 3, f"{reused} of {ran} checks are reused"


CHECKS = [
    {"id": "a", "type": "contains", "value": "a", "weight": 2},
    {"id": "b", "type": "contains_all", "values": ["a", "b"], "score": "share"},
    {"id": "n", "type": "regex", "pattern": "[0-9]", "negate": True},
]
SPEC = {"id": "v", "checks": CHECKS}
TEXTS = ["ab 1", "a", "b", "", None, "ab"] * 6


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"completion": TEXTS, "task_id": [f"t{at % 4}" for at in range(36)]}).write_parquet("rows.parquet")
    assay.score_file("rows.parquet", SPEC, "earlier.parquet")


def test_the_fingerprint_of_the_worked_case():
    case = golden("rescore.fingerprint")
    check = case.input["check"]
    (form,) = json.loads(load_verifier({"checks": [check]}).canonical)["checks"]
    assert canonical_check(form) == case.expect["canonical"]
    assert fingerprint(form) == case.expect["sha256"]
    for change in ({"id": "x"}, {"weight": 1}, {"required": False}, {"threshold": 0.5}):
        (other,) = json.loads(load_verifier({"checks": [check | change]}).canonical)["checks"]
        assert fingerprint(other) == case.expect["sha256"]
    for change in ({"text": "an AI"}, {"negate": True}, {"on": "afterThink"}, {"when": {"column": "x", "equals": 1}}):
        (other,) = json.loads(load_verifier({"checks": [check | change]}).canonical)["checks"]
        assert fingerprint(other) != case.expect["sha256"]


def again(spec=SPEC, out="new.parquet", source="rows.parquet", **options):
    found = assay.score_file(source, spec, out, reuse="earlier.parquet", overwrite=True, **options)
    full = assay.score_file(source, spec, "full.parquet", overwrite=True, **options)
    assert found.root == full.root != ""
    return found.notes


def without(*names):
    return {"id": "v", "checks": [check for check in CHECKS if check["id"] not in names]}


def with_check(**check):
    return {"id": "v", "checks": [*CHECKS, {"id": "z", **check}]}


def test_only_what_changed_runs():
    notes = again(with_check(type="max_length", value=3))
    assert notes[1:] == ["3 of 4 checks reused from earlier.parquet", "z: runs again: it is new or changed"]
    assert assay.read_provenance("new.parquet")["reused"]["checks"] == ["a", "b", "n"]
    assert again({**SPEC, "id": "w", "passThreshold": 0.4})[1] == "3 of 3 checks reused from earlier.parquet"
    assert again(without("a"))[1] == "2 of 2 checks reused from earlier.parquet"


def test_a_reused_check_is_not_called(monkeypatch):
    def fail(values):
        raise LookupError("called")

    monkeypatch.setenv("ASSAY_KERNEL", "0")
    failing = pl.lit("a").map_batches(fail, return_dtype=pl.Boolean)
    monkeypatch.setattr("assay.checks.text.pattern.Regex.score_expr", lambda *_: failing)
    assay.score_file("rows.parquet", SPEC, "new.parquet", reuse="earlier.parquet")
    with pytest.raises(LookupError, match="called"):
        assay.score_file("rows.parquet", SPEC, "full.parquet")


def test_two_verifiers_and_back():
    other = {"id": "w", "checks": [{"id": "long", "type": "min_length", "value": 2}]}
    assert again([SPEC, other])[1:] == [
        "3 of 4 checks reused from earlier.parquet",
        "w/long: runs again: it is new or changed",
    ]
    Path("new.parquet").replace("earlier.parquet")
    assert again(other)[1] == "1 of 1 check reused from earlier.parquet"


def test_notes_check_by_check_where_nothing_can_be_reused():
    spec = {"id": "v", "checks": [{"id": "g", "type": "all_of", "checks": CHECKS}, {**CHECKS[0], "value": "z"}]}
    notes = again(spec)
    assert notes[1:] == [
        "nothing is reused from earlier.parquet: a full run",
        "g: runs again: it is a group",
        "a: runs again: it is new or changed",
    ]
    assert "reused" not in assay.read_provenance("new.parquet")


@each(
    ("options", "why"),
    [
        ({"keep": ["task_id", "completion"]}, 'made with another keep: null then, ["task_id", "completion"] now'),
        ({"limit": 20}, "made with another limit: null then, 20 now"),
        ({"lengths": True}, "made with another lengths: false then, true now"),
        ({"regex_timeout": 3.0}, "made with another regex_timeout: 0.2 then, 3.0 now"),
    ],
)
def test_other_options_are_a_full_run(options, why):
    assert again(**options)[-1] == f"a, b, n: runs again: {why}"


def test_another_version_is_a_full_run(monkeypatch):
    monkeypatch.setattr("assay.writing.provenance.__version__", "9.9")
    assert again()[-1].startswith("a, b, n: runs again: made with Assay ")


def test_a_limit_and_a_kept_completion():
    options = {"limit": 17, "keep": ["completion"], "seal": True}
    assay.score_file("rows.parquet", SPEC, "earlier.parquet", overwrite=True, **options)
    assert again(**options) == ["3 of 3 checks reused from earlier.parquet"]


def test_a_check_with_errors_runs_again():
    gold = {"id": "g", "type": "equals", "value": {"column": "task_id"}, "missingGold": "fail"}
    rows = pl.read_parquet("rows.parquet").with_columns(
        pl.when(pl.col("task_id") != "t1").then("task_id").alias("task_id")
    )
    rows.write_parquet("rows.parquet")
    spec = {"id": "v", "checks": [*CHECKS, gold]}
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True)
    assert again(spec)[1:] == ["3 of 4 checks reused from earlier.parquet", "g: runs again: it had errors"]


def test_rows_that_a_check_left_unscored():
    gold = {"id": "g", "type": "equals", "value": {"column": "task_id"}}
    rows = pl.read_parquet("rows.parquet").with_columns(
        pl.when(pl.col("task_id") != "t1").then("task_id").alias("task_id")
    )
    rows.write_parquet("rows.parquet")
    spec = {"id": "v", "checks": [*CHECKS, gold]}
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True)
    assert again(spec)[2] == "g: runs again: rows lack what it compares with"
    assert again(SPEC)[2] == "a, b, n: runs again: rows that were unscored may be scored now"


@each("threshold", [0.5, 1])
def test_a_new_threshold_is_applied_to_the_score_that_is_there(threshold):
    check = {"id": "z", "type": "contains_all", "values": ["a", "b"], "score": "share", "on": [{"after": "a"}]}
    assay.score_file("rows.parquet", with_check(**check), "earlier.parquet", overwrite=True)
    assert again(with_check(**check, threshold=threshold))[1].startswith("4 of 4 checks reused")


def test_labels_that_are_alike():
    spec = {"id": "v", "checks": [{**CHECKS[1], "id": "a"}, {**CHECKS[0], "id": "a: b"}, CHECKS[2]]}
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True)
    assert again(spec)[1:] == [
        "1 of 3 checks reused from earlier.parquet",
        "a, a: b: runs again: its feedback cannot be told from that of another check",
    ]


class Polite(assay.Check):
    """A check of the user's."""

    type = "polite"

    def row(self, row):
        return float("a" in row["completion"])


def test_own_code_runs_again_unless_it_is_vouched_for():
    spec = with_check(type="polite")
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True, checks=[Polite])
    assert again(spec, checks=[Polite])[2] == "z: runs again: it is not built in"
    assert again(spec, checks=[Polite], reuse_code=True)[1] == "4 of 4 checks reused from earlier.parquet"
    other = type("Polite", (Polite,), {"type": "polite", "__module__": "elsewhere", "row": lambda self, row: 1.0})
    assert again(spec, checks=[other], reuse_code=True)[2] == "z: runs again: it is not built in"


def test_a_folder_is_an_earlier_result():
    assay.score_file("rows.parquet", SPEC, "parts/", part_bytes=1)
    found = assay.score_file("rows.parquet", SPEC, "new.parquet", reuse="parts/")
    assert found.notes[1] == "3 of 3 checks reused from parts"
    assert found.root == assay.read_provenance("earlier.parquet")["content"]["root"]
    assert assay.read_provenance("new.parquet")["reused"]["root"] == found.root


def test_moved_rollouts_are_known_by_their_hash():
    assay.score_file("rows.parquet", SPEC, "earlier.parquet", overwrite=True, seal=True)
    Path("rows.parquet").replace("moved.parquet")
    os.utime("moved.parquet", (1, 1))
    assert again(source="moved.parquet", seal=True) == ["3 of 3 checks reused from earlier.parquet"]
    with pytest.raises(InputError, match=r"is a result of other rollouts:\n  input rows\.parquet was part of it"):
        again(source="moved.parquet")


def test_tasks_are_part_of_what_has_to_be_the_same():
    pl.DataFrame({"task_id": [f"t{at}" for at in range(4)], "answer": ["a", "b", "ab", ""]}).write_ndjson("tasks.jsonl")
    spec = with_check(type="contains", value={"column": "answer"})
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True, tasks="tasks.jsonl")
    assert again(spec, tasks="tasks.jsonl")[1] == "4 of 4 checks reused from earlier.parquet"
    with pytest.raises(InputError, match=r"task file tasks\.jsonl was part of it, and is not now"):
        again(SPEC)
    os.utime("tasks.jsonl", (1, 1))
    with pytest.raises(InputError, match=r"task file tasks\.jsonl: modified"):
        again(spec, tasks="tasks.jsonl")
    table = pl.read_ndjson("tasks.jsonl")
    with pytest.raises(InputError, match=r"task file tasks\.jsonl was part of it"):
        again(spec, tasks=table)
    assay.score_file("rows.parquet", spec, "earlier.parquet", overwrite=True, tasks=table)
    assert again(spec, tasks=table)[1] == "4 of 4 checks reused from earlier.parquet"
    for options in ({"tasks": table.reverse()}, {}):
        with pytest.raises(InputError, match=r"nothing says that the rollouts and their tasks are the same"):
            again(SPEC, **options)


def test_rollouts_in_memory_are_nobody_knows_which():
    with pytest.raises(InputError, match=r"is a result of other rollouts"):
        again(source=pl.read_parquet("rows.parquet"))
    assay.score_file(pl.read_parquet("rows.parquet"), SPEC, "earlier.parquet", overwrite=True)
    with pytest.raises(InputError, match=r"nothing says that the rollouts"):
        again(source=pl.read_parquet("rows.parquet"))
    with pytest.raises(UsageError, match=r"`seal=True`: .* has no files that could be hashed"):
        assay.score_file(pl.read_parquet("rows.parquet"), SPEC, "new.parquet", seal=True)


def test_an_earlier_result_that_cannot_be_used():
    rows = pl.read_parquet("rows.parquet")
    rows.head(9).write_parquet("rows.parquet")
    with pytest.raises(InputError, match=r"input rows\.parquet: size"):
        again()
    rows.write_parquet("rows.parquet")
    assay.score_file("rows.parquet", SPEC, "earlier.parquet", overwrite=True, details=False)
    with pytest.raises(InputError, match=r"has no columns of checks"):
        again()
    assay.score_file("rows.parquet", SPEC, "earlier.parquet", overwrite=True)
    altered("earlier.parquet", pl.col("check/v/a") * 0.5)
    with pytest.raises(InputError, match=r"earlier\.parquet: is not as it was written: check/v/a\."):
        again()
    rows.with_columns(reward=0.5).write_parquet("earlier.parquet")
    with pytest.raises(InputError, match=r"not written by Assay"):
        again()
    with pytest.raises(UsageError, match=r"`reuse` writes one file"):
        assay.score_file("rows.parquet", SPEC, "parts/", reuse="earlier.parquet")
    with pytest.raises(UsageError, match=r"expected the path of a result, not int"):
        assay.score_file("rows.parquet", SPEC, "new.parquet", reuse=3)


def altered(path, *columns):
    footer = pq.read_metadata(path).metadata[b"assay"]
    table = pl.read_parquet(path).with_columns(*columns).to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(table.replace_schema_metadata({b"assay": footer}), path)


def test_seals_have_the_hashes_of_inputs_and_tasks():
    pl.DataFrame({"task_id": ["t0"], "answer": ["a"]}).write_ndjson("tasks.jsonl")
    Path("harbor/t1").mkdir(parents=True)
    Path("harbor/dataset.toml").write_text("")
    Path("harbor/t1/task.json").write_text('{"answer": "a"}')
    options = {"overwrite": True, "seal": True}
    digests = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in ("rows.parquet", "tasks.jsonl")}
    assay.score_file("rows.parquet", SPEC, "new.parquet", tasks="tasks.jsonl", **options)
    footer = assay.read_provenance("new.parquet")
    assert [entry["sha256"] for key in ("inputs", "tasks") for entry in footer[key]] == [*digests.values()]
    assay.score_file("rows.parquet", SPEC, "parts/", tasks="tasks.jsonl", **options)
    footer = assay.read_provenance("parts")
    assert [entry["sha256"] for key in ("inputs", "tasks") for entry in footer[key]] == [*digests.values()]
    assert footer["settings"] == assay.read_provenance("parts/part-000000.parquet")["settings"]
    assay.score_file("rows.parquet", SPEC, "new.parquet", tasks="harbor", **options)
    (entry,) = assay.read_provenance("new.parquet")["tasks"]
    Path("harbor/t1/task.json").write_text('{"answer": "b"}')
    assay.score_file("rows.parquet", SPEC, "new.parquet", tasks="harbor", **options)
    assert len(entry["sha256"]) == 64
    assert assay.read_provenance("new.parquet")["tasks"][0]["sha256"] != entry["sha256"]


def test_settings_are_in_every_footer():
    assay.score_file("rows.parquet", SPEC, "new.parquet", keep=["completion"], limit=3, any_role=True)
    settings = assay.read_provenance("new.parquet")["settings"]
    assert {"keep": ["completion"], "limit": 3, "details": True, "any_role": True}.items() <= settings.items()
    assert {"mapping", "preset", "regex_timeout", "lengths"} <= {*settings}
