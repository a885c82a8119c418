"""Score files into a folder: one part per shard, complete or absent, so that an interrupted run can continue."""

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from assay.errors import OutputError, PartsError, UsageError, counted, shown_path
from assay.names import MANIFEST
from assay.runs.manifest import Manifest, read_manifest
from assay.runs.shards import COUNTS, Job, Shard, finished_counts, read_counts, score_shard
from assay.scoring.summary import Summary
from assay.system.atomic_file import new_file, refused_by_disk
from assay.system.locks import locked
from assay.system.progress import Ticks
from assay.system.signals import KEPT, Stopped
from assay.writing.writers import SUMMARY

_LOCK = "_lock"
_LOG_INTERVAL = 10.0
"""Seconds between two log lines."""

_logger = logging.getLogger("assay.folder")

_OURS = (MANIFEST, SUMMARY, COUNTS)
_DRAFTS = (f".{MANIFEST}.*.tmp", f".{SUMMARY}.*.tmp", ".part-*.parquet.*.tmp", f"{COUNTS}/.*.json.*.tmp")


@dataclass(frozen=True)
class Failed:
    """A shard that could not be scored."""

    why: str


class Engine(Protocol):
    """Scores shards: in this process, in a separate one, or on Ray."""

    def __call__(
        self, job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
    ) -> Iterator[tuple[Shard, Summary | Failed]]:
        """Score shards."""


def in_this_process(
    job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
) -> Iterator[tuple[Shard, Summary | Failed]]:
    """Score shards in this process; an ``Engine``."""
    for shard in shards:
        yield shard, score_shard(job, shard, tell)


def score_folder(
    job: Job,
    manifest: Manifest,
    engine: Engine,
    summary: Summary,
    *,
    overwrite: bool = False,
    check: Callable[[Summary], None] | None = None,
    progress: Ticks | None = None,
) -> Summary:
    """Score the missing parts."""
    folder, started = job.folder, time.perf_counter()
    ticks = progress or Ticks(None)
    total = deepcopy(summary)
    with _locked(folder):
        _begin(folder, manifest, overwrite=overwrite)
        missing: list[Shard] = []
        for shard in manifest.shards:
            counts = finished_counts(folder, manifest.run, shard)
            if counts is None:
                missing.append(shard)
                with refused_by_disk(f"{shown_path(folder)}/")():
                    (folder / shard.name).unlink(missing_ok=True)  # from another run, or damaged
            else:
                summary.merge(counts)
        complete = len(manifest.shards) - len(missing)
        if complete:
            were = "was" if complete == 1 else "were"
            summary.told.append(f"{complete:,} of {counted(len(manifest.shards), 'part')} {were} complete already")
        earlier = summary.rows
        if check is not None:
            check(summary)  # earlier parts may exceed the limit of errors
        failed = _score(job, missing, engine, summary, ticks, check)
        if failed:
            raise _parts_error(folder, manifest, failed)
        for shard in manifest.shards:  # in order, because sums of floats depend on it
            total.merge(read_counts(folder, shard))
        _refuse_missing_parts(folder, manifest)
        _finish(folder, total)
    return replace(total, told=summary.told, earlier=earlier, seconds=time.perf_counter() - started)


def _score(
    job: Job,
    missing: Sequence[Shard],
    engine: Engine,
    summary: Summary,
    ticks: Ticks,
    check: Callable[[Summary], None] | None,
) -> list[tuple[Shard, Failed]]:
    failed: list[tuple[Shard, Failed]] = []
    left = len(missing)
    logged = time.monotonic()

    def message() -> str:
        are = "is" if left == 1 else "are"
        return (
            f"interrupted; {counted(left, 'part')} {are} missing in {shown_path(job.folder)}. "
            "The same command continues from there"
        )

    KEPT.append(message)
    try:
        for shard, result in engine(job, missing, lambda rows: ticks.reach(summary.rows + rows)):
            if isinstance(result, Failed):
                failed.append((shard, result))
                continue
            left -= 1
            summary.merge(result)
            ticks.reach(summary.rows)
            if time.monotonic() - logged > _LOG_INTERVAL:
                logged = time.monotonic()
                rows, parts = counted(summary.rows, "row"), counted(left, "part")
                _logger.info("%s: %s so far, %s to go", job.folder, rows, parts)
            if check is not None:
                check(summary)
    except KeyboardInterrupt:
        raise Stopped(message()) from None
    except SystemExit:  # at SIGTERM
        _logger.warning("%s", message())
        raise
    finally:
        KEPT.remove(message)
    return failed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if not folder.parent.is_dir():
        raise UsageError(f"{shown_path(folder)}/: there is no folder {shown_path(folder.parent)}.")
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        kind = "a file" if folder.exists() else "a broken link"
        raise UsageError(f"{shown_path(folder)}/: is {kind}.", "Name another folder.") from None
    except OSError as error:
        raise OutputError(f"{shown_path(folder)}/: {error.strerror}.") from error
    with locked(folder / _LOCK, f"{shown_path(folder)}/", "Wait for it to end, or name another folder."):
        yield


def _begin(folder: Path, manifest: Manifest, *, overwrite: bool) -> None:
    existing = read_manifest(folder) if not overwrite else None
    if existing is not None:
        manifest.refuse_other(existing, folder)
        if manifest.grown != existing.grown:
            manifest.write(folder)
    else:
        _refuse_other_files(folder)
        with refused_by_disk(f"{shown_path(folder)}/")():
            (folder / SUMMARY).unlink(missing_ok=True)
        manifest.write(folder)  # before anything else is removed, so that a run that stops here can continue
    with refused_by_disk(f"{shown_path(folder)}/")():
        _remove_drafts(folder)
        names = {shard.name for shard in manifest.shards} | {shard.counts for shard in manifest.shards}
        for path in (*filter(_is_part, list(folder.iterdir())), *folder.glob(f"{COUNTS}/*.json")):
            if path.name not in names:
                path.unlink()


def _refuse_other_files(folder: Path) -> None:
    drafts = {path for pattern in _DRAFTS for path in folder.glob(pattern)}
    has_manifest = (folder / MANIFEST).exists()
    foreign = sorted(
        path.name
        for path in folder.iterdir()
        if path.name != _LOCK and path not in drafts and not (has_manifest and (path.name in _OURS or _is_part(path)))
    )
    if foreign:
        shown = ", ".join(map(shown_path, foreign[:3])) + (", …" if len(foreign) > 3 else "")  # noqa: PLR2004
        raise UsageError(
            f"{shown_path(folder)}/: holds files that are not part of a run: {shown}.", "Name an empty or a new folder."
        )


def _remove_drafts(folder: Path) -> None:
    for pattern in _DRAFTS:
        for draft in folder.glob(pattern):
            with contextlib.suppress(OSError):
                draft.unlink()


def _is_part(path: Path) -> bool:
    return path.name.startswith("part-") and path.suffix == ".parquet"


def _refuse_missing_parts(folder: Path, manifest: Manifest) -> None:
    removed = next((shard.name for shard in manifest.shards if not (folder / shard.name).is_file()), None)
    if removed is not None:
        fact = f"{shown_path(folder / removed)}: was removed after it was written."
        raise OutputError(fact, "The same command writes it again.")
    if not (folder / MANIFEST).is_file():
        manifest.write(folder)


def _finish(folder: Path, summary: Summary) -> None:
    _remove_drafts(folder)
    data = {name: value for name, value in summary.as_json().items() if name not in _VARYING}
    with new_file(folder / SUMMARY, alone=False) as (file, guard), guard():
        file.write(json.dumps(data, indent=1).encode() + b"\n")


_VARYING = ("seconds", "rows_per_second", "out", "notes")
"""Entries of a summary that differ between identical runs."""


def _parts_error(folder: Path, manifest: Manifest, failed: Sequence[tuple[Shard, Failed]]) -> PartsError:
    lines = [f"  {shard.name}: {failure.why}" for shard, failure in failed[:5]]
    lines += [f"  … and {len(failed) - 5:,} more"] if len(failed) > 5 else []  # noqa: PLR2004
    fact = f"{len(failed):,} of {counted(len(manifest.shards), 'part')} could not be scored:\n" + "\n".join(lines)
    return PartsError(fact, f"The other parts are in {shown_path(folder)}/. The same command tries these again.")
