"""Read checks of type ``grader``: a name, options of the tool's function, and a fragment or a function of a row."""

import json
from collections.abc import Mapping
from typing import Any

from assay.checks.golds import GoldCheck
from assay.checks.graders.base import OWN_FIELDS
from assay.checks.graders.check import FragmentCheck, FragmentGolds, RowGrader
from assay.checks.graders.table import GRADERS, Grader, likely_grader
from assay.checks.libraries import untested, versions
from assay.checks.mathematics.client import INSTALL
from assay.checks.stand_ins import Broken
from assay.errors import did_you_mean, quoted
from assay.spec.fields import FieldReader
from assay.spec.pipeline import likely_slip, outline_of, read_chain, read_subject, resolvable
from assay.steps.chain import Chain
from assay.system.documents import Place
from assay.values.params import both_cases
from assay.values.references import as_list, is_reference


def read_grader(reader: Any, type_name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    """Return the fields of a ``CheckSpec``; None if there are problems."""
    given = {
        **reader.value(fields, path, "params", dict, {}),
        **{key: fields[key] for key in OWN_FIELDS if key in fields},
    }
    given = reader.fields(given, path, OWN_FIELDS) or {}
    before = len(reader.problems)
    grader = _named(reader, type_name, given, path)
    if grader is None:
        return None
    options, seen = _options(reader, grader, given, (*path, "options"))
    value = _value(reader, grader, given, path)
    _check_version(reader, grader, given, path)
    if isinstance(value, str) and grader.literal is not None:
        try:
            grader.literal(value)
        except ValueError as error:
            reader.problem((*path, "value"), str(error))
    any_version = reader.value(given, path, "anyVersion", bool, default=False)
    if len(reader.problems) > before:
        return None
    if grader.unbounded(options) and not (reader.combine == "sum" and reader.range is None):
        fact = f"`{grader.name}` scores beyond [0, 1]: the verifier needs `combine: sum` and `range: null`"
        reader.problem(path, fact)
        return None
    written = {name: outline_of(item) for name, item in options.items() if name in seen}
    params = {"name": grader.name} | ({} if value is None else {"value": outline_of(value)})
    params |= ({"options": written} if written else {}) | ({"anyVersion": True} if any_version else {})
    params |= {"version": given["version"]} if given.get("version") is not None else {}
    own = {"name": grader.name.replace(".", "-"), "params": params}
    note = likely_slip([given.get("value")])
    is_literal = isinstance(value, str) or grader.literal is None
    if is_literal and (fragment := grader.fragment(options)) is not None:
        read = _fragment(reader, grader, fragment, given, fields, path)
        return None if read is None else own | read
    if problem := _missing_library(grader, options, any_version=any_version):
        broken: dict[str, Any] = reader.broken(problem, params, path, dict.fromkeys(grader.libraries_with(options), ()))
        return own | broken
    return own | {"check": _row_grader(reader, grader, value, options, fields, path), "note": note}


def _row_grader(
    reader: Any, grader: Grader, value: Any, options: Mapping[str, Any], fields: Mapping[str, Any], path: Place
) -> RowGrader:
    chain = Chain() if fields.get("goldOn") is None else read_chain(reader, fields["goldOn"], (*path, "goldOn"))
    on = fields.get("on") if fields.get("on") is not None else fields.get("extract")
    subject = None if on is None or grader.kind != "M" else read_subject(reader, on, (*path, "on"))[0]
    return RowGrader(grader, value, options, chain, subject)


def _named(reader: FieldReader, type_name: str, given: Mapping[str, Any], path: Place) -> Grader | None:
    name = reader.value(given, path, "name", str, "")
    if not name:
        reader.problem(path, f"`{type_name}` needs `name`, that of a grader: assay graders lists them")
    elif name not in GRADERS:
        guess = likely_grader(name) or "All of them: assay graders"
        reader.problem((*path, "name"), f"no grader is called {quoted(name)}. {guess}")
    return GRADERS.get(name)


def _options(
    reader: FieldReader, grader: Grader, given: Mapping[str, Any], path: Place
) -> tuple[dict[str, Any], set[str]]:
    """Return all options, those that rows bring as references; and the names of those that are given."""
    values = reader.value(given, path[:-1], "options", dict, {})
    spelled = {spelling: name for name in grader.options for spelling in (name, *_camel(name))}
    options = {name: option.default for name, option in grader.options.items()}
    seen: set[str] = set()
    for key, value in values.items():
        name = spelled.get(key)
        if name is None:
            guess = did_you_mean(str(key), grader.options) or (
                f"It has: {', '.join(grader.options)}." if grader.options else "It has none."
            )
            reader.problem((*path, key), f"`{grader.name}` has no option `{key}`. {guess}")
        elif name in seen:
            reader.problem((*path, key), f"`{name}` is given twice, in two spellings")
        else:
            seen.add(name)
            options[name] = _option(reader, grader, name, value, (*path, key))
    for name, option in grader.options.items():
        if option.required and name not in seen and len(seen) == len(values):
            example = f": {', '.join(option.choices)}" if option.choices else ""
            reader.problem(path if values else path[:-1], f"`{grader.name}` needs the option `{name}`{example}")
    return options, seen


def _camel(name: str) -> tuple[str, ...]:
    first, *rest = name.split("_")
    return both_cases(first + "".join(map(str.capitalize, rest)))


def _option(reader: FieldReader, grader: Grader, name: str, value: Any, path: Place) -> Any:
    option = grader.options[name]
    if is_reference(value):
        if not option.row:
            reader.problem(path, f"`{name}` of `{grader.name}` is the same on every row, not {{column: …}}")
        return resolvable(reader, value, path)
    if problem := option.problem(value):
        reader.problem(path, f"{json.dumps(value, ensure_ascii=False, default=str)} {problem}")
    return value


def _value(reader: FieldReader, grader: Grader, given: Mapping[str, Any], path: Place) -> Any:
    value = given.get("value")
    if grader.golds == "none":
        if value is not None:
            hint = "; give it in `options`" if "value" in grader.options else ""
            reader.problem((*path, "value"), f"`{grader.name}` compares with no gold{hint}")
        return None
    if value is None or value == []:
        reader.problem(path, f"`{grader.name}` needs `value`, the gold: value: {{column: answer}}")
    return resolvable(reader, value, (*path, "value"))


def _check_version(reader: FieldReader, grader: Grader, given: Mapping[str, Any], path: Place) -> None:
    version = given.get("version")
    if version is not None and str(version) != grader.tool.version:
        fact = f"this Assay has `{grader.name}` of {grader.tool.package} {grader.tool.version}, not {version}"
        reader.problem((*path, "version"), fact)


def _fragment(
    reader: Any,
    grader: Grader,
    fragment: dict[str, Any],
    given: Mapping[str, Any],
    fields: Mapping[str, Any],
    path: Place,
) -> dict[str, Any] | None:
    """Read the check and the steps of a fragment, behind those that the spec names."""
    check = expanded(grader, fragment, given.get("value"), fields)
    inverted, whole = (check.pop(name, False) for name in ("inverted", "whole"))
    if (
        grader.golds == "each"
        and not grader.whole_list
        and grader.literal is None
        and not isinstance(check[grader.gold_param], list | dict)
    ):
        check[grader.gold_param] = [check[grader.gold_param]]  # one gold of several, whose check has golds
    read = reader.check(check, path)
    if read is None:
        return None
    inner = read["check"]
    note = {"note": read["note"], "subject": read["subject"]}
    if inner is None or isinstance(inner, Broken):
        return {"check": inner, **note}
    how = {"inverted": inverted != grader.inverted, "whole": whole}
    wrap: Any = FragmentGolds if isinstance(inner, GoldCheck) else FragmentCheck
    return {"check": wrap(grader, inner, **how), **note}


def expanded(grader: Grader, fragment: Mapping[str, Any], value: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fragment as a check of a spec: with its gold, and with the steps of the check around it before its own."""
    check = dict(fragment)
    if isinstance(value, str) and grader.literal is not None:
        value = grader.literal(value)
    if value is not None:
        check[grader.gold_param] = value
        if isinstance(value, Mapping) and not is_reference(value) and check["type"] == "equals":
            check = {"type": "json_match", "value": value}  # promptfoo compares objects item by item
    for name, other in (("on", "extract"), ("goldOn", None)):
        outer = fields.get(name) if fields.get(name) is not None else fields.get(other or "")
        if outer is not None:
            check[name] = [*as_list(outer), *check.get(name, [])]
    return check


def _missing_library(grader: Grader, options: Mapping[str, Any], *, any_version: bool) -> str:
    """Return why a grader cannot run for want of a library, or of a version that has been tested."""
    needed = grader.libraries_with(options)
    here = versions(needed)
    absent = [name for name, version in here.items() if version is None]
    if absent:
        pinned = (f"'{name}=={known[0]}'" if (known := needed[name]) else name for name in absent)
        install = INSTALL if grader.kind == "M" else f"pip install {' '.join(pinned)}"
        return f"ModuleNotFoundError: {grader.name} needs {', '.join(absent)}: {install}"
    others = [] if any_version else untested(needed)
    if not others:
        return ""
    if grader.kind == "M":
        return f"math libraries not tested: {', '.join(others)}"
    return f"libraries of {grader.name} not tested: {', '.join(others)}"
