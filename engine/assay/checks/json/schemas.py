"""JSON Schemas: compiled once, evaluated offline by ``jsonschema_rs``, and the reasons why a value does not match."""

import json
import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path as File
from typing import Any, Literal

from assay.checks.json.schema_cost import PLAIN_STEPS, STEPS, SchemaCost, cost_of, cost_of_text, is_plain
from assay.errors import SHOWN, clipped, printable
from assay.expressions.json import BEGINNINGS, NOT_JSON, dumps, mended, quick_loads, slow_loads
from assay.expressions.regex.compiled import on_any_stack
from assay.frozen import frozen
from assay.guard.pool import Late, Pool, PoolError, Reply, Request
from assay.system.cache import cached_within
from assay.values.paths import Path, find

SECONDS = {"compile": 5.0, "valid": 5.0, "reason": 1.0}
"""Limits on the processor time of another process for each of its tasks, in seconds; compiling the schema has five of its own."""
_MASK = "\ue000"
"""Stands for the value in messages."""
_KEPT = 4_096
"""Maximum compiled schemas that are kept …"""
_BYTES = 1 << 28
"""… and their maximum size."""
_MANY = 20_000
"""Steps up to which all violations are found; of more, the first: the package has no way to find three."""
_FIRST = 3
"""Maximum violations that a reason names."""
_LONGEST_PLACE = 100
"""Maximum characters of a path."""
_LONGEST = 200
"""Maximum characters of a violation."""
_BACKTRACKS = 10**15
"""More than fit into any limit of time: an exceeded limit on backtracking would be a verdict, which `not` inverts."""
_LONG_NUMBER = 10**SHOWN
_NO_SCHEMA = 'it is not of types "boolean", "object"'
_NO_MATCH = "does not match the schema"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD]")
_OPENING = ("{", "[")
_ENCODED_BEGINNINGS = tuple(map(str.encode, BEGINNINGS))


def json_value(text: str | bytes) -> Any:
    """Return the value of JSON text, or of its UTF-8, as ``json_valid`` reads it; ``NOT_JSON`` if it is not JSON.

    Lone surrogates are U+FFFD.
    """
    begins = text.startswith(BEGINNINGS) if isinstance(text, str) else text.startswith(_ENCODED_BEGINNINGS)
    if not begins:
        return NOT_JSON
    value = quick_loads(text)
    if value is not NOT_JSON:
        return value
    text = mended(decoded(text))
    value = slow_loads(text)
    if value is NOT_JSON or "\\u" not in text or not _ESCAPED_SURROGATE.search(text):
        return value
    return on_any_stack(lambda: json.loads(mended(dumps(value))))


def decoded(text: str | bytes) -> str:
    """Return a text that may be given in UTF-8."""
    return text if isinstance(text, str) else text.decode()


def shown_value(value: Any) -> str:
    """Return a JSON value for reasons: as JSON on one line, cut to 60 characters."""
    if isinstance(value, str):
        text = dumps(value[:SHOWN])
        return printable(text if len(text) <= SHOWN and len(value) <= SHOWN else f"{text[: SHOWN - 1]}…")
    if isinstance(value, dict | list) and value:
        return f"an object of {len(value)}" if isinstance(value, dict) else f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= _LONG_NUMBER:
        return f"{str(value)[: SHOWN - 1]}…"
    return dumps(value)


@frozen
class Schema:
    """A compiled schema; ``known_cost`` is None for a plain one."""

    text: str
    formats: bool
    known_cost: SchemaCost | None
    validator: Any = None
    problem: str = ""
    is_late: bool = False

    @cached_property
    def cost(self) -> SchemaCost:
        """The bound that decides what is evaluated here, and how far."""
        return self.known_cost or cost_of(json_value(self.text))

    def is_small(self, text: str, most: int = STEPS) -> bool:
        """Return whether it is certain that evaluating a text takes few steps and little of the stack."""
        if self.validator is None:
            return False
        # higher bounds first: nearly always the first is enough
        return (
            self._is_surely_small(len(text), most)
            or (self.known_cost is None and cost_of_text(self.text).is_small(text, most))
            or self.cost.is_small(text, most)
        )

    def _is_surely_small(self, size: int, most: int = STEPS) -> bool:
        return self.known_cost is None and PLAIN_STEPS * len(self.text) * (1 + size) <= most

    def fits_surely(self, value: Any, size: int) -> bool:
        """Return whether a value matches a plain schema, as ``reason`` finds in few steps for any text of a size."""
        try:
            return self.validator is not None and self._is_surely_small(size) and self.validator.is_valid(value)
        except ValueError:
            return False

    def reason(self, value: Any, text: str) -> str:
        """Return why a value does not match; ``""`` if it does."""
        if self.problem:
            raise ValueError(self.problem)
        if not self.is_small(text):
            answer = self._elsewhere("valid", value)
            return "" if answer == ["valid"] else self._first_elsewhere(value)
        try:
            return "" if self.validator.is_valid(value) else self._violations(value, text)
        except ValueError as error:
            raise _not_comparable(str(error)) from error

    def places(self, value: Any, text: str) -> list[list[str | int]]:
        """Return the paths of the first violations that ``reason`` names; none where only their number would be known."""
        if self.problem or not self.is_small(text, _MANY):
            answer = [] if self.problem else self._elsewhere("reason", value)
            return [answer[2]] if answer[:1] == ["violation"] else []
        return [list(violation.instance_path) for violation in self._sorted(value)[:_FIRST]]

    def _sorted(self, value: Any) -> list[Any]:
        # releases of the package differ in the order
        return sorted(
            self.validator.iter_errors(value), key=lambda violation: (violation.instance_path, violation.message)
        )

    def _violations(self, value: Any, text: str) -> str:
        if self.is_small(text, _MANY):
            return _listed(self._sorted(value), value)
        if self.cost.choices:
            return self._first_elsewhere(value)
        from jsonschema_rs import ValidationError

        try:
            self.validator.validate(value)
        except ValidationError as violation:
            return _listed([violation], value)
        raise ValueError(_NO_MATCH)  # the two methods differ, which has not been seen

    def _first_elsewhere(self, value: Any) -> str:
        try:
            kind, *details = self._elsewhere("reason", value)
        except (TimeoutError, MemoryError):
            return _NO_MATCH
        return _reason(details[0], details[1], value) if kind == "violation" else _NO_MATCH

    def _elsewhere(self, task: Literal["valid", "reason"], value: Any) -> list[Any]:
        answer = evaluated(task, self.text, (self.formats, _MASK), value)
        if answer[0] == "schema":
            raise ValueError(_bad_schema(*answer[1:]))
        if answer[0] == "raised":
            raise _not_comparable(answer[1])
        return answer


def _listed(violations: list[Any], value: Any) -> str:
    reasons = [_reason(item.message, item.instance_path, value) for item in violations[:_FIRST]]
    return "; ".join(reasons) + (f"; and {len(violations) - _FIRST} more" if len(violations) > _FIRST else "")


def _not_comparable(message: str) -> ValueError:
    return ValueError(f"the schema cannot be evaluated on this output: {message}")


def _reason(message: str, path: list[str | int], value: Any) -> str:
    if _MASK in message:
        message = message.replace(_MASK, shown_value(find(value, Path(tuple(path))) if path else value))
    short = clipped(message, _LONGEST)
    return f"{place_of(tuple(path))}: {printable(short)}" if path else printable(short)


@lru_cache(4_096)  # outputs for one schema fail at the same places
def place_of(steps: tuple[str | int | None, ...]) -> str:
    """Return a path for reasons: on one line, cut from the left."""
    place = str(Path(steps))
    return printable(place if len(place) <= _LONGEST_PLACE else f"…{place[1 - _LONGEST_PLACE :]}")


def _bad_schema(message: str, path: list[str | int]) -> str:
    message = message.replace(_MASK, "it").removeprefix("Failed to compile schema: ").partition("\n")[0]
    short = clipped(message, _LONGEST)
    return f"the schema is not valid{f' at {place_of(tuple(path))}' if path else ''}: {short}"


def compiled_anew(text: str, formats: bool) -> Schema:
    """Return the schema of a JSON text, compiled; one that is not a schema has a ``problem``."""
    schema = json_value(text)
    if schema is NOT_JSON:
        return Schema(text, formats, SchemaCost(compiles=False), problem="the schema is not valid: it is not JSON")
    if isinstance(schema, str):  # the package would read it as JSON text once more
        return Schema(text, formats, SchemaCost(compiles=False), problem=_bad_schema(_NO_SCHEMA, []))
    cost = None if is_plain(text) else cost_of(schema)
    if cost and not cost.compiles:
        try:
            kind, *details = evaluated("compile", text, (formats, _MASK))
        except (TimeoutError, MemoryError) as error:
            problem = str(error).replace("on this output", "to compile")
            return Schema(text, formats, cost, problem=problem, is_late=True)
        return Schema(text, formats, cost, problem=_bad_schema(*details) if kind == "schema" else "")
    try:
        validator = _validator_for(formats or cost is not None)(schema, validate_formats=formats)
    except Exception as error:  # noqa: BLE001  (whatever the package raises)
        message = getattr(error, "message", None) or str(error)
        return Schema(text, formats, cost, problem=_bad_schema(message, list(getattr(error, "instance_path", ()))))
    return Schema(text, formats, cost, validator)


def _size(schema: Schema, text: str, _: bool) -> int:
    return max(_BYTES // _KEPT, len(text) + (schema.known_cost.size if schema.known_cost else 1_000 * text.count("{")))


compiled = cached_within(_BYTES, _size)(compiled_anew)
"""The same, kept for later texts."""


@cache
def _validator_for(with_patterns: bool) -> Callable[..., Any]:
    """Return what compiles a schema; options of patterns take time where there are none, as in a plain schema."""
    import jsonschema_rs

    validator_for = partial(jsonschema_rs.validator_for, offline=True, mask=_MASK)
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    return partial(validator_for, pattern_options=patterns) if with_patterns else validator_for


def _package() -> list[str]:
    import jsonschema_rs

    return [str(File(jsonschema_rs.__file__).parents[1])]


# NOTE: ``jsonschema_rs`` cannot be interrupted, and an overflow of the stack ends its process
POOL = Pool(
    str(File(__file__).with_name("schema_program.py")),
    memory=2 << 30,
    paths=_package,
    renewed=True,
    prepare_seconds=SECONDS["compile"],
)


def evaluated(task: str, schema: str, options: tuple[bool, str], value: Any = None) -> list[Any]:
    """Compile a schema and evaluate a value in another process.

    Args:
        task: ``compile`` the schema only, tell whether the value is ``valid``, or find the ``reason``, the first violation.
        schema: JSON text.
        options: Whether formats count, and the mask for values in messages.
        value: The JSON value.

    Returns:
        ``["valid"]``, also if it compiles; ``["invalid"]``; ``["violation", message, path]``; ``["schema", message, path]`` for a schema
        that is not valid; or ``["raised", message]``.

    Raises:
        TimeoutError: It takes too long.
        MemoryError: It needs more memory or stack than there is.
    """
    try:
        (answer,) = POOL.ask([Request((schema, *options), (task, value))], SECONDS[task])
    except PoolError as error:
        raise OSError(str(error)) from None
    if isinstance(answer, Reply):
        return list(answer.value)
    if isinstance(answer, Late):
        raise TimeoutError(f"the schema takes more than {SECONDS['valid']:g} seconds on this output")
    raise MemoryError("the schema takes more memory or stack than there is on this output")
