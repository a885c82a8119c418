"""Files that appear whole or not at all.

A file is written to a hidden sibling, flushed to the disk, read back where it has a footer, and only then renamed: nobody ever
sees half a file, and a failed run leaves the old one as it was.
"""

import contextlib
import errno
import glob
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import OutputError, UsageError, shown_path
from assay.system.locks import locked
from assay.system.processes import forget_in_children
from assay.system.signals import LEFTOVERS
from assay.system.special_files import NOWHERE, what_is

__all__ = ["Told", "check_target", "new_file", "refused_by_disk"]

_DRAFTS: set[Path] = set()
"""Files that are being written."""

_HOST = zlib.crc32(socket.gethostname().encode())
"""Tells machines apart that write into one folder."""

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""File systems that cannot be asked to bring a file to the disk."""

Told = Callable[[], contextlib.AbstractContextManager[None]]
"""Turns what the disk refuses into an error that names the file."""


@contextlib.contextmanager
def new_file(path: Path, *, alone: bool = True) -> Iterator[tuple[IO[bytes], Told]]:
    """A file to write, which appears under its name when the block ends without an exception.

    Args:
        path: That name; a file that is there stays until then.
        alone: Whether no other run may write it at the same time.

    Yields:
        The file, and a context that turns what the disk refuses into an error that names the file.

    Raises:
        OutputError: The file cannot be written; what was there before is untouched.
        UsageError: Another run is writing it.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if not alone:
        yield from _drafted(path, target)
        return
    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, shown_path(path), "Wait for it to end, or name another file."):
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):  # by a run that was killed
            with contextlib.suppress(OSError):
                left.unlink()
        yield from _drafted(path, target)


def _drafted(path: Path, target: Path) -> Iterator[tuple[IO[bytes], Told]]:
    draft = _draft_of(target)
    _DRAFTS.add(draft)
    told = refused_by_disk(shown_path(path), draft)
    try:
        with told():
            draft.unlink(missing_ok=True)
            # whatever others put there meanwhile, a link above all, is not written through
            file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")
        try:
            yield file, told
            with told():
                file.flush()
                _sync(file.fileno())
        finally:
            with contextlib.suppress(OSError):  # what could not be flushed has been told
                file.close()
        with told():
            if path.suffix.lower() == ".parquet":
                with draft.open("rb") as back:  # pyarrow opens no name that is not UTF-8
                    pq.read_metadata(back)
            if target.exists() and target.stat().st_mode != draft.stat().st_mode:
                draft.chmod(target.stat().st_mode)
            draft.replace(target)
            _sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        _DRAFTS.discard(draft)


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}-{_HOST:08x}.tmp")


def _remove_drafts() -> None:
    for draft in list(_DRAFTS):
        draft.unlink(missing_ok=True)


LEFTOVERS.append(_remove_drafts)
forget_in_children(_DRAFTS.clear)


def check_target(path: Path, *, overwrite: bool, how: str) -> None:
    """Refuse a path at which no file can be, or may be, written.

    Args:
        path: Where to.
        overwrite: Whether a file that is there may be replaced.
        how: How to say that it may.

    Raises:
        UsageError: There is no such folder, the path is a folder, a file is already there, or the name is too long for a file
            and its draft.
    """
    try:
        os.lstat(_draft_of(path))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # ValueError: it has a NUL
        long = getattr(error, "errno", None) == errno.ENAMETOOLONG
        hint = "Its draft, beside it, has a name of some 25 bytes more." if long else ""
        raise UsageError(f"{shown_path(path)}: {getattr(error, 'strerror', error)}.", hint) from None
    if not path.parent.is_dir():
        raise UsageError(f"{shown_path(path)}: there is no folder {shown_path(path.parent)}.")
    if (what := what_is(path)) and what != NOWHERE:
        raise UsageError(f"{shown_path(path)}: is {what}.", "Name another file.")
    if path.exists() and not overwrite:
        raise UsageError(f"{shown_path(path)}: already there.", f"Name another file, or replace it with {how}.")


def refused_by_disk(name: str, draft: Path | None = None) -> Told:
    """What the disk refuses, as an error that names the file."""

    @contextlib.contextmanager
    def told() -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except (OSError, pa.ArrowException) as wrong:
            said = getattr(wrong, "strerror", None) or str(wrong)
            if draft is None:
                raise OutputError(f"{name}: {said}.") from wrong
            written = draft.stat().st_size if draft.exists() else 0
            hint = "What was there before is untouched."
            raise OutputError(f"{name}: {said}, after {written:,} bytes.", hint) from wrong

    return told


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    # the file is there, and whole; a system that cannot say that its name is on the disk may lose the name, and keeps the old one
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
