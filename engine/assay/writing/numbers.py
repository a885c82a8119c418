"""How numbers are shown to people, wherever they read them; ``–`` stands for none, and for what is not finite."""

import math
from collections.abc import Sequence

_NONE = "–"
_MILLION = 1e6
_COUNTED_TO = 1e7
"""From here on a count is in millions."""
_LARGE = 1e9
"""From here on a score has four digits and an exponent."""
_LEAST_P = 1e-4


def number(value: float | None) -> str:
    """Return a reward, a score or a correlation: ``0.526``; only 0 is ``0``, and only 1 is ``1``."""
    if value is None or not math.isfinite(value):
        return _NONE
    if abs(value) >= _LARGE:
        return f"{value:.4g}"
    return f"{value + 0.0:,.0f}" if value == round(value) else _rounded(value, 1, 3)  # + 0.0: no -0


def change(value: float | None) -> str:
    """Return a difference of such numbers, with its sign: ``+0.031``."""
    text = number(value)
    sign = "+" if value is not None and 0 < value < math.inf else ""
    return f"{text[0]}{sign}{text[1:]}" if text[0] in "<>" else sign + text


def percent(value: float | None) -> str:
    """Return a share: ``23.7 %``; only nothing is ``0 %``, and only all is ``100 %``."""
    return _NONE if value is None or not math.isfinite(value) else f"{_of_hundred(value)} %"


def count(value: float | None) -> str:
    """Return a number of things, also a mean of such numbers: ``5,276``, ``12.3 M``."""
    if value is None or not math.isfinite(value):
        return _NONE
    if abs(value) >= _COUNTED_TO:
        return f"{value / _MILLION:,.1f} M"
    return "<1" if 0 < value < 0.5 else f"{value:,.0f}"  # noqa: PLR2004  (what would be 0)


def plain(value: float | None) -> str:
    """Return a number that somebody chose, such as a weight: ``0.5``."""
    return _NONE if value is None else f"{value:g}"


def interval(ends: Sequence[float | None] | None, *, of_shares: bool = False) -> str:
    """Return an interval: ``[0.516, 0.536]``, of shares ``[22.2, 25.1] %``; ``""`` for none."""
    low, high = ends or (None, None)
    if low is None or high is None:
        return ""
    return f"[{_of_hundred(low)}, {_of_hundred(high)}] %" if of_shares else f"[{number(low)}, {number(high)}]"


def p_value(p: float | None) -> str:
    """Return a p value: ``0.034``, ``0.0004``, ``<0.0001``."""
    if p is None or not _LEAST_P <= p < 10 * _LEAST_P:
        return "<0.0001" if p is not None and p < _LEAST_P else number(p)
    return f"{p:.4f}"


def seconds(value: float | None) -> str:
    """Return a time: ``0.42 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if value is None or not math.isfinite(value):
        return _NONE
    if value < 59.5:  # noqa: PLR2004  (what would be 60 s)
        return f"{value:.2g} s" if value >= 0.001 or not value else "<0.001 s"  # noqa: PLR2004
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"  # noqa: PLR2004


def size(value: float) -> str:
    """Return a number of bytes: ``1.2 GB``."""
    if value < 999.5:  # noqa: PLR2004  (what would be 1000 B)
        return f"{value:.0f} B"
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5:  # noqa: PLR2004
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"  # noqa: PLR2004
    return f"{value / 1000:,.1f} TB"


def speed(value: float | None, unit: str = "rows") -> str:
    """Return a number of things a second: ``1,254 rows/s``, ``1.3 M rows/s``."""
    if value is None or not math.isfinite(value):
        text = _NONE
    elif value >= _MILLION - 0.5:
        text = f"{value / _MILLION:,.1f} M"
    else:
        text = f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"  # noqa: PLR2004  (two digits at least)
    return f"{text} {unit}/s"


def _of_hundred(share: float) -> str:
    return _rounded(share, 100, 1)


def _rounded(value: float, whole: int, digits: int) -> str:
    """Return ``whole * value`` in so many digits; what would read as none or as the whole is an inequality."""
    size, sign = abs(value), "-" if value < 0 else ""
    if size in (0, 1):
        return f"{sign if size else ''}{whole * size:.0f}"
    text, step = f"{whole * size:,.{digits}f}", 10**-digits
    if float(text.replace(",", "")) not in (0, whole):
        return sign + text
    is_below = 0.5 < size < 1  # noqa: PLR2004
    bound = f"{step if size <= 0.5 else whole - step if is_below else whole + step:.{digits}f}"  # noqa: PLR2004
    return f"{'>' if is_below is not bool(sign) else '<'}{sign}{bound}"
