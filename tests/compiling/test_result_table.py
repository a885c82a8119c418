"""Results from a table are those of columns; where they do not follow from the kernel's answers, there is no table."""

import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import polars as pl
import pytest
from cases import sized
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.compiling.plan import Plan
from assay.compiling.result_table import ResultTable
from assay.kernel.library import VARIABLE, kernel_state
from assay.names import BAD, TASK_FOUND
from assay.scoring.reference import score_rows
from assay.testing import hostile_texts
from assay.thresholds import EVER, set_to

pytestmark = pytest.mark.skipif("no kernel" in kernel_state(), reason=kernel_state())


REFUND, DIGIT = {"type": "contains", "value": "refund"}, {"type": "regex", "pattern": "[0-9]"}
IS_JSON, KEYS = {"type": "json_valid"}, {"type": "json_keys", "requiredKeys": ["a", "b"]}
SHARE = {"type": "contains_all", "values": ["x", "é", "refund"], "score": "share"}
SHORT = {"type": "max_length", "value": 40}
OTHER = {"type": "similarity", "value": "a refund"}
TABLED = {
    "one check": [REFUND],
    "reasons of their own": [IS_JSON, KEYS, SHARE],
    "weights, negation, thresholds": [
        REFUND | {"weight": 3},
        DIGIT | {"negate": True},
        SHARE | {"threshold": 0.5, "required": True},
        SHORT | {"weight": 0},
    ],
    "gates and penalties": [SHORT | {"gate": True}, {**DIGIT, "penalty": 0.3}, SHARE],
    "groups": [{"type": "any", "checks": [REFUND, KEYS]}, {"type": "none", "checks": [DIGIT, IS_JSON]}, SHARE],
    "conditions on checks": [
        KEYS | {"when": {"check": IS_JSON}},
        {"type": "all", "when": {"check": DIGIT}, "checks": [SHORT]},
    ],
}
UNTABLED = {
    "another check": [REFUND, OTHER],
    "a part of the text": [REFUND | {"on": [{"tag": "a"}]}],
    "a condition on a column": [REFUND | {"when": {"column": "n", "exists": True}}],
    "golds of rows": [REFUND | {"value": {"column": "n"}}],
    "a reason that quotes the text": [REFUND, {"type": "number", "value": 12}],
    "several words": [{"type": "contains", "value": f"p{at}"} for at in range(70)],
}
LIMITS = ({}, {"small_batch": 256}, {"table_words": 1}, {"table_words": EVER, "rows_a_word": EVER})
BITS = [{"type": "contains", "value": f"p{bit}."} for bit in range(13)]


def _texts(number, seed):
    rng = random.Random(seed)
    pieces = ("", "refund ", "é", "x ", "7", "İ", "\u212a", '{"a": 1, "b": 2}', '{"\\u0061": 1}', "{", "y" * 50)
    drawn = ["".join(rng.choices(pieces, k=rng.randint(0, 3))) for _ in range(number)]
    return [None if rng.random() < 0.1 else text for text in [*drawn, *hostile_texts(number, seed)]]


def _frame(number=120, seed=1):
    texts = _texts(number, seed)
    return pl.DataFrame({"completion": pl.Series(texts, dtype=pl.String), "n": [str(at) for at in range(len(texts))]})


def _numbered(numbers):
    """Texts of which each number has a word of its own, by the checks ``BITS``."""
    return pl.DataFrame(
        {"completion": [" ".join(f"p{bit}." for bit in range(13) if number >> bit & 1) for number in numbers]}
    )


def _spec(checks, **spec):
    return {"passThreshold": 0.5, "checks": [{**check, "id": f"c{at}"} for at, check in enumerate(checks)], **spec}


def _plan(checks, frame, **options):
    return Plan((assay.load_verifier(_spec(checks)),), tuple(frame.schema.items()), **options)


@contextmanager
def _kernel(setting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, setting)
        yield


def _each_way(plan, frame):
    """What the summary reads, of whole frames, with the table cold and warm, of streams, parts and chunks."""
    watched = plan.watched
    yield plan.score(frame, watched=watched)
    yield plan.score(frame, watched=watched)
    yield plan.lazy(frame.lazy(), watched=True).collect(engine="streaming")
    for size in sized((1, 2, 64), (2, 64)):
        parts = [frame[at : at + size] for at in range(0, frame.height, size)][: sized(8, 3)]
        yield pl.concat([plan.score(part, watched=watched) for part in parts])
    yield plan.score(pl.concat([frame[:7], frame[7:8], frame[8:]], rechunk=False), watched=watched)


def _by_columns(make, frame):
    with _kernel("0"):
        plan = make()
        assert plan.table is None
        return [*_each_way(plan, frame)]


def _assert_equal(results, expected):
    for found, wanted in zip(results, expected, strict=True):
        assert found.schema == wanted.schema
        assert found.equals(wanted)


def _assert_tabled(make, frame):
    plan = make()
    assert plan.table is not None
    _assert_equal(_each_way(plan, frame), _by_columns(make, frame))


@pytest.mark.parametrize("checks", TABLED.values(), ids=TABLED)
def test_results_are_those_of_columns(checks):
    frame = _frame()
    expected = _by_columns(lambda: _plan(checks, frame), frame)
    for limits in LIMITS:
        plan = _plan(checks, frame)
        assert plan.table is not None
        with set_to(**limits):
            _assert_equal(_each_way(plan, frame), expected)
    rows = score_rows(frame.to_dicts(), plan.verifiers)
    assert plan.score(frame).select(*rows[0]).to_dicts() == rows


@pytest.mark.parametrize("checks", UNTABLED.values(), ids=UNTABLED)
def test_there_is_no_table_where_results_follow_from_more(checks):
    frame = _frame(60)
    plan = _plan(checks, frame)
    assert plan.table is None
    _assert_equal(_each_way(plan, frame), _by_columns(lambda: _plan(checks, frame), frame))


@pytest.mark.parametrize(
    "options", [{"lengths": True, "outcome": True}, {"details": False}, {"keep": (), "counts_outcomes": True}], ids=str
)
def test_what_rows_have_besides_is_beside_the_table(options):
    frame = _frame(60).with_columns(finish_reason=pl.Series([None, "stop", "length"] * 40))
    _assert_tabled(lambda: _plan(TABLED["groups"], frame, **options), frame)


def test_several_verifiers_have_one_table():
    frame = _frame(60)
    specs = _spec(TABLED["groups"], id="one"), _spec([IS_JSON, SHORT], id="two", passThreshold=0.2)
    _assert_tabled(lambda: Plan(tuple(map(assay.load_verifier, specs)), tuple(frame.schema.items())), frame)


@pytest.mark.parametrize("kind", ["assistant", "user", "bytes", "categories", "bad rows", "lost tasks"])
def test_rows_that_cannot_be_scored_say_why(kind):
    texts = _texts(60, 3)
    columns = {"completion": pl.Series(texts, dtype=pl.String), "task_id": [str(at) for at in range(120)]}
    if kind in ("assistant", "user"):
        columns["completion"] = [text if text is None else [{"role": kind, "content": text}] for text in texts]
    elif kind == "bytes":
        columns["completion"] = [
            None if text is None else text.encode() + b"\xff" * (at % 2) for at, text in enumerate(texts)
        ]
    elif kind == "categories":
        columns["completion"] = columns["completion"].cast(pl.Categorical)
    elif kind == "bad rows":
        columns[BAD] = [None, "line 2\nis\nbad"] * 60
    else:
        columns[TASK_FOUND] = [True, None, True] * 40
    frame = pl.DataFrame(columns)
    _assert_tabled(lambda: _plan(TABLED["reasons of their own"], frame), frame)


def _counted(monkeypatch):
    """The numbers of words that are scored from now on."""
    numbers, score = [], ResultTable._scored
    monkeypatch.setattr(ResultTable, "_scored", lambda self, rows: (numbers.append(rows.height), score(self, rows))[1])
    return numbers


def test_a_plan_keeps_its_table_and_scores_a_word_once(monkeypatch):
    frame = pl.DataFrame({"completion": ["a refund", "no", None, "7 refund", "8 refunds"] * 20})
    plan = _plan([REFUND, DIGIT], frame)
    assert plan.table is not None
    numbers = _counted(monkeypatch)
    assert plan.score(frame).equals(plan.score(frame))
    assert plan.score(frame[:3])["reward"].to_list() == [0.5, 0.0, None]
    assert plan.score_rows([{"completion": "7"}, {"completion": "no refund"}])["reward"].to_list() == [0.5, 0.5]
    assert numbers == [3, 1]


@pytest.mark.usefixtures("small")
def test_a_table_stops_where_words_are_too_many_and_columns_go_on(monkeypatch):
    frame = _numbered(range(5000))
    plan, parts = _plan(BITS, frame), [frame[at : at + 1000] for at in range(0, 5000, 1000)]
    with _kernel("0"):
        columns = _plan(BITS, frame)
        expected = [columns.score(part) for part in parts]
    with set_to(rows_a_word=0):
        for part, wanted in zip(parts, expected, strict=True):
            assert plan.table.is_open
            assert plan.score(part).equals(wanted)
        assert not plan.table.is_open
        numbers = _counted(monkeypatch)
        assert plan.score(frame).equals(pl.concat(expected))
        assert numbers == []


@pytest.mark.usefixtures("small")
def test_a_table_stops_where_words_do_not_recur():
    frame = _numbered(range(2100))
    plan = _plan(BITS, frame)
    for at in (0, 300, 600, 900, 0):
        plan.score(frame[at : at + 300])
        assert plan.table.is_open
    plan.score(frame[1200:1500])
    assert not plan.table.is_open


@pytest.mark.usefixtures("small")
def test_small_batches_are_judged_together():
    frame = _numbered([*range(20)] * 20)
    plan = _plan(BITS, frame)
    with set_to(small_batch=40):
        for at in range(400):
            plan.score(frame[at : at + 1])
    assert plan.table.is_open


def test_a_query_that_was_made_before_the_table_stopped_goes_on_without():
    frame = _numbered(range(300)).vstack(pl.DataFrame({"completion": [None]}, schema={"completion": pl.String}))
    plan = _plan(BITS, frame)
    query = plan.lazy(frame.lazy())
    with _kernel("0"):
        expected = _plan(BITS, frame).score(frame)
    with set_to(table_words=100):
        plan.score(frame)
        assert not plan.table.is_open
        assert query.collect(engine="streaming").equals(expected)


def test_threads_share_a_table():
    frame = _frame(100)
    plan = _plan(TABLED["reasons of their own"], frame)
    parts = [frame[at : at + size] for size in (3, 50, 199) for at in range(0, frame.height - size, 7)]
    with ThreadPoolExecutor(4) as threads:
        results = [*threads.map(plan.score, parts)]
    with _kernel("0"):
        columns = _plan(TABLED["reasons of their own"], frame)
        _assert_equal(results, map(columns.score, parts))


def test_a_plan_with_a_table_is_pickled_as_one_without():
    frame = _frame(60)
    plan = _plan(TABLED["groups"], frame)
    before = pickle.dumps(plan)
    expected = plan.score(frame)
    assert pickle.dumps(plan) == before
    again = pickle.loads(before)  # noqa: S301  (our own)
    assert again == plan
    assert again.score(frame).equals(expected)


def test_summary_and_digests_of_a_file_are_the_same(tmp_path):
    rollouts = tmp_path / "rollouts.parquet"
    _frame(300).write_parquet(rollouts, row_group_size=100)
    results = []
    for setting in "01":
        with _kernel(setting), set_to(held_rows=0):
            done = assay.score_file(rollouts, _spec(TABLED["reasons of their own"]), tmp_path / f"{setting}.parquet")
        results.append((done.root, done.dump(), done.notes, done.problems))
    assert results[0] == results[1]


def test_explain_says_where_results_come_from(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")

    def said(checks):
        (tmp_path / "x.json").write_text(json.dumps(_spec(checks)))
        shown = CliRunner().invoke(app, ["explain", str(tmp_path / "x.json")], env={"COLUMNS": "200"}).stdout
        [data] = json.loads(CliRunner().invoke(app, ["explain", str(tmp_path / "x.json"), "--json"]).stdout)
        assert f"results: {data['results']}\n" in shown
        return data["results"]

    assert said(TABLED["groups"]) == "from a table, by the answers to all questions about the text"
    assert said([REFUND, OTHER, DIGIT, OTHER]) == "from columns: c1, c3 ask more than the kernel answers"
    assert said(UNTABLED["several words"]) == "from columns: too many facts"
    monkeypatch.setenv(VARIABLE, "0")
    assert "results" not in CliRunner().invoke(app, ["explain", str(tmp_path / "x.json"), "--json"]).stdout
