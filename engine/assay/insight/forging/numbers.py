"""Numbers as texts write them, and numbers that are nearly the gold; read by ``fractions`` once their dress is off."""

import re
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

from assay.insight.forging.made import MARKS, SPACES, Made, Wrap

_DECIMAL = re.compile(r"[-+]?\d+(?:\.\d+)?")
_GROUPED = re.compile(r"-?\d{1,3}(?:(?:,|\{,\}|\\,|\u202f)\d{3})+(?:\.\d+)?")
_SEPARATORS = re.compile(r",|\{,\}|\\,|\u202f")
_TIMES = re.compile(r"(\S+) \\times 10\^\{(-?\d+)\}")
_FRACTION = re.compile(r"(-?)\\d?frac\{(\d+)\}\{(\d+)\}")
_FULL_WIDTH = str.maketrans(
    "0123456789.-+", "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff0e\uff0d\uff0b"
)
_ASCII = {full: chr(plain) for plain, full in _FULL_WIDTH.items()} | {0x2212: "-"}
_SENTENCE, _THOUGHT, _REVISED = "The answer is {}.", "<think>The answer is {}.</think>\n{}", "{}\nNo, wait. {}"
_AROUND = (*SPACES.values(), *MARKS.values(), ("$", "$"), (r"\(", r"\)"), (r"\text{", "}"))
_BEFORE, _AFTER = ("x = ", "The answer is ", "$", r"\$", "+"), (" units", ".")
_THOUSAND, _TEN, _LONGEST = 1000, 10, 300


def decimal_of(gold: object) -> str | None:
    """Return a gold as a decimal without separators; None if it is none."""
    text = str(gold).strip().replace(",", "").removeprefix("$").removeprefix("+")
    return text if len(text) <= _LONGEST and _DECIMAL.fullmatch(text) and not isinstance(gold, bool) else None


def value_of(text: str) -> Fraction | None:
    """Return the number that a text is, in any dress that is made here; None if it is none."""
    text, before = text.strip(), ""
    while text != before:
        before = text
        for start, end in _AROUND:
            if text.startswith(start.strip()) and text.endswith(end.strip()) and len(text) > len(start + end):
                text = text.removeprefix(start.strip()).removesuffix(end.strip()).strip()
        for start in _BEFORE:
            text = text.removeprefix(start)
        for end in _AFTER:
            text = text.removesuffix(end)
    text = text.translate(_ASCII)
    if _GROUPED.fullmatch(text):
        text = _SEPARATORS.sub("", text)
    if match := _TIMES.fullmatch(text):
        text = f"{match[1]}e{match[2]}"
    if match := _FRACTION.fullmatch(text):
        text = f"{match[1]}{match[2]}/{match[3]}"
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def number_cases(
    gold: str, wrap: Wrap, *, is_latex: bool, at: str = "last", rel_tol: float = 0, abs_tol: float = 0
) -> Iterator[Made]:
    """Yield a decimal as texts write it, and what is nearly it.

    Args:
        gold: The decimal: ``decimal_of``.
        wrap: Puts it into the text that the check reads.
        is_latex: Whether the check reads fractions; it takes no text of several numbers then.
        at: Which of several numbers counts.
        rel_tol: Difference that the check allows, as a share of the larger number.
        abs_tol: Difference that it allows.
    """
    value = Fraction(gold)

    def is_near(other: Fraction) -> bool:
        share = Fraction(rel_tol) * max(abs(value), abs(other))
        return abs(other - value) > max(share, Fraction(abs_tol))

    forms = [*_forms(gold, value), *(_fractions(value) if is_latex else ())]
    yield from (Made(form, "form", wrap(text)) for form, text in forms if value_of(text) == value)
    for form, text in _near(gold):
        other = value_of(text)
        if other is not None and is_near(other):
            yield Made(form, "near", wrap(text))
    beside = _plus_one(gold)
    if is_latex or not is_near(Fraction(beside)):
        return
    yield Made("several_first", "near", wrap(f"{gold} or {beside}"))
    yield Made("several_last", "near", wrap(f"{beside} or {gold}"))
    if at != "first":
        yield Made("corrected", "near", _REVISED.format(wrap(gold), wrap(beside)))
    yield Made("reasoning_only", "near", _THOUGHT.format(gold, wrap(beside)))


def _forms(gold: str, value: Fraction) -> Iterator[tuple[str, str]]:
    yield "plain", gold
    if value >= _THOUSAND:
        whole, point, rest = gold.partition(".")
        grouped = f"{int(whole):,}"
        separators = {"thousands": ",", "latex_thousands": "{,}", "thin_thousands": r"\,", "narrow_thousands": "\u202f"}
        yield from ((form, grouped.replace(",", separator) + point + rest) for form, separator in separators.items())
    yield "trailing_zero", f"{gold}0" if "." in gold else f"{gold}.0"
    if value > 0:
        yield from (("plus", f"+{gold}"), ("currency", f"${gold}"), ("latex_currency", rf"\${gold}"))
    if value < 0:
        yield "minus_sign", gold.replace("-", "\u2212")
    yield from (("unit", f"{gold} units"), ("full_stop", f"{gold}."))
    yield from ((form, f"{start}{gold}{end}") for form, (start, end) in MARKS.items())
    yield from (("dollars", f"${gold}$"), ("parens", rf"\({gold}\)"), ("text", rf"\text{{{gold}}}"))
    yield from (("equation", f"x = {gold}"), ("sentence", _SENTENCE.format(gold)))
    start, end = SPACES["padded"]
    yield "padded", f"{start}{gold}{end}"
    yield "full_width", gold.translate(_FULL_WIDTH)
    if value >= _TEN:
        _, digits, _ = Decimal(gold).as_tuple()
        known = "".join(map(str, digits)).strip("0")
        mantissa = f"{known[0]}.{known[1:]}".removesuffix(".")
        power = Decimal(gold).adjusted()
        yield from (("exponent", f"{mantissa}e{power}"), ("times", rf"{mantissa} \times 10^{{{power}}}"))


def _fractions(value: Fraction) -> Iterator[tuple[str, str]]:
    if value.denominator > 1:
        sign = "-" * (value < 0)
        top = abs(value.numerator)
        yield "frac", rf"{sign}\frac{{{top}}}{{{value.denominator}}}"
        yield "dfrac", rf"{sign}\dfrac{{{top}}}{{{value.denominator}}}"
        yield "slash", f"{sign}{top}/{value.denominator}"


def _plus_one(gold: str) -> str:
    return f"{Context(prec=2 * _LONGEST).add(Decimal(gold), Decimal(1)):f}"


def _shifted(gold: str, power: int) -> str:
    text = f"{Decimal(gold).scaleb(power, Context(prec=2 * _LONGEST)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _near(gold: str) -> Iterator[tuple[str, str]]:
    places = [at for at, char in enumerate(gold) if char.isdigit()]
    first, last = places[0], places[-1]
    yield "off_by_one", _plus_one(gold)
    yield "last_digit", f"{gold[:last]}{(int(gold[last]) + 1) % 10}{gold[last + 1 :]}"
    yield "first_digit", f"{gold[:first]}{int(gold[first]) % 9 + 1}{gold[first + 1 :]}"
    if len(places) > 1:
        yield "dropped_digit", f"{gold[:last]}{gold[last + 1 :]}".rstrip(".")
    for at in places[:-1]:
        if gold[at + 1].isdigit() and gold[at] != gold[at + 1]:
            yield "transposed", f"{gold[:at]}{gold[at + 1]}{gold[at]}{gold[at + 2 :]}"
            break
    yield "extra_digit", f"{gold}1"
    yield "sign", gold[1:] if gold.startswith("-") else f"-{gold}"
    yield from (("shift_up", _shifted(gold, 1)), ("shift_down", _shifted(gold, -1)))
