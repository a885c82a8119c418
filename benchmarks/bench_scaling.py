"""What a run costs as it grows: twice the rows, twice the bytes, a check more, ten specs at once; and the memory it holds."""

import json

import pytest

from harness.generate import ABSENT, CACHE, ROWS, real_rollouts
from harness.process import SPEC, Race, assay, contender
from harness.table import at_most, line, per_row

TURNS = 3
HALF = ROWS // 2
ADDED = {"type": "regex", "id": "added", "pattern": r"(?i)\bin (?:conclusion|summary)\b"}
TOPICS = ("water", "music", "city", "family", "science", "health", "money", "history", "language", "travel")


def _rollouts(*wanted):
    paths = [real_rollouts(*one) for one in wanted]
    return paths if all(paths) else pytest.skip(ABSENT)


def _score(rollouts, *specs):
    named = [part for spec in specs for part in ("--spec", spec)]
    return assay("score", rollouts, *named, "--out", CACHE / "scaling.parquet", "--overwrite", "--json")


def _spec(name, checks):
    path = CACHE / f"{name}.json"
    path.write_text(json.dumps({"id": name, "checks": checks}), "utf-8")
    return path


def _seconds(race, name):
    """Time from the first row to the last, without the start of the process."""
    return json.loads(race.best[name].said)["seconds"]


def test_twice_as_much(benchmark, table):
    half, rows, size = _rollouts([HALF], [ROWS], [HALF, 2])
    race = Race(
        {
            "once": _score(half, SPEC),
            "twice the rows": _score(rows, SPEC),
            "twice the bytes a row": _score(size, SPEC),
            "the floor, once": contender("file_floor", half),
            "the floor, twice the rows": contender("file_floor", rows),
        }
    )
    benchmark.pedantic(race.turn, rounds=TURNS)
    once = _seconds(race, "once")
    for name, count in (("once", HALF), ("twice the rows", ROWS), ("twice the bytes a row", HALF)):
        times = _seconds(race, name) / once
        goal = None if name == "once" else at_most(times, 2.2)
        what = f"ten checks, {HALF:,} rows and twice as much"
        table.append(line(what, name, per_row(_seconds(race, name), count), ratio=(times, "once"), goal=goal))
    for name in ("once", "twice the rows", "the floor, once", "the floor, twice the rows"):
        peak = race.leanest[name]
        ratio = (peak / race.leanest[name.replace("twice the rows", "once")], "once") if "twice" in name else None
        goal = at_most(ratio[0], 1.2) if name == "twice the rows" else None
        what = f"peak of memory, {HALF:,} rows and twice as many"
        table.append(line(what, name, f"{peak / 1e6:,.0f} MB", ratio=ratio, goal=goal))


def test_one_check_more(benchmark, table):
    rows = ROWS // 5
    [rollouts] = _rollouts([rows])
    ten = json.loads(SPEC.read_text("utf-8"))["checks"]
    race = Race(
        {
            "nothing": _score(rollouts, _spec("nothing", [{"type": "min_length", "value": 0}])),
            "the check alone": _score(rollouts, _spec("alone", [ADDED])),
            "ten checks": _score(rollouts, SPEC),
            "eleven checks": _score(rollouts, _spec("eleven", [*ten, ADDED])),
        }
    )
    benchmark.pedantic(race.turn, rounds=5)
    alone = _seconds(race, "the check alone") - _seconds(race, "nothing")
    added = _seconds(race, "eleven checks") - _seconds(race, "ten checks")
    what = f"a regex check, {rows:,} rows"
    table.append(line(what, "alone, less a check of nothing", per_row(alone, rows)))
    goal = at_most(added / alone, 1.25)
    table.append(line(what, "added to ten checks", per_row(added, rows), ratio=(added / alone, "alone"), goal=goal))


def test_ten_specs(benchmark, table):
    rows = ROWS // 5
    [rollouts] = _rollouts([rows])
    specs = [
        _spec(
            topic,
            [
                {"type": "contains", "value": topic},
                {"type": "regex", "pattern": rf"\b{topic}s?\b"},
                {"type": "json_valid"},
                {"type": "min_length", "value": 100},
            ],
        )
        for topic in TOPICS
    ]
    race = Race({"one run": _score(rollouts, *specs)} | {spec.stem: _score(rollouts, spec) for spec in specs})
    benchmark.pedantic(race.turn, rounds=1)
    one, ten = race.seconds("one run"), sum(race.seconds(topic) for topic in TOPICS)
    what = f"ten specs of four checks, {rows:,} rows"
    table.append(line(what, "ten runs", f"{ten:.2f} s"))
    table.append(
        line(
            what, "one run", f"{one:.2f} s", ratio=(one / ten, "ten runs"), goal=at_most(one / ten, 0.5, " × ten runs")
        )
    )
