"""The charts of docs/performance.md: bars drawn from the table of the benchmarks, as SVG."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

__all__ = ["CHARTS", "Chart", "as_svg", "rate", "rounded"]

_Line = dict[str, str]

WIDTH, ROW, HEAD = 480, 34, 30
"""Of the drawing: its width, and the heights of a bar with its label, and of the title."""

OURS, THEIRS = "#5c6bc0", "#9aa0a6"
"""Of Assay, and of everything else; both are seen on white and on black."""


@dataclass(frozen=True)
class Chart:
    """Bars of a part of the table.

    Attributes:
        title: What the bars say, with the unit.
        measured: What was measured.
        number: The value of a line.
        shown: The value in words.
        label: The name of a line.
    """

    title: str
    measured: str
    number: Callable[[_Line], float]
    shown: Callable[[float], str]
    label: Callable[[_Line], str] = lambda line: re.sub(r" \(.*\)", "", line["contender"])

    def lines(self, table: list[_Line]) -> list[_Line]:
        """The lines of the table that the chart shows."""
        chosen = [line for line in table if line["measured"] == self.measured and line["state"] == "cold"]
        return [line for line in chosen if self.number(line)]


def _figure(cell: str) -> float:
    """The number that a cell begins with; 0.0 where it is empty."""
    found = re.match(r"[\d.,]+", cell)
    return float(found[0].replace(",", "")) if found else 0.0


def _time(line: _Line) -> float:
    return _figure(line["time"])


def _cpu(line: _Line) -> float:
    return _figure(line["CPU"])


def rate(line: _Line) -> float:
    """Rows a second on one core: by the CPU time, or by the time of a contender on one core whose CPU time is unknown."""
    return 1e6 / (_cpu(line) or _time(line))


def rounded(number: float) -> str:
    """A number in two digits, which is what a busy machine measures."""
    return f"{float(f'{number:.2g}'):,.{0 if number >= 10 else 1}f}"


def _ratio(line: _Line) -> float:
    return _figure(line["ratio"])


CHARTS = {
    "rows-a-second": Chart(
        "Ten checks, texts in memory: rows a second on one core",
        "ten checks, texts in memory",
        rate,
        rounded,
    ),
    "file-to-file": Chart(
        "Ten checks, file to file, whole process: µs of CPU a row",
        "ten checks, file to file, 500,000 rows",
        _cpu,
        lambda value: f"{value:.1f}",
    ),
    "further-rows": Chart(
        "Ten checks, file to file: µs for each further row",
        "ten checks, file to file, slope from 500,000 to 2,000,000 rows",
        _time,
        lambda value: f"{value:.1f}",
    ),
    "kinds-of-text": Chart(
        "Ten checks, file to file: times the floor, by kind of text",
        "ten checks, file to file, 500,000 rows, by kind of text",
        lambda line: _ratio(line) if line["ratio"].endswith("× the floor") else 0.0,
        lambda value: f"{value:.1f} ×",
    ),
    "steps": Chart(
        "Steps: a plain loop takes so many times as long as Assay",
        "a step, 100,000 rows",
        _ratio,
        lambda value: f"{value:.1f} ×",
        lambda line: line["contender"].removeprefix("a plain loop, "),
    ),
}
"""The charts, by the names of their files."""


def as_svg(chart: Chart, table: list[_Line]) -> str:
    """Draw a chart.

    Raises:
        LookupError: The table has no line of it.
    """
    lines = chart.lines(table)
    if not lines:
        raise LookupError(chart.measured)
    values = [chart.number(line) for line in lines]
    bars = []
    for at, (line, value) in enumerate(zip(lines, values, strict=True)):
        top, color = HEAD + at * ROW, OURS if re.match(r"assay\b", line["contender"], re.IGNORECASE) else THEIRS
        bars += [
            f'<text x="0" y="{top + 13}">{escape(chart.label(line))}</text>',
            f'<text x="{WIDTH}" y="{top + 13}" text-anchor="end">{chart.shown(value)}</text>',
            f'<rect x="0" y="{top + 18}" width="{max(value / max(values) * WIDTH, 1):.1f}" height="8" fill="{color}"/>',
        ]
    height = HEAD + len(lines) * ROW
    title = escape(chart.title)
    head = f'<text x="0" y="14" font-weight="bold">{title}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{title}" color="#757575" fill="currentColor" font-family="sans-serif" font-size="13">\n'
        + "\n".join([head, *bars])
        + "\n</svg>\n"
    )
