"""Answers to questions about results, as documents; each function takes the ``as_json()`` of an answer."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from assay.errors import counted, listed
from assay.writing.documents import Document, Lines, Quote, Table, cut, label, with_names
from assay.writing.numbers import change, count, interval, number, p_value, percent, plain

_Data = Mapping[str, Any]
_Blocks = list[Lines | Table | Quote]

_STOPPING = 3
"""Checks that are named for a probe."""
_CELL, _TEXT = 80, 2_000
"""Characters of a cell and of a text that are shown."""
_BEFORE = 60
"""Equal characters that are shown before the first in which two texts differ."""
_SHOWN, _MODELS = 10, 20
"""Entries of a list that are shown; models, and pairs of them."""
_STATES = ("pass", "fail", "unscored")
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
    tables = []
    for kind, probes in groupby(audit["probes"], key=lambda probe: str(probe["class"])):
        rows = [_probe(probe) for probe in probes]
        last = None
        for row in rows:
            last, row[-1] = row[-1], "as above" if row[-1] and row[-1] == last else row[-1]
        tables.append(Table({kind: False, **numbers, "stopped by": False}, rows, spare=("centile", "beats", "tasks")))
    names = [check["check"] for check in audit["checks"] if check["free"]]
    rest = [f"free reward: {number(audit['free_reward'])}, the greatest mean of the free probes"]
    rest += [f"every free probe passes {listed(names)}"] if names else []
    rest += [
        f"{probe['id']} earns more than the best real completion on {count(probe['gains'])} of {counted(probe['tasks'], 'task')}"
        for probe in audit["probes"]
        if probe["class"] == "must not gain" and probe["gains"]
    ]
    rest += _bypasses(audit["bypasses"])
    rest += [f"note: {note}" for note in audit["notes"]] + [f"exceeded: {line}" for line in audit["limits"]["exceeded"]]
    return Document("assay audit", [Lines([facts]), *tables, Lines(rest)])


def _probe(probe: _Data) -> list[str]:
    names = probe["stopped_by"]
    more = [f"… {len(names) - _STOPPING} more"] if len(names) > _STOPPING else []
    errors = [f"({counted(probe['errors'], 'row')} with errors)"] if probe["errors"] else []
    centile = None if probe["percentile"] is None else probe["percentile"] / 100
    shares = map(percent, (probe["pass_share"], probe["beats_real"], centile))
    stopping = " ".join([", ".join([*names[:_STOPPING], *more]), *errors]).strip()
    return [probe["id"], count(probe["tasks"]), number(probe["mean_reward"]), *shares, stopping]


def _bypasses(bypasses: list[dict[str, Any]]) -> list[str]:
    through: dict[str, list[str]] = {}
    for item in bypasses:
        tasks = f"{item['probe']} on {count(item['tasks'])} of {counted(item['of'], 'task')}"
        through.setdefault(item["check"], []).append(tasks)
    checks: dict[str, list[str]] = {}
    for check, items in through.items():
        checks.setdefault(", ".join(items), []).append(check)
    return [f"phrases in disguise are not seen by {listed(names)}: {tasks}" for tasks, names in checks.items()]


def in_shell(word: str) -> str:
    """Return a word as a shell reads it, with what cannot be seen as escapes."""
    if not word.isprintable():  # as escapes, which a terminal shows and a shell reads
        escaped = (char if char.isprintable() else rf"\U{ord(char):08x}" for char in re.sub(r"[\\']", r"\\\g<0>", word))
        return f"$'{''.join(escaped)}'"
    quoted = shlex.quote(word)
    return f'"{word}"' if quoted != word and not {*word} & {*'"$`\\!'} else quoted


def suspects_document(suspects: _Data) -> Document:
    """Return golds to read first, each with the command that shows the first row with the answer that speaks against it."""
    head = [
        f"{count(suspects['found'])} of {counted(suspects['of'], 'task')} with an answer that is likelier than the gold",
        f"chance of two equal wrong answers: {number(suspects['chance'])}",
    ]
    weights = [f"{model or 'all rows'} {number(weight)}" for model, weight in suspects["weights"].items()]
    head.append(f"weights: {listed(weights)}")
    columns = {"task_id": False, "score": True, "answer": False, "rows": True, "passes": True, "row": True}
    rows = [
        [
            label(task["task_id"]),
            number(task["score"]),
            label(f"{answer:.15g}" if isinstance(answer := task["answer"], float) else answer),
            count(task["rows"]),
            count(task["passes"]),
            count(task["row"]),
        ]
        for task in suspects["tasks"]
    ]
    table: _Blocks = [Table(columns, rows, spare=("passes", "rows"))] if rows else []
    table += _to_read(suspects["result"], suspects["tasks"])
    notes = [f"note: {note}" for note in suspects["notes"]]
    return Document("assay suspects", [Lines(head), *table, *([Lines(notes)] if notes else [])])


def _to_read(name: str | None, items: Sequence[_Data]) -> _Blocks:
    """Return the commands that show rows, each on a line that can be copied: a cell of a table would be folded."""
    commands = [f"assay show {in_shell(name)} --row {item['row']}" for item in items if name]
    return [Lines(commands, "to read them")] if commands else []


_WORDS = {"form": "forms, which have to pass", "near": "near misses, which have to fail"}


def forge_document(forge: _Data) -> Document:
    """Return what checks make of golds: those refused as they stand, forms refused, near misses accepted, and probes that pass."""
    blocks: _Blocks = [Lines([forge["headline"]])]
    if forge["unread"]:
        rows = [[item["check"], count(item["row"]), _text(item["completion"])] for item in forge["unread"][:_SHOWN]]
        more = len(forge["unread"]) - len(rows)
        rows += [["…", "", f"{more:,} more"]] if more else []
        blocks.append(Table({"golds refused as they stand": False, "row": True, "text": False}, rows))
    smallest = {(item["check"], item["class"], item["form"]): item for item in forge["smallest"]}
    for kind, words in _WORDS.items():
        rows = [
            [
                rate["check"],
                rate["form"],
                f"{count(rate['wrong'])} of {count(rate['of'])}",
                interval((rate["low"], rate["high"]), of_shares=True),
                _text(smallest[rate["check"], kind, rate["form"]]["completion"]),
            ]
            for rate in forge["rates"]
            if rate["class"] == kind and rate["wrong"]
        ]
        wrong = "refused" if kind == "form" else "accepted"
        columns = {"check": False, "form": False, wrong: True, "of all": True, "for example": False}
        blocks.append(
            Table(columns, rows, words, spare=("of all",)) if rows else Lines([f"no {wrong} {words.split(',')[0]}"])
        )
    lines = [
        f"{item['check']} passes {item['probe']} of audit on {count(item['passes'])} of {counted(item['of'], 'row')}"
        for item in forge["probes"]
        if item["passes"]
    ]
    lines += [f"note: {note}" for note in forge["notes"]] + [
        f"exceeded: {line}" for line in forge["limits"]["exceeded"]
    ]
    return Document("assay forge", [*blocks, *([Lines(lines)] if lines else [])])


def _text(completion: Any) -> str:
    text = completion if isinstance(completion, str) else json.dumps(completion, ensure_ascii=False)
    return label(json.dumps(text, ensure_ascii=False)[1:-1] if "\n" in text else text)


def calibration_document(calibration: _Data) -> Document:
    """Return metrics with intervals, suggestions, and rows to label next, each with the command that shows it."""
    blocks: _Blocks = [Lines([f"{counted(calibration['labels'], 'label')} of {counted(calibration['rows'], 'row')}"])]
    columns = {"of": False, "metric": False, "estimate": True, "95 % interval": False, "labels": True}
    blocks.append(
        Table(
            columns,
            [
                [
                    label(one["of"]),
                    one["metric"],
                    number(one["estimate"]),
                    interval((one["low"], one["high"])) or "–",
                    count(one["labels"]),
                ]
                for one in calibration["metrics"]
            ],
        )
    )
    if rows := [
        [
            label(f"weight of {one['change']}: {one['to']:g}" if one["change"] != "passThreshold" else ""),
            f"{one['pass_threshold']:g}",
            *(number(one[part]) for part in ("before", "after", "held_out")),
            count(one["flips"]),
        ]
        for one in calibration["suggestions"]
    ]:
        heads = {"change": False, **dict.fromkeys(("passThreshold", "f1 before", "after", "held out", "flips"), True)}
        blocks.append(Table(heads, rows, "suggestions").filled())
    if rows := [[label(one["stratum"]), count(one["row"])] for one in calibration["next"]]:
        blocks.append(Table({"stratum": False, "row": True}, rows, "label next"))
        blocks += _to_read(calibration["result"], calibration["next"])
    if calibration["notes"]:
        blocks.append(Lines([f"note: {note}" for note in calibration["notes"]]))
    return Document("assay calibrate", blocks)


def alerts_document(alerts: _Data) -> Document:
    """Return alerts, a line each."""
    rows = [[str(alert["step"]), alert["wire"], alert["check"] or "", alert["said"]] for alert in alerts["alerts"]]
    columns = with_names([alerts["by"]], dict.fromkeys(("wire", "check", "fact"), False), are_numbers=True)
    lines = [f"{counted(alerts['steps'], 'step')} · {counted(len(rows), 'alert')}"]
    lines += [f"note: {note}" for note in alerts["notes"]]
    return Document("assay tripwire", [*([Table(columns, rows)] if rows else []), Lines(lines)])


def verification_document(verification: _Data) -> Document:
    """Return a verification: what was looked at, what differs, and what a sample can miss."""
    rows, names = verification["rows"], verification["columns_differ"]
    head = [f"{counted(rows, 'row')} · root {verification['root']}"]
    head.append(f"not as written: {listed(names)}" if names else "columns: as they were written")
    head += ["root: another than was demanded"] if verification["root_differs"] else []
    head += [f"{entry['name']}: the same by {entry['by']}" for entry in verification["inputs"]]
    if others := [verifier["id"] for verifier in verification["verifiers"] if not verifier["same"]]:
        head.append(f"verifiers: not what the footer says: {listed(others)}")
    elif verification["verifiers"]:
        head.append("verifiers: as the footer says")
    if (missed := verification["misses_up_to"]) is not None:
        differ = verification["cells_differ"]
        fact = f"{counted(differ, 'cell')} differ{'s' * (differ == 1)}" if differ else "no cell differs"
        chance = (
            f"; if up to {percent(missed)} of the rows were altered, such a sample misses them with a chance of 5 %"
        )
        of_rows = f"{count(verification['sampled'])} of {counted(rows, 'row')}"
        head.append(f"scored again: {of_rows}, {fact}{chance if missed else ''}")
    cells = [
        [f"{cell['row']:,}", *(_cell(cell[name]) for name in ("column", "stored", "rescored"))]
        for cell in verification["cells"]
    ]
    table = Table({"row": True, "column": False, "stored": False, "rescored": False}, cells)
    notes = [f"note: {note}" for note in verification["notes"]]
    end = "intact" if verification["intact"] else "not what its footer says"
    return Document("assay verify", [Lines(head), *([table] if cells else []), Lines([*notes, end])])


def _cell(value: Any) -> str:
    return "null" if value is None else cut(str(value), _CELL)


def diff_document(diff: _Data) -> Document:
    """Return a diff: what is a fact on these rollouts, what it says of new tasks, and examples."""
    blocks: _Blocks = [Lines(_facts(diff))]
    matrix = diff["matrix"]
    if matrix is not None and diff["flips"]:
        cells = [[before, *(count(matrix[f"{before}->{after}"]) for after in _STATES)] for before in _STATES]
        blocks.append(Table({"before \\ after": False, **dict.fromkeys(_STATES, True)}, cells))
    if touched := [check for check in diff["checks"] if check["changed"]]:
        blocks.append(_changes("check", touched, "check", "changed", "pass_to_fail"))
    if diff["by"] and diff["changed"]:
        for column, entries in groupby(diff["by"], key=lambda entry: str(entry["column"])):
            blocks.append(_changes(column, list(entries), "value", "rows", "regressions"))
    if signatures := diff["signatures"]:
        cells = [[count(entry["rows"]), " ".join(entry["signature"])] for entry in signatures[:_SHOWN]]
        cells += [["…", f"{len(signatures) - _SHOWN:,} more"]] if len(signatures) > _SHOWN else []
        blocks.append(Table({"flips": True, "checks that changed": False}, cells))
    for example in diff["examples"]:
        blocks += _example(example)
    notes = [f"note: {note}" for note in diff["notes"]]
    notes += [f"exceeded: {_limit(limit, diff['rows'])}" for limit in diff["limits"] if limit["exceeded"]]
    return Document("assay diff", [*blocks, *([Lines(notes)] if notes else [])])


def _facts(diff: _Data) -> list[str]:
    facts = [counted(diff["rows"], "row"), f"{count(diff['both_scored'])} scored on both sides"]
    if diff["flips"] is not None:
        facts.append(f"{counted(diff['flips'], 'flip')}, {counted(diff['regressions'] or 0, 'regression')}")
    facts.append(f"{counted(diff['changed'], 'reward')} changed")
    delta, test, flips = diff["delta"], diff["reward_test"], diff["flip_test"]
    directions = ", ".join(f"{count(delta[name])} {name}" for name in ("up", "down", "equal"))
    lines = [" · ".join(facts), f"reward: mean {change(delta['mean'])} a row, {directions}"]
    new = (
        f"for new tasks: reward {change(test['mean'])} {interval(test['ci95'])}".rstrip() + f", p {p_value(test['p'])}"
    )
    if flips is not None:
        how = "McNemar, exact" if flips["test"] == "mcnemar" else f"z {change(flips['z'])}"
        new += f"; passes {count(flips['fail_to_pass'])} gained, {count(flips['pass_to_fail'])} lost: {how}, p {p_value(flips['p'])}"
    few = f" (roughly: few tasks, {test['tasks']})" if test["few"] and test["mean"] is not None else ""
    only = [f"only {side}: {listed(diff[f'only_{side}'])}" for side in ("before", "after") if diff[f"only_{side}"]]
    return [*lines, new + few, *only]


def _changes(heading: str, entries: Sequence[_Data], name: str, rows: str, lost: str) -> Table:
    columns = with_names([heading], dict.fromkeys((rows, "pass->fail", "fail->pass", "mean delta"), True))
    cells = [
        [
            _or_dash(entry[name]),
            *(count(entry[key]) for key in (rows, lost, "fail_to_pass")),
            change(entry["mean_delta"]),
        ]
        for entry in entries
    ]
    return Table(columns, cells)


def _or_dash(value: Any) -> str:
    return "–" if value is None else str(value)


def _example(example: _Data) -> _Blocks:
    keys = " · ".join(f"{name} {value}" for name, value in example["key"].items())
    sides = [f"{number(example[side]['reward'])} {_mark(example[side])}" for side in ("before", "after")]
    heading = f"row {example['row']:,}{f' · {keys}' if keys else ''} · {' -> '.join(sides)} · {' '.join(example['signature'])}"
    ours, theirs = (str(example[f"feedback_{side}"] or "").splitlines() for side in ("before", "after"))
    lines = [f"- {line}" for line in ours if line not in theirs] + [f"+ {line}" for line in theirs if line not in ours]
    before, after = example["text"], example["text_after"]
    if before == after or after is None:
        texts = [Quote(cut(before, _TEXT))] if before else []
    else:
        pairs = enumerate(zip(before or "", after, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), 0)
        start = same - _BEFORE if same > 2 * _BEFORE else 0
        skipped = f"{counted(start, 'equal character')} … " if start else ""
        texts = [
            Quote(skipped + cut(text[start:], _TEXT), side)
            for side, text in (("scored before", before), ("scored after", after))
            if text
        ]
    return [Lines(lines, heading), *texts]


def _mark(side: _Data) -> str:
    return {True: "✓", False: "✗"}.get(side["passed"], "unscored")


def _limit(limit: _Data, rows: int) -> str:
    value, allowed = limit["value"], limit["allowed"]
    if limit["limit"] == "--max-delta":  # in the digits of what was asked for
        return f"the mean reward moved by {value:+.6g}; --max-delta allows {allowed:g}"
    return f"{value:,} of {counted(rows, 'row')}; {limit['limit']} allows {allowed}"


def whatif_document(whatif: _Data) -> Document:
    """Return rewards with other weights: what they are, what changes, what the weights do, how models rank."""
    sides = {"now": whatif["before"], "then": whatif["after"]}
    rows = [[name, number(side["mean_reward"]), percent(side["pass_rate"])] for name, side in sides.items()]
    blocks: _Blocks = [Table({"": False, "mean reward": True, "pass rate": True}, rows)]
    diff, notes = whatif["diff"], whatif["notes"]
    if diff["changed"] or diff["flips"]:
        blocks += diff_document(diff).blocks
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
    blocks.append(Table(columns, rows, "What each weight does", spare=("elasticity", "mean without", "slope")))
    if whatif["ranking"] is not None:
        blocks += _ranking(whatif["ranking"])
    own = [f"note: {note}" for note in notes if note not in diff["notes"] or not diff["changed"]]
    return Document("assay whatif", [*blocks, *([Lines(own)] if own else [])])


def _ranking(ranking: _Data) -> _Blocks:
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
    """Return groups: how many there are, tables with a line for each model, pairs of models, and notes."""
    models, pairs = groups["summary"], groups["pairs"]
    head = " · ".join(counted(groups[name], name.removesuffix("s")) for name in ("rows", "groups", "tasks"))
    outcomes = (
        [" · ".join(f"{name} {count(rows)}" for name, rows in groups["outcomes"].items())]
        if "outcomes" in groups
        else []
    )
    few = [model["metrics"]["mean"]["tasks"] for model in models if model["metrics"]["mean"]["few"]]
    notes = [f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %"] if few else []
    blocks = [
        Lines([head, *(f"outcomes: {line}" for line in outcomes)]),
        *_of_models(list(groups["by"]), models[:_MODELS]),
    ]
    if (more := len(models) - _MODELS) > 0:
        blocks.append(Lines([f"… and {more:,} more of {', '.join(groups['by'])} in --json"]))
    if pairs:
        likeliest = sorted(pairs, key=lambda pair: (pair["p"] is None, pair["p"]))[:_MODELS]
        columns = {"pair": False, "tasks": True, "difference": True, "95 %": True, "p": True, "Holm": True}
        columns |= {"won:tied:lost": True, "r": True}
        blocks.append(Table(columns, list(map(_pair, likeliest)), spare=("r", "tasks", "p")))
        if (more := len(pairs) - _MODELS) > 0:
            blocks.append(Lines([f"… and {counted(more, 'pair')} more in --json"]))
    if "integrity" in groups:
        blocks += _integrity(groups)
    exceeded = [
        f"exceeded: {limit['value']:,} of {limit['of']:,}; {limit['limit']} allows {limit['allowed']}"
        for limit in groups.get("limits", ())
        if limit["exceeded"]
    ]
    blocks.append(Lines([*(f"note: {note}" for note in (*notes, *groups["notes"])), *exceeded]))
    return Document("assay groups", blocks)


def _integrity(groups: _Data) -> Iterator[Table]:
    """Yield how many groups and texts there are that need a look, and the groups that need it most."""
    facts = groups["integrity"]
    of_groups, texts = counted(facts["groups"], "group"), counted(facts["texts"] or 0, "text")
    compared = f"the texts of {counted(facts['compared'] or 0, 'group')}"
    of = texts if facts["compared"] == facts["groups"] else compared
    lines = [
        (f"size other than {count(facts['usual_size'])}", "odd_size", of_groups),
        ("several prompts", "mixed_prompts", of_groups),
        ("several golds", "mixed_golds", of_groups),
        ("the prompt of another task", "shared_prompt", of_groups),
        ("text of an earlier row in the group", "duplicates", texts),
        ("nearly that text", "near_duplicates", of),
    ]
    cells = [[words, count(facts[name]), "" if facts[name] is None else of] for words, name, of in lines]
    yield Table({"integrity": False, "number": True, "of": False}, cells)
    if doubtful := groups["doubtful"]:
        keys = [name for name in doubtful[0] if name in groups["group"]]
        names = {"rows": True, "prompts": True, "golds": True, "shared prompt": False}
        cells = [
            [
                *(_or_dash(group[name]) for name in keys),
                *(count(group[name]) for name in ("rows", "prompts", "golds")),
                "yes" if group["shared_prompt"] else "",
            ]
            for group in doubtful
        ]
        yield Table(with_names(keys, names), cells)


def _of_models(by: Sequence[str], models: Sequence[_Data]) -> list[Lines | Table]:
    names = [name for name in (models[0]["metrics"] if models else ()) if name not in _REPEATED]
    passing = [name for name in names if name.startswith("pass")]
    shares = [name for name in names if name.startswith(("flat", "all_"))]
    outcomes = [name for name in names if name in ("not_found", "truncated")]
    if not any(model["metrics"]["flat"]["groups"] for model in models):
        shares = []  # groups of one row
    extremes = [name for name in names if "@" in name and name not in passing]

    def table(columns: Sequence[str], values: Callable[[_Data], list[str]]) -> Table:
        rows = [
            ["–" if model["of"][name] is None else str(model["of"][name]) for name in by] + values(model["metrics"])
            for model in models
        ]
        return Table(with_names(by, dict.fromkeys(columns, True)), rows)

    def metrics(names: Sequence[str]) -> Table:
        return table(names, lambda metrics: [number(metrics[name]["value"]) for name in names])

    def first(metrics: _Data) -> list[str]:
        mean = metrics["mean"]
        ends = [count(mean["groups"]), number(mean["value"]), interval(mean["ci95"])]
        return [*ends, *(number(metrics[name]["value"]) for name in passing[:_FIRST])]

    def of_rows(metrics: _Data) -> list[str]:
        found = [metrics[name] for name in outcomes]
        return [f"{percent(one['value'])} {interval(one['ci95'], of_shares=True)}".rstrip() for one in found]

    def last(metrics: _Data) -> list[str]:
        row_mean = metrics["row_mean"]
        cells = [percent(metrics[name]["value"]) for name in shares]
        return [*cells, number(row_mean["value"]), number(row_mean["design_effect"])]

    return [
        table(["groups", "mean", "95 %", *passing[:_FIRST]], first),
        *(metrics(passing[at : at + _WIDE]) for at in range(_FIRST, len(passing), _WIDE)),
        *(metrics(extremes[at : at + _WIDE]) for at in range(0, len(extremes), _WIDE)),
        *([table([f"{name}, 95 %" for name in outcomes], of_rows)] if outcomes else []),
        table([*shares, "row mean", "design effect"], last),
    ]


def _pair(pair: _Data) -> list[str]:
    return [
        *(f"{pair['b']} − {pair['a']}", count(pair["tasks"]), change(pair["difference"])),
        *(interval(pair["ci95"]), p_value(pair["p"]), p_value(pair["p_holm"])),
        *(":".join(count(pair[name]) for name in ("wins", "ties", "losses")), number(pair["correlation"])),
    ]
