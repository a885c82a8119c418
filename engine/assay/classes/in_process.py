"""The verifier that a row carries: the name of a registered function, and what the row brings for it."""

from typing import Any, ClassVar

from assay.classes.registry import VerificationResult
from assay.functions.registry import get
from assay.names import EXPECTED, FN_NAME, IN_PROCESS, PARAMS


class InProcessVerifier(dict[str, Any]):
    """A reference to a registered function with a row's gold and params: the value of the column ``verifier``.

    It is the dict that a row has in JSON, so it goes wherever a row goes; the function stays in the registry of ``assay.fns``.

    Args:
        fn_name: The name of the function; ``""`` for the run's ``verifier_name``.
        expected: The gold.
        params: Options of the function.

    Example:
        >>> import assay
        >>> verifier = assay.InProcessVerifier(fn_name="contains", expected="4")
        >>> assay.score([{"completion": "2 + 2 = 4", "verifier": verifier}])["reward"].to_list()
        [1.0]
    """

    kind: ClassVar[str] = IN_PROCESS

    def __init__(self, fn_name: str = "", expected: Any = None, params: dict[str, Any] | None = None) -> None:
        super().__init__({"kind": IN_PROCESS, FN_NAME: fn_name, EXPECTED: expected, PARAMS: dict(params or {})})

    @property
    def fn_name(self) -> str:
        """The name of the function."""
        return str(self[FN_NAME])

    @property
    def expected(self) -> Any:
        """The gold."""
        return self[EXPECTED]

    @property
    def params(self) -> dict[str, Any]:
        """Options of the function."""
        params: dict[str, Any] = self[PARAMS]
        return params

    def verify(self, *, prompt: str, completion: str, target: dict[str, Any]) -> VerificationResult:
        """Call the function; ``prompt`` and ``target`` are not read.

        Raises:
            ValueError: No function has that name.
        """
        del prompt, target
        return VerificationResult(get(self.fn_name)(completion, self.expected, self.params))
