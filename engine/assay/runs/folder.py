"""Score files into a folder: one part for each shard, each whole or not there, so that a run that was stopped goes on."""

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from assay.errors import OutputError, PartsError, UsageError, shown_path
from assay.runs.manifest import Manifest, read_manifest
from assay.runs.shards import COUNTS, Job, Shard, counted_in, done_already, score_shard
from assay.scoring.summary import Summary
from assay.system.atomic_file import new_file, refused_by_disk
from assay.system.locks import locked
from assay.system.progress import Ticks
from assay.system.signals import KEPT, Stopped
from assay.writing.writers import ENDINGS, MANIFEST, SUMMARY

__all__ = ["Engine", "Failed", "here", "is_folder", "score_folder"]

_LOCK = "_lock"
_TOLD_EVERY = 10.0
"""Seconds between two lines of a log."""

_logger = logging.getLogger("assay.folder")

_OURS = (MANIFEST, SUMMARY, COUNTS)
_DRAFTS = (f".{MANIFEST}.*.tmp", f".{SUMMARY}.*.tmp", ".part-*.parquet.*.tmp", f"{COUNTS}/.*.json.*.tmp")


@dataclass(frozen=True)
class Failed:
    """A shard that could not be scored, whatever was tried.

    Attributes:
        why: What ended it, and where.
    """

    why: str


class Engine(Protocol):
    """Where shards are scored."""

    def __call__(
        self, job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
    ) -> Iterator[tuple[Shard, Summary | Failed]]:
        """Score shards.

        Args:
            job: What they share.
            shards: Which.
            tell: Called with the rows done, beyond those of the shards that were given back.

        Yields:
            Each shard when it is done, in any order.
        """


def here(job: Job, shards: Sequence[Shard], tell: Callable[[int], None]) -> Iterator[tuple[Shard, Summary | Failed]]:
    """The engine that is this process."""
    for shard in shards:
        yield shard, score_shard(job, shard, tell)


def is_folder(out: object) -> bool:
    """Whether an output is a folder: it ends in a slash, or is one and does not look like a file."""
    if not isinstance(out, str | Path):
        return False
    return str(out).endswith(("/", os.sep)) or (os.path.isdir(out) and Path(out).suffix.lower() not in ENDINGS)  # noqa: PTH112  (it does not raise)


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
    """Score what is missing.

    Args:
        job: What all shards share.
        manifest: What the run is.
        engine: Where shards are scored.
        summary: Empty; parts are added as they are done, for ``check``.
        overwrite: Begin anew, whatever run is there.
        check: Called when a part is added; it raises to stop the run.
        progress: Told of the rows.

    Returns:
        The same with all parts, added up in their order.

    Raises:
        UsageError: The folder holds something else, or another run is writing there.
        OutputError: Something could not be written.
        PartsError: Some shards ended their process; all others are done.
        Stopped: The run was interrupted.
    """
    folder, began = job.folder, time.perf_counter()
    ticks = progress or Ticks(None)
    whole = deepcopy(summary)
    with _held(folder):
        _begin(folder, manifest, overwrite=overwrite)
        missing: list[Shard] = []
        for shard in manifest.shards:
            counted = done_already(folder, manifest.run, shard)
            if counted is None:
                missing.append(shard)
                with refused_by_disk(f"{shown_path(folder)}/")():
                    (folder / shard.name).unlink(missing_ok=True)  # of another run, or torn
            else:
                summary.merge(counted)
        there = len(manifest.shards) - len(missing)
        if there:
            summary.told.append(f"{there:,} of {len(manifest.shards):,} parts were there already")
        before = summary.rows
        if check is not None:
            check(summary)  # a run that had too many errors has them still
        failed = _score(job, missing, engine, summary, ticks, check)
        if failed:
            raise _parts_error(folder, manifest, failed)
        for shard in manifest.shards:  # in their order, which sums of floats show
            whole.merge(counted_in(folder, shard))
        _refuse_gaps(folder, manifest)
        _finish(folder, whole)
    return replace(whole, told=summary.told, earlier=before, seconds=time.perf_counter() - began)


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
    told = time.monotonic()

    def kept() -> str:
        missing = "1 part is" if left == 1 else f"{left:,} parts are"
        return f"interrupted; {missing} missing in {shown_path(job.folder)}. The same command goes on from there"

    KEPT.append(kept)
    try:
        for shard, found in engine(job, missing, lambda rows: ticks.reach(summary.rows + rows)):
            if isinstance(found, Failed):
                failed.append((shard, found))
                continue
            left -= 1
            summary.merge(found)
            ticks.reach(summary.rows)
            if time.monotonic() - told > _TOLD_EVERY:
                told = time.monotonic()
                _logger.info("%s: %s rows so far, %s parts to go", job.folder, f"{summary.rows:,}", f"{left:,}")
            if check is not None:
                check(summary)
    except KeyboardInterrupt:
        raise Stopped(kept()) from None
    except SystemExit:  # at SIGTERM
        _logger.warning("%s", kept())
        raise
    finally:
        KEPT.remove(kept)
    return failed


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder, made if need be, against other runs."""
    if not folder.parent.is_dir():
        raise UsageError(f"{shown_path(folder)}/: there is no folder {shown_path(folder.parent)}.")
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        there = "a file" if folder.exists() else "a link to nothing"
        raise UsageError(f"{shown_path(folder)}/: is {there}.", "Name another folder.") from None
    except OSError as wrong:
        raise OutputError(f"{shown_path(folder)}/: {wrong.strerror}.") from wrong
    with locked(folder / _LOCK, f"{shown_path(folder)}/", "Wait for it to end, or name another folder."):
        yield


def _begin(folder: Path, manifest: Manifest, *, overwrite: bool) -> None:
    """Make the folder that of this run."""
    there = read_manifest(folder) if not overwrite else None
    if there is not None:
        manifest.refuse_other(there, folder)
    else:
        _refuse_foreign(folder)
        with refused_by_disk(f"{shown_path(folder)}/")():
            (folder / SUMMARY).unlink(missing_ok=True)
        manifest.write(folder)  # before anything else goes: a run that ends here is gone on with
    with refused_by_disk(f"{shown_path(folder)}/")():
        _remove_drafts(folder)
        names = {shard.name for shard in manifest.shards} | {shard.counts for shard in manifest.shards}
        for left in (*filter(_is_part, list(folder.iterdir())), *folder.glob(f"{COUNTS}/*.json")):
            if left.name not in names:
                left.unlink()


def _refuse_foreign(folder: Path) -> None:
    """What no run wrote is nobody's to remove; neither is what looks like parts, with no manifest beside it."""
    drafts = {left for pattern in _DRAFTS for left in folder.glob(pattern)}
    ours = (folder / MANIFEST).exists()
    foreign = sorted(
        one.name
        for one in folder.iterdir()
        if one.name != _LOCK and one not in drafts and not (ours and (one.name in _OURS or _is_part(one)))
    )
    if foreign:
        shown = ", ".join(map(shown_path, foreign[:3])) + (", …" if len(foreign) > 3 else "")  # noqa: PLR2004
        raise UsageError(
            f"{shown_path(folder)}/: holds what is not of a run: {shown}.", "Name an empty folder, or a new one."
        )


def _remove_drafts(folder: Path) -> None:
    """Remove what processes left that were killed; where one still writes for a run that is gone, it cannot finish."""
    for pattern in _DRAFTS:
        for left in folder.glob(pattern):
            with contextlib.suppress(OSError):
                left.unlink()


def _is_part(path: Path) -> bool:
    return path.name.startswith("part-") and path.suffix == ".parquet"


def _refuse_gaps(folder: Path, manifest: Manifest) -> None:
    """Find what somebody removed during the run: the summary would count rows that are not there."""
    gone = next((shard.name for shard in manifest.shards if not (folder / shard.name).is_file()), None)
    if gone is not None:
        fact = f"{shown_path(folder / gone)}: was removed after it was written."
        raise OutputError(fact, "The same command writes it again.")
    if not (folder / MANIFEST).is_file():
        manifest.write(folder)


def _finish(folder: Path, summary: Summary) -> None:
    _remove_drafts(folder)
    plain = {name: value for name, value in summary.as_json().items() if name not in _OF_THE_DAY}
    with new_file(folder / SUMMARY, alone=False) as (file, told), told():
        file.write(json.dumps(plain, indent=1).encode() + b"\n")


_OF_THE_DAY = ("seconds", "rows_per_second", "out", "notes")
"""What of a summary differs from run to run."""


def _parts_error(folder: Path, manifest: Manifest, failed: Sequence[tuple[Shard, Failed]]) -> PartsError:
    said = [f"  {shard.name}: {why.why}" for shard, why in failed[:5]]
    said += [f"  … and {len(failed) - 5:,} more"] if len(failed) > 5 else []  # noqa: PLR2004
    fact = f"{len(failed):,} of {len(manifest.shards):,} parts could not be scored:\n" + "\n".join(said)
    return PartsError(fact, f"The other parts are in {shown_path(folder)}/. The same command tries these again.")
