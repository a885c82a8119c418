"""Facts as a program of the kernel: bytes that say which bit of a row's word answers which fact."""

import hashlib
import re
import struct
import sys
from collections.abc import Sequence
from itertools import chain
from operator import mul, sub
from re import _constants as sre  # type: ignore[attr-defined]
from string import ascii_lowercase
from typing import Any

from assay.errors import encodable
from assay.expressions.regex.compiled import parsed
from assay.expressions.regex.trees.charsets import accepted, is_word_character
from assay.expressions.regex.trees.nodes import NotLinearError
from assay.kernel.automata import (
    MOST_CLASSES,
    Automaton,
    Classes,
    Needed,
    NoAutomatonError,
    Stops,
    automaton_of,
    joint_classes,
    literal,
    often,
)
from assay.kernel.facts import Fact
from assay.system.cache import cached_within

MOST_FACTS = 61
MOST_KEYS = 16
"""Keys that a program may have: the kernel refuses more."""

ASK, NULL = 1 << 62, 1 << 63
"""Bits of a row that the definitions decide, and of one without a text."""

_MARK = b"ASSAYPRG"
_NO_BIT = 62
_END = 0x110000
_PAGE = 128
_LONGEST_PHRASE = 10_000
_LONGEST_FOLDED = 64
_SIZES = 1 << 32
_CACHED = 8_000_000
"""Bytes of automata that are kept."""


def program_of(facts: Sequence[Fact]) -> bytes:
    """Return the program in which the fact at each place has the bit of that number; each of them has a ``form``."""
    bits = {fact: bit for bit, fact in enumerate(facts)}
    folded = [fact for fact in facts if fact.folds]
    # U+0130 becomes an i and a dot, so that an i may end a phrase there, and what stands beside a word is another character
    asks_dotted = any(fact.place == "word" or fact.value.endswith("i") or "\u0307" in fact.value for fact in folded)
    asks_kelvin = any("k" in fact.value for fact in folded)
    forms = [(form(fact), bit) for fact, bit in bits.items()]
    automata = [(automaton, bit) for automaton, bit in forms if isinstance(automaton, Automaton)]
    reads_json = any(answer == "JSON" for answer, _ in forms)
    is_json = [bits.get(Fact(kind), _NO_BIT) for kind in ("json", "object")]
    body = _numbers(reads_json, *is_json, sys.get_int_max_str_digits(), asks_dotted, asks_kelvin)
    body += _listed([_phrase(phrase, bit) for phrase, bit in forms if isinstance(phrase, Needed)])
    sizes = [(fact, bit) for fact, bit in bits.items() if form(fact) == "length"]
    body += _listed([_numbers(fact.kind == "at_least", fact.size, bit) for fact, bit in sizes])
    keys = [(fact.value.encode(), bit) for fact, bit in bits.items() if fact.kind == "key"]
    body += _listed([_numbers(len(key), bit) + _padded(key) for key, bit in keys])
    body += _listed([_written(automaton, bit) for automaton, bit in automata])
    dense = [automaton.classes for automaton, _ in automata if automaton.is_dense]
    joint, within = joint_classes(dense)
    if dense and joint.number <= MOST_CLASSES:
        body += _numbers(joint.number) + _classifier(joint) + b"".join(_padded(bytes(own)) for own in within)
    else:
        body += _numbers(0)
    return _MARK + hashlib.sha256(body).digest()[:16] + _numbers(len(body)) + body


def form(fact: Fact) -> Automaton | Needed | str:
    """Return what the kernel makes of a fact: an automaton, bytes to find, or how it answers without.

    Raises:
        NoAutomatonError: It makes nothing of it.
    """
    if fact.value != encodable(fact.value):
        raise NoAutomatonError("lone surrogate")
    if fact.kind in ("json", "object", "key"):
        return "JSON"
    if fact.kind in ("at_least", "at_most"):
        if fact.size >= _SIZES:
            raise NoAutomatonError("longer than any text")
        return "length"
    if len(fact.value) > _LONGEST_PHRASE:
        raise NoAutomatonError("phrase too long")
    answer = _searched(fact)
    if isinstance(answer, str):
        raise NoAutomatonError(answer)
    return answer


def _size(answer: Automaton | Needed | str, *_: Fact) -> int:
    return 40 * sum(map(len, answer.rows)) + 2_000 if isinstance(answer, Automaton) else 200


@cached_within(_CACHED, _size)
def _searched(fact: Fact) -> Automaton | Needed | str:
    is_phrase = fact.kind == "phrase"
    if is_phrase and fact.place == "anywhere" and (not fact.folds or fact.value.isascii()):
        want = fact.value.encode()
        return Needed(want, bytes(0x20 * (fact.folds and chr(byte) in ascii_lowercase) for byte in want))
    try:
        tree = parsed(_phrase_pattern(fact) if is_phrase else fact.value, 0)
        flags = tree.state.flags
        if is_phrase:
            return automaton_of(tree, flags)
        return literal([*tree], flags) or _worthwhile(automaton_of(tree, flags), [*tree], flags)
    except NotLinearError as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"


_EDGES = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING), (sre.AT_END, sre.AT_END_STRING)


def _worthwhile(automaton: Automaton, items: Sequence[tuple[Any, Any]], flags: int) -> Automaton:
    """Return an automaton that does not take longer than the columns: their engine begins at the end, or in the middle of a match."""
    if automaton.is_dense and automaton.needs:
        raise NoAutomatonError("columns look first for what each match contains")
    begins, ends = (items and items[at][0] is sre.AT and items[at][1] in _EDGES[at] for at in (0, -1))
    if ends and not begins and not automaton.reach and not flags & sre.SRE_FLAG_MULTILINE:
        raise NoAutomatonError("columns begin at the end of the text")
    return automaton


def _phrase_pattern(fact: Fact) -> str:
    """Return a phrase as a pattern: each character stands for those that are compared as it."""
    phrase = fact.value
    if len(phrase) > _LONGEST_FOLDED:
        raise NoAutomatonError("phrase too long")
    if fact.folds and "Σ" in phrase.upper():
        raise NoAutomatonError("its case depends on its neighbours")
    alike = [_lowered_to(character) if fact.folds else character for character in phrase]
    if not all(alike):
        raise NoAutomatonError("no text has it")
    pattern = "".join(f"[{re.escape(characters)}]" for characters in alike)
    if fact.place == "word":
        before, behind = (r"\b" if is_word_character(phrase[at]) else r"\B" for at in (0, -1))
        return before + pattern + behind
    spaces = r"\s*" if fact.strips else ""
    return rf"\A{spaces}{pattern}" if fact.place == "start" else pattern


def _lowered_to(character: str) -> str:
    """Return the characters whose lower case is one; all of them match it under IGNORECASE."""
    ranges = accepted(sre.LITERAL, ord(character), sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_UNICODE)
    codes = (chr(code) for first, last in ranges for code in range(first, last + 1))
    return "".join(code for code in codes if code.lower() == character)


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _listed(entries: Sequence[bytes]) -> bytes:
    return _numbers(len(entries)) + b"".join(entries)


def _cells(values: Sequence[int]) -> bytes:
    return _padded(struct.pack(f"<{len(values)}H", *values))


def _phrase(phrase: Needed, bit: int) -> bytes:
    size = len(phrase.want)
    rarest = sorted(range(size), key=lambda at: often(phrase.want[at]))
    one, two = (rarest * 2 or [0, 0])[:2]
    third = next((at for at in rarest if phrase.want[at] not in (phrase.want[one], phrase.want[two])), one)
    return _numbers(size, bit, one, two, third) + _padded(phrase.want) + _padded(phrase.mask)


def _classifier(classes: Classes) -> bytes:
    starts, byte_of = classes.starts, [bytes((each,)) for each in range(classes.number)]
    *before, last = map(byte_of.__getitem__, classes.class_of)
    cells = b"".join(map(mul, before, map(sub, starts[1:], starts)))
    cells += last * (-len(cells) % _PAGE)
    pages = [cells[at : at + _PAGE] for at in range(0, len(cells), _PAGE)]
    number_of = {page: number for number, page in enumerate(dict.fromkeys((*pages, last * _PAGE)))}
    numbers = [*map(number_of.__getitem__, pages)]
    numbers += [number_of[last * _PAGE]] * (_END // _PAGE - len(pages))  # all code points behind have the last class
    return _numbers(len(number_of)) + struct.pack(f"<{len(numbers)}H", *numbers) + b"".join(number_of)


def _written(automaton: Automaton, bit: int) -> bytes:
    body = _numbers(bit, automaton.states, automaton.classes.number, automaton.start, automaton.is_dense)
    body += _listed([_phrase(phrase, bit) for phrase in automaton.needs]) + _numbers(automaton.reach)
    body += _classifier(automaton.classes) + _cells(automaton.within) + _cells([*chain(*automaton.rows)])
    body += _padded(bytes(automaton.at_end)) + _listed([*map(_stops, automaton.stops)])
    return body + _padded(bytes(automaton.stops_of)) + _listed([*map(_stops, automaton.pair)])


def _stops(stops: Stops) -> bytes:
    firsts, spans = bytes(first for first, _ in stops.ranges), bytes(last - first for first, last in stops.ranges)
    return firsts.ljust(4, b"\0") + spans.ljust(4, b"\0") + _numbers(len(stops.ranges), stops.state)
