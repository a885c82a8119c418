r"""The 25 instructions of IFEval, each a function of a text that returns what is missing, or ``""`` if the text follows it.

The definitions are those of "Instruction-Following Evaluation for Large Language Models" (Zhou et al. 2023, arXiv:2311.07911), as
lm-evaluation-harness 0.4.13 applies them (``tasks/ifeval/instructions.py``). Some patterns are written in another way, because as
published they take quadratic time on some texts: blank lines before bullets, brackets that never close.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from assay.calls.limits import Limits
from assay.checks.instructions.extras import check_language, detected, sentences, word_tokens
from assay.errors import counted, did_you_mean, quoted
from assay.expressions.json import NOT_JSON, is_json, loads
from assay.expressions.mixed import untyped
from assay.expressions.regex.compiled import compile_pattern
from assay.expressions.regex.search import search, search_here
from assay.expressions.regex.spans import Matches, results
from assay.frozen import frozen
from assay.values.references import source_text

IDS, KWARGS, PROMPT = "instruction_id_list", "kwargs", "prompt"

REPEAT_PROMPT = "combination:repeat_prompt"
"""The instruction that reads the prompt."""

Number = int | float
LESS, LEAST = RELATIONS = ("less than", "at least")
EXACTLY = "exactly"

_LITERAL = re.compile(r"[A-Za-z0-9 _:,'\"!#%&/;<=>@~-]+")
"""Matches what stands for itself in a pattern, in either case."""
_SPLITTER = re.compile(r"[A-Za-z _:#-]+")
"""Matches what stands for itself between other parts of a pattern."""
_SHOWN = 5
"""Words of a list that a reason names."""
_MOST = 1_000
"""Maximum instructions of a row."""
_REPEATED = "prompt_to_repeat"
_BLANK = "the output is blank"
_WORD = re.compile(r"\w+")
_WORDS = b"".join(b"w" if _WORD.match(chr(code)) else b" " for code in range(128)) + bytes(128)
"""Makes each ASCII character of a word a ``w``, and every other one a blank."""
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_PUNCTUATION = re.compile("[.,?!'\"]")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}
# blanks of the same line only: the blank lines before would be read again from each of them
_BULLETS = {"*": re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE), "-": re.compile(r"^[^\S\n]*-.*$", re.MULTILINE)}
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHTS = (re.compile(r"\*([^\n*]*)\*"), re.compile(r"\*\*([^\n*]*)\*\*"))


@frozen
class Pattern:
    """A pattern that a row brings: searched for without regard to case, in bounded time."""

    source: str
    limits: Limits | None = None

    def found(self, text: str, *, flags: int = re.IGNORECASE) -> bool:
        """Return whether ``re.search`` finds it."""
        if flags == re.IGNORECASE and (word := self._literal(text)):
            return word in text.lower()
        with self._named():
            stop = None if self.limits is None else self.limits.stop
            (answer,) = search_here(self.source, [text], stop, flags=flags)
            if isinstance(answer, Exception):
                raise answer
            return search(self.source, text, self.limits, flags=flags) if answer is None else answer

    def count(self, text: str, *, ignore_case: bool = True) -> int:
        """Return the number of matches of ``re.findall``; raises what ``found`` raises."""
        if word := self._literal(text):
            return text.lower().count(word) if ignore_case else text.count(self.source)
        with self._named():
            (number,) = results(Matches(f"(?i){self.source}" if ignore_case else self.source), [text], self.limits)
            if isinstance(number, Exception):
                raise number
            return int(number or 0)

    def found_as_word(self, text: str) -> bool:
        r"""Return whether ``re.search`` finds it between two ``\b``; raises what ``found`` raises."""
        if self._literal(text) and not self.found(text):
            return False
        return Pattern(rf"\b{self.source}\b", self.limits).found(text)

    def _literal(self, text: str) -> str:
        """Return the pattern in lower case if in ASCII texts as this one it stands for itself, in either case; else ``""``."""
        # to search for a phrase in a text in lower case takes a tenth of the time
        return self.source.lower() if text.isascii() and _LITERAL.fullmatch(self.source) else ""

    @contextmanager
    def _named(self) -> Iterator[None]:
        shown = f"the pattern {quoted(self.source)}"
        try:
            yield
        except (TimeoutError, MemoryError) as error:
            raise type(error)(f"{shown}: {error}") from None
        except Exception as error:  # noqa: BLE001  (re has bugs of its own, besides what it rejects)
            raise ValueError(f"{shown}: {error}") from None


class Kind(NamedTuple):
    """What an argument of an instruction is, and how the instruction takes it."""

    meaning: str
    fits: Callable[[Any], bool]
    read: Callable[[Any, Limits | None], Any] = lambda value, _: value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_NUMBER = Kind("a number", _is_number)
_PLACE = Kind("a whole number from 1", lambda value: _is_number(value) and isinstance(value, int) and value > 0)
_RELATION = Kind(" or ".join(map(quoted, RELATIONS)), RELATIONS.__contains__)
_TEXT = Kind("a text", _is_text)
_CHARACTER = Kind("one character", lambda value: _is_text(value) and len(value) == 1)
_LANGUAGE = Kind("the code of a language", _is_text, lambda value, _: check_language(value))
_PATTERN = Kind("a text", _is_text, Pattern)
_PATTERNS = Kind(
    "a list of texts",
    lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value)),
    lambda value, limits: tuple(Pattern(item, limits) for item in value),
)


@frozen
class Instruction:
    """An instruction."""

    shortfall: Callable[..., str]
    arguments: Mapping[str, Kind]


INSTRUCTIONS: dict[str, Instruction] = {}
"""The instructions by their ids."""


def _instruction(ident: str, **arguments: Kind) -> Callable[[Callable[..., str]], Callable[..., str]]:
    def register(shortfall: Callable[..., str]) -> Callable[..., str]:
        INSTRUCTIONS[ident] = Instruction(shortfall, arguments)
        return shortfall

    return register


def _related(number: Number, relation: str, bound: Number, noun: str) -> str:
    """Return the shortfall of a number that is not in the relation to the bound."""
    holds = {LESS: number < bound, LEAST: number >= bound, EXACTLY: number == bound}[relation]
    return "" if holds else f"{noun}, {relation} {bound:,} wanted"


def _listed(sources: Sequence[str]) -> str:
    shown = ", ".join(map(quoted, sources[:_SHOWN]))
    return f"{shown} and {len(sources) - _SHOWN} more" if len(sources) > _SHOWN else shown


@_instruction("keywords:existence", keywords=_PATTERNS)
def _existence(text: str, keywords: Sequence[Pattern]) -> str:
    missing = [keyword.source for keyword in keywords if not keyword.found(text)]
    return f"lacks {_listed(missing)}" if missing else ""


@_instruction("keywords:frequency", keyword=_PATTERN, frequency=_NUMBER, relation=_RELATION)
def _frequency(text: str, keyword: Pattern, frequency: Number, relation: str) -> str:
    stripped = Pattern(keyword.source.strip(), keyword.limits)
    number = stripped.count(text)
    return _related(number, relation, frequency, f"{quoted(stripped.source)} {counted(number, 'time')}")


@_instruction("keywords:forbidden_words", forbidden_words=_PATTERNS)
def _forbidden_words(text: str, forbidden_words: Sequence[Pattern]) -> str:
    present = [word.source for word in forbidden_words if word.found_as_word(text)]
    return f"contains {_listed(present)}" if present else ""


@_instruction("keywords:letter_frequency", letter=_CHARACTER, let_frequency=_NUMBER, let_relation=_RELATION)
def _letter_frequency(text: str, letter: str, let_frequency: Number, let_relation: str) -> str:
    number = text.lower().count(letter.lower())
    return _related(number, let_relation, let_frequency, f"{quoted(letter)} {counted(number, 'time')}")


@_instruction("language:response_language", language=_LANGUAGE)
def _response_language(text: str, language: str) -> str:
    answer = detected(text)
    return "" if answer in (None, language) else f"the language is {answer}, {language} wanted"


@_instruction("change_case:english_capital")
def _english_capital(text: str) -> str:
    return _response_language(text, "en") if text.isupper() else "not all letters are capitals"


@_instruction("change_case:english_lowercase")
def _english_lowercase(text: str) -> str:
    return _response_language(text, "en") if text.islower() else "not all letters are lower case"


def _word_count(text: str) -> int:
    if text.isascii():  # twenty times as fast
        return f" {text}".encode().translate(_WORDS).count(b" w")
    return len(_WORD.findall(text))


@_instruction("length_constraints:number_paragraphs", num_paragraphs=_NUMBER)
def _number_paragraphs(text: str, num_paragraphs: Number) -> str:
    paragraphs = _DIVIDER.split(text) if "***" in text else [text]
    if not all(map(str.strip, paragraphs[1:-1])):
        return f"a blank paragraph between two ***, exactly {num_paragraphs} paragraphs wanted"
    number = sum(1 for paragraph in paragraphs if paragraph.strip())
    return _related(number, EXACTLY, num_paragraphs, f"{counted(number, 'paragraph')} divided by ***")


@_instruction(
    "length_constraints:nth_paragraph_first_word", num_paragraphs=_NUMBER, nth_paragraph=_PLACE, first_word=_TEXT
)
def _nth_paragraph_first_word(text: str, num_paragraphs: Number, nth_paragraph: int, first_word: str) -> str:
    paragraphs = text.split("\n\n")
    number = sum(1 for paragraph in paragraphs if paragraph.strip())
    if number != num_paragraphs:
        return _related(number, EXACTLY, num_paragraphs, f"{counted(number, 'paragraph')} divided by two line breaks")
    paragraph = paragraphs[nth_paragraph - 1] if nth_paragraph <= number else ""
    token = next(iter(paragraph.split(None, 1)), "").lstrip("'").lstrip('"')
    # each character by itself, as a sigma at the end of a word has another form
    first = "".join(map(str.lower, _PUNCTUATION.split(token, maxsplit=1)[0]))
    wanted = first_word.lower()
    if first == wanted and paragraph.strip():
        return ""
    return f"paragraph {nth_paragraph} begins with {quoted(first)}, {quoted(wanted)} wanted"


def _brackets(line: str) -> int:
    # up to the last bracket that closes, each that opens before is closed
    return len(_BRACKETS.findall(line[: line.rfind("]") + 1]))


@_instruction("detectable_content:postscript", postscript_marker=_PATTERN)
def _postscript(text: str, postscript_marker: Pattern) -> str:
    marker = postscript_marker.source.strip()
    known = _POSTSCRIPTS.get(marker)
    lowered = text.lower()
    if known is not None:
        is_present = known.search(lowered) is not None
    else:
        is_present = Pattern(marker.lower(), postscript_marker.limits).found(lowered, flags=re.MULTILINE)
    return "" if is_present else f"no postscript {quoted(marker)}"


@_instruction("detectable_format:multiple_sections", section_spliter=_PATTERN, num_sections=_NUMBER)
def _multiple_sections(text: str, section_spliter: Pattern, num_sections: Number) -> str:
    splitter = section_spliter.source.strip()
    pattern = rf"\s?{splitter}\s?\d+\s?"
    if _SPLITTER.fullmatch(splitter):  # then re takes linear time
        number = len(compile_pattern(pattern).findall(text)) if splitter in text else 0
    else:
        number = Pattern(pattern, section_spliter.limits).count(text, ignore_case=False)
    noun = f"{counted(number, 'section')} marked {quoted(f'{splitter} 1')}"
    return _related(number, LEAST, num_sections, f"{noun} and so on")


@_instruction("detectable_format:json_format")
def _json_format(text: str) -> str:
    bare = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        bare = bare.removeprefix(fence)
    return "" if is_json(bare.removesuffix("```").strip()) else "not valid JSON"


def _is_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end - 2 and bool(line[start:end].lstrip("<").rstrip(">").strip())


@_instruction("combination:two_responses")
def _two_responses(text: str) -> str:
    pieces = [piece.strip() for piece in text.split("******")]
    if not all(pieces[1:-1]):
        return "a blank response between two ******"
    responses = list(filter(None, pieces))
    if len(responses) != 2:  # noqa: PLR2004  (the instruction's name)
        return f"{counted(len(responses), 'response')} divided by ******, 2 wanted"
    return "" if all(one != other for one, other in pairwise(responses)) else "two equal responses"


@_instruction(REPEAT_PROMPT, prompt_to_repeat=_TEXT)
def _repeat_prompt(text: str, prompt_to_repeat: str) -> str:
    wanted = prompt_to_repeat.strip()
    return "" if text.strip().lower().startswith(wanted.lower()) else f"does not begin with {quoted(wanted)}"


@_instruction("startend:end_checker", end_phrase=_TEXT)
def _end_checker(text: str, end_phrase: str) -> str:
    wanted = end_phrase.strip()
    return "" if text.strip().strip('"').lower().endswith(wanted.lower()) else f"does not end with {quoted(wanted)}"


@_instruction("punctuation:no_comma")
def _no_comma(text: str) -> str:
    number = text.count(",")
    return f"{counted(number, 'comma')}, none wanted" if number else ""


def _counting(number_of: Callable[[str], int], noun: str, bound: str, relation: str) -> Instruction:
    """Return the instruction to write so many of something; the relation is fixed, or the name of an argument."""
    singular, _, rest = noun.partition(" ")

    def shortfall(text: str, **given: Any) -> str:
        number = number_of(text)
        shown = f"{counted(number, singular)} {rest}".rstrip()
        return _related(number, given.get(relation, relation), given[bound], shown)

    return Instruction(shortfall, {bound: _NUMBER} | ({} if relation in (LEAST, EXACTLY) else {relation: _RELATION}))


def _holding(holds: Callable[[str], bool], why: str) -> Instruction:
    return Instruction(lambda text: "" if holds(text) else why, {})


INSTRUCTIONS |= {
    "length_constraints:number_sentences": _counting(
        lambda text: len(sentences(text)), "sentence", "num_sentences", "relation"
    ),
    "length_constraints:number_words": _counting(_word_count, "word", "num_words", "relation"),
    "change_case:capital_word_frequency": _counting(
        lambda text: sum(map(str.isupper, word_tokens(text))),
        "word in capitals",
        "capital_frequency",
        "capital_relation",
    ),
    "detectable_content:number_placeholders": _counting(
        lambda text: sum(map(_brackets, text.split("\n"))) if "[" in text else 0,
        "placeholder in [brackets]",
        "num_placeholders",
        LEAST,
    ),
    "detectable_format:number_bullet_lists": _counting(
        lambda text: sum(len(bullet.findall(text)) for mark, bullet in _BULLETS.items() if mark in text),
        "bullet",
        "num_bullets",
        EXACTLY,
    ),
    "detectable_format:number_highlighted_sections": _counting(
        lambda text: sum(bool(inner.strip()) for pattern in _HIGHLIGHTS for inner in pattern.findall(text)),
        "section *highlighted*",
        "num_highlights",
        LEAST,
    ),
    "detectable_format:constrained_response": _holding(
        lambda text: any(answer in text for answer in _ANSWERS), f"none of {_listed(_ANSWERS)}"
    ),
    "detectable_format:title": _holding(
        lambda text: "<<" in text and any(map(_is_title, text.split("\n"))), "no title in <<double angle brackets>>"
    ),
    "startend:quotation": _holding(
        lambda text: len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"',
        "not wrapped in double quotation marks",
    ),
}


@frozen
class InstructionTask:
    """What a text has to follow: the id, the instruction and the arguments of each."""

    instructions: tuple[tuple[str, Instruction, Mapping[str, Any]], ...]

    def shortfalls(self, text: str, *, loose: bool) -> list[str]:
        """Return what a text lacks of each instruction, ``""`` for one that it follows."""
        if not text.strip():
            return [_BLANK] * len(self.instructions)
        shortfalls = [self._shortfall(number, text) for number in range(len(self.instructions))]
        if loose and any(shortfalls):
            others = _loosened(text)
            for number, shortfall in enumerate(shortfalls):
                if shortfall and any(not self._shortfall(number, other) for other in others):
                    shortfalls[number] = ""
        return shortfalls

    def _shortfall(self, number: int, text: str) -> str:
        ident, instruction, arguments = self.instructions[number]
        try:
            shortfall = instruction.shortfall(text, **arguments)
        except (ValueError, TimeoutError, MemoryError) as error:  # of a pattern
            raise type(error)(f"{ident}: {error}") from None
        return shortfall and f"{ident.partition(':')[2]}: {shortfall}"


def _loosened(text: str) -> list[str]:
    first, last = text.find("\n"), text.rfind("\n")
    parts = (
        [text, text[first + 1 :].strip(), text[:last].strip(), text[first + 1 : last].strip()] if first >= 0 else [text]
    )
    texts = [*parts, *(part.replace("*", "") for part in parts)]
    return [other for other in dict.fromkeys(texts) if other != text and other.strip()]


def read_task(row: Mapping[str, Any], limits: Limits | None = None) -> InstructionTask:
    """Read the columns of a row."""
    idents = _items(row.get(IDS), IDS)
    if not 0 < len(idents) <= _MOST:
        raise ValueError(f"{IDS} has {len(idents):,} instructions" if idents else f"no {IDS} on this row")
    given = _items(row.get(KWARGS), KWARGS) or [None] * len(idents)
    if len(given) != len(idents):
        raise ValueError(f"{KWARGS} has {len(given):,} items for {len(idents):,} instructions")
    prompt = untyped(row.get(PROMPT))
    named = zip(idents, given, strict=True)
    return InstructionTask(tuple(_with_arguments(ident, values, prompt, limits) for ident, values in named))


def _items(value: Any, column: str) -> list[Any]:
    given = value = untyped(value)
    if isinstance(value, str):
        value = loads(value)
    if value is None:
        return []
    if value is NOT_JSON or not isinstance(value, list | tuple):
        raise ValueError(f"{column} is {quoted(source_text(given))}, not a list, or the JSON text of a list")
    return [untyped(item) for item in value]


def _with_arguments(
    ident: Any, values: Any, prompt: Any, limits: Limits | None
) -> tuple[str, Instruction, Mapping[str, Any]]:
    if not isinstance(ident, str):
        raise ValueError(f"{IDS} has {ident!r:.60} where an id is expected")
    instruction = INSTRUCTIONS.get(ident)
    if instruction is None:
        raise ValueError(f"unknown instruction {quoted(ident)}. {did_you_mean(ident, INSTRUCTIONS)}".rstrip())
    values = loads(values) if isinstance(values, str) else values
    if not isinstance(values, Mapping | None):
        raise ValueError(f"{KWARGS} of {ident} are no object")
    arguments = {}
    for name, kind in instruction.arguments.items():  # a column of structs has fields for those of all instructions
        value = untyped(None if values is None else values.get(name))
        value = prompt if value is None and name == _REPEATED and isinstance(prompt, str) else value
        place = f"{ident}: {KWARGS}.{name}"
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ValueError(f"{place} is missing")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not kind.fits(value):
            raise ValueError(f"{place} is not {kind.meaning}: {value!r:.60}")
        try:
            arguments[name] = kind.read(value, limits)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    return ident, instruction, arguments
