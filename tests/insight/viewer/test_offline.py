"""A page in a file: which rows it has, how large it is, and what is left of long texts."""

import json
import random
import re

import polars as pl
import pytest
from cases import sized
from report_cases import hostile

import assay
from assay.insight import originals
from assay.insight.reports.index import Index
from assay.insight.reports.offline import cut_text, page_in_file, shortened
from assay.insight.results import open_result


def result_of(rows=400, size=200):
    draw = random.Random(0)
    frame = pl.DataFrame(
        {
            "task_id": [f"t{at % 50}" for at in range(rows)],
            "model": [draw.choice(["ash", "oak", "elm"]) for _ in range(rows)],
            "completion": [f"{at} " + "word " * (size // 5) for at in range(rows)],
            "prompt": [f"What is {at}?" for at in range(rows)],
            "reward": [draw.choice([0.0, 0.5, 1.0, None]) for _ in range(rows)],
            "check/v/a": [draw.choice([0.0, 1.0]) for _ in range(rows)],
            "check/v/b": [draw.choice([1.0] * 9 + [0.0]) for _ in range(rows)],
        }
    )
    return open_result(frame.with_columns(passed=pl.col("reward") == 1))


def page_of(result, there=(), **options):
    overview = assay.report(result, examples=0).as_json() | {"findings": list(there)}
    page = page_in_file(result, overview, **options)
    return page, json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_a_small_result_is_in_it_as_a_whole():
    result = result_of(60)
    _, data = page_of(result)
    assert data["home"] == "file"
    assert [row["row"] for row in data["rows"]["rows"]] == Index(result).scan().drawn(100)
    assert data["rows"]["total"] == len(data["cards"]) == 60
    assert {(card["prompt"], card["text"].split()[0]) for card in data["cards"].values()} == {
        (f"What is {at}?", str(at)) for at in range(60)
    }


@pytest.mark.parametrize("size", [100_000, 150_000, 400_000])
def test_it_has_as_many_rows_as_fit(size):
    result = result_of(3_000)
    page, data = page_of(result, max_size=size)
    assert 0.85 * size < len(page.encode()) <= size
    rows = [row["row"] for row in data["rows"]["rows"]]
    assert rows == Index(result).scan().drawn(len(rows))
    assert {*map(str, rows)} == {*data["cards"]}
    assert data["rows"]["total"] == 3_000


@pytest.mark.parametrize("prompts", [{}, {"prompt": "Count."}], ids=["no prompts", "prompts"])
def test_texts_of_rows_that_are_alike_are_read_at_once(tmp_path, monkeypatch, prompts):
    lines = [json.dumps({"completion": f"{at} " + "word " * 40} | prompts) for at in range(400)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), "utf-8")
    spec = {"id": "v", "checks": [{"id": "has", "type": "contains", "value": "4"}]}
    assay.score_file(tmp_path / "rows.jsonl", spec, tmp_path / "out.parquet", keep=[])
    report = assay.report(tmp_path / "out.parquet")
    looks = []
    opened = originals.open_rollouts
    monkeypatch.setattr(originals, "open_rollouts", lambda *asked: looks.append(asked) or opened(*asked))
    page = report.html(max_size=250_000)
    assert len(looks) == 1
    assert 60 < page.count('"same_task"') < 400  # one part of rows has more than there is room for


def test_a_size_that_is_too_small_leaves_the_overview():
    page, data = page_of(result_of(), max_size=1)
    assert (data["rows"]["rows"], data["cards"]) == ([], {})
    assert "<table" in page
    assert "leaves no room for rows" in page
    assert len(page.encode()) < 100_000


def wide(names, models, steps, mark=""):
    """A result of many checks, models, tasks, steps and lines of feedback."""
    draw = random.Random(1)
    rows = 10 * models
    columns = {
        "task_id": [f"t{at % 100}{mark}" for at in range(rows)],
        "model": [f"organisation/model-{at % models}{mark}" for at in range(rows)],
        "step": [at % steps for at in range(rows)],
        "reward": [draw.random() for _ in range(rows)],
        "feedback": [f"verifier/c0: {'because ' * 200}{mark}{at * 'x'}" for at in range(rows)],
        "completion": ["word " * 50] * rows,
    }
    checks = {
        f"check/verifier/c{at}{mark}": [float(draw.random() > at / names) for _ in range(rows)] for at in range(names)
    }
    return open_result(pl.DataFrame(columns | checks))


WIDE = {
    "hostile": (lambda: open_result(hostile(400, 300, 100)), True),
    "many checks": (lambda: wide(sized(320, 80), 60, 50), True),
    "many steps": (lambda: wide(20, 20, 300), True),
    "long names": (lambda: wide(sized(60, 20), 60, 10, "\U0001f600" * 3_000), False),
    "endless names": (lambda: wide(sized(10, 5), 30, 10, "漢<&" * 5_000), False),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in {"hostile", "many steps"} else ()) for name in WIDE],
)
def test_an_overview_leaves_room_for_rows_and_says_what_it_leaves_out(name):
    result, has_all = WIDE[name][0](), WIDE[name][1]
    overview = assay.report(result, examples=0).as_json()
    for size in sized((200_000, 2_000_000), (2_000_000,)):
        page = page_in_file(result, overview, max_size=size)
        assert len(page.encode()) <= size
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
        for row in data["rows"]["rows"]:
            assert (
                len(row["scores"]) == len(data["about"]["checks"][0]) == len(data["cards"][str(row["row"])]["checks"])
            )
    assert data["cards"]
    assert data["about"]["checks"][0]
    assert ("left out, for the page" not in page) == has_all


def test_an_overview_keeps_the_checks_whose_failures_cost_the_most():
    page, data = page_of(wide(320, 10, 5), max_size=300_000)
    shown = [int(check["name"].removeprefix("c")) for check in data["about"]["checks"][0]]
    assert 0 < len(shown) < 320
    assert shown == sorted(shown)
    assert min(shown) > 150
    assert f"{320 - len(shown)} checks" in re.search("left out, for the page[^<]+", page)[0]


def finding(**filters):
    names = ("kind", "level", "check", "model", "rows", "of", "effect", "cause", "numbers", "title", "text", "link")
    return dict.fromkeys(names, "") | {"level": 1, "rows": 1, "filter": filters}


def test_rows_of_findings_come_first():
    result = result_of()
    findings = [finding(failed=["b"], where=["model = 'oak'"]), finding(row=[399, 7]), finding(where=["no such"])]
    rows = [row["row"] for row in page_of(result, findings)[1]["rows"]["rows"]]
    frame = result.frame.with_row_index("row").filter((pl.col("check/v/b") == 0) & (pl.col("model") == "oak")).collect()
    assert {*rows[:5]} <= {*frame["row"]}
    assert len({*rows[:5]}) == 5
    assert {*rows[5:7]} == {7, 399}
    conditions = page_of(result, findings)[1]["conditions"]
    oak = result.frame.with_row_index("row").filter(pl.col("model") == "oak").collect()["row"].to_list()
    assert conditions == {"model = 'oak'": oak}
    assert len({*rows}) == len(rows) == 400
    assert page_of(result, findings, findings=1)[1]["rows"]["rows"][5]["row"] == Index(result).scan().drawn(1)[0]


def test_without_texts_it_has_none():
    page, data = page_of(result_of(20), text=False)
    assert "What is" not in page
    assert "word word" not in page
    assert {card["text"] for card in data["cards"].values()} == {None}


def test_hostile_texts_are_inert():
    page, data = page_of(open_result(hostile(200, 20, 100_000)))
    assert len(page.encode()) <= 2_000_000
    assert len(data["cards"]) == 200
    assert "<script>alert" not in page
    assert "</pre></style>" not in page


LONG = "".join(chr(0x4E00 + at % 20_000) for at in range(20_000))

CUTS = {
    "short": (LONG[:8_000], []),
    "long": (LONG, []),
    "one": (LONG, [(9_000, 9_010)]),
    "near": (LONG, [(9_000, 9_010), (9_300, 9_310)]),
    "wide": (LONG, [(5_000, 15_000)]),
    "whole": (LONG, [(0, 20_000)]),
    "at the ends": (LONG, [(1_990, 2_010), (17_999, 18_001), (19_999, 20_000)]),
    "overlapping": (LONG, [(9_000, 9_500), (9_100, 9_200), (2_100, 9_150)]),
}


@pytest.mark.parametrize("name", CUTS)
def test_long_texts_keep_their_ends_and_what_is_around_spans(name):
    text, spans = CUTS[name]
    cut, place = cut_text(text, [end for span in spans for end in span])
    assert (cut == text) == (len(text) <= 8_000)
    assert cut[:2_000] == text[:2_000]
    assert cut[-2_000:] == text[-2_000:]
    for start, end in spans:
        assert cut[place(start) : place(start) + 200][: end - start] == text[start : start + 200][: end - start]
        assert cut[max(0, place(end) - 200) : place(end)] == text[max(0, end - 200) : end]
        assert cut[place(start) : place(end)].startswith(text[start : min(end, start + 200)])
    left_out = [int(number.replace(",", "")) for number in re.findall("\n… ([0-9,]+) more …\n", cut)]
    assert sum(left_out) + len(re.sub("\n… [0-9,]+ more …\n", "", cut)) == len(text)


def test_spans_of_a_card_move_with_the_text_of_their_source():
    evidence = {
        "source": "completion",
        "read": LONG,
        "expected": [LONG],
        "near": None,
        "spans": [{"start": 9_000, "end": 9_010, "kind": "read"}],
    }
    other = evidence | {"source": "answer", "spans": [{"start": 15_000, "end": 15_001, "kind": "gold"}]}
    checks = [{"check": "a", "evidence": evidence}, {"check": "b", "evidence": other}, {"check": "c", "evidence": None}]
    card = {
        "row": 1,
        "checks": checks,
        "text": LONG,
        "sources": {"answer": LONG},
        "prompt": LONG,
        "messages": [{"role": "user", "content": LONG}],
    }
    less = shortened(card)
    for check, source in zip(less["checks"], [less["text"], less["sources"]["answer"]], strict=False):
        [span] = check["evidence"]["spans"]
        [full] = next(each for each in (evidence, other) if each["source"] == check["evidence"]["source"])["spans"]
        assert source[span["start"] : span["end"]] == LONG[full["start"] : full["end"]]
    assert len(less["prompt"]) == len(less["messages"][0]["content"]) == len(cut_text(LONG)[0]) < 4_100
    assert shortened({"row": 1, "checks": [], "text": None, "sources": {}}) == {
        "row": 1,
        "checks": [],
        "text": None,
        "sources": {},
    }
