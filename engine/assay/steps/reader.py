"""Read steps from plain data, collecting every problem with its place."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from assay.calls.limits import Limits
from assay.errors import describe_error, did_you_mean
from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.registry import STEPS
from assay.system.documents import named
from assay.values.params import both_cases
from assay.values.params import spellings as spellings_of

Place = tuple[str | int, ...]

NOT_FOUND = "notFound"
"""The option of every step."""
_FIRST_OF = "firstOf"
_DEEPEST = 8
"""Maximum nesting of `firstOf`."""


class StepError(Exception):
    """A step cannot be used."""

    def __init__(self, path: Place, message: str) -> None:
        super().__init__(path, message)
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return self.message


class StepErrors(Exception):  # noqa: N818  (several of them)
    """Steps cannot be used."""

    def __init__(self, problems: Sequence[StepError]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "; ".join(map(str, self.problems))


def read_steps(data: Any, limits: Limits | None = None, types: Mapping[str, type[Step]] = STEPS) -> tuple[Step, ...]:
    """Return the steps that plain data describes."""
    reader = _Reader(types, limits)
    steps = reader.chain(data, (), 0)
    if reader.problems:
        raise StepErrors(reader.problems)
    return steps


class _Reader:
    """Reads steps and collects problems."""

    def __init__(self, types: Mapping[str, type[Step]], limits: Limits | None) -> None:
        self.types, self.limits = types, limits
        self.problems: list[StepError] = []

    def problem(self, path: Place, message: str) -> None:
        self.problems.append(StepError(path, message))

    def chain(self, data: Any, path: Place, depth: int) -> tuple[Step, ...]:
        """Read a list of steps, or a single one."""
        items = [((*path, at), item) for at, item in enumerate(data)] if isinstance(data, list) else [(path, data)]
        steps: list[Step] = []
        for place, item in items:
            step = self.step(item, place, depth)
            if step is None:
                continue
            if steps and steps[-1].gives_list:
                self.problem(place, f"`{steps[-1].name}` gives a list; put it last")
            steps.append(step)
        return tuple(steps)

    def step(self, item: Any, path: Place, depth: int) -> Step | None:
        """Read one step; None if there is a problem."""
        if isinstance(item, str):
            item, written = {item: None}, path
        elif isinstance(item, dict) and all(isinstance(key, str) for key in item):
            written = None
        else:
            self.problem(path, f"expected the name of a step or an object, got {named(item)}")
            return None
        names = [key for key in item if key in self.types]
        if len(names) != 1:
            self.problem(*self.nameless(item, names, path, written))
            return None
        (name,) = names
        place = (*path, name) if written is None else written
        kind = self.types[name]
        options = {key: (value, (*path, key)) for key, value in item.items() if key != name}
        value = item[name]
        if isinstance(value, dict) and not kind.takes_mapping:
            options |= {key: (inner, (*place, key)) for key, inner in value.items()}
            value = None
        return self.with_options(kind, value, options, place, depth)

    def nameless(
        self, item: Mapping[str, Any], names: list[str], path: Place, written: Place | None
    ) -> tuple[Place, str]:
        """Return the problem of an item that does not name one step."""
        if names:
            return path, f"`{names[0]}` and `{names[1]}` are two steps; write them as two items of the list"
        known = [step.name for step in dict.fromkeys(self.types.values())]
        if not item:
            return path, f"expected a step, got an empty object. Known: {', '.join(known)}."
        name = max(item, key=lambda key: bool(did_you_mean(key, self.types)))
        guess = did_you_mean(name, self.types) or f"Known: {', '.join(known)}."
        return (*path, name) if written is None else written, f"unknown step `{name}`. {guess}"

    def with_options(
        self, kind: type[Step], value: Any, options: dict[str, tuple[Any, Place]], place: Place, depth: int
    ) -> Step | None:
        """Build a step from the value beside its name and its options, each with its place."""
        before = len(self.problems)
        keeps = self.keeps(options)
        given: dict[str, tuple[Any, Place]] = {}
        spellings = spellings_of(kind.Params)
        for key, (option, where) in options.items():
            field = spellings.get(key) if isinstance(key, str) else None
            if field is None:
                self.problem(where, self.unknown(str(key), kind, spellings))
            elif field in given:
                self.problem(where, f"`{field}` is given twice, in two spellings")
            else:
                given[field] = option, where
        if value is not None:
            if not kind.shorthand:
                needed = any(option.is_required() for option in kind.Params.model_fields.values())
                hint = f"write {{{kind.name}: {{…}}}}" if needed else f"write `{kind.name}` alone"
                self.problem(place, f"`{kind.name}` takes no value, got {named(value)}; {hint}")
            elif kind.shorthand in given:
                self.problem(
                    given[kind.shorthand][1], f"`{kind.shorthand}` is given twice: it is the value of `{kind.name}`"
                )
            else:
                given[kind.shorthand] = value, place
        if kind.name == _FIRST_OF:
            return self.first_of(kind, given, place, depth, keeps=keeps)
        step = self.built(kind, given, place)
        if step is None or len(self.problems) > before:
            return None
        step.keeps, step.limits = keeps, self.limits
        return step

    def keeps(self, options: dict[str, tuple[Any, Place]]) -> bool:
        """Take ``notFound`` out of the options; return whether it is ``keep``."""
        keeps = False
        for name in both_cases(NOT_FOUND):
            if name in options:
                value, where = options.pop(name)
                keeps = value == "keep"
                if not keeps:
                    self.problem(where, f"expected `keep`, got {named(value)}")
        return keeps

    def unknown(self, key: str, kind: type[Step], spellings: Mapping[str, str]) -> str:
        guess = did_you_mean(key, (*spellings, NOT_FOUND))
        choices = ", ".join([*(field.alias or name for name, field in kind.Params.model_fields.items()), NOT_FOUND])
        return f"unknown option `{key}` of `{kind.name}`. {guess or f'Known: {choices}.'}"

    def first_of(
        self, kind: type[Step], given: dict[str, tuple[Any, Place]], place: Place, depth: int, *, keeps: bool
    ) -> Step | None:
        """Build a step from chains of steps."""
        chains, where = given.get("chains", (None, place))
        if not isinstance(chains, list) or not chains:
            self.problem(
                where, f"expected a list of chains of steps, got {named(chains) if chains != [] else 'an empty list'}"
            )
            return None
        if depth == _DEEPEST:
            self.problem(where, f"`firstOf` is nested more than {_DEEPEST} deep")
            return None
        before = len(self.problems)
        read = [Chain(self.chain(chain, (*where, at), depth + 1)) for at, chain in enumerate(chains)]
        for at, chain in enumerate(read):
            if chain.gives_list:
                self.problem((*where, at), f"`{chain.steps[-1].name}` gives a list; put it behind `firstOf`")
        if len(self.problems) > before:
            return None
        step = kind(kind.Params.model_validate({"chains": tuple(read)}))
        step.keeps, step.limits = keeps, self.limits
        return step

    def built(self, kind: type[Step], given: Mapping[str, tuple[Any, Place]], place: Place) -> Step | None:
        """Build a step from its params; those that it cannot use are problems."""
        try:
            return kind(kind.Params.model_validate({name: value for name, (value, _) in given.items()}))
        except ValidationError as exception:
            fields = spellings_of(kind.Params)
            by_place: dict[Place, list[Any]] = {}
            for error in exception.errors():
                name = fields.get(str(error["loc"][0]), "") if error["loc"] else ""
                where = given[name][1] if name in given else place
                steps = tuple(at for at in error["loc"][1:] if isinstance(at, int)) if where != place else ()
                by_place.setdefault((*where, *steps), []).append(error)
            for where, errors in by_place.items():
                self.problem(where, _message(errors, kind))
        except Exception as exception:  # noqa: BLE001  (re raises many: a pattern may be anything)
            where = next((where for name, (_, where) in given.items() if name.startswith("pattern")), place)
            self.problem(where, describe_error(exception))
        return None


def _message(errors: Sequence[Any], kind: type[Step]) -> str:
    """Return what pydantic found wrong with one value, which may be of several types."""
    error = errors[0]
    if error["type"] == "missing":
        name = error["loc"][0]
        written = f"{{{kind.name}: …}}" if name == kind.shorthand else f"{{{kind.name}: {{{name}: …}}}}"
        return f"`{kind.name}` needs `{name}`: write {written}"
    if error["type"] == "string_unicode":
        return f"{named(error['input'])} has a lone surrogate, which no text has"
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, ValueError):
        return str(raised)
    expected = list(dict.fromkeys(_expected(one) for one in errors))
    if None not in expected:
        hint = " Write it in quotes: a bare value is read as a number or true/false." if "a string" in expected else ""
        value = error["input"]
        quote = hint if isinstance(value, int | float) else ""
        return f"expected {' or '.join(filter(None, expected))}, got {named(value)}.{quote}".removesuffix(
            "." * (not quote)
        )
    return f"{named(error['input'])}: {error['msg'][0].lower()}{error['msg'][1:]}"


_EXPECTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "int_type": "a whole number",
    "float_type": "a number",
}


def _expected(error: Any) -> str | None:
    if error["type"] == "literal_error":
        return str(error["ctx"]["expected"]).replace("'", "`")
    return _EXPECTED.get(error["type"])
