"""Charts as inline SVG. Colours are those of the page's style; every chart has a title and a description, and every axis its numbers."""

import math
from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from assay.writing.numbers import count

_MOST_TICKS = 4


def histogram(
    ident: str,
    title: str,
    description: str,
    bins: Sequence[int],
    ends: tuple[float, float],
    axis: str,
    links: Sequence[str] = (),
) -> Markup:
    """Draw counts in bins between two ends.

    Args:
        ident: What its ids begin with.
        title: What it shows.
        description: What can be seen in it.
        bins: Counts.
        ends: Where the first bin begins and the last one ends.
        axis: What the bins are of.
        links: For each bin, where it leads.
    """
    width, left, right, top, bottom = 380, 46, 12, 8, 150
    most = max(bins, default=0) or 1
    step = (width - left - right) / max(1, len(bins))
    parts = []
    for value in _ticks(most):
        y = bottom - (bottom - top) * value / most
        parts += [
            f'<path class="grid" d="M{left} {y:.1f}H{width - right}"/>',
            _text(left - 6, y + 4, count(value), "end"),
        ]
    for at, rows in enumerate(bins):
        if rows:
            x, height = left + at * step, max(1.5, (bottom - top) * rows / most)
            name = f"{_end(ends, at, bins)} to {_end(ends, at + 1, bins)}: {count(rows)} rows"
            bar = f'<rect class="bar" x="{x + 1:.1f}" y="{bottom - height:.1f}" width="{step - 2:.1f}" height="{height:.1f}"/>'
            bar = f'<title>{name}</title><rect class="hit" x="{x:.1f}" y="{top}" width="{step:.1f}" height="{bottom - top}"/>{bar}'
            parts.append(f'<a href="{escape(links[at])}" aria-label="{name}">{bar}</a>' if links else f"<g>{bar}</g>")
    for at in range(5):
        place = at * len(bins) / 4
        anchor = "end" if at == 4 and len(_end(ends, place, bins)) > 3 else "middle"  # noqa: PLR2004  (what has no room)
        parts.append(_text(left + place * step, bottom + 16, _end(ends, place, bins), anchor))
    parts.append(_text((left + width - right) / 2, bottom + 34, axis, "middle"))
    return _chart(ident, title, description, (width, bottom + 40), parts, role="group" if links else "img")


def trend(
    ident: str,
    title: str,
    description: str,
    values: Sequence[float | None],
    ends: tuple[str, str],
    span: tuple[str, str],
) -> Markup:
    """Draw values in order as a line, interrupted where there is none, between the least and the greatest of them.

    Args:
        ident: What its ids begin with.
        title: What it shows.
        description: What can be seen in it.
        values: The values.
        ends: The first and the last place on the horizontal axis.
        span: The least and the greatest value, for people.
    """
    width, left, right, top, bottom = 156, 48, 4, 8, 50
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (bottom - top) / (high - low) if 0 < high - low < math.inf else 0.0
    across = (width - left - right) / max(1, len(values) - 1)
    path, dots, before = "", "", None
    for at, value in enumerate(values):
        if value is not None:
            x, y = left + at * across, bottom - (value - low) * scale if scale else (top + bottom) / 2
            path += f"{'M' if before is None else 'L'}{x:.1f} {y:.1f}"
            if before is None and (at + 1 == len(values) or values[at + 1] is None):
                dots += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
        before = value
    frame = f'<path class="grid" d="M{left} {top}H{width - right}M{left} {bottom}H{width - right}"/>'
    labels = [_text(left - 5, bottom + 4, span[0], "end"), _text(left - 5, top + 4, span[1], "end")] if scale else []
    labels += [] if scale else [_text(left - 5, (top + bottom) / 2 + 4, span[0], "end")]
    labels += [_text(left, bottom + 16, ends[0]), _text(width - right, bottom + 16, ends[1], "end")]
    line = f'<path class="line" d="{path}"/>{dots}'
    return _chart(ident, title, description, (width, bottom + 22), [frame, line, *labels])


def _chart(
    ident: str, title: str, description: str, size: tuple[float, float], parts: Sequence[str], role: str = "img"
) -> Markup:
    names = f'<title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>'
    head = f'<svg role="{role}" aria-labelledby="{ident}-t" aria-describedby="{ident}-d" viewBox="0 0 {size[0]:g} {size[1]:g}">'
    return Markup(f"{head}{names}{''.join(parts)}</svg>")  # noqa: S704  (all texts are escaped above and below)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _end(ends: tuple[float, float], at: float, bins: Sequence[int]) -> str:
    low, high = ends
    value = low * (1 - at / len(bins)) + high * (
        at / len(bins)
    )  # not low + …: a difference of two large numbers is none
    return f"{value:.2f}".rstrip("0").rstrip(".") if 1e-2 <= high - low < 1e5 else f"{value:.3g}"  # noqa: PLR2004


def _ticks(most: int) -> list[int]:
    """Return 0 and up to four multiples of 1, 2 or 5 times a power of ten that are not above a count."""
    power = 10 ** max(0, len(str(most)) - 2)
    step = next(power * by for by in (1, 2, 5, 10, 20, 50, 100) if most // (power * by) <= _MOST_TICKS)
    return list(range(0, most + 1, step))
