"""The same values in every format that Assay reads, for every check type that is registered, drawn by a seed.

A table is drawn as an Arrow table, so that all rows of a column have one type, and its values are what that table holds. These are
written in each format that has them, by the rules of docs/inputs.md:

* ``typed`` tables have numbers, booleans, lists and structs. Parquet and Arrow hold them as they are; JSON, and rows of Python, hold
  structs without their null fields, for a null field of a struct counts as absent, but one in an object of JSON does not.
* ``text`` tables have text in every column, and CSV holds them, too: there every cell is text, an empty cell is null, and ``""`` is the
  empty text.
* ``numbers`` tables have whole numbers, and CSV holds these as text, which is the same for golds that are texts. It is not for params
  that are numbers (bounds, ``precision``), nor within JSON, nor for booleans and fractions in ``when`` (42 equals 42.0, but not
  "42.0"); so golds alone refer to them.
* ``sheet`` tables have text that a workbook holds: no control characters, no empty texts, no rows that are blank.

A path into a column is one that its type has: where a type lacks it, no row can have a value, and the table is refused. Objects of
JSON have no type, and a row without the value is unscored. Texts are UTF-8 and numbers are finite: parquet holds no lone surrogates,
and JSON no NaN.
"""

import contextlib
import functools
import gzip
import io
import json
import random
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from typer.testing import CliRunner

import assay
from assay.checks.registry import CHECKS
from assay.cli.main import app
from assay.errors import AssayError, ColumnsError, SpecError
from assay.spec.verifier import load_verifier
from assay.testing import hostile_texts
from assay.thresholds import set_to
from assay.values.params import spellings

NAMES = ("gold", "other", "flag")
"""Columns that specs refer to."""
VALUES = (
    42, 0, -1, 7, 2**53 + 1, 2**63 - 1, True, False, 1.5, 42.0, -0.0, 1e300, 0.1, 1e22, "42", "42.0", "007", " 42 ",
    "", " ", "a", "A", "Paris", "true", "True", "null", "é ü", "[1, 2.0]", '["a", "b"]', '{"a": 1}', "#### 42",
    "x, y", "a\nb", "c\r\nd", 'q "q"', "'", "=1+1", "\ufeffa", "a\x00b", "^a", "(", "1e5", "a,b;c|d\te", [],
    ["a", "b"], ["Paris", None], ["42"], [1, 2], [41, 42, None], [1, 2.5], [True, False], [[1], [2, 3]], [None],
    {"a": 1}, {"a": None, "b": 2}, {"a": "x", "b": [1]}, {"a": {"b": 1, "c": None}}, {"a": 1.5, "b": "y"},
    [{"a": 1}, {"b": None}], [{"name": "f", "arguments": {"x": 1}}],
    [{"name": "f", "arguments": {"x": 1.0, "y": None}}], {"type": "object", "required": ["a"]},
    {"properties": {"a": {"type": "integer"}}}, {"enum": ["a", "b"]},
)  # fmt: skip
STEPS = (
    "afterThink",
    "number",
    "boxed",
    "strip",
    "lower",
    {"after": "####"},
    {"json": {"path": "a"}},
    {"normalize": "squad"},
)
ANSWERS = ("{}", "It is {}.", "<think>x</think> {}", r"\boxed{{{}}}", "#### {}", " {}\n")
TYPED = (
    "files",
    "parquet", "row groups", "ipc", "stream", "jsonl", "jsonl.gz", "json", "list", "columns", "frame", "table",
    "command",
)  # fmt: skip
TEXT = (*TYPED, "csv", "tsv", "semicolons", "csv", "CSV tasks")
SHEET = (*TEXT, *("xlsx", "xlsx") * (find_spec("openpyxl") is not None))
TASKS = ("parquet tasks", "JSONL tasks", "JSON tasks", "YAML tasks")
FORMATS = {"typed": (*TYPED, *TASKS), "numbers": (*TEXT, *TASKS), "text": (*TEXT, *TASKS), "sheet": (*SHEET, *TASKS)}
TESTS = (
    {"equals": 42}, {"equals": "42"}, {"in": [1, 2, "7"]}, {"exists": True}, {"exists": False}, {"matches": r"^\d+$"},
)  # fmt: skip
"""What ``when`` may ask of whole numbers."""
WHOLE = (42, 0, -1, 1, 2, 3, 7, 2**53 + 1, 2**63 - 1)


def _fields(check, params):
    names = spellings(check.Params)
    return {names.get(name, name): value for name, value in (params or {}).items()}


@functools.cache
def references(check):
    names = [(field.alias or name) for name, field in check.Params.model_fields.items()]
    pairs = ((number, name) for number in range(len(check.examples)) for name in names)
    return tuple(pair for pair in pairs if _refers(with_value(check, *pair, {"column": "gold"})))


def with_value(check, number, name, value):
    params = (check.examples[number].params or {}).items()
    others = {other: given for other, given in params if _field(check, other) != _field(check, name)}
    return {"type": check.type, **others, name: value}


def _field(check, name):
    return spellings(check.Params).get(name, name)


@functools.cache
def all_references():
    """Every check type, the number of an example of it, and a param of that which may be a reference."""
    return tuple((check, *pair) for check in CHECKS for pair in references(check))


def referring(check, number, name, value):
    """Return a check as of an example, with a reference as one of its params, or with a column if the reference cannot be there."""
    spec = with_value(check, number, name, value)
    return spec if _refers(spec) else with_value(check, number, name, {"column": "gold"})


def _refers(check):
    try:
        verifier = load_verifier({"checks": [check]}, strict=True)
    except SpecError:
        return False
    return any(spec.check.traits.references for spec in verifier.nodes)


def pool(check, name):
    own = [_fields(check, example.params).get(_field(check, name)) for example in check.examples]
    return [value for value in own if value is not None]


def _check(rng, check, number, name, types):
    spec = {"type": check.type, **(check.examples[number].params or {})}
    if name is not None:
        spec = referring(check, number, name, _reference(rng, types))
    return spec | _around(rng, types, has_gold=name is not None)


def _path(rng, types, name):
    dtype, inner = types[name], [name]
    if pa.types.is_string(dtype):
        inner = [f"{name}.a", f"{name}[0]"]
    elif pa.types.is_struct(dtype):
        inner = [f"{name}.{field.name}" for field in dtype]
    elif pa.types.is_list(dtype):
        inner = [f"{name}[0]", f"{name}[-1]"]
    return name if rng.random() < 0.75 else rng.choice(inner)


def _reference(rng, types):
    gold, other = ({"column": _path(rng, types, name)} for name in ("gold", "other"))
    text = "{" + gold["column"] + "}"
    return rng.choice(
        (
            *(gold, gold, gold, gold | {"list": True}, [gold, "a"], [gold, other]),
            *({"template": text}, {"template": text + " {" + other["column"] + "}"}),
        )
    )


def _around(rng, types, *, has_gold):
    fields = {"id": "c"}
    gold, other, flag = (_path(rng, types, name) for name in NAMES)
    if rng.random() < 0.15:
        fields["on"] = rng.choice(
            (
                *(
                    [{"column": gold}],
                    [{"column": other}],
                    [{"column": other}, "number"],
                    [{"template": f"{{{gold}}}|{{{flag}}}"}],
                ),
                *(["prompt"], ["assistant"], ["toolCalls"], ["afterThink"], ["boxed"]),
            )
        )
    if has_gold and rng.random() < 0.15:
        fields["goldOn"] = [rng.choice(STEPS)]
    if rng.random() < 0.3:
        fields["missingGold"] = rng.choice(("fail", "pass"))
    if rng.random() < 0.1:
        fields["negate"] = True
    if rng.random() < 0.25:
        test = rng.choice(
            (
                *({"equals": value} for value in (True, 42, 1.5, "42", "a", "true")),
                *(
                    {"in": [True, 42, "a", None]},
                    {"exists": True},
                    {"exists": False},
                    {"matches": r"^\d+$"},
                    {"matches": "a|e"},
                ),
            )
        )
        fields["when"] = {"column": rng.choice((gold, other, flag))} | test
    return fields


def _text(value):
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _is_sheet(text):
    return text.strip() != "" and text.isprintable()


def _column(rng, values, size, kind):
    if kind == "numbers":
        return pa.array([_nullable(rng, rng.choice(WHOLE)) for _ in range(size)], pa.int64())
    picked = [rng.choice(values) for _ in range(size)]
    if kind != "typed" or rng.random() < 0.2:
        texts = [_text(value) for value in picked]
        return pa.array(
            [None if kind == "sheet" and not _is_sheet(text) else _nullable(rng, text) for text in texts], pa.string()
        )
    for choices in (picked, [value for value in values if type(value) is type(picked[0])], picked[:1]):
        try:
            array = pa.array([_nullable(rng, rng.choice(choices)) for _ in range(size)])
        except (pa.ArrowException, OverflowError):
            continue
        if _is_held(array.type):
            return array
    return pa.array([_text(value) for value in picked])


def _nullable(rng, value):
    return None if rng.random() < 0.15 else value


def _is_held(dtype):
    if pa.types.is_struct(dtype):
        return dtype.num_fields > 0 and all(_is_held(field.type) for field in dtype)
    return _is_held(dtype.value_type) if pa.types.is_list(dtype) else not pa.types.is_null(dtype)


def _completions(rng, check, golds, size, kind):
    hostile = list(hostile_texts(size, rng.randrange(1 << 30)))
    texts = [
        rng.choice(
            (
                *(rng.choice(check.examples).completion for _ in range(3)),
                rng.choice(ANSWERS).format(_text(gold)),
                *(_text(gold), hostile[number], rng.choice(ANSWERS).format(rng.choice(("42", "a", "Paris", "B")))),
            )
        )
        for number, gold in enumerate(golds)
    ]
    if kind == "sheet":
        texts = [text if _is_sheet(text) else "42" for text in texts]
    texts = [None if rng.random() < 0.05 else text for text in texts]
    if kind != "typed" or rng.random() < 0.75:
        return pa.array(texts, pa.string())
    return pa.array([None if text is None else _messages(rng, text) for text in texts])


def _messages(rng, text):
    call = {"function": {"name": rng.choice(("f", "weather")), "arguments": '{"x": 1, "city": "Oslo"}'}}
    message = {"role": "assistant", "content": text} | rng.choice(
        ({}, {}, {"tool_calls": [call]}, {"reasoning_content": "r"})
    )
    return rng.choice(
        ([message], [{"role": "user", "content": "42"}, message], [message, {"role": "tool", "content": None}])
    )


def _table(rng, check, values, kind):
    size = rng.choice((1, 2, 3, 5, 8))
    pools = {"gold": values * 3 if values and rng.random() < 0.7 else VALUES}
    columns = {name: _column(rng, pools.get(name, VALUES), size, kind) for name in NAMES}
    golds = columns["gold"].to_pylist()
    columns["completion"] = _completions(rng, check, golds, size, kind)
    prompts = [rng.choice(("a", "Where is it?", "42")) for _ in range(size)]
    is_chat = kind == "typed" and rng.random() < 0.5
    columns["prompt"] = pa.array([[{"role": "user", "content": text}] for text in prompts] if is_chat else prompts)
    examples = [rng.choice(check.examples) for _ in range(size)]
    for name in ("metadata", "expected_output_schema"):
        given = [getattr(example, name) for example in examples]
        if any(given):
            columns[name] = _structure(given, kind)
    for name in dict.fromkeys(name for example in examples for name in example.columns or {}):
        columns[name] = _structure([(example.columns or {}).get(name) for example in examples], kind)
    return pa.table(columns)


def _structure(values, kind):
    if kind == "typed":
        with contextlib.suppress(pa.ArrowInvalid):  # some are objects, and others lists
            array = pa.array(values)
            if _is_held(array.type):
                return array
    return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())


def _compares_texts(check):
    return check.golds.param != "" and not check.golds.is_json and not check.golds.measured


@dataclass(frozen=True)
class Case:
    """A check, a table of a kind with the values that it refers to, and formats to compare."""

    check: dict
    table: pa.Table
    kind: str
    formats: tuple

    @property
    def type(self):
        return self.check["type"]

    @property
    def spec(self):
        return {"id": "v", "checks": [self.check, {"id": "short", "type": "max_length", "value": 12}]}


def case(seed, number):
    rng = random.Random(f"{seed}/{number}")
    check = CHECKS[number % len(CHECKS)]
    kind = rng.choice([*FORMATS, "typed"])
    taken = references(check)
    if kind == "numbers" and not _compares_texts(check):
        kind = "typed"
    if kind == "numbers":
        taken = [(number, name) for number, name in taken if _field(check, name) == check.golds.param]
    example, name = rng.choice(taken) if taken and rng.random() < 0.85 else (rng.randrange(len(check.examples)), None)
    table = _table(rng, check, pool(check, name), kind)
    drawn = _check(rng, check, example, name, {field.name: field.type for field in table.schema})
    if kind == "numbers":
        drawn = {key: value for key, value in drawn.items() if key not in ("goldOn", "when")}
        drawn |= rng.choice(({}, {"when": {"column": "other"} | rng.choice(TESTS)}))
    return Case(drawn, table, kind, tuple(rng.sample(FORMATS[kind], 4)))


def plain(value):
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def rows_of(table):
    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _lines(rows, rng):
    escaped, is_sparse = rng.random() < 0.5, rng.random() < 0.5
    sparse = [row if number == 0 or not is_sparse else plain(row) for number, row in enumerate(rows)]
    return "".join(json.dumps(row, ensure_ascii=escaped) + "\n" for row in sparse)


def _encoded(table, rng):
    if rng.random() < 0.7:
        return table
    columns = {name: table[name] for name in table.column_names}
    return pa.table(
        {
            name: values.dictionary_encode() if pa.types.is_string(values.type) else values
            for name, values in columns.items()
        }
    )


def _cells(rows, rng, delimiter):
    out, always = io.StringIO(), rng.random() < 0.5

    def cell(value):
        if value is None:
            return ""
        text = str(value)
        is_bare = text != "" and text.isalnum() and not always
        return text if is_bare else '"' + text.replace('"', '""') + '"'

    for row in ([*rows[0]], *([*row.values()] for row in rows)):
        out.write(delimiter.join(map(cell, row)) + "\n")
    return out.getvalue()


def _write_sheet(rows, path):
    import openpyxl

    book = openpyxl.Workbook()
    for at, row in enumerate(([*rows[0]], *([*row.values()] for row in rows)), 1):
        for column, value in enumerate(row, 1):
            if value is not None:
                book.active.cell(at, column, value).data_type = "s"
    book.save(path)


def source(table, form, folder, rng):  # noqa: C901, PLR0912  (one format after another)
    rows, path, table = rows_of(table), folder / f"rows.{form}", _encoded(table, rng)
    match form:
        case "list":
            return rows
        case "columns":
            return {name: [row[name] for row in rows] for name in table.column_names}
        case "table":
            return table
        case "frame":
            return pl.from_arrow(table)
        case "parquet":
            pl.from_arrow(table).write_parquet(path)
        case "files":
            each = rng.choice((1, 2, 3))
            paths = [folder / f"rows-{start}.parquet" for start in range(0, table.num_rows, each)]
            for start, part in enumerate(paths):
                pq.write_table(table.slice(start * each, each), part)
            return paths
        case "row groups":
            pq.write_table(table, path := folder / "rows.parquet", row_group_size=2)
        case "ipc" | "stream":
            path = folder / "rows.arrow"
            with (pa.ipc.new_file if form == "ipc" else pa.ipc.new_stream)(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=3)
        case "jsonl":
            path.write_text(_lines(rows, rng), "utf-8", newline="")
        case "jsonl.gz":
            path.write_bytes(gzip.compress(_lines(rows, rng).encode()))
        case "json":
            path.write_text(json.dumps(rng.choice((rows, {"model": "m", "results": rows}))), "utf-8")
        case "csv" | "tsv" | "semicolons":
            delimiter, suffix = {"csv": (",", "csv"), "tsv": ("\t", "tsv"), "semicolons": (";", "csv")}[form]
            path = folder / f"rows.{suffix}"
            path.write_text(_cells(rows, rng, delimiter), "utf-8", newline="")
        case "xlsx":
            _write_sheet(rows, path)
    return path


class _Yaml(yaml.SafeDumper):
    """Writes texts in quotation marks: PyYAML leaves them out of some that are numbers in YAML 1.2, such as 1e5."""


_Yaml.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def tasks_of(table, form, folder, rng):
    keys = pa.array([f"t{number}" for number in range(table.num_rows)])
    own = [name for name in table.column_names if name in ("completion", "prompt")]
    rollouts = table.select(own).append_column("task_id", keys)
    tasks = table.drop_columns(own).append_column("task_id", keys)
    name = {"parquet tasks": "parquet", "JSONL tasks": "jsonl", "JSON tasks": "json", "CSV tasks": "csv"}.get(form)
    if name is None:
        path = folder / "tasks.yaml"
        path.write_text(yaml.dump(rows_of(tasks), Dumper=_Yaml, sort_keys=False), "utf-8")
        return rows_of(rollouts), path
    rows = source(rollouts, rng.choice(("list", "jsonl", "parquet")), folder, rng)
    (folder / "tasks").mkdir(exist_ok=True)
    return rows, source(tasks, name, folder / "tasks", rng)


def by_command(path, spec, folder):
    (folder / "v.json").write_text(json.dumps(spec), "utf-8")
    out = folder / "out.parquet"
    out.unlink(missing_ok=True)
    args = ["score", str(path), "--spec", str(folder / "v.json"), "--out", str(out), "--lenient"]
    done = CliRunner().invoke(app, args)
    if not out.exists():
        raise ColumnsError(done.output)
    return pl.read_parquet(out)


def results(frame):
    names = [
        name
        for name in frame.columns
        if name in ("reward", "passed", "feedback", "error") or name.startswith(("score/", "check/"))
    ]
    return [repr(row) for row in frame.select(sorted(names)).iter_rows(named=True)]


def scored(table, form, spec, folder, rng):
    try:
        if form == "command":
            path = source(table, rng.choice(("parquet", "jsonl", "json", "ipc")), folder, rng)
            return results(by_command(path, spec, folder))
        if form.endswith("tasks"):
            rows, tasks = tasks_of(table, form, folder, rng)
            return results(assay.score(rows, spec, tasks=tasks, keep=(), lenient=True))
        return results(assay.score(source(table, form, folder, rng), spec, keep=(), lenient=True))
    except AssayError as error:
        return [type(error).__name__]


def outcome(seed, number, folder):
    drawn = case(seed, number)
    verifier, rng = load_verifier(drawn.spec), random.Random(f"{seed}/{number} formats")
    expected = scored(drawn.table, "list", drawn.spec, folder, rng)
    for form in drawn.formats:
        with set_to(small_batch=rng.choice((0, 256))):
            given = scored(drawn.table, form, drawn.spec if form == "command" else verifier, folder, rng)
        if given != expected:
            pairs = zip(expected, given, strict=False)
            shown = "\n".join(f"list {mine}\n{form} {other}" for mine, other in pairs if mine != other)
            problem = f"{drawn.kind} {drawn.check}\n{drawn.table.schema}\n{rows_of(drawn.table)}\n{shown}"
            return drawn.type, problem
    kind = f"{drawn.type}: refused" if expected == ["ColumnsError"] else drawn.type
    return Counter({kind: 1, "compared": len(drawn.formats)}), ""
