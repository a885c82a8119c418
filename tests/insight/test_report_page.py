"""The page and the Markdown of a report: nothing of the data runs, loads or hides, all can be read, and it stays small."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from report_cases import hostile
from waiting import PATIENCE

import assay
from assay.insight.reports.page import MOST_BYTES, script_sha256
from assay.writing.documents import escaped, fenced
from assay.writing.numbers import percent

REPORTS = Path(assay.__file__).parent / "insight" / "reports"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page as a tree: each element has ``tag``, ``attrs``, ``children``, its own ``text`` and the ``parts`` of both."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.root = self.top = {"tag": "", "attrs": {}, "children": [], "text": "", "parts": [], "parent": None}
        self.all = []
        self.feed(html)
        self.close()
        assert self.top is self.root, self.top["tag"]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        node = {"tag": tag, "attrs": dict(attrs), "children": [], "text": "", "parts": [], "parent": self.top}
        self.top["children"].append(node)
        self.top["parts"].append(node)
        self.all.append(node)
        if tag not in VOID:
            self.top = node

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.top["tag"] == tag, f"</{tag}> ends <{self.top['tag']}>"
        self.top = self.top["parent"]

    def handle_data(self, data):
        self.top["text"] += data
        self.top["parts"].append(data)

    def find(self, tag, inside=None):
        nodes = self.all if inside is None else list(descendants(inside))
        return [node for node in nodes if node["tag"] == tag]


def descendants(node):
    for child in node["children"]:
        yield child
        yield from descendants(child)


def above(node, tag):
    while node is not None and node["tag"] != tag:
        node = node["parent"]
    return node


def text_of(node):
    return "".join(part if isinstance(part, str) else text_of(part) for part in node["parts"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The report of a four-check spec on rollouts of several models and steps."""
    folder = tmp_path_factory.mktemp("plain")
    texts = ["Sorry, a refund is on its way.", "No.", "refund", "A refund? Never, by our policy, and that is that."]
    rows = [
        {
            "task_id": f"t{at % 12}",
            "model": ["elm", "ash", "fir"][at % 3],
            "step": at % 8,
            "completion": texts[at * 5 % 7 % 4],
        }
        for at in range(240)
    ]
    checks = [
        {"id": "refund", "type": "contains", "value": "refund", "weight": 2},
        {"id": "polite", "type": "contains", "value": "Sorry"},
        {"id": "long", "type": "min_length", "value": 12},
        {"id": "short", "type": "max_length", "value": 1000},
    ]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assay.score_file(folder / "rollouts.jsonl", {"id": "refunds", "checks": checks}, folder / "rewards.parquet")
    return assay.report(folder / "rewards.parquet")


@pytest.fixture(scope="module")
def attacked():
    return assay.report(hostile())


@pytest.fixture(scope="module", params=["plain", "attacked"])
def html(request):
    return request.getfixturevalue(request.param).html()


def test_nothing_but_our_script_can_run_and_nothing_is_loaded(html):
    page = Page(html)
    (script,) = page.find("script")
    assert not script["attrs"]
    source = (REPORTS / "report.js").read_text("utf-8").removesuffix("\n")
    assert script["text"] == source
    digest = base64.b64encode(hashlib.sha256(script["text"].encode()).digest()).decode()
    assert digest == script_sha256()
    policies = [node["attrs"]["content"] for node in page.find("meta") if "http-equiv" in node["attrs"]]
    assert policies == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"]
    (style,) = page.find("style")
    assert style["text"].strip() == (REPORTS / "report.css").read_text("utf-8").strip()
    assert "url(" not in style["text"]
    assert "@import" not in style["text"]
    tags = {node["tag"] for node in page.all}
    assert not tags & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "input",
        "image",
        "use",
        "foreignobject",
    }
    for node in page.all:
        names = {name.lower() for name in node["attrs"]}
        assert not [name for name in names if name.startswith("on")], node
        assert not names & {
            "src",
            "srcset",
            "style",
            "action",
            "formaction",
            "background",
            "poster",
            "xlink:href",
            "ping",
        }
        assert node["attrs"].get("href", "#").startswith("#")


def test_the_policy_comes_before_anything_that_it_is_about(html):
    assert html.index("Content-Security-Policy") < min(
        html.index("<style"), html.index("<script"), html.index("<title")
    )


def test_every_chart_has_a_title_a_description_and_its_table(html):
    page = Page(html)
    charts = page.find("svg")
    assert len(charts) >= 3
    idents = [node["attrs"]["id"] for node in page.all if "id" in node["attrs"]]
    assert len(idents) == len(set(idents))
    for chart in charts:
        assert chart["attrs"]["role"] == "img"
        title, description = page.find("title", chart)[0], page.find("desc", chart)[0]
        assert chart["attrs"]["aria-labelledby"].split() == [title["attrs"]["id"], description["attrs"]["id"]]
        assert len(title["text"]) > 5
        assert len(description["text"]) > 20
        (table,) = page.find("table", above(chart, "figure"))
        assert len(page.find("tr", table)) > 1


def test_tables_say_what_their_rows_and_columns_are(html):
    page = Page(html)
    links = [node["attrs"]["href"][1:] for node in page.find("a")]
    assert set(links) <= {node["attrs"].get("id") for node in page.all}
    for table in page.find("table"):
        heads = page.find("th", page.find("thead", table)[0])
        assert {head["attrs"]["scope"] for head in heads} == {"col"}
        rows = [row for body in page.find("tbody", table) for row in page.find("tr", body)]
        for row in rows:
            cells = [cell for cell in row["children"] if cell["tag"] in ("td", "th")]
            assert sum(int(cell["attrs"].get("colspan", 1)) for cell in cells) == len(heads)
            assert len(cells) == 1 or cells[0]["attrs"]["scope"] == "row"


def test_a_column_in_which_nothing_is_known_is_left_out(plain):
    def headings(report):
        return {
            text_of(head) for table in Page(report.html()).find("thead") for head in table["children"][0]["children"]
        }

    known = headings(plain)
    assert {"Weight", "Variance", "Separates", "95 %"} <= known
    assert "Length" not in known
    bare = headings(
        assay.report(pl.DataFrame({"reward": [0.0, 1.0], "passed": [False, True], "check/v/c": [0.0, 1.0]}))
    )
    assert {"Check", "Pass", "Fails"} <= bare
    assert not bare & {"Weight", "Variance", "Separates", "Within", "95 %"}


def test_what_cannot_be_seen_is_shown_as_escapes(attacked):
    html = attacked.html()
    seen = text_of(Page(html).root) + attacked.markdown()
    assert not [char for char in set(seen) if not char.isprintable() and char != "\n"]
    assert "\\x1b[31mred" in html
    assert "\\u202egnp.exe\\u2066" in html
    assert "{{ 7 * 7 }}{% raw %}" in text_of(Page(html).root)


def test_the_page_is_small_and_says_what_it_leaves_out(attacked, plain):
    html = attacked.html()
    assert len(html.encode()) <= MOST_BYTES
    assert "the page is kept small" in html
    assert re.search(r"… [\d,]{6,} more", html)
    assert "first 300" not in html
    assert len(Page(html).find("table")) >= 5
    assert "the page is kept small" not in plain.html()
    assert len(plain.html()) < 60_000


@pytest.mark.parametrize(("checks", "size"), [(1, 500_000), (420, 10)])
def test_the_page_is_small_whatever_there_is_most_of(checks, size):
    html = assay.report(hostile(60, checks, size), examples=100).html()
    assert len(html.encode()) <= MOST_BYTES
    Page(html)


def test_all_that_is_known_of_a_check_can_be_read_without_the_script(plain):
    page = Page(plain.html())
    words = text_of(page.find("main")[0])
    for check in plain.checks:
        assert check["name"] in words
        assert percent(check["pass_rate"]) in words
        for reason in check["reasons"]:
            assert reason["template"] in words
    assert "Needs a look" in text_of(page.root)
    assert any(text_of(item).strip() == "▲ short never fails" for item in page.find("li"))
    assert len(page.find("details")) > 5  # native elements: they open without a script


def test_the_script_is_short_and_the_templates_have_no_marks_in_it():
    script = (REPORTS / "report.js").read_text("utf-8")
    assert len(script.encode()) <= 4_096
    assert not re.search(r"\{\{|\{%|\{#", script + (REPORTS / "report.css").read_text("utf-8"))
    assert "aria-sort" in script
    assert "beforeprint" in script
    assert not re.search(r"fetch|XMLHttp|import\(|innerHTML|eval|Function\(|document\.write|localStorage", script)
    assert not re.search(r"\|\s*safe|autoescape", (REPORTS / "report.html.j2").read_text("utf-8"))


def test_only_charts_are_marked_as_markup():
    marked = [path.name for path in REPORTS.glob("*.py") if "Markup(" in path.read_text("utf-8")]
    assert marked == ["svg.py"]


def colours(block):
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_what_the_standard_computes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_text_can_be_read_in_the_light_in_the_dark_and_on_paper():
    style = (REPORTS / "report.css").read_text("utf-8")
    blocks = [colours(block) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)]
    assert len(blocks) == 3
    for block in blocks:
        assert {*block} == {*blocks[0]}
        for name in ("text", "quiet", "mark", "good", "bad", "look"):
            assert contrast(block[name], block["page"]) >= 4.5, name
            assert contrast(block[name], block["panel"]) >= 4.5, name
        assert contrast(block["mark"], block["rest"]) >= 3
    rest = re.sub(r":root \{.*?\}", "", style, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(|hsl", rest)  # every colour is one of these
    assert "opacity" not in style


def test_it_prints_on_paper_with_headings_repeated_and_no_row_cut():
    style = (REPORTS / "report.css").read_text("utf-8")
    paper = style.partition("@media print")[2]
    assert "size: A4" in style
    assert "table-header-group" in paper
    assert re.search(r"tr,[^{]*\{ break-inside: avoid; \}", paper)


def test_markdown_has_tables_whose_rows_have_as_many_cells_as_their_headings(attacked, plain):
    for found in (attacked, plain):
        markdown = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", found.markdown())
        tables = re.findall(r"(?m)(?:^\|.*\|\n?)+", markdown)
        assert len(tables) >= 5
        for table in tables:
            cells = [len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")]
            assert len(set(cells)) == 1


def test_nothing_in_markdown_ends_a_fence_or_a_cell():
    assert fenced("a\n```\n````\n`````") == "``````text\na\n```\n````\n`````\n``````"
    assert fenced("a") == "```text\na\n```"
    assert escaped("a|b`c<d>[e](f)*_") == "a\\|b\\`c\\<d\\>\\[e\\](f)\\*\\_"


def test_a_text_of_many_lines_stays_in_its_fence(attacked):
    lines = iter(attacked.markdown().split("\n"))
    for line in lines:
        if fence := re.match(r"(`{3,})text$", line):
            for inside in lines:
                if inside == fence[1]:
                    break
                assert not inside.strip() or len(re.match("`*", inside)[0]) < len(fence[1])
        else:
            assert not line.startswith("# heading")
            assert "<script" not in line.replace("\\<", "")


NODE = shutil.which("node")

TABLES = """
class Cell {
  constructor(text, v) { Object.assign(this, { textContent: text, attrs: {}, dataset: v === undefined ? {} : { v }, childNodes: [text] }); }
  append() {}
  getAttribute(name) { return this.attrs[name] ?? null; }
  setAttribute(name, value) { this.attrs[name] = value; }
  removeAttribute(name) { delete this.attrs[name]; }
}
class Row {
  constructor([name, v]) { this.cells = [new Cell(name), new Cell(v, v)]; }
  querySelectorAll() { return this.cells; }
}
class Body {
  constructor(rows) { this.rows = rows; }
  append(row) { this.rows = [...this.rows.filter((other) => other !== row), row]; }
}
class Table {
  constructor(bodies) { this.tBodies = bodies; this.tHead = { rows: [{ cells: [new Cell("name"), new Cell("v")] }] }; }
  append(body) { this.tBodies = [...this.tBodies.filter((other) => other !== body), body]; }
  get shown() { return this.tBodies.flatMap((body) => body.rows.map((row) => row.cells[0].textContent)).join(""); }
}
const data = [["b", "2"], ["a", "10"], ["c", ""], ["d", "-1"]];
const tables = [new Table([new Body(data.map((row) => new Row(row)))]), new Table(data.map((row) => new Body([new Row(row)])))];
const clicks = [];
const closed = [{ open: false }, { open: false }];
const events = {};
globalThis.document = {
  querySelectorAll: (selector) => (selector === "table.sortable" ? tables : closed),
  createElement: () => ({ append() {}, addEventListener: (_, click) => clicks.push(click) }),
};
globalThis.addEventListener = (name, call) => { events[name] = call; };
"""

USE = """
for (const [at, table] of tables.entries()) {
  for (const column of [1, 1, 0]) {
    clicks[2 * at + column]();
    console.log(table.shown, ...table.tHead.rows[0].cells.map((cell) => cell.attrs["aria-sort"] ?? "-"));
  }
}
events.beforeprint();
console.log(closed.map((details) => details.open).join());
events.afterprint();
console.log(closed.map((details) => details.open).join());
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_script_sorts_by_number_with_what_is_missing_last_and_opens_details_for_print():
    script = (REPORTS / "report.js").read_text("utf-8")
    ran = subprocess.run(
        [NODE, "-e", TABLES + script + USE], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    of_a_table = ["dbac - ascending", "abdc - descending", "abcd ascending -"]
    assert ran.stdout.splitlines() == [*of_a_table, *of_a_table, "true,true", "false,false"]
