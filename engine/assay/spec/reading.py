"""What the readers of parts of a spec need of the reader of the whole."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from assay.system.documents import Place

__all__ = ["Reader"]


class Reader(Protocol):
    """The part of a ``SpecReader`` that others use; see there."""

    problems: list[str]
    strict: bool
    load_plugins: bool

    def problem(self, path: Place, message: str) -> None: ...

    def unknown(self, path: Place, allowed: tuple[str, ...]) -> None: ...

    def fields(
        self, data: Any, path: Place, allowed: tuple[str, ...], ignored: tuple[str, ...] = ()
    ) -> dict[str, Any] | None: ...

    def value(self, fields: Mapping[str, Any], path: Place, name: str, kind: type, default: Any) -> Any: ...

    def choice(self, fields: Mapping[str, Any], path: Place, name: str, choices: Sequence[str]) -> str: ...

    def number(self, fields: Mapping[str, Any], path: Place, default: float, lowest: float = 0.0) -> float: ...

    def check(self, data: Any, path: Place, depth: int = 0) -> dict[str, Any] | None: ...

    def included(self, path: Any, place: Place) -> dict[str, Any] | None: ...
