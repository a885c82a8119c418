"""Evidence as documents: what checks read and expect, and the texts with what was found marked."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.numbers import number

_MARKS = {True: "✓", False: "✗", None: "–"}
_BEFORE, _FAR = 200, 1_000
"""Code points that are shown before the first mark, and from where on those before are left out."""


def evidence_document(headline: str, evidence: Mapping[str, Any]) -> Document:
    """Return the evidence of a row, of its ``as_json()``: a table of checks, and the texts that they read."""
    checks = [check | {"evidence": check} for check in evidence["checks"]]
    texts = {"completion": evidence["text"], **evidence["sources"]}
    return Document("assay evidence", [Lines([headline]), checks_table(checks), *quotes(checks, texts)])


def checks_table(checks: Sequence[Mapping[str, Any]], heading: str = "") -> Table:
    """Return a table of checks with score, what was read and expected, and feedback."""
    rows = [
        [
            f"{_MARKS[check['passes']]} {check['check']}",
            number(check["score"]),
            _read(check.get("evidence") or {}),
            check.get("error") or check.get("feedback") or "",
        ]
        for check in checks
    ]
    columns = {"check": False, "score": True, "read → expected": False, "feedback": False}
    return Table(columns, rows, heading).filled()


def _read(evidence: Mapping[str, Any]) -> str:
    if evidence.get("read") is None:
        return ""
    near = f" ({evidence['near']})" if evidence["near"] else ""
    return f"{evidence['read']} → {' | '.join(evidence['expected']) or '–'}{near}"


def quotes(checks: Sequence[Mapping[str, Any]], texts: Mapping[str, str | None]) -> list[Quote]:
    """Return texts with the places that checks which fail have marked, or all checks if none fails."""
    failing = [check for check in checks if check["passes"] is False] or checks
    shown = []
    for source, text in texts.items():
        found = [check["evidence"] for check in failing if (check.get("evidence") or {}).get("source") == source]
        spans = [(span["start"], span["end"], span["kind"]) for one in found for span in one["spans"]]
        first = min((start for start, _, _ in spans), default=0)
        begin = first - _BEFORE if first > _FAR else 0
        shown += [] if text is None else [_excerpt(source, text, begin, spans)]
    return shown


def _excerpt(source: str, text: str, begin: int, spans: Sequence[tuple[int, int, str]]) -> Quote:
    heading = f"{source}, from character {begin:,}" if begin else source
    return Quote(text[begin:], heading, [(start - begin, end - begin, kind) for start, end, kind in spans])
