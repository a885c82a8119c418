"""The manifest of a run in parts: what is scored, by what, and which units each part is of.

It is written before the first part. A run that finds one goes on only where it would write the same.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import InputError, UsageError, printable, shown_path
from assay.loading.formats.files import Cut
from assay.runs.shards import Shard
from assay.system.atomic_file import new_file
from assay.writing.writers import MANIFEST

__all__ = ["Manifest", "read_manifest"]

_FORMAT = 1
_SHOWN = 60


@dataclass(frozen=True)
class Manifest:
    """What a run in parts is.

    Attributes:
        made: Versions, verifiers, inputs and tasks, as the provenance names them.
        settings: Options that decide what comes out.
        columns: Columns of the parts, with their types.
        shards: What each part is made of.
        command: What began the run; it does not tell runs apart.
    """

    made: Mapping[str, Any]
    settings: Mapping[str, Any]
    columns: Mapping[str, str]
    shards: tuple[Shard, ...]
    command: str = ""

    @cached_property
    def run(self) -> str:
        """SHA-256 of all that decides what comes out, as hexadecimal digits."""
        said = [self.told(), list(self.columns)]  # their order, too
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Put it down.

        Raises:
            OutputError: It could not be written.
        """
        plain = {"manifest": _FORMAT, "run": self.run, "command": self.command, **self.told()}
        with new_file(folder / MANIFEST, alone=False) as (file, told), told():
            file.write(json.dumps(plain, indent=1).encode() + b"\n")

    def told(self) -> dict[str, Any]:
        """All that decides what comes out, as plain data."""
        shards = [_of_shard(one) for one in self.shards]
        plain = {**self.made, "settings": self.settings, "columns": self.columns, "shards": shards}
        return dict(json.loads(json.dumps(plain)))

    def refuse_other(self, other: "Manifest", folder: Path) -> None:
        """Find out in what a run that is there differs from this one.

        Raises:
            UsageError: In something; the message says in what.
        """
        found = _differences(other.told(), self.told())
        if not found and list(other.columns) != list(self.columns):
            found.append(f"the order of the columns: {', '.join(other.columns)} then, {', '.join(self.columns)} now")
        if found:
            raise UsageError(
                f"{shown_path(folder)}: holds another run, which differs in {len(found)} thing{'s' * (len(found) > 1)}:\n"
                + "\n".join(f"  {said}" for said in found[:10]),
                "Go on with what began it, name another folder, or begin anew with --overwrite.",
            )


def _of_shard(shard: Shard) -> list[int | None]:
    """A shard as plain data: file, first unit, the one after the last, rows; and the last file, where there are several."""
    plain = [shard.cut.file, shard.cut.first, shard.cut.last, shard.rows]
    return plain if shard.cut.final is None else [*plain, shard.cut.final]


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None where there is none.

    Raises:
        InputError: It cannot be read.
    """
    path = folder / MANIFEST
    try:
        plain = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        raise InputError(f"{shown_path(path)}: not readable: {wrong}") from None
    if not isinstance(plain, dict) or plain.get("manifest") != _FORMAT:
        raise InputError(f"{shown_path(path)}: not a manifest of this release of Assay.", "Name another folder.")
    try:
        cuts = [(Cut(*one[:3], *one[4:]), one[3]) for one in plain.pop("shards")]
        shards = tuple(Shard(at, cut, rows) for at, (cut, rows) in enumerate(cuts))
        settings, columns, command = plain.pop("settings"), plain.pop("columns"), plain.pop("command")
    except (KeyError, TypeError, IndexError) as wrong:
        raise InputError(f"{shown_path(path)}: not a manifest: {wrong}") from None
    made = {name: value for name, value in plain.items() if name not in ("manifest", "run")}
    return Manifest(made, settings, columns, shards, command)


_NAMED = {"inputs": "input", "tasks": "task file", "verifiers": "verifier"}


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In what two runs differ, in words."""
    said: list[str] = []
    for key in dict.fromkeys([*then, *now]):
        was, is_now = then.get(key), now.get(key)
        if was == is_now:
            continue
        if key in _NAMED:
            said += _listed(_NAMED[key], was or [], is_now or [])
        elif key == "shards":
            if not any(then.get(name) != now.get(name) for name in ("inputs", "settings")):
                said.append(f"the parts: {len(was or [])} then, {len(is_now or [])} now, or cut in other places")
        elif isinstance(was, dict) and isinstance(is_now, dict):
            said += [
                f"{'option' if key == 'settings' else 'column'} {name}: {_short(was.get(name))} then, {_short(is_now.get(name))} now"
                for name in dict.fromkeys([*was, *is_now])
                if was.get(name) != is_now.get(name)
            ]
        else:
            said.append(f"{key.replace('_', ' ')}: {_short(was)} then, {_short(is_now)} now")
    return said


def _listed(what: str, then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[str]:
    """In what inputs or verifiers differ."""
    was, is_now = ({str(one.get("name", one.get("id"))): one for one in many} for many in (then, now))
    said = [f"{what} {printable(name)} was part of it, and is not now" for name in was if name not in is_now]
    said += [f"{what} {printable(name)} was not part of it, and is now" for name in is_now if name not in was]
    for name in (name for name in was if name in is_now):
        one, other = was[name], is_now[name]
        said += [
            f"{what} {printable(name)}: {key} {_short(one.get(key))} then, {_short(other.get(key))} now"
            for key in dict.fromkeys([*one, *other])
            if one.get(key) != other.get(key) and key != "canonical"
        ]
    return said or [f"the order of the {what}s"]


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
