"""Task tables and rollouts with ids of all types, in all formats, drawn by a seed: the task that each rollout must find is known."""

import csv
import datetime as dt
import decimal
import io
import json
import random
import sys

import polars as pl

import assay

SPEC = {"id": "v", "checks": [{"type": "task_expectations"}]}
WORDS = ["alpha", "beta", "gamma", "delta", "épsilon", "日本"]
# values of a type, each with the text by which it is found
IDS = {
    "int": (pl.Int64, [(0, "0"), (7, "7"), (-3, "-3"), (2**53 + 1, str(2**53 + 1)), (2**63 - 1, str(2**63 - 1))]),
    "small": (pl.Int8, [(0, "0"), (7, "7"), (-3, "-3")]),
    "unsigned": (pl.UInt64, [(0, "0"), (7, "7"), (2**64 - 1, str(2**64 - 1))]),
    "float": (pl.Float64, [(0.0, "0"), (7.0, "7"), (-3.0, "-3"), (0.5, "0.5"), (1.25, "1.25"), (2.0**53, str(2**53))]),
    "single": (pl.Float32, [(0.0, "0"), (7.0, "7"), (0.5, "0.5")]),
    "text": (
        pl.String,
        [(text, text) for text in ("0", "7", "-3", "0.5", "true", "a", "A", " a", "", "é", "7.0", "2026-01-02")],
    ),
    "category": (pl.Categorical, [(text, text) for text in ("0", "7", "a", "", "true")]),
    "choice": (pl.Enum(["7", "a", "b"]), [(text, text) for text in ("7", "a", "b")]),
    "bool": (pl.Boolean, [(True, "true"), (False, "false")]),
    "decimal": (pl.Decimal(10, 0), [(decimal.Decimal(7), "7"), (decimal.Decimal(0), "0"), (decimal.Decimal(-3), "-3")]),
    "day": (pl.Date, [(dt.date(2026, 1, 2), "2026-01-02"), (dt.date(1969, 12, 31), "1969-12-31")]),
    "nothing": (pl.Null, []),
    "struct": (pl.Struct({"a": pl.Int64}), [({"a": 7}, None), ({"a": 0}, None)]),
    "list": (pl.List(pl.Int64), [([7], None), ([], None)]),
    "bytes": (pl.Binary, [(b"7", "7"), (b"a", "a")]),
}
NO_IDS = ("struct", "list")
"""Types that are refused."""

CARRIES = {
    "memory": {*IDS}, "parquet": {*IDS}, "arrow": {*IDS} - {"bytes"},
    "jsonl": {"int", "small", "unsigned", "float", "text", "bool", "nothing", "struct", "list"},
    "csv": {"int", "small", "text", "bool", "decimal", "day"},
}  # fmt: skip
"""The types that a format gives back as they were, or as the text by which they are found."""


def drawn(chance, kind, count, *, null, apart=False):
    dtype, values = IDS[kind]
    if apart:
        values = chance.sample(values, len(values))
        chosen = [(None, None) if chance.random() < null else value for value in values[:count]]
    else:
        chosen = [(None, None) if not values or chance.random() < null else chance.choice(values) for _ in range(count)]
    return pl.Series("task_id", [value for value, _ in chosen], dtype=dtype), [text for _, text in chosen]


def written(frame, folder, name, form):
    path = folder / f"{name}.{form}"
    if form == "memory":
        return frame
    if form == "parquet":
        frame.write_parquet(path)
    elif form == "arrow":
        frame.write_ipc(path)
    elif form == "jsonl":
        lines = (json.dumps(row, ensure_ascii=len(name) % 2 == 0) + "\n" for row in frame.iter_rows(named=True))
        path.write_text("".join(lines), "utf-8")
    else:
        _write_csv(frame, path)
    return path


def _write_csv(frame, path):
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NOTNULL if sys.version_info >= (3, 12) else csv.QUOTE_ALL)
    writer.writerow(frame.columns)
    for row in frame.iter_rows():
        writer.writerow([str(value).lower() if isinstance(value, bool) else value for value in row])
    path.write_text(out.getvalue(), "utf-8", newline="")


def case(seed, number):
    chance = random.Random(f"{seed} {number}")
    usual = [kind for kind in IDS if kind not in NO_IDS]
    theirs, ours = (chance.choice([*NO_IDS] if chance.random() < 0.05 else usual) for _ in range(2))
    theirs = ours if chance.random() < 0.4 else theirs
    forms = [chance.choice([form for form in CARRIES if kind in CARRIES[form]]) for kind in (ours, theirs)]
    # a CSV has no nulls
    keys, texts = drawn(
        chance, theirs, chance.randint(1, 9), null=0 if forms[1] == "csv" else 0.1, apart=chance.random() < 0.9
    )
    own, wanted = drawn(chance, ours, chance.randint(1, 8), null=0 if forms[0] == "csv" else 0.2)
    words = [chance.choice(WORDS) for _ in texts]
    completions = [chance.choice(WORDS) + chance.choice(["", " said", "\n"]) for _ in wanted]
    tasks = pl.DataFrame(
        {"task_id": keys, "metadata": [json.dumps({"expectations": [{"anyOf": [word]}]}) for word in words]}
    )
    rollouts = pl.DataFrame({"completion": completions, "task_id": own})
    by_text = {text: word for text, word in zip(texts, words, strict=True) if text is not None}
    given = [text for text in texts if text is not None]
    # lines of nulls have no type
    typed = {
        kind for kind, form, ids in ((ours, forms[0], own), (theirs, forms[1], keys)) if form != "jsonl" or ids.count()
    }
    empty = forms[1] == "jsonl" and not texts
    if empty or len(by_text) < len(given) or not typed.isdisjoint(NO_IDS):
        return rollouts, tasks, forms, None
    rewards = [
        None if text not in by_text else float(by_text[text] in completion)
        for text, completion in zip(wanted, completions, strict=True)
    ]
    return rollouts, tasks, forms, rewards


def joined(seed, number, folder):
    rollouts, tasks, forms, rewards = case(seed, number)
    sources = [
        written(frame, folder, name, form) for frame, name, form in zip((rollouts, tasks), "rt", forms, strict=True)
    ]
    try:
        found = assay.score(sources[0], SPEC, tasks=sources[1])["reward"].to_list()
    except assay.AssayError as wrong:
        return "" if rewards is None else f"refused: {wrong}"
    return "" if found == rewards else f"{found}, not {rewards}"


def outcome(seed, number, folder):
    kind = "joined refused" if case(seed, number)[3] is None else "joined"
    return kind, joined(seed, number, folder)
