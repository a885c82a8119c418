"""A report as a page: one file that loads nothing, and in which nothing that comes from data can run."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from assay.errors import counted, printable
from assay.insight.reports import svg
from assay.insight.reports.document import KINDS, concerns, headline, label, multiline, title
from assay.writing.documents import cut
from assay.writing.numbers import change, count, interval, number, p_value, percent, plain

MOST_BYTES = 500_000

_CHARTED = 60
"""Most checks in a chart."""


@dataclass(frozen=True)
class _Budget:
    """How much a page shows; None is no limit.

    Attributes:
        text: Code points of a text.
        feedback: Code points of the feedback of a row.
        examples: Examples of each kind.
        reasons: Reasons of a check.
        reason: Code points of a reason.
        checks: Checks.
        concerns: Things that need a look.
    """

    text: int | None = None
    feedback: int | None = None
    examples: int = 1_000
    reasons: int = 10
    reason: int = 300
    checks: int = 100_000
    concerns: int = 30

    @property
    def note(self) -> str:
        """What the page leaves out, beside the texts, which say so themselves."""
        parts = [f"texts after {self.text:,} characters"] if self.text else []
        parts += [f"all but {self.examples} examples of each kind"] if self.examples < 1_000 else []  # noqa: PLR2004
        parts += [f"all but {self.reasons} reasons of a check"] if self.reasons < 10 else []  # noqa: PLR2004
        parts += [f"all but {self.checks} checks"] if self.checks < 100_000 else []  # noqa: PLR2004
        return f"the page is kept small: it leaves out {', '.join(parts)}; the JSON has all" if parts else ""


_BUDGETS = (
    _Budget(),
    _Budget(2_000, 2_000),
    _Budget(2_000, 2_000, 20, 5),
    _Budget(2_000, 1_000, 8, 3, 200),
    _Budget(2_000, 1_000, 4, 2, 150),
    _Budget(1_000, 500, 2, 1, 100),
    _Budget(500, 300, 1, 0, 100, 300, 20),
    _Budget(200, 200, 1, 0, 100, 100, 10),
)
"""From all to what fits for certain."""


def as_page(report: Mapping[str, Any]) -> str:
    """Return a report as a page of at most 500 kB: where it would be larger texts are cut, then examples left out, with a note.

    Args:
        report: Its JSON data.
    """
    template = _environment().get_template("report.html.j2")
    page = ""
    found = [example for kind in report["examples"].values() for example in kind]
    texts = sum(len(example.get(name) or "") for example in found for name in ("text", "feedback", "error"))
    for budget in _BUDGETS[texts > MOST_BYTES :]:
        page = template.render(_view(report, budget))
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def script_sha256() -> str:
    """Return the hash of the script by which the page allows it, and no other."""
    script = _environment().get_template("report.js").render()
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=loader, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "count": count,
        "counted": counted,
        "exact": _exact,
        "change": change,
        "interval": interval,
        "label": label,
        "multiline": multiline,
        "number": number,
        "one_line": _one_line,
        "p_value": p_value,
        "percent": percent,
    }
    return environment


def _exact(value: float | Sequence[float] | None) -> str:
    if value is None:
        return ""
    return format(value[0] if isinstance(value, Sequence) else value, ".12g")


def _one_line(text: str, most: int) -> str:
    return printable(cut(text, most))


def _view(report: Mapping[str, Any], budget: _Budget) -> dict[str, Any]:
    checks = report["checks"][: budget.checks]
    check_columns = _with_values(_CHECK_COLUMNS, checks)
    note = budget.note
    return {
        "budget": budget,
        "script_sha256": script_sha256(),
        "title": title(report),
        "headline": headline(report),
        "concerns": concerns(report),
        "summary": report["summary"],
        "histogram": _histogram(report["histogram"]),
        "steps": _steps(report["by"]),
        "drift": report["drift"],
        "checks": checks,
        "checks_in_all": len(report["checks"]),
        "checks_chart": _checks_chart(checks) if checks else "",
        "charted": min(len(checks), _CHARTED),
        "check_columns": check_columns,
        "check_words": " ".join(f"{column.heading}: {column.meaning}." for column in check_columns if column.meaning),
        "pairs": report["pairs"],
        "by": {name: _by(f"by{at}", name, values) for at, (name, values) in enumerate(report["by"].items())},
        "examples": {KINDS[kind]: list(_shown(found, budget)) for kind, found in report["examples"].items() if found},
        "made": list(_made(report["provenance"])),
        "notes": [*report["notes"], *([note] if note else [])],
    }


def _histogram(histogram: Mapping[str, Any]) -> dict[str, Any]:
    bins, (low, high) = histogram["bins"], histogram["range"]
    ends = [low + (high - low) * at / len(bins) for at in range(len(bins) + 1)]
    rows = [{"of": f"{number(ends[at])} – {number(ends[at + 1])}", "rows": rows} for at, rows in enumerate(bins)]
    most = max(range(len(bins)), key=bins.__getitem__)
    said = f"Rows by reward in 20 equal bins from {number(low)} to {number(high)}; most, {count(bins[most])}, "
    said += f"in {rows[most]['of']}. Exactly 0: {count(histogram['zeros'])}; exactly 1: {count(histogram['ones'])}."
    chart = svg.bars("histogram", "Distribution of rewards", said, bins, (low, high))
    return {**histogram, "rows": rows, "chart": chart}


_LINES = (
    ("mean", "Mean reward over steps", "Mean", number),
    ("pass_rate", "Pass rate over steps", "Pass", percent),
    ("length", "Mean length over steps", "Length", count),
)


def _steps(by: Mapping[str, Any]) -> dict[str, Any]:
    values = by.get("step")
    entries = [] if values is None else values["entries"]
    if len(entries) < 2:  # noqa: PLR2004
        return {"charts": [], "name": "step", "entries": []}
    named = [{**entry, "shown": _of(entry)} for entry in entries]
    charts = []
    for key, heading, column, show in _LINES:
        numbers = [entry[key] for entry in entries]
        known = [value for value in numbers if value is not None]
        if not known:
            continue
        said = f"{len(entries)} points; from {show(known[0])} to {show(known[-1])}, "
        said += f"least {show(min(known))}, greatest {show(max(known))}."
        drawn = svg.line(f"steps-{key}", heading, said, numbers, (named[0]["shown"], named[-1]["shown"]))
        charts.append({"title": heading, "svg": drawn, "key": key, "column": column, "show": show})
    return {"charts": charts, "name": "step", "entries": named}


class _Column(NamedTuple):
    """A column of a table."""

    heading: str
    key: str
    show: Callable[[Any], str]
    meaning: str = ""


_CHECK_COLUMNS = (
    _Column("Weight", "weight", plain),
    _Column("Mean", "mean", number),
    _Column("Pass", "pass_rate", percent),
    _Column("Fails", "failures", count),
    _Column("Errors", "errors", count),
    _Column(
        "Variance",
        "share_of_reward_variance",
        percent,
        "the part of the reward's variance that a check makes",
    ),
    _Column(
        "Rest r",
        "rest_correlation",
        number,
        "its correlation with what the other checks make of the reward",
    ),
    _Column("Separates", "separates", percent, "the share of groups in which its scores differ"),
    _Column("Within", "within_variance_share", percent, "the share of its variance inside groups"),
    _Column("Within r", "within_rest_correlation", number, "Rest r inside groups"),
)

_BY_COLUMNS = (
    _Column("Rows", "rows", count),
    _Column("Mean", "mean", number),
    _Column("95 %", "ci95", lambda ends: interval(ends) or "–"),
    _Column("Pass", "pass_rate", percent),
    _Column("Errors", "errors", count),
    _Column("Length", "length", count),
)


def _with_values(columns: Sequence[_Column], entries: Sequence[Mapping[str, Any]]) -> list[_Column]:
    return [column for column in columns if any(entry[column.key] is not None for entry in entries)]


def _checks_chart(checks: Sequence[Mapping[str, Any]]) -> Any:
    charted = checks[:_CHARTED]
    rows = [(label(check["name"]), check["pass_rate"], percent(check["pass_rate"])) for check in charted]
    of = f"the first {len(charted)} of {len(checks)}" if len(checks) > len(charted) else f"{len(charted)}"
    said = f"Share of the rows with a score that pass, for {of} checks in the order of the spec; the table has the numbers."
    return svg.ranks("pass-rates", "Pass rate of each check", said, rows)


def _by(ident: str, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    entries = [{**entry, "shown": _of(entry)} for entry in values["entries"]]
    joined = sum("to" in entry for entry in entries)
    left_out = 0 if joined else values["values"] - len(entries)
    shown_as = "The worst and the best" if name == "task" else "Those with the most rows"
    chart = None
    if name not in ("task", "step") and entries:
        rows = [(entry["shown"], entry["mean"], entry["ci95"]) for entry in entries]
        said = (
            f"Mean reward of {count(len(rows))} values of {label(name)} with 95 % intervals; the table has the numbers."
        )
        chart = svg.intervals(ident, f"Mean reward by {label(name)}", said, rows)
    shown = {"entries_shown": entries, "columns_shown": _with_values(_BY_COLUMNS, entries)}
    return {**shown, "left_out": left_out, "shown_as": shown_as, "chart": chart}


def _of(entry: Mapping[str, Any]) -> str:
    first = ", ".join(map(label, entry["of"].values()))
    return f"{first} – {', '.join(map(label, entry['to'].values()))}" if "to" in entry else first


def _shown(examples: Sequence[Mapping[str, Any]], budget: _Budget) -> Iterator[dict[str, Any]]:
    for example in examples[: budget.examples]:
        failing = [name for name, score in example["checks"].items() if score is not None and score != 1]
        yield {**example, "failing": failing, "rows": example.get("rows", 1), "text": example.get("text")}


_SOURCES = 20


def _made(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "result", provenance["name"]
    for verifier in provenance["verifiers"][:_SOURCES]:
        yield "spec", f"{verifier['id']} · sha256 {verifier['sha256']}"
    for noun, sources in (("input", provenance["inputs"]), ("tasks", provenance["tasks"])):
        for source in sources[:_SOURCES]:
            size = "" if source.get("size") is None else f" · {source['size']:,} bytes"
            digest = f" · sha256 {source['sha256']}" if source.get("sha256") else ""
            yield noun, f"{source.get('name')}{size}{digest}"
        if len(sources) > _SOURCES:
            yield noun, f"and {len(sources) - _SOURCES:,} more"
    if provenance["command"]:
        yield "command", str(provenance["command"])
    versions = [
        f"{name} {provenance[f'{name}_version']}" for name in ("assay", "polars") if provenance[f"{name}_version"]
    ]
    if versions:
        yield "versions", ", ".join(versions)
    if provenance["root"]:
        yield "root", f"{provenance['root']} (assay verify computes it anew)"
