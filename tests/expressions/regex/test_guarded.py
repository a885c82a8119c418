"""``re`` in a process of its own: Python's verdict, or a limit of time or memory."""

import fcntl
import os
import pickle
import re
import signal
import sys
import threading
import time

import pytest

import assay
from assay.calls.limits import Limits
from assay.expressions.regex import guarded
from assay.expressions.regex.compiled import quick
from assay.expressions.regex.guarded import guarded_search
from assay.expressions.regex.search import check_pattern, route, search
from assay.scoring.reference import score_rows

ENDLESS, TEXT = r"^(?:(a+))+\1$", "a" * 40 + "!"
SAID = "TimeoutError: no answer within 0.1 s; as that is a limit of time, another run may end otherwise"


def asked(pattern, *texts, seconds=0.1, **options):
    return guarded_search(pattern, texts, seconds=seconds, **options)


def test_verdicts_are_pythons():
    texts = ["aa", "ab", "", "\ud800", "é" * 70_000, "b" * 70_000 + "cc"] * 60
    assert asked(r"(\w)\1", *texts) == [re.search(r"(\w)\1", text) is not None for text in texts]
    assert asked("(K)\\1", "\u212ak", flags=re.IGNORECASE) == [True]


def test_a_match_without_end_costs_its_own_row_only():
    answers = asked(ENDLESS, "aa", TEXT, "b", TEXT, "aaa")
    assert [str(answer) for answer in answers] == [
        "True",
        SAID.partition(": ")[2],
        "False",
        SAID.partition(": ")[2],
        "True",
    ]
    assert isinstance(answers[1], TimeoutError)


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
    monkeypatch.setattr(guarded, "MEMORY", 200_000_000)
    monkeypatch.setattr(guarded, "_IDLE", [])
    (answer, other) = asked(r"\A(?:(ab|c))*\1x", "ab" * 3_000_000, "ababx", seconds=20)
    assert isinstance(answer, MemoryError)
    assert other is True
    guarded._close_all()


def test_a_pattern_that_takes_long_to_compile_is_given_up_once(monkeypatch):
    monkeypatch.setattr(guarded, "COMPILE_SECONDS", 0.1)
    monkeypatch.setattr(guarded, "_TOO_EXPENSIVE", {})
    pattern = "(?i)" + "[!-\uffff]" * 2_000
    started = time.monotonic()
    for _ in range(20):
        (answer, again) = asked(pattern, "a", "b")
        assert (
            str(answer)
            == str(again)
            == (
                "the pattern takes more than 0.1 s to compile; as that is a limit of time, another run may end otherwise"
            )
        )
    assert time.monotonic() - started < 60
    rows = [{"completion": "a", "fn_name": "regex_match", "expected": pattern}, {"completion": "a"}]
    assert assay.score(rows, verifier_name="regex_match")["error"][0].startswith(
        "regex_match: TimeoutError: the pattern takes"
    )
    with pytest.raises(TimeoutError, match="to compile"):
        check_pattern(pattern)


def test_a_run_that_is_to_stop_stops_within_a_match():
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        asked(ENDLESS, TEXT, seconds=None, stop=stop)
    assert asked(ENDLESS, "aa") == [True]


def test_a_run_that_is_to_stop_stops_with_texts_that_no_pipe_holds_still_unsent():
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        asked(ENDLESS, TEXT, *["b" * 300_000] * 5, seconds=None, stop=stop)
    assert asked(ENDLESS, "aa") == [True]


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set as Linux does")
def test_pipes_may_be_as_small_as_they_are_for_who_has_many(monkeypatch):
    monkeypatch.setattr(guarded, "_IDLE", [])
    server = guarded._idle()
    for end in (server._questions, server._answers):
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    guarded._IDLE.append(server)
    (answers,) = _within(20, lambda: asked(r"(?P<n>a)(?(n)b|" + "(" * 400, *["ab" * 20_000] * 300))
    assert {type(answer) for answer in answers} == {re.error}
    assert _within(20, lambda: asked(r"(a)\1", *["aa", "b" * 9_000] * 1_000)) == [[True, False] * 1_000]
    guarded._close_all()


def _within(seconds, function):
    done = []
    thread = threading.Thread(target=lambda: done.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    return done


def test_a_pattern_that_is_refused_before_its_texts_are_sent_leaves_no_half_of_a_question():
    (answer, *_) = asked("(" * 5000, *["b" * 300_000] * 5)
    assert isinstance(answer, Exception)
    assert asked(ENDLESS, "aa", "b") == [True, False]


def test_a_pattern_whose_process_somebody_ended_is_asked_again(monkeypatch):
    monkeypatch.setattr(guarded, "_IDLE", [])
    server = guarded._idle()
    monkeypatch.setattr(type(server), "usable", True)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    guarded._IDLE.append(server)
    assert [str(answer) for answer in asked(ENDLESS, "aa")] == [
        "the regular expression ended the process that it ran in (signal 9)"
    ]
    assert asked(ENDLESS, "aa") == [True]
    guarded._close_all()


@pytest.mark.parametrize("executable", [None, "", "/nowhere"])
@pytest.mark.parametrize("count", [1, 300])
def test_a_process_that_cannot_be_started_costs_the_rows_that_need_it(monkeypatch, executable, count):
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(guarded, "_IDLE", [])
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


def test_a_process_that_somebody_ended_is_replaced():
    assert asked(ENDLESS, "aa") == [True]
    for server in guarded._IDLE:
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    assert asked(ENDLESS, "aa") == [True]


def test_many_threads_have_a_process_each():
    answers = []

    def ask():
        answers.extend(asked(ENDLESS, *(["aa", "b"] * 100), seconds=5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True, False] * 400


# ── in a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────

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
    assert "up to 0.01 s per match" in check.explain()


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
    (lane,) = check.within(Limits(stop=stop)).lanes()
    frame = assay.scan([{"completion": "a"}]).rename({"completion": "__assay/text"})
    with pytest.raises(KeyboardInterrupt):
        frame.select(lane.build(frame.collect_schema())).collect()


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), None, "1"])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(
        assay.UsageError, match=f"--regex-timeout {seconds}: expected a number of seconds; 0 for no limit"
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
