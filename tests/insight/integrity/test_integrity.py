"""Whether groups hold together: the worked cases, and drawn results against the definition row by row."""

import random

import naive_integrity
import polars as pl
import pytest
from cases import sized
from worked_cases import worked

import assay
from assay.insight.integrity import near
from assay.testing import hostile_texts

HOSTILE = tuple(hostile_texts(60))
WORDS = ("sum", "half", "梨", "the", "again", "so", "🙂", "é", "take\n", "\t", "é")
PROMPTS = ("How many?", " How  many?\n", "How\u2003many?", "Which one?", "", " \n\x1f", None, *HOSTILE[:8])
MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})


def told(table, keys):
    return {
        tuple(row[name] for name in keys): {n: v for n, v in row.items() if n not in keys} for row in table.to_dicts()
    }


def compare(groups, keys, expected, facts):
    table = told(groups.integrity, keys)
    assert table.keys() == expected.keys()
    for key, entry in expected.items():
        assert [*table[key]] == [*entry]
        for name, value in entry.items():
            same = value if not isinstance(value, float) else pytest.approx(value, abs=1e-12)
            assert table[key][name] == same, (key, name)
    assert {name: groups.facts["integrity"][name] for name in facts} == facts


def test_the_worked_cases():
    for case in worked("datasets", "groups"):
        options = {name: case[name] for name in ("group", "near", "size", "vote")}
        rows = pl.DataFrame(case["rows"], infer_schema_length=None)
        groups = assay.groups(rows, integrity=True, **options)
        keys = case["group"]
        expected = {tuple(row.pop(name) for name in keys): row for row in case["expected"]["table"]}
        compare(groups, keys, expected, case["expected"]["facts"])
        if options["vote"]:
            options["vote"] = None
        table, facts = naive_integrity.integrity(
            case["rows"], keys, **{k: v for k, v in options.items() if k != "group"}
        )
        compare(assay.groups(rows, integrity=True, **options), keys, table, facts)


def edited(draw, text):
    at = draw.randint(0, len(text))
    return text[:at] + draw.choice(("", "x", "é ", "half")) + text[at + draw.randint(0, 2) :]


def rows_of(draw, *, chat):
    texts = [" ".join(draw.choices(WORDS, k=draw.choice([1, 3, 30, 60]))) for _ in range(6)]
    texts += [draw.choice(texts) * 120 for _ in range(2)]  # longer than what is compared
    rows = []
    for _ in range(draw.choice([0, 1, 5, 40, 80, 150])):
        text = draw.choice(texts)
        text = draw.choice((text, edited(draw, text), edited(draw, text), draw.choice(HOSTILE), "", None))
        task = draw.choice([f"q-{number}" for number in range(5)] + [None])
        prompt = draw.choice(PROMPTS) if draw.random() < 0.1 else f"Question {task and min(task, 'q-3')}"
        reward = draw.choice([None, 0.0, 0.25, 1.0, 1.0, -0.5 if draw.random() < 0.1 else 0.5])
        value = prompt if not chat else None if prompt is None else [{"role": "user", "content": prompt}]
        if chat and value and draw.random() < 0.1:
            value = [{"role": draw.choice(("system", "user")), "content": draw.choice(("a", None))}, *value]
        answer = [
            {"role": "assistant", "content": text},
            *([{"role": "user", "content": "?"}] if draw.random() < 0.1 else []),
        ]
        rows.append(
            {
                "task_id": task,
                "model": draw.choice(("elm", "oak", None)),
                "step": draw.choice((1, 2)),
                "prompt": value,
                "instruction": draw.choice(("Do it.", None)),
                "answer": draw.choice((f"gold of {task}",) * 9 + (None, "other")),
                "target": draw.choice((1, 1, 1, 2, None)),
                "completion": text if not chat or text is None else answer,
                "said": draw.choice(("1", "2", None)),
                "reward": reward,
                "passed": reward is not None and reward >= 0.5,
            }
        )
    return rows


def frame_of(rows, *, chat):
    text = pl.List(MESSAGE) if chat else pl.String
    schema = {"task_id": pl.String, "model": pl.String, "step": pl.Int64, "prompt": text, "instruction": pl.String}
    schema |= {"answer": pl.String, "target": pl.Int64, "completion": text, "said": pl.String}
    return pl.DataFrame(rows, schema=schema | {"reward": pl.Float64, "passed": pl.Boolean})


@pytest.mark.parametrize("seed", range(sized(300, 12)))
def test_drawn_results_are_what_the_rows_say(seed, tmp_path, monkeypatch):
    draw, chat = random.Random(seed), seed % 3 == 0
    rows = rows_of(draw, chat=chat)
    frame = frame_of(rows, chat=chat)
    keys = draw.choice((["task_id"], ["task_id", "model"], ["task_id", "model", "step"]))
    options = {"near": draw.choice((0.95, 0.8, 0.5, 0.0, 1.0)), "size": draw.choice((None, None, 8))}
    options |= {"vote": draw.choice((None, "said")), "seed": seed}
    most = draw.choice((near.MOST_PAIRS, 200, 0))
    monkeypatch.setattr(near, "MOST_PAIRS", most)
    monkeypatch.setattr(near, "_PAIRS_AT_ONCE", draw.choice((1, 50, 1 << 21)))
    monkeypatch.setattr(near, "_OPEN", draw.choice((1, 1_000, 1 << 28)))
    result = frame
    if seed % 4 == 1:  # parts of a folder
        result = tmp_path / "parts"
        result.mkdir()
        for at in (0, 1, 2):
            frame[at * len(rows) // 3 : (at + 1) * len(rows) // 3].write_parquet(result / f"part-{at:05}.parquet")
    by = draw.choice(("none", None)) if rows else None
    groups = assay.groups(result, group=keys, by=by, integrity=True, **options)
    expected, facts = naive_integrity.integrity(rows, keys, most=most, **options)
    if rows and any(row["task_id"] for row in rows):
        compare(groups, keys, expected, facts)
    else:
        assert groups.integrity.height == facts["groups"] == 0
