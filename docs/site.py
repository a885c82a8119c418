"""Pages of the site that are kept outside docs/: README.md is its front page."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "index.md": "README.md",
    "samples.md": "specs/README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside."""
    for name, source in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Have links lead within the site: the pages from outside are at its top."""
    for name, source in OUTSIDE.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(source)}", rf"](\1{name}", markdown)
    return markdown.replace("](docs/", "](")
