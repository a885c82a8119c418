"""The site, as `make docs` builds it: links lead somewhere, and a screen of 390 or 1400 pixels cuts no page, no table and no text."""

import functools
import http.server
import os
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from browser import CHROMIUM, Browser

SITE = Path(os.environ.get("ASSAY_SITE", "none"))
PAGES = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))

pytestmark = pytest.mark.skipif(not PAGES, reason="make docs builds the site, and names its folder in ASSAY_SITE")

# NOTE: what scrolls within itself (code, the contents of a page) is not cut; what sticks out of the window, or of a box that hides it, is.
CUT = """(async () => {
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.all(document.getAnimations().map(each => each.finished.catch(() => null)));
  const problems = [], name = node => node.tagName.toLowerCase() + ' ' + node.textContent.trim().replace(/\\s+/g, ' ').slice(0, 60);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) problems.push(`the page is ${page.scrollWidth} wide`);
  const scrolls = node => node.closest('pre, .highlight, .md-sidebar, .md-tabs, [hidden], .md-search, .headerlink');
  const bright = color => color.map(part => part / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  for (const node of document.querySelectorAll('article *')) {
    const box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!box.width || style.visibility === 'hidden' || style.opacity === '0' || node.closest('.headerlink, .md-clipboard, .md-code__button')) continue;
    if (!scrolls(node) && (box.right > page.clientWidth + 1 || box.left < -1)) problems.push(`sticks out: ${name(node)}`);
    if (node.matches('td, th, table, .md-typeset__table, .md-typeset__scrollwrap') && node.clientWidth && node.scrollWidth > node.clientWidth + 1)
      problems.push(`cut: ${name(node)}`);
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const before = node.closest('svg') && node.previousElementSibling, around = before && before.getBoundingClientRect();
    const filled = before && before.matches('rect') && around.left <= box.left && box.right <= around.right && getComputedStyle(before).fill;
    let ground = node, below = filled && filled !== 'none' ? parts(filled).slice(0, 3) : null;
    while (ground && !below) {
      const [r, g, b, alpha = 1] = parts(getComputedStyle(ground).backgroundColor);
      if (alpha > 0.5) below = [r, g, b];
      ground = ground.parentElement;
    }
    const [one, other] = [parts(node.closest('svg') ? style.fill : style.color).slice(0, 3), below || [255, 255, 255]].map(bright).sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 2) problems.push(`hardly visible: ${name(node)}`);
  }
  return [...new Set(problems)];
})()"""


class _Links(HTMLParser):
    """The anchors of a page, and where its links lead."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


def test_every_link_leads_somewhere():
    pages = {page: _Links((SITE / page).read_text("utf-8")) for page in PAGES}
    broken, count = [], 0
    for page, parsed in pages.items():
        if page == "404.html":  # its links begin at the top of wherever the site is
            continue
        for link in parsed.links:
            target = urlsplit(urljoin(f"http://site/{page}", link))
            if target.netloc != "site" or target.scheme != "http":
                continue
            count += 1
            path = unquote(target.path).lstrip("/")
            path += "index.html" if not path or path.endswith("/") else ""
            if not (SITE / path).is_file():
                broken.append(f"{page}: {link}")
            elif target.fragment and path in pages and unquote(target.fragment) not in pages[path].ids | {"__search"}:
                broken.append(f"{page}: {link}: no such place")
    assert not broken, "\n".join(broken)
    assert count > 10 * len(pages)


@pytest.fixture(scope="module")
def address():
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


SCHEME = "document.body.dataset.mdColorScheme"


@pytest.mark.parametrize(("preferred", "scheme"), [("light", "default"), ("dark", "slate")])
def test_the_site_is_as_light_or_dark_as_its_reader_prefers(preferred, scheme, address, browser):
    browser.show(prefers_color_scheme=preferred)
    browser.open(address)
    browser.evaluate("localStorage.clear()")  # it has what an earlier visit chose
    browser.open(address)
    assert browser.evaluate(SCHEME) == scheme


def test_no_screen_cuts_a_page(address, browser):
    cut = []
    for page in PAGES:
        browser.open(f"{address}/{page}")
        for width in (1400, 390):
            browser.show(width=width)
            for scheme in ("default", "slate"):
                browser.evaluate(f"{SCHEME} = '{scheme}'")
                cut += [f"{page}, {width}, {scheme}: {problem}" for problem in browser.evaluate(CUT)]
    assert not cut, "\n".join(cut)
