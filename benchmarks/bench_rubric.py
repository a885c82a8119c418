"""A rubric of five Python functions on 20,000 rollouts: equal rewards and metrics first, then the time of each way to score them.

The weights are powers of two, so that every order of addition is exact.
"""

import pytest

from contenders import bare_functions, peer_rubric, rubric_columns, rubric_rollouts
from harness.generate import conversations

ROWS = 20_000
CONTENDERS = [rubric_columns, rubric_rollouts, bare_functions, peer_rubric]


def correct(parser, completion, answer):
    return 1.0 if parser.parse_answer(completion) == answer else 0.0


def brief(completion):
    return max(0.0, 1.0 - len(completion[-1]["content"]) / 2048)


def offers_refund(completion):
    return 1.0 if "refund" in completion[-1]["content"] else 0.0


def easy(info, **kwargs):
    return 1.0 if info["level"] == 0 and kwargs["task"] == "sums" else 0.0


def make(module):
    parser = module.XMLParser(["think", "answer"])
    funcs = [correct, parser.get_format_reward_func(), brief, offers_refund, easy]
    return module.Rubric(funcs=funcs, weights=[1.0, 0.25, 0.125, -0.5, 0.0], parser=parser)


@pytest.fixture(scope="module")
def frame():
    return conversations(ROWS)


@pytest.fixture(scope="module")
def wanted(frame):
    found = {module: module.run(module.prepare(make, frame), frame) for module in CONTENDERS if _is_there(module)}
    assert all(one == found[rubric_columns] for one in found.values())
    assert len(found[rubric_columns]) == 6
    return found


def _is_there(module):
    if module is not peer_rubric:
        return True
    try:
        module.prepare(make, conversations(1))
    except ImportError:
        return False
    return True


@pytest.mark.usefixtures("wanted")
@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_rubric(benchmark, frame, contender):
    if not _is_there(contender):
        pytest.skip("the release to compare with is not here: pip install 'assay[bench]'")
    prepared = contender.prepare(make, frame)
    benchmark.extra_info |= {"contender": contender.__name__, "rows": ROWS}
    benchmark.group = f"five Python functions, {ROWS:,} rows"
    benchmark.pedantic(contender.run, args=(prepared, frame), rounds=3)
