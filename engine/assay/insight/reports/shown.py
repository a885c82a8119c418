"""How reports show texts to people, and what of a report needs a look."""

from collections.abc import Iterator, Mapping
from typing import Any

from assay.errors import counted, printable
from assay.writing.numbers import count, number, percent

LABEL = 80
"""Code points of a name that are shown."""

KINDS = {"worst": "Worst", "best": "Best", "errors": "Errors"}
"""The kinds of examples, with their headings."""

_DIGEST = 12


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


def title(report: Mapping[str, Any]) -> str:
    """Return what a report is on: the verifiers, else the file."""
    verifiers = [
        f"{verifier['id']}{f' {version}' if (version := verifier['version']) else ''}"
        for verifier in report["provenance"]["verifiers"]
    ]
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
