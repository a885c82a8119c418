"""The fields of a verifier and of its checks: models, by which they are read and from which the JSON Schema is made.

``FieldReader`` reads the fields of one document and collects every problem with its place.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from assay.checks.base import Check
from assay.errors import SHOWN, did_you_mean, printable, quoted
from assay.names import NATIVE
from assay.system.documents import Place, SpecDocument, named
from assay.values.params import EXPECTED, snake_case

_PLACE_KEY = re.compile(r"[A-Za-z_$][\w$]*")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _number(value: Any, info: ValidationInfo) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {named(value)}")
    lowest: float = info.context[info.field_name] if info.context and info.field_name in info.context else -math.inf
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < lowest:
        bound = "" if lowest == -math.inf else f", at least {lowest:g}"
        raise ValueError(f"expected a finite number{bound}, got {number}")
    return number + 0.0  # -0.0 is 0.0


def _ident(text: str) -> str:
    if not text or "/" in text or not text.isprintable():
        raise ValueError(f"{text!r} cannot be an id: use printable characters, none of them /")
    return text


def _one_of(words: tuple[str, ...], text: str) -> str:
    if text not in words:
        guess = did_you_mean(text, words) or f"Known: {', '.join(words)}."
        raise ValueError(f"unknown value {quoted(text)}. {guess}")
    return text


def read_range(value: Any) -> tuple[float, float] | None:
    """Return the lowest and the highest score; None for no limits."""
    if value is None:
        return None
    numbers = [item for item in value if is_number(item)] if isinstance(value, list) else []
    if len(numbers) != 2 or len(value) != 2 or not numbers[0] < numbers[1]:  # noqa: PLR2004  (a pair)
        shown = repr(value) if isinstance(value, list) and len(repr(value)) <= SHOWN else named(value)
        raise ValueError(f"expected [lowest, highest] or null, got {shown}")
    return float(numbers[0]), float(numbers[1])


COMBINE = ("mean", "sum", "min", "max", "product")
_NOT_FOUND, _MISSING_GOLD = ("fail", "pass"), ("unscored", "fail", "pass")
_ID: dict[str, Any] = {"minLength": 1, "pattern": r"^[^/\x00-\x1f\x7f]+$"}

Number = Annotated[float, BeforeValidator(_number)]


def _choice(words: tuple[str, ...], description: str) -> Any:
    return Field(words[0], description=description, json_schema_extra={"enum": [*words]})


class SpecFields(BaseModel):
    """The fields of a part of a spec, in camelCase or snake_case; null is the default."""

    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    nullable: ClassVar[frozenset[str]] = frozenset()
    """Fields for which null is a value."""


class _NamedFields(SpecFields):
    id: Annotated[str, AfterValidator(_ident)] = Field(
        "", description="Unique in a run; by default the file's name without its ending.", json_schema_extra=_ID
    )
    name: str = Field("", description="Display name; by default the id.")
    description: str = Field("", description="What it is for.")
    version: Annotated[str, BeforeValidator(lambda value: str(value) if is_number(value) else value)] = Field(
        "", description="Its version, kept in results.", json_schema_extra={"type": ["string", "number", "null"]}
    )


_THRESHOLD = Field(1.0, description="Lowest score with which an output passes.")


class VerifierFields(_NamedFields):
    """The fields of a native verifier."""

    nullable: ClassVar = frozenset({"range"})

    kind: str = NATIVE
    pass_threshold: Number = _THRESHOLD
    combine: Annotated[str, AfterValidator(partial(_one_of, COMBINE))] = _choice(
        COMBINE, "How the scores of weighted checks make the base of the score."
    )
    range: Annotated[Any, AfterValidator(read_range)] = Field(
        (0.0, 1.0), description="Lowest and highest score, to which it is cut; null for no limits."
    )
    checks: Any = None
    tests: Any = None


class ClassFields(_NamedFields):
    """The fields of a verifier that names a verifier class."""

    kind: str = Field(NATIVE, description="native, or a registered verifier class.")
    pass_threshold: Number = _THRESHOLD
    params: Any = None
    tests: Any = None


class CheckFields(SpecFields):
    """The fields that every check has."""

    id: Annotated[str, AfterValidator(_ident)] = Field(
        "", description="Unique in the verifier; by default the type.", json_schema_extra=_ID
    )
    type: Any = None
    name: str = Field("", description="Display name.")
    description: str = Field("", description="What the check is for.")
    weight: Number = Field(1.0, description="Share of the score.")
    required: bool = Field(default=False, description="The output cannot pass if this check scores below 1.")
    negate: bool = Field(default=False, description="Invert the score: 1 - score.")
    params: Any = None
    on: Any = None
    extract: Any = Field(None, description="Another name of `on`.")
    gold_on: Any = Field(None, description="Steps that each gold takes.")
    threshold: Annotated[float | None, BeforeValidator(_number), WithJsonSchema({"type": ["number", "null"]})] = Field(
        None, description="Score 1.0 from here on, and 0.0 below; before `negate`."
    )
    not_found: Annotated[str, AfterValidator(partial(_one_of, _NOT_FOUND))] = _choice(
        _NOT_FOUND, "What becomes of an output in which the steps of `on` find nothing."
    )
    missing_gold: Annotated[str, AfterValidator(partial(_one_of, _MISSING_GOLD))] = _choice(
        _MISSING_GOLD, "What becomes of a row without a gold that can be used."
    )
    when: Any = None
    gate: bool = Field(default=False, description="Multiply the score by this check's instead of giving it a weight.")
    penalty: Number = Field(
        0.0,
        description="Take this times (1 - score) off the score, instead of a weight.",
        json_schema_extra={"minimum": 0},
    )


def names_of(model: type[SpecFields]) -> tuple[str, ...]:
    """Return the names of fields in canonical spelling."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


LABELS = ("name", "description")
"""Fields for people, which decide nothing; where a check has a param of that name, it is the param."""

CHECK_FIELDS = names_of(CheckFields)


def place(path: Place) -> str:
    """Format a place for messages: ``$.checks[0].params.value``."""
    written = "$"
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        else:
            written += f".{step}" if _PLACE_KEY.fullmatch(step) else f"[{step!r}]"
    return written


def problem_at(document: SpecDocument, path: Place, message: str) -> str:
    """Return a message with its place and line."""
    line = document.lines.get(path)
    return printable(f"{place(path)}{f' (line {line})' if line else ''}: {message}")


def expected(kind: str, value: Any) -> str:
    """Return what a value should be and is, given what pydantic calls the kind."""
    hint = " Write it in quotes: a bare value is read as a number or true/false." if kind == "string" else ""
    return f"expected {EXPECTED[kind]}, got {named(value)}.{hint}"


_Model = TypeVar("_Model", bound=SpecFields)


class FieldReader(ABC):
    """Reads the fields of one document, and collects every problem with its place."""

    def __init__(
        self, document: SpecDocument, types: Mapping[str, type[Check]], *, strict: bool, load_plugins: bool = True
    ) -> None:
        self.document, self.types, self.strict, self.load_plugins = document, types, strict, load_plugins
        self.problems: list[str] = []
        self.spelled: dict[Place, Place] = {}
        self.root: Place = ()

    def problem(self, path: Place, message: str) -> None:
        """Record a problem at a place, spelled as in the document."""
        prefixes = (path[:size] for size in range(len(path), 0, -1))
        prefix = next((prefix for prefix in prefixes if prefix in self.spelled), ())
        written = (*self.spelled[prefix], *path[len(prefix) :]) if prefix else path
        self.problems.append(problem_at(self.document, (*self.root, *written), message))

    def unknown(self, path: Place, allowed: tuple[str, ...]) -> None:
        """Record an unknown field, with the likely one."""
        guess = did_you_mean(str(path[-1]), allowed)
        choices = f"Known: {', '.join(allowed)}." if allowed else "None are allowed here."
        self.problem(path, f"unknown field `{path[-1]}`. {guess or choices}")

    def fields(
        self, data: Any, path: Place, allowed: tuple[str, ...], ignored: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """Return the known fields in canonical spelling; unknown ones are problems."""
        if not isinstance(data, dict):
            self.problem(path, f"expected an object, got {named(data)}")
            return None
        by_snake = {snake_case(name): name for name in allowed}
        fields: dict[str, Any] = {}
        for key, value in data.items():
            name = by_snake.get(key) or (key if key in allowed else None)
            if name is None and key not in ignored:
                self.unknown((*path, key), allowed)
            elif name in fields:
                self.problem((*path, key), f"`{name}` is given twice, in two spellings")
            elif name is not None:
                fields[name] = value
                self.spelled[*path, name] = (*path, key)
        return fields

    def checked(self, model: type[_Model], fields: Mapping[str, Any], path: Place, **lowest: float) -> _Model:
        """Return fields by a model; those that are wrong are problems, and have the default."""
        names = names_of(model)
        given = {
            name: value
            for name, value in fields.items()
            if name in names and (value is not None or name in model.nullable)
        }
        try:
            return model.model_validate(given, context=lowest)
        except ValidationError as errors:
            for error in errors.errors(include_url=False):
                name = str(error["loc"][0])
                raised = error.get("ctx", {}).get("error")
                kind = error["type"].removesuffix("_type")
                self.problem((*path, name), str(raised) if raised else expected(kind, error["input"]))
                given.pop(name, None)
        return model.model_validate(given, context=lowest)

    def value(self, fields: Mapping[str, Any], path: Place, name: str, kind: type, default: Any) -> Any:
        """Return a field of a plain type; absent and null mean the default."""
        value = fields.get(name)
        if value is None or isinstance(value, kind):
            return default if value is None else value
        self.problem((*path, name), expected("string" if kind is str else kind.__name__, value))
        return default

    @abstractmethod
    def check(self, data: Any, path: Place, depth: int = 0) -> dict[str, Any] | None:
        """Return the fields of one ``CheckSpec``, or None if the data has no usable type."""

    @abstractmethod
    def included(self, path: Any, place: Place) -> dict[str, Any] | None:
        """Return the fields of a check that is another spec: a group of its checks."""

    @abstractmethod
    def written_out(self, params: Any, checks: Any, place: Place) -> dict[str, Any] | None:
        """Return the fields of a check that is another spec, given the canonical form of that check."""
