"""A run from file to file: its output path, options, error limit and progress."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.compiling.plan import Plan
from assay.errors import UsageError, counted, likely_ending, path_text, shown_path
from assay.loading.bad_rows import check_bad_rows_file, write_bad_rows
from assay.loading.formats.remote import is_url
from assay.loading.presets.preset import as_data
from assay.loading.rollouts import Rollouts
from assay.loading.tasks import content_of_tasks
from assay.options import FileOptions, deciding
from assay.runs.error_limit import ErrorLimit
from assay.scoring.summary import Summary
from assay.system.atomic_file import check_target
from assay.system.progress import Ticks
from assay.system.redaction import redacted
from assay.writing.provenance import task_files_of
from assay.writing.writers import ENDINGS, STDOUT


def recorded_options() -> set[str]:
    """Return the names of the options that a footer has: those that decide what a result holds."""
    return {*deciding(FileOptions), "keep", "details", "lengths", "limit"}


def is_folder(out: object) -> bool:
    """Return whether an output path means a folder: it ends in a slash, or is a folder without a file's ending."""
    if not isinstance(out, str | Path):
        return False
    return str(out).endswith(("/", os.sep)) or (os.path.isdir(out) and Path(out).suffix.lower() not in ENDINGS)  # noqa: PTH112  (does not raise)


@dataclass(frozen=True)
class FileRun:
    """Output, options, error limit and progress of a run."""

    out: str | Path | None
    options: FileOptions
    error_limit: ErrorLimit
    progress: Ticks

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The options that decide what the result holds, as JSON data."""
        settings: dict[str, Any] = {name: value for name, value in self.options.items() if name in recorded_options()}
        preset = self.options["preset"]
        plain = {"mapping": dict(self.options["mapping"] or {}), "preset": None if preset is None else as_data(preset)}
        return settings | plain

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
