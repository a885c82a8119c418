"""The manifest of a run in parts: its inputs, its verifiers, and the input units of each part.

It is written before the first part. A later run continues only if it would write the same parts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import InputError, UsageError, clipped, counted, printable, shown_path
from assay.frozen import frozen
from assay.loading.formats.files import Cut
from assay.names import MANIFEST
from assay.runs.shards import Shard
from assay.spec.stored_json import StoredError, conforms, parse_stored
from assay.system.atomic_file import write_file
from assay.writing.footers import Described, Footer, text_beside
from assay.writing.provenance import files_of

_FORMAT = 1
_IN_COLUMNS = ("keep", "details", "lengths", "outcome", "limit")
"""Settings that the columns tell, or that a run in parts cannot have."""

_SHOWN = 60


@frozen
class Manifest:
    """The description of a run in parts."""

    provenance: Mapping[str, Any]
    settings: Mapping[str, Any]
    columns: Mapping[str, str]
    shards: tuple[Shard, ...]
    command: str = ""
    grown: tuple[int, ...] = ()

    @cached_property
    def run(self) -> str:
        """SHA-256 of the run's identity, as hexadecimal digits; inputs that were added later do not change it."""
        identity = [self.identity(*self.grown[:1]), list(self.columns)]  # including the order of the columns
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the manifest."""
        head = {"manifest": _FORMAT, "run": self.run, "command": self.command}
        data = {**head, **self.identity(), "settings": self.settings}
        write_file(folder / MANIFEST, json.dumps(data, indent=1) + "\n")

    def identity(self, files: int | None = None) -> dict[str, Any]:
        """Return the run's identity, as JSON data."""
        cuts = [(shard.cut, shard.rows) for shard in self.shards if files is None or shard.cut.file < files]
        # file, first unit, unit after the last, rows, and the last file if there are several
        shards = [
            [cut.file, cut.first, cut.last, rows, *([] if cut.final is None else [cut.final])] for cut, rows in cuts
        ]
        settings = {name: value for name, value in self.settings.items() if name not in _IN_COLUMNS}
        data = {**self.provenance, "settings": settings, "columns": self.columns, "shards": shards}
        data["inputs"] = data["inputs"][:files]
        if grown := [begin for begin in self.grown if files is None or begin < files]:
            data["grown"] = grown
        return dict(json.loads(json.dumps(data)))

    def refuse_other(self, other: "Manifest", folder: Path) -> None:
        """Refuse a folder that holds a different run; this one may have more inputs behind those of the other."""
        known = len(other.provenance.get("inputs", ()))
        differences = _differences(other.identity(), self.identity(known if known in self.grown else None))
        if not differences and list(other.columns) != list(self.columns):
            order = f"{', '.join(other.columns)} then, {', '.join(self.columns)} now"
            differences.append(f"the order of the columns: {order}")
        if differences:
            raise UsageError(
                f"{shown_path(folder)}: holds another run, with {counted(len(differences), 'difference')}:\n"
                + "\n".join(f"  {difference}" for difference in differences[:10]),
                "Continue with the options of that run, name another folder, or start over with --overwrite.",
            )


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; None if there is none."""
    path = folder / MANIFEST
    if (text := text_beside(path)) is None:
        return None
    try:
        data = parse_stored(text, Footer)
        if data.get("manifest") != _FORMAT:
            raise InputError(f"{shown_path(path)}: not a manifest of this release of Assay.", "Name another folder.")
        conforms(data, Described)
    except StoredError as error:
        raise InputError(
            f"{shown_path(path)}: not readable: {error}.", "Name another folder, or start over with --overwrite."
        ) from None
    cuts = [(Cut(*shard[:3], *shard[4:]), shard[3]) for shard in data.pop("shards")]
    shards = tuple(Shard(number, cut, rows) for number, (cut, rows) in enumerate(cuts))
    settings, columns, command = data.pop("settings"), data.pop("columns"), data.pop("command")
    grown = tuple(data.pop("grown", None) or ())
    provenance = {name: value for name, value in data.items() if name not in ("manifest", "run")}
    return Manifest(provenance, settings, columns, shards, command, grown)


def recorded_inputs(folder: Path) -> tuple[str, ...]:
    """Return the names of the inputs of the run that a folder holds, in order; none if it holds none."""
    manifest = read_manifest(folder) if folder.is_dir() else None
    return () if manifest is None else tuple(entry["name"] for entry in files_of(manifest.provenance))


_NAMED = {"inputs": "input", "tasks": "task file", "verifiers": "verifier", "graders": "grader"}


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    differences: list[str] = []
    for key in dict.fromkeys([*then, *now]):
        before, after = then.get(key), now.get(key)
        if before == after:
            continue
        if key in _NAMED:
            differences += differing_items(_NAMED[key], before or [], after or [])
        elif key == "shards":
            if not any(then.get(name) != now.get(name) for name in ("inputs", "settings")):
                differences.append(f"the parts: cut differently, {len(before or [])} then, {len(after or [])} now")
        elif isinstance(before, dict) and isinstance(after, dict):
            noun = {"settings": "option", "libraries": "library"}.get(key, "column")
            differences += _changes(f"{noun} ", before, after)
        else:
            differences.append(f"{key.replace('_', ' ')}: {short_json(before)} then, {short_json(after)} now")
    return differences


def _changes(label: str, then: Mapping[str, Any], now: Mapping[str, Any], colon: str = ": ") -> list[str]:
    return [
        f"{label}{name}{colon}{short_json(then.get(name))} then, {short_json(now.get(name))} now"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]


def differing_items(noun: str, then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe the differences between inputs, task files or verifiers."""
    before, after = ({str(item.get("name", item.get("id"))): item for item in items} for items in (then, now))
    differences = [f"{noun} {printable(name)} was part of it, and is not now" for name in before if name not in after]
    differences += [f"{noun} {printable(name)} was not part of it, and is now" for name in after if name not in before]
    for name in (name for name in before if name in after):
        old, new = ({key: value for key, value in item[name].items() if key != "canonical"} for item in (before, after))
        differences += _changes(f"{noun} {printable(name)}: ", old, new, " ")
    return differences or [f"the order of the {noun}s"]


def short_json(value: Any) -> str:
    """Return a value as JSON, cut for a message."""
    return clipped(json.dumps(value), _SHOWN)
