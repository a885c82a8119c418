"""The options of functions and commands: written once, the same wherever they are used."""

import inspect
import re
from typing import Any, get_type_hints

import polars as pl
import pytest
import typer.main
from cases import each

import assay
from assay import options
from assay.cli.main import app
from assay.errors import in_python
from assay.insight.bench import bench
from assay.options import (
    AuditOptions,
    BatchOptions,
    BenchOptions,
    CalibrateOptions,
    DiffOptions,
    ExportOptions,
    FileOptions,
    GroupsOptions,
    PageOptions,
    PlanOptions,
    ReadingOptions,
    ReportOptions,
    ScoreOptions,
    ShowOptions,
    TripwireOptions,
    VerifyOptions,
    WhatIfOptions,
    deciding,
    flag_of,
    options_of,
    settle,
)

FUNCTIONS = {
    assay.scan: ReadingOptions, assay.score: ScoreOptions, assay.score_file: FileOptions,
    assay.score_batch: BatchOptions, assay.batch_schema: BatchOptions, assay.compile: PlanOptions,
    bench: BenchOptions,
}  # fmt: skip
INSIGHT = {
    assay.audit: AuditOptions, assay.calibrate: CalibrateOptions, assay.diff: DiffOptions, assay.export: ExportOptions, assay.groups: GroupsOptions, assay.report: ReportOptions, assay.Report.html: PageOptions,
    assay.show: ShowOptions, assay.Tripwires: TripwireOptions, assay.verify: VerifyOptions, assay.whatif: WhatIfOptions,
}  # fmt: skip
"""Functions whose signatures list their options: only the type and the default are written there once more."""
SPEC = {"checks": [{"type": "contains", "value": "refund"}]}


@each("function", FUNCTIONS | INSIGHT, ids=lambda function: function.__name__)
def test_a_function_shows_its_options(function):
    keywords = {
        name: item
        for name, item in inspect.signature(function).parameters.items()
        if item.kind is item.KEYWORD_ONLY or function is assay.Tripwires
    }
    options = options_of((FUNCTIONS | INSIGHT)[function]) | (
        options_of(ScoreOptions) if function is assay.audit else {}
    )
    assert {name: item.default for name, item in keywords.items()} == {
        name: option.default for name, (_, option) in options.items()
    }
    shown = inspect.getdoc(function).splitlines()
    for name, (_, option) in options.items():
        assert f"    {name}: {option.description}" in shown


@each("function", INSIGHT, ids=lambda function: function.__name__)
def test_a_signature_has_the_types_of_the_options(function):
    inner = function.__init__ if function is assay.Tripwires else function.__wrapped__
    hints = get_type_hints(inner, vars(inspect.getmodule(inner)))
    for name, (hint, _) in options_of(INSIGHT[function]).items():
        assert hint in (hints[name], Any)


@each("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_misspelt_option_is_named_with_a_guess(function):
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument '(kep|mappin)'"):
        function(
            *[None] * (2 if function is bench else 1),
            **{"mappin" if "mapping" in options_of(FUNCTIONS[function]) else "kep": 1},
        )
    with pytest.raises(TypeError, match="Did you mean `keep`"):
        assay.score([], SPEC, kep=["id"])


def test_the_command_has_the_options_of_the_function():
    command = typer.main.get_command(app).commands["score"]
    params = {param.name: param for param in command.params}
    for name, (_, option) in options_of(FileOptions).items():
        if option.cli is False:
            assert name not in params
            continue
        assert params[name].opts == [flag_of(name, option)]
        assert params[name].rich_help_panel == option.panel
        assert option.help in params[name].help
    assert {param.rich_help_panel for param in params.values() if param.param_type_name == "option"} >= {
        option.panel for _, option in options_of(FileOptions).values()
    }


@each("width", [60, 100])
def test_the_help_is_grouped_whole_and_as_wide_as_the_terminal(width):
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="assay", terminal_width=width)
    text = group.get_help(context)
    assert "..." not in text.partition("Commands:")[2]
    assert text.index("\n  score") < text.index("\n  check")
    assert max(map(len, text.splitlines())) <= width
    score = group.commands["score"].get_help(typer.Context(group.commands["score"], terminal_width=width))
    panels = ["Arguments:", "Input:", "Verifiers:", "Output:", "Strictness:", "Python functions:", "Scale:"]
    assert [line for line in score.splitlines() if line in panels] == panels


@each(
    ("options", "message"),
    [
        ({"function_timeout": 0}, "--function-timeout 0: expected a number of seconds above 0."),
        ({"regex_timeout": -1}, "--regex-timeout -1: expected a number of seconds; 0 for no limit."),
        ({"workers": -1}, "--workers -1: expected a number of processes; 0 to use none."),
        ({"max_concurrent": "x"}, "--max-concurrent x: expected a number of rows; 0 for all."),
        ({"utf8": "lenient"}, "--utf8 lenient: expected replace or strict."),
        ({"max_ratio": 0.5}, "--max-ratio 0.5: a ratio is at least 1."),
        ({"memory_limit": "much"}, "--memory-limit much: expected a size."),
        ({"max_bad_rows": "many"}, "--max-bad-rows many: expected a number of rows or a percentage."),
        ({"limit": -1}, "--limit -1: expected a number of rows, at least 0."),
        ({"part_bytes": "0"}, "--part-size 0: expected a size."),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_flag(options, message):
    with pytest.raises(assay.UsageError) as refused:
        settle(FileOptions, options, "score_file")
    assert refused.value.text.startswith(message)


def test_none_stands_for_the_default_and_values_are_parsed():
    given = {"max_ratio": None, "memory_limit": "2GB", "keep": "id", "mapping": None}
    settled = settle(ScoreOptions, given, "score")
    assert (settled["max_ratio"], settled["memory_limit"], settled["keep"], settled["mapping"]) == (
        200,
        2 << 30,
        ["id"],
        {},
    )
    assert settled.keys() == options_of(ScoreOptions).keys()


def test_what_decides_the_results_is_what_a_resumed_run_compares(tmp_path):
    pl.DataFrame({"completion": ["a refund"]}).write_parquet(tmp_path / "in.parquet")
    assert set(deciding(FileOptions)) == {
        *("mapping", "preset", "utf8", "skip_bad_files", "verifier_name", "pass_threshold", "function_timeout"),
        *("regex_timeout", "part_bytes", "any_role"),
    }
    out = f"{tmp_path}/out/"
    assay.score_file(tmp_path / "in.parquet", SPEC, out, regex_timeout=0.2)
    assay.score_file(tmp_path / "in.parquet", SPEC, out, memory_limit="1GB")  # decides nothing
    with pytest.raises(assay.UsageError, match="another run"):
        assay.score_file(tmp_path / "in.parquet", SPEC, out, regex_timeout=5)


KINDS = [kind for name, kind in vars(options).items() if re.fullmatch("[A-Z][A-Za-z]+(Options|Limits)", name)]


@each("kind", KINDS)
def test_messages_know_the_keyword_of_each_flag(kind):
    for name, (hint, option) in options_of(kind).items():
        flag = flag_of(name, option)
        words = f"`{name}={not flag.startswith('--no-')}`" if hint is bool else f"`{name}`"
        if option.cli is not False and flag != "--import":
            assert in_python(f"with {flag}") == f"with {words}"


def test_a_flag_that_is_switched_off_is_a_keyword_that_is_false():
    for name in ("details", "isolate"):
        assert in_python(f"score without --no-{name}.") == f"score without `{name}=False`."
