"""Libraries that decide verdicts, and which versions of them are here: another version may score the same row differently."""

import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

PUNKT = "punkt_tab"
"""The data by which nltk splits sentences: they have no version, so the digest of their English files stands for it."""

_UNKNOWN = object()


def versions(names: Iterable[str]) -> dict[str, str | None]:
    """Return the version of each library, by the name of its distribution; None for one that is not installed.

    NOTE: nothing is imported for that.
    """
    here: dict[str, str | None] = {}
    for name in names:
        try:
            here[name] = _punkt_digest() if name == PUNKT else importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            here[name] = None
    return here


def _punkt_digest() -> str | None:
    """Return the digest of Punkt's English parameters in the first folder of nltk's that has them."""
    folders = (Path(folder, "tokenizers", PUNKT, "english") for folder in _nltk_folders())
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        return None
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def _nltk_folders() -> list[str]:
    """Return the folders where nltk looks for its data; to ask nltk itself would take as long as to import it."""
    if (data := sys.modules.get("nltk.data")) is not None:
        return [str(path) for path in data.path]
    named = [path for path in os.environ.get("NLTK_DATA", "").split(os.pathsep) if path]
    own = [os.path.join(sys.prefix, *parts, "nltk_data") for parts in ((), ("share",), ("lib",))]  # noqa: PTH118  (as nltk)
    system = [f"/usr/{place}/nltk_data" for place in ("share", "local/share", "lib", "local/lib")]
    return [*named, os.path.expanduser("~/nltk_data"), *own, *system]  # noqa: PTH111  (does not raise)


def untested(tested: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the libraries that are here in a version that has not been tested, each with that version."""
    here = versions(name for name, known in tested.items() if known)
    return [f"{name} {now}" for name, now in here.items() if now is not None and now not in tested[name]]


def changed_versions(recorded: object, names: Iterable[str]) -> dict[str, str]:
    """Return the libraries that are not what they were when a result was made, each with a clause that tells both versions."""
    then = recorded if isinstance(recorded, Mapping) else {}
    now = versions(names)
    return {
        name: f"{_shown(name, then.get(name, _UNKNOWN))}, this is {here or 'none'}"
        for name, here in now.items()
        if then.get(name, _UNKNOWN) != here
    }


def _shown(name: str, recorded: object) -> str:
    if recorded is _UNKNOWN:
        return f"an unknown version of {name}"
    return f"no {name}" if recorded is None else f"{name} {recorded}"
