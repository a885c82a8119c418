"""The page of a report in a real browser: it runs our script only, asks for nothing, and can be read, sorted by keys and printed."""

import unicodedata

import polars as pl
import pytest
from browser import CHROMIUM, Browser
from cases import ALPACA
from pdf import pages_of
from report_cases import hostile

import assay
from assay.insight.reports.page import MOST_BYTES

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]

WIDE, PHONE, A4 = 1200, 390, (688, 1017)
"""Widths of windows, and what the margins leave of a sheet, in CSS pixels."""

CHECKS = [
    {"id": "no-refusal", "type": "contains", "value": "I'm sorry", "negate": True, "weight": 3},
    {"id": "long-enough", "type": "min_length", "value": 400},
    {"id": "not-a-wall-of-text", "type": "max_length", "value": 4000},
    {"id": "has-a-list", "type": "regex", "pattern": r"(?m)^\s*(?:[-*]|\d+\.)\s", "weight": 2},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder):
    with Browser(folder / "profile") as browser:
        yield browser


@pytest.fixture(scope="module")
def alpaca(folder):
    """The report of real rollouts, with their texts and with steps."""
    if not ALPACA.exists():
        pytest.skip(f"the real rollouts are not there: {ALPACA}")
    rollouts = pl.read_parquet(ALPACA).gather_every(6).with_row_index("step").with_columns(pl.col("step") // 300)
    rollouts.write_parquet(folder / "rollouts.parquet")
    assay.score_file(
        folder / "rollouts.parquet", {"id": "helpfulness", "checks": CHECKS}, folder / "rewards.parquet", limit=3_000
    )
    return assay.report(folder / "rewards.parquet").html()


@pytest.fixture(scope="module")
def attacked():
    return assay.report(hostile()).html()


@pytest.fixture(scope="module", params=["alpaca", "attacked"])
def url(request, folder):
    """The address of the page."""
    html = request.getfixturevalue(request.param)
    assert len(html.encode()) <= MOST_BYTES
    file = folder / f"{request.param}.html"
    file.write_text(html, "utf-8")
    return file.as_uri()


@pytest.fixture
def page(browser, url):
    browser.show(WIDE)
    browser.open(url)
    return browser


def test_nothing_runs_but_our_script_and_nothing_is_asked_for(page, url):
    names = {name for name, _ in page.events}
    assert not names & {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
    assert "Page.javascriptDialogOpening" not in names
    asked = [params["request"]["url"] for name, params in page.events if name == "Network.requestWillBeSent"]
    assert asked == [url]
    assert page.evaluate("[document.scripts.length, document.styleSheets.length, document.forms.length]") == [1, 1, 0]


def test_the_policy_holds_for_what_would_come_in(page):
    page.events.clear()
    page.evaluate("""(() => {
      for (const [tag, has] of [["script", { textContent: "globalThis.ran = 1" }], ["img", { src: "http://127.0.0.1:9/x" }]])
        document.body.append(Object.assign(document.createElement(tag), has));
      document.body.insertAdjacentHTML("beforeend", '<img src="x" onerror="globalThis.ran = 2"><a id="l" href="javascript:ran = 3">');
      document.getElementById("l").click();
    })()""")
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert page.evaluate("typeof ran") == "undefined"
    refused = [params["entry"] for name, params in page.events if name == "Log.entryAdded"]
    assert len(refused) >= 5
    assert not [entry["text"] for entry in refused if "Content Security Policy" not in entry["text"]]
    assert not [params for name, params in page.events if name == "Network.responseReceived"]


CHARTS = """[...document.querySelectorAll("svg")].map((svg) => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((text) => text.getBoundingClientRect());
  return {
    rows: svg.closest("figure").querySelectorAll("table tbody tr").length,
    size: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a)),
    outside: texts.filter((_, at) => boxes[at].left < frame.left - 1 || boxes[at].right > frame.right + 1).map((text) => text.textContent),
  };
})"""


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_every_chart_has_its_table_and_its_text_can_be_read_on_any_screen(page, width):
    page.show(width)
    charts = page.evaluate(CHARTS)
    assert len(charts) >= 5
    for chart in charts:
        assert chart["rows"] > 0
        assert chart["size"] >= 9.5
        assert chart["outside"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # tables roll in their own frame


def test_a_table_has_room_on_a_wide_screen(page):
    hidden = "[...document.querySelectorAll('.wide')].map((frame) => frame.scrollWidth - frame.clientWidth)"
    assert max(page.evaluate(hidden)) == 0


CONTRASTS = """(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (element) => {
    const colour = element ? rgb(getComputedStyle(element).backgroundColor) : [255, 255, 255];
    return colour.length > 3 && colour[3] === 0 ? behind(element.parentElement) : colour;
  };
  const contrast = (element, colour) => {
    const [dark, bright] = [light(rgb(colour)), light(behind(element))].sort((a, b) => a - b);
    return [(bright + 0.05) / (dark + 0.05), element.tagName, element.textContent.slice(0, 40)];
  };
  const found = [];
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || !element.checkVisibility({ checkOpacity: true })) continue;
    const style = getComputedStyle(element);
    found.push(contrast(element, element.closest("svg") ? style.fill : style.color));
  }
  for (const button of document.querySelectorAll("th button")) found.push(contrast(button, getComputedStyle(button, "::after").color));
  return [found.length, light(behind(document.body)), found.sort((a, b) => a[0] - b[0]).slice(0, 3)];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_all_text_stands_out_in_the_light_in_the_dark_and_on_paper(page, scheme):
    page.show(media="print") if scheme == "print" else page.show(prefers_color_scheme=scheme)
    texts, behind, least = page.evaluate(CONTRASTS)
    assert texts > 500
    assert behind < 0.05 if scheme == "dark" else behind > 0.95
    assert least[0][0] >= 4.5, least


FOCUSED = """(() => {
  const head = document.activeElement.closest("th");
  if (!head) return null;
  const table = head.closest("table");
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.matches(".under"));
  return {
    sorted: [...table.tHead.rows[0].cells].map((cell) => cell.getAttribute("aria-sort")),
    at: head.cellIndex,
    cells: rows.map((row) => row.cells[head.cellIndex].dataset.v ?? row.cells[head.cellIndex].textContent),
    apart: [...table.querySelectorAll(".under")].filter((row) => row.parentElement.rows[0] === row).length,
    outline: getComputedStyle(document.activeElement).outlineStyle,
  };
})()"""


def test_tables_are_sorted_by_keys(page):
    presses = 0
    while (focused := page.evaluate(FOCUSED)) is None:
        page.press("Tab")
        presses += 1
        assert presses < 40
    assert focused["outline"] == "solid"
    before = sorted(focused["cells"])
    for key, order in (("Enter", "ascending"), (" ", "descending")):
        page.press(key)
        after = page.evaluate(FOCUSED)
        assert after["sorted"] == [order, *[None] * (len(after["sorted"]) - 1)]
        assert sorted(after["cells"]) == before
        rising = after["cells"] if order == "ascending" else after["cells"][::-1]
        assert page.evaluate(f"{rising}.every((text, at, all) => !at || all[at - 1].localeCompare(text) <= 0)")
        assert after["apart"] == 0
    assert after["cells"] != focused["cells"]
    for _ in range(3):
        page.press("Tab")
    page.press(" ")
    after = page.evaluate(FOCUSED)
    assert after["sorted"].index("ascending") == after["at"] == 3
    numbers = [float(cell) for cell in after["cells"]]
    assert numbers == sorted(numbers)


def test_details_open_by_keys(page):
    page.evaluate("document.querySelector('summary').focus()")
    page.press("Enter")
    assert page.evaluate("document.querySelector('details').open")


def test_without_the_script_nothing_is_missing(page, url):
    words = "document.body.textContent"
    with_script = page.evaluate(words)
    page("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(url)
        assert page.evaluate("document.querySelectorAll('button').length") == 0
        assert page.evaluate(words) == with_script
        page.press("Tab")
        page.evaluate("document.querySelector('summary').focus()")
        page.press("Enter")
        assert page.evaluate("document.querySelector('details').open")
        hidden = "[...document.querySelectorAll('main *')].filter((e) => !e.closest('details') && !e.checkVisibility())"
        assert page.evaluate(f"{hidden}.map((e) => e.tagName).filter((tag) => !/^(title|desc)$/.test(tag))") == []
    finally:
        page("Emulation.setScriptExecutionDisabled", value=False)


ROWS = """[...document.querySelectorAll("table")].map((table) => ({
  head: table.tHead.textContent,
  rows: [...table.tBodies].flatMap((body) => [...body.rows]).map((row) =>
    [...(row.matches(".under") ? row.querySelectorAll("summary, li") : [row])].map((part) => part.textContent)),
}))"""


def squashed(text):
    return unicodedata.normalize("NFKC", "".join(text.split()))


def test_it_prints_without_a_row_cut_and_with_headings_repeated(page):
    tables = page.evaluate(ROWS)
    sheets = [unicodedata.normalize("NFKC", text) for text in pages_of(page.pdf())]
    continued = 0
    for table in tables:
        head = squashed(table["head"])
        for parts in table["rows"]:
            whole = [sheet for sheet in sheets if all(squashed(part) in sheet for part in parts)]
            assert whole, parts
            assert any(head in sheet for sheet in whole), (table["head"], parts)
        continued += sum(head in sheet for sheet in sheets) > 1
    assert continued


def test_nothing_is_wider_or_higher_than_a_sheet(page):
    width, height = A4
    page.show(width, height, media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert max(page.evaluate("[...document.querySelectorAll('svg')].map((svg) => svg.clientHeight)")) <= height
