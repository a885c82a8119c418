"""How numbers are shown to people; ``–`` stands for none."""

from collections.abc import Sequence

_LARGE = 1e6
_LARGEST = 1e15
_LEAST_P = 0.0001


def decimal(value: float | None, form: str = ".4f") -> str:
    """Return a number as a format has it."""
    return "–" if value is None else format(value, form)


def number(value: float | None, form: str = ".3f") -> str:
    """Return a number without the zero before the point; a large one in four digits."""
    if value is None:
        return "–"
    if abs(value) >= _LARGE and "," not in form:
        return format(value, ".4g")
    text = format(value, form if abs(value) < _LARGEST else ".4g")
    if not float(text.replace(",", "")):
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


def interval(ends: Sequence[float | None] | None, form: str = ".2f") -> str:
    """Return an interval; ``""`` for none."""
    return "" if ends is None or None in ends else f"[{number(ends[0], form)}, {number(ends[1], form)}]"


def p_value(p: float | None) -> str:
    """Return a p value."""
    return "<.0001" if p is not None and p < _LEAST_P else number(p, ".4f")
