"""The kernel's library: whether it can be used, and the columns that it makes.

Nothing needs it. Without it, or with one that is not as expected, the checks are columns as always, and no verdict differs.
"""

import ctypes
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException
from polars.plugins import register_plugin_function

from assay.errors import AssayWarning, UsageError
from assay.expressions.shared_columns import SharedColumn, text
from assay.kernel.automata import Automaton, NoAutomatonError
from assay.kernel.facts import Fact, FactLane
from assay.kernel.programs import ASK, MOST_FACTS, MOST_KEYS, NULL, form, program_of
from assay.thresholds import THRESHOLDS

VARIABLE = "ASSAY_KERNEL"
"""0 switches the kernel off; 1 makes its absence an error, for tests and benchmarks."""

ABI = 2
_SYMBOL = "facts"
_LOADED: list[tuple[Path, ctypes.CDLL]] = []

WORDS = "facts-"
"""Beginning of the names of the lanes of words."""


def kernel_state() -> str:
    """Return ``kernel 2``, or ``no kernel`` with the reason.

    Raises:
        UsageError: The environment demands a kernel that cannot be used.
    """
    why = _why_not(os.environ.get(VARIABLE, ""))
    return f"no kernel: {why}" if why else f"kernel {ABI}"


def is_on() -> bool:
    """Return whether plans are made with the kernel."""
    return not _why_not(os.environ.get(VARIABLE, ""))


@cache
def _why_not(setting: str) -> str:
    if setting == "0":
        return f"off by {VARIABLE}"
    why = _loading_problem()
    if why and setting == "1":
        raise UsageError(f"{VARIABLE}=1: there is no kernel to use: {why}.", "Unset it to score without the kernel.")
    return why


class _UnusableError(Exception):
    """The kernel cannot be used; the message says why, in a few words."""


@cache
def _loading_problem() -> str:
    try:
        _LOADED.append(_loaded())
    except _UnusableError as error:
        return str(error)
    return ""


def _loaded() -> tuple[Path, ctypes.CDLL]:
    try:
        path = Path(import_module("assay_kernel").LIBRARY)
    except ImportError:
        raise _UnusableError("not installed") from None
    try:
        library = ctypes.CDLL(str(path))
        is_supported, abi = library.assay_kernel_supported(), library.assay_kernel_abi()
    except (OSError, AttributeError, ValueError) as error:  # ValueError: a path that the locale cannot encode
        raise _UnusableError(f"cannot be loaded: {type(error).__name__}") from None
    if not is_supported:
        raise _UnusableError("needs AVX2")
    if abi != ABI:
        raise _UnusableError("of another version")
    try:
        is_right = _self_test(path)
    except (Exception, PanicException):  # noqa: BLE001  (whatever a plugin makes another version of Polars do)
        raise _UnusableError("Polars refused it") from None
    if not is_right or library.assay_kernel_stopped():
        raise _UnusableError("failed its self-test")
    return path, library


# NOTE: none of these patterns takes the tables of Unicode, which are slow to make
_PATTERNS = (r"[0-9]+\.[0-9]+", r"(?m)^- [a-zö]+$", "[a-f]ox|dog", "[aeiou][^aeiou ]+[aeiouö]", r"\A[^a-z]?[a-z]+ ")
_TRIED = (
    *(Fact("phrase", "refund", folds=True), Fact("phrase", "Ä"), Fact("phrase", "i", folds=True)),
    *(Fact("pattern", pattern) for pattern in _PATTERNS),
    *(Fact("at_least", size=12), Fact("at_most", size=13), Fact("json"), Fact("object"), Fact("key", "a")),
)
_ASKING = "İ refund"
_TEXTS = (
    *(None, "", "a", "REFUND", "a refund of 12.50", "Ä", "das Wort gilt", "Wörter", "- eins\n- zwei\n", "- ", "{}"),
    *('{"a": 1}', '{"b": {"a": 1}}', "[1, 2", '{"\\u0061": 1}', "the quick brown fox 7"),
    *("é" * 12, "x" * 70 + "DOG", _ASKING, "\u212a"),
)
_EXPECTED = (
    *(NULL, 0x200, 0x200, 0x201, 0x1C9, 0x202, 0x384, 0x200, 0x114, 0x200, 0xE00, 0x1E00, 0xD00, 0x200, 0x1F00, 0x1A4),
    *(0x300, 0x100, 0x245, 0x200),
)
"""What the definitions answer: to ask them takes as long as the kernel takes for a thousand texts."""


def _self_test(path: Path) -> bool:
    words = pl.DataFrame({"text": pl.Series(_TEXTS, dtype=pl.String)}).select_seq(
        _words(pl.col("text"), path, program_of(_TRIED))
    )
    answered = words.to_series().to_list()
    are_right = (word == right or word & ASK for word, right in zip(answered, _EXPECTED, strict=True))
    return all(are_right) and answered[0] == NULL and bool(answered[_TEXTS.index(_ASKING)] & ASK)


def _word_of(value: str, facts: Sequence[Fact]) -> int:
    return sum(fact.holds(value) << bit for bit, fact in enumerate(facts))


def _words(texts: pl.Expr, path: Path, program: bytes) -> pl.Expr:
    return register_plugin_function(
        plugin_path=path,
        function_name=_SYMBOL,
        args=[texts],
        kwargs={"program": program},
        is_elementwise=True,
        use_abs_path=True,
    )


@lru_cache(4096)
def why_no_fact(facts: tuple[Fact, ...]) -> str:
    """Return why the kernel cannot answer facts, in a few words; ``""`` if it can."""
    if _keys(facts) > MOST_KEYS:
        return f"more than {MOST_KEYS} keys"
    if len(facts) > MOST_FACTS:
        return f"more than {MOST_FACTS} questions"
    try:
        for fact in facts:
            form(fact)
    except NoAutomatonError as error:
        return str(error)
    return ""


def forms(facts: Iterable[Fact]) -> str:
    """Return how the kernel answers facts, in a few words."""
    words = []
    for fact in facts:
        answer = form(fact)
        phrase = f"automaton of {answer.states} states" if isinstance(answer, Automaton) else "phrase"
        words.append(answer if isinstance(answer, str) else phrase)
    return "JSON" if "JSON" in words else ", ".join(dict.fromkeys(words))


def answers(facts: tuple[Fact, ...]) -> bool:
    """Return whether the kernel answers these facts, of which there is at least one."""
    return bool(facts) and is_on() and not why_no_fact(facts)


def with_words(lanes: Iterable[SharedColumn]) -> list[SharedColumn]:
    """Let the kernel answer the facts among the lanes about one text: a lane of words for as many as a word has bits."""
    given = [*lanes]
    facts = sorted({lane.fact for lane in given if isinstance(lane, FactLane)}, key=repr)
    answered: dict[Fact, SharedColumn] = {}
    for group in _in_groups(facts):
        # NOTE: the name must tell the facts, as plans on the same rows share columns by name
        words = SharedColumn(f"{WORDS}{sha256(repr(group).encode()).hexdigest()[:16]}", _settled_words(group))
        answered |= {fact: replace(fact.lane, build=_bit(words, bit), after=(words,)) for bit, fact in enumerate(group)}
    return [answered[lane.fact] if isinstance(lane, FactLane) else lane for lane in given]


def _in_groups(facts: Sequence[Fact]) -> list[tuple[Fact, ...]]:
    groups: list[list[Fact]] = []
    for fact in facts:
        is_key = fact.kind == "key"
        if not groups or len(groups[-1]) == MOST_FACTS or (is_key and _keys(groups[-1]) == MOST_KEYS):
            groups.append([])
        groups[-1].append(fact)
    return [*map(tuple, groups)]


def _keys(facts: Iterable[Fact]) -> int:
    return sum(fact.kind == "key" for fact in facts)


def _bit(words: SharedColumn, bit: int) -> Callable[[pl.Schema], pl.Expr]:
    return lambda _: (words.col & pl.lit(1 << bit, dtype=pl.UInt64)) != 0


_IN_ASCII = {"\u0130": "i\u0307", "\u212a": "k"}
"""The lower case of İ and the Kelvin sign: of the characters beyond ASCII, only theirs has ASCII letters."""


def _settled_words(facts: tuple[Fact, ...]) -> Callable[[pl.Schema], pl.Expr]:
    """Return the words of texts: null without a text, and by the definitions where the kernel is not certain."""
    ((path, library),) = _LOADED
    program = program_of(facts)
    folded = sum(fact.folds << bit for bit, fact in enumerate(facts))

    def settled(columns: Sequence[pl.Series]) -> pl.Series:
        words, texts = columns
        if len(texts) < THRESHOLDS.kernel_rows:
            words = pl.Series(words.name, [ASK], dtype=pl.UInt64).new_from_index(0, len(words))
        highest = words.max()
        if not isinstance(highest, int) or highest < ASK:
            return words
        if library.assay_kernel_stopped():
            _warn_stopped()
        asked = (words >= ASK) & texts.is_not_null()
        if asked.any():
            words = words.scatter(asked.arg_true(), decided(words.filter(asked), texts.filter(asked)))
        return words.set(texts.is_null(), None)

    def decided(words: pl.Series, texts: pl.Series) -> pl.Series:
        if folded and len(texts) >= THRESHOLDS.kernel_rows:
            # a text has the lower case of one with İ and the Kelvin sign in lower case, of which the kernel is certain
            plain = texts.str.replace_many(_IN_ASCII)
            again = plain.to_frame().select_seq(_words(pl.col(plain.name), path, program)).to_series()
            words = (words & (ASK - 1 - folded)) | (again & (ASK | folded))
        rest = words >= ASK
        values = [_word_of(value, facts) for value in texts.filter(rest).to_list()]
        return words.scatter(rest.arg_true(), pl.Series(values, dtype=pl.UInt64)) if values else words

    def build(_: pl.Schema) -> pl.Expr:
        arguments = [_words(text(), path, program), text()]
        return pl.map_batches(arguments, settled, return_dtype=pl.UInt64, is_elementwise=True)

    return build


@cache
def _warn_stopped() -> None:
    fact = "The kernel stopped: one of its safety checks failed. Python decides the rows instead; no verdict differs."
    warnings.warn(AssayWarning(fact), stacklevel=2)
