"""Answers to questions about results, as documents; each function takes the ``as_json()`` of an answer."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from assay.errors import counted
from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.numbers import change, count, interval, number, p_value, percent, plain

_Data = Mapping[str, Any]
_Blocks = list[Lines | Table | Quote]

_STOPPING = 3
"""Checks that are named for a probe."""
_CELL = 80
"""Characters of a cell that are shown."""
_STATES = ("pass", "fail", "unscored")
_SHOWN = 10
_TEXT = 2_000
_BEFORE = 60
"""Equal characters that are shown before the first in which two texts differ."""
_PAIRS_SHOWN = _MODELS_SHOWN = 20
_FIRST, _WIDE = 5, 8
"""Most metrics beside the mean, and in a table of their own."""
_REPEATED = ("pass^1", "best@1", "worst@1", "maj@1")
"""Metrics of one row that are another one, too."""


def audit_document(audit: _Data) -> Document:
    """Return an audit: what each probe earns and what stops it, what each check lets through, and the limits."""
    real = audit["real"]
    facts = (
        f"{counted(real['tasks'], 'task')} · {counted(real['rows'], 'real rollout')} · mean reward "
        f"{number(real['mean_reward'])} · pass rate {percent(real['pass_rate'])}"
    )
    numbers = dict.fromkeys(("tasks", "mean", "passes", "beats", "centile"), True)
    tables = [
        Table({kind: False, **numbers, "stopped by": False}, [_probe(probe) for probe in probes])
        for kind, probes in groupby(audit["probes"], key=lambda probe: str(probe["class"]))
    ]
    names = [check["check"] for check in audit["checks"] if check["free"]]
    through: dict[str, list[str]] = {}
    for item in audit["bypasses"]:
        tasks = f"{item['probe']} on {item['tasks']:,} of {counted(item['of'], 'task')}"
        through.setdefault(item["check"], []).append(tasks)
    rest = [f"free reward: {number(audit['free_reward'])}, the greatest mean of the free probes"]
    rest += [f"every free probe passes {', '.join(names)}"] if names else []
    rest += [
        f"{probe['id']} earns more than the best real completion on {probe['gains']:,} of {counted(probe['tasks'], 'task')}"
        for probe in audit["probes"]
        if probe["class"] == "must not gain" and probe["gains"]
    ]
    rest += [f"{check} does not see its phrases in disguise: {', '.join(tasks)}" for check, tasks in through.items()]
    rest += [f"note: {note}" for note in audit["notes"]] + [f"exceeded: {line}" for line in audit["limits"]["exceeded"]]
    return Document("assay audit", [Lines([facts]), *tables, Lines(rest)])


def _probe(probe: Mapping[str, Any]) -> list[str]:
    names = probe["stopped_by"]
    more = [f"… {len(names) - _STOPPING} more"] if len(names) > _STOPPING else []
    errors = [f"({counted(probe['errors'], 'row')} with errors)"] if probe["errors"] else []
    shares = (
        percent(probe["pass_share"]),
        percent(probe["beats_real"]),
        percent(None if probe["percentile"] is None else probe["percentile"] / 100),
    )
    stopping = " ".join([", ".join([*names[:_STOPPING], *more]), *errors]).strip()
    return [probe["id"], count(probe["tasks"]), number(probe["mean_reward"]), *shares, stopping]


def alerts_document(tripwires: _Data) -> Document:
    """Return alerts, a line each."""
    alerts = tripwires["alerts"]
    rows = [[str(alert["step"]), alert["wire"], alert["check"] or "", alert["said"]] for alert in alerts]
    columns = {tripwires["by"]: True, "wire": False, "check": False, "fact": False}
    lines = [f"{counted(tripwires['steps'], 'step')} · {counted(len(alerts), 'alert')}"]
    lines += [f"note: {note}" for note in tripwires["notes"]]
    return Document("assay tripwire", [*([Table(columns, rows)] if rows else []), Lines(lines)])


def verification_document(verification: _Data) -> Document:
    """Return a verification: what was looked at, what differs, and what a sample can miss."""
    names = verification["columns_differ"]
    head = [f"{counted(verification['rows'], 'row')} · root {verification['root']}"]
    head.append(f"not as written: {', '.join(names)}" if names else "columns: as they were written")
    head += ["root: another than was demanded"] if verification["root_differs"] else []
    head += [f"{entry['name']}: the same by {entry['by']}" for entry in verification["inputs"]]
    if others := [verifier["id"] for verifier in verification["verifiers"] if not verifier["same"]]:
        head.append(f"verifiers: not what the footer says: {', '.join(others)}")
    elif verification["verifiers"]:
        head.append("verifiers: as the footer says")
    if (missed := verification["misses_up_to"]) is not None:
        differ = verification["cells_differ"]
        found = f"{counted(differ, 'cell')} differ{'s' * (differ == 1)}" if differ else "no cell differs"
        chance = (
            f"; if up to {percent(missed)} of the rows were altered, such a sample misses them with a chance of 5 %"
        )
        of_rows = f"{verification['sampled']:,} of {counted(verification['rows'], 'row')}"
        head.append(f"scored again: {of_rows}, {found}{chance if missed else ''}")
    rows = [
        [f"{cell['row']:,}", *(_cell(cell[name]) for name in ("column", "stored", "rescored"))]
        for cell in verification["cells"]
    ]
    cells = Table({"row": True, "column": False, "stored": False, "rescored": False}, rows)
    notes = [f"note: {note}" for note in verification["notes"]]
    end = "intact" if verification["intact"] else "not what its footer says"
    return Document("assay verify", [Lines(head), *([cells] if rows else []), Lines([*notes, end])])


def _cell(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def diff_document(diff: _Data) -> Document:
    """Return a diff: what is a fact on these rollouts, what it says of new tasks, and examples."""
    blocks: _Blocks = [Lines(_facts(diff))]
    matrix = diff["matrix"]
    if matrix is not None and diff["flips"]:
        cells = [[before, *(count(matrix[f"{before}->{after}"]) for after in _STATES)] for before in _STATES]
        blocks.append(Table({"before \\ after": False, **dict.fromkeys(_STATES, True)}, cells))
    counts = dict.fromkeys(("pass->fail", "fail->pass", "mean delta"), True)
    if touched := [check for check in diff["checks"] if check["changed"]]:
        cells = [_changes(check["check"], check, "changed", "pass_to_fail") for check in touched]
        blocks.append(Table({"check": False, "changed": True, **counts}, cells))
    if diff["by"] and diff["changed"]:
        for column, entries in groupby(diff["by"], key=lambda entry: str(entry["column"])):
            cells = [_changes(_or_dash(entry["value"]), entry, "rows", "regressions") for entry in entries]
            blocks.append(Table({column: False, "rows": True, **counts}, cells))
    if diff["signatures"]:
        cells = [[count(entry["rows"]), " ".join(entry["signature"])] for entry in diff["signatures"][:_SHOWN]]
        more = len(diff["signatures"]) - len(cells)
        cells += [["…", f"{more:,} more"]] if more > 0 else []
        blocks.append(Table({"flips": True, "checks that changed": False}, cells))
    for example in diff["examples"]:
        blocks += _example(example)
    rest = [f"exceeded: {_limit(limit, diff['rows'])}" for limit in diff["limits"] if limit["exceeded"]]
    if rest or diff["notes"]:
        blocks.append(Lines([*(f"note: {note}" for note in diff["notes"]), *rest]))
    return Document("assay diff", blocks)


def _facts(diff: _Data) -> list[str]:
    flips = (
        ""
        if diff["flips"] is None
        else f" · {counted(diff['flips'], 'flip')}, {counted(diff['regressions'] or 0, 'regression')}"
    )
    lines = [
        f"{counted(diff['rows'], 'row')} · {diff['both_scored']:,} scored on both sides{flips} · {diff['changed']:,} rewards changed"
    ]
    delta, test = diff["delta"], diff["reward_test"]
    directions = f"{delta['up']:,} up, {delta['down']:,} down, {delta['equal']:,} equal"
    lines.append(f"reward: mean {change(delta['mean'])} a row, {directions}")
    few = f" (roughly: few tasks, {test['tasks']})" if test["few"] and test["mean"] is not None else ""
    ends = f"{change(test['mean'])} {interval(test['ci95'])}".rstrip()
    lines.append(f"for new tasks: reward {ends}, p {p_value(test['p'])}")
    if diff["flip_test"] is not None:
        how = "McNemar, exact" if diff["flip_test"]["test"] == "mcnemar" else f"z {change(diff['flip_test']['z'])}"
        moved = f"{diff['flip_test']['fail_to_pass']:,} gained, {diff['flip_test']['pass_to_fail']:,} lost"
        lines[-1] += f"; passes {moved}: {how}, p {p_value(diff['flip_test']['p'])}"
    lines[-1] += few
    for name, checks in (("before", diff["only_before"]), ("after", diff["only_after"])):
        lines += [f"only {name}: {', '.join(checks)}"] if checks else []
    return lines


def _changes(name: str, entry: Mapping[str, Any], *counts: str) -> list[str]:
    numbers = (count(entry[name]) for name in (*counts, "fail_to_pass"))
    return [name, *numbers, change(entry["mean_delta"])]


def _or_dash(value: Any) -> str:
    return "–" if value is None else str(value)


def _example(example: Mapping[str, Any]) -> _Blocks:
    keys = " · ".join(f"{name} {value}" for name, value in example["key"].items())
    sides = [f"{number(example[side]['reward'])} {_mark(example[side])}" for side in ("before", "after")]
    heading = f"row {example['row']:,}{f' · {keys}' if keys else ''} · {' -> '.join(sides)} · {' '.join(example['signature'])}"
    ours, theirs = (str(example[f"feedback_{side}"] or "").splitlines() for side in ("before", "after"))
    lines = [f"- {line}" for line in ours if line not in theirs] + [f"+ {line}" for line in theirs if line not in ours]
    before, after = example["text"], example["text_after"]
    if before == after or after is None:
        texts = [Quote(_cut(before))] if before else []
    else:
        pairs = enumerate(zip(before or "", after, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), 0)
        start = same - _BEFORE if same > 2 * _BEFORE else 0
        texts = [
            Quote(_cut(text, start), side)
            for side, text in (("scored before", before), ("scored after", after))
            if text
        ]
    return [Lines(lines, heading), *texts]


def _cut(text: str, start: int = 0) -> str:
    skipped = f"{counted(start, 'equal character')} … " if start else ""
    more = len(text) - start - _TEXT
    return f"{skipped}{text[start : start + _TEXT]}" + (f"… {more:,} more" if more > 0 else "")


def _mark(side: Mapping[str, Any]) -> str:
    return {True: "✓", False: "✗"}.get(side["passed"], "unscored")


def _limit(limit: Mapping[str, Any], rows: int) -> str:
    value, allowed = limit["value"], limit["allowed"]
    if limit["limit"] == "--max-delta":
        return f"the mean reward moved by {f'{value:+.6g}'}; --max-delta allows {allowed:g}"
    return f"{value:,} of {counted(rows, 'row')}; {limit['limit']} allows {allowed}"


def whatif_document(whatif: _Data) -> Document:
    """Return rewards with other weights: what they are, what changes, what the weights do, how models rank."""
    sides = {"now": whatif["before"], "then": whatif["after"]}
    rows = [[name, number(one["mean_reward"]), percent(one["pass_rate"])] for name, one in sides.items()]
    blocks: _Blocks = [Table({"": False, "mean reward": True, "pass rate": True}, rows)]
    blocks += [
        block for block in diff_document(whatif["diff"]).blocks if whatif["diff"]["changed"] or whatif["diff"]["flips"]
    ]
    columns = {"check": False, "weight": True, "mean": True, "slope": True, "elasticity": True, "mean without": True}
    columns |= {"passes ×0": True, "×½": True, "×2": True}
    rows = [
        [
            *(entry["check"], plain(entry["weight"]), number(entry["mean"]), change(entry["slope"])),
            *(change(entry["elasticity"]), number(entry["mean_without"])),
            *(percent(entry["pass_rate"][factor]) for factor in ("0", "0.5", "2")),
        ]
        for entry in whatif["sensitivity"]
    ]
    blocks.append(Table(columns, rows, "What each weight does"))
    if whatif["ranking"] is not None:
        blocks += _ranking(whatif["ranking"])
    own = [
        f"note: {note}"
        for note in whatif["notes"]
        if note not in whatif["diff"]["notes"] or not whatif["diff"]["changed"]
    ]
    return Document("assay whatif", [*blocks, *([Lines(own)] if own else [])])


def _ranking(ranking: Mapping[str, Any]) -> _Blocks:
    rows = [[str(at), entry["model"], number(entry["mean"])] for at, entry in enumerate(ranking["order"], 1)]
    blocks: _Blocks = [Table({"": True, "model": False, "mean": True}, rows, "Ranking")]
    never = [
        f"{pair['above']} is no worse than {pair['below']} on any check"
        for pair in ranking["least_mass"]
        if pair["mass"] is None
    ]
    if never:
        more = [f"… and {len(never) - _SHOWN:,} more"] if len(never) > _SHOWN else []
        blocks.append(Lines([f"no weights reverse: {line}" for line in never[:_SHOWN]] + more))
    least = sorted((pair for pair in ranking["least_mass"] if pair["mass"] is not None), key=lambda pair: pair["mass"])
    if least:
        cells = [[f"{pair['above']} > {pair['below']}", percent(pair["mass"])] for pair in least[:_SHOWN]]
        blocks.append(Table({"tie": False, "weight to move": True}, cells))
    if ranking["pareto"]:
        columns = {"share of": False, "from": True, "to": True, "moves": True, "pairs reversed": True}
        cells = [
            [move["check"], *(percent(move[name]) for name in ("share", "to", "cost")), count(move["reversed"])]
            for move in ranking["pareto"][:_SHOWN]
        ]
        blocks.append(Table(columns, cells))
        if (left_out := len(ranking["pareto"]) - len(cells)) > 0:
            blocks.append(Lines([f"… and {counted(left_out, 'costlier move')} in --json"]))
    return blocks


def groups_document(groups: _Data) -> Document:
    """Return groups: their numbers, tables with a line for each model, pairs of models, and notes."""
    head = " · ".join(counted(groups[name], name.removesuffix("s")) for name in ("rows", "groups", "tasks"))
    by, models = groups["by"], groups["summary"]
    few = [model["metrics"]["mean"]["tasks"] for model in models if model["metrics"]["mean"]["few"]]
    notes = [f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %"] if few else []
    models = models[:_MODELS_SHOWN]
    names = [name for name in (models[0]["metrics"] if models else ()) if name not in _REPEATED]
    passing = [name for name in names if name.startswith("pass")]
    shares = [name for name in names if name.startswith(("flat", "all_"))]
    if not any(model["metrics"]["flat"]["groups"] for model in models):
        shares = []  # groups of one row
    extremes = [name for name in names if "@" in name and name not in passing]

    def table(columns: Sequence[str], values: Callable[[Mapping[str, Any]], list[str]]) -> Table:
        rows = [[*(_or_dash(model["of"][name]) for name in by), *values(model["metrics"])] for model in models]
        return Table(dict.fromkeys(by, False) | dict.fromkeys(columns, True), rows)

    def metrics(names: Sequence[str]) -> Table:
        return table(names, lambda metrics: [number(metrics[name]["value"]) for name in names])

    def first(metrics: Mapping[str, Any]) -> list[str]:
        mean = metrics["mean"]
        ends = [count(mean["groups"]), number(mean["value"]), interval(mean["ci95"])]
        return [*ends, *(number(metrics[name]["value"]) for name in passing[:_FIRST])]

    def last(metrics: Mapping[str, Any]) -> list[str]:
        row_mean = metrics["row_mean"]
        cells = [number(metrics[name]["value"]) for name in shares]
        return [*cells, number(row_mean["value"]), number(row_mean["design_effect"])]

    tables = [table(["groups", "mean", "95 %", *passing[:_FIRST]], first)]
    tables += [metrics(passing[at : at + _WIDE]) for at in range(_FIRST, len(passing), _WIDE)]
    tables += [metrics(extremes[at : at + _WIDE]) for at in range(0, len(extremes), _WIDE)]
    blocks: _Blocks = [Lines([head]), *tables, table([*shares, "row mean", "design effect"], last)]
    if (left_out := len(groups["summary"]) - len(models)) > 0:
        blocks.append(Lines([f"… and {left_out:,} more of {', '.join(by)} in --json"]))
    blocks += _pairs(groups["pairs"])
    return Document("assay groups", [*blocks, Lines([f"note: {note}" for note in (*notes, *groups["notes"])])])


def _pairs(pairs: Sequence[_Data]) -> _Blocks:
    if not pairs:
        return []
    first = sorted(pairs, key=lambda pair: math.inf if pair["p"] is None else pair["p"])[:_PAIRS_SHOWN]
    columns = {"pair": False, "tasks": True, "difference": True, "95 %": True, "p": True, "Holm": True}
    table = Table(columns | {"won:tied:lost": True, "r": True}, [_pair(pair) for pair in first])
    more = len(pairs) - len(first)
    return [table, *([Lines([f"… and {counted(more, 'pair')} more in --json"])] if more else [])]


def _pair(row: Mapping[str, Any]) -> list[str]:
    return [
        *(f"{row['b']} − {row['a']}", count(row["tasks"]), change(row["difference"])),
        *(interval(row["ci95"]), p_value(row["p"]), p_value(row["p_holm"])),
        *(f"{row['wins']:,}:{row['ties']:,}:{row['losses']:,}", number(row["correlation"])),
    ]
