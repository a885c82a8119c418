"""The files that a footer names, as far as they may be opened.

Whoever wrote a footer chose its names; whoever reads the result has the network, the credentials and the files. So what a footer
names is opened only if it is a local file in a folder that the reader works with, and is still the file that was recorded. Anything
else the user has to name.
"""

import glob
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from assay.errors import InputError, printable
from assay.loading.formats.remote import is_url
from assay.system.redaction import redacted
from assay.system.special_files import path_of, what_is
from assay.writing.provenance import files_of, sha256_of

_SHOWN = 200  # characters of a name that messages show
# errors of a name with NUL, of one that is too long, and of a link that leads to itself
_NO_PATH = (OSError, ValueError, RuntimeError)
_NO_DATA = tuple(map(Path, ("/dev", "/proc", "/sys")))


def recorded_files(
    provenance: Mapping[str, Any],
    key: str,
    folder: Path | None,
    name: str,
    rollouts: Any = None,
    *,
    by_content: bool = False,
) -> list[str]:
    """Return the names of the ``inputs`` or ``tasks`` that a result was made from, if all of them may be opened and have not changed.

    ``folder`` is that of the result, ``rollouts`` what the user names. With ``by_content``, the caller compares what a folder of tasks holds
    with the record, before it is used.
    """
    entries, option = files_of(provenance, key), "--tasks" if key == "tasks" else "--rollouts"
    in_order = ", in the order of the run" if key == "inputs" else ""
    # an entry says which file it is, or else where it came from; others are of a frame or a pipe
    is_known = all(
        entry.get("modified") is not None or entry.get("sha256") is not None or is_url(entry["name"])
        for entry in entries
    )
    if not entries or not (by_content or is_known):
        raise InputError(f"{name}: does not say which files it was made from.", f"Name them{in_order}: {option} PATH")
    allowed = [one.resolve() for one in (Path.cwd(), *([] if folder is None else [folder]), *_folders(rollouts))]
    for entry in entries:
        if reason := _refusal(entry, allowed, by_content=by_content):
            shown = redacted(printable(entry["name"]))
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            kind = "URL" if is_url(entry["name"]) else "PATH"
            raise InputError(f"{shown}: {reason}.", f"If you trust it, name it yourself{in_order}: {option} {kind}")
    return [entry["name"] for entry in entries]


def _folders(rollouts: Any) -> Iterable[Path]:
    sources = [rollouts] if isinstance(rollouts, str | Path) else rollouts if isinstance(rollouts, Sequence) else []
    for source in sources if all(isinstance(source, str | Path) for source in sources) else []:
        if source != "-" and not is_url(source):
            path = Path(source)
            while glob.has_magic(str(path)) and not path.exists():
                path = path.parent
            yield path if path.is_dir() else path.parent


def _refusal(entry: Mapping[str, Any], allowed: Sequence[Path], *, by_content: bool) -> str:
    """Return why a file is not opened; ``""`` if it may be."""
    name = entry["name"]
    if is_url(name):
        return "is a URL, and what a footer names is not fetched"
    if name in ("", "-") or name.startswith("~") or PureWindowsPath(name).drive:
        return "is not a path that a footer may name"
    try:
        path = path_of(name)
        return _whereabouts(path, allowed) or _change(entry, path.resolve(), allowed, by_content=by_content)
    except FileNotFoundError:
        return "no such file or folder"
    except _NO_PATH as error:
        return f"cannot be looked at: {printable(getattr(error, 'strerror', None) or str(error))}"


def _whereabouts(path: Path, allowed: Sequence[Path]) -> str:
    """Return what is wrong with where a path leads; ``""`` if nothing is."""
    real, written = path.resolve(), Path(os.path.abspath(path))  # noqa: PTH100  (a link stays what it is)
    if any(place.is_relative_to(root) for root in _NO_DATA for place in (written, real)):
        return "is not a file of data"
    if any(real.is_relative_to(folder) for folder in allowed):
        return ""
    return (
        "a footer names it, and it lies outside of the folder of the result, the current folder and those of --rollouts"
    )


def _change(entry: Mapping[str, Any], path: Path, allowed: Sequence[Path], *, by_content: bool) -> str:
    """Return why a path is not what was recorded; ``""`` if it is."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        if any(_whereabouts(file, allowed) for file in path.rglob("*")):
            return "has a link that leads out of the folders that a footer may name"
        is_hashed = entry.get("sha256") is not None and entry["sha256"] == sha256_of(path)
        by, same = "content", by_content or is_hashed
    elif not stat.S_ISREG(status.st_mode):
        return f"is {what_is(path)}"
    else:
        by, same = "size and time", (entry.get("size"), entry.get("modified")) == (status.st_size, status.st_mtime_ns)
        if not same and entry.get("sha256"):
            by, same = "sha256", entry["sha256"] == sha256_of(path)
    return "" if same else f"is not the file that was scored, or has changed since: another {by}"
