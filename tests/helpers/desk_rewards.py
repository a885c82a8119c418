"""Reward functions for tests that run them in other processes: those import this module."""

import asyncio
import os
import re
import threading
import time
from pathlib import Path

import assay


def length(completion):
    return len(completion)


def busy(completion):
    return sum(number * number for number in range(2_000)) % 7 / 7 if completion else 0.0


def fails(info):
    return info["missing"]


def hangs():
    """Tell a test that does not go by the clock which process hangs."""
    if folder := os.environ.get("HANGING"):
        Path(folder, str(os.getpid())).touch()


def sleeps(completion):
    if completion.endswith("7"):
        hangs()
        time.sleep(1000)
    return 1.0


def backtracks(completion):
    """Never gives the interpreter back."""
    if completion.endswith("7"):
        hangs()
        re.search("(a+)+$", "a" * 60 + "b")
    return 1.0


def dies(completion):
    if completion.endswith("3"):
        os._exit(3)
    return 1.0


async def judge(prompt):
    await asyncio.sleep(0.001)
    return 0.25


def leaves_a_note(state):
    state["note"] = 0.5
    return 1.0


def reads_the_note(state):
    return state["note"]


def best_of_example(completions):
    most = max(map(len, completions))
    return [float(len(one) == most) for one in completions]


def prints(completion):
    print("from a reward function", completion)  # noqa: T201  (what people leave in)
    return 1.0


def nested():
    def unpicklable(completion):
        return 0.5

    return unpicklable


rubric = assay.Rubric(funcs=[length, judge, nested()], weights=[0.5, 1.0, -1.0])
slow = assay.Rubric(funcs=[sleeps, length])
penalised = assay.Rubric(funcs=[length, fails], weights=[0.0, -1.0])
not_a_rubric = str


def forks(completion):
    """Comes back in the child, too."""
    return 7.0 if completion.endswith("3") and os.fork() == 0 else 1.0


def interrupts(completion):
    raise KeyboardInterrupt


def closes_every_file(completion):
    os.closerange(3, 256)
    return 1.0


async def stops_the_loop(completion):
    asyncio.get_running_loop().stop()
    return 1.0


class OfALock:
    """A number that no pickle holds."""

    def __init__(self):
        self.lock = threading.Lock()

    def __float__(self):
        return 2.0


def locks(completions):
    return [OfALock() for _ in completions]


class SpeechlessError(Exception):
    def __str__(self):
        raise SystemExit(3)


def fails_without_words(completion):
    raise SpeechlessError


def fails_with_many_words(completion):
    raise ValueError("x" * 1_000_000)
