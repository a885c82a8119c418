"""What people see: summaries, problems and listings, with nothing from data that a terminal would obey."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.bench import Bench
from assay.errors import AssayError, printable
from assay.presets import Preset
from assay.spec import VerifierSpec
from assay.summary import CheckSummary, Summary, top

__all__ = [
    "print_bench",
    "print_error",
    "print_explanation",
    "print_listing",
    "print_presets",
    "print_summary",
    "print_warning",
]

_REASON_WIDTH = 70
_REASONS = 3

_FEW = 5_000
"""Rows below which a run costs more than its rows do."""


def _number(value: float | None, form: str = ".4f") -> str:
    return "–" if value is None else format(value, form)


def print_error(console: Console, wrong: AssayError) -> None:
    """An error, its hint set off by a blank line."""
    console.print(Text.assemble(("error: ", "bold red"), printable(str(wrong), lines=True)), soft_wrap=True)


def print_warning(console: Console, said: str) -> None:
    """What the owner of a run should know before it."""
    console.print(Text.assemble(("warning: ", "yellow"), printable(said)), soft_wrap=True)


def print_summary(console: Console, summary: Summary) -> None:
    """A run in numbers, the failing checks with their most frequent reasons."""
    console.print(
        f"{summary.rows:,} rows · mean reward {_number(summary.mean_reward)} · "
        f"pass rate {_number(summary.pass_rate, '.1%')} · {_number(summary.rows_per_second, ',.0f')} rows/s",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("check", "left"),
        ("mean", "right"),
        ("failures", "right"),
        ("most frequent reasons", "left"),
    ):
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    for check in summary.checks:
        table.add_row(Text(printable(check.id)), _number(check.mean), f"{check.failures:,}", Text(_reasons(check)))
    console.print(table)
    _print_troubles(console, summary)
    for note in summary.notes:
        console.print(Text.assemble(("note: ", "yellow"), printable(note)), soft_wrap=True)
    where = (
        "not written; name a file with --out"
        if summary.out is None
        else "standard output"
        if summary.out == "-"
        else summary.out
    )
    console.print(Text.assemble("rewards: ", (printable(where), "bold" if summary.out else "")), soft_wrap=True)


def _reasons(check: CheckSummary) -> str:
    found = top(check.reasons, _REASONS)
    more = len(check.reasons) - len(found)
    said = [f"{rows:,}× {_cut(printable(reason))}" for reason, rows in found]
    return "\n".join([*said, *([f"… {more:,} more"] if more > 0 else [])])


def _cut(value: str) -> str:
    return value if len(value) <= _REASON_WIDTH else value[: _REASON_WIDTH - 1] + "…"


def _print_troubles(console: Console, summary: Summary) -> None:
    if not summary.errors:
        return
    said = "1 row has an error:" if summary.errors == 1 else f"{summary.errors:,} rows have an error:"
    console.print(Text(said, "bold yellow"))
    for check in summary.checks:
        if check.errors:
            console.print(Text(f"  {printable(check.id)}: {check.errors:,}"), soft_wrap=True)
    for reason, rows in top(summary.unscored, 5):
        console.print(Text(f"  unscored, {printable(reason)}: {rows:,}"), soft_wrap=True)


def print_explanation(console: Console, verifier: VerifierSpec) -> None:
    """What each check of a verifier compiles to."""
    console.print(
        Text.assemble(
            (printable(verifier.id), "bold"),
            f"  passes at {verifier.pass_threshold}  sha256 {verifier.sha256[:12]}"
            if verifier.share is None
            else f"  weight {verifier.share.weight:g}",
        )
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("check", "type", "weight", "runs as"):
        table.add_column(name, overflow="fold")
    for spec in verifier.checks:
        marks = [mark for mark, on in (("required", spec.required), ("negated", spec.negate)) if on]
        lane = spec.check.explain() if spec.check else spec.note
        table.add_row(
            Text(printable(spec.id)),
            Text(printable(spec.type)),
            Text(" ".join([f"{spec.weight:g}", *marks])),
            Text(printable(lane)),
        )
    console.print(table)


def print_listing(
    console: Console, listing: Sequence[dict[str, Any]], named: Mapping[str, Sequence[str]] | None = None
) -> None:
    """The check types, and what else can be named."""
    for check in listing:
        names = " ".join([check["type"], *(f"({alias})" for alias in check["aliases"])])
        console.print(Text(names, "bold"))
        console.print(Text(f"  {check['summary']}"), soft_wrap=True)
        for param in check["params"]:
            also = f" (or {', '.join(param['also'])})" if param["also"] else ""
            default = "" if param["required"] else f" [{json.dumps(param['default'])}]"
            console.print(
                Text(f"  - {param['name']}{also}: {param['type']}{default} {param['description']}"), soft_wrap=True
            )
    for what, listed in (named or {}).items():
        console.print(Text(what, "bold"))
        console.print(Text(f"  {', '.join(map(printable, listed))}"), soft_wrap=True)


def print_presets(console: Console, presets: Sequence[Preset]) -> None:
    """What is recognised, how, and what is read from where."""
    for preset in presets:
        console.print(Text.assemble((printable(preset.name), "bold"), f"  {printable(preset.title)}"), soft_wrap=True)
        signature = ", ".join(preset.signature.required)
        without = f"; without {', '.join(preset.signature.absent)}" if preset.signature.absent else ""
        lines = [f"recognised by {signature}{without}", *(preset.described() or ["read as it is"])]
        lines += [f"unscored where {one.path} tells of a failure" for one in preset.unscored]
        lines += [f"only the first {preset.first_only} of a file"] if preset.first_only else []
        for line in (*lines, *(f"note: {note}" for note in preset.notes)):
            console.print(Text(f"  {printable(line)}"), soft_wrap=True)


def print_bench(console: Console, found: Bench) -> None:
    """What a verifier costs, the slowest checks first."""
    loop = found.loop_seconds / found.loop_rows * 1e6
    for said in (
        f"{found.rows:,} rows · {found.rows_per_second:,.0f} rows/s · {found.mb_per_second:,.0f} MB/s of text",
        f"{found.times_floor:.2f} × reading the column ({found.floor_seconds:.3g} s)",
        f"{found.times_faster_than_loop:.1f} × as fast as the loop over rows ({loop:,.1f} µs a row, on {found.loop_rows:,} rows)",
    ):
        console.print(said, highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("check", "type", "ns/row", "runs as"):
        table.add_column(name, justify="right" if name == "ns/row" else "left", overflow="fold")
    for one in found.checks:
        cells = (one.id, one.type, f"{one.ns_per_row:,.0f}", one.runs_as)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    for note in found.notes:
        console.print(Text.assemble(("note: ", "yellow"), printable(note)), soft_wrap=True)
    if found.rows < _FEW:
        console.print(
            f"note: with {found.rows:,} rows these are mostly what any run costs; measure on more", highlight=False
        )
    console.print(
        f"Each check alone, on {found.alone_rows:,} rows in memory, less the {found.base_ns_per_row:,.0f} ns/row of a plan whose "
        "check does nothing; what several checks share is counted in each.",
        highlight=False,
        soft_wrap=True,
    )
