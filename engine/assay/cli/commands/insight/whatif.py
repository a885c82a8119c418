"""``assay whatif``: other weights, thresholds and required checks, without the rollouts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.app import command, command_line, takes, to_stderr
from assay.cli.arguments import AsData, ByNames, Overwrite, ResultPath, TaskNames, names
from assay.errors import UsageError
from assay.options import DiffLimits, settle
from assay.system.stdout import only_data

_EXAMPLES = """\b
Examples:
  assay whatif rewards.parquet --set policy=2 --drop curt --rank model
  assay whatif rewards.parquet --set robot.required=true --threshold 0.9 --out new.parquet --max-flips 1%"""

_REQUIRED = ".required"


@command(epilog=_EXAMPLES, modules=("assay.cli.comparisons", "assay.cli.documents", "assay.insight.whatifs"))
@takes(DiffLimits)
def whatif(
    result: ResultPath,
    *,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=WEIGHT",
            help="Weight of a check or of a rubric's member; NAME.required=true or false. May be repeated.",
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Leave a check out; may be repeated.")] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="REWARD", help="Minimum reward to pass, of each verifier or of the rubric.")
    ] = None,
    rank: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the models: how they rank, and what reverses two.")
    ] = None,
    by: ByNames = None,
    task: TaskNames = None,
    examples: Annotated[int, typer.Option(metavar="N", help="Rows that flip to show.")] = 3,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Write the rewards as .parquet, or what is shown as .html, .md or .json.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **limits: Any,
) -> None:
    """Try other weights, thresholds and required checks on a result, without its rollouts."""
    from assay.cli.comparisons import whatif_document
    from assay.cli.documents import check_out, deliver
    from assay.insight import whatifs

    path = check_out(out, overwrite=overwrite, others=(".parquet",))
    settle(DiffLimits, limits, "whatif")
    weights, required = _set(values or [])
    change: dict[str, Any] = {"weights": weights, "required": required, "drop": drop or ()}
    change["pass_threshold"] = threshold
    columns: dict[str, Any] = {"by": names("model" if by is None else by), "task": names(task)}
    with only_data(), to_stderr().status("computing"):
        found = whatifs.whatif(result, **change, **columns, rank=rank, examples=examples)
        found = found.within(**limits)
        if path is not None and path.suffix.lower() == ".parquet":
            whatifs.write_rewards(result, _apart(path, result), **change, command=command_line())
            path = None
    deliver(to_stderr(), found.as_json(), whatif_document(found), out=path, as_data=as_data)
    if found.diff.exceeds:
        raise typer.Exit(3)


def _apart(path: Path, result: str) -> Path:
    if path.exists() and Path(result).exists() and path.resolve() == Path(result).resolve():
        raise UsageError(f"--out {path}: is the result itself.", "Name another file.")
    return path


def _set(values: list[str]) -> tuple[dict[str, float], dict[str, bool]]:
    """Return what ``--set`` asks for: weights, and which checks are required."""
    weights: dict[str, float] = {}
    required: dict[str, bool] = {}
    for value in values:
        name, equals, given = value.rpartition("=")
        word = given.strip().lower()
        if name.endswith(_REQUIRED) and word in ("true", "false"):
            required[name.removesuffix(_REQUIRED)] = word == "true"
            continue
        try:
            weights[name] = float(given)
        except ValueError:
            equals = ""
        if not (equals and name):
            hint = "For example --set policy=2 or --set robot.required=true"
            raise UsageError(f"--set {value}: expected NAME=WEIGHT or NAME.required=true.", hint)
    return weights, required
