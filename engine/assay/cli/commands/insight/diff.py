"""``assay diff``: two rewards of the same rollouts."""

from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.cli.arguments import AsData, ByNames, Overwrite, TaskNames, names
from assay.errors import UsageError
from assay.options import DiffLimits, FileOptions, options_of, settle
from assay.system.stdout import only_data

_EXAMPLES = """\b
Examples:
  assay diff before.parquet after.parquet --max-flips 1%
  assay diff rollouts.jsonl --before old.yaml --after new.yaml
  assay diff rewards.parquet --rescore"""

_SCORING = (
    *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "any_role"),
    *("checks", "modules", "function_timeout", "regex_timeout"),
)


@command(epilog=_EXAMPLES, modules=("assay.cli.comparisons", "assay.cli.documents", "assay.insight.diffing"))
@takes(FileOptions, *_SCORING)
@takes(DiffLimits)
def diff(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULTS", help="Two results; with --before and --after, rollouts; with --rescore, one result."
        ),
    ],
    *,
    before: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Verifier to score the rollouts with; may be repeated."),
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Verifier to compare with it; may be repeated.")
    ] = None,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Compare a result with what this version of Assay makes of its inputs.")
    ] = False,
    rollouts: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="With --rescore: the rollouts, if they are elsewhere now; may be repeated."),
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Columns that tell a rollout. [default: the order of the rows]")
    ] = None,
    allow_missing: Annotated[
        str | None, typer.Option(metavar="N|P%", help="With --on: leave out up to N (or P%) rows on one side only.")
    ] = None,
    by: ByNames = None,
    task: TaskNames = None,
    examples: Annotated[int, typer.Option(metavar="N", help="Rows that flipped to show.")] = 10,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Also write the diff: .html, .md or .json.")
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Compare two rewards of the same rollouts: which rows flipped, why, and what that says of new tasks."""
    from assay.cli.comparisons import diff_document
    from assay.cli.documents import check_out, deliver
    from assay.insight import diffing

    path = check_out(out, overwrite=overwrite)
    limits: Any = settle(DiffLimits, {name: options.pop(name) for name in options_of(DiffLimits)}, "diff")
    modules, scoring = options.pop("modules"), _given(options)
    common: dict[str, Any] = {
        "by": names("model" if by is None else by),
        "examples": examples,
        "task": names(task),
    }
    _refuse(sources, before, after, scoring, rollouts, rescore=rescore, joined=on is not None)
    with only_data(), to_stderr().status("comparing"):
        import_modules(modules)
        if "checks" in scoring:
            scoring["checks"] = import_checks(scoring["checks"])
        if rescore:
            found = diffing.rescored(sources[0], rollouts=rollouts or None, **common, **scoring)
        else:
            one, other = (before, after) if before else sources
            common |= {"on": names(on), "allow_missing": allow_missing}
            found = diffing.diff(one, other, rollouts=sources if before else None, **common, **scoring)
        found = found.within(**limits)
    deliver(to_stderr(), found.as_json(), diff_document(found), out=path, as_data=as_data)
    if found.exceeds:
        raise typer.Exit(3)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the command line gives."""
    known = options_of(FileOptions)
    return {name: value for name, value in options.items() if value not in (None, [], {}, known[name][1].default)}


def _refuse(
    sources: list[str],
    before: list[str] | None,
    after: list[str] | None,
    scoring: dict[str, Any],
    rollouts: list[str] | None,
    *,
    rescore: bool,
    joined: bool,
) -> None:
    """Refuse arguments that do not fit together."""
    if bool(before) != bool(after):
        missing = "--before" if after else "--after"
        raise UsageError(f"{missing}: is missing.", "Rollouts are scored with both: --before OLD.yaml --after NEW.yaml")
    if rescore and (before or joined or len(sources) != 1):
        raise UsageError("--rescore takes one result.", "For example: assay diff rewards.parquet --rescore")
    if rollouts and not rescore:
        raise UsageError("--rollouts applies to --rescore.", "Name rollouts as arguments, with --before and --after.")
    if not rescore and not before and len(sources) != 2:  # noqa: PLR2004
        hint = "For example: assay diff before.parquet after.parquet\nOr: assay diff rollouts.jsonl --before old.yaml --after new.yaml"
        raise UsageError(
            f"Two results are compared, and there {'is' if len(sources) == 1 else 'are'} {len(sources)}.", hint
        )
    if scoring and not (rescore or before):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in scoring)
        raise UsageError(
            f"{flags}: results are not scored again.", "Name verifiers: --before OLD.yaml --after NEW.yaml"
        )
