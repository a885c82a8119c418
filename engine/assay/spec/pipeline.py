"""Read what stands around a check in a spec: what it reads, its golds, when it runs, what becomes of its score."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from assay.checks.base import Check
from assay.checks.golds import GoldCheck
from assay.checks.groups import Group, Included, Maximum, Mean, Minimum, Product
from assay.checks.stand_ins import Broken
from assay.errors import closest, describe_error
from assay.expressions.regex.flavors import named_lists
from assay.functions.check import FunctionCheck
from assay.spec.check import Condition
from assay.spec.fields import CheckFields, FieldReader
from assay.steps.chain import Chain
from assay.steps.reader import StepErrors, read_steps
from assay.steps.registry import STEPS
from assay.steps.sources import SOURCES, Source
from assay.steps.subject import Subject
from assay.system.documents import Place, named
from assay.values.params import takes_objects
from assay.values.references import Reference, as_list, is_reference, read_reference

SOURCE_NAMES = {"completion": "", "tool_calls": "toolCalls"} | {name: name for name in SOURCES}
"""The sources by every name that specs may use."""
CONDITION_TESTS = ("equals", "in", "exists", "matches")
_FLAVOR_FIELDS = ("flavor", "lists")
_CONDITION_FIELDS = ("column", "template", "check", "not", *CONDITION_TESTS, *_FLAVOR_FIELDS)
_REFERENCE_FIELDS = ("column", "list", "template")
_NO_STEP = "strip"
_LIKELY = re.compile(r"\$\{[^{}]+\}|\{\{[^{}]+\}\}")


def read_subject(reader: FieldReader, data: Any, path: Place) -> tuple[Subject | None, list[Any]]:
    """Return what `on` names, None for the completion's text; and the same in canonical form."""
    items = as_list(data)
    place = path if not isinstance(data, list) else (*path, 0)
    source, outline, first = _source(reader, items[0], place) if items else (None, None, 0)
    rest = items[first:] if isinstance(data, list) or first else data
    chain = read_chain(reader, rest, path, first)
    subject = Subject(source, chain)
    return subject, [*([outline] if outline is not None else []), *chain.outline()]


def _source(reader: FieldReader, item: Any, path: Place) -> tuple[Source | None, Any, int]:
    if is_reference(item):
        reference = _reference(reader, item, path)
        return (None, None, 1) if reference is None else (Source(reference=reference), reference.outline(), 1)
    if isinstance(item, str) and item in SOURCE_NAMES:
        name = SOURCE_NAMES[item]
        return (Source(name), name, 1) if name else (None, None, 1)
    is_step = isinstance(item, Mapping) and any(name in STEPS for name in item)
    return None, None, int(not is_step and misread(reader, item, path))


def read_chain(reader: FieldReader, data: Any, path: Place, first: int = 0) -> Chain:
    """Return the steps that data describes."""
    items = as_list(data)
    misplaced = [
        at for at, item in enumerate(items) if is_reference(item) or (isinstance(item, str) and item in SOURCE_NAMES)
    ]
    for at in misplaced:
        shown = items[at] if isinstance(items[at], str) else next(iter(items[at]))
        rule = f"`{path[-1]}` has steps only" if path[-1] == "goldOn" else "a source stands first, before the steps"
        reader.problem((*path, at + first) if isinstance(data, list) else path, f"`{shown}` is a source: {rule}")
    if misplaced:  # a step in its place, to find the problems of the others
        data = [_NO_STEP if at in misplaced else item for at, item in enumerate(items)]
    try:
        return Chain(read_steps(data))
    except StepErrors as errors:
        for problem in errors.problems:
            place = problem.path
            if place and isinstance(place[0], int):
                place = (place[0] + first, *place[1:])
            reader.problem((*path, *place), problem.message)
        return Chain()


def with_steps(reader: FieldReader, check: Check, subject: Subject | None, path: Place) -> Subject | None:
    """Return the subject with the steps that the check takes itself; its own source where none is named."""
    own, steps = check.subject()
    if own is not None and (subject is None or (not subject.chain.steps and str(subject.source) == own.name)):
        return Subject(own)
    chain = Chain() if subject is None else subject.chain
    if chain.gives_list:
        if not check.golds.of_lists:
            name = chain.steps[-1].name
            reader.problem(path, f"`{name}` gives a list, and `{check.type}` reads a text; use `list_equals`")
        return subject
    return subject if not steps else (subject or Subject()).then(steps)


def _reference(reader: FieldReader, value: Mapping[str, Any], path: Place) -> Reference | None:
    try:
        return read_reference(value)
    except ValueError as error:
        reader.problem((*path, "template" if "template" in value else "column"), str(error))
        return None


def misread(reader: FieldReader, value: Any, path: Place) -> bool:
    """Report an object that was probably meant as a reference; return whether it was."""
    if not isinstance(value, Mapping) or is_reference(value):
        return False
    slips = {key: closest(str(key), _REFERENCE_FIELDS) for key in value if key not in _REFERENCE_FIELDS}
    if len(slips) == len(value) and not any(slips.values()):
        return False
    for key in slips:
        reader.unknown((*path, key), _REFERENCE_FIELDS)
    if not slips:
        reader.problem(
            path,
            "a value from the row is {column: path}, with `list: true` for JSON text of a list, or {template: text}",
        )
    return True


def _misread_param(reader: FieldReader, check: type[Check], name: str, value: Any, path: Place) -> None:
    if takes_objects(check.Params, name) or misread(reader, value, path) or not isinstance(value, list):
        return
    for at, item in enumerate(value):
        place = (*path, at)
        if misread(reader, item, place):
            continue
        if name != check.golds.param and is_reference(item):
            reader.problem(place, "a reference stands for the whole list here: {column: path}")
        elif name == check.golds.param and isinstance(item, Mapping) and not is_reference(item):
            reader.problem(place, f"expected a text or {{column: path}}, got {named(item)}")
        for number, inner in enumerate(item if name == check.golds.param and isinstance(item, list) else ()):
            if isinstance(inner, Mapping) and not misread(reader, inner, (*place, number)):
                rule = "a reference is a value, or an item of its list, not of a list in that list"
                reader.problem((*place, number), rule)


def gold_check(
    reader: FieldReader, check: type[Check], params: Mapping[str, Any], chain: Chain | None, path: Place
) -> dict[str, Any] | None:
    """Return the fields of a check whose params refer to rows, or that has several golds; None for any other check."""
    before = len(reader.problems)
    params = {
        **params,
        **{name: {"column": column} for name, column in check.golds.from_rows(params).items() if name not in params},
    }
    for name, value in params.items():
        _misread_param(reader, check, name, value, (*path, name))
        if (issubclass(check, Group) or name in check.golds.same_params) and is_reference(value):
            owner = "a group" if issubclass(check, Group) else f"`{check.type}`"
            reader.problem((*path, name), f"`{name}` of {owner} is the same on every row, not {{column: …}}")
    given = {name: resolvable(reader, value, (*path, name)) for name, value in params.items()}
    if len(reader.problems) > before:
        return {"params": dict(params), "check": Broken("its params have problems")}
    lists = [
        name
        for name, value in given.items()
        if isinstance(value, list) and any(isinstance(item, Reference) for item in value)
    ]
    references = [name for name, value in given.items() if isinstance(value, Reference)]
    gold = given.get(check.golds.param)
    several = isinstance(gold, list) and not check.golds.is_json
    if isinstance(gold, list) and check.golds.whole:
        several = several and any(isinstance(item, list) for item in gold)
    if not (references or several or chain or check.golds.param in lists):
        return None
    _validate(check, given, {*references, *([check.golds.param] if check.golds.param in given else [])})
    fields = check.Params.model_fields
    outline = {fields[name].alias or name: outline_of(value) for name, value in given.items()}
    note = likely_slip(params)
    return {"params": outline, "check": GoldCheck(check, given, chain or Chain()), "note": note}


def resolvable(reader: FieldReader, value: Any, path: Place) -> Any:
    """Return a param's value with references in place of the mappings that describe them; None for one that cannot be used."""
    if is_reference(value):
        return _reference(reader, value, path)
    if isinstance(value, list) and any(map(is_reference, value)):
        return [resolvable(reader, item, (*path, at)) for at, item in enumerate(value)]
    return value


def outline_of(value: Any) -> Any:
    """Return a param's value as it stands in a spec."""
    if isinstance(value, list):
        return [*map(outline_of, value)]
    return value.outline() if isinstance(value, Reference) else value


class ParamsError(ValueError):
    """Params that a check cannot use."""

    def __init__(self, problems: list[Any]) -> None:
        super().__init__()
        self.problems = problems


def _validate(check: type[Check], given: Mapping[str, Any], open_fields: set[str]) -> None:
    literals = {name: value for name, value in given.items() if name not in open_fields}
    try:
        check.Params.model_validate(literals)
    except ValidationError as error:
        fields = check.Params.model_fields
        unknown = open_fields | {fields[name].alias or name for name in open_fields if name in fields}
        # a rule over several params may be about the default of one that the spec does not give
        rest = {name for key, field in fields.items() if key not in given for name in (key, field.alias)}
        problems = [(problem, str(problem["loc"][0])) for problem in error.errors() if problem["loc"]]
        certain = [
            problem
            for problem, name in problems
            if name not in unknown and not (problem["type"] == "value_error" and name in rest)
        ]
        if certain:
            raise ParamsError(certain) from None


def likely_slip(params: Any) -> str:
    r"""Return a note if a text is probably meant as a reference to the row, or ``"\b"`` as a word boundary; else ``""``."""
    if isinstance(params, Mapping):
        params = {} if is_reference(params) else params
        return next((note for value in params.values() if (note := likely_slip(value))), "")
    if isinstance(params, list):
        return next((note for value in params if (note := likely_slip(value))), "")
    if isinstance(params, str) and "\b" in params:
        return r"a backspace character, which `\b` in double quotes stands for; write a pattern in single quotes, in JSON as `\\b`"
    match = _LIKELY.search(params) if isinstance(params, str) else None
    if match is None:
        return ""
    name = match[0].strip("${}").strip()
    return f"`{match[0]}` is plain text here; to take it from the row, write {{column: {name}}} or {{template: …}}"


def read_condition(reader: FieldReader, data: Any, path: Place, depth: int) -> Condition | None:
    """Return the condition under which a check runs; None if there is a problem."""
    before = len(reader.problems)
    fields = reader.fields(data, path, _CONDITION_FIELDS)
    if fields is None or len(reader.problems) > before:
        return None
    negated = reader.value(fields, path, "not", bool, default=False)
    if fields.get("check") is not None:
        for name in fields:
            if name not in ("check", "not"):
                reader.problem((*path, name), "a condition is a `check`, or a `column` and a test, not both")
        return _check_condition(reader, fields["check"], (*path, "check"), depth, negated=negated)
    given: dict[str, Any] = {name: fields[name] for name in ("column", "template") if name in fields}
    tests = [name for name in CONDITION_TESTS if name in fields]
    if len(given) != 1:
        tested = f"{{column: path}} with one of {', '.join(CONDITION_TESTS)}"
        reader.problem(path, f"expected {tested}, or {{check: …}}" + ("; this has two values" if given else ""))
        return None
    if len(tests) > 1:
        reader.problem((*path, tests[1]), f"a condition has one test, and this has {' and '.join(tests)}")
        return None
    reference = _reference(reader, given, path)
    test = tests[0] if tests else "exists"
    operand = fields[test] if tests else True
    flavor = {name: fields[name] for name in _FLAVOR_FIELDS if name in fields}
    lists = _lists_of(reader, flavor, path, test)
    if problem := _operand_problem(test, operand, lists):
        reader.problem((*path, test), problem)
    outline = given | {test: operand} | flavor | ({"not": True} if negated else {})
    if reference is None or lists is None or len(reader.problems) > before:
        return None
    return Condition(reference, test, operand, None, negated, outline, lists=lists)


def _check_condition(reader: FieldReader, data: Any, path: Place, depth: int, *, negated: bool) -> Condition | None:
    fields = reader.check(data, path, depth)
    if fields is not None and (fields["parts"] or fields["when"] is not None):
        reader.problem(path, "a condition is a single check without a condition of its own")
    elif fields is not None and fields["check"] is not None:
        return Condition(None, "", fields, None, negated, {})
    elif fields is not None and not reader.strict:  # else it is a problem already
        reader.problem((*path, "type"), fields["note"].removeprefix("skipped, "))
    return None


def _lists_of(reader: FieldReader, flavor: Mapping[str, Any], path: Place, test: str) -> str | None:
    for name in flavor:
        if test != "matches":
            reader.problem((*path, name), f"`{name}` goes with `matches`")
    try:
        return named_lists(**flavor)
    except ValueError as error:
        reader.problem((*path, next(iter(flavor))), str(error))
        return None


def _operand_problem(test: str, operand: Any, lists: str | None) -> str:
    kinds: dict[str, tuple[type, str]] = {
        "in": (list, "a list"),
        "exists": (bool, "true or false"),
        "matches": (str, "a pattern"),
    }
    if test in kinds and not isinstance(operand, kinds[test][0]):
        return f"expected {kinds[test][1]}, got {named(operand)}"
    if test == "matches" and lists is not None:
        from assay.expressions.regex.search import check_pattern

        try:
            check_pattern(operand, lists)
        except Exception as error:  # noqa: BLE001  (re raises many: a pattern may be anything)
            return describe_error(error)
    return ""


def check_threshold(reader: FieldReader, fields: Mapping[str, Any], path: Place) -> None:
    """Report a threshold that every score reaches, or none."""
    threshold = fields["threshold"]
    if threshold is not None and not 0 < threshold <= 1 and _within_one(fields):
        rule = f"scores of `{fields['type']}` lie between 0 and 1, so a threshold is above 0 and at most 1"
        reader.problem((*path, "threshold"), f"{rule}, not {threshold:g}")


def _within_one(fields: Mapping[str, Any]) -> bool:
    check, parts = fields["check"], [part for part in fields["parts"] if part["check"] is not None]
    if isinstance(check, Included) and check.is_native:
        return check.range is not None and check.range[0] >= 0 and check.range[1] <= 1
    if isinstance(check, Mean | Minimum | Maximum | Product | Included):
        return all(part["weight"] >= 0 and (part["threshold"] is not None or _within_one(part)) for part in parts)
    if isinstance(check, FunctionCheck):
        return check.is_builtin_function
    return check is not None and check.traits.bounded and not isinstance(check, Broken)


def role_of(reader: FieldReader, fields: Mapping[str, Any], given: CheckFields, path: Place) -> tuple[str, float]:
    """Return what a check's score does, and its weight or how much it takes off."""
    roles = [name for name in ("weight", "penalty") if fields.get(name) is not None] + ["gate"] * given.gate
    if len(roles) > 1:
        rule = f"a check has one of `weight`, `gate` and `penalty`, and this has {' and '.join(roles)}"
        reader.problem((*path, roles[1]), rule)
    if given.gate:
        return "gate", 1.0
    return ("penalty", given.penalty) if "penalty" in roles else ("weight", given.weight)
