"""``assay report``: a result as a page, as Markdown or as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.cli.arguments import GroupNames, LengthColumn, Overwrite, ResultPath, TaskNames, names
from assay.errors import UsageError, counted, did_you_mean, likely_ending, printable, shown_path
from assay.system.stdout import write_data

if TYPE_CHECKING:
    from assay.insight.reports.reporting import Report

_EXAMPLES = """\b
Examples:
  assay report rewards.parquet --out report.html
  assay report rewards.parquet --format md --no-text"""

_FORMATS = ("html", "md", "json")
_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


@command(epilog=_EXAMPLES, modules=("assay.insight.reports.reporting",))
def report(
    result: ResultPath,
    *,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Write .html, .md or .json. [default: Markdown on stdout]", metavar="PATH"),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="What to write. [default: as --out ends, else md]", metavar="html|md|json"),
    ] = None,
    as_data: Annotated[bool, typer.Option("--json", help="As --format json.")] = False,
    rollouts: Annotated[
        list[str] | None,
        typer.Option(
            help="The rollouts that were scored, for the texts of examples. [default: the result's `completion`, else the inputs that it names, if unchanged]",
            metavar="PATH",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Columns to show rewards by. [default: model, the task, step]", metavar="NAME,…"),
    ] = None,
    examples: Annotated[int, typer.Option(help="Most examples of each kind.", metavar="N", min=0)] = 10,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave out the texts that were scored.")] = False,
    length: LengthColumn = None,
    task: TaskNames = None,
    group: GroupNames = None,
    overwrite: Overwrite = False,
) -> None:
    """Report on rewards: what each check is worth, which say the same, by model, task and step, and rows worth reading."""
    from assay.insight.reports.reporting import report as look
    from assay.system.atomic_file import check_target

    path = None if out is None else Path(out)
    chosen = _format(path, "json" if as_data else kind)
    if path is not None:
        check_target(path, overwrite=overwrite, how="--overwrite")
    with to_stderr().status("reading"):
        found = look(
            result,
            rollouts=rollouts or None,
            by=None if by is None else names(by),
            examples=examples,
            text=not no_text,
            length=length,
            task=names(task),
            group=names(group),
        )
        written = _written(found, chosen)
    if path is None:
        write_data(written)
    else:
        _write(path, written)
        _tell(found, path)


def _format(path: Path | None, kind: str | None) -> str:
    """Return what to write."""
    if kind is not None and kind not in _FORMATS:
        raise UsageError(f"--format {kind}: unknown.", did_you_mean(kind, _FORMATS) or "Expected html, md or json.")
    if path is None:
        if kind == "html":
            raise UsageError("--format html needs a file.", "Name one: --out report.html")
        return kind or "md"
    ending = _ENDINGS.get(path.suffix.lower())
    if kind is None and ending is None:
        fact = f"--out {shown_path(path)}: expected a name that ends in .html, .md or .json."
        raise UsageError(fact, likely_ending(path, (".html", ".md", ".json")))
    return kind or ending or ""


def _written(found: "Report", kind: str) -> str:
    if kind == "json":
        from assay.cli.documents import json_text

        return json_text(found.as_json()) + "\n"
    return found.html() if kind == "html" else found.markdown()


def _write(path: Path, text: str) -> None:
    from assay.system.atomic_file import new_file

    with new_file(path) as (file, reported), reported():
        file.write(text.encode())


def _tell(found: "Report", path: Path) -> None:
    """Say what was written, and what needs a look."""
    from assay.insight.reports.shown import concerns
    from assay.writing.numbers import interval, number, percent

    data, console = found.as_json(), to_stderr()
    summary = data["summary"]
    facts = [
        counted(summary["rows"], "row"),
        f"mean reward {number(summary['mean'])} {interval(summary['ci95'])}".strip(),
    ]
    lines = [" · ".join([*facts, f"pass {percent(summary['pass_rate'])}"])]
    lines += [f"▲ {concern}" for concern in concerns(data)[:10]]
    lines += [f"note: {printable(note)}" for note in data["notes"]]
    for line in [*lines, f"wrote {shown_path(path)}"]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
