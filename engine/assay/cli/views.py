"""What commands show of runs, verifiers and rows: the summary of a run, explanations, listings, benchmarks, cards."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from assay.cli.terminal import print_line, print_notes, print_table, print_warning
from assay.errors import counted, printable, top
from assay.writing.numbers import count, interval, number, percent, plain, seconds, speed

if TYPE_CHECKING:
    from assay.checks.base import Check
    from assay.insight.bench import Bench
    from assay.insight.reports.showing import Card, Cards
    from assay.loading.presets.preset import Preset
    from assay.scoring.summary import CheckSummary, Summary
    from assay.spec.verifier import VerifierSpec

_ROOT = 16
"""Digits of the root that are printed."""
_REASON_WIDTH = 70
_REASONS, _UNSCORED, _VALUES = 3, 5, 20
_FEW_ROWS = 5_000
"""Below this number of rows, the fixed cost of a run dominates."""


def print_summary(console: Console, summary: "Summary") -> None:
    """Print the problems of a run, its numbers, and each check with its most frequent reasons."""
    print_problems(console, summary)
    for doubt in summary.doubts:
        print_warning(console, doubt)
    print_line(console, f"{summary.headline} · {speed(summary.rows_per_second)}")
    print_table(
        console,
        {"check": False, "mean": True, "failures": True, "most frequent reasons": False},
        ([check.id, number(check.mean), count(check.failures), _reasons(check)] for check in summary.checks),
    )
    if summary.errors:
        have = "has" if summary.errors == 1 else "have"
        print_line(console, (f"{counted(summary.errors, 'row')} {have} an error:", "bold yellow"))
        for check in summary.checks:
            if check.errors:
                print_line(console, f"  {printable(check.id)}: {check.errors:,}")
        shown = top(summary.unscored, _UNSCORED)
        for reason, rows in shown:
            print_line(console, f"  unscored, {printable(reason)}: {rows:,}")
        if (more := len(summary.unscored) - len(shown)) > 0:
            rows = summary.rows - summary.scored - sum(rows for _, rows in shown)
            print_line(console, f"  unscored, {counted(more, 'other reason')}: {rows:,}")
    for name, values in summary.by.items():
        _print_by(console, name, values)
    print_notes(console, summary.notes)
    where = {None: "not written; name a file with --out", "-": "standard output"}.get(summary.out, summary.out or "")
    root = f" (root {summary.root[:_ROOT]})" if summary.root else ""
    print_line(console, "rewards: ", (printable(where), "bold" if summary.out else ""), root)


def print_problems(console: Console, summary: "Summary") -> None:
    """Print why the rewards of a run are not what the verifiers mean, and which minimums it did not reach."""
    told = tuple(f": {check.broken}" for check in summary.checks if check.broken)  # by a warning, before the run
    for problem in summary.problems:
        shown = next((problem.removesuffix(end) for end in told if problem.endswith(end)), problem)
        print_line(console, ("problem: ", "bold red"), printable(shown))
    for words in summary.unmet:
        print_line(console, ("not reached: ", "bold red"), printable(words))


def _print_by(console: Console, name: str, values: Sequence[Mapping[str, Any]]) -> None:
    worst = sorted(values, key=lambda value: (value["mean_reward"] is None, value["mean_reward"] or 0.0))
    shown = values if len(values) <= _VALUES else worst[:_VALUES]

    rows = (
        [
            "–" if value["value"] is None else str(value["value"]),
            *(count(value["rows"]), count(value["tasks"])),
            f"{number(value['mean_reward'])} {interval(value['mean_reward_ci95'])}".rstrip(),
            f"{percent(value['pass_rate'])} {interval(value['pass_rate_ci95'], of_shares=True)}".rstrip(),
        ]
        for value in shown
    )
    numbers = dict.fromkeys(("rows", "tasks", "mean reward, 95 %", "pass rate, 95 %"), True)
    print_table(console, {printable(name): False, **numbers}, rows)
    if len(shown) < len(values):
        console.print(f"… the {len(shown)} least of {len(values):,}; all with --json", highlight=False)
    if any(value["groups"] < value["scored"] for value in values):
        print_notes(console, ["means over groups of a task, a model and a step; a group's rows count once together"])
    if few := [value["tasks"] for value in shown if value["few"] and value["tasks"] > 1]:
        console.print(
            f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %", highlight=False
        )


def _reasons(check: "CheckSummary") -> str:
    if check.broken:  # the problems have it
        return "it cannot run"
    shown = [(printable(reason), rows) for reason, rows in top(check.reasons, _REASONS)]
    more = len(check.reasons) - len(shown)
    lines = [
        f"{rows:,}× {reason if len(reason) <= _REASON_WIDTH else reason[: _REASON_WIDTH - 1] + '…'}"
        for reason, rows in shown
    ]
    return "\n".join([*lines, *([f"… {more:,} more"] if more > 0 else [])])


def print_explanation(console: Console, verifier: "VerifierSpec") -> None:
    """Print what each check of a verifier, its steps, its golds and its condition compile to."""
    from assay.insight.explanation import as_written, explanation
    from assay.spec.check import titled

    if verifier.share is None:
        combine = "" if verifier.combine == "mean" else f"  {verifier.combine} of the checks"
        ends = "no limits" if verifier.range is None else " to ".join(map(plain, verifier.range))
        combine += "" if verifier.range == (0.0, 1.0) else f"  range {ends}"
        facts = f"  passes at {verifier.pass_threshold}{combine}  sha256 {verifier.sha256[:12]}"
    else:
        facts = f"  weight {plain(verifier.share.weight)}"
    version = f"  version {printable(verifier.version)}" if verifier.version else ""
    console.print(Text.assemble((printable(verifier.id), "bold"), facts, version))
    if verifier.description:
        print_line(console, printable(titled(verifier.name, verifier.description)))
    rows = []
    for entry in explanation(verifier):
        indent = "  " * entry["depth"]
        rows.append([f"{indent}{entry['id']}", entry["type"], _role(entry), entry["runs_as"]])
        if title := titled(entry["name"], entry["description"]):
            rows.append([f"{indent}  {title}", "", "", ""])
        named = [("on", part) for part in entry["on"]] + [(part["param"], part) for part in entry["golds"]]
        named += [(name, part) for field, name in (("gold_on", "goldOn"), ("when", "when")) for part in entry[field]]
        rows += [[f"{indent}  {name}: {as_written(part['what'])}", "", "", part["runs_as"]] for name, part in named]
    print_table(console, dict.fromkeys(("check", "type", "weight", "runs as"), False), rows)


def _role(entry: Mapping[str, Any]) -> str:
    role = {"gate": "gate", "penalty": f"penalty {plain(entry['weight'])}"}.get(entry["role"], plain(entry["weight"]))
    marks = [mark for mark, name in (("required", "required"), ("negated", "negate")) if entry[name]]
    return " ".join([role, *marks, *([] if entry["threshold"] is None else [f"threshold {plain(entry['threshold'])}"])])


def print_listing(
    console: Console, listing: Sequence[dict[str, Any]], named: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Print check types, groups, steps and normalizers with their parameters, and lists of names under a heading each."""
    kind = "check"
    for entry in listing:
        if entry.get("kind", kind) != kind:
            kind = entry["kind"]
            console.print(Text(f"\n# {kind}s", "bold"))
        _print_entry(console, entry)
    for heading, names in (named or {}).items():
        console.print(Text(heading, "bold"))
        print_line(console, f"  {', '.join(map(printable, names))}")


def print_entries(console: Console, entries: Sequence[dict[str, Any]], checks: "Sequence[type[Check]]") -> None:
    """Print check types, groups, steps and normalizers with their parameters and examples."""
    from assay.spec.listing import examples_of

    for entry in entries:
        console.print(Text(f"# {entry['kind']}", "bold"))
        _print_entry(console, entry)
        for example in examples_of(entry, checks):
            print_line(console, f"  example  {example}")


def _print_entry(console: Console, entry: dict[str, Any]) -> None:
    title = " ".join([entry["type"], *(f"({alias})" for alias in entry["aliases"])])
    console.print(Text(title, "bold"))
    print_line(console, f"  {entry['summary']}")
    for param in entry["params"]:
        aliases = f" (or {', '.join(param['also'])})" if param["also"] else ""
        default = "" if param["required"] else f" [{json.dumps(param['default'])}]"
        beside = " (the value of the name)" if entry.get("value") == param["name"] else ""
        print_line(console, f"  - {param['name']}{aliases}: {param['type']}{default}{beside} {param['description']}")


def print_presets(console: Console, presets: "Sequence[Preset]") -> None:
    """Print how each preset is recognised, and what it reads."""
    for preset in presets:
        print_line(console, (printable(preset.name), "bold"), f"  {printable(preset.title)}")
        signature = ", ".join(preset.signature.required)
        without = f"; without {', '.join(preset.signature.absent)}" if preset.signature.absent else ""
        lines = [f"recognised by {signature}{without}", *(preset.described() or ["read as it is"])]
        lines += [f"unscored where {rule.path} reports a failure" for rule in preset.unscored]
        lines += [f"only the first {preset.first_only} of a file"] if preset.first_only else []
        for line in (*lines, *(f"note: {note}" for note in preset.notes)):
            print_line(console, f"  {printable(line)}")


def print_bench(console: Console, bench: "Bench") -> None:
    """Print what a verifier costs, the slowest checks first."""
    loop = f"{count(bench.loop_seconds / bench.loop_rows * 1e9)} ns per row, on {counted(bench.loop_rows, 'row')}"
    for line in (
        f"{counted(bench.rows, 'row')} · {speed(bench.rows_per_second)} · {speed(bench.mb_per_second, 'MB')} of text",
        f"{number(bench.times_floor)} × reading the column ({seconds(bench.floor_seconds)})",
        f"{number(bench.times_faster_than_loop)} × as fast as the loop over rows ({loop})",
    ):
        print_line(console, line)
    print_table(
        console,
        {"check": False, "type": False, "ns/row": True, "runs as": False},
        ([check.id, check.type, count(check.ns_per_row), check.runs_as] for check in bench.checks),
    )
    print_notes(console, bench.notes)
    if bench.rows < _FEW_ROWS:
        rows = counted(bench.rows, "row")
        console.print(
            f"note: with {rows}, this is mostly the fixed cost of a run; measure on more rows", highlight=False
        )
    print_line(
        console,
        f"Each check by itself, on {counted(bench.alone_rows, 'row')} in memory, minus the {count(bench.base_ns_per_row)} ns/row "
        "of a plan whose check does nothing; work that checks share is counted in each.",
    )


_TEXT_LINES, _GOLD_LINES = 12, 3
"""Lines of the terminal for a text, and for a gold."""
_BEFORE = 80
"""Characters before the first match that are shown, where the text begins long before it."""
_STATES = {
    "pass": ("✓ passed", "green"),
    "fail": ("✗ failed", "red"),
    "unscored": ("– unscored", "yellow"),
    "scored": ("scored", ""),
}
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}


def print_cards(console: Console, cards: "Cards") -> None:
    """Print rows of a result, a card each."""
    for card in cards.cards:
        _print_card(console, card)
    print_line(console, printable(cards.headline))
    print_notes(console, cards.notes)


def _print_card(console: Console, card: "Card") -> None:
    values = {name: "–" if value is None else printable(str(value)) for name, value in card.key.items()}
    keys = "".join(f" · {printable(name)} {value}" for name, value in values.items())
    print_line(console, (f"row {card.row:,}", "bold"), keys, f" · reward {number(card.reward)} · ", _STATES[card.state])
    width = max((len(printable(verdict.check)) for verdict in card.checks), default=0)
    for verdict in card.checks:
        words = f" {printable(verdict.check):{width}}  {number(verdict.score):6}  {printable(verdict.feedback)}"
        print_line(console, "  ", _MARKS[verdict.passes], words.rstrip())
        if verdict.title:
            print_line(console, (f"    {printable(verdict.title)}", "dim"))
        if verdict.error and verdict.error != verdict.feedback:
            print_line(console, ("    error: ", "red"), printable(verdict.error))
    for line in card.feedback:
        print_line(console, f"  {printable(line)}")
    for line in card.error:
        print_line(console, ("  error: ", "red"), printable(line))
    for name, gold in card.gold.items():
        _print_text(console, Text.assemble((f"{printable(name)}: ", "bold"), printable(gold)), _GOLD_LINES)
    if card.text is not None:
        _print_completion(console, card.text, card.matches)
    console.print()


def _print_completion(console: Console, text: str, matches: Sequence[tuple[int, int, str]]) -> None:
    room = max(console.width - 4, 20) * _TEXT_LINES
    first = matches[0][0] if matches else 0
    begin = max(0, first - _BEFORE) if first > room // 2 else 0
    end = min(len(text), begin + room)
    shown = Text(f"… {begin:,} characters … " if begin else "", "dim")
    at = begin
    for start, stop, _ in matches:
        if start >= end:
            break
        shown.append(printable(text[at:start], lines=True), "default")
        at = min(stop, end)
        marked = printable(text[start:at], lines=True)
        # without colours, brackets mark what matched
        shown.append(marked if console.color_system else f"⟦{marked}⟧", "bold reverse")
    shown.append(printable(text[at:end], lines=True), "default")
    _print_text(console, shown, _TEXT_LINES, more=len(text) - end)


def _print_text(console: Console, text: Text, most: int, more: int = 0) -> None:
    lines = text.wrap(console, max(console.width - 4, 20))
    left_out = sum(len(line.plain) for line in lines[most:]) + more
    for line in lines[:most]:
        console.print(Text("  │ ", "dim") + line, soft_wrap=True)
    if left_out:
        print_line(console, (f"  │ … {left_out:,} more characters", "dim"))
