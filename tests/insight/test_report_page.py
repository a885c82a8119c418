"""The page of a report without a browser: nothing of the data runs, loads or hides, all can be read, and the module stays small."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from report_cases import hostile, page_data

import assay
from assay.insight.charts import svg
from assay.insight.reports.page import address, as_page, inert, policy, worth
from assay.writing.documents import escaped, fenced
from assay.writing.numbers import percent

REPORTS = Path(assay.__file__).parent / "insight" / "reports"
VOID = {"meta", "br", "input"}
LOADING = {"link", "img", "iframe", "object", "embed", "base", "form", "image", "use", "foreignobject"}
ADDRESSES = {"src", "srcset", "style", "action", "formaction", "background", "poster", "xlink:href", "ping"}


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


def text_of(node):
    return "".join(part if isinstance(part, str) else text_of(part) for part in node["parts"])


FINDING = {
    "kind": "outlier",
    "level": 1,
    "check": "refund",
    "model": "elm",
    "rows": 12,
    "title": "elm never passes refund",
    "text": 'read "<b>18</b> dollars.", expected "18"',
    "link": "#failed=refund&model=elm",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A four-check spec on rollouts of several models and steps, with a finding, compared with itself."""
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
    out = folder / "rewards.parquet"
    assay.score_file(folder / "rollouts.jsonl", {"id": "refunds", "checks": checks}, out)
    data = page_data(out, compare=assay.diff(out, out).as_json(), results=["a.parquet", "b.parquet"])
    data["overview"]["findings"] = [FINDING]
    return data


@pytest.fixture(scope="module")
def attacked():
    return page_data(hostile(100, 40, 100))


@pytest.fixture(scope="module", params=["plain", "attacked"])
def html(request):
    return as_page(request.getfixturevalue(request.param))


def test_nothing_but_our_module_can_run_and_nothing_is_loaded(html):
    page = Page(html)
    data, module = page.find("script")
    assert data["attrs"] == {"type": "application/json", "id": "data"}
    assert module["attrs"] == {"type": "module"}
    digest = base64.b64encode(hashlib.sha256(module["text"].encode()).digest()).decode()
    policies = [node["attrs"]["content"] for node in page.find("meta") if "http-equiv" in node["attrs"]]
    assert policies == [policy("file")]
    assert policy("file") == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )
    assert policy("server") == f"{policy('file')}; connect-src 'self'"
    (style,) = page.find("style")
    assert style["text"].strip() == (REPORTS / "page.css").read_text("utf-8").strip()
    assert not re.search(r"url\(|@import", style["text"])
    tags = {node["tag"] for node in page.all}
    assert not tags & LOADING
    for node in page.all:
        names = {name.lower() for name in node["attrs"]}
        assert not [name for name in names if name.startswith("on")], node
        assert not names & ADDRESSES
        assert node["attrs"].get("href", "#").startswith("#")


def test_the_policy_comes_before_anything_that_it_is_about(html):
    assert html.index("Content-Security-Policy") < min(map(html.index, ("<style", "<script", "<title")))


@pytest.mark.parametrize("text", ["</script><script>", "<!--", "a & b", "\u2028\u2029", "\x00\x1f", "\U0001f600é"])
def test_data_is_inert(text):
    made = inert({text: [text]})
    assert not set(made) & {*"<>&\u2028\u2029\x00\x1f"}
    assert json.loads(made) == {text: [text]}


def test_every_chart_has_a_title_and_a_description(html):
    page = Page(html)
    charts = page.find("svg")
    assert len(charts) >= 3
    idents = [node["attrs"]["id"] for node in page.all if "id" in node["attrs"]]
    assert len(idents) == len(set(idents))
    for chart in charts:
        title, description = page.find("title", chart)[0], page.find("desc", chart)[0]
        named = {"aria-labelledby": title["attrs"]["id"], "aria-describedby": description["attrs"]["id"]}
        assert named.items() <= chart["attrs"].items()
        assert chart["attrs"]["role"] == ("group" if page.find("a", chart) else "img")
        assert len(title["text"]) > 5
        assert len(description["text"]) > 10


def test_tables_say_what_their_rows_and_columns_are(html):
    page = Page(html)
    for table in page.find("table"):
        heads = page.find("th", page.find("thead", table)[0])
        assert {head["attrs"]["scope"] for head in heads} == {"col"}
        for row in (row for body in page.find("tbody", table) for row in page.find("tr", body)):
            cells = [cell for cell in row["children"] if cell["tag"] in ("td", "th")]
            assert sum(int(cell["attrs"].get("colspan", 1)) for cell in cells) == len(heads)
            assert len(cells) == 1 or cells[0]["attrs"]["scope"] == "row"


def test_what_cannot_be_seen_is_shown_as_escapes(attacked):
    html = as_page(attacked)
    page = Page(html)
    shown = "".join(text_of(node) for node in (*page.find("header"), *page.find("main"), *page.find("title")))
    assert not [char for char in set(shown) if not char.isprintable() and char not in "\n\xa0"]
    assert "\\x1b[31mred" in shown
    assert "\\u202egnp.exe\\u2066" in shown
    assert "{{ 7 * 7 }}{% raw %}" in shown


def test_all_that_is_known_can_be_read_without_the_module(plain):
    page = Page(as_page(plain))
    words = text_of(page.find("main")[0])
    for check in plain["overview"]["checks"]:
        for part in (check["name"], percent(check["pass_rate"]), *(reason["template"] for reason in check["reasons"])):
            assert part in words
    assert FINDING["title"] in words
    assert FINDING["text"] in words
    links = {node["attrs"]["href"] for node in page.find("a")}
    assert {FINDING["link"], "#bin=19", "#failed=polite&model=ash", "#model=fir", "#task=t3"} <= links
    rows = [text_of(node) for node in page.find("details") if text_of(node).strip().startswith("row ")]
    assert len(rows) == 20 + len(plain["compare"]["examples"])
    assert any("Never, by our policy" in row for row in rows)
    sections = {node["attrs"]["id"] for node in page.find("section")}
    assert sections == {f"view={name}" for name in ("overview", "rows", "checks", "compare", "provenance")}
    assert {link for link in links if link.startswith("#view=")} == {f"#{name}" for name in sections}


def test_a_column_in_which_nothing_is_known_is_left_out(plain):
    def headings(data):
        return {
            text_of(head) for table in Page(as_page(data)).find("thead") for head in table["children"][0]["children"]
        }

    assert {"Weight", "Effect", "Loss", "Separates"} <= headings(plain)
    bare = headings(page_data(pl.DataFrame({"reward": [0.0, 1.0], "passed": [False, True], "check/v/c": [0.0, 1.0]})))
    assert {"Check", "Pass", "Fails"} <= bare
    assert not bare & {"Variance", "Separates", "95 %"}


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame(schema={"reward": pl.Float64}),
        pl.DataFrame({"reward": [None, None]}, schema={"reward": pl.Float64}),
        pl.DataFrame({"reward": [None, 2e300, -3.0], "passed": [None, True, False]}),
        pl.DataFrame({"reward": [1.0], "model": pl.Series([None], dtype=pl.String), "check/v/c": [None]}),
    ],
)
def test_results_of_nothing_are_pages(frame):
    Page(as_page(page_data(frame)))


def test_an_overview_that_is_not_complete_is_a_page(plain):
    whole = plain["overview"]
    known = {"rows", "scored", "unscored", "mean", "passed", "pass_rate"}
    columns = {
        "name",
        "title",
        "role",
        "weight",
        "penalty",
        "group",
        "required",
        "effect",
        "rows",
        "failures",
        "pass_rate",
    }
    checks = [{name: check[name] for name in columns} | {"status": "ok", "reasons": []} for check in whole["checks"]]
    partial = whole | {"complete": False, "scanned": 100, "by": {}, "pairs": [], "checks": checks}
    partial["summary"] = {name: whole["summary"][name] for name in known}
    page = Page(as_page(plain | {"home": "server", "overview": partial, "rows": None}))
    assert "100 of 240 rows have been read" in text_of(page.find("main")[0])
    assert "3 models" in text_of(page.find("header")[0])


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"role": "weight", "weight": 3.0}, "× 3"),
        ({"role": "gate", "weight": None}, "gate"),
        ({"role": "penalty", "weight": None, "penalty": 0.1}, "penalty 0.1"),
        ({"role": "member", "weight": 0.5, "group": "style"}, "× 0.5 in style"),
        ({"role": None, "weight": None}, ""),
    ],
)
def test_what_a_check_is_worth(check, words):
    assert worth(check) == words


def test_addresses_hold_any_name():
    assert address(failed="a&b=c #1/é", model=None, rows=3) == "#failed=a%26b%3Dc%20%231%2F%C3%A9&rows=3"


def test_a_cell_has_the_colour_of_its_place_in_the_column(plain):
    page = Page(as_page(plain))
    (table,) = [node for node in page.find("table") if node["attrs"].get("class") == "heat"]
    cells = [node for node in page.find("td", table) if "heat" in node["attrs"]["class"]]
    rates = {text_of(cell): cell["attrs"]["class"] for cell in cells}
    assert rates["100 %"] == "n heat10"
    frame = pl.DataFrame({"reward": [0.0] * 4, "model": ["a", "a", "b", "b"], "check/v/c": [0.0, 0.0, 1.0, 0.0]})
    shown = as_page(page_data(frame))
    assert '<td class="n heat0 zero"><a href="#failed=c&amp;model=a">✗ 0 %</a>' in shown
    assert '<td class="n heat10"><a href="#failed=c&amp;model=b">50.0 %</a>' in shown


@pytest.mark.parametrize("most", [1, 3, 7, 19, 20, 99, 100, 3532, 10**7])
def test_axes_have_a_few_round_numbers(most):
    ticks = svg._ticks(most)
    assert 2 <= len(ticks) <= 6
    assert len({b - a for a, b in pairwise(ticks)}) == 1
    assert ticks[-1] <= most


def test_the_module_is_small_and_makes_no_markup():
    module = "".join((REPORTS / name).read_text("utf-8") for name in ("texts.js", "page.js"))
    assert len(module.encode()) <= 60_000
    words = r"innerHTML|outerHTML|insertAdjacent|eval\(|Function\(|document\.write|Storage|import\(|createContextual"
    assert not re.search(words, module)
    assert not re.search(r"\|\s*safe|autoescape", (REPORTS / "page.html.j2").read_text("utf-8"))


def test_only_charts_the_module_and_inert_data_are_marked_as_markup():
    marked = {path.name: path.read_text("utf-8").count("Markup(") for path in REPORTS.parent.rglob("*.py")}
    assert {name: times for name, times in marked.items() if times} == {"svg.py": 1, "page.py": 2}


@pytest.fixture(scope="module")
def markdowns():
    return [assay.report(hostile(*sizes)).markdown() for sizes in ((100, 40, 100), (10, 2, 10))]


def test_markdown_has_tables_whose_rows_have_as_many_cells_as_their_headings(markdowns):
    for found in markdowns:
        markdown = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", found)
        tables = re.findall(r"(?m)(?:^\|.*\|\n?)+", markdown)
        assert len(tables) >= 5
        for table in tables:
            cells = [len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")]
            assert len(set(cells)) == 1


def test_nothing_in_markdown_ends_a_fence_or_a_cell():
    assert fenced("a\n```\n````\n`````") == "``````text\na\n```\n````\n`````\n``````"
    assert fenced("a") == "```text\na\n```"
    assert escaped("a|b`c<d>[e](f)*_") == "a\\|b\\`c\\<d\\>\\[e\\](f)\\*\\_"


def test_a_text_of_many_lines_stays_in_its_fence(markdowns):
    lines = iter(markdowns[0].split("\n"))
    for line in lines:
        if fence := re.match(r"(`{3,})text$", line):
            for inside in lines:
                if inside == fence[1]:
                    break
                assert not inside.strip() or len(re.match("`*", inside)[0]) < len(fence[1])
        else:
            assert not line.startswith("# heading")
            assert "<script" not in line.replace("\\<", "")
