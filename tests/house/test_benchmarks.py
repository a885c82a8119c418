"""The benchmarks do not rot: what they draw, what contenders say, and a small run of them."""

import contextlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from cases import ROOT, needs_alpaca, some

import assay
from assay import load_verifier
from assay.checks.registry import CHECKS
from assay.compiling.verifiers import on_row
from assay.functions.registry import list_fns
from assay.scoring.reference import score_rows
from assay.steps.registry import STEP_TYPES
from contenders import (
    file_duckdb,
    file_polars,
    plain_loop,
    plain_loop_reasons,
    row_loop,
    spec_functions,
    spec_promptfoo,
    spec_verifiers,
    stage,
)
from contenders.spec import NotExpressibleError
from harness import registered, stages
from harness.comparing import differences
from harness.draws import FUNCTIONS, SpecDraw, function_draws, spec_draws
from harness.generate import drawn_file, functions_file
from harness.pool import POOL
from harness.texts import KINDS, MEAN_BYTES, texts

ROWS = 40
_SPEC = importlib.util.spec_from_file_location("bench_hooks", ROOT / "benchmarks" / "conftest.py")
bench_hooks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(bench_hooks)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr("harness.generate.CACHE", tmp_path)
    return tmp_path


def test_the_pool_is_sixty_checks_or_more():
    assert len({check["id"] for check in POOL}) == len(POOL) >= 60
    assert len(load_verifier({"checks": list(POOL)}, strict=True).checks) == len(POOL)


def test_specs_are_drawn_by_seed():
    draws = spec_draws(7)
    assert draws == spec_draws(7) != spec_draws(8)
    assert len(draws) == 20
    assert {len(draw.checks) for draw in draws} <= set(range(4, 17))
    assert [sum(draw.kind == kind for draw in draws[:12]) for kind in KINDS] == [3] * len(KINDS)


def test_functions_are_drawn_by_seed():
    draws = function_draws(7)
    assert draws == function_draws(7) != function_draws(8)
    assert sorted(draw.function for draw in draws) == sorted([*FUNCTIONS] * 4)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_their_size_and_none_comes_twice(kind):
    drawn = list(texts(kind, 2_000, 7))
    assert drawn[:50] == list(texts(kind, 50, 7)) != list(texts(kind, 50, 8))
    assert 0.8 < sum(len(text.encode()) for text in drawn) / 2_000 / MEAN_BYTES < 1.2
    assert len(set(drawn)) > 1_990


def _spec(folder, draw):
    path = folder / f"{draw.number}.json"
    path.write_text(draw.as_json(), "utf-8")
    return path


@pytest.mark.parametrize("draw", some(spec_draws()), ids=lambda draw: f"{draw.kind}-{draw.number}")
def test_contenders_say_what_a_spec_says(draw, cache, monkeypatch):
    spec, rollouts, out = _spec(cache, draw), drawn_file(draw, ROWS), cache / "out.parquet"
    frame = pl.read_parquet(rollouts)
    looped = pl.DataFrame(row_loop.run(row_loop.prepare(spec, frame), frame))
    wanted = looped.select(pl.col("^(check/.*|reward)$").name.map(lambda name: name.rpartition("/")[2]))
    if any(mark in str(draw.checks) for mark in ("(?=", "(?!", "(?<")):
        with pytest.raises(NotExpressibleError, match="look-around"):
            file_polars.prepare(spec, (rollouts, out))
    else:
        file_polars.run(file_polars.prepare(spec, (rollouts, out)), (rollouts, out))
        assert not differences(pl.read_parquet(out), wanted).any()
    if not draw.reads_tasks:
        for name, function in spec_functions.functions_of(spec).items():
            assert [float(function(text)) for text in frame["completion"]] == wanted[name].to_list(), name
        for loop in (plain_loop, plain_loop_reasons):
            verdicts = loop.run(loop.prepare(spec, frame), frame)
            assert not differences(pl.DataFrame(verdicts), wanted).any()
        failed = [[line for line in feedback.split("\n") if line] for feedback in verdicts["feedback"]]
        assert [len(lines) for lines in failed] == wanted.drop("reward").select(
            pl.sum_horizontal(pl.all() < 1)
        ).to_series().to_list()
        monkeypatch.setattr(spec_verifiers, "peer", lambda: assay)  # which has the same classes
        rubric = spec_verifiers.run(spec_verifiers.prepare(spec, frame), frame)
        assert not differences(pl.DataFrame(rubric), wanted).any()


def test_what_a_contender_cannot_say():
    draw = SpecDraw(1, "chat", ({"type": "regex", "id": "ahead", "pattern": "a(?!b)"},))
    with pytest.raises(NotExpressibleError, match="ahead: look-around"):
        file_polars._CHECKS["regex"](draw.checks[0])
    with pytest.raises(NotExpressibleError, match="ahead: look-around"):
        file_duckdb._CHECKS["regex"](draw.checks[0])


def test_a_statement_quotes_its_phrases(cache):
    check = {"type": "not_contains", "id": "no-sorry", "value": "I'm Sorry"}
    spec = _spec(cache, SpecDraw(1, "chat", (check, {**check, "id": "as-written", "caseSensitive": True})))
    query = file_duckdb.prepare(spec, ("in.parquet", "it's.parquet"))
    assert "NOT contains(low, 'i''m sorry')" in query
    assert "NOT contains(completion, 'I''m Sorry')" in query
    assert "TO 'it''s.parquet'" in query
    assert file_duckdb._CHECKS["regex"]({"pattern": r"[\u4e00-\u9fff]"}) == (
        r"regexp_matches(completion, '[\x{4e00}-\x{9fff}]')"
    )


def test_assertions_carry_flags_behind_a_pattern(cache):
    checks = (
        {"type": "regex", "id": "a", "pattern": r"(?m)^- \d"},
        {"type": "regex", "id": "b", "pattern": r"\d"},
        {"type": "not_contains", "id": "c", "value": "x"},
    )
    flagged, plain, phrase = spec_promptfoo.assertions(_spec(cache, SpecDraw(1, "chat", checks)))
    assert flagged == {"type": "javascript", "value": r'new RegExp("^- \\d", "m").test(output)'}
    assert plain == {"type": "regex", "value": r"\d"}
    assert phrase == {"type": "not-icontains", "value": "x"}


@pytest.mark.parametrize("draw", some(function_draws()), ids=lambda draw: f"{draw.function}-{draw.number}")
def test_some_rows_meet_their_golds(draw):
    frame = pl.read_parquet(functions_file(draw, 200))
    on_tasks = load_verifier({"checks": [{"type": "task_expectations"}]})
    verifier = on_tasks if draw.function == "task_expectations" else on_row()
    rewards = [row["reward"] for row in score_rows(frame.to_dicts(), [verifier])]
    assert 0 < sum(reward == 1 for reward in rewards) < 200


def test_stages_are_those_of_the_contender():
    assert list(stage.STAGES) == list(stages.STAGES)
    figures = {name: {"seconds": at + 1.0, "cpu": 2.0 * at} for at, name in enumerate([*stages.STAGES, stages.FLOOR])}
    one = {"machine": "m", "commit": "commit a", "rows": 1_000_000, "figures": figures}
    page = stages.as_markdown(one, {**one, "commit": "commit b"})
    assert "* before: commit b, 1,000,000 rows · m\n* after: commit a" in page
    assert "| decode | reads the texts as a run reads them | 1.00 s | 2.00 s | 2.00 µs | 1.00 s |" in page
    assert "| all | from start to end | 6.00 s | 10.00 s |" in page


@pytest.mark.parametrize(
    ("which", "shown"),
    [
        pytest.param(
            "test_drawn_specs or test_drawn_functions",
            "drawn specs, file to file.*assay score, median",
            marks=pytest.mark.long,
        ),
        pytest.param("test_nested", "groups, 37 golds of rows.*assay, twelve leaves", marks=pytest.mark.long),
        pytest.param("test_step or test_reference", "37 golds of rows.*regex, a column", marks=pytest.mark.long),
        pytest.param(
            "file_to_file or in_memory or processes or batch or slope or peak or stages or rubric or insight or server",
            "from start to end",
            marks=[pytest.mark.long, needs_alpaca],
        ),
    ],
)
def test_a_small_run(which, shown, tmp_path):
    """Of one draw, on a few rows: each benchmark runs, its results are equal, and the page gets its table."""
    small = {"ASSAY_BENCH_ROWS": "300", "ASSAY_BENCH_DRAWS": "1", "ASSAY_BENCH_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "benchmarks", "-q", "-k", which, f"--results={tmp_path}"]
    done = subprocess.run(
        [*command, "-p", "no:randomly", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, **small},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = (tmp_path / "measured.md").read_text("utf-8")
    assert re.search(rf"^\| .*{shown}.* \| cold \| [\d.,]+ ", table, re.MULTILINE), table


def test_everything_that_is_registered_is_measured_on_texts_that_differ_from_batch_to_batch():
    every = {case.name: case for case in registered.cases()}
    named = [("check", check.type) for check in CHECKS] + [("step", step.name) for step in STEP_TYPES]
    assert {f"{kind} {name}" for kind, name in [*named, *(("function", name) for name in list_fns())]} == set(every)
    for case in (every["check contains"], every["check tool_calls"], every["step tag"], every["function contains"]):
        first, second = case.batch(12, 0), case.batch(12, 1)
        texts = first.columns[0]
        assert len(set(first[texts]) & set(second[texts])) <= 3  # what examples say
        rows = case.by_rows(first)
        assert case.prepare(first)().select(rows[0].keys()).to_dicts() == rows


@pytest.mark.parametrize(
    ("kept", "message"),
    [(None, "no run to compare with"), ("elsewhere", "a run of another machine, elsewhere"), (platform.node(), "")],
)
def test_a_comparison_needs_a_run_of_this_machine(tmp_path, kept, message):
    if kept is not None:
        run = tmp_path / "Linux" / "0001_a.json"
        run.parent.mkdir()
        run.write_text(json.dumps({"machine_info": {"node": kept}}))
    options = {"benchmark_compare": True, "benchmark_storage": f"file://{tmp_path}"}
    config = SimpleNamespace(getoption=lambda name, default=None: options.get(name, default))
    with pytest.raises(pytest.UsageError, match=message) if message else contextlib.nullcontext():
        bench_hooks.pytest_configure(config)
    options["benchmark_compare"] = False
    bench_hooks.pytest_configure(config)
