"""What ``assay diff`` and ``assay whatif`` found, for people."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.errors import counted
from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.numbers import interval, number, p_value, percent

if TYPE_CHECKING:
    from assay.insight.diffing import Diff
    from assay.insight.whatifs import WhatIf

_STATES = ("pass", "fail", "unscored")
_SHOWN = 10
_TEXT = 2_000
_BEFORE = 60
"""Equal characters that are shown before the first in which two texts differ."""

_CHANGE = "+.4f"


# ── assay diff ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def diff_document(diff: "Diff") -> Document:
    """Return a diff as a document: what is a fact on these rollouts, what it says of new tasks, and examples."""
    blocks: list[Lines | Table | Quote] = [Lines(_facts(diff))]
    if diff.matrix is not None and diff.flips:
        blocks.append(_matrix(diff.matrix))
    if touched := [check for check in diff.checks if check["changed"]]:
        blocks.append(_checks(touched))
    if diff.by and diff.changed:
        blocks += _by(diff.by)
    if diff.signatures:
        blocks.append(_signatures(diff.signatures))
    for example in diff.examples:
        blocks += _example(example)
    rest = [f"exceeded: {_limit(limit, diff.rows)}" for limit in diff.limits if limit["exceeded"]]
    if rest or diff.notes:
        blocks.append(Lines([*(f"note: {note}" for note in diff.notes), *rest]))
    return Document("assay diff", blocks)


def _facts(diff: "Diff") -> list[str]:
    flips = (
        ""
        if diff.flips is None
        else f" · {counted(diff.flips, 'flip')}, {counted(diff.regressions or 0, 'regression')}"
    )
    lines = [
        f"{counted(diff.rows, 'row')} · {diff.both_scored:,} scored on both sides{flips} · {diff.changed:,} rewards changed"
    ]
    delta, test = diff.delta, diff.reward_test
    directions = f"{delta['up']:,} up, {delta['down']:,} down, {delta['equal']:,} equal"
    lines.append(f"reward: mean {number(delta['mean'], _CHANGE)} a row, {directions}")
    few = f" (roughly: few tasks, {test['tasks']})" if test["few"] and test["mean"] is not None else ""
    ends = f"{number(test['mean'], _CHANGE)} {interval(test['ci95'], _CHANGE)}".rstrip()
    lines.append(f"for new tasks: reward {ends}, p {p_value(test['p'])}")
    if diff.flip_test is not None:
        how = "McNemar, exact" if diff.flip_test["test"] == "mcnemar" else f"z {number(diff.flip_test['z'], _CHANGE)}"
        moved = f"{diff.flip_test['fail_to_pass']:,} gained, {diff.flip_test['pass_to_fail']:,} lost"
        lines[-1] += f"; passes {moved}: {how}, p {p_value(diff.flip_test['p'])}"
    lines[-1] += few
    for name, checks in (("before", diff.only_before), ("after", diff.only_after)):
        lines += [f"only {name}: {', '.join(checks)}"] if checks else []
    return lines


def _matrix(matrix: Mapping[str, int]) -> Table:
    rows = [[before, *(f"{matrix[f'{before}->{after}']:,}" for after in _STATES)] for before in _STATES]
    return Table({"before \\ after": False, **dict.fromkeys(_STATES, True)}, rows)


def _checks(checks: Sequence[Mapping[str, Any]]) -> Table:
    columns = {"check": False, "changed": True, "pass->fail": True, "fail->pass": True, "mean delta": True}
    counts = ("changed", "pass_to_fail", "fail_to_pass")
    rows = [
        [check["check"], *(f"{check[name]:,}" for name in counts), number(check["mean_delta"], _CHANGE)]
        for check in checks
    ]
    return Table(columns, rows)


def _by(entries: Sequence[Mapping[str, Any]]) -> list[Table]:
    tables = []
    for column in dict.fromkeys(entry["column"] for entry in entries):
        shown = [entry for entry in entries if entry["column"] == column]
        rows = [
            [
                "–" if entry["value"] is None else str(entry["value"]),
                *(f"{entry[name]:,}" for name in ("rows", "regressions", "fail_to_pass")),
                number(entry["mean_delta"], _CHANGE),
            ]
            for entry in shown
        ]
        headings = {column: False, "rows": True, "pass->fail": True, "fail->pass": True, "mean delta": True}
        tables.append(Table(headings, rows))
    return tables


def _signatures(signatures: Sequence[Mapping[str, Any]]) -> Table:
    rows = [[f"{entry['rows']:,}", " ".join(entry["signature"])] for entry in signatures[:_SHOWN]]
    more = len(signatures) - len(rows)
    return Table(
        {"flips": True, "checks that changed": False}, [*rows, *([["…", f"{more:,} more"]] if more > 0 else [])]
    )


def _example(example: Mapping[str, Any]) -> list[Lines | Table | Quote]:
    keys = " · ".join(f"{name} {value}" for name, value in example["key"].items())
    sides = [f"{number(example[side]['reward'], '.4g')} {_mark(example[side])}" for side in ("before", "after")]
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
    """Return a text of a bounded length from some character on, and how many are left out before and after."""
    skipped = f"{counted(start, 'equal character')} … " if start else ""
    more = len(text) - start - _TEXT
    return f"{skipped}{text[start : start + _TEXT]}" + (f"… {more:,} more" if more > 0 else "")


def _mark(side: Mapping[str, Any]) -> str:
    return {True: "✓", False: "✗"}.get(side["passed"], "unscored")


def _limit(limit: Mapping[str, Any], rows: int) -> str:
    value, allowed = limit["value"], limit["allowed"]
    if limit["limit"] == "--max-delta":
        return f"the mean reward moved by {number(value, '+.6g')}; --max-delta allows {allowed:g}"
    return f"{value:,} of {counted(rows, 'row')}; {limit['limit']} allows {allowed}"


# ── assay whatif ────────────────────────────────────────────────────────────────────────────────────────────────────────


def whatif_document(whatif: "WhatIf") -> Document:
    """Return rewards with other weights as a document: what they are, what changes, what the weights do, how models rank."""
    sides = {"now": whatif.before, "then": whatif.after}
    rows = [[name, number(one["mean_reward"], ".4f"), percent(one["pass_rate"])] for name, one in sides.items()]
    blocks: list[Lines | Table | Quote] = [Table({"": False, "mean reward": True, "pass rate": True}, rows)]
    blocks += [block for block in diff_document(whatif.diff).blocks if whatif.diff.changed or whatif.diff.flips]
    columns = {"check": False, "weight": True, "mean": True, "slope": True, "elasticity": True, "mean without": True}
    columns |= {"passes ×0": True, "×½": True, "×2": True}
    rows = [
        [
            *(entry["check"], f"{entry['weight']:g}", number(entry["mean"], ".4f"), number(entry["slope"], _CHANGE)),
            *(number(entry["elasticity"], _CHANGE), number(entry["mean_without"], ".4f")),
            *(percent(entry["pass_rate"][factor]) for factor in ("0", "0.5", "2")),
        ]
        for entry in whatif.sensitivity
    ]
    blocks.append(Table(columns, rows, "What each weight does"))
    if whatif.ranking is not None:
        blocks += _ranking(whatif.ranking)
    own = [f"note: {note}" for note in whatif.notes if note not in whatif.diff.notes or not whatif.diff.changed]
    return Document("assay whatif", [*blocks, *([Lines(own)] if own else [])])


def _ranking(ranking: Mapping[str, Any]) -> list[Lines | Table | Quote]:
    rows = [[str(at), entry["model"], number(entry["mean"], ".4f")] for at, entry in enumerate(ranking["order"], 1)]
    blocks: list[Lines | Table | Quote] = [Table({"": True, "model": False, "mean": True}, rows, "Ranking")]
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
        cells = [[f"{pair['above']} > {pair['below']}", f"{pair['mass']:.1%}"] for pair in least[:_SHOWN]]
        blocks.append(Table({"tie": False, "weight to move": True}, cells))
    if ranking["pareto"]:
        columns = {"share of": False, "from": True, "to": True, "moves": True, "pairs reversed": True}
        cells = [
            [move["check"], *(f"{move[name]:.1%}" for name in ("share", "to", "cost")), f"{move['reversed']:,}"]
            for move in ranking["pareto"][:_SHOWN]
        ]
        blocks.append(Table(columns, cells))
        if (left_out := len(ranking["pareto"]) - len(cells)) > 0:
            blocks.append(Lines([f"… and {counted(left_out, 'costlier move')} in --json"]))
    return blocks
