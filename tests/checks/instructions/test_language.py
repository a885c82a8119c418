"""The language of a text: what langdetect finds with seed 0, in every thread and without touching what the process shares."""

import threading

import langdetect
import pytest
from cases import sized, some
from langdetect import DetectorFactory, LangDetectException

from assay import load_verifier
from assay.checks.instructions import extras
from assay.compiling.plan import Plan
from assay.errors import SpecError
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms, hostile_texts
from assay.values.rows import from_rows

TEXTS = (
    *(
        *("Where is the station?", "Wo ist der Bahnhof?", "Où est la gare ?", "¿Dónde está la estación?"),
        *("駅はどこですか", "42"),
    ),
    *(
        *("Gdzie jest dworzec?", "hello", "ok", "Dov'è la stazione?", "где вокзал?"),
        *("a b c d e f", "I am. Ich bin. Je suis."),
    ),
)


def by_the_package(text, monkeypatch):
    monkeypatch.setattr(DetectorFactory, "seed", 0)
    try:
        return langdetect.detect(text)
    except LangDetectException:
        return None


def test_it_is_what_langdetect_finds_with_seed_0(monkeypatch):
    extras.detected.cache_clear()
    mixed = [f"{one} {other}" for one in TEXTS for other in TEXTS][:: sized(1, 20)]
    answers = set()
    for text in [*TEXTS, *mixed, *hostile_texts(sized(300, 12), seed=1)]:
        answers.add(extras.detected(text))
        assert extras.detected(text) == by_the_package(text, monkeypatch), text
    assert len(answers) > 8
    assert None in answers


@pytest.mark.parametrize(
    "unit", some(["Wo ist der Bahnhof? ", "x", "http://example.com/a ", "a@example.com ", "où\u0301 "])
)
def test_of_a_long_text_it_reads_as_much_as_langdetect_does(unit, monkeypatch):
    text = unit * (100_000 // len(unit)) + " Where is the station? " * 1_000
    assert extras.detected(text) == by_the_package(text, monkeypatch)


def test_threads_agree_and_the_seed_of_the_process_stays(monkeypatch):
    monkeypatch.setattr(DetectorFactory, "seed", None)
    texts = [f"{one} {other} {at}" for at, one in enumerate(TEXTS) for other in TEXTS[:: sized(1, 6)]]
    extras.detected.cache_clear()
    expected = [*map(extras.detected, texts)]
    extras.detected.cache_clear()
    extras._detectors.cache_clear()
    answers = [[], []]
    started = threading.Barrier(2)

    def run(at):
        started.wait()
        # without the memo, which the other thread fills
        answers[at] += [extras.detected.__wrapped__(text) for text in texts]

    threads = [threading.Thread(target=run, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected, expected]
    assert DetectorFactory.seed is None


def test_the_languages_are_those_of_the_package():
    assert sorted(extras._detectors().get_lang_list()) == sorted(extras.LANGUAGES)


def test_golds_come_from_specs_and_columns():
    rows = [
        {"completion": text, "code": code} for text in (*TEXTS[:5], "42", None) for code in ("en", "de", "xx", None)
    ]
    for gold in ("de", ["de", "fr"], {"column": "code"}):
        one = load_verifier({"checks": [{"type": "language", "is": gold}]})
        assert_plan_conforms([one], rows)
    results = score_rows(rows, [one])
    assert [result["reward"] for result in results[:4]] == [1.0, 0.0, None, None]
    assert results[1]["feedback"] == "language: the language is en, de wanted"
    assert results[2]["error"].startswith('gold cannot be used: code is "xx": unknown language "xx"')
    assert results[3]["error"] == "gold is missing: code"
    frame = from_rows(rows)
    assert Plan((one,), tuple(frame.schema.items())).score(frame)["reward"].to_list() == [
        result["reward"] for result in results
    ]


def test_an_unknown_language_is_a_problem_of_the_spec():
    with pytest.raises(SpecError, match='unknown language "eng"'):
        load_verifier({"checks": [{"type": "language", "is": "eng"}]}, strict=True)
