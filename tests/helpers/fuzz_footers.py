"""Footers, manifests and counts that somebody has edited, read by every command that reads them.

A case is an entry of a footer (also of the canonical form within, whose hash is then made to fit), a value in its place, and a command.
Whatever they are, the command ends with 0, 2 or 3, without a traceback and without anything that a terminal would obey, and sends no
request.
"""

import hashlib
import json
import os
import random
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
from typer.testing import CliRunner
from web import Web

import assay
from assay.cli.main import app
from assay.errors import InputError
from assay.spec.canonical import forms_of
from assay.spec.stored_json import StoredError, parse_stored
from assay.writing.footers import Footer

RAW = {
    "@huge@": "9" * 400, "@deep@": "[" * 90 + "]" * 90, "@deeper@": "[" * 20_000 + "]" * 20_000,
    "@million@": "9" * 30,
}  # fmt: skip
"""What stands for values that ``json.dumps`` cannot write."""

VALUES: dict[str, Any] = {
    "null": None, "true": True, "zero": 0, "number": 7, "negative": -1, "fraction": 1.5, "large": 2**62,
    "larger": "@million@", "huge": "@huge@", "NaN": float("nan"), "infinite": float("inf"), "text": "x",
    "empty text": "", "long text": "long " * 4000, "list": [1], "empty list": [], "object": {"a": 1},
    "empty object": {}, "deep": "@deep@", "deeper": "@deeper@", "surrogate": "\ud800",
    "control": "a\x00b\r\n\tc\x07\x08", "escape": "\x1b[31mred\x1b]0;title\x07\x9b1m\u202e", "url": "@url@",
    "file url": "file:///etc/passwd", "path": "/etc/passwd", "device": "/dev/stdin",
}  # fmt: skip
EVERYTHING = 10_000

MISSING, SHORTER, LONGER = "missing", "shorter", "longer"
KINDS = (*VALUES, MISSING, SHORTER, LONGER)

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal may obey, and what it cannot print."""

COMMANDS = {
    "verify": ["verify", "y.parquet"],
    "verify moved": ["verify", "y.parquet", "--rollouts", "in.parquet", "--any-version", "--json"],
    "rescore": ["diff", "y.parquet", "--rescore"],
    "diff": ["diff", "out.parquet", "y.parquet", "--json"],
    "diff back": ["diff", "y.parquet", "other.parquet"],
    "show": ["show", "y.parquet"],
    "report": ["report", "y.parquet"],
    "page": ["report", "y.parquet", "--out", "page.html", "--overwrite"],
    "whatif": ["whatif", "y.parquet", "--set", "policy=2"],
    "whatif out": ["whatif", "y.parquet", "--threshold", "0.5", "--out", "w.parquet", "--overwrite"],
    "groups": ["groups", "y.parquet"],
    "suspects": ["suspects", "y.parquet", "--answer", "answer"],
    "calibrate": ["calibrate", "y.parquet", "--next", "2", "--suggest"],
    "tripwire": ["tripwire", "y.parquet", "--warn-only"],
    "audit": ["audit", "v.json", "y.parquet", "--map", "completion=feedback", "--sample", "2"],
    "reuse": [
        "score",
        "in.parquet",
        "-s",
        "v.json",
        "--tasks",
        "tasks.jsonl",
        "--reuse",
        "y.parquet",
        "-o",
        "z.parquet",
    ],
}
COMMANDS["reuse"] += ["--overwrite", "--lenient"]
OF_FOLDERS = {
    "verify": ["verify", "parts"], "show": ["show", "parts"], "report": ["report", "parts"],
    "whatif": ["whatif", "parts", "--set", "policy=2"], "rescore": ["diff", "parts", "--rescore"],
    "resume": ["score", "in.parquet", "-s", "v.json", "--tasks", "tasks.jsonl", "-o", "parts/", "--lenient"],
}  # fmt: skip
SPEC = {
    "id": "v",
    "passThreshold": 0.5,
    "checks": [
        {"id": "policy", "type": "contains", "value": "refund", "weight": 2},
        {"id": "answer", "type": "equals", "value": {"column": "answer"}, "on": ["boxed"], "missingGold": "fail"},
        {
            "id": "no",
            "type": "regex",
            "pattern": "[0-9]+",
            "negate": True,
            "when": {"column": "task_id", "equals": "a"},
        },
        {
            "id": "one",
            "type": "any_of",
            "weight": 0.5,
            "checks": [{"type": "min_length", "value": 2, "threshold": 0.5}, {"type": "json_valid"}],
        },
        {"id": "much", "type": "max_length", "value": 9, "penalty": 0.1},
    ],
}
OTHERS = {
    "class.parquet": {"id": "c", "kind": "format_only", "params": {"has_think_reward": 0.25}},
    "two.parquet": [{"id": "a", "checks": SPEC["checks"][:1]}, {"id": "b", "kind": "format_only"}],
}
"""Results of other kinds of verifiers."""


def exact(*, completion, answer, **_):
    return float(completion == answer)


@dataclass(frozen=True)
class Case:
    """An edit and a command."""

    where: str
    place: tuple[str | int, ...]
    kind: str
    command: str

    @property
    def arguments(self) -> list[str]:
        commands = OF_FOLDERS if self.where.startswith("parts/") else COMMANDS
        return commands[self.command]


def write_all() -> dict[str, str]:
    rows = {"task_id": ["a", "a", "b", "b"], "model": ["m", "n"] * 2, "step": [0, 0, 1, 1]}
    rows["completion"] = ["refund \\boxed{4}", "no", "a refund 7", '{"x": 1}']
    pl.DataFrame(rows).write_parquet("in.parquet")
    pl.DataFrame({"task_id": ["a", "b"], "answer": ["4", "5"]}).write_ndjson("tasks.jsonl")
    Path("v.json").write_text(json.dumps(SPEC))
    options: dict[str, Any] = {"tasks": "tasks.jsonl", "lenient": True}
    rubric = assay.Rubric(funcs=[exact, assay.load_verifier(SPEC)], weights=[1.0, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assay.score_file("in.parquet", SPEC, "out.parquet", **options, seal=True)
        assay.score_file("in.parquet", {**SPEC, "checks": SPEC["checks"][:2]}, "other.parquet", **options)
        for name, spec in OTHERS.items():
            assay.score_file("in.parquet", spec, name, **options)
        assay.score_file("in.parquet", rubric, "rubric.parquet", **options)
        assert CliRunner().invoke(app, OF_FOLDERS["resume"]).exit_code == 0
    shutil.copytree("parts", "whole")
    results = ("out.parquet", *OTHERS, "rubric.parquet", "parts/part-000000.parquet")
    texts = {name: pq.read_metadata(name).metadata[b"assay"].decode() for name in results}
    beside = ("parts/_manifest.json", "parts/_summary.json", "parts/_counts/000000.json")
    return texts | {name: Path(name).read_text() for name in beside}


def places(data: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if place:
        yield place
    if place and place[-1] == "canonical":
        data = json.loads(data)
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*place, key))


def edited(text: str, place: tuple[str | int, ...], kind: str, url: str) -> str:
    data = json.loads(text)
    _edit(data, place, kind)
    written = json.dumps(data).replace("@url@", url)
    for mark, raw in RAW.items():
        written = written.replace(f'"{mark}"', raw)
        written = written.replace(json.dumps(f'"{mark}"')[1:-1], raw)  # in a canonical form
    return _with_hashes(written)


def _edit(data: Any, place: tuple[str | int, ...], kind: str) -> None:
    *above, last = place
    for at, step in enumerate(above):
        if step == "canonical":
            form = json.loads(data[step])
            _edit(form, place[at + 1 :], kind)
            data[step] = json.dumps(form, sort_keys=True, separators=(",", ":"))
            return
        data = data[step]
    value = data[last]
    if kind == MISSING:
        del data[last]
    elif kind in (SHORTER, LONGER) and isinstance(value, list | str):
        data[last] = value[:-1] if kind == SHORTER else value * 2
    elif kind in VALUES:
        data[last] = VALUES[kind]


def _with_hashes(text: str) -> str:
    try:
        data = json.loads(text)
        for entry in data["verifiers"]:
            entry["sha256"] = hashlib.sha256(entry["canonical"].encode()).hexdigest()
        return json.dumps(data)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return text


def cases(texts: dict[str, str], share: int, seed: str, url: str) -> Iterator[tuple[Case, str]]:
    rng = random.Random(f"{seed}/footers")
    for where, text in texts.items():
        commands = [*(OF_FOLDERS if where.startswith("parts/") else COMMANDS)]
        for place in places(json.loads(text)):
            for kind in KINDS:
                drawn = [command for command in commands if rng.randrange(EVERYTHING) < share]
                if not drawn:
                    continue
                written = edited(text, place, kind, url)
                if share == EVERYTHING and not is_read(written):
                    drawn = [rng.choice(commands)]
                yield from ((Case(where, place, kind, command), written) for command in drawn)


def is_read(text: str) -> bool:
    try:
        forms_of(parse_stored(text, Footer), "")
    except (StoredError, InputError):
        return False
    return True


def put(case: Case, text: str, frames: dict[str, pl.DataFrame]) -> None:
    if not case.where.startswith("parts/"):
        frames[case.where].write_parquet("y.parquet", metadata={"assay": text})
        return
    shutil.rmtree("parts", ignore_errors=True)
    shutil.copytree("whole", "parts")
    if case.where.endswith(".parquet"):
        frames[case.where].write_parquet(case.where, metadata={"assay": text})
    else:
        Path(case.where).write_text(text)


def tried(case: Case) -> tuple[int, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, case.arguments)
    shown = done.stdout + done.stderr
    if done.exit_code not in (0, 2, 3):
        lines = shown.strip().splitlines()
        return done.exit_code, f"exit {done.exit_code}: {done.exception!r} {lines[-1] if lines else ''}"[:300]
    if "Traceback" in shown or "internal error" in shown:
        return done.exit_code, "a traceback"
    if obeyed := OBEYED.search(shown):
        return done.exit_code, f"{obeyed.group()!r} in {shown[max(0, obeyed.start() - 60) : obeyed.end() + 20]!r}"
    return done.exit_code, "" if done.exit_code != 2 or done.stderr.startswith("error: ") else "no message"


def fuzz(share: int, seed: str = "0") -> dict[str, Any]:
    found, ends = [], Counter()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, Web({}) as web:
        os.chdir(folder)
        try:
            texts = write_all()
            frames = {name: pl.read_parquet(name) for name in texts if name.endswith(".parquet")}
            url = f"{web.url}/rows.parquet"
            whole: set[Case] = set()
            for case, text in cases(texts, share, seed, url):
                where = "parts/_manifest.json" if case.where.startswith("parts/") else "out.parquet"
                unedited = Case(where, (), "", case.command)
                if unedited not in whole:  # as they are, all of them end well
                    whole.add(unedited)
                    put(unedited, texts[where], frames)
                    found += [f"{unedited}: {done}"] if (done := tried(unedited)) != (0, "") else []
                put(case, text, frames)
                code, problem = tried(case)
                ends[f"{case.command} {code}"] += 1
                found += [f"{case}: {problem}"] if problem else []
                if web.requests:
                    found.append(f"{case}: asked for {web.requests}")
                    web.requests.clear()
        finally:
            os.chdir(here)
    return {"cases": sum(ends.values()), "ends": dict(sorted(ends.items())), "found": found}
