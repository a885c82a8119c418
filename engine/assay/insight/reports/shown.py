"""How reports show numbers and texts to people, and what of a report needs a look."""

from collections.abc import Iterator, Mapping
from typing import Any

from assay.errors import counted, printable

__all__ = [
    "KINDS",
    "LABEL",
    "concerns",
    "count",
    "cut",
    "headline",
    "interval",
    "label",
    "multiline",
    "number",
    "p_value",
    "percent",
    "title",
]

LABEL = 80
"""Code points of a name that are shown."""

KINDS = {"worst": "Worst", "best": "Best", "errors": "Errors"}
"""The kinds of examples, with their headings."""

_DIGEST = 12


def number(value: float | None, form: str = ".3f") -> str:
    """Return a number, without the zero before the point; ``–`` for none."""
    if value is None:
        return "–"
    if abs(value) >= 1e6:  # noqa: PLR2004
        return format(value, ".4g")
    text = format(value, form)
    if not float(text):
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def count(value: int | None) -> str:
    """Return a number of things."""
    return "–" if value is None else f"{value:,}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share in percent; only all is 100 %, and only nothing is 0 %."""
    if value is None:
        return "–"
    text = f"{value:.{digits}%}"
    least = 10**-digits
    if 0 < value < 1:
        text = f">{100 - least:g}%" if text == f"{1:.{digits}%}" else f"<{least:g}%" if not float(text[:-1]) else text
    return text.replace("%", " %")


def interval(ends: tuple[float, float] | list[float] | None, form: str = ".2f") -> str:
    """Return an interval; ``""`` for none."""
    return "" if ends is None else f"[{number(ends[0], form)}, {number(ends[1], form)}]"


def p_value(p: float | None) -> str:
    """Return a p value."""
    return "<.0001" if p is not None and p < 0.0001 else number(p, ".4f")  # noqa: PLR2004


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, and how many code points are left out."""
    return text if len(text) <= most else f"{text[:most]}… {len(text) - most:,} more"


def label(value: Any) -> str:
    """Return a name or another value from data on one line, cut, with what cannot be seen as escapes."""
    if value is None:
        return "–"
    text = value if isinstance(value, str) else f"{value:,}" if type(value) is float else str(value)
    return printable(cut(text, LABEL))


def multiline(text: str, most: int | None) -> str:
    """Return a text with its line breaks, cut, with what cannot be seen as escapes."""
    return printable(text if most is None else cut(text, most), lines=True)


# ── sentences ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(report: Mapping[str, Any]) -> str:
    """Return what a report is on: the verifiers, else the file."""
    verifiers = [str(verifier["id"]) for verifier in report["provenance"]["verifiers"]]
    return label(", ".join(verifiers) or report["provenance"]["name"])


def headline(report: Mapping[str, Any]) -> list[str]:
    """Return the facts about a result that come first."""
    summary, provenance = report["summary"], report["provenance"]
    facts = [counted(summary["rows"], "row")]
    digests = [str(verifier["sha256"])[:_DIGEST] for verifier in provenance["verifiers"] if verifier["sha256"]]
    facts += [f"spec {label(' '.join(digests))}"] if digests else []
    facts += [f"assay {label(provenance['assay_version'])}"] if provenance["assay_version"] else []
    facts += [f"root {label(str(provenance['root'])[:_DIGEST])}"] if provenance["root"] else []
    return [*facts, "✓ inputs sealed"] if provenance["sealed"] else facts


def concerns(report: Mapping[str, Any]) -> list[str]:
    """Return what needs a look, in a phrase each."""
    return [*_of_rows(report), *_of_checks(report), *_of_pairs(report)]


def _of_rows(report: Mapping[str, Any]) -> Iterator[str]:
    summary, drift = report["summary"], report["drift"]
    if summary["unscored"]:
        yield f"{count(summary['unscored'])} of {counted(summary['rows'], 'row')} unscored"
    if summary["errors"]:
        yield f"{counted(summary['errors'], 'row')} with errors"
    if (summary["flat"] or 0) >= 0.8 and summary["compared_groups"] >= 8:  # noqa: PLR2004  (as the tripwire)
        yield f"{percent(summary['flat'])} of groups are flat"
    if drift and drift["p"] is not None and drift["p"] < 0.05 and drift["difference"] < 0:  # noqa: PLR2004
        yield f"rewards fall over the steps ({number(drift['difference'], '+.3f')})"


def _of_checks(report: Mapping[str, Any]) -> Iterator[str]:
    for check in report["checks"]:
        if check["status"] not in ("ok", "few rows"):
            yield f"{label(check['name'])} {check['status']}"
        if check["errors"]:
            yield f"{label(check['name'])} has errors in {counted(check['errors'], 'row')}"


def _of_pairs(report: Mapping[str, Any]) -> Iterator[str]:
    for pair in report["pairs"]:
        if pair["redundant"]:
            yield f"{label(pair['a'])} ≈ {label(pair['b'])} redundant (phi {number(pair['phi'], '.2f')})"
