"""The processes that compare: what costs a pair, and what is remembered."""

import subprocess
import sys

import pytest
from cases import some
from waiting import PATIENCE

import assay
from assay.checks.mathematics import client, program
from assay.checks.mathematics.client import GONE, LATE, Comparison, compare_all
from assay.checks.mathematics.program import DIFFERENT, EQUAL, NO_ANSWER, RAISED

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

ENDLESS = "10^{10^{10}}"


def asked(*pairs, seconds=5.0, **options):
    return compare_all([question(gold, answer, seconds) for answer, gold in pairs], **options)


def question(gold, answer, seconds=5.0):
    return Comparison(gold, answer, True, 6, "whole", False, seconds)


def verdicts(*pairs, **options):
    return [verdict for verdict, _ in asked(*pairs, **options)]


@pytest.mark.parametrize("bomb", some(["9^9^9^9", "9^{9^{9^{9}}}", "100000!!", ENDLESS, "(10^9)!", "2^{2^{40}}+1"]))
def test_a_bomb_costs_its_own_pair(bomb):
    answers = asked(("1/2", "0.5"), (bomb, "3"), ("3", "1"), seconds=0.5)
    assert [answers[0][0], answers[2][0]] == [EQUAL, DIFFERENT]
    assert answers[1][0] in (LATE, DIFFERENT, RAISED, NO_ANSWER)


@pytest.mark.parametrize(
    "text", some(["(" * 2000, "\\frac{" * 600, "\ud800", "^" * 4000, "{" * 2000 + "}" * 2000, "x_" * 900])
)
def test_hostile_texts_have_an_answer_in_time(text):
    (answer,) = asked((text, "1"), seconds=0.5)
    assert answer[0] in (NO_ANSWER, LATE, RAISED, DIFFERENT)


@pytest.fixture
def pool(monkeypatch):
    """Processes and answers of the test alone."""
    monkeypatch.setattr(client, "MEMO", client.Memo())
    monkeypatch.setattr(client, "POOL", client.Pool(program.__file__, paths=client.POOL.paths))
    yield client.POOL
    client.POOL.close()


def test_equal_questions_are_asked_once(monkeypatch):
    sent, answers = [], client.POOL.answers
    monkeypatch.setattr(
        client.POOL,
        "answers",
        lambda requests, *limits: answers([sent.append(each) or each for each in requests], *limits),
    )
    for _ in range(2):
        assert verdicts(*[("3/7", "6/14"), ("4/7", "6/14")] * 4) == [EQUAL, DIFFERENT] * 4
    assert len(sent) == 2


def test_the_memo_has_bounds(monkeypatch):
    memo = client.Memo()
    questions = [question("g" * 10, str(at)) for at in range(9)]
    monkeypatch.setattr(client, "_MEMO_PAIRS", 5)
    for each in questions:
        memo.keep(each, (EQUAL, ""), [])
    assert [memo.find(each) is not None for each in questions] == [False] * 4 + [True] * 5
    monkeypatch.setattr(client, "_MEMO_CHARACTERS", 22)
    assert memo.find(questions[4])
    memo.keep(questions[0], (EQUAL, ""), [])
    assert [memo.find(each) is not None for each in questions] == [True] + [False] * 3 + [True] + [False] * 4


def test_what_ends_a_process_is_an_error_that_is_not_remembered(pool, monkeypatch):
    answers = {"late": client.Late(), "dead": client.Died(-9, begun=True), "mute": client.Died(-9)}
    asked_for = [question("1", text) for text in answers]
    monkeypatch.setattr(pool, "answers", lambda *_: enumerate(answers.values()))
    assert compare_all(asked_for) == [
        (LATE, "no answer within 5 s; as that is a limit of time, another run may end otherwise"),
        (GONE, "math-verify ended the process that it ran in (signal 9)"),
        (GONE, "the processes that mathematics needs keep ending"),
    ]
    assert [client.MEMO.find(each) is not None for each in asked_for] == [True, False, False]


def test_a_process_that_cannot_be_started_costs_the_rows_that_need_it(monkeypatch, pool):
    monkeypatch.setattr(sys, "executable", "/nowhere")
    frame = assay.score([{"completion": text} for text in ("1", "2")], {"checks": [{"type": "math", "value": "2"}]})
    assert frame["reward"].to_list() == [0.0, 1.0]
    assert frame["error"][0].startswith("math: RuntimeError: the process that mathematics needs could not be started: ")


def test_an_installation_that_is_not_whole_is_an_error_with_the_command(monkeypatch, pool, tmp_path):
    (tmp_path / "math_verify.py").write_text("raise ImportError('no antlr')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    message = "math-verify cannot be used: ImportError: no antlr; try pip install 'assay-rollouts[math]'"
    assert [asked(("1/1", "1")) for _ in range(2)] == [[(GONE, message)]] * 2


def test_answers_of_other_versions_are_not_remembered(monkeypatch, pool, tmp_path):
    assert verdicts(("1/1", "1")) == [EQUAL]
    pool.close()
    (tmp_path / "sympy-9.0.dist-info").mkdir()
    (tmp_path / "sympy-9.0.dist-info" / "METADATA").write_text("Name: sympy\nVersion: 9.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert verdicts(("2/2", "1")) == [EQUAL]  # of a program that has other versions than the first
    assert [client.MEMO.find(question("1", text)) is not None for text in ("1/1", "2/2")] == [False, True]


SPAWNED = """
import multiprocessing
import assay

def score(at):
    rows = [{"completion": f"{at}/3"}]
    return assay.score(rows, {"checks": [{"type": "math", "value": "2"}]})["reward"].to_list()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(score, [6, 7]))
"""


def test_a_daemon_has_processes_too(tmp_path):
    (tmp_path / "program.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE
    )
    assert done.stdout == "[[1.0], [0.0]]\n", done.stderr
