"""A run from file to file: its output path, options, error limit and progress; rows stream through its plan batch by batch.

The footer of a result records the options. It is data: a preset in it is a mapping or none, but not a path, which would be read, and a
name of a file counts for nothing.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl
import polars.selectors as cs
from pydantic import BaseModel, ConfigDict, create_model

from assay.compiling.plan import Plan, in_pieces
from assay.errors import InputError, TooManyErrors, UsageError, counted, likely_ending, path_text, shown_path
from assay.frozen import frozen
from assay.loading.bad_rows import check_bad_rows_file, write_bad_rows
from assay.loading.formats.files import Files
from assay.loading.formats.reading import Reading, batches, reading_of
from assay.loading.formats.remote import is_url
from assay.loading.presets.preset import as_data
from assay.loading.rollouts import Rollouts
from assay.loading.tasks import content_of_tasks
from assay.options import FileOptions, deciding, options_of, settle
from assay.scoring.summary import Summary
from assay.spec.stored_json import StoredError, conforms
from assay.system.atomic_file import check_target
from assay.system.memory import share
from assay.system.quantities import RowLimit
from assay.system.redaction import redacted
from assay.thresholds import THRESHOLDS
from assay.writing.progress import Ticks
from assay.writing.provenance import task_files_of
from assay.writing.writers import ENDINGS, STDOUT, Writer


def recorded_options() -> set[str]:
    """Return the names of the options that a footer has: those that decide what a result holds."""
    return {*deciding(FileOptions), "keep", "details", "lengths", "outcome", "limit"}


def is_folder(out: object) -> bool:
    """Return whether an output path means a folder: it ends in a slash, or is a folder without a file's ending."""
    if not isinstance(out, str | Path):
        return False
    return str(out).endswith(("/", os.sep)) or (os.path.isdir(out) and Path(out).suffix.lower() not in ENDINGS)  # noqa: PTH112  (does not raise)


def settings_in(provenance: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the options of the run that made a result, as far as its footer has them; ``name`` is the result's in messages."""
    settings = provenance.get("settings") or {}
    try:
        conforms(settings, _settings_model())
        settle(FileOptions, settings, "assay")
    except (StoredError, UsageError) as error:
        fact = f"{name}: the options in its footer cannot be read: {error.args[0]}"
        raise InputError(fact, "Score the rollouts again.") from None
    return dict(settings)


@cache
def _settings_model() -> type[BaseModel]:
    hints = {name: hint for name, (hint, _) in options_of(FileOptions).items() if name in recorded_options()}
    hints["preset"] = dict[str, Any] | Literal["none"] | None
    fields: dict[str, Any] = {name: (hint, None) for name, hint in hints.items()}
    return create_model("Settings", __config__=ConfigDict(strict=True, extra="forbid"), **fields)


def recorded_reading(provenance: Mapping[str, Any], name: str) -> Reading:
    """Return how the rollouts of a result were read: with its mapping and preset, and with the bad rows that it allowed."""
    return replace(reading_of(settle(FileOptions, settings_in(provenance, name), "assay")), max_bad_rows="100%")


def output_schema(plan: Plan, frame: pl.LazyFrame) -> pl.Schema:
    """Return the columns of a plan's result on a frame, with their types."""
    scored = plan.lazy(frame).collect_schema()
    return pl.Schema({name: scored[name] for name in plan.columns})


@contextmanager
def paced(piece: int, read: Files | None, kept: Collection[str]) -> Iterator[int]:
    """Process about ``piece`` rows at a time, fewer if they are long, and keep the reader near.

    The value is how many to write together, given the input columns that are ``kept``.
    """
    if read is None:
        with in_pieces(piece):
            yield THRESHOLDS.batch
    else:
        with in_pieces(read.at_once(piece)), read.pace.kept(share(read.memory_limit)):
            yield read.together(THRESHOLDS.batch, kept)


def stream(
    plan: Plan,
    frame: pl.LazyFrame,
    writer: Writer | None,
    summary: Summary,
    done: Callable[[], None] | None = None,
    read: Files | None = None,
) -> None:
    """Score a frame batch by batch; call ``done`` after a batch is counted and before it is written."""
    with paced(plan.piece, read, plan.passed_through.values()) as together:
        for batch in batches(plan.lazy(frame, watched=True), together):
            summary.add(plan, batch)
            if done is not None:
                done()
            if writer is not None:
                writer.write(batch.select(cs.by_name(plan.columns)))


@frozen
class FileRun:
    """Output, options, error limit and progress of a run."""

    out: str | Path | None
    options: FileOptions

    @cached_property
    def progress(self) -> Ticks:
        """The rows done, for the caller's callback."""
        return Ticks(self.options["progress"])

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The options that decide what the result holds, as JSON data."""
        settings: dict[str, Any] = {name: value for name, value in self.options.items() if name in recorded_options()}
        preset, outcome = self.options["preset"], settings.pop("outcome")
        plain = {
            "mapping": dict(self.options["mapping"] or {}),
            "preset": None if preset is None else as_data(preset, ends=outcome),
        }
        # without it, a footer is that of a run which knew no outcomes
        return settings | plain | ({"outcome": True} if outcome else {})

    def task_table(self, source: Rollouts, provenance: Mapping[str, Any]) -> dict[str, str]:
        """Return the hash of a task table that is not known by its files, as an entry of the provenance; else nothing."""
        files = provenance["tasks"]
        is_known = self.options["tasks"] is None or (files and all(file["modified"] is not None for file in files))
        return {} if is_known else {"task_table": content_of_tasks(source.steps) or ""}

    def check(self) -> None:
        """Check the output path before anything is read."""
        if self.out == "":  # Path("") is the current folder
            raise UsageError("--out: is empty.", "Name a file, or FOLDER/ for parts.")
        if is_url(self.out):
            fact = f"{redacted(str(self.out))}: rewards can only be written to a local path."
            raise UsageError(fact, "Write them to a local path, then copy them to the store.")
        if self.out is None or str(self.out) == STDOUT or is_folder(self.out):
            return
        path = Path(self.out)
        if path.suffix.lower() not in ENDINGS:
            endings = f"{', '.join(ENDINGS)}, / for a folder of parts, or - for standard output"
            raise UsageError(f"{shown_path(self.out)}: the ending must be {endings}.", likely_ending(path, ENDINGS))
        check_target(path, overwrite=self.options["overwrite"], how="--overwrite")

    def check_apart(self, source: Rollouts) -> None:
        """Refuse to overwrite an input."""
        if self.out is None or str(self.out) == STDOUT:
            return
        target = os.path.realpath(self.out)
        for file in (*(str(file.path) for file in source.files), *task_files_of(self.options["tasks"])):
            real = os.path.realpath(file)
            if real == target:
                raise UsageError(f"{shown_path(self.out)}: is one of the inputs.", "Name another file for the rewards.")
            if is_folder(self.out) and os.path.dirname(real) == target:  # noqa: PTH120  (of the link's target)
                raise UsageError(
                    f"{shown_path(self.out)}: holds {shown_path(file)}, one of the inputs.", "Name another folder."
                )
        if source.bad:  # a continued run into a folder replaces its list
            check_bad_rows_file(self.out, overwrite=self.options["overwrite"] or is_folder(self.out))

    def check_errors(self, summary: Summary, *, final: bool = False) -> None:
        """Check a run against the limit of rows with a scoring error; a share is only known at the end."""
        most = RowLimit("--max-errors", self.options["max_errors"])
        if not most.exceeded(summary.errors, summary.rows, final=final):
            return
        worst = sorted((check for check in summary.checks if check.errors), key=lambda check: -check.errors)
        causes = [f"  {check.id}: {counted(check.errors, 'row')}" for check in worst[:5]]
        causes += [f"  unscored: {reason}: {counted(rows, 'row')}" for reason, rows in summary.unscored.most_common(3)]
        have = "has" if summary.errors == 1 else "have"
        fact = f"{summary.errors:,} of {counted(summary.rows, 'row')} {have} a scoring error; --max-errors allows {most.given}."
        kept = "Finished parts are kept" if is_folder(self.out) else "Nothing was written"
        hint = f"{kept}. Fix the verifier or the rows, or allow more errors."
        raise TooManyErrors("\n".join([fact, *causes]), hint)

    def begin(self, source: Rollouts, plan: Plan) -> Summary:
        """Return an empty summary, and set the total of the progress."""
        total, limit = source.rows, self.options["limit"]
        self.progress.total = total if total is None or limit is None else min(total, limit)
        summary = Summary.of(plan)
        summary.told += source.notes
        summary.out = None if self.out is None else path_text(self.out)
        summary.bad_rows = len(source.bad)
        return summary

    def end(self, source: Rollouts, summary: Summary) -> Summary:
        """Write the list of malformed rows, and add a note to the summary."""
        bad_rows = write_bad_rows(source.bad, self.out)
        if source.bad:
            note = f"{counted(len(source.bad), 'bad row')} {'is' if len(source.bad) == 1 else 'are'} unscored"
            summary.told.append(note if bad_rows is None else f"{note}, and listed in {path_text(bad_rows)}")
        return summary
