"""Choose the preset for a file: the one that the caller names, else the one whose signature the records match."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, shown_path
from assay.expressions.lane import exactly
from assay.loading.formats.files import ENGINE_ERRORS
from assay.loading.formats.format import LINES, format_of
from assay.loading.formats.reading import Reading
from assay.loading.formats.remote import RemoteFile
from assay.loading.presets.preset import NONE, Preset, PresetSource, laid_out, load_preset, matching
from assay.loading.presets.record_layout import Layout
from assay.values.paths import is_path, outline, outline_of


@dataclass(frozen=True)
class Preview:
    """A preview of some records, read lazily."""

    name: str
    kind: str
    first: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    frame: Callable[[], pl.LazyFrame] | None = None

    @cached_property
    def outlines(self) -> tuple[Any, ...]:
        """The outline of each of the first records, or one for all. A file that cannot be read fails later, on opening."""
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
        """Return a list with the first value of a column, empty if there is none."""
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
class Choice:
    """The chosen way to read files.

    Attributes:
        layout: The source of each column; None to read the records as they are.
        name: Name of the preset; ``""`` for none.
        how: ``detected``, or the option that named it.
    """

    layout: Layout | None = None
    name: str = ""
    how: str = ""

    def reading(self, reading: Reading, kind: str) -> Reading:
        """Return the options for a file of some format, before the layout is applied; with ``reshape``, its rows are rollouts."""
        if self.layout is None:
            return reading
        if self.layout.is_flat:
            return replace(reading, mapping=self.layout.renamed)
        return replace(reading, mapping={}, reshape=self.layout.rows if kind == LINES.name else None)

    def description(self, columns: Sequence[str]) -> str:
        """Describe the choice for the summary and the provenance; ``""`` if there is nothing to say."""
        if not self.name and self.layout is None:
            return ""
        fields = () if self.layout is None else self.layout.fields
        parts = [str(field) for field in fields if field.name in columns and not field.stays]
        if self.layout is not None and self.layout.each is not None:
            parts.append(f"a row for each element of `{self.layout.each}`")
        if self.layout is not None and self.layout.only is not None:
            column, values = self.layout.only
            parts.append(f"only where {column} is {' or '.join(map(str, values))}")
        prefix = f"read as {self.name} ({self.how})" if self.name else "read by --map"
        return f"{prefix}: {', '.join(parts) or 'the columns have the names that Assay reads'}"


def preview(path: Path, reading: Reading) -> Preview:
    """Preview a file."""
    kind = format_of(path)
    records = tuple if kind.records is None else partial(kind.records, path, reading)
    return Preview(str(path), kind.name, records, None if kind.frame is None else partial(kind.frame, path, reading))


def preview_remote(file: RemoteFile, reading: Reading) -> Preview:
    """Preview an opened URL."""
    if file.copy is not None:
        return replace(preview(file.copy.path, reading), name=file.name)
    return Preview(file.name, file.remote.kind.name, frame=file.scan)


def choose(previews: Sequence[Preview], preset: PresetSource | None, mapping: Mapping[str, str]) -> Choice:
    """Choose how to read files."""
    named = None if preset is None or preset == NONE else load_preset(preset)
    chosen_preset = _detected(previews) if preset is None else named
    if chosen_preset is None:
        return Choice(laid_out(None, mapping)) if any(map(is_path, mapping.values())) else Choice()
    how = "detected" if named is None else "--preset"
    if laid_out(chosen_preset, {}).is_nothing and not any(map(is_path, mapping.values())):
        return Choice(None, chosen_preset.name, how)
    is_sure = all(chosen_preset.signature.fits(preview.outlines) for preview in previews)
    first_values = (
        ()
        if chosen_preset.first_only is None
        else tuple(value for preview in previews for value in preview.first_of(chosen_preset.first_only))
    )
    layout = laid_out(
        chosen_preset, mapping, sure=is_sure, first=tuple(dict.fromkeys(first_values)), detected=named is None
    )
    kinds = {preview.kind for preview in previews}
    if len(kinds) > 1 and not layout.is_flat:
        raise InputError(
            f"The preset `{chosen_preset.name}` cannot read {' and '.join(sorted(kinds))} files in one run.",
            "Score them separately.",
        )
    return Choice(layout, chosen_preset.name, how)


def _detected(previews: Sequence[Preview]) -> Preset | None:
    """Return the preset that all files match; presets that change nothing may differ."""
    presets = [_fitting(preview) for preview in previews]
    changing = [None if preset is None or laid_out(preset, {}).is_nothing else preset for preset in presets]
    if all(preset is None for preset in changing):
        return presets[0] if len({preset.name for preset in presets if preset}) == 1 and None not in presets else None
    other = next((index for index, preset in enumerate(presets) if preset != presets[0]), None)
    if other is not None:
        names = [
            f"{shown_path(previews[index].name)} is {'not recognised' if (preset := presets[index]) is None else preset.name}"
            for index in (0, other)
        ]
        raise InputError(
            f"The files have different formats: {', '.join(names)}.",
            "Score them separately, or name one with --preset NAME.",
        )
    return presets[0]


def _fitting(preview: Preview) -> Preset | None:
    matches = matching(preview.outlines, preview.kind)
    changing = [preset for preset in matches if not laid_out(preset, {}).is_nothing]
    if len(matches) > 1 and changing:
        names = [preset.name for preset in matches]
        ways = [f"--preset {name}" for name in (*names, NONE)]
        raise InputError(
            f"{shown_path(preview.name)} matches several presets: {', '.join(names)}.",
            f"Choose one: {' | '.join(ways)} (as it is).",
        )
    return matches[0] if len(matches) == 1 else None
