"""``assay demo``: score the samples that ship with Assay."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.errors import InputError, path_text

__all__ = ["demo"]

_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = (_PACKAGE / "samples", _PACKAGE.parents[1] / "specs" / "refund-quality")
"""Folders of the samples, in an installed package and in a checkout."""

_NEXT = """\
next:
  python -c "import polars as pl; print(pl.read_parquet('{out}').filter(~pl.col('passed'))['feedback'])"
  assay init verifier.yaml    # write your own verifier
  assay score {samples}/rollouts.jsonl --spec verifier.yaml"""


@command()
def demo(
    *,
    out: Annotated[str, typer.Option("--out", "-o", metavar="PATH", help="Output file.")] = "rewards.parquet",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing result.")] = False,
) -> None:
    """Score the sample rollouts that ship with Assay, and show what to try next."""
    from assay.cli.terminal import print_summary
    from assay.runs.score_file import score_file

    samples = next((folder for folder in _PLACES if folder.is_dir()), None)
    if samples is None:
        raise InputError("This installation has no samples.", "Install Assay from its wheel.")
    samples = samples.relative_to(Path.cwd()) if samples.is_relative_to(Path.cwd()) else samples
    spec, tasks = samples / "refund-quality.json", samples / "tasks.jsonl"
    command = f"assay score {samples}/rollouts.jsonl --tasks {tasks} --spec {spec} --out {out}"
    console = to_stderr()
    console.print(path_text(f"$ {command}"), markup=False, highlight=False, soft_wrap=True)
    summary = score_file(
        samples / "rollouts.jsonl",
        spec,
        out,
        tasks=tasks,
        overwrite=overwrite,
        command=" ".join(["assay", *sys.argv[1:]]),
    )
    print_summary(console, summary)
    console.print(path_text(_NEXT.format(out=out, samples=samples)), markup=False, highlight=False, soft_wrap=True)
