"""``re`` in a process of its own: Python's verdict, or a limit of time or memory."""

import pickle
import re
import sys
import threading
import warnings

import pytest

import assay
from assay.calls.limits import Limits, TimeoutCounts
from assay.expressions.regex import guarded
from assay.expressions.regex.compiled import quick
from assay.expressions.regex.guarded import guarded_search
from assay.expressions.regex.questions import Question
from assay.expressions.regex.search import check_pattern, route, search, search_all
from assay.expressions.shared_columns import columns_read
from assay.functions.registry import function, regex_match
from assay.scoring.reference import score_rows

ENDLESS, TEXT = r"^(?:(a+))+\1$", "a" * 40 + "!"
SAID = "TimeoutError: no answer within 0.1 s; as that is a limit of time, another run may end otherwise"


def asked(pattern, *texts, seconds=0.1, flags=0, **options):
    return guarded_search([Question(pattern, text, flags) for text in texts], seconds=seconds, **options)


def test_verdicts_are_pythons():
    texts = ["aa", "ab", "", "\ud800", "é" * 70_000, "b" * 70_000 + "cc"] * 60
    assert asked(r"(\w)\1", *texts) == [re.search(r"(\w)\1", text) is not None for text in texts]
    assert asked("(K)\\1", "\u212ak", flags=re.IGNORECASE) == [True]


@pytest.mark.parametrize("pattern", ["(a", "[z-a]", "(?<=a*)b", "a{2}{3}", "(" * 5000])
def test_an_invalid_pattern_is_what_python_says_of_it(pattern):
    (answer,) = asked(pattern, "a")
    try:
        re.compile(pattern)
    except (re.error, RecursionError) as error:
        assert type(answer) is type(error)  # noqa: PT017  (the same error, from elsewhere)
        if isinstance(error, re.error):  # what is said of the stack depends on where it ended
            assert str(answer) == str(error)  # noqa: PT017


def test_memory_has_a_limit(monkeypatch):
    guarded.POOL.close()
    monkeypatch.setattr(guarded.POOL, "memory", 100_000_000)
    (answer, other) = asked(r"\A(?:(ab|c))*\1x", "ab" * 1_000_000, "ababx", seconds=20)
    assert isinstance(answer, MemoryError)
    assert other is True
    guarded.POOL.close()


def test_a_pattern_that_takes_long_to_compile_is_given_up_once(monkeypatch):
    asked_for, answers_of = [], guarded.POOL.answers
    monkeypatch.setattr(
        guarded.POOL, "answers", lambda requests, *limits: asked_for.extend(requests) or answers_of(requests, *limits)
    )
    monkeypatch.setattr(guarded.POOL, "prepare_seconds", 0.05)
    monkeypatch.setattr(guarded, "_TOO_EXPENSIVE", {})
    guarded.POOL.close()
    pattern = "(?i)" + "[!-\uffff]" * 2_000
    message = "the pattern takes more than 0.05 s to compile; as that is a limit of time, another run may end otherwise"
    for _ in range(3):
        assert [str(answer) for answer in asked(pattern, "a", "b")] == [message] * 2
    assert len(asked_for) == 2  # by the first search
    rows = [{"completion": "a", "fn_name": "regex_match", "expected": pattern}, {"completion": "a"}]
    assert assay.score(rows, verifier_name="regex_match")["error"][0].startswith(
        "regex_match: TimeoutError: the pattern takes"
    )
    with pytest.raises(TimeoutError, match="to compile"):
        check_pattern(pattern)
    guarded.POOL.close()


def test_a_pattern_that_is_refused_before_its_texts_are_sent_leaves_no_half_of_a_question():
    (answer, *_) = asked("(" * 5000, *["b" * 300_000] * 5)
    assert isinstance(answer, Exception)
    assert asked(ENDLESS, "aa", "b") == [True, False]


@pytest.mark.parametrize("executable", [None, "", "/nowhere"])
@pytest.mark.parametrize("count", [1, 300])
def test_a_process_that_cannot_be_started_costs_the_rows_that_need_it(monkeypatch, executable, count):
    guarded.POOL.close()
    monkeypatch.setattr(sys, "executable", executable)
    said = "RuntimeError: the process that the regular expression needs could not be started: "
    scored = assay.score([{"completion": "aa"}] * count, VERIFIER)
    rows = [{"completion": "aa", "fn_name": "regex_match", "expected": gold} for gold in (ENDLESS, "a")] * count
    own = assay.score(rows)
    assert scored["reward"].to_list() == [0.0] * count
    assert own["reward"].to_list() == [0.0, 1.0] * count
    assert scored["error"][0].startswith(f"regex: {said}")
    assert own["error"][0].startswith(f"regex_match: {said}")


def test_a_limit_of_time_that_no_timer_has_room_for_is_none():
    assert asked(ENDLESS, "aa", seconds=1e300) == [True]


@pytest.mark.parametrize(
    ("pattern", "endless"), [("(a)?+a*b", "a" * 1_000_000), (ENDLESS, TEXT)], ids=["ends its process", "is late"]
)
def test_a_text_costs_no_other_one_of_its_request_its_answer(pattern, endless):
    texts = [endless if at in (70, 71, 200) else "aab" if at % 2 else f"c{at}" for at in range(300)]
    answers = asked(pattern, *texts)
    late = [at for at, answer in enumerate(answers) if isinstance(answer, TimeoutError)]
    assert late == [70, 71, 200]
    quick = [(text, answer) for text, answer in zip(texts, answers, strict=True) if text != endless]
    assert [answer for _, answer in quick] == [re.search(pattern, text) is not None for text, _ in quick]


def test_questions_with_a_pattern_each_are_answered_in_order():
    questions = [
        Question(pattern, text, flags)
        for at in range(20)
        for pattern, text, flags in ((rf"(a+)\1{{{at}}}$", "a" * 8, 0), ("(a", "a", 0), ("(K)\\1", "kK", re.IGNORECASE))
    ]
    told = []
    answers = guarded_search([*questions, Question(ENDLESS, TEXT)], seconds=0.05, late=told.append)
    assert answers[0::3][:20] == [re.search(*question[:2]) is not None for question in questions[0::3]]
    assert [str(answer) for answer in answers[1::3][:20]] == ["missing ), unterminated subpattern at position 0"] * 20
    assert answers[2::3] == [True] * 20
    assert told == [Question(ENDLESS, TEXT)]


def test_equal_questions_are_asked_once(monkeypatch):
    asked_for = []
    monkeypatch.setattr(guarded, "guarded_search", lambda questions, **_: asked_for.extend(questions) or [True] * 2)
    assert search_all(ENDLESS, ["aa", TEXT, "aa", TEXT]) == [True] * 4
    assert asked_for == [Question(ENDLESS, "aa"), Question(ENDLESS, TEXT)]


VERIFIER = {"checks": [{"type": "regex", "pattern": ENDLESS}]}


def test_a_match_without_end_is_an_error_of_its_row():
    rows = [{"completion": text} for text in (TEXT, "aa", "b")]
    scored = assay.score(rows, VERIFIER, regex_timeout=0.1)
    assert scored["reward"].to_list() == [0.0, 1.0, 0.0]
    assert scored["error"].to_list() == [f"regex: {SAID}", None, None]
    assert scored["feedback"][0] == f"regex: {SAID}"
    wanted = score_rows(rows, [assay.load_verifier(VERIFIER)])
    assert [row["error"] for row in wanted] == [f"regex: {SAID.replace('0.1', '0.2')}", None, None]


def test_the_limit_is_the_runs_and_no_part_of_the_spec():
    verifier = assay.load_verifier(VERIFIER)
    before = verifier.sha256, verifier.canonical
    scored = assay.score([{"completion": TEXT}], verifier, regex_timeout=0.01)
    assert scored["error"][0].startswith("regex: TimeoutError: no answer within 0.01 s")
    assert verifier.checks[0].check.limits is None
    assert (verifier.sha256, verifier.canonical) == before


def test_both_faces_take_the_limit_of_a_run():
    check = assay.load_verifier(VERIFIER).checks[0].check.within(Limits(regex_timeout=0.01))
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        check.row({"completion": TEXT})
    assert check.outcome({"completion": TEXT}).error.startswith("TimeoutError: no answer within 0.01 s")
    assert pickle.loads(pickle.dumps(check)).limits.regex_timeout == 0.01  # noqa: S301  (our own)
    assert "up to 0.01 s of processor time per match" in check.explain()


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_rows_own_pattern_has_the_same_limit(ignore_case):
    row = {"completion": TEXT, "fn_name": "regex_match", "params": {"ignore_case": ignore_case}}
    golds = [ENDLESS, "(?:a+)+$", r"(?=(a+)+$)b", "a!", "(a"]
    scored = assay.score([row | {"expected": gold} for gold in golds], regex_timeout=0.1)
    assert scored["reward"].to_list() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert scored["error"][0] == f"regex_match: {SAID}"
    assert scored["error"].is_null().to_list() == [False, True, True, True, False]


def test_a_run_that_is_to_stop_stops_between_two_matches():
    stop = threading.Event()
    stop.set()
    check = assay.load_verifier({"checks": [{"type": "regex", "pattern": "(?=a)(?:a|b)+"}]}).checks[0].check
    with columns_read() as lanes:
        check.within(Limits(stop=stop)).expr()
    (lane, *_) = lanes
    frame = assay.scan([{"completion": "a"}]).rename({"completion": "__assay/text"})
    with pytest.raises(KeyboardInterrupt):
        frame.select(lane.build(frame.collect_schema())).collect()


MANY = 13
BACK_REFERENCE = r"^(?=(a+)+$)(a|b)\1?"


@pytest.fixture
def noted_early(monkeypatch):
    """Ten rows that time out are noted, and not a hundred: each takes a process."""
    monkeypatch.setattr("assay.calls.limits._NOTED", 10)


def noted(score):
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        score()
    return [str(warning.message) for warning in raised if "timed out so far" in str(warning.message)]


def test_the_first_rows_that_time_out_are_noted_once_with_the_name_of_their_check(noted_early):
    rows = [{"completion": f"{TEXT}{at}"} for at in range(MANY)]
    checks = [{"id": "first", "type": "regex", "pattern": BACK_REFERENCE}, {"type": "contains", "value": "a"}]
    again = {"id": "again", "type": "regex", "pattern": BACK_REFERENCE, "negate": True}
    (note,) = noted(lambda: assay.score(rows, {"id": "v", "checks": [*checks, again]}, regex_timeout=0.001))
    assert note == (
        "first: the matches of 10 rows have timed out so far, after 0.001 s of processor time each (`regex_timeout`). Lower that "
        "limit, stop such runs with `max_errors`, or rewrite the pattern: `assay explain` says why it needs backtracking."
    )
    specs = [{"id": "v", "checks": checks}, {"id": "w", "checks": [{"type": "contains", "value": "a"}]}]
    (note,) = noted(lambda: assay.score(rows, specs, regex_timeout=0.001))
    assert note.startswith("v/first: the matches of 10 rows")
    assert noted(lambda: assay.score(rows[:9], {"checks": checks}, regex_timeout=0.001)) == []


def test_equal_rows_that_time_out_count_each(noted_early):
    rows = [{"completion": TEXT}] * MANY
    (note,) = noted(
        lambda: assay.score(rows, {"checks": [{"type": "regex", "pattern": BACK_REFERENCE}]}, regex_timeout=0.001)
    )
    assert note.startswith(f"regex: the matches of {MANY} rows have timed out so far")


def test_patterns_of_rows_that_time_out_are_noted_by_their_function(noted_early):
    rows = [{"completion": TEXT, "fn_name": "regex_match", "expected": f"{BACK_REFERENCE}{at}?$"} for at in range(MANY)]
    results = []
    (note,) = noted(lambda: results.append(assay.score(rows, regex_timeout=0.001)))
    assert note.startswith("regex_match: the matches of 10 rows have timed out so far, after 0.001 s")
    assert set(results[0]["error"]) == {f"regex_match: {SAID.replace('0.1 s', '0.001 s')}"}
    assert set(results[0]["reward"]) == {0.0}


def test_the_note_comes_while_the_run_goes(monkeypatch):
    """Whoever stops the run at the note has not waited for the other rows."""
    stop, late = threading.Event(), []
    monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: stop.set())
    timeouts = TimeoutCounts()
    add = timeouts.add
    monkeypatch.setattr(timeouts, "add", lambda *counted: late.append(counted) or add(*counted))
    limits = Limits(stop=stop, regex_timeout=0.001, timeouts=timeouts, check="regex")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_, **__: stop.set()
        with pytest.raises(KeyboardInterrupt):
            search_all(BACK_REFERENCE, [f"{TEXT}{at}" for at in range(1_000)], limits)
    assert 100 <= len(late) < 200


def test_another_process_counts_its_own_rows():
    limits = Limits(timeouts=TimeoutCounts(), check="v/regex")
    assert limits.timeouts.add("v/regex", 99, 1.0) is None
    copy = pickle.loads(pickle.dumps(limits))  # noqa: S301  (our own)
    assert copy.check == "v/regex"
    assert copy.timeouts.add("v/regex", 99, 1.0) is None
    assert limits.timeouts.add("v/regex", 1, 1.0).startswith("v/regex: the matches of 100 rows")
    assert limits.timeouts.add("v/regex", 500, 1.0) is None


def test_rows_together_have_the_answers_that_each_has_alone():
    calls = [("aa", gold, {}) for gold in (10**5_000, r"(a)\1", "", None, "(a", 11)]
    calls.append(("kK", r"(K)\1", {"ignore_case": True}))

    def alone(call):
        try:
            return regex_match(*call)
        except (re.error, ValueError) as error:
            return repr(error)

    together = [
        repr(answer) if isinstance(answer, Exception) else answer
        for answer in function("regex_match").many(calls, None)
    ]
    assert together == [alone(call) for call in calls]
    assert together[1:4] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), None, "1"])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(
        assay.UsageError, match=f"regex_timeout={seconds}: expected a number of seconds; 0 for no limit"
    ):
        assay.score([{"completion": "a"}], {"checks": [{"type": "regex", "pattern": "a"}]}, regex_timeout=seconds)


def test_no_limit_is_0():
    assert assay.score([{"completion": "aa"}], VERIFIER, regex_timeout=0)["reward"].to_list() == [1.0]


def test_how_deep_the_caller_is_does_not_matter():
    """Parsing is recursive, and fails where the stack is used up: a new process has it all."""
    pattern = "(" * 150 + "a" + ")" * 150

    def at(depth):
        return search(pattern, "a") if not depth else at(depth - 1)

    assert [at(depth) for depth in (0, 300, 700, 850)] == [True] * 4


def test_a_deep_caller_s_verdict_needs_no_clock_and_is_no_one_else_s():
    """Sets of positions and the linear engine have an answer; ``re`` would take years."""
    patterns = ["(?:" * 80 + "a" + ")+" * 80 + rf"(?!x{at})\Z" for at in range(3)]

    def at(depth, pattern):
        return search(pattern, "a" * 40 + "!") if not depth else at(depth - 1, pattern)

    assert [at(depth, pattern) for depth in (850, 500, 0) for pattern in patterns] == [False] * 9
    plain = "(?:" * 60 + "a" + ")+" * 60
    assert at_depth(850, lambda: route(plain)) == route(plain)
    assert route(plain).linear


def at_depth(depth, function):
    return function() if not depth else at_depth(depth - 1, function)


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
        (r"(?=a)", 1_000_000, True),
        (r"(?<!\d)\d{4}(?!\d)", 1_000, True),
        (r"^(?!.*sorry)", 1_000, True),
        (r"(\w)\1", 1_000, True),
        (r"(\w+) \1", 1_000, False),
        ("[ab]" * 20_000, 100_000, False),
        (r"(a", 10, False),
        (r"(?i)foo", 1_000, True),
    ],
)
def test_a_pattern_is_quick_where_nothing_nests(pattern, size, verdict):
    assert quick(pattern, size) == verdict
