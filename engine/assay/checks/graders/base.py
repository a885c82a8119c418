"""What all checks of graders are. It is apart from them, for they import all of the graders."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from assay.checks.base import Check
from assay.values.params import Params

if TYPE_CHECKING:
    from assay.checks.graders.table import Grader

OWN_FIELDS = ("name", "value", "options", "version", "anyVersion")
"""Fields of a grader beside those of every check."""


class GraderParams(Params):
    """Which grader, what it compares with, and its options."""

    name: str = Field(description="`tool.function`, as the tool spells it: `inspect.match`. `assay graders` lists all.")
    value: Any = Field(
        default=None, description="The gold, `{column: …}`, `{template: …}`, or a list, of which the best counts."
    )
    options: dict[str, Any] = Field(default={}, description="The options of the tool's function, with its defaults.")
    version: str | None = Field(default=None, description="The version of the tool that the spec was written for.")
    any_version: bool = Field(
        default=False, description="Run it with other versions of the libraries that decide verdicts, with a warning."
    )


class GraderCheck(Check):
    """The scoring function of another tool, by name, at one version, with the same number on every row.

    `assay graders` lists them.
    """

    type = "grader"
    graded = True
    Params = GraderParams
    params: GraderParams

    @property
    def grader(self) -> "Grader":
        """The grader."""
        from assay.checks.graders.table import GRADERS

        return GRADERS[self.params.name]
