"""The engine that backtracks: the verdicts of Python's re, and a limit for each match."""

import pickle
import random
import re
import threading
import time
from re import _parser as sre_parser

import pytest

import assay
from assay.lanes.backtrack import NotSameError, found_within, rewritten
from assay.lanes.pattern import quick, search
from assay.limits import Limits
from assay.reference import score_rows
from test_pattern import accepted

LOOPING = "<think>" * 40_000
THINK = r"(?s)<think>.*?</think>(?!x)"
SAID = "TimeoutError: no answer within 0.2 s"
TWO_WAYS = r"\A(a|aa)" + "(?:a|aa)?" * 40 + r"x\Z|(b)\2"

TEXTS = ["".join(random.Random(at).choices("aaabbbAk1 \n", k=at % 9)) for at in range(90)]
LEAVES = (
    *("a", "b", "a", "b", "ab", "[ab]", ".", r"\w", r"\s", "k", r"\b", r"\B", "^", "$", r"\Z"),
    *("a*", "b*", "a+", "b+?", "a??", "[ab]*?", "a{1,2}", "a*+", ".*", "a|ab", "ab|a", "|a", "b|"),
    *("(?=a)", "(?!b)", "(?<=a)", "(?<!ab)", "(?>a|ab)", "(?=b*a)", "(?i:A)"),
)


def random_pattern(rng, groups, endings, depth=3):
    parts = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if depth and kind < 0.4:
            inner = "|".join(random_pattern(rng, groups, endings, depth - 1) for _ in range(rng.choice((1, 1, 2))))
            opening = rng.choice(("(", "(", "(?:", "(?:", "(?=", "(?!", "(?>"))
            groups[0] += opening == "("
            parts.append(f"{opening}{inner})" + rng.choice(endings))
        elif groups[0] and kind < 0.55:
            number = rng.randint(1, groups[0])
            parts.append(rng.choice((rf"\{number}", rf"(?:\{number}|b)", f"(?({number})a|b)", rf"\{number}?")))
        else:
            parts.append(f"(?:{rng.choice(LEAVES)})")
    return "".join(parts)


@pytest.mark.parametrize("endings", [("", "", "?", "??"), ("", "", "?", "*", "+?", "{2}", "{0,2}")])
@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_agree_with_python(seed, endings):
    rng = random.Random(seed)
    tried = referring = 0
    while tried < 60:
        pattern = rng.choice(("", "", "(?i)", "(?m)", "(?s)", "(?a)")) + rng.choice(("", r"\A"))
        pattern += (
            "(a|b|ab)" * (start := "*" not in endings)
            + random_pattern(rng, [int(start)], endings)
            + rng.choice(("", r"\Z", "$"))
        )
        if not accepted(pattern):
            continue
        try:
            written = rewritten(sre_parser.parse(pattern))
        except NotSameError:
            continue
        wanted = re.compile(pattern)
        for text in TEXTS:
            assert found_within(written, text, 5.0) == (wanted.search(text) is not None), (pattern, text)
        tried += 1
        referring += "(?P<" in written
    assert referring > 5 or "*" in endings


@pytest.mark.parametrize("pattern", [r"\B", r"(?=\B)", r"\B\Z"])
def test_where_nothing_is_no_boundary_is_what_this_python_says(pattern):
    assert [search(pattern, text) for text in ("", "a", " ")] == [
        re.search(pattern, text) is not None for text in ("", "a", " ")
    ]


@pytest.mark.parametrize("pattern", [r"\w(?!\w)", r"[^\W\d](?=\s)", r"(?i)[k-s](?!a)", r"(?a)\w(?=\W)", r"(?i)ß(?!a)"])
def test_sets_of_many_ranges_hold_exactly_what_python_accepts(pattern):
    wanted = re.compile(pattern)
    points = [chr(point) for point in [*range(0x3000), *range(0xA000, 0xAC00), *range(0xF900, 0x11000)]]
    written = rewritten(sre_parser.parse(pattern))
    for point in points:
        text = f"{point} {point}"
        assert found_within(written, text, None) == (wanted.search(text) is not None), hex(ord(point))


def test_a_looping_model_costs_no_more_than_the_limit():
    rows = [{"completion": LOOPING}, {"completion": "<think>a</think>"}, {"completion": "a"}]
    verifier = {"checks": [{"type": "regex", "pattern": THINK}]}
    started = time.perf_counter()
    found = assay.score(rows, verifier)
    assert time.perf_counter() - started < 30  # Python's re takes minutes where the machine is busy
    assert found["reward"].to_list() == [0.0, 1.0, 0.0]
    assert found["error"].to_list() == [f"regex: {SAID}", None, None]
    assert found["feedback"][0] == f"regex: {SAID}"
    wanted = score_rows(rows, [assay.load_verifier(verifier)])
    assert found.select("reward", "feedback", "error").to_dicts() == [
        {name: row[name] for name in ("reward", "feedback", "error")} for row in wanted
    ]


def test_the_limit_is_the_runs_and_no_part_of_the_spec():
    verifier = assay.load_verifier({"checks": [{"type": "regex", "pattern": THINK}]})
    before = verifier.sha256, verifier.canonical
    found = assay.score([{"completion": LOOPING}], verifier, regex_timeout=0.01)
    assert found["error"].to_list() == ["regex: TimeoutError: no answer within 0.01 s"]
    assert verifier.checks[0].check.limits is None
    assert (verifier.sha256, verifier.canonical) == before


def test_a_pattern_of_two_ways_for_every_letter_is_given_up():
    verifier = {"checks": [{"type": "regex", "pattern": TWO_WAYS}]}
    found = assay.score([{"completion": "a" * 60}, {"completion": "abb"}], verifier, regex_timeout=0.05)
    assert found["error"].to_list() == ["regex: TimeoutError: no answer within 0.05 s", None]
    assert found["reward"].to_list() == [0.0, 1.0]


def test_both_faces_take_the_limit_of_a_run():
    verifier = assay.load_verifier({"checks": [{"type": "regex", "pattern": THINK}]})
    check = verifier.checks[0].check.within(Limits(regex_timeout=0.01))
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        check.row({"completion": LOOPING})
    assert check.outcome({"completion": LOOPING}).error == "TimeoutError: no answer within 0.01 s"
    assert pickle.loads(pickle.dumps(check)).limits.regex_timeout == 0.01  # noqa: S301  (our own)
    assert "at most 0.01 s a match" in check.explain()


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_rows_own_pattern_has_the_same_limit(ignore_case):
    golds = [THINK, r"(?s)<think>.*?</think>", r"<think>.*?</think>\b", "<think>", "(a"]
    row = {"completion": LOOPING, "fn_name": "regex_match", "params": {"ignore_case": ignore_case}}
    found = assay.score([row | {"expected": gold} for gold in golds])
    assert found["reward"].to_list() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert found["error"][0] == f"regex_match: {SAID}"
    assert found["error"].is_null().to_list() == [False, True, True, True, False]
    assert assay.score([row | {"expected": THINK}], regex_timeout=0.01)["error"][0].endswith("within 0.01 s")


def test_other_threads_do_not_use_up_the_limit():
    """The engine's own clock counts the processor time of the whole process."""
    written = rewritten(sre_parser.parse(THINK))
    ended = threading.Event()

    def busy():
        while not ended.is_set():
            found_within(written, LOOPING[:3_000], None)

    others = [threading.Thread(target=busy) for _ in range(3)]
    for one in others:
        one.start()
    try:
        started = time.thread_time()
        with pytest.raises(TimeoutError):
            found_within(written, LOOPING * 4, 0.2)
        assert time.thread_time() - started >= 0.2
    finally:
        ended.set()
        for one in others:
            one.join()


def test_a_run_that_is_to_stop_stops_between_two_matches():
    stop = threading.Event()
    stop.set()
    check = assay.load_verifier({"checks": [{"type": "regex", "pattern": THINK}]}).checks[0].check
    (lane,) = check.within(Limits(stop=stop)).lanes()
    frame = assay.scan([{"completion": "a"}]).rename({"completion": "__assay/text"})
    with pytest.raises(KeyboardInterrupt):
        frame.select(lane.build(frame.collect_schema())).collect()


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), None, "1"])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(assay.UsageError, match=f"--regex-timeout {seconds}: expected seconds; 0 for no limit"):
        assay.score([{"completion": "a"}], {"checks": [{"type": "regex", "pattern": "a"}]}, regex_timeout=seconds)


def test_no_limit_is_0():
    verifier = {"checks": [{"type": "regex", "pattern": r"(a|b)\1(?!c)"}]}
    assert assay.score([{"completion": "aa"}], verifier, regex_timeout=0)["reward"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("pattern", "size", "verdict"),
    [
        (r"\bfoo\+\*\b", 1_000_000, True),
        (r"\d+ items", 1_000, True),
        (r"\d+ items", 100_000, False),
        (r"\s*\d+\s*", 1_000, False),
        (r"\\+a", 100_000, False),
        (r"(a)", 1_000_000, True),
        (r"a|b", 1_000_000, True),
        (r"(?:a|b+)(c?)", 1_000, True),
        (r"(?:a|b+)(c+)", 1_000, False),
        (r"(a+)+", 10, False),
        (r"(?:ab)*", 10, False),
        ("(aa|b)" * 30, 10, False),
        (r"(?=a)", 10, False),
        (r"(a", 10, False),
        (r"(?i)foo", 1_000, True),
    ],
)
def test_a_pattern_is_quick_where_nothing_nests(pattern, size, verdict):
    assert quick(pattern, size) == verdict
