"""``assay demo``: score the samples that ship with Assay."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.app import command, command_line, to_stderr
from assay.errors import InputError, path_text

_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = (_PACKAGE / "samples", _PACKAGE.parents[1] / "specs" / "refund-quality")
"""Folders of the samples, in an installed package and in a checkout."""

_NEXT = """\
next:
  {python} -c "import polars as pl; print(pl.read_parquet('{out}').filter(~pl.col('passed'))['feedback'])"
  {assay} init verifier.yaml    # write your own verifier
  {assay} score {samples}/rollouts.jsonl --spec verifier.yaml
  {assay} report {out} --out {page}{overwrite}    # a page for the browser: what each check is worth, rows to read"""


@command(modules=("assay.cli.terminal", "assay.runs.score_file"))
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
    samples = _shown(samples)
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
        command=command_line(),
    )
    print_summary(console, summary)
    assay = "assay" if shutil.which("assay") else _shown(Path(sys.argv[0]))
    names = {"out": out, "page": Path(out).with_suffix(".html"), "samples": samples}
    again = " --overwrite" if overwrite else ""
    steps = _NEXT.format(python=_shown(Path(sys.executable)), assay=assay, overwrite=again, **names)
    console.print(path_text(steps), markup=False, highlight=False, soft_wrap=True)


def _shown(path: Path) -> Path:
    """A path as somebody would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
