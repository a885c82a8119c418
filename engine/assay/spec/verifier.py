"""Verifiers: read, validated, in canonical form.

A spec with a structural mistake (an unknown field, a negative weight, a duplicate id) is rejected with a list of all its
problems. A param that a check cannot use makes the check broken: it scores 0.0 on every row with that error, and the run goes on.
"""

import hashlib
import json
import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from assay.calls.places import defined_at
from assay.checks.base import Check, deciding_code
from assay.checks.groups import GROUPS
from assay.checks.registry import BUILTIN
from assay.errors import SpecError, did_you_mean, path_text, shown_path
from assay.frozen import frozen
from assay.functions.users_code import code_of_checks
from assay.names import NATIVE
from assay.spec.check import CheckSpec, check_spec, counted_checks, is_plain_mean
from assay.spec.check_classes import check_class, plugins_of
from assay.spec.fields import CHECK_FIELDS, LABELS
from assay.spec.named import RegisteredSpec, registered
from assay.spec.reader import Origin, SpecReader
from assay.spec.scorers import SCORERS
from assay.spec.spec_tests import SpecTest, read_tests
from assay.system.documents import Place, SpecDocument, check_depth, read_document
from assay.values.params import spellings

__all__ = [
    "CheckSpec",
    "Share",
    "VerifierSource",
    "VerifierSpec",
    "load_registered",
    "load_verifier",
    "load_verifiers",
    "refused",
    "verifier_in_footer",
]


@frozen
class Share:
    """The contribution of a rubric's member to the reward."""

    weight: float
    path: tuple[int, ...] = ()
    pass_threshold: float = 1.0


Combine = Literal["mean", "sum", "min", "max", "product"]
"""Ways to combine scores."""


@dataclass(frozen=True, eq=False)
class VerifierSpec:
    """A verifier: checks, and how their scores are combined; a verifier class, a reward function or functions on rows count as one check.

    Equal verifiers have equal canonical forms.

    Attributes:
        id: Unique in a run.
        name: Display name.
        pass_threshold: Lowest score with which an output passes.
        checks: All checks in spec order, including skipped ones.
        source: The file it was read from, or ``""``.
        kind: ``native``, the name of a verifier class, ``in_process`` for functions named by the rows, ``function`` for a
            reward function.
        share: Its contribution to the reward as a member of a rubric; None if the reward is the mean over verifiers.
        combine: How the scores of weighted checks make the base of the score.
        range: Lowest and highest score; None for no limits.
        description: What it is for, if the spec says so.
        version: Its version, if the spec says so.
        includes: The files of the specs that it includes.
        tests: Its tests, which are no part of its canonical form.
        registered: Its version in the registry that it was taken from by name.
    """

    id: str
    name: str
    pass_threshold: float
    checks: tuple[CheckSpec, ...]
    source: str = ""
    kind: str = NATIVE
    share: Share | None = None
    combine: Combine = "mean"
    range: tuple[float, float] | None = (0.0, 1.0)
    description: str = ""
    version: str = ""
    includes: tuple[str, ...] = ()
    tests: tuple[SpecTest, ...] = ()
    registered: int | None = None

    @property
    def runnable(self) -> tuple[CheckSpec, ...]:
        """All checks except those of unknown type."""
        return tuple(check for check in self.checks if check.check is not None)

    @cached_property
    def nodes(self) -> tuple[CheckSpec, ...]:
        """All checks that run, with those in groups: a group before its checks."""
        return tuple(node for check in self.checks for node in check.nodes() if node.check is not None)

    @property
    def counted(self) -> tuple[CheckSpec, ...]:
        """The checks that make a score: those with a weight, gates and penalties."""
        return counted_checks(self.runnable)

    @property
    def is_plain(self) -> bool:
        """Whether the score is the weighted mean of checks that all run on every row."""
        return self.kind != NATIVE or is_plain_mean(self.runnable, self.combine, self.range)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings before a run: broken checks and skipped ones, and likely mistakes in their params."""
        return tuple(f"{self.id}/{spec.id}: {spec.warning}" for spec in self.warned)

    @property
    def unusable(self) -> tuple[str, ...]:
        """The warnings of checks that do not run: broken ones and skipped ones."""
        checks = (spec for spec in self.warned if spec.broken or spec.check is None)
        return tuple(f"{self.id}/{spec.id}: {spec.warning}" for spec in checks)

    @property
    def warned(self) -> tuple[CheckSpec, ...]:
        """The checks with a warning, including those in groups and in conditions."""
        nodes = (node for check in self.checks for node in check.nodes())
        return tuple(spec for node in nodes for spec in node.readers if spec.warning)

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        """The libraries whose versions decide verdicts of its checks, those in conditions included; as ``Check.libraries``."""
        readers = (reader for spec in self.nodes for reader in spec.readers)
        return {name: tested for reader in readers for name, tested in reader.libraries.items()}

    @property
    def graders(self) -> tuple[str, ...]:
        """The names of the graders among its checks, those in conditions included."""
        names = (reader.grader for spec in self.nodes for reader in spec.readers)
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def code(self) -> list[dict[str, Any]]:
        """The code of users that its checks run, those in conditions included, with hashes."""
        return code_of_checks(reader.check for spec in self.nodes for reader in spec.readers)

    @cached_property
    def canonical(self) -> str:
        """The verifier as JSON text with sorted keys, canonical spellings and every default written out."""
        form = {"id": self.id, "name": self.name, "kind": self.kind, "passThreshold": self.pass_threshold}
        form |= {name: text for name in ("description", "version") if (text := getattr(self, name))}
        form |= {} if self.combine == "mean" else {"combine": self.combine}
        form |= {} if self.range == (0.0, 1.0) else {"range": self.range}
        form |= (
            {"checks": [*map(_canonical, self.checks)]} if self.kind == NATIVE else {"params": self.checks[0].params}
        )
        return json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=_typed)

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the canonical form."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerifierSpec) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        # check classes of two users may share a type name, which the canonical form alone does not distinguish
        return self.canonical, self.share, tuple(check.check and deciding_code(check.check) for check in self.nodes)


def _canonical(spec: CheckSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "type": spec.check.type if spec.check is not None and not spec.broken else spec.type,
        "weight": spec.weight,
        "required": spec.required,
        "negate": spec.negate,
        "params": spec.params,
        **{name: text for name in LABELS if (text := getattr(spec, name))},
        **spec.outline,
        **({"checks": [*map(_canonical, spec.parts)]} if spec.parts else {}),
    }


VerifierSource = str | Path | Mapping[str, Any] | VerifierSpec


def load_verifier(source: VerifierSource, *, checks: Sequence[type[Check]] = (), strict: bool = False) -> VerifierSpec:
    """Read and validate one native verifier.

    Args:
        source: Path of a JSON, YAML or TOML file, or its content as a mapping; or the name of a registered spec, ``ID`` or ``ID@N``
            (see ``assay.Registry``).
        checks: Your own check types, in addition to the built-in ones and to those of installed packages (entry-point group
            ``assay.checks``); specs name them by their ``type``.
        strict: Also reject unknown check types and broken checks.

    Returns:
        The verifier.

    Raises:
        SpecError: The spec cannot be used; ``problems`` lists every problem with its place.
    """
    if isinstance(source, VerifierSpec):
        if strict and source.unusable:
            raise refused(source.id, source.unusable)
        return source
    spec = registered(source) if isinstance(source, str) else None
    return _loaded(source, checks, strict=strict, load_plugins=True) if spec is None else load_registered(spec, checks)


def load_registered(spec: RegisteredSpec, checks: Sequence[type[Check]]) -> VerifierSpec:
    """Read the copy of a registered spec, and refuse it if it is not what was registered."""
    if not spec.path.is_file():
        raise spec.changed("it is gone")
    try:
        verifier = _loaded(spec.path, checks, strict=True, load_plugins=True)
    except SpecError as error:
        raise spec.unread(error) from None
    spec.check(verifier.id, verifier.sha256, verifier.code)
    return replace(verifier, registered=spec.version)


def verifier_in_footer(form: Mapping[str, Any], *, checks: Sequence[type[Check]] = ()) -> VerifierSpec:
    """``load_verifier`` for a spec that a footer holds: it imports no plug-in, because whoever wrote the footer chose the name."""
    return _loaded(form, checks, strict=False, load_plugins=False)


def _loaded(
    source: str | Path | Mapping[str, Any], checks: Sequence[type[Check]], *, strict: bool, load_plugins: bool
) -> VerifierSpec:
    if isinstance(source, Mapping):
        check_depth(source, "verifier")
        document, name, default_id = SpecDocument(_plain(source)), "verifier", "verifier"
    else:
        path = _path(source)
        document, name, default_id = read_document(path), shown_path(path), path_text(path.stem)
    known = _check_types(checks)

    def types_for(data: Any) -> Mapping[str, type[Check]]:
        return known.new_child(plugins_of(data, known, load=load_plugins))

    origin = Origin(None if isinstance(source, Mapping) else path, types_for)
    types = types_for(document.data)
    reader = SpecReader(document, types, strict=strict, load_plugins=load_plugins)
    reader.origin = origin
    fields = reader.read(default_id)
    # checks with problems do not tell what tests may name
    check_specs = None if reader.problems else [check_spec(check) for check in fields["checks"]]
    tests = read_tests(reader, fields.pop("tests", None), check_specs)
    if reader.problems or check_specs is None:
        raise refused(name, reader.problems)
    return VerifierSpec(
        tests=tuple(tests),
        source="" if isinstance(source, Mapping) else path_text(path),
        includes=tuple(map(path_text, origin.all)),
        **fields | {"checks": tuple(check_specs)},
    )


def _path(source: object) -> Path:
    if isinstance(source, str | Path):
        return Path(source)
    kind = type(source).__name__
    fact = f"A verifier is a path, a mapping or a loaded verifier, not {'an' if kind[:1] in 'aeiou' else 'a'} {kind}."
    if isinstance(source, Iterable):
        raise SpecError(fact, "A list of verifiers is an argument of assay.score.")
    if not callable(source):
        raise SpecError(fact)
    name, place = getattr(source, "__name__", type(source).__name__), defined_at(source)
    raise SpecError(
        f"{fact}{chr(10) + '  ' + place if place else ''}", f"Functions are scored by a rubric: assay.Rubric([{name}])"
    )


def load_tests(source: str | Path | Sequence[Mapping[str, Any]], verifier: VerifierSpec) -> tuple[SpecTest, ...]:
    """Read further tests of a verifier.

    Args:
        source: A YAML, JSON or TOML file with ``tests``, or with a list of tests alone; or such a list.
        verifier: The verifier.

    Returns:
        The tests; those without a name are numbered behind the verifier's own.

    Raises:
        SpecError: A test cannot be used; ``problems`` lists every problem with its place.
    """
    if isinstance(source, str | Path):
        document, name = read_document(Path(source)), shown_path(source)
    else:
        check_depth(source, "tests")
        document, name = SpecDocument(_plain(source)), "tests"
    data, path = document.data, Place()
    if isinstance(data, dict):
        if [*data] != ["tests"]:
            guess = did_you_mean(str(next(iter(data), "")), ["tests"])
            raise SpecError(f"{name}: expected a list of tests, below `tests:` or alone.", guess)
        data, path = data["tests"], ("tests",)
    reader = SpecReader(document, {}, strict=False)
    tests = read_tests(reader, data, verifier.checks, path, verifier.tests)
    if reader.problems:
        raise refused(name, reader.problems)
    return tuple(tests)


def refused(name: str, problems: Sequence[str]) -> SpecError:
    """Return the error for a verifier that cannot be used, listing all its problems."""
    listed = "\n".join(f"  {problem}" for problem in problems)
    return SpecError(f"{name}: {len(problems)} problem{'s' * (len(problems) > 1)}\n{listed}", problems=problems)


def load_verifiers(
    sources: VerifierSource | Iterable[VerifierSource], *, checks: Sequence[type[Check]] = (), strict: bool = False
) -> tuple[VerifierSpec, ...]:
    """Load one verifier or several, and report the problems of all of them together."""
    if isinstance(sources, str | Path | Mapping | VerifierSpec) or not isinstance(sources, Iterable | None):
        sources = [sources]
    loaded: list[VerifierSpec] = []
    errors: list[SpecError] = []
    for source in sources or ():
        try:
            loaded.append(load_verifier(source, checks=checks, strict=strict))
        except SpecError as error:
            errors.append(error)
    if errors:
        problems = [problem for error in errors for problem in error.problems]
        raise SpecError("\n\n".join(dict.fromkeys(error.fact for error in errors)), errors[0].hint, problems)
    if not loaded:
        raise SpecError("No verifier.", "Name at least one, with --spec or as the second argument of score().")
    by_id: dict[str, VerifierSpec] = {}
    for verifier in loaded:
        if (other := by_id.get(verifier.id)) is not None:
            places = " and ".join(owner.source or "a mapping" for owner in (other, verifier))
            raise SpecError(f'Two verifiers have the id "{verifier.id}": {places}.', "Give one of them another `id`.")
        by_id[verifier.id] = verifier
    return tuple(loaded)


def _check_types(checks: Sequence[type[Check]]) -> ChainMap[str, type[Check]]:
    types: ChainMap[str, type[Check]] = ChainMap({}, cast("dict[str, type[Check]]", BUILTIN))
    for check in (*GROUPS, *SCORERS, *(check_class(check, "checks") for check in checks)):
        clash = sorted(set(spellings(check.Params)) & set(CHECK_FIELDS).difference(LABELS))
        if clash:
            raise SpecError(f"{check.__name__} has a param `{clash[0]}`, which is a field of every check.")
        for name in (check.type, *check.traits.aliases):
            if types.setdefault(name, check) is not check:
                raise SpecError(f'Two check types are called "{name}": {types[name].__name__} and {check.__name__}.')
    return types


def _typed(value: object) -> str:
    """Encode a value that JSON lacks, such as TOML's dates, so that it differs from the string that looks like it."""
    return f"{type(value).__name__}:{value}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        is_check = isinstance(value.get("type", value.get("kind")), str)
        # readers of YAML 1.1, such as PyYAML, take a bare `on` for true
        names = {key: "on" if key is True and is_check else key if isinstance(key, str) else repr(key) for key in value}
        return {names[key]: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and math.isnan(value):
        return math.nan
    return value
