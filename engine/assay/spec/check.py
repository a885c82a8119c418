"""One check of a verifier: what it reads, when it runs, and what becomes of its score."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import polars as pl

from assay.calls.limits import Limits
from assay.checks.base import Check, facts_of
from assay.checks.groups import Group, Included
from assay.checks.stand_ins import Broken
from assay.expressions.regex.flavors import PACKAGE
from assay.expressions.shared_columns import exactly, row_of, rowwise
from assay.frozen import frozen
from assay.kernel.library import answers, forms, is_on, why_no_fact
from assay.steps.subject import Subject
from assay.values.references import Reference, gold_text

Role = Literal["weight", "gate", "penalty"]
"""What a check's score does: it is part of the base, a factor of it, or taken off."""


@frozen(eq=False)
class Condition:
    """When a check runs: a test of a value that the row brings, or another check that has to pass.

    Attributes:
        lists: The named lists of a pattern of the package ``regex``, as JSON; ``""`` for a pattern of ``re``.
    """

    reference: Reference | None
    test: str
    operand: Any
    check: "CheckSpec | None"
    negated: bool
    outline: dict[str, Any]
    limits: Limits | None = None
    lists: str = ""

    def within(self, limits: Limits) -> "Condition":
        """Return a copy with the limits of a run."""
        return replace(self, limits=limits, check=self.check and self.check.within(limits))

    def hold(self, values: Sequence[Any]) -> list[bool]:
        """Return whether each value passes the test."""
        if self.test != "matches":
            return [*map(self._holds, values)]
        from assay.expressions.regex.search import search_all

        texts = [gold_text(value) for value in values if value is not None]
        matches = iter(search_all(self.operand, texts, self.limits, lists=self.lists))
        return [(value is not None and next(matches) is True) is not self.negated for value in values]

    def _holds(self, value: Any) -> bool:
        if self.test == "exists":
            passes = (value is not None) is self.operand
        elif value is None:
            passes = False
        elif self.test == "equals":
            passes = _is_equal(value, self.operand)
        else:
            passes = any(_is_equal(value, item) for item in self.operand)
        return passes is not self.negated

    def explain(self) -> str:
        """Return which engine runs the test, and why."""
        by = ", by the package regex in a separate process" if self.lists else ""
        return f"Python, row by row: a test of a value{by}" if self.check is None else runs_as(self.check)

    def row(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row passes the test of a value."""
        assert self.reference is not None  # noqa: S101  (a check decides otherwise)
        return self.hold([self.reference.row(row)])[0]

    def expr(self, schema: pl.Schema) -> pl.Expr:
        """Return ``row`` as a Boolean expression without nulls."""
        assert self.reference is not None  # noqa: S101  (as above)
        columns = [exactly(name) for name in self.reference.columns if name in schema]
        if not columns:
            return pl.lit(self.hold([None])[0])
        return rowwise(
            row_of(columns), self.reference.row, pl.Boolean, each=lambda value, rows: self.hold([*map(value, rows)])
        )


def _is_equal(value: Any, operand: Any) -> bool:
    same_kind = isinstance(value, bool) is isinstance(operand, bool)
    return (same_kind and value == operand) or gold_text(value) == gold_text(operand)


@dataclass(frozen=True, eq=False)
class CheckSpec:
    """One check of a verifier, or a group of checks.

    Attributes:
        id: Unique in its verifier; of a check in a group, ``<group>.<check>``.
        type: Name of the check type, as written in the spec.
        weight: Its share of the score, or how much a penalty takes off; finite.
        required: Whether the verifier fails when this check scores below 1.
        negate: Whether the score is inverted, ``1 - score``.
        params: Its params as plain data, in canonical spelling; as written if the check is broken.
        check: The check itself; None if the type is unknown, so that the check is skipped.
        note: The note of a skipped check in every row's feedback.
        role: What its score does.
        threshold: Lowest score that counts as 1.0, while others count as 0.0; None to keep the score.
        subject: What it reads; None for the completion's text.
        not_found: Whether it fails or passes where its steps find nothing.
        missing_gold: What becomes of a row without a gold: it is unscored, or the check fails or passes.
        when: When it runs; None for always.
        above: Ids of the groups around it that have a condition.
        parts: The checks of a group, including skipped ones.
        outline: Fields beyond the plain ones as they stand in the spec, in canonical form.
        name: What people call it, if the spec says so.
        description: What it is for, if the spec says so.
    """

    id: str
    type: str
    weight: float
    required: bool
    negate: bool
    params: Any
    check: Check | None
    note: str = ""
    role: Role = "weight"
    threshold: float | None = None
    subject: Subject | None = None
    not_found: Literal["fail", "pass"] = "fail"
    missing_gold: Literal["unscored", "fail", "pass"] = "unscored"
    when: Condition | None = None
    above: tuple[str, ...] = ()
    parts: tuple["CheckSpec", ...] = ()
    outline: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    description: str = ""

    @property
    def broken(self) -> str:
        """Why the check cannot run, or ``""``."""
        return self.check.problem if isinstance(self.check, Broken) else ""

    @property
    def warning(self) -> str:
        """What to warn of before a run: that the check is broken or skipped, or a likely mistake; ``""`` if there is nothing."""
        return f"broken: {self.broken}; it scores 0.0 on every row" if self.broken else self.note

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        """The libraries whose versions decide its verdicts, as ``Check.libraries``; not those of a check that is its condition."""
        matches = {PACKAGE: ()} if self.when is not None and self.when.lists else {}
        steps = self.subject.chain.libraries if self.subject is not None else {}
        return {**(self.check.traits.libraries if self.check is not None else {}), **steps, **matches}

    @property
    def grader(self) -> str:
        """The name of the grader that it is; ``""`` if it is none."""
        return str(self.params.get("name", "")) if self.type == "grader" and isinstance(self.params, dict) else ""

    @property
    def group(self) -> Group | None:
        """The kind of group, or None for a single check."""
        return self.check if isinstance(self.check, Group) else None

    @cached_property
    def runnable(self) -> tuple["CheckSpec", ...]:
        """The checks of a group, except those of unknown type."""
        return tuple(part for part in self.parts if part.check is not None)

    @cached_property
    def counted(self) -> tuple["CheckSpec", ...]:
        """The checks of a group that make its score."""
        return counted_checks(self.runnable) if isinstance(self.check, Included) else self.runnable

    @property
    def is_plain(self) -> bool:
        """Whether it is another spec whose score is the weighted mean of checks that all run on every row."""
        check = self.check
        return isinstance(check, Included) and (
            not check.is_native or is_plain_mean(self.runnable, check.combine, check.range)
        )

    def within(self, limits: Limits) -> "CheckSpec":
        """Return a copy with the limits of a run, which name the check; ``limits.check`` is what its name begins with."""
        own = replace(limits, check=limits.check + self.id)
        return replace(
            self,
            check=self.check and self.check.within(own),
            subject=self.subject and self.subject.within(own),
            when=self.when and self.when.within(own),
            parts=tuple(part.within(limits) for part in self.parts),
        )

    def nodes(self) -> Iterator["CheckSpec"]:
        """Yield this check and, of a group, all checks in it: a group before its checks."""
        yield self
        for part in self.parts:
            yield from part.nodes()

    @property
    def readers(self) -> tuple["CheckSpec", ...]:
        """This check and, if a check decides when it runs, that one."""
        return (self,) if self.when is None or self.when.check is None else (self, self.when.check)

    @property
    def references(self) -> list[Reference]:
        """The values that rows bring."""
        return [reference for _, reference in self.named_references]

    @property
    def named_references(self) -> list[tuple[str, Reference]]:
        """The values that rows bring, each with the field of the spec that asks for it: a param, ``on`` or ``when``."""
        named = [] if self.check is None else [*self.check.traits.references]
        if self.subject is not None and self.subject.source is not None:
            named.append(("on", self.subject.source.reads))
        if self.when is not None and self.when.reference is not None:
            named.append(("when", self.when.reference))
        return named

    @property
    def depth(self) -> int:
        """How deep groups nest in it; 0 for a single check."""
        return 1 + max((part.depth for part in self.parts), default=0) if self.parts else 0

    @property
    def words(self) -> str:
        """What holds when the check passes, as a clause."""
        if self.check is None:
            return self.type
        claims = [part.words for part in self.runnable]
        claim = self.check.claim() if self.group is None else self.group.claim_of(claims)
        return f"not ({claim})" if self.negate else claim


def titled(name: str, description: str) -> str:
    """Return what people call a check or a verifier, on one line; ``""`` if its spec says nothing."""
    return ": ".join(" ".join(text.split()) for text in (name, description) if text)


def runs_as(spec: CheckSpec) -> str:
    """Return which engine runs a check, and why; of one that is skipped, its note."""
    if spec.check is None:
        return spec.note
    facts = facts_of(spec.check)
    if answers(facts):
        return f"kernel: {forms(facts)}"
    why = why_no_fact(facts) if is_on() else ""
    return spec.check.explain() + (f" (no kernel: {why})" if why else "")


_READ_ONLY = ("path", "parts", "gold_chain", "outline", "name", "label", "local")
"""Fields of a check as it is read that its ``CheckSpec`` has not, or not in this form."""


def counted_checks(specs: Iterable[CheckSpec]) -> tuple[CheckSpec, ...]:
    """Return the checks that make a score: those with a weight, gates and penalties."""
    return tuple(spec for spec in specs if spec.role != "weight" or spec.weight != 0)


def is_plain_mean(specs: Sequence[CheckSpec], combine: str, limits: tuple[float, float] | None) -> bool:
    """Return whether checks are combined as a weighted mean, and all run on every row."""
    runs_always = all(spec.role == "weight" and spec.when is None and not spec.parts for spec in specs)
    bounded = all(spec.check is not None and spec.check.traits.bounded for spec in specs)
    return runs_always and bounded and combine == "mean" and limits == (0.0, 1.0)


def check_spec(fields: Mapping[str, Any], above: tuple[str, ...] = ()) -> CheckSpec:
    """Return the check that a ``SpecReader`` has read."""
    condition: Condition | None = fields.get("when")
    inside = above if condition is None else (*above, fields["id"])
    outline = dict(fields.get("outline", {}))
    if condition is not None and condition.reference is None:
        decider = check_spec({**condition.operand, "id": f"{fields['id']}.when", "missing_gold": "fail"})
        shown = {"type": decider.type, "negate": decider.negate, "params": decider.params, **decider.outline}
        condition = replace(
            condition,
            operand=None,
            check=decider,
            outline={"check": shown} | ({"not": True} if condition.negated else {}),
        )
    if condition is not None:
        outline["when"] = condition.outline
    given = {name: value for name, value in fields.items() if name not in _READ_ONLY}
    parts = tuple(check_spec(part, inside) for part in fields.get("parts", ()))
    given |= {"when": condition, "outline": outline, "above": above, "parts": parts, "name": fields.get("label", "")}
    return CheckSpec(**given)
