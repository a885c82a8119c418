"""The cases of a check, of the golds of rows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from assay.errors import counted
from assay.insight.evidence.reader import CheckReader
from assay.insight.forging.carriers import carrier, in_place_of
from assay.insight.forging.cases import cases_of, text_of
from assay.insight.forging.made import Made


class Making:
    """Makes the cases of a check: ``forged_reader``.

    Args:
        reader: The check.
        rows: The rows with its golds.
        texts: Returns, by the place of a row, texts in which a case may stand in place of its gold; asked where no text is known that
            the steps of the check read.
        skip: Forms that are not made.

    Attributes:
        lacking: The number of golds without such a text.
        unfit: The number of golds of a form that no case is made of.
    """

    def __init__(
        self,
        reader: CheckReader,
        rows: Sequence[Mapping[str, Any]],
        texts: Callable[[], Mapping[int, Sequence[str]]],
        skip: Collection[str] = (),
    ) -> None:
        self._reader, self._rows, self._skip = reader, rows, skip
        subject, self._wrap = reader.spec.subject, None
        if reader.subject_source is None or reader.type == "tool_calls":
            self._wrap = carrier(() if subject is None else subject.chain.steps)
        self._texts: Mapping[int, Sequence[str]] = {} if self._wrap is not None else texts()
        self.lacking = self.unfit = 0

    def cases(self) -> Iterator[tuple[int, str, Made]]:
        """Yield the place of each row on which the check runs, its gold as text, and a case; the cases of a row differ as texts."""
        condition = self._reader.spec.when
        for place, row in enumerate(self._rows):
            if not (condition is None or condition.check is not None or condition.row(row)):
                continue
            golds = [gold for gold in self._reader.golds(row) if gold is not None]
            if not golds:
                continue
            gold = text_of(golds[0])
            wrap = self._wrap or in_place_of(gold, self._texts.get(place, ()))
            made = cases_of(self._reader, golds, wrap or str)
            if made is None:
                self.unfit += 1
            elif wrap is None:
                self.lacking += 1
            else:
                yield from ((place, gold, case) for case in self._distinct(made))

    def _distinct(self, made: Iterator[Made]) -> Iterator[Made]:
        seen = set[str]()
        for case in made:
            if case.form in self._skip or (isinstance(case.completion, str) and case.completion in seen):
                continue
            if isinstance(case.completion, str):
                seen.add(case.completion)
            yield case

    def notes(self, name: str) -> Iterator[str]:
        """Yield which golds have no cases, and why."""
        if self.lacking:
            known, unknown = (
                "no passing rollout has the gold once",
                "no text is known that its steps read; name rollouts",
            )
            yield f"{name}: {counted(self.lacking, 'gold')} not forged: {known if self._texts else unknown}"
        if self.unfit:
            yield f"{name}: {counted(self.unfit, 'gold')} not forged: not of the form that cases are made of"
