"""Odd results and rollouts for ``assay tripwire`` and ``assay audit``, drawn by seed."""

import json
import math
import random
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
from fuzz_specs import draw_rows, draw_spec
from typer.testing import CliRunner

from assay.cli.main import app

RUNNER = CliRunner()

NUMBERS = (0.0, 1.0, 0.5, 0.1, -1.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 2.0**53)
TEXTS = (
    "", "a", "0.5", "line\nbreak", "[bold]x[/bold]", "\x1b[31mred\x1b[0m", "\u202e\u200b", "é" * 40, "x" * 5000,
    "nan",
)  # fmt: skip
NAMES = (
    "^a.*$", "*", "a\nb", "[red]n[/red]", "\x1b]0;t\x07", "", "a, b", "é", "__assay__/row", "reward ", "c0", "y", "x",
    "rows",
)  # fmt: skip
MESSAGES = (
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "42"}],
    [{"role": "assistant", "content": ""}], [{"role": "user", "content": "\x1b[1m"}], [],
)  # fmt: skip
VALUES = {
    "float": (NUMBERS, pl.Float64),
    "float32": (tuple(value for value in NUMBERS if not 1e300 < abs(value) < math.inf), pl.Float32),
    "plain": ((0.0, 1.0, 0.5, 0.25), pl.Float64),
    "equal": ((0.1,), pl.Float64),
    "zero": ((0.0,), pl.Float64),
    "int": ((0, 1, 2, -3, 2**62), pl.Int64),
    "small": ((0, 1, 2, 255), pl.UInt8),
    "large": ((0, 2**64 - 1, 7), pl.UInt64),
    "bool": ((True, False), pl.Boolean),
    "text": (TEXTS, pl.String),
    "category": (("a", "b", "\x1b[31m"), pl.Categorical),
    "decimal": ((Decimal("0.50"), Decimal("1.00"), Decimal("-3.25")), pl.Decimal(38, 2)),
    "null": ((None,), pl.Null),
    "date": ((date(2024, 1, 1), date(1, 1, 1), date(9999, 12, 31)), pl.Date),
    "instant": ((datetime(2024, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)), pl.Datetime("us", "UTC")),
    "span": ((timedelta(1), timedelta(-1)), pl.Duration),
    "binary": ((b"", b"\xff", b"a"), pl.Binary),
    "list": (([], [1], [1, None], [2, 3]), pl.List(pl.Int64)),
    "struct": (({"a": 1}, {"a": None}), pl.Struct({"a": pl.Int64})),
    "messages": (MESSAGES, pl.List(pl.Struct({"role": pl.String, "content": pl.String}))),
}
USUAL = {
    "reward": "plain", "passed": "bool", "step": "small", "task_id": "text", "example_id": "int", "model": "text",
    "error": "text", "feedback": "text", "length": "int", "completion": "text", "check/v/a": "plain",
    "check/v/^a.*$": "bool", "check/w/b\n\x1b[31m": "plain", "score/v": "float", "prompt": "text", "answer": "text",
    "target": "int",
}  # fmt: skip
SPECS = (
    {
        "checks": [
            {"id": "a", "type": "contains", "value": "4"},
            {"id": "b", "type": "not_contains", "value": "be\ud800"},
        ]
    },
    {"id": "[red]", "checks": [{"id": "[/red] ^a.*$", "type": "regex", "pattern": "<answer>(.*)</answer>"}]},
    {"checks": [{"type": "equals", "value": {"column": "answer"}}]},
    {"checks": [{"type": "json_keys", "keys": ["a", "\x1b[1m"]}, {"type": "max_length", "value": 900}]},
    {"checks": [{"type": "json_valid", "gate": True}, {"type": "contains", "value": "\x1b[31m\u202e"}]},
    {"checks": [{"type": "contains", "value": {"column": '$["^a.*$"]'}}]},
    {
        "combine": "sum",
        "checks": [{"type": "min_length", "value": 3, "weight": 1e308}, {"type": "json_valid", "weight": 1e308}],
    },
    {"checks": [{"type": "not_contains", "value": ["\x1b[31m", "a\nb"]}, {"type": "vibes"}]},
)
_BARE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def column(chance, kind, rows):
    values, dtype = VALUES[kind]
    share = chance.choice((0.0, 0.0, 0.1, 1.0))
    return pl.Series([None if chance.random() < share else chance.choice(values) for _ in range(rows)], dtype=dtype)


def frame(chance, needed, plain=()):
    rows = len(plain) or chance.choice((0, 1, 1, 2, 7, 40, 130))
    columns = {}
    for name, usual in USUAL.items():
        if name not in needed and chance.random() < 0.4:
            continue
        kind = usual if chance.random() < 0.8 else chance.choice(list(VALUES))
        written = name if chance.random() < 0.97 else chance.choice((name.upper(), f"{name} ", f"x{name}"))
        columns[written] = column(chance, kind, rows)
    for name in chance.sample(NAMES, chance.choice((0, 0, 1, 3))):
        columns[name] = column(chance, chance.choice(list(VALUES)), rows)
    for name, values in pl.DataFrame(plain, infer_schema_length=None).to_dict().items():
        columns[name] = values if chance.random() < 0.9 or name not in columns else columns[name]
    table = pl.DataFrame(columns)
    return pl.concat([table, table]) if chance.random() < 0.2 else table


def written(chance, folder, table, suffixes):
    stem = chance.choice(("in", "a\x1b[31mb", "[x]"))
    path = folder / f"{stem}{chance.randrange(10**6)}{chance.choice(suffixes)}"
    if path.suffix == ".jsonl":
        lines = [json.dumps(row, default=str) for row in table.rows(named=True)]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        table.write_parquet(path)
    return path


def name_of(chance, table):
    if table.columns and chance.random() < 0.7:
        return chance.choice(table.columns)
    name = chance.choice((*NAMES, *USUAL, "\udcff"))
    return name if chance.random() < 0.5 else chance.choice((f"{name}x", name[1:], f"{name},{name}", "--json"))


def tripwire(chance, folder):
    table = frame(chance, {"reward", "step"})
    path = written(chance, folder, table, [".parquet"])
    arguments = ["tripwire", str(path)]
    if chance.random() < 0.4:
        arguments += ["--by", name_of(chance, table)]
    if chance.random() < 0.4:
        arguments += ["--length", name_of(chance, table)]
    if chance.random() < 0.2:
        limits = folder / chance.choice(("limits.json", "limits.yaml"))
        value = chance.choice((0, 1, 0.5, -1, None, False, True, "x", [], {}, {"rows": 1, "share": 0.2}, {"z": 1e400}))
        given = chance.choice(
            ({chance.choice(("flat", "drift", "jump", "stuck", "length", "\x1b[31m", "all_zeros")): value}, value)
        )
        limits.write_text(json.dumps(given))
        arguments += ["--limits", str(limits)]
    return arguments


def audit(chance, folder):
    spec = folder / "spec.json"
    spec.write_text(json.dumps(chance.choice(SPECS) if chance.random() < 0.6 else draw_spec(chance)))
    tables = [
        frame(chance, {"task_id"}, draw_rows(chance, chance.choice((0, 1, 3, 9, 9))))
        for _ in range(chance.choice((1, 1, 1, 2)))
    ]
    files = [str(written(chance, folder, table, (".jsonl", ".parquet"))) for table in tables]
    arguments = ["audit", str(spec), *files]
    for option, values in {
        "--sample": ("1", "3", "0", "-1", "x", "1e3"),
        "--task": (name_of(chance, tables[0]), "model,task_id", ""),
        "--max-passing": ("0", "5%", "-1", "x", "101%", "nan", "nan%"),
        "--max-free": ("0.2", "nan", "inf", "-1", "x"),
        "--min-control": ("90%", "90", "nan%", "x%", "-5%", "200%"),
        "--tasks": (files[-1], "none.jsonl"),
        "--any-role": (None,),
        "--max-bad-rows": ("100%",),
    }.items():
        if chance.random() < 0.06:
            value = chance.choice(values)
            arguments += [option] if value is None else [option, value]
    if chance.random() < 0.15:
        probes = folder / "probes.jsonl"
        fields = {
            "probe": chance.choice(("own", "\x1b[31m", "empty", "", 3)),
            "class": chance.choice(("hack", "free", "control", "must not gain", "x", None, [])),
            "completion": chance.choice(("42", "\ud800", "\x1b[31m", None, 7)),
            **chance.choice(({}, {"task_id": "a"}, {"task_id": 3}, {"task_id": []}, {"other": 1})),
        }
        probes.write_text(chance.choice((json.dumps(fields), "", "{", f"{json.dumps(fields)}\n\n[]", "[" * 9999)))
        arguments += ["--probe", str(probes)]
    return arguments


def problem(arguments):
    done = RUNNER.invoke(app, arguments, env={"COLUMNS": "160"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}: {done.exception}", "traceback"
    shown = f"{done.stdout}\n{done.stderr}"
    if done.exit_code not in (0, 2, 3):
        return f"exit code {done.exit_code}: {shown}", str(done.exit_code)
    if bare := _BARE.search(shown):
        return f"{bare[0]!r} is shown: {shown[max(bare.start() - 80, 0) : bare.end() + 80]!r}", "escape"
    if done.exit_code == 2:
        return (None if "rror: " in done.stderr else f"no sentence: {shown}"), "2"
    if "--json" in arguments:
        try:
            json.loads(done.stdout, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
        except ValueError as error:
            return f"not JSON: {error}: {done.stdout[:200]}", "json"
    return None, str(done.exit_code)


def outcome(seed, number, folder):
    draw = (tripwire, audit)[number % 2]
    chance = random.Random(f"{seed} {draw.__name__} {number // 2}")
    arguments = draw(chance, folder)
    if chance.random() < 0.7:
        arguments += ["--json"]
    elif chance.random() < 0.6:
        arguments += ["--out", str(folder / f"out.{chance.choice(('html', 'md', 'json', 'csv'))}")]
    why, end = problem(arguments)
    return f"{draw.__name__} {end}", why and f"{arguments}: {why}"
