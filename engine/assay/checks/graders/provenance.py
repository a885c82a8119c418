"""Which graders made a result, and in which versions."""

from collections.abc import Iterable, Mapping
from typing import Any


def graders_of(names: Iterable[str]) -> list[dict[str, Any]]:
    """Return what a footer says of graders: the version of the tool, and the revision of Assay's code for it."""
    if not (given := dict.fromkeys(names)):
        return []
    from assay.checks.graders.table import GRADERS

    graders = [GRADERS[name] for name in given if name in GRADERS]
    return [
        {
            "name": grader.name,
            "tool": grader.tool.package,
            "version": grader.tool.version,
            "revision": grader.revision,
        }
        for grader in graders
    ]


def changed_graders(recorded: object, names: Iterable[str]) -> list[str]:
    """Return clauses that tell both versions of each grader that is not what it was when a result was made."""
    entries = recorded if isinstance(recorded, list) else []
    then = {str(entry.get("name")): entry for entry in entries if isinstance(entry, Mapping)}
    return [
        f"{_shown(entry['name'], then.get(entry['name']))}, this is {_version(entry)}"
        for entry in graders_of(names)
        if then.get(entry["name"]) != entry
    ]


def _shown(name: str, entry: Mapping[str, Any] | None) -> str:
    return f"an unknown version of {name}" if entry is None else f"{name} {_version(entry)}"


def _version(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('version')} (revision {entry.get('revision')})"
