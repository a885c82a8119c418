"""Read the parts of a verifier from a document."""

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import ValidationError

from assay.checks.base import Check
from assay.checks.groups import AtLeast, Group, Included, IncludedParams, LengthScaled
from assay.checks.stand_ins import Broken
from assay.errors import (
    SHOWN,
    SpecError,
    closest,
    counted,
    did_you_mean,
    path_text,
    printable,
    quoted,
    said_by,
    shown_path,
)
from assay.functions.registry import list_fns
from assay.names import COMPLETION, NATIVE, VERIFIER
from assay.spec.pipeline import (
    ParamsError,
    check_threshold,
    gold_check,
    likely_slip,
    misread,
    read_chain,
    read_condition,
    read_subject,
    role_of,
    with_steps,
)
from assay.spec.scorers import Scorer, by_class, scorer_of
from assay.steps.chain import Chain
from assay.system.documents import Document, Place, named, read_document
from assay.values.params import EXPECTED, UnfitValueError, canonical, snake_case, spellings
from assay.values.references import is_reference, read_reference

_PLAIN = re.compile(r"[A-Za-z][\w-]*(?: [\w-]+)*")
_LONGEST = 120


def meant_check(data: Any, types: Mapping[str, type[Check]]) -> str:
    """Return a check as YAML in braces, given a shorthand for it; ``""`` if the shorthand names no check type."""
    fields = {data: None} if isinstance(data, str) else data if isinstance(data, Mapping) else {}
    names = {key: name for key in fields if (name := closest(str(key), types, cutoff=0.8))}
    key = next(iter(names), None)
    if key is None:
        return ""
    value, others = fields[key], {other: inner for other, inner in fields.items() if other != key}
    params = {} if value is None else {_main_param(types[names[key]]): value}
    if isinstance(value, Mapping) and not is_reference(value):
        params = dict(value)
    written = as_flow({"type": names[key], **params, **others})
    return written if len(written) <= _LONGEST else as_flow({"type": names[key]})[:-1] + ", …}"


def _main_param(check: type[Check]) -> str:
    if issubclass(check, Group):
        return "checks"
    fields = check.Params.model_fields
    name = check.golds.param if check.golds.param in fields else next(iter(fields), "value")
    return (fields[name].alias if name in fields else None) or name


def as_flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_flow(str(key))}: {as_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_flow, value))}]"
    if not isinstance(value, str) or not value.isprintable():
        return json.dumps(value, ensure_ascii=False, default=str)
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in ("true", "false", "null")
    return value if is_plain else "'" + value.replace("'", "''") + "'"


_MOST = 64
"""How many files one verifier may include in all."""


class IncludeError(ValueError):
    """A file that cannot be included; the message says why."""


@dataclass(frozen=True)
class Origin:
    """The file that a spec is read from.

    Attributes:
        file: Its path; None for a spec that is no file.
    """

    file: Path | None
    types: Callable[[Any], Mapping[str, type[Check]]]
    above: tuple[Path, ...] = ()
    all: list[Path] = field(default_factory=list)

    def open(self, path: str) -> "tuple[Document, Origin]":
        """Read a spec beside this one, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or write a group")
        file = _inside(self.file.parent, path)
        files = (*self.above, Path(os.path.realpath(self.file)))
        if file in files:
            names = " → ".join(shown_path(one.name) for one in (*files[files.index(file) :], file))
            raise IncludeError(f"the specs include each other: {names}")
        if len(files) > _DEEPEST:
            raise IncludeError(f"specs are nested more than {_DEEPEST} deep")
        return self._read(file), replace(self, file=file, above=files)

    def value(self, path: str) -> Any:
        """Return the content of a JSON file beside this spec, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or give the content itself")
        return self._read(_inside(self.file.parent, path)).data

    def _read(self, file: Path) -> Document:
        self.all.append(file)
        if len(self.all) > _MOST:
            raise IncludeError(f"more than {_MOST} files are included")
        try:
            return read_document(file)
        except SpecError as error:
            raise IncludeError(error.fact) from None


def _inside(folder: Path, path: str) -> Path:
    if "\0" in path or Path(path).is_absolute() or PureWindowsPath(path).anchor or ".." in PureWindowsPath(path).parts:
        raise IncludeError("expected a path beside this file or below it, without `..`")
    real = Path(os.path.realpath(folder / path))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise IncludeError("it leads out of this file's folder, through a link")
    return real


LABELS = ("name", "description")
"""Fields for people, which decide nothing; where a check has a param of that name, it is the param."""
VERIFIER_FIELDS = ("id", *LABELS, "version", "kind", "passThreshold", "combine", "range", "checks")
CLASS_FIELDS = ("id", *LABELS, "version", "kind", "passThreshold", "params")
CHECK_FIELDS = (
    *("id", "type", *LABELS, "weight", "required", "negate", "params"),
    *("on", "extract", "goldOn", "threshold", "notFound", "missingGold", "when", "gate", "penalty"),
)
COMBINE = ("mean", "sum", "min", "max", "product")
GROUP_FIELDS = ("checks", "check")
_DEEPEST = 8
"""Maximum nesting of groups, and of files that include each other."""
_CHOICES_OF_TYPE = ("int", "float", "str", "bool", "dict[str,any]", "list[str]")
"""What pydantic adds to the place of a value that may be of several types."""
_PLACE_KEY = re.compile(r"[A-Za-z_$][\w$]*")


def place(path: Place) -> str:
    """Format a place for messages: ``$.checks[0].params.value``."""
    written = "$"
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        else:
            written += f".{step}" if _PLACE_KEY.fullmatch(step) else f"[{step!r}]"
    return written


class SpecReader:
    """Reads one document."""

    def __init__(
        self,
        document: Document,
        types: Mapping[str, type[Check]],
        *,
        strict: bool,
        load_plugins: bool = True,
        origin: Origin | None = None,
    ) -> None:
        self.document = document
        self.origin = origin
        self.types = types
        self.strict = strict
        self.load_plugins = load_plugins
        self.problems: list[str] = []
        self.spelled: dict[Place, Place] = {}
        self.root: Place = ()
        self.combine = "mean"

    def problem(self, path: Place, message: str) -> None:
        """Record a problem at a place, spelled as in the document."""
        path = (*self.root, *self.written(path))
        line = self.document.lines.get(path)
        self.problems.append(printable(f"{place(path)}{f' (line {line})' if line else ''}: {message}"))

    def written(self, path: Place) -> Place:
        """Return a place as the document spells it."""
        prefixes = (path[:size] for size in range(len(path), 0, -1))
        prefix = next((prefix for prefix in prefixes if prefix in self.spelled), ())
        return (*self.spelled[prefix], *path[len(prefix) :]) if prefix else path

    def read(self, default_id: str) -> dict[str, Any]:
        """Return the fields of a ``VerifierSpec``; look at ``problems`` before using them."""
        data = self.document.data
        if isinstance(data, dict) and [*data] == [VERIFIER]:  # the form used in task rows and configurations
            self.root, data = (VERIFIER,), data[VERIFIER]
        kind = data.get("kind", NATIVE) if isinstance(data, dict) else NATIVE
        native = kind in (None, NATIVE)
        if slip := self.not_a_verifier(data):
            self.problem((), slip)
            return {"checks": []}
        fields = self.fields(data, (), VERIFIER_FIELDS if native else CLASS_FIELDS, ignored=("$schema",))
        if fields is None:
            return {"checks": []}
        ident = self.ident(fields, (), default_id)
        limits = self.range(fields)
        lowest = -math.inf if limits is None or limits[0] < 0 else 0.0
        threshold = self.number(fields, ("passThreshold",), 1.0, lowest)
        if native and limits is not None and threshold > limits[1]:
            self.problem(
                ("passThreshold",), f"{threshold} is above {limits[1]:g}, the highest score: nothing could pass"
            )
        self.combine = self.choice(fields, (), "combine", COMBINE)
        kind = self.value(fields, (), "kind", str, NATIVE)
        return {
            "id": ident,
            "name": self.value(fields, (), "name", str, ident),
            "description": self.value(fields, (), "description", str, ""),
            "version": self.version(fields),
            "kind": kind,
            "pass_threshold": threshold,
            "combine": self.combine,
            "range": limits,
            "checks": self.checks(fields, misspelt=_misspells_checks(data)) if native else by_class(self, kind, fields),
        }

    def not_a_verifier(self, data: Any) -> str:
        """Return what the data is, and what to do, if it is checks or rollouts without a verifier around them; else ``""``."""
        first = data[0] if isinstance(data, list) and data else data
        if not isinstance(first, dict) or "checks" in first or "kind" in first:
            return ""
        if COMPLETION in first:
            return "is a rollout, not a verifier, which has `checks`; rollouts are the first argument"
        if isinstance(first.get("type"), str) or (first is not data and meant_check(first, self.types)):
            kind = "a check" if first is data else "a list of checks"
            return f"is {kind}, not a verifier: write `checks:` above it, and each check below as an item, `- type: …`"
        return ""

    def fields(
        self,
        data: Any,
        path: Place,
        allowed: tuple[str, ...],
        ignored: tuple[str, ...] = (),
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

    def unknown(self, path: Place, allowed: tuple[str, ...]) -> None:
        """Record an unknown field, with the likely one."""
        guess = did_you_mean(str(path[-1]), allowed)
        choices = f"Known: {', '.join(allowed)}." if allowed else "None are allowed here."
        self.problem(path, f"unknown field `{path[-1]}`. {guess or choices}")

    def value(self, fields: Mapping[str, Any], path: Place, name: str, kind: type, default: Any) -> Any:
        """Return a field of a plain type; absent and null mean the default."""
        value = fields.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            expected = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}[kind]
            hint = " Write it in quotes: a bare value is read as a number or true/false." if kind is str else ""
            self.problem((*path, name), f"expected {expected}, got {named(value)}.{hint}")
            return default
        return value

    def choice(self, fields: Mapping[str, Any], path: Place, name: str, choices: Sequence[str]) -> str:
        """Return a field that must be one of some words; absent and null mean the first."""
        value: str = self.value(fields, path, name, str, choices[0])
        if value not in choices:
            guess = did_you_mean(value, choices) or f"Known: {', '.join(choices)}."
            self.problem((*path, name), f"unknown value {quoted(value)}. {guess}")
            return choices[0]
        return value

    def range(self, fields: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return the lowest and the highest score; None for no limits."""
        if "range" not in fields:
            return 0.0, 1.0
        value = fields["range"]
        if value is None:
            return None
        numbers = [item for item in value if _is_number(item)] if isinstance(value, list) else []
        if len(numbers) != 2 or len(value) != 2 or not numbers[0] < numbers[1]:  # noqa: PLR2004  (a pair)
            shown = repr(value) if isinstance(value, list) and len(repr(value)) <= SHOWN else named(value)
            self.problem(("range",), f"expected [lowest, highest] or null, got {shown}")
            return 0.0, 1.0
        return float(numbers[0]), float(numbers[1])

    def number(self, fields: Mapping[str, Any], path: Place, default: float, lowest: float = 0.0) -> float:
        """Return a field that must be a finite number, at least ``lowest``."""
        value = fields.get(str(path[-1]))
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem(path, f"expected a number, got {named(value)}")
            return default
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value) or value < lowest:
            bound = "" if lowest == -math.inf else f", at least {lowest:g}"
            self.problem(path, f"expected a finite number{bound}, got {value}")
            return default
        return value + 0.0  # -0.0 is 0.0

    def version(self, fields: Mapping[str, Any]) -> str:
        """Return the version, which may be written as a number."""
        value = fields.get("version")
        return str(value) if _is_number(value) else str(self.value(fields, (), "version", str, ""))

    def ident(self, fields: Mapping[str, Any], path: Place, default: str) -> str:
        """Return an id: a non-empty string without ``/`` and control characters, because it becomes part of column names."""
        ident: str = self.value(fields, path, "id", str, default)
        if not ident or "/" in ident or not ident.isprintable():
            self.problem((*path, "id"), f"{ident!r} cannot be an id: use printable characters, none of them /")
        return ident

    def checks(self, fields: Mapping[str, Any], *, misspelt: bool) -> list[dict[str, Any]]:
        """Return the checks in order, with ids for those that have none; ``misspelt`` says that a problem is known for want of them."""
        problems_before = len(self.problems)
        if isinstance(fields.get("checks"), dict):
            example = meant_check(fields["checks"], self.types) or "{type: …}"
            self.problem(("checks",), f"expected a list, got an object: write each check as an item, `- {example}`")
            return []
        listed = self.value(fields, (), "checks", list, [])
        checks = [check for at, data in enumerate(listed) if (check := self.check(data, ("checks", at))) is not None]
        self.name_checks(checks)
        is_clean = len(self.problems) == problems_before
        runnable = [check for check in checks if check["check"] is not None]
        weights = [check["weight"] for check in runnable if check["role"] == "weight"]
        others = [check for check in runnable if check["role"] != "weight"]
        if is_clean and not listed and misspelt:
            pass
        elif is_clean and not listed:
            self.problem(("checks",) if "checks" in fields else (), "a verifier needs `checks`, a list of at least one")
        elif is_clean and not runnable:
            notes = "".join(f"; {check['note']}" for check in checks)
            self.problem(("checks",), f"no check that can run{notes}")
        elif (is_clean and not (any(weights) or others)) or not math.isfinite(sum(weights)):
            self.problem(("checks",), "the weights of the checks that run add up to 0 or to infinity")
        return checks

    def name_checks(self, checks: list[dict[str, Any]]) -> None:
        """Reject duplicate ids; name checks without an id by their type, then ``type-2``; those in a group after the group."""
        places: dict[str, Place] = {}
        self.name_siblings(checks, "")
        for check in _in_all(checks):
            if check["id"] in places:
                first = place(places[check["id"]])
                self.problem((*check["path"], "id"), f'the id "{check["id"]}" is already used by {first}')
            places.setdefault(check["id"], check["path"])

    def name_siblings(self, checks: Sequence[dict[str, Any]], prefix: str) -> None:
        """Name the checks of a verifier or a group, and those in them."""
        taken = {check["id"] for check in checks}
        numbers: dict[str, Iterator[int]] = {}
        for check in checks:
            if check["id"] is None:
                name = check["name"]
                names = (name if n == 1 else f"{name}-{n}" for n in numbers.setdefault(name, itertools.count(1)))
                check["id"] = next(candidate for candidate in names if candidate not in taken)
                taken.add(check["id"])
        for check in checks:
            check["id"] = prefix + check.setdefault("local", check["id"])  # those of another spec are named again
            self.name_siblings(check["parts"], f"{check['id']}.")

    def check(self, data: Any, path: Place, depth: int = 0) -> dict[str, Any] | None:
        """Return the fields of one ``CheckSpec``, or None if the data has no usable type."""
        if not isinstance(data, dict):
            self.problem(path, f"expected an object, got {named(data)}{self.mended(data, path)}")
            return None
        if (scorer := scorer_of(data, self.types)) is not None:
            return self.scorer(*scorer, data, path, depth)
        name = self.type_name(data, path)
        return None if name is None else self.typed(name, data, path, depth)

    def typed(self, name: str, data: Mapping[str, Any], path: Place, depth: int) -> dict[str, Any] | None:
        """Return the fields of a check of some type, known or not, or of a group; None if they cannot be read."""
        check_type = self.types.get(name)
        group = check_type if check_type is not None and issubclass(check_type, Group) else None
        is_flat = data.get("params") is None
        allowed = CHECK_FIELDS + (GROUP_FIELDS if group else ())
        allowed += tuple(spellings(check_type.Params)) if check_type and is_flat else ()
        if check_type is None:  # the params of an unknown type are unknown, too
            allowed = (*CHECK_FIELDS, *(data if is_flat else ()))
        fields = self.fields(data, path, tuple(dict.fromkeys(allowed)))
        if fields is None:
            return None
        own = {*CHECK_FIELDS, *(GROUP_FIELDS if group else ())}
        if is_flat:
            own -= {*LABELS} & {*(spellings(check_type.Params) if check_type else data)}
        params = {key: value for key, value in fields.items() if key not in own} if is_flat else fields["params"]
        ident = self.ident(fields, path, name) if fields.get("id") is not None else None
        if ident is None and (not name or "/" in name or not name.isprintable()):
            self.problem((*path, "type"), f"{name!r} cannot be an id; give the check an `id`")
        common: dict[str, Any] = {"id": ident, "type": name, "name": name, "path": path, "parts": [], "note": ""}
        common |= self.labels(fields, path, own) | self.around(fields, path, depth)
        if check_type is None:
            common |= {"subject": None, "note": self.skip(name, path), "check": None}
            return common | {"params": params if isinstance(params, dict) else {}}
        place = path if is_flat else (*path, "params")
        if group is not None:
            misspelt = any(closest(key, GROUP_FIELDS) for key in data if key not in (*allowed, *fields))
            common |= self.group(group, fields, params, path, depth, misspelt=misspelt)
            check_threshold(self, common, path)
            return common
        chain = common.pop("gold_chain")
        misspelt = is_flat and any(key not in allowed for key in data)
        common |= self.params(check_type, params, place, chain, misspelt=misspelt)
        common["subject"] = with_steps(self, common["check"], common["subject"], path)
        check_threshold(self, common, path)
        return common

    def scorer(self, name: str, scorer: Scorer, data: Any, path: Place, depth: int) -> dict[str, Any] | None:
        """Return the fields of a check that runs something other than a check type, or None."""
        fields = self.fields(data, path, (*CHECK_FIELDS, *scorer.fields))
        if fields is None:
            return None
        if fields.get("goldOn") is not None:
            self.problem((*path, "goldOn"), "`goldOn` belongs to check types that compare texts")
        around = self.around(fields, path, depth)
        around.pop("gold_chain")
        around |= self.labels(fields, path, {*LABELS}.difference(scorer.fields))
        read = scorer.read(self, name, fields, path)
        if read is None:
            return None
        ident = self.ident(fields, path, name) if fields.get("id") is not None else None
        default = read["name"]
        if ident is None and (not default or "/" in default or not default.isprintable()):
            self.problem(path, f"{default!r} cannot be an id; give the check an `id`")
        around["outline"] |= read.pop("outline", {})
        check = {"id": ident, "type": name, "path": path, "parts": [], "note": ""} | around | read
        check["subject"] = with_steps(self, check["check"], check["subject"], path)
        check_threshold(self, check, path)
        return check

    def included(self, path: Any, place: Place) -> dict[str, Any] | None:
        """Return the fields of a check that is another spec: a group of its checks."""
        try:
            document, origin = (self.origin or Origin(None, lambda _: self.types)).open(path)
        except IncludeError as error:
            self.problem(place, str(error))
            return None
        reader = SpecReader(
            document, origin.types(document.data), strict=self.strict, load_plugins=self.load_plugins, origin=origin
        )
        fields = reader.read(path_text(Path(path).stem))
        if reader.problems:
            for problem in reader.problems:
                self.problem(place, f"{path}: {problem}")
            return None
        for check in _in_all(fields["checks"]):
            check["path"] = place
        is_native = fields["kind"] == NATIVE
        own = {"combine": fields["combine"], "range": fields["range"]} if is_native else {"kind": fields["kind"]}
        group = Included(IncludedParams(path=path), fields["combine"], fields["range"], is_native=is_native)
        return {"name": path_text(Path(path).stem), "params": own, "check": group, "parts": fields["checks"]}

    def type_name(self, data: Mapping[str, Any], path: Place) -> str | None:
        """Return the type of a check; None if it has none."""
        name = data.get("type")
        if isinstance(name, str):
            return name
        if name is not None:
            self.problem((*path, "type"), f"expected a string, got {named(name)}")
            return None
        slip = closest("type", [key for key in data if key not in CHECK_FIELDS])
        guess = f": `{slip}` is unknown. Did you mean `type`?" if slip else ""
        guess = guess or self.mended(data, path)
        self.problem((*path, slip) if slip else path, f"every check needs a `type`{guess}")
        return None

    def labels(self, fields: Mapping[str, Any], path: Place, own: Collection[str]) -> dict[str, str]:
        """Return what a check is called for people, as far as ``own`` has the fields for it."""
        named = {name: self.value(fields, path, name, str, "") if name in own else "" for name in LABELS}
        return {"label": named["name"], "description": named["description"]}

    def mended(self, data: Any, path: Place) -> str:
        """Return what to write in place of a shorthand, as the end of a sentence; ``""`` if it is none."""
        check = meant_check(data, self.types)
        dash = "- " if path and isinstance(path[-1], int) else ""
        return f": write `{dash}{check}`" if check else ""

    def around(self, fields: Mapping[str, Any], path: Place, depth: int) -> dict[str, Any]:
        """Return what stands around a check: what it reads, when it runs, what becomes of its score."""
        outline: dict[str, Any] = {}
        role, weight = role_of(self, fields, path, lowest=-math.inf if self.combine == "sum" else 0.0)
        if depth:
            for name in ("gate", "penalty", "required"):
                if fields.get(name):
                    self.problem((*path, name), f"`{name}` belongs to the group, not to a check in it")
        if role != "weight":
            outline[role] = True if role == "gate" else weight
        threshold = None
        if fields.get("threshold") is not None:
            threshold = outline["threshold"] = self.number(fields, (*path, "threshold"), 1.0, -math.inf)
        subject, chain, condition = None, None, None
        name = "extract" if fields.get("extract") is not None else "on"
        if fields.get(name) is not None:
            subject, outline["on"] = read_subject(self, fields[name], (*path, name))
        if fields.get("on") is not None and name == "extract":
            self.problem((*path, "extract"), "`on` and `extract` are two names for one thing")
        if fields.get("goldOn") is not None:
            chain = read_chain(self, fields["goldOn"], (*path, "goldOn"))
            outline["goldOn"] = chain.outline()
        choices = {"notFound": ("fail", "pass"), "missingGold": ("unscored", "fail", "pass")}
        settings = {field: self.choice(fields, path, field, words) for field, words in choices.items()}
        outline |= {field: value for field, value in settings.items() if value != choices[field][0]}
        if fields.get("when") is not None:
            condition = read_condition(self, fields["when"], (*path, "when"), depth)
        return {
            "weight": weight,
            "role": role,
            "required": self.value(fields, path, "required", bool, default=False),
            "negate": self.value(fields, path, "negate", bool, default=False),
            "threshold": threshold,
            "subject": subject,
            "gold_chain": chain,
            "not_found": settings["notFound"],
            "missing_gold": settings["missingGold"],
            "when": condition,
            "outline": outline,
        }

    def group(
        self, group: type[Group], fields: Mapping[str, Any], params: Any, path: Place, depth: int, *, misspelt: bool
    ) -> dict[str, Any]:
        """Return the kind of a group and its checks; ``misspelt`` says that a problem is known for want of them."""
        for name in ("on", "extract", "goldOn", "notFound", "missingGold"):
            if fields.get(name) is not None:
                self.problem((*path, name), f"`{name}` belongs to the checks in a group, not to the group")
        if depth == _DEEPEST:
            self.problem(path, f"groups are nested more than {_DEEPEST} deep")
            return {"params": {}, "check": None, "note": ""}
        single = group is LengthScaled
        name, other = ("check", "checks") if single else ("checks", "check")
        before = len(self.problems)
        if fields.get(other) is not None:
            self.problem((*path, other), f"`{group.type}` takes `{name}`")
        listed = [fields.get(name)] if single else self.value(fields, path, name, list, [])
        if (not listed or (single and listed == [None])) and len(self.problems) == before and not misspelt:
            needs = "the check that it is about" if single else "a list of at least one"
            self.problem((*path, name) if name in fields else path, f"`{group.type}` needs `{name}`, {needs}")
        parts = [
            part
            for at, data in enumerate(listed)
            if (data is not None or not single)
            and (part := self.check(data, (*path, name) if single else (*path, name, at), depth + 1)) is not None
        ]
        place = path if fields.get("params") is None else (*path, "params")
        result = self.length_scaled(params, place) if single else self.params(group, params, place)
        check = result["check"]
        if isinstance(check, AtLeast) and check.params.k > len(listed) > 0:
            self.problem((*place, "k"), f"k is {check.params.k}, and the group has {counted(len(listed), 'check')}")
        if parts and all(part["check"] is None for part in parts):
            result |= {"check": None, "note": "skipped, none of its checks can run"}
        return result | {"parts": parts, "subject": None}

    def length_scaled(self, params: Any, path: Place) -> dict[str, Any]:
        """Return a group whose unit may be a column."""
        unit = params.get("unit") if isinstance(params, dict) else None
        if misread(self, unit, (*path, "unit")):
            return {"params": params, "check": None}
        if unit is None or not is_reference(unit):
            return self.params(LengthScaled, params, path)
        try:
            length = read_reference(unit)
        except ValueError as error:
            self.problem((*path, "unit"), str(error))
            return {"params": params, "check": None}
        result = self.params(LengthScaled, {name: value for name, value in params.items() if name != "unit"}, path)
        check = result["check"]
        if isinstance(check, LengthScaled):
            result = {"params": {**result["params"], "unit": length.outline()}}
            result["check"] = LengthScaled(check.params, length)
        return result

    def skip(self, name: str, path: Place) -> str:
        """Return the note on a check of unknown type, which is skipped."""
        note = f"skipped, unknown check type {quoted(name)}"
        guess = did_you_mean(name, [*self.types, *list_fns()])
        if self.strict:
            self.problem(
                (*path, "type"), f'unknown check type "{name}". {guess or "Known: " + ", ".join(self.types) + "."}'
            )
        return f"{note}. {guess}" if guess else note

    def params(
        self,
        check_type: type[Check],
        values: Any,
        path: Place,
        gold_chain: Chain | None = None,
        *,
        misspelt: bool = False,
    ) -> dict[str, Any]:
        """Build the check with its params, or a broken check; unknown params are problems.

        With ``misspelt`` or an unknown param, one that is missing is no other problem.
        """
        if not isinstance(values, dict):
            return self.broken(f"TypeError: params is {named(values)}, not an object", values, path)
        names = spellings(check_type.Params)
        by_field: dict[str, Any] = {}
        for key, value in values.items():
            if key not in names:
                self.unknown((*path, key), tuple(names))
            elif names[key] in by_field:
                self.problem((*path, key), f"`{names[key]}` is given twice, in two spellings")
            else:
                by_field[names[key]] = value
                self.spelled[*path, names[key]] = self.spelled.get((*path, key), (*path, key))
        misspelt = misspelt or len(by_field) < len(values)
        files = {
            name: value for name, value in by_field.items() if name in check_type.traits.in_files and _is_file(value)
        }
        for name, file in files.items():
            try:
                by_field[name] = (self.origin or Origin(None, lambda _: self.types)).value(file)
            except IncludeError as error:
                self.problem((*path, name), f"{file}: {error}")
                return {"params": values, "check": Broken("its params have problems")}
        source = "".join(f"{file}: " for file in files.values())
        return self.built(check_type, by_field, values, path, gold_chain, misspelt=misspelt, source=source)

    def built(
        self,
        check_type: type[Check],
        by_field: Mapping[str, Any],
        values: Mapping[str, Any],
        path: Place,
        gold_chain: Chain | None,
        *,
        misspelt: bool,
        source: str = "",
    ) -> dict[str, Any]:
        """Build the check with its params by field, or a broken check; messages begin with the file that a param is read from."""
        try:
            check_type.traits.require()
        except Exception as exception:  # noqa: BLE001  (a user's check class may raise anything)
            return self.broken(said_by(exception), values, path, check_type.traits.libraries)
        try:
            fields = gold_check(self, check_type, by_field, gold_chain, path)
            if fields is not None:
                return fields
            params = check_type.Params.model_validate(by_field)
            return {"params": canonical(params), "check": check_type(params), "note": likely_slip(by_field)}
        except (ValidationError, ParamsError) as exception:
            problems: list[Any] = exception.problems if isinstance(exception, ParamsError) else [*exception.errors()]
        except Exception as exception:  # noqa: BLE001  (as above)
            return self.broken(f"{source}{said_by(exception)}", values, path)
        if misspelt:
            given = {name for name, field in spellings(check_type.Params).items() if field in by_field}
            problems = [problem for problem in problems if given.issuperset(problem["loc"][:1])]
        if not problems:
            return {"params": values, "check": Broken("its params have problems")}
        return self.broken(f"{source}{'; '.join(_params_errors(problems, check_type))}", values, path)

    def broken(
        self, problem: str, params: Any, path: Place, libraries: Mapping[str, tuple[str, ...]] | None = None
    ) -> dict[str, Any]:
        """Build a check that reports its problem on every row."""
        if self.strict:
            self.problem(path, f"the check cannot run: {problem}")
        return {"params": params, "check": Broken(problem, libraries)}


def _misspells_checks(data: Any) -> bool:
    return "checks" not in data and any(closest(str(key), VERIFIER_FIELDS) == "checks" for key in data)


def _in_all(checks: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for check in checks:
        yield check
        yield from _in_all(check["parts"])


def _is_file(value: Any) -> bool:
    """Return whether a param's value is the name of a file; no JSON text ends like one."""
    return isinstance(value, str) and value.endswith(".json")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _params_errors(problems: Sequence[Any], check: type[Check]) -> list[str]:
    faults: dict[tuple[str, ...], list[Any]] = {}
    for problem in problems:
        place = tuple(str(step) for step in problem["loc"] if step not in _CHOICES_OF_TYPE)
        faults.setdefault(place, []).append(problem)
    messages: list[str] = []
    for place, errors in faults.items():
        if all(_is_of_type(error) for error in errors):
            if any(other[: len(place)] == place for other in faults if len(other) > len(place)):
                continue  # it is of another type that the value may have
            expected = " or ".join(dict.fromkeys(_expected(error) for error in errors))
            messages.append(f"TypeError: {_where(errors[0], check)} is {named(errors[0]['input'])}, not {expected}")
        else:
            messages += [_params_error(error, check) for error in errors if not _is_of_type(error)]
    return list(dict.fromkeys(messages))


def _is_of_type(error: Any) -> bool:
    return str(error["type"]).endswith("_type")


def _expected(error: Any) -> str:
    kind = str(error["type"]).removesuffix("_type")
    return EXPECTED.get(kind, kind)


def _where(error: Any, check: type[Check]) -> str:
    fields = check.Params.model_fields
    name, *steps = (step for step in error["loc"] if step not in _CHOICES_OF_TYPE) if error["loc"] else ("",)
    where = f"params.{(fields[name].alias if name in fields else None) or name}".removesuffix(".")
    return where + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _params_error(error: Any, check: type[Check]) -> str:
    where, value = _where(error, check), error["input"]
    if error["type"] == "missing":
        return f"ValueError: {where} is missing"
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, BaseException):
        name = ValueError.__name__ if isinstance(raised, UnfitValueError) else type(raised).__name__
        return f"{name}: {where}: {raised}"
    return f"ValueError: {where} is {named(value)}: {error['msg'][0].lower()}{error['msg'][1:]}"
