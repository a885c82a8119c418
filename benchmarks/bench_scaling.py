"""What a run costs as it grows: the slope between two sizes, twice the bytes, a check more, ten specs at once."""

import json

import pytest

from harness.comparing import absent, differences, verdicts
from harness.generate import ABSENT, CACHE, ROWS, real_rollouts
from harness.process import SPEC, Race, assay, contender
from harness.table import at_least, at_most, line, per_row

TURNS = 3
HALF = ROWS // 2
ADDED = {"type": "regex", "id": "added", "pattern": r"(?i)\bin (?:conclusion|summary)\b"}
TOPICS = ("water", "music", "city", "family", "science", "health", "money", "history", "language", "travel")
SIZES = (ROWS, 4 * ROWS)
FILES = {
    "the floor": "file_floor",
    "assay score": "file_assay",
    "Polars by hand": "file_polars",
    "DuckDB SQL": "file_duckdb",
}
LOOPS = {"a plain loop": "file_loop", "a plain loop, with reasons": "file_loop_reasons"}
LOOPED = (ROWS // 5, ROWS)
"""Rows of the loops, which take as long for each row, however many."""


def _rollouts(rows, copies=1):
    return real_rollouts(rows, copies) or pytest.skip(ABSENT)


def _score(rollouts, *specs):
    named = [part for spec in specs for part in ("--spec", spec)]
    return assay("score", rollouts, *named, "--out", CACHE / "scaling.parquet", "--overwrite", "--json")


def _spec(name, checks):
    path = CACHE / f"{name}.json"
    path.write_text(json.dumps({"id": name, "checks": checks}), "utf-8")
    return path


def _seconds(race, name):
    """Time from the first row to the last, without the start of the process."""
    return min(json.loads(run.printed)["seconds"] for run in race.runs[name])


def test_slope(table):
    """What a further row costs: the start of the process is in both sizes, and goes away."""
    what = f"ten checks, file to file, slope from {SIZES[0]:,} to {SIZES[1]:,} rows"
    there = {name: (module, SIZES) for name, module in FILES.items() if not absent(name)}
    there |= {name: (module, LOOPED) for name, module in LOOPS.items()}
    files = {size: _rollouts(size) for size in sorted({*SIZES, *LOOPED})}
    race = Race(
        {(name, size): contender(module, files[size]) for name, (module, sizes) in there.items() for size in sizes}
    )
    race.turn()
    for name, (module, (_, rows)) in there.items():
        unlike = 0 if name == "the floor" else differences(verdicts(module), verdicts("file_assay", rows)).sum()
        assert unlike == 0, f"{name}: {unlike:,} of {rows:,} rows differ"
    for _ in range(TURNS - 1):
        race.turn()

    def slope(of, name):
        less, more = there[name][1]
        return (of((name, more)) - of((name, less))) / (more - less)

    floor, floor_cpu = slope(race.seconds, "the floor"), slope(race.cpu, "the floor")
    ours = slope(race.seconds, "assay score")
    for name in there:
        wall, cpu = slope(race.seconds, name), slope(race.cpu, name)
        goal = at_most(wall / floor, 2.0) if name == "assay score" else None
        goal = at_least(wall / ours, 1.3, " × assay") if name in {"Polars by hand", "DuckDB SQL"} else goal
        ratios = {"ratio": (wall / floor, "the floor"), "cpu_ratio": (cpu / floor_cpu, "the floor")}
        shown = f"{name}, from {LOOPED[0]:,} to {LOOPED[1]:,}" if name in LOOPS else name
        table.append(line(what, shown, per_row(wall, 1), per_row(cpu, 1), **ratios, goal=goal))


def test_twice_the_bytes(table):
    race = Race(
        {"once": _score(_rollouts(HALF), SPEC), "twice the bytes a row": _score(_rollouts(HALF, 2), SPEC)}, TURNS
    )
    once, twice = (_seconds(race, name) for name in race.commands)
    what = f"ten checks, {HALF:,} rows, and twice the bytes"
    table.append(line(what, "once", per_row(once, HALF)))
    times = twice / once
    table.append(
        line(what, "twice the bytes a row", per_row(twice, HALF), ratio=(times, "once"), goal=at_most(times, 2.2))
    )


def test_one_check_more(table):
    rows = ROWS // 5
    rollouts = _rollouts(rows)
    ten = json.loads(SPEC.read_text("utf-8"))["checks"]
    race = Race(
        {
            "nothing": _score(rollouts, _spec("nothing", [{"type": "min_length", "value": 0}])),
            "the check alone": _score(rollouts, _spec("alone", [ADDED])),
            "ten checks": _score(rollouts, SPEC),
            "eleven checks": _score(rollouts, _spec("eleven", [*ten, ADDED])),
        },
        turns=5,
    )
    alone = _seconds(race, "the check alone") - _seconds(race, "nothing")
    added = _seconds(race, "eleven checks") - _seconds(race, "ten checks")
    what = f"a regex check, {rows:,} rows"
    table.append(line(what, "alone, less a check of nothing", per_row(alone, rows)))
    goal = at_most(added / alone, 1.25)
    table.append(line(what, "added to ten checks", per_row(added, rows), ratio=(added / alone, "alone"), goal=goal))


def test_ten_specs(table):
    rows = ROWS // 5
    rollouts = _rollouts(rows)
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
    race = Race({"one run": _score(rollouts, *specs)} | {spec.stem: _score(rollouts, spec) for spec in specs}, turns=1)
    together, apart = race.seconds("one run"), sum(race.seconds(topic) for topic in TOPICS)
    what = f"ten specs of four checks, {rows:,} rows"
    table.append(line(what, "ten runs", f"{apart:.2f} s"))
    table.append(
        line(
            what,
            "one run",
            f"{together:.2f} s",
            ratio=(together / apart, "ten runs"),
            goal=at_most(together / apart, 0.5, " × ten runs"),
        )
    )
