"""The viewer's page: one file that loads nothing, in which nothing that comes from data can run; a server sends the same page.

All that does not depend on what a reader chooses is HTML and SVG from here; the module ``page.js`` adds rows, addresses and keys.
"""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assay.aggregating.outcomes import OUTCOMES
from assay.errors import counted, printable
from assay.insight.charts import svg
from assay.insight.reports.document import multiline
from assay.writing.documents import cut, label
from assay.writing.numbers import change, count, interval, number, p_value, percent, plain, size

REPORT_FILES = Path(__file__).parent
"""Where template, style and module are."""

_SHOWN_FINDINGS, _SHOWN_ROWS, _SHOWN_TEXT, _CHARTED = 8, 20, 2_000, 24
"""How many findings and rows, how much of a text and how many charts over steps are shown without the module."""

_LONGEST_VALUE = 500
"""The most code points of a value in an address."""

_HEAT_CHECKS = 60
"""The most checks in the table by model: those whose failures cost the most."""

_UNSAFE = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_LEAST_RANGE = 0.1
"""Rates of a column that are closer than this have nearly one colour."""


def as_page(data: Mapping[str, Any]) -> str:
    """Return a page about a result, or about two.

    Args:
        data: What the page shows: ``home`` (``file`` or ``server``), ``name``, ``notes``, ``results`` and the place of the one that is
            shown, ``result``, its ``overview`` as a report has it with its ``heat``, ``rows``, ``cards`` and ``conditions`` of
            findings with their rows (in a file), and what to ``compare`` it with the first result, or the second with that; from a
            server with several results, the numbers of each, ``side_by_side``, and the ``checks`` of each.
    """
    return _environment().get_template("page.html.j2").render(_view(data))


def policy(home: str) -> str:
    """Return the content security policy of a page in a file or from a server."""
    rules = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{_script_sha256()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ]
    return "; ".join([*rules, *(["connect-src 'self'"] if home == "server" else [])])


@cache
def script() -> Markup:
    """Return the page's only script, a module."""
    return Markup("".join((REPORT_FILES / name).read_text("utf-8") for name in ("texts.js", "page.js")))  # noqa: S704  (ours)


def _script_sha256() -> str:
    return base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(REPORT_FILES)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=loader, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "change": change,
        "count": count,
        "counted": counted,
        "interval": interval,
        "label": label,
        "multiline": partial(multiline, most=_SHOWN_TEXT),
        "number": number,
        "one_line": lambda text, most=300: printable(cut(text, most)),
        "p_value": p_value,
        "percent": percent,
        "plain": plain,
        "sortable": _sortable,
        "worth": worth,
    }
    environment.globals |= {"address": address}
    return environment


def address(**state: Any) -> str:
    """Return the address of a state of the page; values that are too long for one are left out, and more rows are listed then."""
    kept = {name: value for name, value in state.items() if value is not None and len(str(value)) <= _LONGEST_VALUE}
    return "#" + urlencode(kept, doseq=True, quote_via=_quoted)


def _quoted(text: str | bytes, *_: Any) -> str:
    return quote(text, safe="")


def worth(check: Mapping[str, Any]) -> str:
    """Return what a check is worth in the reward, such as ``× 3``, ``gate`` or ``penalty 0.1``."""
    role, weight = check.get("role"), check["weight"]
    if role == "gate":
        return "gate"
    if role == "penalty":
        return f"penalty {plain(check['penalty'])}"
    inside = f" in {label(check['group'])}" if role == "member" and check["group"] else ""
    return "" if weight is None else f"× {plain(weight)}{inside}"


def inert(data: Any) -> Markup:
    """Return JSON in which nothing ends an element of HTML or a line of JavaScript."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char, escape in _UNSAFE.items():  # faster than ``translate``
        text = text.replace(char, escape)
    return Markup(text)  # noqa: S704  (of markup it has no character)


def _view(data: Mapping[str, Any]) -> dict[str, Any]:
    overview = data["overview"]
    findings = overview.get("findings", [])
    checks = overview["checks"]
    return {
        "page": data,
        "policy": policy(data["home"]),
        "report": overview,
        "facts": list(_facts(overview)),
        "findings": findings[:_SHOWN_FINDINGS],
        "more_findings": findings[_SHOWN_FINDINGS:],
        "heat": _heat(overview, costliest(checks, _HEAT_CHECKS)),
        "histogram": _histogram(overview["histogram"]),
        "steps": _steps(overview),
        "check_columns": _with_values(_CHECK_COLUMNS, checks),
        "by": {name: _by(values) for name, values in overview["by"].items() if name != "step"},
        "outcomes": _outcomes(overview),
        "rows": _first_rows(data),
        "delta": _delta(data) if data["compare"] else None,
        "pair": [data["results"][at] for at in (0, _second(data))] if data["compare"] else [],
        "after": partial(_after, data),
        "made": list(_made(overview["provenance"])),
        "notes": [*data["notes"], *overview["notes"]],
        "script": script(),
        "inert": inert(_for_module(data)),
    }


def _facts(overview: Mapping[str, Any]) -> Iterator[str]:
    yield counted(overview["summary"]["rows"], "row")
    if models := len(_models(overview)):
        yield counted(models, "model")
    if digests := [
        verifier["sha256"][:_DIGEST] for verifier in overview["provenance"]["verifiers"] if verifier["sha256"]
    ]:
        yield f"spec {label(' '.join(digests))}"


_DIGEST = 7


def _for_module(data: Mapping[str, Any]) -> dict[str, Any]:
    overview = data["overview"]
    about = {
        "rows": overview["summary"]["rows"],
        "checks": [
            [{"name": check["name"], "title": check["title"], "worth": worth(check)} for check in checks]
            for checks in data.get("checks", [overview["checks"]])
        ],
        "models": _models(overview),
        "steps": [
            entry["of"]["step"] for entry in overview["by"].get("step", {"entries": []})["entries"] if "to" not in entry
        ],
        "tasks": overview["by"].get("task", {"columns": ["task_id", "example_id"]})["columns"],
        "bins": len(overview["histogram"]["bins"]),
        "range": overview["histogram"]["range"],
        "complete": overview.get("complete", True),
        "states": overview["summary"]["passed"] is not None,
    }
    kept = ("home", "results", "result", "rows", "cards", "conditions")
    return {name: data.get(name) for name in kept} | {"about": about}


def _models(overview: Mapping[str, Any]) -> list[str | None]:
    models = (overview.get("heat") or {"models": []})["models"]
    return [] if models == [None] else models


def costliest(checks: Sequence[Mapping[str, Any]], most: int) -> list[int]:
    """Return the places of the checks whose failures cost the most, in the order of the checks."""
    places = range(len(checks))
    order = sorted(places, key=lambda at: (checks[at].get("loss") or 0.0, checks[at]["failures"] or 0), reverse=True)
    return sorted(order[:most])


def _heat(overview: Mapping[str, Any], shown: Sequence[int]) -> dict[str, Any]:
    """Return the table of pass rates of the checks at some places: a line for each model, the best first, or one for all rows."""
    checks, summary, heat = overview["checks"], overview["summary"], overview.get("heat") or {}
    if models := _models(overview):
        lines = list(zip(models, *(heat[name] for name in ("cells", "reward", "rows")), strict=True))
        lines.sort(key=lambda line: -math.inf if line[2] is None else line[2], reverse=True)
    else:
        cells = [{"rows": check["rows"], "passes": check["rows"] - check["failures"]} for check in checks]
        lines = [(None, cells, summary["mean"], summary["rows"])]
    checks = [checks[at] for at in shown]
    rates = [
        [cell["passes"] / cell["rows"] if cell and cell["rows"] else None for cell in (cells[at] for at in shown)]
        for _, cells, _, _ in lines
    ]
    ranges = [_range([rate for rate in column if rate is not None]) for column in zip(*rates, strict=True)]
    shown_lines = [
        {
            "model": label(model) if models else None,
            "mean": mean,
            "rows": rows,
            "cells": [
                {
                    "rate": rate,
                    "heat": None if rate is None else round(10 * (rate - low) / (high - low)),
                    "link": address(
                        failed=check["name"], model=("null" if model is None else model) if models else None
                    ),
                }
                for check, rate, (low, high) in zip(checks, of_model, ranges, strict=True)
            ],
        }
        for (model, _, mean, rows), of_model in zip(lines, rates, strict=True)
    ]
    return {"checks": checks, "lines": shown_lines}


def _range(rates: Sequence[float]) -> tuple[float, float]:
    high = max(rates, default=1.0)
    low = min([high - _LEAST_RANGE, *rates])
    return (low, high) if low >= 0 else (0.0, max(high, _LEAST_RANGE))


def _histogram(histogram: Mapping[str, Any]) -> dict[str, Any]:
    bins, (low, high) = histogram["bins"], histogram["range"]
    ends = [low * (1 - at / len(bins)) + high * (at / len(bins)) for at in range(len(bins) + 1)]
    rows = [
        {"of": f"{number(ends[at])} – {number(ends[at + 1])}", "rows": rows, "link": address(bin=at)}
        for at, rows in enumerate(bins)
    ]
    most = max(range(len(bins)), key=bins.__getitem__)
    words = f"Rows by reward in {len(bins)} equal bins; most, {count(bins[most])}, in {rows[most]['of']}. "
    words += f"Exactly 0: {count(histogram['zeros'])}; exactly 1: {count(histogram['ones'])}."
    links = [row["link"] for row in rows]
    chart = svg.histogram("histogram", "Distribution of rewards", words, bins, (low, high), "reward", links)
    return {
        **histogram,
        "rows": [row for row in rows if row["rows"]],
        "chart": chart,
        "width": (high - low) / len(bins),
    }


def _delta(data: Mapping[str, Any]) -> Any:
    compare = data["compare"]
    histogram = compare["delta"]["histogram"]
    if not sum(histogram["bins"]):
        return None
    words = f"Rows by the difference of their rewards, after less before; {count(compare['delta']['equal'])} without one are left out."
    ends = histogram["low"], histogram["high"]
    links = [_after(data, rows=",".join(map(str, rows))) for rows in compare["delta_rows"]]
    return svg.histogram(
        "delta", "Differences of rewards", words, histogram["bins"], ends, "reward after − before", links
    )


def _second(data: Mapping[str, Any]) -> int:
    """Return the place of the result that is compared with the first one."""
    return data["result"] or 1


def _after(data: Mapping[str, Any], **state: Any) -> str:
    """Return the address of a state in the second of the results that are compared, the only one in a file."""
    is_shown = data["home"] == "file" or data["result"] == _second(data)
    return address(**state, result=None if is_shown else _second(data))


class _Trend(NamedTuple):
    """Values over steps."""

    name: str
    values: list[float | None]
    show: Callable[[Any], str]
    difference: Callable[[float], str]


def _rate_change(value: float) -> str:
    return f"{'+' if value > 0 else ''}{percent(value)}"


def _steps(overview: Mapping[str, Any]) -> dict[str, Any]:
    entries = overview["by"].get("step", {"entries": []})["entries"]
    if len(entries) < 2:  # noqa: PLR2004
        return {"charts": [], "entries": []}
    trends = [
        _Trend("reward", [entry["mean"] for entry in entries], number, change),
        _Trend("pass rate", [entry["pass_rate"] for entry in entries], percent, _rate_change),
        _Trend("flat groups", [entry.get("flat") for entry in entries], percent, _rate_change),
        _Trend("length", [entry["length"] for entry in entries], count, lambda value: f"{value:+,.0f}"),
    ]
    first = len(trends)
    trends += [
        _Trend(label(check["name"]), [entry["checks"][at] for entry in entries], percent, _rate_change)
        for at, check in enumerate(overview["checks"])
        if "checks" in entries[0]
    ]
    shown = [entry | {"shown": _of(entry)} for entry in entries]
    ends = shown[0]["shown"], shown[-1]["shown"]
    drawn = [
        _trend(at, trend, ends) for at, trend in enumerate(trends[:_CHARTED]) if trend.values != [None] * len(entries)
    ]
    return {"charts": drawn, "entries": shown, "checks": _CHARTED - first}


def _trend(at: int, trend: _Trend, ends: tuple[str, str]) -> dict[str, Any]:
    known = [value for value in trend.values if value is not None]
    span = trend.show(min(known)), trend.show(max(known))
    third = max(1, len(known) // 3)
    change = trend.difference((sum(known[-third:]) - sum(known[:third])) / third)
    words = f"{len(known)} points; from {trend.show(known[0])} to {trend.show(known[-1])}, least {span[0]}, greatest {span[1]}."
    chart = svg.trend(f"trend{at}", f"{trend.name} over steps", words, trend.values, (f"step {ends[0]}", ends[1]), span)
    return {"name": trend.name, "change": change, "svg": chart}


class _Column(NamedTuple):
    """A column of a table."""

    heading: str
    key: str
    show: Callable[[Any], str]
    meaning: str = ""


_CHECK_COLUMNS = (
    _Column("Effect", "effect", percent, "the part of the reward that a check decides"),
    _Column("Mean", "mean", number),
    _Column("Pass", "pass_rate", percent),
    _Column("Fails", "failures", count),
    _Column("Errors", "errors", count),
    _Column("Loss", "loss", number, "by how much the mean reward would rise if all rows passed the check"),
    _Column("Variance", "share_of_reward_variance", percent, "the part of the reward's variance that a check makes"),
    _Column("Rest r", "rest_correlation", number, "correlation with the rest of the reward"),
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


_OUTCOME_COLUMNS = (_Column("Rows", "rows", count), *(_Column(name, name, percent) for name in OUTCOMES))


def _with_values(columns: Sequence[_Column], entries: Sequence[Mapping[str, Any]]) -> list[_Column]:
    return [column for column in columns if any(entry.get(column.key) is not None for entry in entries)]


def _sortable(value: float | Sequence[float] | None) -> str:
    if value is None:
        return ""
    return format(value[0] if isinstance(value, Sequence) else value, ".12g")


def _by(values: Mapping[str, Any]) -> dict[str, Any]:
    entries = [entry | {"shown": _of(entry)} for entry in values["entries"]]
    joined = any("to" in entry for entry in entries)
    left_out = 0 if joined else values["values"] - len(entries)
    return {"entries": entries, "columns": _with_values(_BY_COLUMNS, entries), "left_out": left_out}


def _outcomes(overview: Mapping[str, Any]) -> dict[str, Any] | None:
    if (found := overview.get("outcomes")) is None:
        return None
    entries = [
        {"shown": _of(entry) or "all rows", "rows": entry["rows"]}
        | {name: rows / entry["rows"] for name, rows in entry["outcomes"].items()}
        for entry in found["entries"]
    ]
    left_out = found["values"] - len(entries)
    return {"columns": _OUTCOME_COLUMNS, "entries": entries, "left_out": left_out, "by_model": bool(found["columns"])}


def _of(entry: Mapping[str, Any]) -> str:
    first = ", ".join(map(label, entry["of"].values()))
    return f"{first} – {', '.join(map(label, entry['to'].values()))}" if "to" in entry else first


def _first_rows(data: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    rows, cards = (data.get("rows") or {"rows": []})["rows"], data.get("cards") or {}
    return [(row, cards[str(row["row"])]) for row in rows[:_SHOWN_ROWS] if str(row["row"]) in cards]


_SOURCES = 20


def _made(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "result", provenance["name"]
    for verifier in provenance["verifiers"][:_SOURCES]:
        yield "spec", f"{verifier['id']} · sha256 {verifier['sha256']}"
    for noun, sources in (("input", provenance["inputs"]), ("tasks", provenance["tasks"])):
        for source in sources[:_SOURCES]:
            of_bytes = "" if source.get("size") is None else f" · {size(source['size'])}"
            digest = f" · sha256 {source['sha256']}" if source.get("sha256") else ""
            yield noun, f"{source.get('name')}{of_bytes}{digest}"
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
