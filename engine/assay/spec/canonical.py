"""Verifiers made again from the canonical forms in a provenance; what names a check, whatever its id and weight."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from assay.checks.base import Check
from assay.checks.registry import BUILTIN
from assay.errors import InputError, SpecError, printable, quoted
from assay.names import NATIVE
from assay.spec.check_classes import plugins_to_import
from assay.spec.fields import LABELS
from assay.spec.stored_json import StoredError, StoredObject, conforms, parse_stored
from assay.spec.verifier import VerifierSpec, verifier_in_footer

_ROLES = ("gate", "penalty")
_NOT_OF_THE_SCORE = ("id", "weight", "required", "threshold", *_ROLES)


class _Check(StoredObject):
    """A check in canonical form, as far as it is read as data; ``load_verifier`` checks the rest."""

    id: str
    type: str
    weight: float = 0.0
    required: bool = False
    negate: bool = False
    params: dict[str, Any] = Field(default_factory=dict)
    threshold: float | None = None
    checks: list["_Check"] = Field(default_factory=list)


class _Entry(StoredObject):
    """What a provenance says of a verifier, as far as it is read here."""

    id: str | None = None
    kind: str | None = None
    canonical: str


class _Verifier(StoredObject):
    id: str
    kind: str
    passThreshold: float = 1.0  # noqa: N815  (as it is written)


class _Native(_Verifier):
    checks: list[_Check] = Field(default_factory=list)


def canonical_check(form: Mapping[str, Any]) -> str:
    """Return what decides the scores of a check, as compact JSON with sorted keys: its type, its params, whether it is negated."""
    deciding = {name: value for name, value in _unlabelled(form).items() if name not in _NOT_OF_THE_SCORE}
    return json.dumps(deciding, sort_keys=True, separators=(",", ":"))


def _unlabelled(form: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in form.items() if name not in LABELS}
    return plain | ({"checks": [*map(_unlabelled, form["checks"])]} if "checks" in form else {})


def fingerprint(form: Mapping[str, Any]) -> str:
    """Return the SHA-256 of ``canonical_check``, as hexadecimal digits."""
    return hashlib.sha256(canonical_check(form).encode()).hexdigest()


def forms_of(provenance: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the canonical forms of the verifiers that made a result."""
    entries = provenance.get("verifiers")
    if not entries:
        raise InputError(f"{name}: does not say which verifiers made it.", "Name a file that assay score wrote.")
    try:
        conforms(entries, list[_Entry])
        forms = [_form(entry) for entry in entries]
    except StoredError as error:
        fact = f"{name}: the verifiers in its footer cannot be read: {error}."
        raise InputError(fact, "Score the rollouts again.") from None
    return forms


def _form(entry: Mapping[str, Any]) -> dict[str, Any]:
    beside = {key: entry[key] for key in ("id", "kind") if entry.get(key) is not None}
    form = {"kind": NATIVE, **beside, **parse_stored(entry["canonical"], StoredObject, free=True)}
    conforms(form, _Native if form["kind"] == NATIVE else _Verifier)
    if other := next((key for key, value in beside.items() if form[key] != value), ""):
        raise StoredError(f"{other}: {quoted(form[other])} in the canonical form, {quoted(beside[other])} beside it")
    return form


def spec_of(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return a canonical form as a spec: there, a gate or a penalty has a weight, too, and ids in a group begin with the group's."""
    spec = {**form, "checks": [_check(check) for check in form.get("checks", ())]}
    return {key: value for key, value in spec.items() if key != "params"}


def _check(check: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    ident = check["id"]
    parts = [_check(part, f"{ident}.") for part in check.get("checks", ())]
    plain = {key: value for key, value in check.items() if key != "weight" or not any(role in check for role in _ROLES)}
    return plain | {"id": ident.removeprefix(group)} | ({"checks": parts} if parts else {})


def verifiers_of(
    provenance: Mapping[str, Any], name: str, checks: Sequence[type[Check]] = ()
) -> tuple[VerifierSpec, ...]:
    """Return the verifiers that made a result."""
    verifiers = []
    for form in forms_of(provenance, name):
        ident = printable(form["id"])
        if form["kind"] != NATIVE:
            fact = f"{name}: `{ident}` is Python ({printable(form['kind'])}), not a spec."
            raise InputError(fact, "Score the rollouts again, and compare the two results.")
        own = {name for check in checks for name in (check.type, *check.traits.aliases)}
        if modules := plugins_to_import(form, {*BUILTIN, *own}):
            fact = (
                f"{name}: `{ident}` was made with the plug-in {quoted(next(iter(modules)))}, and no footer loads one."
            )
            raise SpecError(
                fact, f"If you trust it, import it: --import {' --import '.join(sorted({*modules.values()}))}"
            )
        verifier = verifier_in_footer(spec_of(form), checks=checks)
        if json.loads(verifier.canonical) != form:
            fact = f"{name}: the spec of `{ident}` in its footer means something else to this version of Assay."
            raise SpecError(fact, "Name the class of each check type that is not built in: --checks module:Class")
        verifiers.append(verifier)
    return tuple(verifiers)
