"""Show what an insight command found: on a terminal, as JSON, or in a file as HTML, Markdown or JSON."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.tables import print_table
from assay.errors import UsageError, likely_ending, printable, shown_path
from assay.system.atomic_file import check_target, new_file
from assay.system.stdout import write_data
from assay.writing.documents import Document, Lines, Quote, Table

_ENDINGS = (".html", ".md", ".json")
_SHOWN = 400
"""Characters of a quoted text on a terminal."""


def check_out(out: str | None, *, overwrite: bool, others: tuple[str, ...] = ()) -> Path | None:
    """Check the output path before anything is read.

    Raises:
        UsageError: Its ending is unknown, or it exists.
    """
    if out is None:
        return None
    path, endings = Path(out), (*others, *_ENDINGS)
    if path.suffix.lower() not in endings:
        raise UsageError(
            f"--out {shown_path(out)}: expected a name that ends in {', '.join(endings)}.", likely_ending(out, endings)
        )
    check_target(path, overwrite=overwrite, how="--overwrite")
    return path


def deliver(console: Console, data: dict[str, Any], document: Document, *, out: Path | None, as_data: bool) -> None:
    """Write a file if asked for, and print JSON on standard output or the document on the console.

    Args:
        console: The console.
        data: The JSON data.
        document: The same for people.
        out: The file.
        as_data: Whether to print JSON.
    """
    as_json = json_text(data)
    if out is not None:
        suffix = out.suffix.lower()
        text = document.html() if suffix == ".html" else document.markdown() if suffix == ".md" else f"{as_json}\n"
        content = text.encode("utf-8", "backslashreplace")
        with new_file(out) as (file, guard), guard():
            file.write(content)
    if as_data:
        write_data(f"{as_json}\n")
    else:
        print_document(console, document)


def json_text(data: Any) -> str:
    """Return JSON on one line that can be read in any script; what a terminal would obey, or cannot print, is escaped."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for char in () if text.isprintable() else {*text}:
        if not char.isprintable():
            text = text.replace(char, json.dumps(char)[1:-1])
    return text


def print_document(console: Console, document: Document) -> None:
    """Print a document; control characters from data are escaped."""
    for at, block in enumerate(document.blocks):
        if at and (block.heading or isinstance(block, Table) or isinstance(document.blocks[at - 1], Table | Quote)):
            console.print()
        if block.heading:
            console.print(Text(printable(block.heading), "bold"), soft_wrap=True)
        if isinstance(block, Lines):
            for line in block.lines:
                console.print(Text(printable(line)), soft_wrap=True)
        elif isinstance(block, Quote):
            text = block.text if len(block.text) <= _SHOWN else f"{block.text[:_SHOWN]}…"
            console.print(
                Text("\n".join(f"  {line}" for line in printable(text, lines=True).split("\n"))), soft_wrap=True
            )
        else:
            print_table(console, block.columns, block.rows)
