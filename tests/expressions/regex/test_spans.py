"""What a pattern matches: the linear engine prefers the matches that `re` prefers, or is not asked."""

import random
import re
import threading

import polars as pl
import pytest
from cases import sized
from patterns import TEXTS, accepted, random_pattern
from step_cases import step_texts

from assay.calls.limits import Limits, TimeoutCounts
from assay.errors import describe_error
from assay.expressions.regex.spans import ANY, Extraction, Removal, groups_of, results, results_column, route_of
from assay.thresholds import EVER, set_to

SAMPLE = [*TEXTS, *(text[:25] for text in step_texts(100, 3))]
FEW = SAMPLE[::5]
COLUMN = pl.Series(SAMPLE)


def operations(pattern):
    number, _ = groups_of(pattern)
    yield Removal(pattern)
    for group in {0, min(number, 1), number, ANY}:
        yield Extraction(pattern, group)
        yield Extraction(pattern, group, last=True)


def by_re(operation, texts=SAMPLE):
    compiled = re.compile(operation.pattern)

    def extracted(text):
        matches = [*compiled.finditer(text)]
        if not matches:
            return None
        match = matches[-1 if operation.last else 0]
        if operation.group != ANY:
            return match[operation.group]
        return next((group for group in match.groups() or [match[0]] if group), None)

    try:
        does = extracted if isinstance(operation, Extraction) else lambda text: compiled.sub("", text)
        return [does(text) for text in texts]
    except Exception:  # noqa: BLE001  (a bug of re)
        return None


def test_random_patterns_match_in_columns_what_re_matches():
    rng, exact = random.Random(8), 0
    for _ in range(sized(20_000, 500)):
        pattern = random_pattern(rng)
        if rng.random() < 0.5:
            pattern = f"({pattern}){random_pattern(rng, 1)}"
        pattern += rng.choice(("", "", "", "$"))
        if not accepted(pattern):
            continue
        for operation in operations(pattern):
            route = route_of(pattern)
            if route.ascii is None or not operation.is_exact(route) or (expected := by_re(operation)) is None:
                continue
            with set_to(beyond_rows=0):
                values, errors = results_column(operation, COLUMN)
            assert values.to_list() == expected, operation
            assert errors.null_count() == len(errors)
            exact += 1
    assert exact > 100


IN_COLUMNS = (
    r"A: (\d+)",
    r"(?i)the answer is\s*(.*?)\.",
    r"(?s)<a>(.*?)</a>",
    r"\b(\w+)\b",
    r"(?m)^(\d+)\)",
    "(a)?b",
    r"(\S+)\s*$",
)
BY_RE = (r"(a)\1", "(?<=a)b", "(?:(a)|b)*", "(?:a*)+", r"\Ba", "(?>a)b", "a++")


@pytest.mark.parametrize("pattern", IN_COLUMNS + BY_RE)
def test_common_patterns_run_in_columns(pattern):
    assert (route_of(pattern).ascii is not None) == (pattern in IN_COLUMNS)
    for operation in operations(pattern):
        values, errors = results_column(operation, COLUMN)
        assert values.to_list() == by_re(operation)
        assert errors.null_count() == len(errors)


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?<=a)(b)|(c)", r"(\w+)\s(\w+)$", "[^a]+(é)?"])
def test_another_process_gives_what_this_one_gives(pattern):
    with set_to(pattern_steps=0, linear_bytes=0):
        for operation in operations(pattern):
            assert results(operation, FEW) == by_re(operation, FEW)


@pytest.mark.parametrize("steps", [0, EVER])
@pytest.mark.parametrize("pattern", IN_COLUMNS)
def test_a_text_gives_the_same_on_either_side_of_the_threshold(pattern, steps):
    with set_to(pattern_steps=steps):
        for operation in operations(pattern):
            assert results(operation, FEW) == by_re(operation, FEW)


def test_a_match_without_end_is_an_error_and_counted():
    endless, text = r"^(?:(a+))+\1$", "a" * 40 + "!"
    limits = Limits(regex_timeout=0.1, timeouts=TimeoutCounts(), check="check")
    error = "TimeoutError: no answer within 0.1 s; as that is a limit of time, another run may end otherwise"
    values, errors = results_column(Extraction(endless, 1), pl.Series(["aa", text, "b", text]), limits)
    assert values.to_list() == ["a", None, None, None]
    assert errors.to_list() == [None, error, None, error]
    assert limits.timeouts._rows == {"check": 2}
    (answer,) = results(Removal(endless), [text], limits)
    assert describe_error(answer) == error


def test_a_run_that_has_to_stop_stops():
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        results(Extraction("a"), ["a"], Limits(stop=stop))


def test_groups_have_numbers_and_names():
    assert groups_of("(a)(?P<x>b)(?:c)") == (2, {"x": 2})
    with pytest.raises(re.error):
        groups_of("(")
    with pytest.raises(ValueError, match="too large to extract a group"):
        groups_of("a" * 200_000)


def test_lone_surrogates_come_back_from_the_process():
    with set_to(pattern_steps=0, linear_bytes=0):
        assert results(Removal("(a)\\1"), ["\ud800aa", "é" * 70_000]) == ["\ud800", "é" * 70_000]
        assert results(Extraction("(?<=a)."), ["a\ud800"]) == ["\ud800"]
