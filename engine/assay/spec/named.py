"""Specs by name: ``refund`` for the latest version in the nearest registry, ``refund@2`` for one version.

A registry is a folder ``verifiers`` with copies of specs, ``ID/N/FILE``, and ``assay.lock``, which says what each of them meant when it
was registered. A copy that means something else is refused wherever it is named.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import SpecError, did_you_mean, listed, shown_path
from assay.system.documents import FORMATS

FOLDER, LOCK = "verifiers", "assay.lock"

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Ids that can be registered."""

_VERSION = re.compile(r"[1-9][0-9]{0,8}")

Lock = dict[str, dict[int, dict[str, Any]]]
"""What is registered: by id and version, ``file``, ``sha256`` and, of users' code, ``code``."""


@dataclass(frozen=True)
class RegisteredSpec:
    """One version of a registered spec.

    Attributes:
        version: Its version, from 1.
    """

    id: str
    version: int
    path: Path
    sha256: str

    @property
    def name(self) -> str:
        """The name by which a run takes this version."""
        return f"{self.id}@{self.version}"

    def check(self, ident: str, sha256: str) -> None:
        """Check that the copy means what it did when it was registered."""
        if (ident, sha256) != (self.id, self.sha256):
            raise self.changed(f"sha256 {self.sha256[:4]}…, now {sha256[:4]}…")

    def changed(self, how: str) -> SpecError:
        """Return the error for a copy that is not what was registered."""
        hint = "Restore it, or register the spec anew: assay verifiers create FILE"
        return SpecError(f"{self.name}: {shown_path(self.path)} is not what was locked ({how}).", hint)


def nearest_registry() -> Path | None:
    """Return the folder of the nearest registry, in the current folder or above it; None if there is none."""
    above = ("../" * level + FOLDER for level in range(len(Path.cwd().parts)))
    return next((folder for folder in map(Path, above) if (folder / LOCK).is_file()), None)


def read_lock(folder: Path) -> Lock:
    """Return what is registered in a folder; nothing if it has no lock."""
    path = folder / LOCK
    try:
        data = json.loads(path.read_text("utf-8"))
        return {ident: {int(version): _entry(entry) for version, entry in own.items()} for ident, own in data.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SpecError(f"{shown_path(path)}: {error.strerror}.") from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        hint = "Restore it from version control, or register the specs anew: assay verifiers create FILE"
        raise SpecError(f"{shown_path(path)}: is not a lock that `assay verifiers create` wrote.", hint) from None


def listed_specs(folder: Path) -> list[RegisteredSpec]:
    """Return what is registered in a folder, by id and version, whether or not the copies are what they were."""
    return [
        RegisteredSpec(ident, version, folder / ident / str(version) / entry["file"], entry["sha256"])
        for ident, versions in sorted(read_lock(folder).items())
        for version, entry in sorted(versions.items())
    ]


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    if Path(entry["file"]).name != entry["file"] or not isinstance(entry["sha256"], str):
        raise ValueError("a copy lies in its own folder")
    return dict(entry)


def registered(source: str | Path, folder: Path | None = None) -> RegisteredSpec | None:
    """Return the registered spec of a name; None for a name that is that of a file."""
    text = str(source)
    ident, at, number = text.partition("@")
    is_name = ID.fullmatch(ident) and (not at or _VERSION.fullmatch(number)) and Path(text).suffix not in FORMATS
    folder = folder or (nearest_registry() if is_name and not Path(text).is_file() else None)
    if folder is None:
        return None
    specs = listed_specs(folder)
    versions = {spec.version: spec for spec in specs if is_name and spec.id == ident}
    spec = versions.get(int(number) if at and is_name else max(versions, default=0))
    if spec is None:
        ids = dict.fromkeys(spec.id for spec in specs)
        known = f"Versions: {listed([*map(str, versions)])}." if versions else ""
        hint = known or did_you_mean(ident, ids) or f"Registered: {listed([*ids])}."
        raise SpecError(f"{text}: no such file, and no verifier of that name in {shown_path(folder / LOCK)}.", hint)
    if not spec.path.is_file():
        raise spec.changed("it is gone")
    return spec
