"""Specs by name: ``refund`` for the latest version in the nearest registry, ``refund@2`` for one version.

A registry is a folder ``verifiers`` with copies of specs, ``ID/N/FILE``, and ``assay.lock``, which says what each of them meant when it
was registered. A copy that means something else is refused wherever it is named.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from assay.errors import SpecError, did_you_mean, listed, shown_path
from assay.frozen import frozen
from assay.system.documents import FORMATS
from assay.system.special_files import likely_file

FOLDER, LOCK = "verifiers", "assay.lock"

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Ids that can be registered."""

_VERSION = re.compile(r"[1-9][0-9]{0,8}")

Lock = dict[str, dict[int, dict[str, Any]]]
"""What is registered: by id and version, ``file``, ``sha256`` and, of users' code, ``code``."""


@frozen
class RegisteredSpec:
    """One version of a registered spec.

    Attributes:
        version: Its version, from 1.
        path: Its copy.
        sha256: The digest of its canonical form.
        code: The users' code that it runs, with hashes.
    """

    id: str
    version: int
    path: Path
    sha256: str
    code: Sequence[Mapping[str, Any]] = field(default=(), hash=False)

    @property
    def name(self) -> str:
        """The name by which a run takes this version."""
        return f"{self.id}@{self.version}"

    def check(self, ident: str, sha256: str, code: Sequence[Mapping[str, Any]]) -> None:
        """Check that the copy means what it did when it was registered."""
        if sha256 != self.sha256:
            raise self.changed(_now("sha256", self.sha256, sha256), shown_path(self.path))
        if ident != self.id:
            raise self.changed(f"its id is {ident}", shown_path(self.path))
        if [*code] != [*self.code]:
            pairs = zip(self.code, code, strict=False)
            then, now = next((pair for pair in pairs if pair[0] != pair[1]), ({}, {}))
            names = [item.get("name") or item.get("qualname") for item in (now, then) if item]
            what = f"code of {names[0]}, sha256" if names else "code"
            raise self.changed(_now(what, str(then.get("sha256")), str(now.get("sha256"))), shown_path(self.path))

    def changed(self, how: str, source: str = "FILE") -> SpecError:
        """Return the error for a copy that is not what was registered."""
        remedy = f"restore it, or: assay verifiers create {source}"
        return SpecError(f"{self.name}: {shown_path(self.path)} is not what was locked ({how}); {remedy}")

    def unread(self, error: SpecError) -> SpecError:
        """Return the error for a copy that cannot be read, which it could when it was registered."""
        if not self.code:
            return SpecError(self.changed("it cannot be read").fact, error.fact, error.problems)
        hint = "It needs code of yours: --import MODULE, --checks MODULE:CLASS"
        return SpecError(f"{self.name}: cannot be read as when it was locked.\n{error.fact}", hint, error.problems)


def _now(what: str, then: str, now: str) -> str:
    return f"{what} {then[:4]}…, now {now[:4]}…"


def nearest_registry() -> Path | None:
    """Return the folder of the nearest registry, in the current folder or above it; None if there is none."""
    above = ("../" * level + FOLDER for level in range(len(Path.cwd().parts)))
    return next((folder for folder in map(Path, above) if (folder / LOCK).is_file()), None)


def read_lock(folder: Path) -> Lock:
    """Return what is registered in a folder; nothing if it has no lock."""
    path = folder / LOCK
    try:
        data = json.loads(path.read_text("utf-8"))
        return {
            _matching(ID, ident): {int(_matching(_VERSION, version)): _entry(entry) for version, entry in own.items()}
            for ident, own in data.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SpecError(f"{shown_path(path)}: {error.strerror}.") from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        hint = "Restore it from version control; or remove it, and register the specs anew: assay verifiers create FILE"
        raise SpecError(f"{shown_path(path)}: is not a lock that `assay verifiers create` wrote.", hint) from None


def _matching(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError("not an id or a version")
    return text


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    code = entry.get("code", [])
    if not isinstance(code, list) or not all(isinstance(item, dict) for item in code):
        raise TypeError("code is a list of objects")
    if Path(entry["file"]).name != entry["file"] or not isinstance(entry["sha256"], str):
        raise ValueError("a copy lies in its own folder")
    return dict(entry)


def listed_specs(folder: Path) -> list[RegisteredSpec]:
    """Return what is registered in a folder, by id and version, whether or not the copies are what they were."""
    return [
        RegisteredSpec(
            ident, version, folder / ident / str(version) / entry["file"], entry["sha256"], tuple(entry.get("code", ()))
        )
        for ident, versions in sorted(read_lock(folder).items())
        for version, entry in sorted(versions.items())
    ]


def registered(source: str) -> RegisteredSpec | None:
    """Return the spec of a name in the nearest registry; None for a text that can only be the path of a file."""
    if is_path(source):
        return None
    if (folder := nearest_registry()) is not None:
        return registered_in(folder, source)
    if "@" in source:
        fact = f"{shown_path(source)}: no such file, and no {FOLDER}/{LOCK} in this folder or above it."
        raise SpecError(fact, likely_file(Path(source)) or "Register a spec by its id: assay verifiers create FILE")
    if hint := _likely_grader(source):
        raise SpecError(f"{shown_path(source)}: no file and no registered verifier has this name.", hint)
    return None


def is_registered(name: str) -> bool:
    """Return whether a text names a spec in the nearest registry."""
    folder = None if is_path(name) else nearest_registry()
    return folder is not None and _find(listed_specs(folder), name) is not None


def registered_in(folder: Path, name: str) -> RegisteredSpec:
    """Return the spec of a name in a registry; a ``SpecError`` if there is none."""
    specs = listed_specs(folder)
    spec = _find(specs, name)
    if spec is None:
        ident = name.partition("@")[0]
        versions = [str(spec.version) for spec in specs if spec.id == ident]
        ids = dict.fromkeys(spec.id for spec in specs)
        known = f"Versions: {listed(versions)}." if versions else did_you_mean(ident, ids)
        hint = known or _likely_grader(name) or likely_file(Path(name)) or f"Registered: {listed([*ids])}."
        fact = f"{shown_path(name)}: no such file, and no verifier of that name in {shown_path(folder / LOCK)}."
        raise SpecError(fact, hint)
    return spec


def _likely_grader(name: str) -> str:
    from assay.checks.graders.table import GRADERS, likely_grader  # most runs end without

    if name in GRADERS:
        return f"It is a grader: write a spec with the check {{type: grader, name: {name}}}; adapters take its name."
    return likely_grader(name, cutoff=0.8)


def _find(specs: Sequence[RegisteredSpec], name: str) -> RegisteredSpec | None:
    ident, at, number = name.partition("@")
    versions = {str(spec.version): spec for spec in specs if spec.id == ident}
    return versions.get(number if at else next(reversed(versions), ""))


def is_path(text: str) -> bool:
    """Return whether a text names a file, be it there or not, and not a registered spec or a grader."""
    # NOTE: those of os.path take what can be no path for a name of nothing
    is_there = os.path.exists(text) and not os.path.isdir(text)  # noqa: PTH110, PTH112
    return is_there or "/" in text or "\\" in text or Path(text).suffix.lower() in FORMATS
