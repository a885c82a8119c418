"""The page in a real browser: it runs our module only, asks for nothing, and every state of it has an address, keys and a form on paper."""

import json
import queue
import re
import threading
import time
import unicodedata
from urllib.parse import quote

import pytest
from browser import CHROMIUM, Browser
from pdf import pages_of
from report_cases import EVIL, hostile, page_data
from waiting import PATIENCE

import assay
from assay.errors import printable
from assay.insight.reports.offline import page_in_file
from assay.insight.reports.page import REPORT_FILES, as_page
from assay.insight.results import open_result
from assay.insight.viewer.server import view
from assay.writing.numbers import count, number

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.xdist_group("chromium"),
]

WIDE, PHONE, A4 = 1300, 390, (688, 1017)
"""Widths of windows, and what the margins leave of a sheet, in CSS pixels."""

CHECKS = [
    {"id": "right", "type": "equals", "value": {"column": "answer"}, "on": [{"regex": "A: (.*)$"}], "weight": 3},
    {"id": "shows-work", "type": "contains", "value": "so"},
    {"id": "brief", "type": "max_length", "value": 45},
]
FINDING = {
    "level": 1,
    "rows": 60,
    "title": "elm never passes right",
    "text": "0 % of 60 rows",
    "link": "#failed=right&model=elm",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def browser(folder):
    with Browser(folder / "profile") as browser:
        yield browser


def _rows():
    for at in range(120):
        is_elm = at % 2
        text = f"\U0001f600\u202e so it is {at}{' and that is what we wanted to say' * (at % 10 == 0)}\nA: {at}{' dollars.' * is_elm}"
        key = {"task_id": f"t{at // 2}", "model": ["ash", "elm"][is_elm], "step": at // 12}
        yield key | {"completion": text, "answer": str(at)}


@pytest.fixture(scope="module")
def planted(folder):
    """Rollouts of two models, of which one always adds a unit; compared with themselves."""
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows()))
    result = folder / "rewards.parquet"
    assay.score_file(folder / "rollouts.jsonl", {"id": "planted", "checks": CHECKS}, result)
    data = page_data(
        result, limit=120, compare=assay.diff(result, result).as_json(), results=["a.parquet", "b.parquet"]
    )
    data["overview"]["findings"] = [FINDING]
    data["conditions"] = {"reward < 1": [*range(1, 120, 2)]}
    for row, card in data["cards"].items():
        read = card["text"].partition("A: ")[2]
        start = card["text"].index(read, card["text"].index("A: "))
        spans = [{"start": start, "end": len(card["text"]), "kind": "read"}]
        first = card["text"].index(row)
        spans += [{"start": first, "end": first + len(row), "kind": kind} for kind in ("matched", "gold")]
        expected = {"source": "completion", "read": read, "expected": [row], "near": "begins"}
        card["checks"][0]["evidence"] = expected | {"spans": spans}
        card["prompt"] = f"What is {row}?"
        card["same_task"] = [{"row": int(row) ^ 1, "key": {"model": "elm"}, "reward": 0.4, "state": "fail"}]
    return data


@pytest.fixture(scope="module")
def attacked():
    data = page_data(hostile(100, 40, 100))
    evil = {"source": EVIL[0], "read": EVIL[0], "expected": [EVIL[3], EVIL[4]], "near": EVIL[1]}
    for card in data["cards"].values():
        card["checks"][0]["evidence"] = evil | {"spans": [{"start": 0, "end": 9, "kind": "read"}]}
        card |= {
            "sources": {EVIL[0]: EVIL[4]},
            "messages": [{"role": EVIL[at], "content": EVIL[at]} for at in range(7)],
        }
        card |= {"gold": {EVIL[1]: EVIL[0]}, "same_task": [{"row": 1, "key": {"model": EVIL[0]}, "reward": 0.5}]}
    data["overview"]["findings"] = [FINDING | {"title": text, "text": text} for text in EVIL]
    return data | {"name": EVIL[0], "notes": list(EVIL), "results": list(EVIL)}


@pytest.fixture(scope="module")
def urls(folder, planted, attacked):
    """The addresses of the pages."""
    pages = {"planted": as_page(planted), "attacked": as_page(attacked)}
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, "utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.fixture
def page(browser, urls):
    browser.show(WIDE)
    browser.open(urls["planted"])
    until(browser, ROWS, 50)
    return browser


ROWS = "document.querySelectorAll('.list tbody tr').length"
HASH = "decodeURIComponent(location.hash)"
OPEN = "document.querySelector('.row h2').textContent"


def until(page, expression, value):
    """Wait until an expression has a value."""
    deadline = time.monotonic() + PATIENCE
    while (found := page.evaluate(expression)) != value:
        assert time.monotonic() < deadline, (expression, found, value)
        time.sleep(0.01)


def go(page, address):
    """Go to a state of the page."""
    page.evaluate(f"""new Promise((done) => {{
      addEventListener("hashchange", () => setTimeout(done), {{ once: true }});
      location.hash = {json.dumps(address)};
    }})""")


def text(page, selector):
    return page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.textContent).join(' | ')"
    )


def complaints(page):
    bad = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"}
    return [params for name, params in page.events if name in bad]


@pytest.mark.parametrize("name", ["planted", "attacked"])
def test_nothing_runs_but_our_module_and_nothing_is_asked_for(browser, urls, name):
    browser.open(urls[name])
    for address in (
        "#row=1",
        "#view=compare",
        "#failed=right&text=alert",
        f"#row=2&check={quote(EVIL[0])}%2Fc0",
        "#where=1",
    ):
        go(browser, address)
    assert complaints(browser) == []
    asked = [params["request"]["url"] for name, params in browser.events if name == "Network.requestWillBeSent"]
    assert asked == [urls[name]]
    assert browser.evaluate("[document.scripts.length, document.styleSheets.length, document.images.length]") == [
        2,
        1,
        0,
    ]


def test_hostile_texts_are_shown(browser, urls):
    browser.open(urls["attacked"])
    until(browser, OPEN + ".slice(0, 11)", "← rowsRow 0")
    assert text(browser, ".list [role=status]") == "60 rows, 1–50 shown · this file has 60 of 100 rows"
    shown = text(browser, ".row")
    for evil in EVIL:
        assert printable(evil, lines=True) in shown
    unseen = {char for char in text(browser, "main, header") if not char.isprintable()}
    assert unseen <= {"\n", "\xa0"}  # before %, in our own words


def test_the_policy_holds_for_what_would_come_in(page):
    page.events.clear()
    for sink in ("document.body.innerHTML = '<b>'", "document.body.insertAdjacentHTML('beforeend', '<b>')"):
        assert (
            page.evaluate(f"(() => {{ try {{ {sink}; return 'ran'; }} catch {{ return 'refused'; }} }})()") == "refused"
        )
    page.evaluate("document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:9/x' }))")
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    refused = [params["entry"]["text"] for name, params in page.events if name == "Log.entryAdded"]
    assert len(refused) >= 3
    assert all("Content Security Policy" in entry or "TrustedHTML" in entry for entry in refused)
    assert not [params for name, params in page.events if name == "Network.responseReceived"]


@pytest.mark.parametrize(
    ("address", "rows", "opened", "counts"),
    [
        ("#failed=right&model=elm", 50, 1, "60 rows, 1–50 shown"),
        ("#failed=right&model=elm&offset=50", 10, 101, "60 rows, 51–60 shown"),
        ("#failed=right&model=elm&offset=-5", 50, 1, "60 rows, 1–50 shown"),
        ("#failed=right&failed=brief", 0, None, "0 rows"),
        ("#passed=right&failed=brief", 12, 0, "12 rows, 1–12 shown"),
        ("#state=fail&sort=-row", 50, 119, "72 rows, 1–50 shown"),
        ("#rows=3,7", 2, 3, "2 rows, 1–2 shown"),
        ("#task=t3", 2, 6, "2 rows, 1–2 shown"),
        ("#step=9", 12, 108, "12 rows, 1–12 shown"),
        ("#bin=19", 48, 2, "48 rows, 1–48 shown"),
        ("#text=dollars.%20", 0, None, "0 rows"),
        ("#text=WHAT%20WE%20wanted", 12, 0, "12 rows, 1–12 shown"),
        ("#reason=" + quote("does not equal …"), 50, 1, "60 rows, 1–50 shown"),
        ("#where=reward%20%3E%200", 0, None, "0 rows; a condition needs `assay view`"),
        ("#where=reward%20%3C%201&model=elm", 50, 1, "60 rows, 1–50 shown"),
        ("#row=7&check=brief", 50, 7, "120 rows, 1–50 shown"),
        ("#row=500", 50, None, "120 rows, 1–50 shown"),
    ],
)
def test_every_state_has_an_address(page, address, rows, opened, counts):
    go(page, address)
    assert page.evaluate(ROWS) == rows
    assert text(page, ".list [role=status]") == counts
    shown = page.evaluate("document.querySelector('.row h2')?.textContent ?? null")
    assert (shown is None) if opened is None else f"Row {opened}" in shown
    assert page.evaluate("document.querySelector('.list [aria-current]')?.dataset.row ?? null") == (
        None if opened is None else str(opened)
    )


def test_a_finding_leads_to_its_rows_and_a_row_to_what_was_read(page):
    page.evaluate("document.querySelector('.finding a').click()")
    until(page, OPEN + ".includes('Row 1')", True)
    assert text(page, ".list .chip").split(" | ") == ["Worst", "fails right ×(remove)", "model = elm ×(remove)"]
    assert text(page, ".list tbody tr:first-child .diff") == "1not expected:  dollars. → 1"
    assert text(page, ".checks [aria-pressed=true]") == "✗fails right × 3"
    read = {"read": "1not expected:  dollars.  (begins with the gold)", "expected": "1", "reason": 'does not equal "1"'}
    assert (
        dict(zip(text(page, ".reading dt").split(" | "), text(page, ".reading dd").split(" | "), strict=True)) == read
    )
    assert text(page, ".row pre") == "What is 1? | \U0001f600\\u202e so it is 1\nA: 1 dollars."
    assert text(page, "pre mark.read") == "1 dollars."  # positions are code points, before anything is escaped
    assert text(page, "pre mark mark") == "1"
    page.evaluate("document.querySelector('[data-chip=\"failed=right\"]').click()")
    until(page, HASH, "#model=elm")
    page.evaluate("history.back()")
    until(page, HASH, "#failed=right&model=elm")
    until(page, ROWS, 50)
    go(page, "")
    until(page, "document.querySelector('nav [aria-current]').textContent", "Overview")


@pytest.mark.parametrize("selector", ["td.heat0 a", "svg a", ".trends ~ details", "#view\\\\=checks th a"])
def test_the_overview_leads_to_rows(page, selector):
    assert page.evaluate(f"document.querySelectorAll('{selector}').length") > 0


def test_marks_of_each_kind_have_their_own_underline_and_are_spoken(page):
    go(page, "#row=1&check=right")
    kinds = ["read", "matched", "gold", "excess", "offending"]
    styles = page.evaluate(f"""{kinds}.map((kind) => {{
      const mark = document.createElement("mark");
      mark.className = kind;
      document.querySelector("pre").append(mark);
      return getComputedStyle(mark).textDecorationStyle;
    }})""")
    assert len(set(styles)) == len(kinds)
    assert (
        page.evaluate("getComputedStyle(document.querySelector('mark.read[data-kind]'), '::before').content")
        == '" [read by the check: "'
    )


@pytest.mark.parametrize(
    ("keys", "address"),
    [
        (["ArrowRight"], "#row=1"),
        (["ArrowRight", "ArrowRight", "ArrowLeft"], "#row=1"),
        (["n", "n"], "#row=20&check=brief"),
        (["n", "n", "p"], "#row=10&check=brief"),
        (["2"], "#row=0&check=shows-work"),
        (["2", "ArrowRight", "1"], "#row=1&check=right"),
        (["ArrowRight", "Escape"], "#view=rows"),
    ],
)
def test_rows_and_checks_by_keys(page, keys, address):
    for key in keys:
        before = page.evaluate(HASH)
        page.press(key)
        until(page, f"{HASH} !== {json.dumps(before)}", True)
    until(page, HASH, address)


def test_a_key_turns_the_page_of_the_list(page):
    go(page, "#row=118&offset=100")
    page.press("ArrowRight")
    until(page, OPEN + ".includes('Row 119')", True)
    page.press("ArrowRight")
    until(page, "document.querySelector('[role=status]').textContent", "This is the last one.")
    go(page, "#offset=50&row=50")
    page.press("ArrowLeft")
    until(page, OPEN + ".includes('Row 49')", True)


def test_the_next_failing_row_is_found_on_the_next_page(page):
    go(page, "#row=40&check=brief")
    page.press("n")
    until(page, HASH, "#offset=50&check=brief")
    until(page, OPEN + ".includes('Row 50')", True)
    go(page, "#row=99&offset=50&check=right")
    page.press("n")
    until(page, OPEN + ".includes('Row 101')", True)
    until(page, "document.querySelector('.checks [aria-pressed=true]').textContent.includes('right')", True)


def test_search_and_help_by_keys(page):
    page.press("/")
    until(page, "document.activeElement.type", "search")
    for key in "t59":
        page.press(key)
    until(page, HASH, "#text=t59")
    until(page, ROWS, 2)
    page.press("Escape")
    until(page, "document.activeElement === document.body", True)
    page.press("?")
    until(page, "document.querySelector('dialog').open", True)
    page.press("Escape")
    until(page, "document.querySelector('dialog').open", False)


def test_all_that_can_be_pressed_is_reached_by_tab_and_its_focus_is_seen(page):
    seen = []
    for _ in range(30):
        page.press("Tab")
        seen.append(
            page.evaluate("[getComputedStyle(document.activeElement).outlineStyle, document.activeElement.tagName]")
        )
    assert {outline for outline, _ in seen} == {"solid"}
    assert {"A", "BUTTON", "SUMMARY"} <= {tag for _, tag in seen} | {"a"} | {"A"}


def test_tables_are_sorted(page):
    heads = "[...document.querySelectorAll('#view\\\\=checks table.sortable th button')]"
    for times, order in ((1, "ascending"), (2, "descending")):
        page.evaluate(f"{heads}.find((head) => head.textContent === 'Fails').click()")
        assert page.evaluate(f"{heads}.find((head) => head.textContent === 'Fails').parentElement.ariaSort") == order
        fails = page.evaluate(
            "[...document.querySelectorAll('#view\\\\=checks table tbody tr:first-child')].slice(0, 3).map((row) => Number(row.cells[5].dataset.v))"
        )
        assert fails == sorted(fails, reverse=times == 2)
    assert text(page, "#view\\=checks tbody:first-of-type .under summary").startswith("1 reason")


FORMS = [
    0,
    1,
    -1,
    0.5,
    0.0625,
    0.3125,
    -0.0005,
    0.0001,
    0.9999,
    1.0004,
    -0.9999,
    0.123456,
    1234.5678,
    3e8,
    1.5e9,
    -2e300,
    12,
    1e7,
    None,
]


def test_numbers_and_texts_have_the_forms_of_python(page):
    module = (REPORT_FILES / "texts.js").read_text("utf-8").replace("export ", "")

    def run(expression):
        return page.evaluate(f"(() => {{ {module}; return {expression}; }})()")

    assert run(f"{json.dumps(FORMS)}.map(number)") == [number(value) for value in FORMS]
    counts = [0, 1, 999, 5276, 9_999_999, 12_345_678, None]
    assert run(f"{json.dumps(counts)}.map(count)") == [count(value) for value in counts]
    texts = [*EVIL, "a\tb\r\n\u00a0\u2028é\U0001f600\U000e0001\ufeff"]
    assert run(f"{json.dumps(texts)}.map((text) => printable(text, true))") == [
        printable(item, lines=True) for item in texts
    ]
    assert run(f"{json.dumps(texts)}.map((text) => printable(text))") == [printable(item) for item in texts]
    assert run("[3, 4].map((size) => elided([...'abcde\U0001f600'.slice(0, size + 1)], 4))") == ["abcd", "ab…de"]
    assert run("cut('\U0001f600\U0001f600\U0001f600', 2)") == "\U0001f600\U0001f600… 1 more"


@pytest.mark.parametrize(
    ("read", "expected", "kept"),
    [
        ("18 dollars.", "18", [[0, 2, True], None]),
        ("x = 18", "18", [[4, 6, True], None]),
        ("1", "18", [None, [0, 1, True]]),
        ("800", "20", [[0, 2, False], [0, 1, False]]),
        ("\U0001f600a", "\U0001f600b", [[1, 2, False], [1, 2, False]]),
        ("", "18", [[0, 0, False], [0, 2, False]]),
    ],
)
def test_what_differs_between_two_texts(page, read, expected, kept):
    module = (REPORT_FILES / "texts.js").read_text("utf-8").replace("export ", "")
    call = f"difference({json.dumps(read)}, {json.dumps(expected)})"
    assert page.evaluate(f"(() => {{ {module}; const {{ keptA, keptB }} = {call}; return [keptA, keptB]; }})()") == kept


CONTRASTS = """(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const pre = document.querySelector(".row pre");
  for (const kind of ["read", "matched", "gold", "excess", "offending"]) {
    const mark = Object.assign(document.createElement("mark"), { className: kind, textContent: kind });
    pre.append(mark);
  }
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (element) => {
    const colour = element ? rgba(getComputedStyle(element).backgroundColor) : [255, 255, 255, 255];
    return colour[3] === 0 ? behind(element.parentElement) : colour;
  };
  const contrast = (element, colour) => {
    const [dark, bright] = [light(rgba(colour)), light(behind(element))].sort((a, b) => a - b);
    return [(bright + 0.05) / (dark + 0.05), element.tagName, element.className, element.textContent.slice(0, 40)];
  };
  const least = (all) => all.sort((a, b) => a[0] - b[0])[0];
  const texts = [];
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || !element.checkVisibility() || element.closest("script, title, .spoken, desc")) continue;
    const style = getComputedStyle(element);
    texts.push(contrast(element, element.closest("svg") ? style.fill : style.color));
  }
  const marks = [...document.querySelectorAll("mark, del, ins")].map((mark) => contrast(mark, getComputedStyle(mark).textDecorationColor));
  marks.push(...[...document.querySelectorAll("svg .bar, svg circle")].map((mark) => contrast(mark.ownerSVGElement, getComputedStyle(mark).fill)));
  marks.push(...[...document.querySelectorAll("svg .line")].map((mark) => contrast(mark.ownerSVGElement, getComputedStyle(mark).stroke)));
  marks.push(...[...document.querySelectorAll("button, select, input, .chip")].filter((e) => getComputedStyle(e).borderStyle === "solid" && e.checkVisibility()).map((e) => contrast(e.parentElement, getComputedStyle(e).borderColor)));
  return [texts.length, light(behind(document.body)), least(texts), marks.length, least(marks)];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_texts_and_marks_stand_out_in_the_light_in_the_dark_and_on_paper(page, scheme):
    page.show(WIDE, media="print") if scheme == "print" else page.show(WIDE, prefers_color_scheme=scheme)
    go(page, "#failed=right&row=1")
    texts, behind, least, marks, least_mark = page.evaluate(CONTRASTS)
    assert texts > 500
    assert behind < 0.05 if scheme == "dark" else behind > 0.95
    assert least[0] >= 4.5, least
    assert marks > 20
    assert least_mark[0] >= 3, least_mark


@pytest.mark.parametrize("name", ["planted", "attacked"])
@pytest.mark.parametrize("address", ["#view=overview", "#view=rows", "#row=1", "#view=compare"])
def test_nothing_is_wider_than_a_phone(browser, urls, name, address):
    browser.show(PHONE, 844)
    browser.open(urls[name])
    go(browser, address)
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
    outside = """[...document.querySelectorAll("svg")].flatMap((svg) => {
      const { left, right } = svg.getBoundingClientRect();
      const boxes = [...svg.querySelectorAll("text")].map((text) => [text.getBoundingClientRect(), text.textContent]);
      return boxes.filter(([box]) => box.left < left - 1 || box.right > right + 1).map(([, words]) => words);
    })"""
    assert browser.evaluate(outside) == []
    sizes = "[...document.querySelectorAll('svg text')].map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    assert min(browser.evaluate(sizes)) >= 9


def test_a_phone_shows_the_list_or_a_row(page):
    page.show(PHONE, 844)
    shown = "['.list', '.row'].map((name) => document.querySelector(name).checkVisibility())"
    go(page, "#view=rows")
    assert page.evaluate(shown) == [True, False]
    go(page, "#failed=right&row=1")
    assert page.evaluate(shown) == [False, True]
    page.evaluate("document.querySelector('.back').click()")
    until(page, HASH, "#failed=right")
    assert page.evaluate(shown) == [True, False]


def test_a_phone_shows_what_was_read_and_expected_without_scrolling_aside(page):
    page.show(PHONE, 844)
    go(page, "#failed=right")
    assert text(page, ".list tbody tr:first-child .diff") == "1not expected:  dollars. → 1"
    right = "Math.max(...[...document.querySelectorAll('.list td')].map((cell) => cell.getBoundingClientRect().right))"
    assert page.evaluate(right) <= PHONE
    assert page.evaluate(
        "document.querySelector('.list .scroll').scrollWidth <= document.querySelector('.list .scroll').clientWidth"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.list td.check'), '::before').content").startswith(
        '"right'
    )
    go(page, "#row=999")
    page.evaluate("document.querySelector('.back').click()")
    until(page, HASH, "#view=rows")


def test_a_comparison_leads_to_its_rows(browser, folder, planted):
    before, after = folder / "rewards.parquet", folder / "strict.parquet"
    strict = [CHECKS[0], {"id": "polite", "type": "contains", "value": "sorry"}, CHECKS[1]]
    assay.score_file(folder / "rollouts.jsonl", {"id": "strict", "checks": strict}, after)
    found, result = assay.diff(before, after), open_result(after)
    page = page_in_file(result, assay.report(after, examples=0).as_json(), compare=found.as_json(), results=["a", "b"])
    (folder / "compared.html").write_text(page, "utf-8")
    browser.show(WIDE)
    for link, rows in (
        ("#view\\\\=compare tbody th a[href*=rows]", len(found.signatures[0]["rows_after"])),
        ("#view\\\\=compare svg a", len(next(filter(None, found.delta_rows)))),
    ):
        browser.open((folder / "compared.html").as_uri())
        until(browser, ROWS, 50)
        browser.evaluate(
            f"document.querySelector('{link}').dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
        )
        until(browser, f"{HASH}.startsWith('#rows=')", True)
        until(browser, ROWS, min(rows, 50))
    assert complaints(browser) == []


def test_without_the_module_all_but_the_viewer_is_there(browser, urls):
    browser.show(WIDE)
    browser("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(urls["planted"])
        assert browser.evaluate("document.querySelectorAll('button, .work').length") == 0
        assert browser.evaluate("document.querySelectorAll('#view\\\\=rows details').length") == 20
        browser.evaluate("document.querySelector('#view\\\\=rows summary').focus()")
        browser.press("Enter")
        assert browser.evaluate("document.querySelector('#view\\\\=rows details').open")
        hidden = (
            "[...document.querySelectorAll('main *')].filter((e) => !e.closest('details, svg') && !e.checkVisibility())"
        )
        assert browser.evaluate(f"{hidden}.map((e) => e.tagName)") == []
        browser.evaluate("document.querySelector('nav a:last-of-type').click()")
        assert browser.evaluate("scrollY") > 0
    finally:
        browser("Emulation.setScriptExecutionDisabled", value=False)


TABLES = """[...document.querySelectorAll("table")].map((table) => {
  const words = (row) => {
    const copy = row.cloneNode(true);
    for (const spoken of copy.querySelectorAll(".spoken")) spoken.remove();
    return copy.textContent;
  };
  return [words(table.tHead), [...table.querySelectorAll("tbody tr:not(.under)")].map(words)];
})"""


@pytest.fixture(scope="module")
def served(planted, folder):
    """The address of the page from a server."""
    addresses = queue.Queue()
    call = {"sources": [folder / "rewards.parquet"] * 2, "tell": addresses.put}
    threading.Thread(target=view, kwargs=call, daemon=True).start()
    return addresses.get(timeout=PATIENCE)


def test_a_server_answers_the_same_addresses(browser, served):
    browser.show(WIDE)
    browser.open(served)
    until(browser, "[...document.querySelectorAll('nav a')].map((link) => link.textContent).includes('Compare')", True)
    until(browser, ROWS, 50)
    go(browser, "#failed=right&model=elm&row=3")
    until(browser, ROWS, 50)
    until(browser, "document.querySelector('pre mark.read')?.textContent", "3 dollars.")
    assert text(browser, ".list [role=status]") == "60 rows of 120, 1–50 shown"
    for address, rows in (("#where=reward%20%3E%200.9", 48), ("#text=t59", 2), ("#result=1&sort=-right&rows=1,2", 2)):
        go(browser, address)
        until(browser, ROWS, rows)
    assert complaints(browser) == []
    go(browser, "#where=nonsense")
    until(browser, ROWS, 0)
    assert "no column is called `nonsense`. A text stands in quotes: 'nonsense' Columns: " in text(
        browser, ".list [role=status]"
    )
    go(browser, "#text=t59")
    until(browser, ROWS, 2)
    until(browser, "document.querySelector('.list [role=status]').textContent", "2 rows of 120, 1–2 shown")
    go(browser, "#row=999")
    until(browser, "document.querySelector('.row').textContent.includes('row 999: ')", True)
    asked = {params["request"]["url"] for name, params in browser.events if name == "Network.requestWillBeSent"}
    assert len(asked) > 5
    assert all(url.startswith(served) for url in asked)


def added(page, name, value):
    """Choose a filter from the list of those that can be added."""
    page.evaluate(f"""(() => {{
      const list = document.querySelector("select");
      list.value = {json.dumps(json.dumps([name, value], separators=(",", ":")))};
      list.dispatchEvent(new Event("change"));
    }})()""")


def test_rows_are_filtered_by_steps_and_conditions(page, browser, served):
    added(page, "step", "3")
    until(page, ROWS, 12)
    added(page, "where", "reward < 1")
    until(page, ROWS, 6)
    assert page.evaluate(HASH) == "#step=3&where=reward < 1"
    browser.open(served)
    until(browser, ROWS, 50)
    added(browser, "where", None)
    assert browser.evaluate("document.activeElement.closest('dialog').open")
    for key in "step = 3":
        browser.press(key)
    browser.press("Enter")
    until(browser, ROWS, 12)
    assert browser.evaluate(HASH) == "#where=step = 3"
    assert browser.evaluate("document.querySelector('dialog[open]')") is None


def squashed(words):
    return unicodedata.normalize("NFKC", re.sub(r"\s", "", words))


def test_it_prints_without_a_row_cut_and_with_headings_repeated(page):
    go(page, "#failed=right&row=1&check=right")
    tables = page.evaluate(TABLES)
    sheets = [squashed(sheet) for sheet in pages_of(page.pdf())]
    assert len(tables) > 5
    assert any("Whatis1?" in sheet for sheet in sheets)
    continued = 0
    for head, rows in tables:
        for row in rows:
            whole = [sheet for sheet in sheets if squashed(row) in sheet]
            assert any(squashed(head) in sheet for sheet in whole), (head, row)
        continued += sum(squashed(head) in sheet for sheet in sheets) > 1
    assert continued


def test_nothing_is_wider_or_higher_than_a_sheet(page):
    width, height = A4
    page.show(width, height, media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert max(page.evaluate("[...document.querySelectorAll('svg')].map((svg) => svg.clientHeight)")) <= height
    assert page.evaluate(
        "[...document.querySelectorAll('svg *')].every((part) => part.closest('title, desc') || part.checkVisibility())"
    )
