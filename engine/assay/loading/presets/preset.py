"""Presets: how the files that other tools write are read, each a JSON file that says how it is recognised and what is where.

Those of Assay are in the folder ``presets`` beside this module; users name the file of their own.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic import Field as Described

from assay.errors import InputError, UsageError, did_you_mean, shown_path
from assay.loading.presets.extractors import EXTRACTORS
from assay.loading.presets.json_paths import is_path, kind_of, parse
from assay.loading.presets.record_layout import Failure, Field, Layout, Source
from assay.names import HIDDEN
from assay.system.documents import MAX_BYTES
from assay.system.special_files import open_input

__all__ = [
    "NONE",
    "Preset",
    "PresetSource",
    "as_data",
    "as_markdown",
    "laid_out",
    "load_preset",
    "matching",
    "names",
    "presets",
    "schema",
]

_COMPLETION = "completion"

NONE = "none"
"""What names no preset: the file is read as it is."""

PresetSource = str | FilePath | Mapping[str, Any]
"""A name, a file, or what such a file says."""


def _checked_path(written: str) -> str:
    parse(written)
    return written


def _checked_name(name: str) -> str:
    if name.startswith(HIDDEN):
        raise ValueError(f"names that begin with `{HIDDEN}` are reserved")
    return name


def _checked_extractor(name: str) -> str:
    if name not in EXTRACTORS:
        near = did_you_mean(name, EXTRACTORS) or f"There are: {', '.join(EXTRACTORS)}."
        raise ValueError(f"there is no `{name}`. {near}")
    return name


_Path = Annotated[
    str, AfterValidator(_checked_path), Described(description='a.b, a[0], a[-1], a[] for each element, a["b.c"]')
]
_By = Annotated[str, AfterValidator(_checked_extractor), Described(json_schema_extra={"enum": list(EXTRACTORS)})]
_Name = Annotated[str, AfterValidator(_checked_name)]
_Kind = Literal["any", "object", "list", "text", "number", "boolean"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Extract(_Strict):
    """A value that goes through a function.

    Attributes:
        path: Where the value stands.
        by: Name of the function.
    """

    path: _Path
    by: _By


class Signature(_Strict):
    """What all records of a file have, and what they do not have.

    Attributes:
        required: Paths, and the kind of value there; null is of every kind.
        absent: Paths that lead nowhere.
    """

    required: dict[_Path, _Kind] = Described(min_length=1)
    absent: tuple[_Path, ...] = ()

    def fits(self, outlines: Sequence[Any]) -> bool:
        """Whether records, by their outlines, are such."""
        return bool(outlines) and all(map(self._fits, outlines))

    def _fits(self, outlined: Any) -> bool:
        for path, kind in self.required.items():
            there = kind_of(outlined, parse(path))
            if there is None or not (kind == "any" or there in (kind, "null")):
                return False
        return all(kind_of(outlined, parse(path)) is None for path in self.absent)


class Unscored(_Strict):
    """A value that tells that there is no rollout: its row is unscored, with the reason.

    Attributes:
        path: Where the value stands.
        by: Name of the function it goes through first, if it does.
        unless: Values that tell nothing of the kind, besides null.
        says: The reason; the value follows it.
    """

    path: _Path
    by: _By | None = None
    unless: tuple[str | int | bool, ...] = ()
    says: str


class Preset(_Strict):
    """How one format is recognised and read.

    Attributes:
        name: Its name.
        title: What it is, in one line.
        formats: The kinds of files it is looked for in.
        signature: How it is recognised.
        fields: The columns of the rollouts and where they come from; of several places, the first that has a value.
        constants: Columns that are the same in every row.
        drop: Columns of the file that do not pass through.
        unscored: Values that leave a row unscored; the first that applies is the reason.
        first_only: A column whose values repeat the same rollouts; the first value of each file is read.
        notes: What its users should know.
    """

    name: str = Described(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    formats: tuple[Literal["jsonl", "parquet", "ipc"], ...] = ("jsonl", "parquet", "ipc")
    signature: Signature
    fields: dict[_Name, _Path | Extract | tuple[_Path | Extract, ...]]
    constants: dict[_Name, str | int | float | bool] = {}
    drop: tuple[str, ...] = ()
    unscored: tuple[Unscored, ...] = ()
    first_only: str | None = None
    notes: tuple[str, ...] = ()

    def described(self) -> list[str]:
        """Its mapping as words, ``name=place``, without the columns that have their names already."""
        fields = (Field(name, _sources(given)) for name, given in self.fields.items())
        return [str(one) for one in fields if not one.stays]


def _sources(given: str | Extract | tuple[str | Extract, ...]) -> tuple[Source, ...]:
    each = given if isinstance(given, tuple) else (given,)
    return tuple(Source(parse(one)) if isinstance(one, str) else Source(parse(one.path), one.by) for one in each)


@cache
def presets() -> tuple[Preset, ...]:
    """The presets of Assay, by name."""
    folder = resources.files("assay.loading.presets")
    files = (one for one in folder.iterdir() if one.name.endswith(".json"))
    return tuple(sorted((_read(one.read_text("utf-8"), one.name) for one in files), key=lambda one: one.name))


def names() -> list[str]:
    """The names of the presets of Assay."""
    return [one.name for one in presets()]


def load_preset(source: PresetSource) -> Preset:
    """A preset.

    Args:
        source: The name of one of Assay's, a path that ends in ``.json``, or what such a file says.

    Raises:
        UsageError: There is no such preset.
        InputError: The file is no preset; every mistake is named with its place.
    """
    if isinstance(source, Mapping):
        return _read(json.dumps(dict(source)), "the preset")
    path = FilePath(source)
    if path.suffix.lower() == ".json":
        try:
            with open_input(path) as file:
                raw = file.read(MAX_BYTES + 1)
            if len(raw) > MAX_BYTES:
                raise InputError(f"{shown_path(path)}: larger than {MAX_BYTES >> 20} MiB.", "Is this another file?")
            return _read(raw.decode("utf-8-sig"), str(path))
        except OSError as wrong:
            raise InputError(f"{shown_path(path)}: {wrong.strerror}.") from None
        except UnicodeDecodeError as wrong:
            raise InputError(f"{shown_path(path)}: not UTF-8 (byte {wrong.start}).") from None
    known = {one.name: one for one in presets()}
    if (found := known.get(str(source))) is None:
        hint = did_you_mean(str(source), [*known, NONE])
        there = f"There are: {', '.join(known)}, {NONE} to read a file as it is, and files of yours, named *.json."
        raise UsageError(f"--preset {source}: there is no such preset.", "\n".join(filter(None, (hint, there))))
    return found


def as_data(source: PresetSource) -> Any:
    """What the caller names, as plain data that a later run can be compared with."""
    return NONE if source == NONE else load_preset(source).model_dump(mode="json", exclude_defaults=True)


def _read(text: str, where: str) -> Preset:
    try:
        found = Preset.model_validate_json(text)
        Layout(tuple(Field(name, _sources(given)) for name, given in found.fields.items()))
    except ValidationError as wrong:
        said = "\n".join(f"  {one}" for one in _problems(wrong.errors(include_url=False)))
        raise InputError(f"{where} is no preset:\n{said}", _HOW) from None
    except InputError as wrong:
        raise InputError(f"{where}: {wrong.fact}", wrong.hint) from None
    return found


_HOW = "assay presets --schema is the JSON Schema of such a file; assay presets NAME --json shows one of Assay's."
_ARMS = ("constrained-str", "function-after", "Extract", "tuple")
"""What pydantic adds to a place for the arms of a union."""

_NOT_THAT_ARM = ("string_type", "model_type", "tuple_type")


def _problems(errors: Sequence[Any]) -> list[str]:
    """Pydantic's errors as places and facts; of a value that may be of several kinds, what is wrong with the kind it is of."""
    placed = [(_place(error["loc"]), error) for error in errors]
    meant = [place for place, error in placed if error["type"] not in _NOT_THAT_ARM]
    told = [
        _problem(place, error)
        for place, error in placed
        if error["type"] not in _NOT_THAT_ARM or not any(one[: len(place)] == place for one in meant)
    ]
    return list(dict.fromkeys(told))


def _place(loc: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(step for step in loc if not str(step).startswith(_ARMS) and step != "[key]")


def _problem(place: tuple[Any, ...], error: Any) -> str:
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    fact = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        inner: Any = {"signature": Signature, "unscored": Unscored}.get(place[0], Extract)
        near = did_you_mean(place[-1], (Preset if len(place) == 1 else inner).model_fields)
        fact = " ".join(filter(None, ("is no field of a preset.", near)))
    return f"`{written}`: {fact}" if written else fact


def as_markdown(shown: Sequence[Preset]) -> str:
    """A table for the README."""
    lines = ["| preset | file | recognised by | read as |", "|---|---|---|---|"]
    for one in shown:
        signature = ", ".join(f"`{path}`" for path in one.signature.required)
        fields = ", ".join(f"`{said}`" for said in one.described()) or "it is"
        lines.append(f"| `{one.name}` | {one.title} | {signature} | {fields} |")
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of a preset's file."""
    return Preset.model_json_schema()


def matching(outlines: Sequence[Any], kind: str) -> list[Preset]:
    """The presets that a file's records fit, with the most specific signature; several where none is more specific.

    A file with a ``completion`` of its own fits no preset that takes the completion from elsewhere.

    Args:
        outlines: The outlines of records.
        kind: The file's format.
    """
    found = [
        one for one in presets() if kind in one.formats and one.signature.fits(outlines) and _is_free(one, outlines)
    ]
    most = max((len(one.signature.required) for one in found), default=0)
    return [one for one in found if len(one.signature.required) == most]


def _is_free(preset: Preset, outlines: Sequence[Any]) -> bool:
    return not (_moves_completion(preset) and any(_COMPLETION in one for one in outlines))


def _moves_completion(preset: Preset) -> bool:
    given = preset.fields.get(_COMPLETION)
    return given is not None and not Field(_COMPLETION, _sources(given)).stays


def laid_out(
    preset: Preset | None,
    mapping: Mapping[str, str],
    *,
    sure: bool = True,
    first: Sequence[Any] = (),
    detected: bool = False,
) -> Layout:
    """The layout of a preset, with what the user maps instead.

    Args:
        preset: The preset; None for the user's mapping alone.
        mapping: A name, and the column or the path (``$.a.b``) that it comes from.
        sure: Whether the file's records fit the preset; else the completion must be found.
        first: Values of ``first_only`` that are read.
        detected: Whether nobody named the preset, so that it must not take a completion of the records' own.

    Raises:
        UsageError: A path cannot be read.
    """
    fields = {} if preset is None else {name: Field(name, _sources(given)) for name, given in preset.fields.items()}
    if not sure and "completion" in fields:
        fields["completion"] = Field("completion", fields["completion"].sources, asked=True)
    for name, given in mapping.items():
        fields[name] = Field(name, (Source(_path(name, given)),), asked=True)
    if preset is None:
        return Layout(tuple(fields.values()))
    return Layout(
        tuple(fields.values()),
        tuple((name, value) for name, value in preset.constants.items() if name not in mapping),
        preset.drop,
        tuple(Failure(parse(one.path), one.unless, one.says, one.by or "") for one in preset.unscored),
        None if preset.first_only is None else (preset.first_only, tuple(first)),
        detected and _COMPLETION not in mapping and _moves_completion(preset),
    )


def _path(name: str, given: str) -> Any:
    try:
        return parse(given if is_path(given) else f"[{json.dumps(given)}]")
    except ValueError as wrong:
        raise UsageError(f"--map {name}={given}: {wrong}.") from None
