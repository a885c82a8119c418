"""The spec language by hand: a plain loop over rows whose JSON is parsed, with ``str``, ``re`` and ``json``; scores without reasons."""

import json
import re
import string
from functools import cache
from pathlib import Path

_NUMBER = re.compile(
    r"[^0-9A-Za-z_)]([-+\u2212]?[$€£¥]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    r"|[-+\u2212]?[$€£¥]?\.[0-9]+)"
)
_FENCE = re.compile(r"^```[^`\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_DATA = re.compile(r"<data>(.*?)</data>", re.DOTALL)
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_LETTER = re.compile(r"answer is \((\w)\)")
_CHOICE = re.compile(
    r"(?i:answer|choice|option)(?i:\s+is|\s+are)?\s*[:：]?[\s*_`\"'(\[{$]*([ABCD])(?:[^0-9A-Za-z_]|\Z)"
)
_REMOVED = re.compile(r"\d+,")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_TODO = re.compile(r"\bTODO\b")
_ENDS = string.whitespace + string.punctuation
_NOT_FINITE = {None, "inf", "-inf", "nan"}
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_compiled = cache(re.compile)


def prepare(spec, frame):
    name = json.loads(Path(spec).read_text("utf-8"))["id"]
    rows = frame.to_dicts()
    for row in rows:
        row["metadata"] = json.loads(row["metadata"])
    return SCORES[name], rows


def run(prepared, frame):
    del frame
    score, rows = prepared
    scores = map(score, rows)
    return {"reward": [None if value is None else float(value) for value in scores]}


# ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def after_think(text):
    """Return what stands behind the thoughts of a text, the text without any; None if they are cut off."""
    _, close, rest = text.rpartition("</think>")
    if close:
        return rest.strip()
    return None if "<think>" in text else text


def think(text):
    """Return the thoughts of a text; None without any."""
    _, opened, rest = text.partition("<think>")
    thoughts, closed, _ = rest.rpartition("</think>")
    return thoughts.strip() if opened and closed else None


def tag(text):
    """Return what the last answer tag of a text holds; None without one."""
    found = _TAG.findall(text)
    return found[-1].strip() if found else None


def boxed(text):
    """Return what the last box of a text holds; None without one."""
    _, found, rest = text.rpartition("\\boxed{")
    if not found:
        return None
    depth = 1
    for at, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if not depth:
            return rest[:at]
    return None


def _after(text):
    _, found, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() if found else None


def _rest(text):
    _, found, rest = text.rpartition("</think>")
    return rest.strip() if found else None


def _line(text):
    return text.rstrip().rpartition("\n")[2].strip() or None


def fence(text):
    """Return what the last code fence of a text holds; None without one."""
    found = _FENCE.findall(text)
    return found[-1] if found else None


def _value(text):
    found = _DATA.findall(text)
    return str(json.loads(found[-1])["value"]) if found else None


def _letter(text):
    found = _LETTER.search(text)
    return found[1] if found else None


def _number(text):
    found = _NUMBER.findall(f" {text}")
    return found[-1] if found else None


def choice(text):
    """Return the last letter that a text says is the answer; None without one."""
    found = _CHOICE.findall(text)
    return found[-1] if found else None


def squad(text):
    """Return a text as the evaluation of SQuAD compares it."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def _words(text, form):
    """Return a text as evaluations that look at each word compare it; none of the published ones remembers words."""
    words = (form(word) for word in re.split(" |-", text))
    return " ".join(filter(None, (" ".join(_ARTICLE.sub(" ", word).split()) for word in words)))


def _as_float(word):
    try:
        return str(float(word))
    except ValueError:
        return None


def drop(text):
    """Return a text as the evaluation of DROP compares it."""
    return _words(text, _drop_word)


def _drop_word(word):
    word = word.lower()
    number = _as_float(word)
    if number is not None:
        return number
    word = word.translate(_NO_PUNCTUATION)
    return _as_float(word) or word


def lighteval(text):
    """Return a text as lighteval's HELM compares it."""
    return _words(text, _lighteval_word)


def _lighteval_word(word):
    word = word.lower().translate(_NO_PUNCTUATION)
    return _as_float(word) or word


def inspect(text):
    """Return a text as Inspect's f1 compares it."""
    return _words(text, _inspect_word)


def _inspect_word(word):
    word = word.casefold()
    bare = word.translate(_NO_PUNCTUATION)
    numbers = map(_as_float, (word, word.strip(_ENDS), bare))
    return next((number for number in numbers if number not in _NOT_FINITE), bare)


_LATEX = (
    *(("\n", ""), (r"\!", ""), (r"\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), (r"\left", ""), (r"\right", "")),
    *((r"^{\circ}", ""), (r"^\circ", ""), (r"\$", "")),
)


def hendrycks(text):
    """Return a text as the code of Hendrycks' MATH compares it, step for step."""
    for old, new in _LATEX:
        text = text.replace(old, new)
    if r"\text{ " in text:
        text, _ = text.split(r"\text{ ")
    text = text.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text[:1] == "." else text
    sides = text.split("=")
    text = sides[1] if len(sides) == 2 and len(sides[0]) <= 2 else text
    first, *roots = text.split(r"\sqrt")
    for root in roots:
        first += r"\sqrt" + (root if root[0] == "{" else f"{{{root[0]}}}{root[1:]}")
    text = _with_braces(first.replace(" ", ""))
    text = r"\frac{1}{2}" if text == "0.5" else text
    parts = text.split("/")
    if len(parts) == 2 and all(part.lstrip("-").isdecimal() for part in parts):
        above, below = map(int, parts)
        return rf"\frac{{{above}}}{{{below}}}" if text == f"{above}/{below}" else text
    return text


def _with_braces(text):
    written, *parts = text.split(r"\frac")
    for part in parts:
        if part[0] == "{":
            written += r"\frac" + part
        elif len(part) < 2:
            return text
        else:
            written += rf"\frac{{{part[0]}}}" + (part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}")
    return written


def _normalized(text):
    part = tag(text)
    return None if part is None else squad(part)


def _first_of(text):
    found = re.findall("<result>(.*?)</result>", text, re.DOTALL)
    return found[-1].strip() if found else boxed(text)


def _mapped(text):
    return {"A": "7", "B": "8"}.get(_letter(text), "9")


def _holds_7(step):
    def score(row):
        part = step(row["completion"])
        return part is not None and "7" in part.lower()

    return score


_STEPS = {
    "afterThink": after_think,
    "think": think,
    "tag": tag,
    "boxed": boxed,
    "after": _after,
    "after, to the end": _rest,
    "line": _line,
    "fence": fence,
    "json": _value,
    "regex": _letter,
    "number": _number,
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "remove": lambda text: _REMOVED.sub("", text),
    "replace": lambda text: text.replace(",", ""),
    "map": _mapped,
    "normalize": _normalized,
    "firstOf": _first_of,
}


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _amount(text):
    try:
        return float(text.replace(",", "").lstrip("$€£¥"))
    except ValueError:
        return None


def _is_number(row):
    part = _number(_after(row["completion"]) or "")
    return part is not None and _amount(part) == row["n"]


def _is_choice(row, text):
    return (choice(text) or "") == row["letter"]


def _equal(part, gold):
    return part is not None and part.strip().lower() == str(gold).strip().lower()


def _share(row):
    lowered = row["completion"].lower()
    return sum(gold.lower() in lowered for gold in row["golds"]) / len(row["golds"])


def _any(row):
    lowered = row["completion"].lower()
    return any(gold.lower() in lowered for gold in row["golds"])


def _same_items(row):
    items = {item.strip() for item in (tag(row["completion"]) or "").split(",")} - {""}
    return items == {gold.strip() for gold in row["golds"]}


def _nested(row):
    text = row["completion"]
    lowered = text.lower()
    answered = _equal(tag(text), row["answer"]) or _equal(boxed(text), row["n"])
    answered = answered or _is_choice(row, after_think(text) or "")
    first = row["answer"].lower() in lowered and _is_number(row) and answered
    met = lowered.strip().startswith("<think>") + ("refund" in lowered or "policy" in lowered)
    met += sum(bool(line.strip()) for line in text.splitlines()) <= 40
    second = met + (len(text) >= 200) >= 2
    third = not ("as an ai" in lowered or _TODO.search(text) or lowered.strip().endswith("?"))
    base = (float(first) + float(second) + float(third)) / 3.0
    score = base * float("</think>" in lowered) - 0.2 * (1.0 - float(len(text) <= 4000))
    return min(max(score, 0.0), 1.0)


def distinct(text, n):
    """Return the share of distinct sequences of n words."""
    words = text.lower().split()
    total = len(words) - n + 1
    return 1.0 if total < 1 else len(set(zip(*(words[at:] for at in range(n)), strict=False))) / total


def overlong(length, most, buffer):
    """Return 1.0 up to the buffer below a length, and less up to that length."""
    if length <= most - buffer:
        return 1.0
    return 0.0 if length > most else 1.0 + (most - buffer - length) / buffer


SCORES = {
    "repetition": lambda row: distinct(row["completion"], 3),
    "length_penalty, words": lambda row: overlong(len(row["completion"].split()), 250, 100),
    "length_penalty, a column": lambda row: overlong(row["n"], 80_000, 40_000),
    **{name: _holds_7(step) for name, step in _STEPS.items()},
    "numbers": lambda row: "7" in _NUMBER.findall(f" {row['completion']}"),
    "choice": lambda row: (choice(after_think(row["completion"]) or "") or "") == "B",
    "split": lambda row: "7" in [part.strip() for part in (_after(row["completion"]) or "").split(",")],
    "contains, a column": lambda row: row["answer"].lower() in row["completion"].lower(),
    "contains as written, a column": lambda row: row["answer"] in row["completion"],
    "starts_with, a column": lambda row: (tag(row["completion"]) or "").lower().startswith(row["answer"].lower()),
    "equals, a column": lambda row: _equal(_after(row["completion"]), row["n"]),
    "equals by squad, a column": lambda row: _normalized(row["completion"]) == squad(row["answer"]),
    "number, a column": _is_number,
    "choice, a column": lambda row: _is_choice(row, row["completion"]),
    "contains, a template": lambda row: f"#### {row['n']}" in row["completion"].lower(),
    "contains, JSON text": lambda row: row["metadata"]["gold"].lower() in row["completion"].lower(),
    "contains, a list": _any,
    "contains_any, a list": _any,
    "contains_all, a list": _share,
    "list_equals, a list": _same_items,
    "regex, a column": lambda row: _compiled(row["pattern"]).search(row["completion"]) is not None,
    "min_length, a column": lambda row: len(row["completion"]) >= row["n"],
    "when, a column": lambda row: "refund" in row["completion"].lower() if row["letter"] in {"A", "B"} else None,
    "twelve leaves": _nested,
}
"""A score for each spec, by its name."""
