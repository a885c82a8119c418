"""The check for the language of a text."""

from typing import Any, ClassVar

from pydantic import Field, field_validator

from assay.checks.base import Example, Params
from assay.checks.instructions.extras import check_language, detected
from assay.checks.pairs import PairCheck


class LanguageParams(Params):
    """The language."""

    is_: str = Field(alias="is", description="A code of langdetect, such as `en`, `de` or `zh-cn`.")

    @field_validator("is_")
    @classmethod
    def _known(cls, language: str) -> str:
        return check_language(language)


class Language(PairCheck):
    """The output is in a language, as ``langdetect`` with seed 0 finds; text of which it cannot tell the language passes.

    Needs ``pip install 'assay[ifeval]'``.
    """

    type = "language"
    claim_words = "is in the language {check.params.is_}"
    graded = False
    libraries: ClassVar = {"langdetect": ()}
    gold = "is_"
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

    def explain(self) -> str:
        return "Python: langdetect, once for each distinct text"
