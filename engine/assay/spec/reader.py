"""Read the checks of a verifier from a document: the forms that people write, other files in it, groups, and params."""

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import ValidationError

from assay.checks.base import Check
from assay.checks.groups import AtLeast, Group, Included, IncludedParams, LengthScaled
from assay.checks.stand_ins import Broken
from assay.errors import SpecError, closest, counted, describe_error, did_you_mean, path_text, quoted, shown_path
from assay.frozen import frozen
from assay.functions.registry import list_fns
from assay.names import COMPLETION, NATIVE, VERIFIER
from assay.spec.fields import (
    CHECK_FIELDS,
    LABELS,
    CheckFields,
    ClassFields,
    FieldReader,
    VerifierFields,
    names_of,
    place,
    read_range,
)
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
from assay.spec.scorers import by_class, scorer_of
from assay.steps.chain import Chain
from assay.system.documents import Place, SpecDocument, named, read_document
from assay.values.params import EXPECTED, UnfitValueError, canonical, spellings
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
    check = types[names[key]]
    main = "checks"
    if not issubclass(check, Group):  # else the gold, or the first param
        known = check.Params.model_fields
        main = check.golds.param if check.golds.param in known else next(iter(known), "value")
        main = (known[main].alias if main in known else None) or main
    params = {} if value is None else {main: value}
    if isinstance(value, Mapping) and not is_reference(value):
        params = dict(value)
    written = as_flow({"type": names[key], **params, **others})
    return written if len(written) <= _LONGEST else as_flow({"type": names[key]})[:-1] + ", …}"


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


@frozen
class Origin:
    """The file that a spec is read from.

    Attributes:
        file: Its path; None for a spec that is no file.
    """

    file: Path | None
    types: Callable[[Any], Mapping[str, type[Check]]]
    above: tuple[Path, ...] = ()
    all: list[Path] = field(default_factory=list)

    def open(self, path: str) -> "tuple[SpecDocument, Origin]":
        """Read a spec beside this one, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or write a group")
        file = _inside(self.file.parent, path)
        files = (*self.above, Path(os.path.realpath(self.file)))
        if file in files:
            names = " → ".join(shown_path(document.name) for document in (*files[files.index(file) :], file))
            raise IncludeError(f"the specs include each other: {names}")
        if len(files) > _DEEPEST:
            raise IncludeError(f"specs are nested more than {_DEEPEST} deep")
        return self._read(file), replace(self, file=file, above=files)

    def value(self, path: str) -> Any:
        """Return the content of a JSON file beside this spec, or below it."""
        if self.file is None:
            raise IncludeError("a spec that is no file has no folder; load it from a file, or give the content itself")
        return self._read(_inside(self.file.parent, path)).data

    def _read(self, file: Path) -> SpecDocument:
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


GROUP_FIELDS = ("checks", "check")
_DEEPEST = 8
"""Maximum nesting of groups, and of files that include each other."""
_CHOICES_OF_TYPE = ("int", "float", "str", "bool", "dict[str,any]", "list[str]")
"""What pydantic adds to the place of a value that may be of several types."""


class SpecReader(FieldReader):
    """Reads one document."""

    origin: "Origin | None" = None
    combine = "mean"
    range: tuple[float, float] | None = (0.0, 1.0)

    def read(self, default_id: str) -> dict[str, Any]:
        """Return the fields of a ``VerifierSpec``; look at ``problems`` before using them."""
        data = self.document.data
        if isinstance(data, dict) and [*data] == [VERIFIER]:  # the form used in task rows and configurations
            self.root, data = (VERIFIER,), data[VERIFIER]
        if slip := self.not_a_verifier(data):
            self.problem((), slip)
            return {"checks": []}
        is_native = not isinstance(data, dict) or data.get("kind", NATIVE) in (None, NATIVE)
        model: type[VerifierFields | ClassFields] = VerifierFields if is_native else ClassFields
        fields = self.fields(data, (), names_of(model), ignored=("$schema",))
        if fields is None:
            return {"checks": []}
        try:
            limits = read_range(fields.get("range", [0, 1]))
        except ValueError:  # a problem, below
            limits = (0.0, 1.0)
        lowest = -math.inf if limits is None or limits[0] < 0 else 0.0
        ident = default_id if fields.get("id") is None else fields["id"]
        given = self.checked(model, fields | {"id": ident}, (), pass_threshold=lowest)
        threshold = given.pass_threshold
        if is_native and limits is not None and threshold > limits[1]:
            fact = f"{threshold} is above {limits[1]:g}, the highest score: nothing could pass"
            self.problem(("passThreshold",), fact)
        combine = self.combine = getattr(given, "combine", "mean")
        self.range = limits
        misspelt = "checks" not in data and any(closest(str(key), names_of(VerifierFields)) == "checks" for key in data)
        checks = self.checks(fields, misspelt=misspelt) if is_native else by_class(self, given.kind, fields)
        return {
            **{name: getattr(given, name) for name in ("description", "version", "kind", "pass_threshold")},
            "id": given.id,
            "name": given.name if fields.get("name") is not None else given.id,
            "combine": combine,
            "range": limits,
            "checks": checks,
            "tests": fields.get("tests"),
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
        if len(self.problems) == problems_before:
            runnable = [check for check in checks if check["check"] is not None]
            weights = [check["weight"] for check in runnable if check["role"] == "weight"]
            if not listed and not misspelt:
                where: Place = ("checks",) if "checks" in fields else ()
                self.problem(where, "a verifier needs `checks`, a list of at least one")
            elif listed and not runnable:
                notes = "".join(f"; {check['note']}" for check in checks)
                self.problem(("checks",), f"no check that can run{notes}")
            elif runnable and (not (any(weights) or len(weights) < len(runnable)) or not math.isfinite(sum(weights))):
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
        scorer = scorer_of(data, self.types)
        name = self.type_name(data, path) if scorer is None else scorer.name
        if name is None:
            return None
        kind = self.types.get(name) if scorer is None else None
        group = kind if kind is not None and issubclass(kind, Group) else None
        is_flat = scorer is None and data.get("params") is None
        # the params of an unknown type are unknown, too
        beside = tuple(spellings(kind.Params) if kind else data) if is_flat else ()
        own = CHECK_FIELDS + (scorer.fields if scorer else GROUP_FIELDS if group else ())
        own += (
            ("checks",) if self.types.get(name) is Included and not self.load_plugins else ()
        )  # written out in footers
        known = tuple(dict.fromkeys(own + beside))
        fields = self.fields(data, path, known) or {}
        labels = {*LABELS}.difference(scorer.fields if scorer else beside)
        check: dict[str, Any] = {"id": None, "type": name, "name": name, "path": path, "parts": [], "note": ""}
        check |= self.around(fields, path, depth, labels)
        chain, outline = check.pop("gold_chain"), check["outline"]
        if scorer is not None:
            if chain is not None and not scorer.takes_golds:
                self.problem((*path, "goldOn"), "`goldOn` belongs to check types that compare texts")
            read = scorer.read(self, name, fields, path)
            if read is None:
                return None
            check |= read | {"outline": outline | read.get("outline", {})}
        else:
            own_fields = {*own} - ({*LABELS} & {*beside})
            params = (
                {key: value for key, value in fields.items() if key not in own_fields} if is_flat else fields["params"]
            )
            place = path if is_flat else (*path, "params")
            misspelt = [key for key in data if key not in (*known, *fields)]
            if kind is None:
                params = params if isinstance(params, dict) else {}
                check |= {"subject": None, "note": self.skip(name, path), "check": None, "params": params}
            elif group is not None:
                slip = any(closest(key, GROUP_FIELDS) for key in misspelt)
                check |= self.group(group, fields, params, path, depth, misspelt=slip)
            else:
                check |= self.params(kind, params, place, chain, misspelt=is_flat and bool(misspelt))
        default = check["name"]
        if check["id"] is None and (not default or "/" in default or not default.isprintable()):
            where = path if scorer else (*path, "type")
            self.problem(where, f"{default!r} cannot be an id; give the check an `id`")
        if check["check"] is not None and group is None:
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
        return self._of_spec(document, origin, path, place)

    def written_out(self, params: Any, checks: Any, place: Place) -> dict[str, Any] | None:
        """Return ``included`` for a spec in the canonical form of the one that included it: without its file."""
        spec = {**params} if isinstance(params, dict) else {}
        if spec.get("kind", NATIVE) == NATIVE:
            limits = spec.get("range")
            spec |= {"checks": checks, "passThreshold": limits[-1] if isinstance(limits, list) and limits else 0.0}
        else:  # a verifier class is the one check of its spec
            spec["params"] = next((check.get("params") for check in checks or () if isinstance(check, dict)), {})
        return self._of_spec(SpecDocument(spec), self.origin or Origin(None, lambda _: self.types), "", place)

    def _of_spec(self, document: SpecDocument, origin: Origin, path: str, place: Place) -> dict[str, Any] | None:
        reader = SpecReader(document, origin.types(document.data), strict=self.strict, load_plugins=self.load_plugins)
        reader.origin = origin
        fields = reader.read(path_text(Path(path).stem) or "spec")
        if reader.problems:
            for problem in reader.problems:
                self.problem(place, f"{path}: {problem}" if path else problem)
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
        guess = f": `{slip}` is unknown. Did you mean `type`?" if slip else self.mended(data, path)
        self.problem((*path, slip) if slip else path, f"every check needs a `type`{guess}")
        return None

    def mended(self, data: Any, path: Place) -> str:
        """Return what to write in place of a shorthand, as the end of a sentence; ``""`` if it is none."""
        check = meant_check(data, self.types)
        dash = "- " if path and isinstance(path[-1], int) else ""
        return f": write `{dash}{check}`" if check else ""

    def around(self, fields: Mapping[str, Any], path: Place, depth: int, labels: Collection[str]) -> dict[str, Any]:
        """Return what stands around a check: its id and labels, what it reads, when it runs, what its score does."""
        plain = {name: value for name, value in fields.items() if name not in LABELS or name in labels}
        lowest = -math.inf if self.combine == "sum" else 0.0
        given = self.checked(CheckFields, plain, path, weight=lowest, penalty=0.0)
        role, weight = role_of(self, fields, given, path)
        if depth:
            for name in ("gate", "penalty", "required"):
                if fields.get(name):
                    self.problem((*path, name), f"`{name}` belongs to the group, not to a check in it")
        outline: dict[str, Any] = {} if role == "weight" else {role: True if role == "gate" else weight}
        outline |= {} if given.threshold is None else {"threshold": given.threshold}
        subject, chain = None, None
        name = "extract" if given.extract is not None else "on"
        if fields.get(name) is not None:
            subject, outline["on"] = read_subject(self, fields[name], (*path, name))
        if given.on is not None and name == "extract":
            self.problem((*path, "extract"), "`on` and `extract` are two names for one thing")
        if given.gold_on is not None:
            chain = read_chain(self, given.gold_on, (*path, "goldOn"))
            outline["goldOn"] = chain.outline()
        outline |= {} if given.not_found == "fail" else {"notFound": given.not_found}
        outline |= {} if given.missing_gold == "unscored" else {"missingGold": given.missing_gold}
        condition = None if given.when is None else read_condition(self, given.when, (*path, "when"), depth)
        copied = ("description", "required", "negate", "threshold", "not_found", "missing_gold")
        return {
            **{name: getattr(given, name) for name in copied},
            "id": given.id or None,
            "label": given.name,
            "weight": weight,
            "role": role,
            "outline": outline,
            "subject": subject,
            "gold_chain": chain,
            "when": condition,
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
        if single:
            listed = [((*path, name), fields[name])] if fields.get(name) is not None else []
        else:
            listed = [((*path, name, at), data) for at, data in enumerate(self.value(fields, path, name, list, []))]
        if not listed and len(self.problems) == before and not misspelt:
            needs = "the check that it is about" if single else "a list of at least one"
            self.problem((*path, name) if name in fields else path, f"`{group.type}` needs `{name}`, {needs}")
        parts = [part for place, data in listed if (part := self.check(data, place, depth + 1)) is not None]
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
            known = guess or f"Known: {', '.join(self.types)}."
            self.problem((*path, "type"), f'unknown check type "{name}". {known}')
        return f"{note}. {guess}" if guess else note

    def params(
        self, kind: type[Check], values: Any, path: Place, gold_chain: Chain | None = None, *, misspelt: bool = False
    ) -> dict[str, Any]:
        """Build the check with its params, or a broken check; unknown params are problems.

        With ``misspelt`` or an unknown param, one that is missing is no other problem.
        """
        if not isinstance(values, dict):
            return self.broken(f"TypeError: params is {named(values)}, not an object", values, path)
        names = spellings(kind.Params)
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
        source = ""  # the files that params are read from; no JSON text ends like the name of one
        for name, file in by_field.items():
            if name in kind.traits.in_files and isinstance(file, str) and file.endswith(".json"):
                try:
                    by_field[name] = (self.origin or Origin(None, lambda _: self.types)).value(file)
                except IncludeError as error:
                    self.problem((*path, name), f"{file}: {error}")
                    return {"params": values, "check": Broken("its params have problems")}
                source += f"{file}: "
        return self.built(kind, by_field, values, path, gold_chain, misspelt=misspelt, source=source)

    def built(
        self,
        kind: type[Check],
        by_field: Mapping[str, Any],
        values: Mapping[str, Any],
        path: Place,
        gold_chain: Chain | None,
        *,
        misspelt: bool,
        source: str,
    ) -> dict[str, Any]:
        """Build the check with its params by field, or a broken check; messages begin with the files that params are read from."""
        try:
            kind.traits.require()
        except Exception as exception:  # noqa: BLE001  (a user's check class may raise anything)
            return self.broken(describe_error(exception), values, path, kind.traits.libraries)
        try:
            if (fields := gold_check(self, kind, by_field, gold_chain, path)) is not None:
                return fields
            params = kind.Params.model_validate(by_field)
            return {"params": canonical(params), "check": kind(params), "note": likely_slip(by_field)}
        except (ValidationError, ParamsError) as exception:
            problems: list[Any] = exception.problems if isinstance(exception, ParamsError) else [*exception.errors()]
        except Exception as exception:  # noqa: BLE001  (as above)
            return self.broken(f"{source}{describe_error(exception)}", values, path)
        if misspelt:
            given = {name for name, field in spellings(kind.Params).items() if field in by_field}
            problems = [problem for problem in problems if given.issuperset(problem["loc"][:1])]
        if not problems:
            return {"params": values, "check": Broken("its params have problems")}
        return self.broken(f"{source}{'; '.join(_params_errors(problems, kind))}", values, path)

    def broken(
        self, problem: str, params: Any, path: Place, libraries: Mapping[str, tuple[str, ...]] | None = None
    ) -> dict[str, Any]:
        """Build a check that reports its problem on every row."""
        if self.strict:
            self.problem(path, f"the check cannot run: {problem}")
        return {"params": params, "check": Broken(problem, libraries)}


def _in_all(checks: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for check in checks:
        yield check
        yield from _in_all(check["parts"])


def _params_errors(problems: Sequence[Any], check: type[Check]) -> list[str]:
    faults: dict[tuple[str, ...], list[Any]] = {}
    for problem in problems:
        place = tuple(str(step) for step in problem["loc"] if step not in _CHOICES_OF_TYPE)
        faults.setdefault(place, []).append(problem)
    messages: list[str] = []
    for place, errors in faults.items():
        if not all(error["type"].endswith("_type") for error in errors):
            messages += [_params_error(error, check) for error in errors if not error["type"].endswith("_type")]
        elif not any(other[: len(place)] == place for other in faults if len(other) > len(place)):
            # else it is of another type that the value may have
            kinds = dict.fromkeys(error["type"].removesuffix("_type") for error in errors)
            expected = " or ".join(dict.fromkeys(EXPECTED.get(kind, kind) for kind in kinds))
            messages.append(f"TypeError: {_where(errors[0], check)} is {named(errors[0]['input'])}, not {expected}")
    return list(dict.fromkeys(messages))


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
