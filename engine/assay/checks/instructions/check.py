"""The checks for the instructions of IFEval that a prompt gives, and for the language of a text."""

from collections.abc import Sequence
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from assay.checks.base import Check, Columns, Example, GoldKind, Row, Traits, identity
from assay.checks.instructions.extras import check_language, detected
from assay.checks.instructions.instructions import (
    IDS,
    KWARGS,
    PROMPT,
    REPEAT_PROMPT,
    InstructionTask,
    read_task,
)
from assay.checks.libraries import PUNKT
from assay.checks.pairs import PAIR_ANSWER, PairCheck, in_columns
from assay.errors import describe_error
from assay.expressions.shared_columns import SharedColumn, distinct_rows, encoded, exactly, text
from assay.system.memory import uncollected
from assay.values.params import Params

JOINT = "; "
_WORDS = {IDS: ["length_constraints:number_words"], KWARGS: [{"relation": "at least", "num_words": 3}]}
_TWO = {IDS: ["punctuation:no_comma", "detectable_format:title"], KWARGS: [{}, {}]}


class IFEvalParams(Params):
    """How strictly the instructions are read."""

    mode: Literal["strict", "loose"] = Field(
        default="strict",
        description="`loose`: it is enough that the text follows without its first line, its last, or both, or without stars.",
    )


class IFEval(Check):
    """The share of the row's instructions that the output follows, by the 25 definitions of IFEval (arXiv:2311.07911).

    The columns ``instruction_id_list`` and ``kwargs`` name them, as lists or as JSON text; where ``combination:repeat_prompt`` has
    no ``prompt_to_repeat``, the column ``prompt`` is repeated. ``threshold: 1`` is the accuracy at the level of prompts. A row with an
    unknown instruction, or without an argument that one needs, scores 0.0 and fills ``error``.

    20 instructions need nothing. ``response_language``, ``english_capital``, ``english_lowercase``, ``number_sentences`` and
    ``capital_word_frequency`` need ``pip install 'assay-rollouts[ifeval]'``, the last two also ``python -m nltk.downloader punkt_tab``.
    """

    type = "ifeval"
    runs_as = "Python, once for each distinct text and its instructions"
    words = ("follows the instructions", "")
    graded = True
    traits = Traits(
        reads=(IDS,),
        may_read=(KWARGS, PROMPT),
        passed_through=(PROMPT,),
        separator=JOINT,
        libraries={"langdetect": (), "nltk": (), PUNKT: ()},
    )
    Params = IFEvalParams
    params: IFEvalParams
    examples = (
        Example("Three short words.", 1.0, columns=_WORDS),
        Example("Two words", 0.0, columns=_WORDS),
        Example("<<Title>>, with a comma", 0.5, columns=_TWO),
        Example("Sure, here it is:\n<<Title>>", 0.5, columns=_TWO),
        Example("Sure, here it is:\n<<Title>>", 1.0, {"mode": "loose"}, columns=_TWO),
        Example("anything", 0.0, columns={IDS: ["punctuation:no_such"], KWARGS: [{}]}),
    )

    def row(self, row: Row) -> float:
        return self._judged(row["completion"], read_task(row, self.limits))[0]

    def reason(self, row: Row) -> str:
        return self._judged(row["completion"], read_task(row, self.limits))[1]

    def _judged(self, value: str, task: InstructionTask) -> tuple[float, str]:
        shortfalls = task.shortfalls(value, loose=self.params.mode == "loose")
        followed = shortfalls.count("")
        return followed / len(shortfalls), JOINT.join(dict.fromkeys(filter(None, shortfalls)))

    def columns(self) -> Columns:
        def build(schema: pl.Schema) -> pl.Expr:
            parts = {name: exactly(name) for name in (IDS, KWARGS, PROMPT) if name in schema}
            if PROMPT in parts and schema.get(IDS) == pl.List(pl.String):
                # no other instruction reads the prompt, of which there are more than of tasks
                parts[PROMPT] = pl.when(parts[IDS].list.contains(REPEAT_PROMPT)).then(parts[PROMPT])
            task = pl.struct(*parts.values()) if parts else pl.struct(pl.lit(None).alias(IDS))
            return pl.map_batches([text(), task], self._of_columns, return_dtype=PAIR_ANSWER, is_elementwise=True)

        return Columns.of(SharedColumn(f"ifeval:{identity(self)}", build).col)

    @uncollected()
    def _of_columns(self, columns: Sequence[pl.Series]) -> pl.Series:
        texts, which_text = encoded(columns[0])
        distinct, which_task = distinct_rows(columns[1])

        def task_or_error(row: dict[str, Any]) -> InstructionTask | str:
            try:
                return read_task(row, self.limits)
            except Exception as error:  # noqa: BLE001  (the error of each row that has it)
                return describe_error(error)

        values, tasks = texts.to_list(), [*map(task_or_error, distinct.to_list())]
        stop = None if self.limits is None else self.limits.stop
        answers: dict[tuple[int | None, int], tuple[float | None, str | None, str | None]] = {}
        pairs = [*zip(which_text.to_list(), which_task.to_list(), strict=True)]
        for at, number in dict.fromkeys(pairs):
            task = tasks[number]
            if at is None:
                answers[at, number] = None, None, None
                continue
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            answers[at, number] = (
                (0.0, task, task) if isinstance(task, str) else PairCheck.answered(self._judged, values[at], task)
            )
        return in_columns([answers[pair] for pair in pairs], PAIR_ANSWER).alias(columns[0].name)


class LanguageParams(Params):
    """The language."""

    is_: str = Field(alias="is", description="A code of langdetect, such as `en`, `de` or `zh-cn`.")

    @field_validator("is_")
    @classmethod
    def _known(cls, language: str) -> str:
        return check_language(language)


class Language(PairCheck):
    """The output is in a language, as ``langdetect`` with seed 0 finds; text of which it cannot tell the language passes.

    Needs ``pip install 'assay-rollouts[ifeval]'``.
    """

    type = "language"
    runs_as = "Python: langdetect, once for each distinct text"
    words = ("is in the language {check.params.is_}", "")
    graded = False
    traits = Traits(libraries={"langdetect": ()})
    golds = GoldKind("is_")
    Params = LanguageParams
    params: LanguageParams
    examples = (
        Example("Where is the nearest railway station?", 1.0, {"is": "en"}),
        Example("Wo ist der nächste Bahnhof, bitte?", 1.0, {"is": "de"}),
        Example("Wo ist der nächste Bahnhof, bitte?", 0.0, {"is": "en"}),
        Example("42!", 1.0, {"is": "fr"}),
    )

    def judge(self, value: str, gold: Any) -> tuple[float, str]:
        answer = detected(value)
        return float(answer in (None, gold)), f"the language is {answer}, {gold} wanted"
