"""Specs that nobody tuned for: twenty drawn by seed, on four kinds of text, beside the scan of the column.

The verdicts of Assay are those of the loop over ``row()``, feedback included. Another engine has other rules for letters, spaces and
digits: a contender whose verdicts differ on more than one row in a hundred cannot say what the spec says.
"""

import json
from functools import partial
from statistics import median

import polars as pl

from harness.comparing import absent, differences, not_expressible, verdicts, written
from harness.draws import DRAWS, SEED, SpecDraw, spec_draws
from harness.generate import CACHE, ROWS, drawn_file
from harness.process import SPEC, Call, Race, contender, launch
from harness.table import Line, at_least, at_most, line, per_row
from harness.texts import KINDS

TURNS = 2
LOOPED = min(ROWS, 2_000)
"""Rows for loops over rows."""
LOOPS = {"a plain loop": "plain_loop", "a plain loop, with reasons": "plain_loop_reasons"}
MAY_DIFFER = 0.01
FLOOR, ASSAY, OURS = "the floor", "assay score", "our definition, the loop over row()"
FILES = {FLOOR: "file_floor", ASSAY: "file_assay"}
BY_HAND = {"Polars by hand": "file_polars", "DuckDB SQL": "file_duckdb"}
IN_MEMORY = LOOPS | {"verifiers": "spec_verifiers", "inspect_ai": "spec_inspect", "promptfoo": "spec_promptfoo"}
PEERS_DRAWS = 3
"""Draws for those that score row by row."""
BESIDE = {FLOOR: FLOOR, ASSAY: "assay"}
GOALS = {ASSAY: partial(at_most, limit=2.0), **dict.fromkeys(BY_HAND, partial(at_least, limit=1.3, unit=" × assay"))}
WHAT = f"{DRAWS} drawn specs, file to file, {ROWS:,} rows"


def _spec(draw):
    path = CACHE / f"draw-{SEED}-{draw.number}.json"
    path.write_text(draw.as_json(), "utf-8")
    return path


def _exact(path, spec):
    """Assay's verdicts and lines of feedback are those of the loop over rows, whose times are returned."""
    looped = launch(contender("row_loop", path, LOOPED, 0, spec=spec))
    wanted = pl.read_parquet(written("row_loop"))
    assert pl.read_parquet(written("file_assay"), n_rows=LOOPED).select(wanted.columns).equals(wanted), spec
    return Call(**json.loads(looped.printed))


def _plain_loops(path, spec):
    """The plain loops that can say what a spec says, each with its times."""
    race = Race({name: contender(module, path, LOOPED, 0, spec=spec) for name, module in LOOPS.items()})
    for name, module in LOOPS.items():
        if not _cannot(module, partial(race.run, name)):
            yield name, race.call(name)


def _beside(call, race):
    """The wall and the CPU time of a row in a loop, each as a multiple of those of a whole process of Assay."""
    rows = ROWS / LOOPED
    return call.seconds * rows / race.seconds(ASSAY), call.cpu * rows / race.cpu(ASSAY)


def _cannot(module, run):
    """Why a contender cannot say what a spec says, or ``""``."""
    if reason := not_expressible(run):
        return reason
    theirs = verdicts(module)
    unlike = differences(theirs, verdicts("file_assay", theirs.height)).mean()
    return f"{unlike:.1%} of the rows differ" if unlike > MAY_DIFFER else ""


def test_drawn_specs(table):
    files = FILES | {name: module for name, module in BY_HAND.items() if not absent(name)}
    table += [Line(WHAT, name, time=absent(name)) for name in BY_HAND if absent(name)]
    races, loops = [], {OURS: [], **{name: [] for name in LOOPS}}
    for draw in spec_draws():
        path, spec = drawn_file(draw), _spec(draw)
        race = Race({name: contender(module, path, spec=spec) for name, module in files.items()})
        for name in FILES:
            race.run(name)
        looped = _exact(path, spec)
        for name in [name for name in BY_HAND if name in files]:
            if reason := _cannot(BY_HAND[name], partial(race.run, name)):
                del race.commands[name]
                table.append(Line(draw.name, name, time=f"not expressible: {reason}"))
        for _ in range(TURNS - 1):
            race.turn()
        races.append((draw, race))
        for name, call in ((OURS, looped), *_plain_loops(path, spec)):
            loops[name].append(_beside(call, race))
        table += [_line(draw.name, name, race, name, FLOOR) for name in race.commands]
    _summary(table, races, ASSAY, FLOOR)
    for name in [name for name in BY_HAND if name in files]:
        _summary(table, [(draw, race) for draw, race in races if name in race.commands], name, ASSAY)
    for name, times in loops.items():
        if times:
            shown = f"{name}, {LOOPED:,} rows, median of {len(times)} of {DRAWS}"
            wall, cpu = ((median(ratios), "assay") for ratios in zip(*times, strict=True))
            table.append(line(WHAT, shown, "", ratio=wall, cpu_ratio=cpu))


def test_ten_checks_on_each_kind_of_text(table):
    """The fixed ten checks on texts that they were not chosen for: what a user's file takes, where reading it is cheap."""
    what = f"ten checks, file to file, {ROWS:,} rows, by kind of text"
    for kind in list(KINDS)[:DRAWS]:
        path = drawn_file(SpecDraw(0, kind, ()))
        race = Race({name: contender(module, path) for name, module in FILES.items()}, TURNS)
        _exact(path, SPEC)
        table.append(_line(what, f"{ASSAY}, {kind}", race, ASSAY, FLOOR, GOALS[ASSAY]))
        for name, call in _plain_loops(path, SPEC):
            wall, cpu = ((times, "assay") for times in _beside(call, race))
            figures = per_row(call.seconds, LOOPED), per_row(call.cpu, LOOPED)
            table.append(line(what, f"{name}, {LOOPED:,} rows, {kind}", *figures, ratio=wall, cpu_ratio=cpu))


def _line(what, shown, race, name, other, goal=None):
    """A contender beside another one in the same race."""
    times, cpu_times = race.seconds(name) / race.seconds(other), race.cpu(name) / race.cpu(other)
    ratios = {"ratio": (times, BESIDE[other]), "cpu_ratio": (cpu_times, BESIDE[other])}
    figures = (per_row(race.seconds(name), ROWS), per_row(race.cpu(name), ROWS))
    return line(what, shown, *figures, **ratios, goal=goal and goal(times))


def _summary(table, races, name, other):
    """The median of a contender over the specs that it can say, and the spec on which it, or Assay beside it, is worst."""
    if not races:
        table.append(Line(WHAT, name, time=f"0 of {DRAWS} expressible"))
        return
    walls, cpus = ([(of(race, name), of(race, other)) for _, race in races] for of in (Race.seconds, Race.cpu))
    times, cpu_times = ([mine / theirs for mine, theirs in pairs] for pairs in (walls, cpus))
    middle, cpu_middle = ((median(values), BESIDE[other]) for values in (times, cpu_times))
    figures = [per_row(median(mine for mine, _ in pairs), ROWS) for pairs in (walls, cpus)]
    shown = f"{name}, median of {len(races)} of {DRAWS}"
    table.append(line(WHAT, shown, *figures, ratio=middle, cpu_ratio=cpu_middle, goal=GOALS[name](middle[0])))
    choose, word = (max, "worst") if name == ASSAY else (min, "nearest to assay")
    draw, race = choose(zip(times, races, strict=True), key=lambda pair: pair[0])[1]
    table.append(_line(WHAT, f"{name}, {word}, {draw.name}", race, name, other))


def test_peers_on_drawn_specs(table):
    """Those that score row by row, on the first draws that they can say; the same call of Assay's plan beside them."""
    what = f"drawn specs, {LOOPED:,} texts in memory"
    table += [Line(what, name, time=absent(name)) for name in IN_MEMORY if absent(name)]
    for name, module in IN_MEMORY.items():
        times = []
        for draw in [] if absent(name) else spec_draws():
            path, spec = drawn_file(draw, LOOPED), _spec(draw)
            race = Race({each: contender(each, path, LOOPED, 0, spec=spec) for each in (module, "columns")})
            launch(contender("file_assay", path, spec=spec))
            if not _cannot(module, partial(race.run, module)):
                race.turn()
                times.append(race.call(module).seconds / race.call("columns").seconds)
            if len(times) == PEERS_DRAWS:
                break
        if times:
            table.append(line(what, f"{name}, median of {len(times)} draws", "", ratio=(median(times), "assay")))
