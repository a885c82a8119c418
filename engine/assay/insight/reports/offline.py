"""A page in a file: an overview with as many rows as fit, those of its findings first."""

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import AssayError
from assay.insight.reports.document import title
from assay.insight.reports.fitting import fitted
from assay.insight.reports.index import Index
from assay.insight.reports.page import as_page, inert
from assay.insight.reports.rows import Data, cards_data, line_of
from assay.insight.reports.showing import chosen_rows, condition
from assay.insight.results import ROW, Result
from assay.names import COMPLETION

_OF_FINDING = 5
"""How many rows of each finding, kind of flip and difference come first."""

_MOST_ROWS, _AT_FIRST = 5_000, 60
"""Rows that a page has at most, and those that are read at first; more, where texts are short."""

_LONG, _ENDS, _AROUND = 8_000, 2_000, 200
"""Code points of a text that is cut, of each of its ends that are kept, and of what is kept around the ends of a span."""


def page_data(
    home: str, results: Sequence[str], overview: Data, compare: Data | None = None, *, result: int = 0
) -> Data:
    """Return the data of a page without rows, with the overview of one of the ``results``: the one at the place ``result``."""
    name = title(overview) if len(results) == 1 else f"{results[0]} → {results[result or 1]}"
    data: Data = {"home": home, "name": name, "notes": [], "results": [*results], "result": result}
    return data | {"overview": overview, "compare": compare, "side_by_side": []}


def page_in_file(
    result: Result,
    overview: Data,
    *,
    rollouts: Any = None,
    text: bool = True,
    max_size: int = 2_000_000,
    findings: int = 8,
    results: Sequence[str] = (),
    compare: Data | None = None,
) -> str:
    """Return a page of at most ``max_size`` bytes, as far as a page with nothing in its lists is not larger.

    Args:
        result: The result.
        overview: Its report as JSON data.
        rollouts: The rollouts that were scored.
        text: Whether the page has texts of rollouts.
        max_size: The most bytes.
        findings: How many findings are shown.
        results: Names of the results, if two are compared.
        compare: Their difference as JSON data.
    """
    index = Index(result).scan()
    shown = overview.get("findings", [])[:findings]
    overview = _shortened(overview | {"heat": index.heat(), "findings": shown})
    data = page_data("file", results or [result.name], overview, _shortened(compare))
    lines: list[Data] = []
    data, checks, size = fitted(data | {"rows": {"total": index.frame.height, "rows": lines}, "cards": {}}, max_size)
    left = room = max_size - size
    first = [*_rows_of(result, shown), *_rows_compared(compare or {})]
    rows = deque(dict.fromkeys([*first, *index.drawn(_MOST_ROWS)]))
    at_once = max(_AT_FIRST, room // _text_size(overview))
    while rows and left > 0:
        part = [rows.popleft() for _ in range(min(at_once, len(rows)))]
        for card in _cards(index, part, rollouts, data["notes"], text=text):
            card["checks"] = [_known(card["checks"][at]) for at in checks]
            line = line_of(card)
            left -= len(inert(card).encode()) + len(inert(line).encode())
            if left < 0:
                break
            lines.append(line)
            data["cards"][str(card["row"])] = card
        # some more than fit if they are like those before: a further part would be a further look at the inputs
        at_once = 1 + 5 * left * len(lines) // (4 * (room - left))
    data["conditions"] = dict(_conditions(result, shown, [line["row"] for line in lines]))
    if index.frame.height and not lines:
        data["notes"].append("the overview leaves no room for rows: --max-size makes some")
    while len((page := as_page(data)).encode()) > max_size and lines:  # some rows are there without the script, too
        for line in (lines.pop() for _ in range(1 + len(lines) // 20)):
            del data["cards"][str(line["row"])]
    return page


def _text_size(overview: Data) -> int:
    """Return the bytes that a text takes in a page at least, by the examples; more than there are if it has none."""
    examples = [example for kind in overview.get("examples", {}).values() for example in kind]
    sizes = [len(cut_text(text)[0].encode()) for example in examples if (text := example.get("text"))]
    return 1 + sum(sizes) // len(sizes) if sizes else sys.maxsize


def _known(verdict: Data) -> Data:
    """Return a verdict without what is not known of it, which is most of a page of many checks."""
    return {name: value for name, value in verdict.items() if value not in ("", None) or name in ("score", "passes")}


def _cards(index: Index, rows: Sequence[int], rollouts: Any, notes: list[str], *, text: bool) -> Iterator[Data]:
    cards, why = cards_data(index.result, rows, rollouts, index, text=text)
    notes += [why] if why and text and why not in notes else []
    yield from map(shortened, cards)


def _rows_of(result: Result, findings: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for finding in findings:
        try:
            yield from chosen_rows(result, [], limit=_OF_FINDING, random=0, **finding["filter"])[1]
        except AssayError:  # a filter that reads columns in a way that their types do not allow
            continue


def _conditions(
    result: Result, findings: Sequence[Mapping[str, Any]], rows: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yield the conditions of findings, with those of some rows for which they hold."""
    for text in dict.fromkeys(text for finding in findings for text in finding["filter"].get("where", ())):
        with contextlib.suppress(AssayError):
            holds = result.numbered.filter(pl.col(ROW).is_in(rows), condition(result, text, [])).select(ROW)
            yield text, result.collect(holds)[ROW].to_list()


def _rows_compared(compare: Data) -> Iterator[int]:
    yield from (example["row_after"] for example in compare.get("examples", ()))
    for signature in compare.get("signatures", ()):
        yield from signature["rows_after"][:_OF_FINDING]
    for rows in compare.get("delta_rows", ()):
        yield from rows[:_OF_FINDING]


def shortened(card: Data) -> Data:
    """Return a card whose long texts keep their ends and what is around spans, which get their places in the texts that are left."""
    less: Data = _shortened(card | {"text": None, "sources": {}})
    evidence = [entry for check in less["checks"] if (entry := check["evidence"])]
    texts = {}
    for source, text in {COMPLETION: card["text"], **card["sources"]}.items():
        spans = [span for entry in evidence if entry["source"] == source for span in entry["spans"]]
        cut, place = cut_text(text or "", [place for span in spans for place in (span["start"], span["end"])])
        texts[source] = text and cut
        for span in spans:
            span |= {"start": place(span["start"]), "end": place(span["end"])}
    return less | {"text": texts.pop(COMPLETION), "sources": texts}


def _shortened(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _shortened(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_shortened(value) for value in data]
    return cut_text(data)[0] if isinstance(data, str) else data


def cut_text(text: str, places: Sequence[int] = ()) -> tuple[str, Callable[[int], int]]:
    """Return a text without the middle, unless it is short, and what gives the place there of one of ``places`` in the text."""
    if len(text) <= _LONG:
        return text, lambda place: place
    kept: list[list[int]] = [[0, _ENDS]]
    around = [(max(0, place - _AROUND), min(len(text), place + _AROUND)) for place in sorted(places)]
    for start, end in sorted([*around, (len(text) - _ENDS, len(text))]):
        if start <= kept[-1][1]:
            kept[-1][1] = max(end, kept[-1][1])
        else:
            kept.append([start, end])
    cut, moves = "", list[tuple[int, int]]()
    for at, (start, end) in enumerate(kept):
        cut += f"\n… {start - kept[at - 1][1]:,} more …\n" if at else ""
        moves.append((start, len(cut) - start))
        cut += text[start:end]
    return cut, lambda place: place + next(move for start, move in reversed(moves) if start <= place)
