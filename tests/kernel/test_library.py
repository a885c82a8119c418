"""With the kernel every verdict, reason and error is what it is without; where it cannot be used, nothing else changes."""

import ctypes
import hashlib
import itertools
import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import sized
from typer.testing import CliRunner

import assay
from assay.checks.base import FactCheck
from assay.checks.registry import CHECKS
from assay.cli.main import app
from assay.errors import UsageError
from assay.kernel import library
from assay.kernel.facts import Fact
from assay.kernel.library import VARIABLE, _settled_words, _words, answers, kernel_state
from assay.kernel.programs import ASK, MOST_FACTS, MOST_KEYS, NULL, form, program_of
from assay.testing import assert_check_conforms, hostile_texts
from assay.thresholds import EVER, set_to

IS_HERE = "no kernel" not in kernel_state()
needs_kernel = pytest.mark.skipif(not IS_HERE, reason=kernel_state())

FACTS = (
    *(
        Fact("phrase", "refund", folds=True),
        Fact("phrase", "é"),
        Fact("phrase", "naïve", folds=True),
        Fact("phrase", ""),
    ),
    *(Fact("pattern", r"\b\d+(?:\.\d+)?\b"), Fact("pattern", r"\b\w{6,}\b"), Fact("pattern", r"[^\s]  +[^\s]|中$")),
    *(Fact("at_least", size=20), Fact("at_most", size=40), Fact("json"), Fact("object"), Fact("key", "a")),
    *(Fact("phrase", "k", folds=True, place="word"), Fact("pattern", r"(?i)(?:maybe|perhaps|might)\b")),
    *(Fact("pattern", r"(?s)\A[^z].*z  z.*中"), Fact("pattern", r"é{2}maybe \B"), Fact("pattern", r"maybe .{0,3}$")),
)


def _texts(number, seed):
    rng = random.Random(seed)
    pieces = (
        "",
        "Refund 12",
        "é" * 30,
        "x y " * 30,
        "abcdefghij",
        "z  z",
        '{"a": 1}',
        "{",
        "中",
        "İ",
        "\u212a",
        "maybe ",
    )
    drawn = ["".join(rng.choice(pieces) for _ in range(rng.randint(0, 9))) for _ in range(number)]
    return [None if rng.random() < 0.1 else text for text in [*drawn, *hostile_texts(number, seed)]]


def _expected(texts):
    return [None if text is None else [fact.holds(text) for fact in FACTS] for text in texts]


def _words_of(texts, facts=FACTS):
    frame = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)})
    return frame.select(_words(pl.col("text"), library._LOADED[0][0], program_of(facts))).to_series()


@needs_kernel
@pytest.mark.parametrize("seed", range(4))
def test_words_are_what_the_definitions_say(seed):
    texts = _texts(150, seed)
    for text, word, expected in zip(texts, _words_of(texts), _expected(texts), strict=True):
        if expected is None:
            assert word == NULL
        elif not word & ASK:
            assert [bool(word >> bit & 1) for bit in range(len(FACTS))] == expected, text
        else:
            assert set(text) & {"İ", "\u212a"} or "\\" in text


@needs_kernel
@pytest.mark.parametrize(
    "check", [check for check in CHECKS if issubclass(check, FactCheck)], ids=lambda check: check.type
)
@pytest.mark.parametrize("setting", "01")
def test_a_check_conforms_with_the_kernel_and_without(check, setting, monkeypatch):
    monkeypatch.setenv(VARIABLE, setting)
    assert assert_check_conforms(check, cases=200, seed=5) > 0


def test_no_other_characters_have_ascii_letters_in_lower_case():
    beyond = [chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    assert {one for one in beyond if not one.lower().isascii() and len(one.lower()) > 1} == {"İ"}
    assert {one for one in beyond if one.lower().isascii()} == {"\u212a"}


@needs_kernel
@pytest.mark.parametrize("place", ["anywhere", "word", "start"])
def test_phrases_in_lower_case_beside_a_dotted_i_and_a_kelvin_sign(place, monkeypatch):
    phrases = ("i", "ki", "x", "ix", "xi", "i\u0307", "k", "é", "ié", "ı", "\u0307")
    facts = [Fact("phrase", phrase, folds=True, place=place, strips=place == "start") for phrase in phrases]
    texts = ["".join(drawn) for size in range(5) for drawn in itertools.product("İ\u212axIiÉ ", repeat=size)][:3000]
    for fact in facts:  # each alone, for a word has one bit to ask
        words = _words_of(texts, (fact,))
        for text, word in zip(texts, words, strict=True):
            assert word & ASK or bool(word & 1) == fact.holds(text), (fact, text)
    facts = (*facts, Fact("phrase", "İ"), Fact("pattern", "(?i)k"), Fact("at_most", size=3))
    expected = [sum(fact.holds(text) << bit for bit, fact in enumerate(facts)) for text in texts]
    monkeypatch.setattr(library, "_word_of", lambda *_: pytest.fail("a row was decided by itself"))
    frame = pl.DataFrame({assay.names.TEXT: texts})
    assert frame.select(_settled_words(facts)(frame.schema)).to_series().to_list() == expected


@needs_kernel
@pytest.mark.parametrize("phrase", ["x", "aab", "abcab", "as an ai", "é\n", "a" * 40, "needle" * 30])
def test_a_phrase_is_found_at_each_place_of_texts_around_the_widths_of_vectors(phrase):
    folded = Fact("phrase", phrase, folds=phrase.isascii())
    facts = tuple({folded: 0, Fact("phrase", phrase): 1, Fact("at_least", size=150): 2})
    sizes = (0, 1, 31, 32, 33, 127, 128, 129, 160, 255, 256, 290)
    fillers = ("-", phrase[:-1] or "y", "É", phrase[::-1])
    before = ["".join(itertools.islice(itertools.cycle(filler), size)) for filler in fillers for size in sizes]
    texts = [text + middle + text[:70] for text in before for middle in (phrase, phrase.upper(), phrase[1:], "")]
    words = _words_of(texts, facts).to_list()
    assert [word for word in words if word & ASK] == []
    assert words == [library._word_of(text, facts) for text in texts]


PAIRED = (
    r"\b[A-Z]{2,}\b",
    r"[^\s]  +[^\s]",
    r"\b\d{1,3}(?:,\d{3})+\b",
    r"[A-Z][a-z]+ [A-Z]",
    "(?i)[a-e] [k-m]",
    "[à-ý]{2}[a-z]",
)


@needs_kernel
@pytest.mark.parametrize("pattern", PAIRED)
def test_a_pair_of_bytes_is_found_at_each_place_of_texts_around_the_widths_of_vectors(pattern):
    facts = (Fact("pattern", pattern),)
    assert form(facts[0]).pair
    pieces = ("AB ", "x  y", " 1,234 ", " \u0661,\u0662\u0663\u0664", "Ab C", "B \u212a", "éà", "àéb", "é", "")
    before = [filler * size for filler in ("a", "é", "A b") for size in (*range(20), 31, 32, 33, 63, 64, 65, 127, 128)]
    texts = [text + piece + text[:40] for text in before for piece in pieces]
    assert _words_of(texts, facts).to_list() == [library._word_of(text, facts) for text in texts]


@needs_kernel
def test_slices_chunks_and_single_rows_give_the_same_words():
    texts = _texts(300, 9)
    whole, frame = _words_of(texts), pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)})
    expr = _words(pl.col("text"), library._LOADED[0][0], program_of(FACTS))
    rng = random.Random(1)
    for _ in range(60):
        start, size = rng.randrange(600), rng.randrange(60)
        assert frame.slice(start, size).select(expr).to_series().equals(whole.slice(start, size))
        cuts = [0, *sorted(rng.sample(range(600), 3)), 600]
        pieces = [frame.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
        assert pl.concat(pieces, rechunk=False).select(expr).to_series().equals(whole)
    assert frame.lazy().select(expr).collect(engine="streaming").to_series().equals(whole)
    assert frame.clear().select(expr).height == 0


@needs_kernel
@pytest.mark.parametrize("rows", [0, 1, EVER])
def test_the_definitions_decide_where_the_kernel_does_not(rows):
    texts = _texts(60, 3)
    frame = pl.DataFrame({assay.names.TEXT: pl.Series(texts, dtype=pl.String)})
    with set_to(kernel_rows=rows):
        words = frame.select(_settled_words(FACTS)(frame.schema)).to_series()
    expected = [None if e is None else sum(is_so << bit for bit, is_so in enumerate(e)) for e in _expected(texts)]
    assert words.to_list() == expected


SPEC = {
    "checks": [
        {"type": "contains", "value": "refund"},
        {"type": "not_contains", "value": "é", "negate": True},
        {"type": "regex", "pattern": r"\d\d", "on": [{"tag": "a"}], "threshold": 0.5},
        {"type": "json_keys", "requiredKeys": ["a", "b"], "when": {"check": {"type": "json_valid"}}},
        {"type": "json_valid"},
        {"type": "contains_all", "values": ["x", "y", "中"], "score": "share"},
        {"type": "starts_with", "value": "Refund", "gate": True},
    ]
}


@needs_kernel
def test_results_are_equal_with_and_without(monkeypatch):
    rows = pl.DataFrame(
        {"completion": [*_texts(400, 4), "<a>12 \u212a</a> refund", '{"a": 1, "b": 2}', '{"\\u0061": 1, "b": 2}']}
    )
    results = []
    for setting in "01":
        monkeypatch.setenv(VARIABLE, setting)
        plan = assay.compile(SPEC, rows)
        results += [plan.score(rows), pl.concat([plan.score(rows[at : at + 1]) for at in range(0, 803, 100)])]
    assert results[0].equals(results[2])
    assert results[1].equals(results[3])


@needs_kernel
def test_more_facts_than_a_word_has_bits_take_several_words(monkeypatch):
    many = [{"type": "contains", "value": f"p{at}"} for at in range(MOST_FACTS + 5)]
    many += [{"type": "json_keys", "requiredKeys": [f"k{at}" for at in range(first, first + 10)]} for first in (0, 10)]
    rows = pl.DataFrame(
        {"completion": ["p3 p64 p65", "p60", '{"k1": 2}', str({f"k{at}": 1 for at in range(20)}).replace("'", '"')]}
    )
    results = []
    for setting in "01":
        monkeypatch.setenv(VARIABLE, setting)
        results.append(assay.score(rows, {"checks": many}))
    assert results[0].equals(results[1])


PROGRAMS = """
import threading
import polars as pl
from test_library import _words_of
from assay.kernel import library
from assay.kernel.facts import Fact
def facts(at):
    return Fact("phrase", str(at)), Fact("pattern", f"[aeiou][^aeiou {at % 7}]+[aeiouö]"), Fact("at_least", size=at)
texts = ["299", "a3e i5ö", "", None, "é" * 150] * 20
expected = [[library.NULL if text is None else library._word_of(text, facts(at)) for text in texts] for at in range(600)]
wrong = []
def ask(first):
    for at in (*range(first, 600), *range(first)):
        if _words_of(texts, facts(at)).to_list() != expected[at]:
            wrong.append(at)
def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
ask(0)
before = memory()
threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 10, 10, 200, 400, 400)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(len(wrong), memory() - before < 100)
"""


@needs_kernel
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_more_programs_than_are_kept_are_read_again_and_their_memory_is_given_back(tmp_path):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["0", "True"]), done.stderr[-2000:]


DAMAGED = """
import ctypes, random, sys
import polars as pl
import assay
from test_library import FACTS, _damaged
from assay.kernel import library
from assay.kernel.library import _words, kernel_state
from assay.kernel.programs import ASK, program_of
assert "no kernel" not in kernel_state()
path, kernel = library._LOADED[0]
frame = pl.DataFrame({"text": ["Refund 12", '{"a":1}', "x" * 900 + " 1. ", None, "é中😀 " * 50] * 50})
rng, stopped, other = random.Random(3), 0, 0
for _ in range(int(sys.argv[1])):
    kernel.assay_kernel_restart()
    words = frame.select(_words(pl.col("text"), path, _damaged(program_of(FACTS), rng))).to_series()
    if kernel.assay_kernel_stopped():
        stopped += 1
        assert (words == ASK).all()
    else:
        other += 1
print(stopped, other)
"""


def _damaged(program, rng):
    """A program with changed or missing bytes, under its own digest."""
    body = bytearray(program[28:])
    for _ in range(rng.choice((1, 1, 4, 50))):
        body[rng.randrange(len(body)) if rng.random() < 0.5 else rng.randrange(600)] = rng.randrange(256)
    body = body[: rng.randrange(1, len(body))] if rng.random() < 0.2 else body
    return program[:8] + hashlib.sha256(body).digest()[:16] + struct.pack("<I", len(body)) + bytes(body)


@needs_kernel
def test_damaged_programs_end_in_rows_that_the_definitions_decide(tmp_path):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", DAMAGED, sized("200", "60")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    stopped, other = map(int, done.stdout.split())
    assert stopped > sized(100, 30)
    assert other > 0


STOPPED = """
import warnings
import polars as pl
import assay
from assay.kernel import library
rows = pl.DataFrame({"completion": ["a refund", "no", None, "12"] * 3000})
spec = {"checks": [{"type": "contains", "value": "refund"}, {"type": "regex", "pattern": "[0-9]"}]}
before = assay.compile(spec, rows).score(rows)
library.program_of = lambda facts: b"ASSAYPRG" + bytes(16) + b"\\xff" * 40
plan = assay.compile(spec, rows)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    after = plan.lazy(rows.lazy()).collect(engine="streaming")
    again = plan.score(rows)
print(before.equals(after), before.equals(again), len([w for w in caught if "stopped" in str(w.message)]))
"""


@needs_kernel
def test_a_run_whose_kernel_stops_ends_with_the_same_rewards(tmp_path):
    env = {**os.environ, "POLARS_MAX_THREADS": "4"}
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True", "1"]), done.stderr[-2000:]


class _Other:
    """A library of another version, or for another processor."""

    def __init__(self, supported=1, abi=library.ABI, stopped=0):
        self.assay_kernel_supported, self.assay_kernel_abi = (lambda: supported), (lambda: abi)
        self.assay_kernel_stopped = lambda: stopped


@needs_kernel
@pytest.mark.parametrize(
    ("other", "why"),
    [
        (_Other(supported=0), "needs AVX2"),
        (_Other(abi=library.ABI + 1), "of another version"),
        (_Other(stopped=1), "failed its self-test"),
    ],
)
def test_a_library_that_is_not_as_expected_is_not_used(other, why, monkeypatch):
    rows = pl.DataFrame({"completion": _texts(40, 6)})
    expected = assay.score(rows, SPEC)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: other)
    with pytest.raises(library._UnusableError, match=why) as caught:
        library._loaded()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(library, "_loading_problem", lambda: str(caught.value))
    library._why_not.cache_clear()
    assert kernel_state() == f"no kernel: {why}"
    assert assay.score(rows, SPEC).equals(expected)
    monkeypatch.undo()
    library._why_not.cache_clear()
    assert kernel_state() == "kernel 2"


@needs_kernel
def test_a_library_that_polars_refuses_or_that_answers_wrongly_is_not_used(monkeypatch):
    monkeypatch.setattr(library, "_SYMBOL", "no_such_function")
    with pytest.raises(library._UnusableError, match="Polars refused it"):
        library._loaded()
    monkeypatch.undo()
    monkeypatch.setattr(library, "_EXPECTED", (library.NULL, *[0] * (len(library._TEXTS) - 1)))
    with pytest.raises(library._UnusableError, match="failed its self-test"):
        library._loaded()


def test_the_self_test_expects_what_the_definitions_answer():
    (null, *texts), (of_null, *words) = library._TEXTS, library._EXPECTED
    assert (null, of_null) == (None, library.NULL)
    assert words == [library._word_of(text, library._TRIED) for text in texts]


def test_without_the_kernel_everything_is_there(monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    assert kernel_state() == "no kernel: off by ASSAY_KERNEL"
    assert not answers((Fact("json"),))
    assert assay.score([{"completion": "a refund"}], SPEC)["error"].to_list() == [None]


@needs_kernel
def test_explain_says_how_the_kernel_answers(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    checks = [
        {"type": "contains", "value": "refund"},
        {"type": "contains", "value": "naïve"},
        {"type": "regex", "pattern": "[0-9]x"},
        {"type": "json_keys", "keys": ["a"]},
        {"type": "min_length", "value": 3},
        {"type": "regex", "pattern": r"refund(?! policy)"},
        {"type": "json_keys", "keys": [f"k{at}" for at in range(MOST_KEYS + 1)]},
        {"type": "contains_any", "values": [f"p{at}" for at in range(MOST_FACTS + 1)]},
    ]
    (tmp_path / "x.json").write_text(json.dumps({"checks": checks}))
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "x.json"), "--json"])
    *answered, other, keys, phrases = (check["runs_as"] for check in json.loads(result.stdout)[0]["checks"])
    assert answered == [
        *("kernel: phrase", "kernel: automaton of 7 states", "kernel: automaton of 4 states", "kernel: JSON"),
        "kernel: length",
    ]
    assert other.startswith("linear engine")
    assert other.endswith("(no kernel: look-around)")
    assert keys.endswith("(no kernel: more than 16 keys)")
    assert phrases.endswith("(no kernel: more than 61 questions)")
    assert CliRunner().invoke(app, ["--version"]).stdout.endswith(", kernel 2)\n")


def test_a_kernel_that_is_demanded_and_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(library, "_loading_problem", lambda: "not installed")
    library._why_not.cache_clear()
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(UsageError, match="ASSAY_KERNEL=1: there is no kernel to use: not installed"):
        kernel_state()
    monkeypatch.delenv(VARIABLE)
    assert kernel_state() == "no kernel: not installed"
    library._why_not.cache_clear()
