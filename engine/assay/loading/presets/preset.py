"""Presets: each is a JSON file that says how to recognise and read the files of another tool.

The built-in presets are the JSON files beside this module; users can name a file of their own.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic import Field as Described

from assay.errors import InputError, UsageError, did_you_mean, shown_path
from assay.loading.presets.record_layout import EXTRACTORS, Failure, Field, Layout, ValueSource
from assay.names import COMPLETION, HIDDEN
from assay.system.documents import MAX_BYTES
from assay.system.special_files import open_input
from assay.values.paths import is_path, kind_of, parse

NONE = "none"
"""The value for no preset: the file is read as it is."""

FINISH_REASON = "finish_reason"
"""The column that says why a rollout ended, and the field of presets that says where it is."""

PresetSource = str | FilePath | Mapping[str, Any]
"""A name, a file, or the content of such a file."""


def _checked_path(text: str) -> str:
    parse(text)
    return text


def _checked_name(name: str) -> str:
    if name.startswith(HIDDEN):
        raise ValueError(f"names that begin with `{HIDDEN}` are reserved")
    return name


def _checked_extractor(name: str) -> str:
    if name not in EXTRACTORS:
        hint = did_you_mean(name, EXTRACTORS) or f"Known: {', '.join(EXTRACTORS)}."
        raise ValueError(f"there is no function `{name}`. {hint}")
    return name


_Path = Annotated[
    str,
    AfterValidator(_checked_path),
    Described(description='a.b, a[0], a[-1], a[] for each element, a["b.c"]'),
]
_By = Annotated[str, AfterValidator(_checked_extractor), Described(json_schema_extra={"enum": list(EXTRACTORS)})]
_Name = Annotated[str, AfterValidator(_checked_name)]
_Kind = Literal["any", "object", "list", "text", "number", "boolean"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Extract(_Strict):
    """A value that is converted by a function."""

    path: _Path
    by: _By


class Signature(_Strict):
    """Values that all records of a file have, and values that none of them has."""

    required: dict[_Path, _Kind] = Described(min_length=1)
    absent: tuple[_Path, ...] = ()

    def fits(self, outlines: Sequence[Any]) -> bool:
        """Whether records with these outlines match."""
        return bool(outlines) and all(map(self._fits, outlines))

    def _fits(self, outlined: Any) -> bool:
        for path, kind in self.required.items():
            actual = kind_of(outlined, parse(path))
            if actual is None or not (kind == "any" or actual in (kind, "null")):
                return False
        return all(kind_of(outlined, parse(path)) is None for path in self.absent)


class Unscored(_Strict):
    """A value that marks a failed rollout: its row is unscored, with the reason.

    Attributes:
        unless: Values that do not mark a failure, besides null.
    """

    path: _Path
    by: _By | None = None
    unless: tuple[str | int | bool, ...] = ()
    says: str


class Preset(_Strict):
    """How one format is recognised and read."""

    name: str = Described(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    formats: tuple[Literal["jsonl", "parquet", "ipc"], ...] = ("jsonl", "parquet", "ipc")
    signature: Signature
    fields: dict[_Name, _Path | Extract | tuple[_Path | Extract, ...]]
    constants: dict[_Name, str | int | float | bool] = {}
    drop: tuple[str, ...] = ()
    unscored: tuple[Unscored, ...] = ()
    first_only: str | None = None
    finish_reason: _Path | None = Described(
        default=None, description="why the rollout ended; the column finish_reason, with --outcome"
    )
    notes: tuple[str, ...] = ()

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether its files are read as they are."""
        return laid_out(self, {}).is_nothing

    def described(self) -> list[str]:
        """Return its mapping as ``name=path`` texts, without columns that keep their names."""
        fields = (Field(name, _sources(value)) for name, value in self.fields.items())
        end = [] if self.finish_reason is None else [f"{FINISH_REASON}={self.finish_reason}, with --outcome"]
        return [*(str(field) for field in fields if not field.stays), *end]


def _sources(value: str | Extract | tuple[str | Extract, ...]) -> tuple[ValueSource, ...]:
    sources = value if isinstance(value, tuple) else (value,)
    return tuple(
        ValueSource(parse(source)) if isinstance(source, str) else ValueSource(parse(source.path), source.by)
        for source in sources
    )


@cache
def presets() -> tuple[Preset, ...]:
    """Return the built-in presets, sorted by name."""
    folder = resources.files("assay.loading.presets")
    files = (entry for entry in folder.iterdir() if entry.name.endswith(".json"))
    return tuple(sorted((_read(entry.read_text("utf-8"), entry.name) for entry in files), key=lambda entry: entry.name))


def names() -> list[str]:
    """Return the names of the built-in presets."""
    return [preset.name for preset in presets()]


def load_preset(source: PresetSource) -> Preset:
    """Load a preset."""
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
        except OSError as error:
            raise InputError(f"{shown_path(path)}: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{shown_path(path)}: not UTF-8 (byte {error.start}).") from None
    by_name = {entry.name: entry for entry in presets()}
    if (preset := by_name.get(str(source))) is None:
        hint = did_you_mean(str(source), [*by_name, NONE])
        choices = f"Known: {', '.join(by_name)}, {NONE} (read a file as it is), or your own file, named *.json."
        raise UsageError(f"--preset {source}: there is no such preset.", "\n".join(filter(None, (hint, choices))))
    return preset


def as_data(source: PresetSource, *, ends: bool = True) -> Any:
    """Return a preset as plain data, to compare with a later run; ``ends`` tells whether it reads why rollouts ended."""
    unread = set() if ends else {FINISH_REASON}
    return (
        NONE if source == NONE else load_preset(source).model_dump(mode="json", exclude_defaults=True, exclude=unread)
    )


def _read(text: str, where: str) -> Preset:
    try:
        preset = Preset.model_validate_json(text)
        Layout(tuple(Field(name, _sources(value)) for name, value in preset.fields.items()))
    except ValidationError as error:
        problems = "\n".join(f"  {problem}" for problem in _problems(error.errors(include_url=False)))
        raise InputError(f"{where} is not a preset:\n{problems}", _HOW) from None
    except InputError as error:
        raise InputError(f"{where}: {error.fact}", error.hint) from None
    return preset


_HOW = "assay presets --schema prints the JSON Schema of such a file; assay presets NAME --json prints a built-in one."
_ARMS = ("constrained-str", "function-after", "Extract", "tuple")
"""Steps that pydantic adds to a place for the arms of a union."""

_OTHER_ARM = ("string_type", "model_type", "tuple_type")


def _problems(errors: Sequence[Any]) -> list[str]:
    placed = []
    for error in errors:
        steps = (step for step in error["loc"] if not str(step).startswith(_ARMS) and step != "[key]")
        placed.append((tuple(steps), error))
    specific = [place for place, error in placed if error["type"] not in _OTHER_ARM]
    lines = [
        _problem(place, error)
        for place, error in placed
        if error["type"] not in _OTHER_ARM or not any(other[: len(place)] == place for other in specific)
    ]
    return list(dict.fromkeys(lines))


def _problem(place: tuple[Any, ...], error: Any) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    fact = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        inner: Any = {"signature": Signature, "unscored": Unscored}.get(place[0], Extract)
        guess = did_you_mean(place[-1], (Preset if len(place) == 1 else inner).model_fields)
        fact = " ".join(filter(None, ("is not a field of a preset.", guess)))
    return f"`{path}`: {fact}" if path else fact


def as_markdown(listed: Sequence[Preset]) -> str:
    """Return presets as a Markdown table."""
    lines = ["| preset | file | recognised by | read as |", "|---|---|---|---|"]
    for preset in listed:
        signature = ", ".join(f"`{path}`" for path in preset.signature.required)
        fields = ", ".join(f"`{field}`" for field in preset.described()) or "it is"
        lines.append(f"| `{preset.name}` | {preset.title} | {signature} | {fields} |")
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a preset file."""
    return Preset.model_json_schema()


def matching(outlines: Sequence[Any], kind: str) -> list[Preset]:
    """Return the presets that records match with the most specific signature; several if none is more specific.

    A file with its own ``completion`` does not match a preset that takes the completion from elsewhere.
    """
    fitting = [
        preset
        for preset in presets()
        if kind in preset.formats
        and preset.signature.fits(outlines)
        and not (_moves_completion(preset) and any(COMPLETION in outline for outline in outlines))
    ]
    longest = max((len(preset.signature.required) for preset in fitting), default=0)
    return [preset for preset in fitting if len(preset.signature.required) == longest]


def _moves_completion(preset: Preset) -> bool:
    source = preset.fields.get(COMPLETION)
    return source is not None and not Field(COMPLETION, _sources(source)).stays


def laid_out(
    preset: Preset | None,
    mapping: Mapping[str, str],
    *,
    sure: bool = True,
    first: Sequence[Any] = (),
    detected: bool = False,
    end: str = "",
) -> Layout:
    """Return the layout of a preset, overridden by the user's mapping; ``end`` names a column for the reason why a rollout ended."""
    fields = {} if preset is None else {name: Field(name, _sources(source)) for name, source in preset.fields.items()}
    if preset is not None and end and preset.finish_reason is not None and FINISH_REASON not in mapping:
        fields[end] = Field(end, _sources(preset.finish_reason))
    if not sure and "completion" in fields:
        fields["completion"] = Field("completion", fields["completion"].sources, required=True)
    of_preset = dict(fields)
    for name, source in mapping.items():
        # messages name the columns as the preset calls them, so a caller may, too, where the records have no such column
        named = of_preset[source].sources if source in of_preset and not of_preset[source].stays else ()
        try:
            path = parse(source if is_path(source) else f"[{json.dumps(source)}]")
        except ValueError as error:
            raise UsageError(f"--map {name}={source}: {error}.") from None
        fields[name] = Field(name, (ValueSource(path), *named), required=True)
    if preset is None:
        return Layout(tuple(fields.values()))
    return Layout(
        tuple(fields.values()),
        tuple((name, value) for name, value in preset.constants.items() if name not in mapping),
        preset.drop,
        tuple(
            Failure(parse(failure.path), failure.unless, failure.says, failure.by or "") for failure in preset.unscored
        ),
        None if preset.first_only is None else (preset.first_only, tuple(first)),
        detected and COMPLETION not in mapping and _moves_completion(preset),
    )
