"""Columns of all Arrow types in all places that take a reference, from all sources that have types, drawn by seed."""

import contextlib
import decimal
import json
import math
import os
import random
import traceback
import uuid
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fuzz_formats import all_references, with_value

import assay
from assay.expressions.readable import has_type, readable
from assay.expressions.shared_columns import exactly
from assay.scoring.reference import score_rows
from assay.thresholds import THRESHOLDS

D = decimal.Decimal
TEXTS = (
    "42", "a", "", "[1, 2]", '{"a": "42", "f": [1]}', "A", "true", "4.20", "é", "x y", "0", '["a", "42"]', "chars",
    "(", "{x",
)  # fmt: skip
WHOLE = (0, 1, 42, 3, 7)
FRACTIONS = (0.0, 1.5, 42.0, -0.0, math.nan, math.inf, 0.1, 1e22)
BYTES = (b"42", b"a", b"", b"\xff", "é".encode(), b'{"a": "42"}', b"\xed\xa0\x80", b"[1, 2]")
DECIMALS = tuple(map(D, ("1.00", "42.00", "-0.50", "0.00", "4.20")))
DAYS = (0, 18_000, -800_000, 2_932_896, 2_932_897, -719_162, -719_163, 10**7, 2**31 - 1, -(2**31))
INSTANTS = (0, 1, 10**9, 1_577_836_800, 2**40, 253_402_300_799, 253_402_300_800, -62_135_596_801, 2**62, -(2**63) + 1)
COMPLETIONS = (
    "42", "a", "It is 42.", "", "[1, 2]", '{"a": "42", "f": [1]}', "(B) \\boxed{42}", "1970-01-01", "true", "é",
)  # fmt: skip
NAMES = ("x", "x", "x", "^x$", "*", "^.*$", "a b", "é", "", "x.y", "^completion$", "a\nb", "answer", "target", "note")


def numbers(values):
    return lambda dtype: lambda chance, size: pa.array(picked(chance, values, size), dtype)


def picked(chance, values, size, null=0.2):
    return [None if chance.random() < null else chance.choice(values) for _ in range(size)]


def physical(values, dtype, storage):
    top = 2 ** (31 if storage == pa.int32() else 63) - 1

    def make(chance, size):
        chosen = picked(chance, [value for value in values if abs(value) <= top], size)
        return pa.array(chosen, storage).view(dtype)

    return make


def encoded(make):
    return lambda chance, size: make(chance, size).dictionary_encode()


def extension(dtype, values):
    return lambda chance, size: pa.ExtensionArray.from_storage(
        dtype, pa.array(picked(chance, values, size), dtype.storage_type)
    )


def union(mode):
    def make(chance, size):
        kinds = pa.array([chance.randrange(2) for _ in range(size)], pa.int8())
        children = [pa.array(chance.choices(TEXTS, k=size)), pa.array(chance.choices(WHOLE, k=size))]
        if mode == "sparse":
            return pa.UnionArray.from_sparse(kinds, children)
        return pa.UnionArray.from_dense(kinds, pa.array(range(size), pa.int32()), children)

    return make


def intervals(chance, size):
    return pa.array(picked(chance, [(1, 2, 3), (0, 0, 0)], size), pa.month_day_nano_interval())


class Unknown(pa.ExtensionType):
    """A type that nobody has registered."""

    def __init__(self):
        super().__init__(pa.string(), "fuzz.unknown")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        del storage, serialized
        return cls()


def leaves():
    made = {
        f"{sign}int{bits}": numbers(WHOLE)(getattr(pa, f"{sign}int{bits}")())
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }
    made["int64 large"] = numbers((2**53 + 1, -(2**63), 2**63 - 1))(pa.int64())
    made["uint64 large"] = numbers((2**64 - 1, 7))(pa.uint64())
    made |= {f"float{bits}": numbers(FRACTIONS[:-1])(getattr(pa, f"float{bits}")()) for bits in (16, 32, 64)}
    made["bool"] = numbers((True, False))(pa.bool_())
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 60)):
        made[f"decimal{bits}"] = numbers(DECIMALS)(getattr(pa, f"decimal{bits}")(digits, 2))
    made["decimal128 whole"] = numbers((D(42), D(0), D(10**20)))(pa.decimal128(38, 0))
    made["decimal256 long"] = numbers((D(10**50), D(42)))(pa.decimal256(60, 0))
    made["date32"] = physical(DAYS, pa.date32(), pa.int32())
    made["date64"] = physical([day * 86_400_000 for day in DAYS], pa.date64(), pa.int64())
    for unit in ("s", "ms"):
        made[f"time32 {unit}"] = physical((0, 1, 86_399, 2**30), pa.time32(unit), pa.int32())
    for unit in ("us", "ns"):
        made[f"time64 {unit}"] = physical((0, 1, 10**9, -1, 2**50), pa.time64(unit), pa.int64())
    for unit in ("s", "ms", "us", "ns"):
        times = [instant * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] for instant in INSTANTS]
        for zone in (None, "UTC", "Asia/Tokyo", "+05:30", "+02:00", "Mars/Base"):
            made[f"timestamp {unit} {zone}"] = physical(times, pa.timestamp(unit, zone), pa.int64())
        made[f"duration {unit}"] = physical(times, pa.duration(unit), pa.int64())
    made["interval"] = intervals
    for name in ("binary", "large_binary", "binary_view"):
        made[name] = numbers(BYTES)(getattr(pa, name)())
    made["binary text"] = numbers(tuple(text.encode() for text in TEXTS))(pa.binary())
    made["fixed binary"] = numbers((b"42", b"ab", b"\xff\x00"))(pa.binary(2))
    made["empty binary"] = numbers((b"",))(pa.binary(0))
    for name in ("string", "large_string", "string_view"):
        made[name] = numbers(TEXTS)(getattr(pa, name)())
    made |= {
        f"dictionary {name}": encoded(made[name])
        for name in ("string", "int64", "float64", "binary", "date32", "decimal128")
    }
    made["run-end string"] = lambda chance, size: pc.run_end_encode(pa.array(picked(chance, TEXTS, size)))
    made["run-end int"] = lambda chance, size: pc.run_end_encode(pa.array(picked(chance, WHOLE, size), pa.int64()))
    made |= {"union sparse": union("sparse"), "union dense": union("dense")}
    made["null"] = lambda _, size: pa.nulls(size)
    made["json"] = extension(pa.json_(), ('{"a": "42"}', "[1, 2]", "42", '"a"', "{"))
    made["uuid"] = extension(pa.uuid(), (uuid.UUID(int=1).bytes, b"\xff" * 16))
    made["bool8"] = extension(pa.bool8(), (0, 1))
    made["tensor"] = extension(pa.fixed_shape_tensor(pa.int32(), [2, 1]), ([1, 2], [4, 2]))
    made["opaque"] = extension(pa.opaque(pa.string(), "a", "b"), TEXTS)
    made["unknown"] = extension(Unknown(), TEXTS)
    return made


LEAVES = leaves()
NESTED = (
    "list", "large_list", "list_view", "fixed list", "empty list", "struct", "empty struct", "map", "map keys",
    "messages",
)  # fmt: skip


def nested(kind, inner, chance, size):  # noqa: PLR0911  (one kind after another)
    if kind == "empty list":
        return pa.array(picked(chance, [[]], size), pa.list_(pa.int64(), 0))
    if kind == "empty struct":
        return pa.array(picked(chance, [{}], size), pa.struct([]))
    if kind == "fixed list":
        return pa.FixedSizeListArray.from_arrays(inner(chance, 2 * size), 2)
    if kind == "struct":
        field = chance.choice(("f", "a", "role", "^f$", "*", "required", "expectations", "expected", "text"))
        mask = pa.array([chance.random() < 0.2 for _ in range(size)], pa.bool_())
        names = [field, "b"] if chance.random() < 0.5 else [field]
        return pa.StructArray.from_arrays([inner(chance, size) for _ in names], names, mask=mask)
    if kind == "messages":
        roles = pa.array(chance.choices(("user", "assistant"), k=size))
        messages = pa.StructArray.from_arrays([roles, inner(chance, size)], ["role", "content"])
        return pa.ListArray.from_arrays(pa.array(range(size + 1), pa.int32()), messages)
    counts = [chance.randrange(3) for _ in range(size)]
    starts = [sum(counts[:at]) for at in range(size + 1)]
    values = inner(chance, starts[-1])
    if kind in ("map", "map keys"):
        texts = pa.array([f"k{at}" for at in range(len(values))])
        keys = values if kind == "map keys" and not values.null_count else texts
        return pa.MapArray.from_arrays(pa.array(starts, pa.int32()), keys, values)
    if kind == "large_list":
        return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), values)
    if kind == "list_view":
        return pa.ListViewArray.from_arrays(pa.array(starts[:-1], pa.int32()), pa.array(counts, pa.int32()), values)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)


def column(chance, size, depth=2):
    name = chance.choice(list(LEAVES))
    make, title = LEAVES[name], name
    while depth and chance.random() < 0.4:
        kind, depth = chance.choice(NESTED), depth - 1
        make = lambda chance, size, kind=kind, inner=make: nested(kind, inner, chance, size)  # noqa: E731
        title = f"{kind} of {title}"
    return make(chance, size), title


@cache
def references_by_place():
    return {f"{check.type}.{name}": (check, number, name) for check, number, name in all_references()}


A = {"type": "contains", "value": "a"}
AROUND = {
    "on": lambda chance, ref: A | {"on": [ref, "strip"]},
    "on template": lambda chance, ref: A | {"on": {"template": f"<{{{ref['column']}}}>"}},
    "on number": lambda chance, ref: {"type": "number_range", "min": 2, "on": ref},
    "goldOn": lambda chance, ref: {"type": "equals", "value": ref, "goldOn": chance.choice(STEPS)},
    "template": lambda chance, ref: {"type": "equals", "value": {"template": f"{{{ref['column']}}}"}},
    "list text": lambda chance, ref: {"type": "equals", "value": {**ref, "list": True}},
    "when equals": lambda chance, ref: A | {"when": {**ref, "equals": chance.choice(("42", 42, True, 1.5))}},
    "when in": lambda chance, ref: A | {"when": {**ref, "in": ["42", 1, None, "a"]}},
    "when exists": lambda chance, ref: A | {"when": {**ref, "exists": chance.random() < 0.5}},
    "when matches": lambda chance, ref: A | {"when": {**ref, "matches": r"\d|a"}},
}
STEPS = (["number"], ["strip", "lower"], [{"json": {"path": "a"}}], [{"regex": r"\d+"}], ["boxed"])


def places():
    """Places of a check that take a reference."""
    return (*references_by_place(), *AROUND)


def check_at(chance, place, ref):
    if place in AROUND:
        return AROUND[place](chance, ref)
    return with_value(*references_by_place()[place], chance.choice((ref, ref, [ref, "a"])))


COLUMNS = (
    *("completion", "prompt", "metadata", "expected_output_schema", "instructions", "verifier", "flat", "unread"),
    *("error", "function", "tasks", "task_id", "reward"),
)
"""Places that are columns with names of Assay's own."""


def spec_of(chance, check):
    check = dict(check)
    if chance.random() < 0.2:
        check["negate"] = True
    if chance.random() < 0.2 and "when" not in check:
        check["missingGold"] = chance.choice(("fail", "pass"))
    combine = [{"type": "contains", "value": "4"}] if chance.random() < 0.3 else []
    return {"id": "v", "checks": [check, *combine]}


def case(seed, number):
    chance = random.Random(f"{seed} {number}")
    size = chance.choice((1, 2, 5, 5))
    values, title = column(chance, size)
    table = {"completion": pa.array(chance.choices(COMPLETIONS, k=size))}
    name, options = chance.choice(NAMES), {}
    if chance.random() < 0.3:
        place = chance.choice(COLUMNS)
        spec, table, options = placed(chance, place, table, values)
    else:
        place = chance.choice(places())
        check = check_at(chance, place, {"column": path_of(chance, name, values)})
        spec, table = spec_of(chance, check), table | {name: values}
    return pa.table(table), spec, options, f"{title} as {place} `{name}`"


def path_of(chance, name, values):
    path = name if name.isidentifier() else f"[{json.dumps(name)}]"
    if chance.random() < 0.3 and pa.types.is_nested(values.type):
        path += chance.choice((".f", "[0]", ".a", '["^f$"]', '["*"]', "[-1].content", ".k0"))
    return path


def placed(chance, place, table, values):  # noqa: PLR0911  (one place after another)
    size = len(values)
    plain = {"id": "v", "checks": [{"type": "contains", "value": "a"}]}
    if place in ("completion", "unread", "error", "reward"):
        return plain, table | {place: values}, {}
    if place == "prompt":
        return {"id": "v", "checks": [{"type": "contains", "value": "a", "on": "prompt"}]}, table | {place: values}, {}
    if place in ("metadata", "expected_output_schema"):
        kind = "task_expectations" if place == "metadata" else place
        return {"id": "v", "checks": [{"type": kind}]}, table | {place: values}, {}
    if place == "instructions":
        given = {
            "instruction_id_list": pa.array([["punctuation:no_comma"]] * size),
            "kwargs": pa.array([[{"n": 1}]] * size),
        }
        given[chance.choice(list(given))] = values
        return {"id": "v", "checks": [{"type": "ifeval"}]}, table | given, {}
    if place == "verifier":
        fn, fields = pa.array([chance.choice(("exact_match", "contains"))] * size), ["fn_name", "expected"]
        columns = [fn, values] if chance.random() < 0.7 else [values, fn]
        with contextlib.suppress(pa.ArrowException):
            values = pa.StructArray.from_arrays(columns, fields) if chance.random() < 0.8 else values
        return None, table | {place: values}, {}
    if place == "flat":
        flat = {
            "fn_name": pa.array(["exact_match"] * size),
            "expected": pa.array(["42"] * size),
            "params": pa.nulls(size),
        }
        flat[chance.choice(("expected", "expected", "fn_name", "params"))] = values
        return None, table | flat, {}
    if place == "function":
        return [takes], table | {"x": values, "answer": values}, {}
    gold = {"id": "v", "checks": [{"type": "equals", "value": {"column": "x"}}]}
    keys = pa.array([str(at) for at in range(size)])
    if place == "task_id":
        return plain, table | {"task_id": values}, {"tasks": pa.table({"task_id": values, "x": keys})}
    return gold, table | {"task_id": keys}, {"tasks": pa.table({"task_id": keys, "x": values})}


def takes(completion, x, answer):
    return float(str(x) == completion or answer is None)


def sourced(chance, table, folder):
    kind = chance.choice(("table", "table", "parquet", "arrow", "stream", "frame", "chunks"))
    path = folder / ("a.parquet" if kind == "parquet" else "a.arrow")
    try:
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=chance.choice((1, 100)))
        elif kind in ("arrow", "stream"):
            with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=chance.choice((1, 100)))
    except (pa.ArrowException, OSError, KeyError):
        return kind, None
    if kind == "frame":
        return kind, assay.scan(table).collect()
    if kind == "chunks":
        return kind, pa.concat_tables([table.slice(at, 1) for at in range(table.num_rows)])
    return kind, table if kind == "table" else path


def held(frame):
    columns = {name: readable(exactly(name), dtype, as_text=False) for name, dtype in frame.schema.items()}
    return frame.select(
        values.alias(name) if values.meta != exactly(name).meta else values for name, (values, _) in columns.items()
    )


def outcome(seed, number, folder):
    with silenced():
        kind, words = _ended(seed, number, folder)
    return kind, words if kind.startswith("wrong") else ""


def _ended(seed, number, folder):  # noqa: PLR0911  (one reason after another)
    chance = random.Random(f"{seed} {number} outcome")
    try:
        table, spec, options, title = case(seed, number)
    except (pa.ArrowException, NotImplementedError, ValueError) as error:
        return f"not made: {type(error).__name__}", f"{error}"
    source_kind = "?"
    try:
        source_kind, source = sourced(chance, table, folder)
        if source is None:
            return "not written", title
        verifier = assay.Rubric(spec) if isinstance(spec, list) else spec
        scored = assay.score(source, verifier, **options)
        found = differences(chance, source, verifier, options, scored)
    except assay.AssayError as error:
        if not error.fact or "engine stopped" in error.fact or "damaged" in error.fact:
            return "wrong: unkind", f"{title} from {source_kind}: {error}"
        return type(error).__name__, f"{title} from {source_kind}: {error.fact}"
    except BaseException as error:  # a panic of Polars is one
        if isinstance(error, KeyboardInterrupt):
            raise
        where = [line.strip() for line in traceback.format_exc().splitlines() if "/assay/" in line][-2:]
        return f"wrong: {type(error).__name__}", f"{title} from {source_kind}: {str(error)[:150]!r} {where}"
    if found:
        return "wrong: differs", f"{title} from {source_kind}: {found}"
    return "scored" if scored["reward"].null_count() == 0 else "unscored", title


RESULTS = ("reward", "passed", "feedback", "error")


def same(left, right):
    return repr(left) == repr(right)


def differences(chance, source, verifier, options, scored):  # noqa: C901, PLR0911  (one comparison after another)
    for row in scored.select(RESULTS).iter_rows(named=True):
        if row["reward"] is None and not row["error"]:
            return f"unscored without an error: {row}"
    frame = assay.scan(source).collect()
    if options or isinstance(verifier, assay.Rubric):
        return ""
    loaded = assay.load_verifier(verifier) if verifier is not None else None
    expected = score_rows(held(frame).to_dicts(), verifiers(loaded))
    own = scored.select(pl.col(name for name in scored.columns if name in expected[0]))
    for at, (row, other) in enumerate(zip(own.iter_rows(named=True), expected, strict=True)):
        for name in other:
            if name in row and not same(row[name], other[name]):
                return f"row {at}, {name}: columns {row[name]!r}, rows {other[name]!r}"
    at = chance.randrange(frame.height)
    alone = assay.score(frame[at : at + 1], verifier)
    if not same(alone.select(RESULTS).rows(), scored.select(RESULTS)[at : at + 1].rows()):
        return f"row {at} alone: {alone.select(RESULTS).rows()} {scored.select(RESULTS).rows()[at]}"
    times = THRESHOLDS.small_batch // frame.height + 2
    many = assay.score(pl.concat([frame] * times, rechunk=True), verifier)
    if not same(many.select(RESULTS)[: frame.height].rows(), scored.select(RESULTS).rows()):
        return f"{times} times: {many.select(RESULTS)[: frame.height].rows()} {scored.select(RESULTS).rows()}"
    kept = [name for name in frame.columns if name in scored.columns and name not in RESULTS]
    for name in kept:
        if is_compared(frame.schema[name]) and not scored[name].equals(frame[name], null_equal=True, check_dtypes=True):
            return f"`{name}` is changed in the output"
    return ""


def is_compared(dtype):
    return not has_type(dtype, (pl.BaseExtension, pl.Map, pl.Float16, pl.Float32, pl.Float64))


def verifiers(loaded):
    from assay.compiling.verifiers import verifiers_of_run
    from assay.options import ScoreOptions, settle

    return verifiers_of_run(loaded, settle(ScoreOptions, {}, "score"))


@contextlib.contextmanager
def silenced():
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
