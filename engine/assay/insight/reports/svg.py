"""Charts as inline SVG: bars, lines, intervals. Colours are those of the page's style; every chart has a title and a description."""

import math
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from assay.writing.numbers import count, number

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 420, 160, 46, 20, 18
_ROW, _NAME, _NUMBER = 20, 160, 52


def _chart(ident: str, title: str, description: str, height: float, parts: Sequence[str]) -> Markup:
    head = f'<svg role="img" aria-labelledby="{ident}-t {ident}-d" viewBox="0 0 {_WIDTH} {height:g}" preserveAspectRatio="xMinYMin">'
    named = f'<title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>'
    return Markup(f"{head}{named}{''.join(parts)}</svg>")  # noqa: S704  (all texts are escaped above and below)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _frame(low: str, high: str, left: str, right: str) -> list[str]:
    bottom, right_end = _HEIGHT - _BOTTOM, _WIDTH - 4
    return [
        f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right_end}"/>',
        _text(_LEFT - 5, bottom, low, "end"),
        _text(2, _TOP - 6, high),
        _text(_LEFT, _HEIGHT - 5, left),
        _text(right_end, _HEIGHT - 5, right, "end"),
    ]


def bars(ident: str, title: str, description: str, counts: Sequence[int], ends: tuple[float, float]) -> Markup:
    """Draw counts as bars side by side, the horizontal axis from one end to the other."""
    most = max(counts, default=0) or 1
    width, bottom = (_WIDTH - 4 - _LEFT) / max(1, len(counts)), _HEIGHT - _BOTTOM
    drawn = []
    for at, rows in enumerate(counts):
        height = max((bottom - _TOP) * rows / most, 1.0 if rows else 0.0)
        x = _LEFT + at * width + 1
        if rows:
            drawn.append(f'<rect x="{x:.1f}" y="{bottom - height:.1f}" width="{width - 2:.1f}" height="{height:.1f}"/>')
    axes = _frame("0", f"{most:,}", *(number(end) for end in ends))
    return _chart(ident, title, description, _HEIGHT, [*axes, *drawn])


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    low = min(low, 0.0)
    return (low, high) if math.isfinite(high - low) and high > low else (low, low + 1.0)


def line(ident: str, title: str, description: str, values: Sequence[float | None], ends: tuple[str, str]) -> Markup:
    """Draw values in order as a line, interrupted where there is none; a point for each if they are few."""
    low, high = _span([value for value in values if value is not None])
    width, bottom = _WIDTH - 8 - _LEFT, _HEIGHT - _BOTTOM
    places = [
        None
        if value is None
        else (_LEFT + 2 + width * at / max(1, len(values) - 1), bottom - (bottom - _TOP) * (value - low) / (high - low))
        for at, value in enumerate(values)
    ]
    path, down = "", False
    for place in places:
        path += "" if place is None else f"{'L' if down else 'M'}{place[0]:.1f} {place[1]:.1f}"
        down = place is not None
    few = len(values) <= 40  # noqa: PLR2004
    alone = [
        place
        for at, place in enumerate(places)
        if place is not None and (few or {None} >= {*places[max(0, at - 1) : at], *places[at + 1 : at + 2]})
    ]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in alone]
    show = number if high <= 10 else count  # noqa: PLR2004
    axes = _frame(show(low), show(high), *ends)
    return _chart(ident, title, description, _HEIGHT, [*axes, f'<path class="line" d="{path}"/>', *dots])


def ranks(ident: str, title: str, description: str, rows: Sequence[tuple[str, float | None, str]]) -> Markup:
    """Draw shares as bars one under the other, each with its name and what to write behind it."""
    drawn, width = [], _WIDTH - _NAME - _NUMBER
    for at, (name, share, text) in enumerate(rows):
        y = at * _ROW
        drawn.append(_text(_NAME - 6, y + 14, _fitting(name), "end"))
        drawn.append(f'<rect class="rest" x="{_NAME}" y="{y + 4}" width="{width}" height="{_ROW - 8}"/>')
        if share:
            drawn.append(f'<rect x="{_NAME}" y="{y + 4}" width="{width * share:.1f}" height="{_ROW - 8}"/>')
        drawn.append(_text(_NAME + width + 6, y + 14, text))
    return _chart(ident, title, description, len(rows) * _ROW + 4, drawn)


def intervals(
    ident: str,
    title: str,
    description: str,
    rows: Sequence[tuple[str, float | None, tuple[float, float] | None]],
) -> Markup:
    """Draw means as points on their intervals, one under the other, each with its name; all on one axis."""
    values = [value for _, mean, ends in rows for value in (mean, *(ends or ())) if value is not None]
    low, high = _span(values)
    drawn, width = [], _WIDTH - _NAME - _NUMBER

    def x(value: float) -> float:
        return _NAME + width * (value - low) / (high - low)

    for at, (name, mean, ends) in enumerate(rows):
        y = at * _ROW + 10
        drawn.append(_text(_NAME - 6, y + 4, _fitting(name), "end"))
        drawn.append(f'<path class="axis" d="M{_NAME} {y}H{_NAME + width}"/>')
        if ends is not None:
            a, b = x(ends[0]), x(ends[1])
            drawn.append(f'<path class="line" d="M{a:.1f} {y}H{b:.1f}M{a:.1f} {y - 4}v8M{b:.1f} {y - 4}v8"/>')
        if mean is not None:
            drawn.append(f'<circle cx="{x(mean):.1f}" cy="{y}" r="3.5"/>')
        drawn.append(_text(_NAME + width + 6, y + 4, number(mean)))
    bottom = len(rows) * _ROW
    drawn += [
        _text(_NAME, bottom + 12, number(low)),
        _text(_NAME + width, bottom + 12, number(high), "end"),
    ]
    return _chart(ident, title, description, bottom + 16, drawn)


def _fitting(name: str) -> str:
    half = 10 if name.isascii() else 6  # letters of other scripts may be twice as wide
    return name if len(name) <= 2 * half else f"{name[: half - 1]}…{name[-half:]}"
