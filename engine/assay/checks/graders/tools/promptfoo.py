"""Assertions of promptfoo 0.123.1 that no check type makes as they are; each without ``not-``, which inverts the score."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from assay.checks.graders.tools.patterns import compiled
from assay.checks.similarity.overlap import NEVER, Bag, brevity, gleu_of, precisions, without_stops
from assay.expressions.regex.javascript import SPACES, python_pattern

Options = Mapping[str, Any]

_SPACE = re.compile(f"[{SPACES}]")
_WORD = re.compile(f"[^{SPACES}]+")
_OTHER_SPACES = "\x1c\x1d\x1e\x1f\x85\ufeff"
"""White space of Python that is none of JavaScript, and the other way round."""
_MOST_CHARACTERS = 100_000
"""Of a JSON object in a text."""
_BEYOND = 0xFFFF


def _words(text: str) -> list[str]:
    return _WORD.findall(text) if any(space in text for space in _OTHER_SPACES) else text.split()


def word_count(text: str, gold: Any, _: Options) -> tuple[float, str]:
    """``word-count``: as many words as the gold says: a number, or ``min`` and ``max``."""
    count = len(_words(text))
    gold = _limits(gold)
    if isinstance(gold, dict):
        least, most = gold.get("min"), gold.get("max")
        passes = (least is None or count >= least) and (most is None or count <= most)
    else:
        passes = count == gold
    return float(passes), f"{count:,} words"


def _limits(gold: Any) -> Any:
    """Return a number, or an object with ``min`` or ``max``."""
    if isinstance(gold, str):
        try:
            gold = json.loads(gold)
        except ValueError:
            raise ValueError("the gold is neither a number nor an object with min and max") from None
    given = (
        [value for name in ("min", "max") if (value := gold.get(name)) is not None]
        if isinstance(gold, dict)
        else [gold]
    )
    if not given or any(isinstance(value, bool) or not isinstance(value, int | float) for value in given):
        raise ValueError("the gold is neither a number nor an object with min and max")
    return gold


def regex(text: str, gold: str, _: Options) -> tuple[float, str]:
    """``regex``: a pattern of JavaScript that each row brings."""
    return float(compiled(python_pattern(gold)).search(text) is not None), text


def levenshtein(text: str, gold: str, options: Options) -> tuple[float, str]:
    """``levenshtein``: at most as many edits of UTF-16 units."""
    from rapidfuzz import distance

    most = math.floor(options["threshold"])
    mine, other = _units(text), _units(gold)
    if most < 0 or abs(len(mine) - len(other)) > most:
        return 0.0, text
    return float(distance.Levenshtein.distance(mine, other, score_cutoff=most) <= most), text


def _units(text: str) -> str:
    if text.isascii() or max(map(ord, text)) <= _BEYOND:
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))


def bleu(text: str, golds: Sequence[str], _: Options) -> tuple[float, str]:
    """``bleu``: of a text with all golds together."""
    mine, others = _bag(text), [*map(_bag, golds)]
    if not mine.words:
        return 0.0, text
    shares = precisions(mine, others)
    weight = 0.25 * len(shares)
    total_log = 0.0
    for share in shares:
        total_log += 0.25 / weight * math.log(share or NEVER)
    penalty = brevity(len(mine.words), [max(len(other.words), 1) for other in others])
    return min(penalty * math.exp(total_log), 1.0), text


def _bag(text: str) -> Bag:
    return Bag(_words(text.lower()))


def gleu(text: str, golds: Sequence[str], _: Options) -> tuple[float, str]:
    """``gleu``: of the gold that gives the best."""
    mine, *others = (Bag(without_stops(_words(value.lower()))) for value in (text, *golds))
    return max(gleu_of(mine, other) for other in others), text


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 4_000 else math.inf  # noqa: PLR2004  (what Python converts)


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_int=_whole)


def is_json(text: str, options: Options) -> tuple[float, str]:
    """``is-json``: JSON without NaN, and with a schema what it describes."""
    try:
        value = _DECODER.decode(text)
    except ValueError:
        return 0.0, text
    return float(_fits(value, options["value"])), text


def contains_json(text: str, options: Options) -> tuple[float, str]:
    """``contains-json``: an object stands in the text, and with a schema one that it describes."""
    return float(any(_fits(value, options["value"]) for value in _objects(text))), text


def _fits(value: Any, schema: Any) -> bool:
    return not schema or bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))


@lru_cache(16)
def _validator(schema: str) -> Any:
    import jsonschema_rs

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=10**15)  # time is limited, not backtracking
    return jsonschema_rs.Draft7Validator(
        json.loads(schema), offline=True, validate_formats=True, pattern_options=patterns
    )


def _objects(text: str) -> Iterator[dict[Any, Any]]:
    """Yield the objects that begin at a brace, up to its balance, with the braces that are missing at the end."""
    ends, depths = _balances(text)
    at = text.find("{")
    while 0 <= at < len(text) - 1:
        last = min(at + _MOST_CHARACTERS, len(text))
        end = min(ends.get(at, last), last)
        missing = 0 if ends.get(at, len(text) + 1) <= last else depths[end] - depths[at]
        value = _yaml(text[at:end] + "}" * missing)
        if isinstance(value, dict | list):
            yield value if isinstance(value, dict) else {}
            at = text.find("{", end)
        else:
            at = text.find("{", at + 1)


def _balances(text: str) -> tuple[dict[int, int], list[int]]:
    """Return where the object that begins at each brace ends, if it does, and the depth before each character."""
    ends, opened, depths, depth = {}, list[int](), [0], 0
    for at, character in enumerate(text):
        if character == "{":
            opened.append(at)
            depth += 1
        elif character == "}":
            depth -= 1
            if opened:
                ends[opened.pop()] = at + 1
        depths.append(depth)
    return ends, depths


def _yaml(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except ValueError:
        pass
    from assay.checks.graders.tools.yaml12 import load

    return load(_with_hashes(text) if "//" in text else text)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _with_hashes(text: str) -> str:
    """Return a text whose comments begin with ``#``, not with ``//``."""
    return "\n".join(map(_line_with_hash, text.split("\n")))


def _line_with_hash(line: str) -> str:
    quote, at = "", 0
    while at < len(line):
        character, before, after = line[at], line[at - 1 : at], line[at + 1 : at + 2]
        if quote:
            escaped = (at - len(line[:at].rstrip("\\"))) % 2
            if character == quote and not escaped and (quote == '"' or after not in _LETTERS or not after):
                quote = ""
        elif character == '"' or (character == "'" and (before not in _LETTERS or not before)):
            quote = character
        elif character == after == "/":
            start = max((match.end() for match in _SPACE.finditer(line, 0, at)), default=0)
            if "://" not in line[start : at + 2]:
                slashes = len(line) - at - len(line[at:].lstrip("/"))
                return line[:at] + "#" * (slashes // 2) + line[at + slashes :]
        at += 1
    return line
