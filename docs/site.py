"""Pages of the site that are kept outside docs/ (README.md is its front page), and the JSON Schema of specs; tables and charts for any screen."""

import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "index.md": "README.md",
    "samples.md": "specs/README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "assay.schema.json": "specs/assay.schema.json",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and the schema from outside."""
    for name, source in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Have links lead within the site, where the pages from outside are at its top, show the name of each file to write, and say where samples are."""
    for name, source in OUTSIDE.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(source)}", rf"](\1{name}", markdown)
    if re.search(r"^assay .*\bspecs/", markdown, re.MULTILINE) and "in a checkout" not in markdown:
        markdown = re.sub(
            r"\A(# .*\n)", r"\1\n*Commands that read `specs/` run in a checkout, which has these samples.*\n", markdown
        )
    markdown = re.sub(r"<!-- file: (\S+) -->\n+```(\w+)\n", r'```\2 title="\1"\n', markdown)
    return re.sub(r"\]\((?:\.\./)?docs/", "](", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Tell each cell the name of its column, which site.css shows where a table is too wide; put charts into the page, for its colours."""
    html = re.sub(r"<table>.*?</table>", lambda table: _with_columns(table[0]), html, flags=re.DOTALL)
    return re.sub(r'<img [^>]*src="[^"]*?([\w-]+)\.svg"[^>]*>', lambda image: _chart(image[1]), html)


def _chart(name: str) -> str:
    return next((ROOT / "docs").rglob(f"{name}.svg")).read_text("utf-8").replace("<svg ", '<svg class="chart" ', 1)


def _with_columns(table: str) -> str:
    names = [
        unescape(re.sub(r"<[^>]+>", "", head)) for head in re.findall(r"<th(?: [^>]*)?>(.*?)</th>", table, re.DOTALL)
    ]

    def row(match: re.Match[str]) -> str:
        each = iter(names)
        named = re.sub(r"<td\b", lambda _: f'<td data-column="{escape(next(each, ""))}"', match[0])
        return named.replace(r"\|", "|")  # Markdown keeps the backslash within code

    return re.sub(r"<tr>.*?</tr>", row, table, flags=re.DOTALL)
