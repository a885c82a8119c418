"""``assay check``: validate verifiers."""

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.errors import ColumnsError, SpecError, counted, printable, quoted, shown_path
from assay.names import COMPLETION
from assay.options import STRICT_HELP, FileOptions, ScoreOptions, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from assay.checks.base import Check
    from assay.spec.verifier import VerifierSpec
    from assay.testing import DifferenceError

_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


@command(modules=("assay.cli.terminal", "assay.testing"))
@takes(FileOptions, "tasks", "mapping", "preset", "any_role", "modules", "checks")
def check(
    specs: Annotated[list[str], typer.Argument(help="Verifier files.")],
    *,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="ROLLOUTS",
            help=f"Rollouts to try the verifiers on, besides sample rows: the first {_SAMPLES} tell which values, golds and "
            "parts of the output they have.",
        ),
    ] = None,
    rollouts: Annotated[str | None, typer.Option(hidden=True, help="The former name of --against.")] = None,
    strict: Annotated[bool, typer.Option(help=STRICT_HELP)] = True,
    **options: Any,
) -> None:
    """Validate verifiers: list all problems, and try them on sample rows, or against rollouts."""
    from assay.cli.terminal import print_error, print_warning
    from assay.testing import DifferenceError

    import_modules(options.pop("modules"))
    checks = import_checks(options.pop("checks"))
    console = to_stderr()
    refused = False
    for path in specs:
        try:
            verifier = _checked(path, checks, strict=strict)
        except SpecError as error:
            print_error(console, error)
            refused = True
            continue
        for spec in verifier.warned:
            print_warning(console, f"{shown_path(path)}: {spec.id}: {spec.warning}")
        try:
            result = _dry_run(verifier)
        except DifferenceError as error:
            print_error(console, _difference(verifier, error, path))
            refused = True
            continue
        try:
            if (against := against or rollouts) is not None:
                result += f"; {_tried(verifier, against, options, console)}"
        except ColumnsError as error:
            print_error(console, _naming(error, path))
            refused = True
            continue
        console.print(f"ok: {shown_path(path)}: {result}", markup=False, highlight=False, soft_wrap=True)
    if refused:
        raise typer.Exit(2)


def _checked(path: str, checks: "Sequence[type[Check]]", *, strict: bool) -> "VerifierSpec":
    """Load a verifier without broken checks; list all problems in one error, including those that a run only warns about."""
    from assay.spec.verifier import load_verifier

    if not strict:
        with contextlib.suppress(SpecError):
            verifier = load_verifier(path, checks=checks)
            if not any(spec.broken for spec in verifier.warned):
                return verifier
    return load_verifier(path, checks=checks, strict=True)


def _naming(error: ColumnsError, path: str) -> ColumnsError:
    """Return an error that names the spec."""
    return ColumnsError(f"{shown_path(path)}: {error.fact}", error.hint)


def _difference(verifier: "VerifierSpec", error: "DifferenceError", path: str) -> SpecError:
    """Return the error for a check whose row() and expr() differ: the first one, with both scores and the text."""
    name, (by_expr, by_row) = next(
        (item for item in error.differing.items() if item[0].startswith("check/")), next(iter(error.differing.items()))
    )
    ident = name.removeprefix(f"check/{verifier.id}/")
    kinds = [spec.check.made_by.__name__ for spec in verifier.nodes if spec.id == ident and spec.check is not None]
    kind = kinds[0] if kinds else "a check"
    text = error.row.get(COMPLETION)
    return SpecError(
        f"{shown_path(path)}: {ident}: row() and expr() of {kind} differ: {by_row} and {by_expr}"
        f", on {'null' if text is None else quoted(str(text))}.",
        f"Make expr() give what row() gives, or leave it out: row() alone is right, and slower.\n"
        f"assay.testing.assert_check_conforms({kind}) compares them on thousands of texts.",
    )


def _dry_run(verifier: "VerifierSpec") -> str:
    """Score sample rows by columns and row by row, if that calls no reward function of the user; return the result as a sentence."""
    from assay.insight.samples import sample_rows
    from assay.rewards.check import RewardCheck
    from assay.testing import assert_plan_conforms

    checks = counted(len([spec for spec in verifier.nodes if not spec.parts]), "check")
    readers = (reader for spec in verifier.nodes for reader in spec.readers)
    rewards = [spec.id for spec in readers if isinstance(spec.check, RewardCheck)]
    if rewards:  # they may be slow, or cost money
        return (
            f"{checks}, not tried on sample texts because of the reward functions {', '.join(map(printable, rewards))}"
        )
    rows = sample_rows(verifier, _SAMPLES)
    assert_plan_conforms([verifier], rows)
    return f"{checks}, {counted(len(rows), 'sample text')} scored the same by columns and by rows"


def _tried(verifier: "VerifierSpec", rollouts: str, options: dict[str, Any], console: "Console") -> str:
    """Score the first rollouts, and print what they have of what the checks read; return the result as a clause."""
    from assay.cli.terminal import print_warning
    from assay.compiling.requirements import reading_for
    from assay.insight.findings import findings
    from assay.loading.rollouts import open_rollouts
    from assay.scoring.in_memory import engine_errors, prepare

    settled = settle(ScoreOptions, options, "check")
    opened = open_rollouts(rollouts, reading_for(settled, [verifier]))
    source, plan = prepare(replace(opened, frame=opened.frame.head(_SAMPLES)), (verifier,), settled)
    with engine_errors(opened.files, plan):
        frame = source.frame.collect()
        rewards = plan.score(frame)["reward"]
    for finding in findings(verifier, frame.to_dicts(), any_role=settled["any_role"]):
        if finding.is_doubtful:
            print_warning(console, str(finding))
        else:
            console.print(printable(str(finding)), markup=False, highlight=False, soft_wrap=True)
    unscored = rewards.null_count()
    scored = len(rewards) - unscored
    mean = f"{rewards.sum() / scored:.4f}" if scored else "–"
    rest = f", {unscored:,} unscored" if unscored else ""
    return f"mean reward {mean} on {counted(len(rewards), 'row')} of {shown_path(rollouts)}{rest}"
