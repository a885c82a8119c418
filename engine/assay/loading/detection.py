"""Which preset a file is read by: what the caller names, else the one whose signature the file's records have."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, shown_path
from assay.expressions.lane import exactly
from assay.loading.formats.files import ENGINE_ERRORS, format_of
from assay.loading.formats.ipc import open_ipc
from assay.loading.formats.lines import Source
from assay.loading.formats.reading import Reading
from assay.loading.formats.remote import RemoteFile
from assay.loading.presets.json_paths import is_path, outline, outline_of
from assay.loading.presets.preset import NONE, Preset, PresetSource, laid_out, load_preset, matching
from assay.loading.presets.record_layout import Layout
from assay.system.special_files import engine_path

__all__ = ["Chosen", "Seen", "choose", "see", "see_remote"]

_LINES = 100
_BYTES = 1 << 24
_BLOCK = 1 << 18
"""What detection reads of a JSONL file: so many objects, and no line past so many bytes, a block at a time."""


@dataclass(frozen=True)
class Seen:
    """What detection sees of some records; it looks when it is asked.

    Attributes:
        name: The file's name, for messages.
        kind: Its format.
        first: Gives the first records, where columns have no types.
        frame: Gives all of them, where columns have types; no row is read.
    """

    name: str
    kind: str
    first: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    frame: Callable[[], pl.LazyFrame] | None = None

    @cached_property
    def outlines(self) -> tuple[Any, ...]:
        """The outline of each of the first records, or one of all. What cannot be read is for whoever opens it to tell."""
        try:
            if self.frame is not None:
                return (outline_of(pl.Struct(self.frame().collect_schema())),)
            return tuple(map(outline, self._records))
        except (*ENGINE_ERRORS, InputError):
            return ()

    @cached_property
    def _records(self) -> Sequence[Mapping[str, Any]]:
        return self.first()

    def first_of(self, column: str) -> list[Any]:
        """The first value of a column, if there is one."""
        if self.frame is None:
            return [record[column] for record in self._records if record.get(column) is not None][:1]
        frame = self.frame()
        if column not in frame.collect_schema():
            return []
        try:
            return frame.select(exactly(column)).drop_nulls().head(1).collect().to_series().to_list()
        except (*ENGINE_ERRORS, InputError):
            return []


@dataclass(frozen=True)
class Chosen:
    """How files are read.

    Attributes:
        layout: Where the columns come from; None to read the records as they are.
        name: Name of the preset; ``""`` for none.
        how: ``detected``, or how the caller said it.
    """

    layout: Layout | None = None
    name: str = ""
    how: str = ""

    def reading(self, reading: Reading, kind: str) -> Reading:
        """How a file of a kind is read, before the layout is applied to its columns; with ``reshape``, its rows are rollouts."""
        if self.layout is None:
            return reading
        if self.layout.is_flat:
            return replace(reading, mapping=self.layout.renamed)
        return replace(reading, mapping={}, reshape=self.layout.rows if kind == "jsonl" else None)

    def told(self, columns: Sequence[str]) -> str:
        """What was chosen, as the summary and the provenance say it; ``""`` for nothing.

        Args:
            columns: The columns that there are.
        """
        if not self.name and self.layout is None:
            return ""
        fields = () if self.layout is None else self.layout.fields
        said = [str(one) for one in fields if one.name in columns and not one.stays]
        if self.layout is not None and self.layout.each is not None:
            said.append(f"a row for each element of `{self.layout.each}`")
        if self.layout is not None and self.layout.only is not None:
            column, values = self.layout.only
            said.append(f"only where {column} is {' or '.join(map(str, values))}")
        by = f"read as {self.name} ({self.how})" if self.name else "read by --map"
        return f"{by}: {', '.join(said) or 'the columns have the names that Assay reads'}"


def see(path: Path, reading: Reading) -> Seen:
    """Look at a file that is to be read in some way."""
    kind = format_of(path)
    if kind == "jsonl":
        return Seen(str(path), kind, partial(_first_lines, path, reading))
    if kind == "parquet":
        return Seen(str(path), kind, frame=partial(pl.scan_parquet, engine_path(path), glob=False))
    if kind == "ipc":
        return Seen(str(path), kind, frame=lambda: open_ipc(path, reading).scan())
    return Seen(str(path), kind)


def see_remote(file: RemoteFile, reading: Reading) -> Seen:
    """Look at a file of a URL that was opened."""
    if file.copy is not None:
        return Seen(file.name, "jsonl", partial(_first_lines, file.copy.path, reading))
    return Seen(file.name, file.remote.kind, frame=file.scan)


def _first_lines(path: Path, reading: Reading) -> list[dict[str, Any]]:
    """The first lines that are JSON objects."""
    found: list[dict[str, Any]] = []
    with Source.of(path, str(path), reading).open() as read:
        for raw in _lines(read):
            try:
                value = json.loads(raw.decode("utf-8-sig", errors="replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                found.append(value)
            if len(found) == _LINES:
                break
    return found


def _lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Lines of the first bytes of a file, the last one perhaps torn."""
    size, torn = 0, b""
    while size < _BYTES and (block := read(_BLOCK)):
        *whole, torn = (torn + block).split(b"\n")
        yield from whole
        size += len(block)
    yield torn


def choose(seen: Sequence[Seen], preset: PresetSource | None, mapping: Mapping[str, str]) -> Chosen:
    """How files are to be read.

    Args:
        seen: What was seen of each.
        preset: What the caller names; ``none`` for nothing; None to go by the signatures.
        mapping: What the caller maps: names, and the columns or paths that they come from.

    Raises:
        UsageError: There is no such preset, or a path cannot be read.
        InputError: A file fits several presets, or the files do not all fit one.
    """
    named = None if preset is None or preset == NONE else load_preset(preset)
    found = _detected(seen) if preset is None else named
    if found is None:
        return Chosen(laid_out(None, mapping)) if any(map(is_path, mapping.values())) else Chosen()
    how = "detected" if named is None else "--preset"
    if laid_out(found, {}).is_nothing and not any(map(is_path, mapping.values())):
        return Chosen(None, found.name, how)
    sure = all(found.signature.fits(one.outlines) for one in seen)
    first = () if found.first_only is None else tuple(value for one in seen for value in one.first_of(found.first_only))
    layout = laid_out(found, mapping, sure=sure, first=tuple(dict.fromkeys(first)), detected=named is None)
    kinds = {one.kind for one in seen}
    if len(kinds) > 1 and not layout.is_flat:
        raise InputError(
            f"The preset `{found.name}` cannot read {' and '.join(sorted(kinds))} files in one run.",
            "Score them apart.",
        )
    return Chosen(layout, found.name, how)


def _detected(seen: Sequence[Seen]) -> Preset | None:
    """The one preset that all files fit; one that changes nothing is no reason to refuse any."""
    each = [_fitting(one) for one in seen]
    moving = [None if one is None or laid_out(one, {}).is_nothing else one for one in each]
    if all(one is None for one in moving):
        return each[0] if len({one.name for one in each if one}) == 1 and None not in each else None
    other = next((at for at, one in enumerate(each) if one != each[0]), None)
    if other is not None:
        said = [
            f"{shown_path(seen[at].name)} is {'of no known format' if (one := each[at]) is None else one.name}"
            for at in (0, other)
        ]
        raise InputError(
            f"The files are not of one format: {', '.join(said)}.", "Score them apart, or say --preset NAME."
        )
    return each[0]


def _fitting(seen: Seen) -> Preset | None:
    found = matching(seen.outlines, seen.kind)
    moving = [one for one in found if not laid_out(one, {}).is_nothing]
    if len(found) > 1 and moving:
        names = [one.name for one in found]
        ways = [f"--preset {name}" for name in (*names, NONE)]
        raise InputError(
            f"{shown_path(seen.name)} fits several presets: {', '.join(names)}.",
            f"Say which: {' | '.join(ways)} (as it is).",
        )
    return found[0] if len(found) == 1 else None
