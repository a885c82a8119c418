"""Runs of rubrics drawn by a seed: whoever makes the calls, from whatever the rollouts come, the rewards are the same."""

import asyncio
import copy
import functools
import json
import logging
import math
import os
import random
import zlib
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl

import assay
from assay.aggregating.combining import OVERFLOW
from assay.compiling.verifiers import verifiers_of_run
from assay.scoring.reference import score_rows


class OddError(BaseException):
    """What no ``except Exception`` catches."""


class UnsayableError(Exception):
    """An exception whose words cannot be had."""

    def __str__(self):
        raise ValueError("no words")


VALUES = [
    0.0, -0.0, 0.5, 1, True, -3, 1e308, -1e308, 5e-324, Decimal("0.1"), Fraction(1, 3), np.float32(0.1), np.array(2),
]  # fmt: skip
ODD = ["0.5", b"1", None, math.nan, math.inf, 10**400, [1.0], {}, np.array([1.0]), np.str_("1"), 1j, Decimal("sNaN")]
RAISED = [
    ValueError, KeyError, SystemExit, GeneratorExit, OddError, UnsayableError, StopIteration, asyncio.CancelledError,
]  # fmt: skip
RAISED += [RecursionError, MemoryError, TimeoutError, StopAsyncIteration, AssertionError]


def drawn(seen, behaviour):
    one = behaviour[zlib.crc32(repr(seen).encode("utf-8", "replace")) % len(behaviour)]
    if isinstance(one, type):
        raise one("a\nb")
    return one


def plain(completion, *, behaviour):
    return drawn(completion, behaviour)


def everything(prompt, completion, answer, task, info, example_id, *, behaviour):
    return drawn((prompt, completion, answer, task, info, example_id), behaviour)


def any_of_them(*, behaviour, **given):
    given.pop("parser", None)
    given.pop("state", None)
    return drawn(sorted(given.items()), behaviour)


def default(completion, answer="none", *, behaviour):
    return drawn((completion, answer), behaviour)


def writes(state, completion, *, behaviour):
    state["seen"] = state.get("seen", 0) + 1
    return drawn(completion, behaviour)


def reads(state, *, behaviour):
    del behaviour
    return float(state.get("seen", 0))


def spoils(completion, info, state, *, behaviour):
    found = drawn(completion, [one for one in behaviour if not isinstance(one, type)] or [0.5])
    info["spoilt"] = True
    state["error"] = state.get("error")
    if isinstance(completion, list):
        completion[-1]["content"] = "spoilt"
        completion.append({"role": "assistant", "content": "spoilt"})
    return found


async def later(completion, answer, *, behaviour):
    await asyncio.sleep(0)
    return drawn((completion, answer), behaviour)


async def raises_later(completion, *, behaviour):
    async def inner():
        await asyncio.sleep(0)
        return drawn(
            completion, [one for one in behaviour if one not in (SystemExit, StopIteration, GeneratorExit)] or [1]
        )

    return await asyncio.create_task(inner())


def awaited(completion, *, behaviour):
    return later(completion, "", behaviour=behaviour)


def of_all(completions, *, behaviour):
    return [drawn((one, len(completions)), behaviour) for one in completions]


def of_all_at_once(completions, answers, infos, *, behaviour):
    found = drawn(completions, [*behaviour, "list", "tuple", "short", "generator", "dict"])
    made = [float(len(repr(answer))) for answer, _ in zip(answers, infos, strict=True)]
    return {
        "list": made,
        "tuple": tuple(made),
        "short": made[1:],
        "generator": iter(made),
        "dict": dict(enumerate(made)),
    }.get(found if isinstance(found, str) else "", found)


async def of_all_later(completions, states, *, behaviour):
    await asyncio.sleep(0)
    return [drawn((one, state.get("seen")), behaviour) for one, state in zip(completions, states, strict=True)]


ALONE = [plain, everything, any_of_them, default, writes, reads, spoils]
ASYNC = [later, raises_later, awaited]
TOGETHER = [of_all, of_all_at_once, of_all_later]
VERIFIER = {
    "id": "native",
    "checks": [{"type": "max_length", "value": 3, "weight": 0.3}, {"type": "contains", "value": "a"}],
}
TEXTS = ["", "a", "b", "aa", "\0", "4", "[1", '[{"role": "user"}]', "ß\u2028", "x" * 300, "\U0001f600"]
ANSWERS = ["4", "", 0, 0.5, True, None, {"a": None}, [None, 1]]
WEIGHTS = [1.0, 1.0, 0.5, 0.1, -1.0, 0.0, -0.0, 3, 1e308]


class Case:
    """One run: rollouts, and a rubric."""

    def __init__(self, seed, number, *, workers=False):
        rng = random.Random(f"{seed}/{number}")
        self.chats = rng.random() < 0.4
        self.plain_answers = rng.random() < 0.5
        self.rows = self._rows(rng)
        self.functions = []
        self.rubric = self._rubric(rng, depth=0)
        self.has_ids = "example_id" in self.rows[0] if self.rows else True
        self.grouped = self.rubric.has_group_funcs
        self.limits = rng.choice([{}, {"function_timeout": 60.0}, {"max_concurrent": 1}, {"max_concurrent": 0}])
        self.workers = 2 if workers and rng.random() < 0.02 else 0

    def _rows(self, rng):
        size = rng.choice([1, 1, 2, 3, 7, 30, 30, 257, 700])
        ids = rng.random() < 0.8
        failing = rng.random() < 0.3
        rows = []
        for _ in range(size):
            text = rng.choice(TEXTS)
            said = [{"role": "assistant", "content": text}]
            if self.chats and rng.random() < 0.3:
                said = [*said, {"role": "user", "content": "go on"}, {"role": "assistant", "content": text * 2}]
            row = {
                "prompt": rng.choice("pqr"),
                "completion": None if rng.random() < 0.03 else said if self.chats else text,
                "answer": rng.choice(ANSWERS[:2] if self.plain_answers else ANSWERS),
                "info": rng.choice([{}, {"n": 1}, {"n": [1, {"m": "x"}]}]),
            }
            row |= {"example_id": rng.choice([1, 2, 3, 4, None] if rng.random() < 0.1 else [1, 2, 3, 4])} if ids else {}
            row |= {"generation_error": rng.choice([None, None, "broke off"])} if failing else {}
            rows.append(row)
        return rows

    def _rubric(self, rng, depth):
        if depth < 2 and rng.random() < 0.2:
            return assay.RubricGroup([self._rubric(rng, depth + 1) for _ in range(rng.choice([1, 2, 3]))])
        kinds = [*ALONE, *(ASYNC if rng.random() < 0.4 else ()), *(TOGETHER if rng.random() < 0.4 else ())]
        members = []
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            pool = (
                rng.sample(VALUES, 3)
                + rng.sample(ODD, rng.choice([0, 1, 2]))
                + rng.sample(RAISED, rng.choice([0, 1, 2]))
            )
            members.append(functools.partial(rng.choice(kinds), behaviour=pool))
        self.functions += members
        if rng.random() < 0.15 and depth == 0:
            members.append(assay.load_verifier(VERIFIER))
        if rng.random() < 0.15:
            members.append(assay.fns.exact_match)
        weights = [rng.choice(WEIGHTS) for _ in members] if rng.random() < 0.7 else None
        return assay.Rubric(members, weights, parallelize_scoring=rng.random() < 0.7)

    def problems(self, folder):
        rows = copy.deepcopy(self.rows)
        found = assay.score(rows, self.rubric, **self.limits)
        if repr(rows) != repr(self.rows):
            yield "what the caller gave is changed"
        names = [
            "reward",
            "passed",
            "feedback",
            "error",
            *(name for name in found.columns if name.startswith(("score/", "check/"))),
        ]
        wanted = {name: bits(found[name]) for name in names}
        yield from differences("again", wanted, assay.score(copy.deepcopy(self.rows), self.rubric))
        frame = assay.scan(copy.deepcopy(self.rows)).collect()
        defined = score_rows(frame.to_dicts(), verifiers_of_run(self.rubric))
        yield from differences("the definition", wanted, {name: [row[name] for row in defined] for name in names})
        lines = folder / "rows.jsonl"
        lines.write_text("".join(json.dumps(row) + "\n" for row in self.rows), "utf-8")
        yield from differences("JSONL", wanted, assay.score(lines, self.rubric))
        source = lines
        if self.plain_answers:
            source = folder / "rows.parquet"
            frame.write_parquet(source, row_group_size=100)
            yield from differences("parquet", wanted, assay.score(source, self.rubric))
        assay.score_file(source, self.rubric, folder / "out.parquet", overwrite=True, workers=self.workers)
        yield from differences("a file", wanted, pl.read_parquet(folder / "out.parquet"))
        if not self.grouped:
            half = len(self.rows) // 2
            parts = [
                assay.score(copy.deepcopy(part), self.rubric) for part in (self.rows[:half], self.rows[half:]) if part
            ]
            joined = {name: [value for part in parts for value in part[name]] for name in names}
            # an answer that is null in all of a part is null there, and the column of another type: the same to a function
            yield from differences("in parts", wanted, joined)
            assay.score_file(source, self.rubric, f"{folder}/parts/", overwrite=True, isolate=False, part_bytes=1)
            yield from differences("a folder", wanted, pl.read_parquet(f"{folder}/parts/*.parquet"))
        yield from self._rollouts(found)

    def _rollouts(self, found):
        rows = copy.deepcopy(self.rows)
        at = [
            number
            for number, row in enumerate(rows)
            if row["completion"] is not None and not row.get("generation_error")
        ]
        there = [rows[number] for number in at]
        if any(
            isinstance(member, assay.spec.verifier.VerifierSpec) or assay.fns.registered_as(member)
            for member in self.rubric.get_reward_funcs()
        ):
            return  # verifiers get the answer of an environment, which is text
        lists = {f"{name}s": [row[name] for row in there] for name in ("prompt", "completion", "answer", "info")}
        states = [{} for _ in there]
        ids = [row["example_id"] for row in there] if self.has_ids else None
        if not there or (not self.has_ids and self.rows):
            return  # without ids each rollout would be an example of its own for a function that asks for it
        scores = asyncio.run(
            self.rubric.score_rollouts(
                **lists, states=states, tasks=["default"] * len(there), example_ids=ids, use_tqdm=False
            )
        )
        for number, reward, state in zip(at, scores.reward, states, strict=True):
            column, error = found["reward"][number], found["error"][number]
            if column is None:
                if math.isfinite(reward):
                    yield f"score_rollouts: row {number} is {reward}, and unscored in columns"
            elif repr(column) != repr(reward):
                yield f"score_rollouts: row {number} is {reward!r}, in columns {column!r}"
            told = {line.partition(": ")[2] for line in (state.get("error") or "").split("\n") if line}
            lines = {line.partition(": ")[2] for line in (error or "").split("\n") if line and line != OVERFLOW}
            if told != lines:
                yield f"score_rollouts: row {number} tells {sorted(told)}, columns {sorted(lines)}"


def bits(values):
    return [repr(value) for value in values]


def differences(name, wanted, found):
    for column, values in wanted.items():
        other = bits(found[column])
        if other != values:
            at = next(
                (at for at, (one, two) in enumerate(zip(values, other, strict=False)) if one != two),
                min(len(values), len(other)),
            )
            yield f"{name}: `{column}` of row {at} is {other[at : at + 1]}, not {values[at : at + 1]}"
            return


def outcome(seed, number, folder):
    case = Case(seed, number, workers="ASSAY_FUZZ_RUBRIC" in os.environ)
    logging.disable(logging.CRITICAL)
    try:
        problems = [*case.problems(folder)]
    finally:
        logging.disable(logging.NOTSET)
    return Counter(cases=1, rows=len(case.rows), grouped=case.grouped, processes=case.workers), "\n".join(problems)
