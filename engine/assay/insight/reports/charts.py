"""Charts of a report, for notebooks and files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from assay.errors import UsageError, clipped, counted, did_you_mean, printable
from assay.insight.charts import svg
from assay.insight.charts.chart import Chart, drawn_alone, text_at
from assay.writing.numbers import count, interval, number, percent

ChartKind = Literal["rewards", "heat", "steps"]

_LEAST_RANGE = 0.1
"""Rates of a check that are closer than this have nearly one colour."""
_MOST_CHECKS, _MOST_MODELS, _MOST_TRENDS = 40, 20, 24
_NAME = 24
"""Code points of a name that are shown."""
_CELL, _ROW, _LEFT = 84, 24, 190
_ACROSS, _WIDTH, _HEIGHT = 4, 170, 110
"""Charts side by side over steps, and the room for each."""


def chart_of(kind: ChartKind, report: Mapping[str, Any]) -> Chart:
    """Return a chart of a report, of its ``as_json()`` and its ``heat``."""
    if kind not in (kinds := get_args(ChartKind)):
        hint = did_you_mean(str(kind), kinds) or f"Charts: {', '.join(kinds)}"
        raise UsageError(f"{printable(str(kind))}: there is no such chart.", hint)
    return {"rewards": _rewards, "heat": _heat, "steps": _steps}[kind](report)


def _rewards(report: Mapping[str, Any]) -> Chart:
    summary, histogram = report["summary"], report["histogram"]
    title = f"Rewards of {counted(summary['scored'], 'row')}"
    mean = f"mean {number(summary['mean'])} {interval(summary['ci95'])}".strip()
    facts = f"{mean}; {count(histogram['zeros'])} are 0, {count(histogram['ones'])} are 1"
    low, high = histogram["range"]
    drawn = svg.histogram("assay-rewards", title, facts, histogram["bins"], (low, high), "reward")
    return drawn_alone(title, 380, 190, [str(drawn)])


def _steps(report: Mapping[str, Any]) -> Chart:
    entries = report["by"].get("step", {"entries": []})["entries"]
    rates = zip(*(entry.get("checks", ()) for entry in entries), strict=True)
    lines: list[tuple[str, list[Any], Callable[[Any], str]]] = [
        ("reward", [entry["mean"] for entry in entries], number),
        ("pass rate", [entry["pass_rate"] for entry in entries], percent),
        ("length", [entry["length"] for entry in entries], count),
        *((check["name"], list(of_steps), percent) for check, of_steps in zip(report["checks"], rates, strict=False)),
    ]
    lines = [line for line in lines if any(value is not None for value in line[1])][:_MOST_TRENDS]
    ends = tuple(_short(next(iter(entry["of"].values()))) for entry in (*entries[:1], *entries[-1:]))
    title = f"Rewards over {counted(len(entries), 'step')}"
    parts = [part for at, line in enumerate(lines) for part in _panel(at, *line, ends)]  # type: ignore[arg-type]
    rows = -(-len(lines) // _ACROSS) or 1
    parts += [] if lines else [text_at(10, 20, "There are no rewards by step.")]
    return drawn_alone(title, min(max(2, len(lines)), _ACROSS) * _WIDTH, rows * _HEIGHT, parts)


def _panel(at: int, name: str, values: Sequence[Any], show: Callable[[Any], str], ends: tuple[str, str]) -> list[str]:
    x, y = at % _ACROSS * _WIDTH + 8, at // _ACROSS * _HEIGHT + 8
    known = [value for value in values if value is not None]
    span = show(min(known)), show(max(known))
    facts = f"from {show(known[0])} to {show(known[-1])}, least {span[0]}, greatest {span[1]}"
    drawn = svg.trend(f"assay-step-{at}", printable(name), facts, values, ends, span)
    placed = f'<svg x="{x}" y="{y + 14}" width="150" height="76" '
    return [text_at(x, y + 8, _short(name)), str(drawn).replace("<svg ", placed, 1)]


def _heat(report: Mapping[str, Any]) -> Chart:
    heat = report["heat"]
    checks, models = heat["checks"][:_MOST_CHECKS], heat["models"][:_MOST_MODELS]
    names = ["all rows"] if models == [None] else ["–" if model is None else model for model in models]
    parts = [text_at(_LEFT + (at + 0.5) * _CELL, 16, _short(name, 12), "middle", name) for at, name in enumerate(names)]
    for at, check in enumerate(checks):
        y = 26 + at * _ROW
        rates = [cells[at] and cells[at]["passes"] / cells[at]["rows"] for cells in heat["cells"][: len(models)]]
        parts += [text_at(_LEFT - 8, y + 16, _short(check), "end", check), *_heat_cells(rates, y)]
    more = [(len(heat["checks"]) - len(checks), "more check"), (len(heat["models"]) - len(models), "more model")]
    bottom = 26 + len(checks) * _ROW
    if left_out := [counted(number, noun) for number, noun in more if number]:
        parts.append(text_at(8, bottom + 16, f"… {', '.join(left_out)}"))
    title = "Pass rates of checks by model"
    return drawn_alone(title, _LEFT + max(2, len(models)) * _CELL + 8, bottom + 26, parts)


def _heat_cells(rates: Sequence[float | None], y: float) -> Iterator[str]:
    known = [rate for rate in rates if rate is not None]
    low, width = min(known, default=0.0), max(_LEAST_RANGE, max(known, default=0.0) - min(known, default=0.0))
    for at, rate in enumerate(rates):
        x, strength = _LEFT + at * _CELL, 0.0 if rate is None else 0.05 + 0.45 * (rate - low) / width
        box = f'x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_ROW - 2}"'
        yield f'<rect class="heat" {box} fill-opacity="{strength:.2f}"/>'
        yield text_at(x + _CELL / 2, y + 16, "✗ 0 %" if rate == 0 else percent(rate), "middle")


def _short(text: Any, most: int = _NAME) -> str:
    return clipped(str(text), most)
