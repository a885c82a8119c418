"""Print summaries, errors and lists; control characters from data are escaped."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from assay.cli.tables import print_notes, print_table
from assay.errors import AssayError, counted, printable, top
from assay.insight.explanation import as_written, explanation
from assay.spec.check import titled
from assay.spec.listing import examples_of
from assay.writing.numbers import count, decimal

if TYPE_CHECKING:
    from assay.checks.base import Check
    from assay.insight.bench import Bench
    from assay.loading.presets.preset import Preset
    from assay.scoring.summary import CheckSummary, Summary
    from assay.spec.verifier import VerifierSpec

_ROOT = 16
"""Digits of the root that are printed."""
_REASON_WIDTH = 70
_REASONS, _UNSCORED, _VALUES = 3, 5, 20

_FEW_ROWS = 5_000
"""Below this number of rows, the fixed cost of a run dominates."""


def print_error(console: Console, error: AssayError) -> None:
    """Print an error: the fact, a blank line, the hint."""
    console.print(Text.assemble(("error: ", "bold red"), printable(error.text, lines=True)), soft_wrap=True)


def print_warning(console: Console, message: str) -> None:
    """Print a warning."""
    console.print(Text.assemble(("warning: ", "yellow"), printable(message)), soft_wrap=True)


def print_summary(console: Console, summary: "Summary") -> None:
    """Print the problems of a run, its numbers, and each check with its most frequent reasons."""
    print_problems(console, summary)
    for doubt in summary.doubts:
        print_warning(console, doubt)
    console.print(
        f"{summary.headline} · {decimal(summary.rows_per_second, ',.0f')} rows/s", highlight=False, soft_wrap=True
    )
    print_table(
        console,
        {"check": False, "mean": True, "failures": True, "most frequent reasons": False},
        ([check.id, decimal(check.mean), count(check.failures), _reasons(check)] for check in summary.checks),
    )
    _print_errors(console, summary)
    for name, values in summary.by.items():
        _print_by(console, name, values)
    print_notes(console, summary.notes)
    where = (
        "not written; name a file with --out"
        if summary.out is None
        else "standard output"
        if summary.out == "-"
        else summary.out
    )
    root = f" (root {summary.root[:_ROOT]})" if summary.root else ""
    console.print(Text.assemble("rewards: ", (printable(where), "bold" if summary.out else ""), root), soft_wrap=True)


def _print_by(console: Console, name: str, values: Sequence[Mapping[str, Any]]) -> None:
    """Print the means of the values of a column; of many, the worst."""
    worst = sorted(values, key=lambda value: (value["mean_reward"] is None, value["mean_reward"] or 0.0))
    shown = values if len(values) <= _VALUES else worst[:_VALUES]
    print_table(
        console,
        {printable(name): False, **dict.fromkeys(("rows", "tasks", "mean reward, 95 %", "pass rate, 95 %"), True)},
        (
            [
                "–" if value["value"] is None else str(value["value"]),
                *(count(value["rows"]), count(value["tasks"])),
                *(_estimate(value, measure, form) for measure, form in (("mean_reward", ".4f"), ("pass_rate", ".1%"))),
            ]
            for value in shown
        ),
    )
    if len(shown) < len(values):
        console.print(f"… the {len(shown)} least of {len(values):,}; all with --json", highlight=False)
    note = "means over groups of a task, a model and a step; a group's rows count once together"
    if any(value["groups"] < value["scored"] for value in values):
        console.print(Text.assemble(("note: ", "yellow"), note), soft_wrap=True)
    if few := [value["tasks"] for value in shown if value["few"] and value["tasks"] > 1]:
        console.print(
            f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %", highlight=False
        )


def _estimate(value: Mapping[str, Any], measure: str, form: str) -> str:
    ends = value[f"{measure}_ci95"]
    return decimal(value[measure], form) + (f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else "")


def print_problems(console: Console, summary: "Summary") -> None:
    """Print why the rewards of a run are not what the verifiers mean, and which minimums it did not reach."""
    told = tuple(f": {check.broken}" for check in summary.checks if check.broken)  # by a warning, before the run
    for problem in summary.problems:
        shown = next((problem.removesuffix(end) for end in told if problem.endswith(end)), problem)
        console.print(Text.assemble(("problem: ", "bold red"), printable(shown)), soft_wrap=True)
    for words in summary.unmet:
        console.print(Text.assemble(("not reached: ", "bold red"), printable(words)), soft_wrap=True)


def _reasons(check: "CheckSummary") -> str:
    if check.broken:  # the problems have it
        return "it cannot run"
    shown = top(check.reasons, _REASONS)
    more = len(check.reasons) - len(shown)
    lines = [f"{rows:,}× {_cut(printable(reason))}" for reason, rows in shown]
    return "\n".join([*lines, *([f"… {more:,} more"] if more > 0 else [])])


def _cut(value: str) -> str:
    return value if len(value) <= _REASON_WIDTH else value[: _REASON_WIDTH - 1] + "…"


def _print_errors(console: Console, summary: "Summary") -> None:
    if not summary.errors:
        return
    have = "has" if summary.errors == 1 else "have"
    console.print(Text(f"{counted(summary.errors, 'row')} {have} an error:", "bold yellow"))
    for check in summary.checks:
        if check.errors:
            console.print(Text(f"  {printable(check.id)}: {check.errors:,}"), soft_wrap=True)
    shown = top(summary.unscored, _UNSCORED)
    for reason, rows in shown:
        console.print(Text(f"  unscored, {printable(reason)}: {rows:,}"), soft_wrap=True)
    if (more := len(summary.unscored) - len(shown)) > 0:
        rows = summary.rows - summary.scored - sum(rows for _, rows in shown)
        console.print(f"  unscored, {counted(more, 'other reason')}: {rows:,}", highlight=False)


def print_explanation(console: Console, verifier: "VerifierSpec") -> None:
    """Print what each check of a verifier, its steps, its golds and its condition compile to."""
    console.print(
        Text.assemble(
            (printable(verifier.id), "bold"),
            f"  passes at {verifier.pass_threshold}{_combination(verifier)}  sha256 {verifier.sha256[:12]}"
            if verifier.share is None
            else f"  weight {verifier.share.weight:g}",
            f"  version {printable(verifier.version)}" if verifier.version else "",
        )
    )
    if verifier.description:
        console.print(Text(printable(titled(verifier.name, verifier.description))), soft_wrap=True)
    rows = []
    for entry in explanation(verifier):
        indent = "  " * entry["depth"]
        parts = ((entry["id"], entry["type"], _role(entry), entry["runs_as"]), *_parts(entry))
        rows += [[f"{indent}{name}", *cells] for name, *cells in parts]
    print_table(console, dict.fromkeys(("check", "type", "weight", "runs as"), False), rows)


def _combination(verifier: "VerifierSpec") -> str:
    """How a verifier combines scores, as far as it is not the default."""
    combine = "" if verifier.combine == "mean" else f"  {verifier.combine} of the checks"
    lowest_highest = "no limits" if verifier.range is None else f"{verifier.range[0]:g} to {verifier.range[1]:g}"
    return combine + ("" if verifier.range == (0.0, 1.0) else f"  range {lowest_highest}")


def _role(entry: Mapping[str, Any]) -> str:
    """What becomes of a check's score."""
    role = {"gate": "gate", "penalty": f"penalty {entry['weight']:g}"}.get(entry["role"], f"{entry['weight']:g}")
    marks = [mark for mark, name in (("required", "required"), ("negated", "negate")) if entry[name]]
    threshold = [] if entry["threshold"] is None else [f"threshold {entry['threshold']:g}"]
    return " ".join([role, *marks, *threshold])


def _parts(entry: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The lines of the parts of a check."""
    title = titled(entry["name"], entry["description"])
    named = [("on", part) for part in entry["on"]]
    named += [(part["param"], part) for part in entry["golds"]]
    named += [(name, part) for field, name in (("gold_on", "goldOn"), ("when", "when")) for part in entry[field]]
    parts = [(f"  {name}: {as_written(part['what'])}", "", "", part["runs_as"]) for name, part in named]
    return [*([(f"  {title}", "", "", "")] if title else []), *parts]


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
        console.print(Text(f"  {', '.join(map(printable, names))}"), soft_wrap=True)


def _print_entry(console: Console, entry: dict[str, Any]) -> None:
    title = " ".join([entry["type"], *(f"({alias})" for alias in entry["aliases"])])
    console.print(Text(title, "bold"))
    console.print(Text(f"  {entry['summary']}"), soft_wrap=True)
    for param in entry["params"]:
        aliases = f" (or {', '.join(param['also'])})" if param["also"] else ""
        default = "" if param["required"] else f" [{json.dumps(param['default'])}]"
        beside = " (the value of the name)" if entry.get("value") == param["name"] else ""
        line = f"  - {param['name']}{aliases}: {param['type']}{default}{beside} {param['description']}"
        console.print(Text(line), soft_wrap=True)


def print_entries(console: Console, entries: Sequence[dict[str, Any]], checks: "Sequence[type[Check]]") -> None:
    """Print check types, groups, steps and normalizers with their parameters and examples."""
    for entry in entries:
        console.print(Text(f"# {entry['kind']}", "bold"))
        _print_entry(console, entry)
        for example in examples_of(entry, checks):
            console.print(Text(f"  example  {example}"), soft_wrap=True)


def print_presets(console: Console, presets: "Sequence[Preset]") -> None:
    """Print how each preset is recognised, and what it reads."""
    for preset in presets:
        console.print(Text.assemble((printable(preset.name), "bold"), f"  {printable(preset.title)}"), soft_wrap=True)
        signature = ", ".join(preset.signature.required)
        without = f"; without {', '.join(preset.signature.absent)}" if preset.signature.absent else ""
        lines = [f"recognised by {signature}{without}", *(preset.described() or ["read as it is"])]
        lines += [f"unscored where {rule.path} reports a failure" for rule in preset.unscored]
        lines += [f"only the first {preset.first_only} of a file"] if preset.first_only else []
        for line in (*lines, *(f"note: {note}" for note in preset.notes)):
            console.print(Text(f"  {printable(line)}"), soft_wrap=True)


def print_bench(console: Console, bench: "Bench") -> None:
    """Print what a verifier costs, the slowest checks first."""
    loop = bench.loop_seconds / bench.loop_rows * 1e6
    loop_rows = counted(bench.loop_rows, "row")
    for line in (
        f"{counted(bench.rows, 'row')} · {bench.rows_per_second:,.0f} rows/s · {bench.mb_per_second:,.0f} MB/s of text",
        f"{bench.times_floor:.2f} × reading the column ({bench.floor_seconds:.3g} s)",
        f"{bench.times_faster_than_loop:.1f} × as fast as the loop over rows ({loop:,.1f} µs per row, on {loop_rows})",
    ):
        console.print(line, highlight=False, soft_wrap=True)
    print_table(
        console,
        {"check": False, "type": False, "ns/row": True, "runs as": False},
        ([check.id, check.type, f"{check.ns_per_row:,.0f}", check.runs_as] for check in bench.checks),
    )
    print_notes(console, bench.notes)
    if bench.rows < _FEW_ROWS:
        rows = counted(bench.rows, "row")
        console.print(
            f"note: with {rows}, this is mostly the fixed cost of a run; measure on more rows", highlight=False
        )
    alone_rows = counted(bench.alone_rows, "row")
    console.print(
        f"Each check by itself, on {alone_rows} in memory, minus the {bench.base_ns_per_row:,.0f} ns/row of a plan whose "
        "check does nothing; work that checks share is counted in each.",
        highlight=False,
        soft_wrap=True,
    )
