r"""The 25 instructions of IFEval, each a function of a text that returns what is missing, or ``""`` if the text follows it.

The definitions are those of "Instruction-Following Evaluation for Large Language Models" (Zhou et al. 2023, arXiv:2311.07911), as
lm-evaluation-harness 0.4.13 applies them (``tasks/ifeval/instructions.py``). Some patterns are written in another way, because as
published they take quadratic time on some texts: blank lines before bullets, brackets that never close.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from assay.checks.instructions.extras import detected, sentence_count, word_tokens
from assay.checks.instructions.patterns import Pattern
from assay.errors import counted, quoted
from assay.expressions.json import is_json
from assay.expressions.regex.compiled import compile_pattern

Number = int | float

LESS, LEAST = RELATIONS = ("less than", "at least")


class Kind(NamedTuple):
    """What an argument of an instruction is."""

    meaning: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


NUMBER = Kind("a number", _is_number)
PLACE = Kind("a whole number from 1", lambda value: _is_number(value) and isinstance(value, int) and value > 0)
RELATION = Kind(" or ".join(map(quoted, RELATIONS)), RELATIONS.__contains__)
TEXT = Kind("a text", _is_text)
CHARACTER = Kind("one character", lambda value: _is_text(value) and len(value) == 1)
LANGUAGE = Kind("the code of a language", _is_text)
PATTERN = Kind("a text", _is_text)
PATTERNS = Kind("a list of texts", lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value)))


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
        shortfall: Returns what a text lacks, given the arguments by name; ``""`` if it follows the instruction.
        arguments: The arguments and their kinds.
    """

    shortfall: Callable[..., str]
    arguments: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))


def _related(number: Number, relation: str, bound: Number, noun: str) -> str:
    holds = number < bound if relation == LESS else number >= bound
    return "" if holds else f"{noun}, {relation} {bound:,} wanted"


def _exactly(number: Number, bound: Number, noun: str) -> str:
    return "" if number == bound else f"{noun}, exactly {bound:,} wanted"


def _listed(sources: Sequence[str]) -> str:
    shown = ", ".join(map(quoted, sources[:_SHOWN]))
    return f"{shown} and {len(sources) - _SHOWN} more" if len(sources) > _SHOWN else shown


_SHOWN = 5
"""Words of a list that a reason names."""


def _existence(text: str, keywords: Sequence[Pattern]) -> str:
    missing = [keyword.source for keyword in keywords if not keyword.found(text)]
    return f"lacks {_listed(missing)}" if missing else ""


def _frequency(text: str, keyword: Pattern, frequency: Number, relation: str) -> str:
    stripped = Pattern(keyword.source.strip(), keyword.limits)
    number = stripped.count(text)
    return _related(number, relation, frequency, f"{quoted(stripped.source)} {counted(number, 'time')}")


def _forbidden_words(text: str, forbidden_words: Sequence[Pattern]) -> str:
    present = [word.source for word in forbidden_words if word.found_as_word(text)]
    return f"contains {_listed(present)}" if present else ""


def _letter_frequency(text: str, letter: str, let_frequency: Number, let_relation: str) -> str:
    number = text.lower().count(letter.lower())
    return _related(number, let_relation, let_frequency, f"{quoted(letter)} {counted(number, 'time')}")


def _response_language(text: str, language: str) -> str:
    answer = detected(text)
    return "" if answer in (None, language) else f"the language is {answer}, {language} wanted"


def _english_capital(text: str) -> str:
    return _response_language(text, "en") if text.isupper() else "not all letters are capitals"


def _english_lowercase(text: str) -> str:
    return _response_language(text, "en") if text.islower() else "not all letters are lower case"


def _capital_word_frequency(text: str, capital_frequency: Number, capital_relation: str) -> str:
    number = sum(map(str.isupper, word_tokens(text)))
    return _related(number, capital_relation, capital_frequency, f"{counted(number, 'word')} in capitals")


def _number_sentences(text: str, num_sentences: Number, relation: str) -> str:
    number = sentence_count(text)
    return _related(number, relation, num_sentences, counted(number, "sentence"))


def _number_words(text: str, num_words: Number, relation: str) -> str:
    number = _word_count(text)
    return _related(number, relation, num_words, counted(number, "word"))


def _word_count(text: str) -> int:
    if text.isascii():  # twenty times as fast
        return f" {text}".encode().translate(_WORDS).count(b" w")
    return len(_WORD.findall(text))


_WORD = re.compile(r"\w+")
_WORDS = b"".join(b"w" if _WORD.match(chr(code)) else b" " for code in range(128)) + bytes(128)
"""Makes each ASCII character of a word a ``w``, and every other one a blank."""


def _number_paragraphs(text: str, num_paragraphs: Number) -> str:
    paragraphs = _DIVIDER.split(text) if "***" in text else [text]
    if not all(map(str.strip, paragraphs[1:-1])):
        return f"a blank paragraph between two ***, exactly {num_paragraphs} paragraphs wanted"
    number = sum(1 for paragraph in paragraphs if paragraph.strip())
    return _exactly(number, num_paragraphs, f"{counted(number, 'paragraph')} divided by ***")


_DIVIDER = re.compile(r"\s?\*\*\*\s?")


def _nth_paragraph_first_word(text: str, num_paragraphs: Number, nth_paragraph: int, first_word: str) -> str:
    paragraphs = text.split("\n\n")
    number = sum(1 for paragraph in paragraphs if paragraph.strip())
    if number != num_paragraphs:
        return _exactly(number, num_paragraphs, f"{counted(number, 'paragraph')} divided by two line breaks")
    first = _first_word(paragraphs[nth_paragraph - 1]) if nth_paragraph <= number else ""
    wanted = first_word.lower()
    if first == wanted and nth_paragraph <= number and paragraphs[nth_paragraph - 1].strip():
        return ""
    return f"paragraph {nth_paragraph} begins with {quoted(first)}, {quoted(wanted)} wanted"


def _first_word(paragraph: str) -> str:
    token = next(iter(paragraph.split(None, 1)), "").lstrip("'").lstrip('"')
    # each character by itself, as a sigma at the end of a word has another form
    return "".join(map(str.lower, _PUNCTUATION.split(token, maxsplit=1)[0]))


_PUNCTUATION = re.compile("[.,?!'\"]")


def _number_placeholders(text: str, num_placeholders: Number) -> str:
    number = sum(_brackets(line) for line in text.split("\n")) if "[" in text else 0
    return _related(number, LEAST, num_placeholders, f"{counted(number, 'placeholder')} in [brackets]")


def _brackets(line: str) -> int:
    # up to the last bracket that closes, each that opens before is closed
    return len(_BRACKETS.findall(line[: line.rfind("]") + 1]))


_BRACKETS = re.compile(r"\[[^\]]*\]")


def _postscript(text: str, postscript_marker: Pattern) -> str:
    marker = postscript_marker.source.strip()
    known = _POSTSCRIPTS.get(marker)
    lowered = text.lower()
    if known is not None:
        found = known.search(lowered) is not None
    else:
        found = Pattern(marker.lower(), postscript_marker.limits).found(lowered, flags=re.MULTILINE)
    return "" if found else f"no postscript {quoted(marker)}"


_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}


def _number_bullet_lists(text: str, num_bullets: Number) -> str:
    number = sum(1 for mark, bullet in _BULLETS.items() if mark in text for _ in bullet.finditer(text))
    return _exactly(number, num_bullets, counted(number, "bullet"))


# blanks of the same line only: the blank lines before would be read again from each of them
_BULLETS = {
    "*": re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE),
    "-": re.compile(r"^[^\S\n]*-.*$", re.MULTILINE),
}


def _constrained_response(text: str) -> str:
    return "" if any(answer in text for answer in _ANSWERS) else f"none of {_listed(_ANSWERS)}"


_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _number_highlighted_sections(text: str, num_highlights: Number) -> str:
    number = sum(1 for match in _HIGHLIGHTS.finditer(text) if match[1].strip())
    number += sum(1 for match in _DOUBLE_HIGHLIGHTS.finditer(text) if match[1].strip())
    return _related(number, LEAST, num_highlights, f"{counted(number, 'section')} *highlighted*")


_HIGHLIGHTS = re.compile(r"\*([^\n*]*)\*")
_DOUBLE_HIGHLIGHTS = re.compile(r"\*\*([^\n*]*)\*\*")


def _multiple_sections(text: str, section_spliter: Pattern, num_sections: Number) -> str:
    splitter = section_spliter.source.strip()
    pattern = rf"\s?{splitter}\s?\d+\s?"
    if _PLAIN.fullmatch(splitter):  # then re takes linear time
        number = len(compile_pattern(pattern).findall(text)) if splitter in text else 0
    else:
        number = Pattern(pattern, section_spliter.limits).count(text, ignore_case=False)
    noun = f"{counted(number, 'section')} marked {quoted(f'{splitter} 1')}"
    return _related(number, LEAST, num_sections, f"{noun} and so on")


_PLAIN = re.compile(r"[A-Za-z _:#-]+")
"""Matches what stands for itself in a pattern."""


def _json_format(text: str) -> str:
    bare = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        bare = bare.removeprefix(fence)
    return "" if is_json(bare.removesuffix("```").strip()) else "not valid JSON"


def _title(text: str) -> str:
    return "" if "<<" in text and any(map(_is_title, text.split("\n"))) else "no title in <<double angle brackets>>"


def _is_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end - 2 and bool(line[start:end].lstrip("<").rstrip(">").strip())


def _two_responses(text: str) -> str:
    pieces = [piece.strip() for piece in text.split("******")]
    if not all(pieces[1:-1]):
        return "a blank response between two ******"
    responses = list(filter(None, pieces))
    if len(responses) != 2:  # noqa: PLR2004  (the instruction's name)
        return f"{counted(len(responses), 'response')} divided by ******, 2 wanted"
    return "" if all(one != other for one, other in pairwise(responses)) else "two equal responses"


def _repeat_prompt(text: str, prompt_to_repeat: str) -> str:
    wanted = prompt_to_repeat.strip()
    return "" if text.strip().lower().startswith(wanted.lower()) else f"does not begin with {quoted(wanted)}"


def _end_checker(text: str, end_phrase: str) -> str:
    wanted = end_phrase.strip()
    return "" if text.strip().strip('"').lower().endswith(wanted.lower()) else f"does not end with {quoted(wanted)}"


def _no_comma(text: str) -> str:
    number = text.count(",")
    return f"{counted(number, 'comma')}, none wanted" if number else ""


def _quotation(text: str) -> str:
    bare = text.strip()
    is_quoted = len(bare) > 1 and bare[0] == bare[-1] == '"'
    return "" if is_quoted else "not wrapped in double quotation marks"


INSTRUCTIONS: Mapping[str, Instruction] = {
    "keywords:existence": Instruction(_existence, {"keywords": PATTERNS}),
    "keywords:frequency": Instruction(_frequency, {"keyword": PATTERN, "frequency": NUMBER, "relation": RELATION}),
    "keywords:forbidden_words": Instruction(_forbidden_words, {"forbidden_words": PATTERNS}),
    "keywords:letter_frequency": Instruction(
        _letter_frequency, {"letter": CHARACTER, "let_frequency": NUMBER, "let_relation": RELATION}
    ),
    "language:response_language": Instruction(_response_language, {"language": LANGUAGE}),
    "length_constraints:number_sentences": Instruction(
        _number_sentences, {"num_sentences": NUMBER, "relation": RELATION}
    ),
    "length_constraints:number_paragraphs": Instruction(_number_paragraphs, {"num_paragraphs": NUMBER}),
    "length_constraints:number_words": Instruction(_number_words, {"num_words": NUMBER, "relation": RELATION}),
    "length_constraints:nth_paragraph_first_word": Instruction(
        _nth_paragraph_first_word,
        {"num_paragraphs": NUMBER, "nth_paragraph": PLACE, "first_word": TEXT},
    ),
    "detectable_content:number_placeholders": Instruction(_number_placeholders, {"num_placeholders": NUMBER}),
    "detectable_content:postscript": Instruction(_postscript, {"postscript_marker": PATTERN}),
    "detectable_format:number_bullet_lists": Instruction(_number_bullet_lists, {"num_bullets": NUMBER}),
    "detectable_format:constrained_response": Instruction(_constrained_response),
    "detectable_format:number_highlighted_sections": Instruction(
        _number_highlighted_sections, {"num_highlights": NUMBER}
    ),
    "detectable_format:multiple_sections": Instruction(
        _multiple_sections, {"section_spliter": PATTERN, "num_sections": NUMBER}
    ),
    "detectable_format:json_format": Instruction(_json_format),
    "detectable_format:title": Instruction(_title),
    "combination:two_responses": Instruction(_two_responses),
    "combination:repeat_prompt": Instruction(_repeat_prompt, {"prompt_to_repeat": TEXT}),
    "startend:end_checker": Instruction(_end_checker, {"end_phrase": TEXT}),
    "change_case:capital_word_frequency": Instruction(
        _capital_word_frequency, {"capital_frequency": NUMBER, "capital_relation": RELATION}
    ),
    "change_case:english_capital": Instruction(_english_capital),
    "change_case:english_lowercase": Instruction(_english_lowercase),
    "punctuation:no_comma": Instruction(_no_comma),
    "startend:quotation": Instruction(_quotation),
}
"""The instructions by their ids."""
