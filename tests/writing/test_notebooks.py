"""What notebooks show: small, on one line as text, and nothing of the data runs, whatever stands in it."""

import dataclasses
from html.parser import HTMLParser

import polars as pl
import pytest
from cases import sized

import assay
from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.notebooks import Displayed, notebook_html

HOSTILE = (
    "</td></style></pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m\ud800\x00&amp;'\"`|\n⟦é💥"
)
SPEC = {
    "id": "v",
    "checks": [
        {"id": "right", "type": "number", "value": 18, "weight": 2, "on": [{"after": "is"}]},
        {"id": "short", "type": "max_length", "value": 25},
    ],
}
ROWS = [
    {
        "task_id": f"t{at // 4}", "model": ("elm", "oak")[at % 2], "step": at // 8, "prompt": "How many?",
        "completion": ("The answer is 18", "It is 18 dollars, I think so", "no")[at % 3],
    }
    for at in range(48)
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """An answer of each type, whose texts come from a small run."""
    path = tmp_path_factory.mktemp("notebooks") / "rewards.parquet"
    rows = path.with_suffix(".jsonl")
    pl.DataFrame(ROWS).write_ndjson(rows)
    assay.score_file(rows, SPEC, path)
    stricter = SPEC | {"checks": [SPEC["checks"][0], {"id": "short", "type": "max_length", "value": 5}]}
    return {
        "Diff": assay.diff(SPEC, stricter, rollouts=rows),
        "Groups": assay.groups(path),
        "WhatIf": assay.whatif(path, weights={"right": 1}, rank="model"),
        "Audit": assay.audit(SPEC, rows),
        "Verification": assay.verify(path),
        "Cards": assay.show(path, limit=8),
        "Report": assay.report(path),
        "Evidence": assay.evidence({"completion": "It is 18 dollars"}, SPEC),
        "Summary": assay.summarize(path, by="model"),
        "Plan": assay.compile(SPEC, pl.DataFrame(ROWS).schema),
    }


TYPES = ("Diff", "Groups", "WhatIf", "Audit", "Verification", "Cards", "Report", "Evidence", "Summary", "Plan")
CHANGED = [name for name in TYPES if name not in ("Plan", "Groups")]
"""Answers that are nothing but texts and numbers."""
TAGS = {"div", "style", "ul", "li", "h2", "h3", "p", "code", "pre", "mark", "table", "thead", "tbody", "tr", "th", "td"}
DRAWN = {"svg", "title", "desc", "path", "rect", "circle", "text", "g"}
ATTRIBUTES = {"class", "scope", "colspan", "title"}


def with_texts(value, text, times=1):
    """The same answer, each text in it another, and each list so many times as long."""
    if isinstance(value, str):
        return text
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        kept = {name: fields[name] for name in ("state", "source") if name in fields}
        return dataclasses.replace(value, **with_texts(fields, text, times) | kept)
    if isinstance(value, dict):
        return {name: with_texts(item, text, 1 if name == "heat" else times) for name, item in value.items()}
    if isinstance(value, list | tuple) and not (value and isinstance(value[0], int | float | None)):
        return type(value)(with_texts(item, text) for item in value for _ in range(times))
    return value


class Reader(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attributes} if tag not in DRAWN else set()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_shown(answer):
    html = answer._repr_html_()
    assert len(html.encode()) <= 100_000
    reader = Reader(html)
    assert reader.tags <= TAGS | DRAWN, reader.tags
    assert reader.attributes <= ATTRIBUTES
    assert "\x1b" not in html
    assert "\u202e" not in html
    text = repr(answer)
    assert text.isprintable()
    assert len(text) < 500
    assert text.startswith(f"<{type(answer).__name__}: ")
    return html


@pytest.mark.parametrize("name", TYPES)
def test_an_answer_is_shown_with_its_document(answers, name):
    html = check_shown(answers[name])
    assert isinstance(answers[name], Displayed)
    assert ("<table>" in html) is (name != "Verification")
    assert html.count('class="assay-chart"') == {"Report": 3, "Diff": 1, "WhatIf": 1}.get(name, 0)
    assert answers[name].document().markdown()


@pytest.mark.parametrize("name", CHANGED)
def test_no_text_of_the_data_is_markup(answers, name):
    assert "script&gt;" in check_shown(with_texts(answers[name], HOSTILE))


@pytest.mark.parametrize("name", CHANGED)
def test_answers_of_any_size_are_small(answers, name):
    check_shown(with_texts(answers[name], "text " * 30, times=400))
    check_shown(with_texts(answers[name], "\u202e💥" * sized(100_000, 20_000)))


def test_names_of_specs_and_columns_are_data():
    name = "</td><script>alert(1)</script>\u202e"
    rows = [{"task_id": f"{name}{at // 4}", name: f"{name}{at % 2}", "reward": at % 3 / 2} for at in range(40)]
    assert "script&gt;" in check_shown(assay.groups(pl.DataFrame(rows), by=name))
    many = pl.DataFrame(
        [{"task_id": at // 4, "model": f"m{at % 4}{'-' * 900}{at}", "reward": 1.0} for at in range(300)]
    )
    check_shown(assay.groups(many))
    checks = [{"id": f"c{at}", "type": "contains", "value": {"column": f"{name}{at}"}} for at in range(3)]
    schema = {"completion": pl.String, **{f"{name}{at}": pl.String for at in range(3)}}
    check_shown(assay.compile({"id": "v", "checks": checks}, schema))
    many = [{"id": f"check-{at}", "type": "min_length", "value": at} for at in range(sized(3_000, 1_500))]
    assert "… " in check_shown(assay.compile({"id": "v", "checks": many}, {"completion": pl.String}))


def test_what_has_no_room_is_left_out_and_named():
    table = Table({"name": False, "n": True}, [["x" * 200, "1"]] * 5_000, "Rows")
    html = notebook_html(Document("d", [Lines(["first"]), table, Lines(["last"])]))
    assert "more</td></tr>" in html
    assert "last" in html
    wide = Table({f"{at}{'y' * 100}": False for at in range(2_000)}, [])
    assert notebook_html(Document("d", [Lines(["first"]), wide, Lines(["last"])])).endswith(
        "<p>… more: <code>document()</code></p>\n</div>"
    )


def test_marks_may_overlap_and_are_escaped():
    html = Document("d", [Quote("a <b> c", "", [(0, 4, "read"), (2, 5, "gold"), (6, 99, '"')])]).fragment()
    assert html == (
        '<pre><mark class="read" title="read">a </mark><mark class="read gold" title="read gold">&lt;b</mark>'
        '<mark class="gold" title="gold">&gt;</mark> <mark class="&quot;" title="&quot;">c</mark></pre>'
    )
