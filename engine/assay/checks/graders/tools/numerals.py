"""Numbers as Inspect reads them: in any script, with signs, fractions, superscript exponents, and Chinese numerals."""

import math
import re
import unicodedata

_TRIMMED = "!?:;()[]{}'\"`"
_MINUS, _PLUS = "-−﹣－负負", "+＋﹢正"
_DECIMALS = "٫．"
_MARKS = ",，﹐、٬'’ʼ＇"
_CHINESE_DIGITS = {
    digit: value
    for value, digits in enumerate(
        ("零〇○", "一壹幺", "二贰貳两兩", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖")
    )
    for digit in digits
}
_TENS = {"廿": 20, "卅": 30, "卌": 40}
_UNITS = {unit: value for value, units in ((10, "十拾"), (100, "百佰"), (1000, "千仟")) for unit in units}
_MYRIADS = {unit: value for value, units in ((10**4, "万萬"), (10**8, "亿億"), (10**12, "兆")) for unit in units}
_POINTS = "点點"
_CHINESE = {*_CHINESE_DIGITS, *_TENS, *_UNITS, *_MYRIADS, *_POINTS, *"负負正"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUPERSCRIPT_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGIT = re.compile("[0-9]")
_LONGEST = 4_000
"""Digits that Python converts at once; an integer with more is no number."""


def number(text: str, *, trim: bool = True) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    text = text.strip(_TRIMMED) if trim else text
    if text.isascii() and not _DIGIT.search(text):
        return None
    for read in (_float, _in_any_script):
        value = read(text)
        if value is not None and math.isfinite(value):
            return value
    return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _in_any_script(text: str) -> float | None:
    text, negative = _signed(text)
    if not text:
        return None
    if (single := _single(text)) is not None:
        return -single if negative else single
    base, exponent = _base_and_exponent(text)
    try:
        value = _with_fraction(base)
        if value is None:
            return None
        value = -value if negative else value
        return value if exponent is None else float(value ** int(exponent))
    except (ValueError, ArithmeticError, TypeError):  # too many digits, a power that is too large or complex
        return None


def _signed(text: str) -> tuple[str, bool]:
    text, negative = text.strip(), False
    while text and text[0] in _MINUS + _PLUS:
        negative ^= text[0] in _MINUS
        text = text[1:].lstrip()
    return text, negative


def _single(text: str) -> float | None:
    if len(text) != 1:
        return None
    value = unicodedata.numeric(text, None)
    return None if value is None else float(value)


def _is_separator(character: str) -> bool:
    return character.isspace() or character in _MARKS


def _base_and_exponent(text: str) -> tuple[str, str | None]:
    """Split a superscript exponent off the end."""
    end = len(text)
    while end and _is_separator(text[end - 1]):
        end -= 1
    start = end
    while start and text[start - 1] in _SUPERSCRIPT_DIGITS:
        start -= 1
    if start == end:
        return text.strip(), None
    start -= start > 0 and text[start - 1] in "⁻⁺"
    base = text[:start].rstrip()
    return (base, text[start:end].translate(_SUPERSCRIPTS)) if base else (text.strip(), None)


def _with_fraction(text: str) -> float | None:
    """Return a number that may end in a vulgar fraction."""
    fractions = [(at, value) for at, character in enumerate(text) if (value := _fraction(character)) is not None]
    if not fractions:
        return _unsigned(text)
    (at, fraction), *others = fractions
    head, tail = text[:at].strip(), text[at + 1 :]
    if others or not all(map(_is_separator, tail)):
        return None
    whole = _unsigned(head) if head else 0.0
    return None if whole is None else whole + fraction


def _fraction(character: str) -> float | None:
    value = unicodedata.numeric(character, 0.0)
    return float(value) if 0.0 < value < 1.0 else None


def _unsigned(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    chinese = _chinese(text) if not _CHINESE.isdisjoint(text) else None
    if chinese is not None:
        return chinese
    digits = _with_separators(text)
    return _single(text) if digits is None else digits


def _digit(character: str) -> str | None:
    for read in (unicodedata.decimal, unicodedata.digit):
        if (value := read(character, None)) is not None:
            return str(value)
    value = _CHINESE_DIGITS.get(character)
    return None if value is None else str(value)


def _decimal_mark(text: str) -> str:
    """Return which of ``.`` and ``,`` is the decimal mark: the later one, and a comma alone before one to three digits."""
    point, comma = text.rfind("."), text.rfind(",")
    if comma < 0 or point >= 0:
        return "" if point < 0 else "." if point > comma else ","
    return "," if 1 <= sum(_digit(character) is not None for character in text[comma + 1 :]) <= 3 else ""  # noqa: PLR2004


def _with_separators(text: str) -> float | None:
    """Return a number of digits of any script with marks between them, and perhaps an exponent behind ``e``."""
    mark, written, has_decimals, has_exponent, at = _decimal_mark(text), "", False, False, 0
    while at < len(text):
        character = text[at]
        at += 1
        if character in "eE" and not has_exponent:
            if not written:
                return None
            written, has_exponent = written + "e", True
            if at < len(text) and text[at] in "-−﹣－+＋﹢":
                written += "+" if text[at] in _PLUS else "-"
                at += 1
        elif character in _DECIMALS or character == mark:
            if has_decimals:
                return None
            written, has_decimals = written + ".", True
        elif _is_separator(character) or (mark and character in ",."):
            continue
        elif (digit := _digit(character)) is not None:
            written += digit
        else:
            return None
    return _float(written) if any(map(str.isdigit, written)) else None


def _chinese(text: str) -> float | None:
    point = next((mark for mark in (*_POINTS, "．", ".") if mark in text), "")
    whole, _, decimals = text.partition(point) if point else (text, "", "")
    value = _chinese_whole(whole)
    if value is None:
        return None
    fraction, base = 0.0, 0.1
    for character in decimals:
        if character.isspace():
            continue
        if (digit := _digit(character)) is None:
            return None
        fraction += int(digit) * base
        base /= 10.0
    return float(value) + fraction


def _chinese_whole(text: str) -> int | None:
    characters = [character for character in text if not character.isspace()]
    if {*_UNITS, *_MYRIADS, *_TENS}.isdisjoint(characters):
        digits = [*map(_digit, characters)]
        if None in digits or len(digits) > _LONGEST:
            return None
        return int("".join(map(str, digits)) or "0")
    total = section = last = 0
    for character in characters:
        if character in _TENS:
            section += _TENS[character]
        elif character in "零〇○":
            continue
        elif character in _UNITS:
            section, last = section + (last or 1) * _UNITS[character], 0
        elif character in _MYRIADS:
            total, section, last = total + (section + last) * _MYRIADS[character], 0, 0
        elif (digit := _digit(character)) is not None:
            last = int(digit)
        else:
            return None
    return total + section + last
