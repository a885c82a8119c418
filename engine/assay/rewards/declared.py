"""What a reward function declares about itself: ``@assay.reward``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, overload

_NAME = "__assay_reward__"
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declared:
    """What ``@assay.reward`` declares."""

    batched: bool = False
    metrics: tuple[str, ...] = ()


@overload
def reward(func: _F) -> _F: ...


@overload
def reward(*, batched: bool = False, metrics: Sequence[str] = ()) -> Callable[[_F], _F]: ...


def reward(func: Any = None, *, batched: bool = False, metrics: Sequence[str] = ()) -> Any:
    """Declare how a reward function is called and what it returns; the function stays as it is.

        @assay.reward(metrics=["words"])
        def short(completion):
            words = len(completion.split())
            return {"score": float(words < 50), "reason": f"{words} words", "words": words}

    Args:
        func: The function.
        batched: It takes lists, as TRL calls it: ``prompts``, ``completions`` and columns by their names; and returns a list with a
            number, ``(number, reason)``, a mapping, or None (it does not apply) for each rollout. A batch has any rollouts, and no
            rollout's reward may depend on the others.
        metrics: Names of the metrics in its mappings; each becomes a member of weight 0, in ``score/<function>/<metric>``.

    Raises:
        TypeError: ``metrics`` is not a list of names, or the function takes no attributes.
        ValueError: A name cannot be that of a metric.
    """
    if isinstance(metrics, str):
        raise TypeError(f"metrics is a list of names: metrics=[{metrics!r}]")
    names = tuple(dict.fromkeys(metrics))
    for name in names:
        if (
            not isinstance(name, str)
            or not name
            or "/" in name
            or not name.isprintable()
            or name in ("score", "reason")
        ):
            raise ValueError(f"{name!r} cannot be the name of a metric.")
    if func is None:
        return partial(_declare, Declared(batched, names))
    return _declare(Declared(batched, names), func)


def _declare(what: Declared, func: Any) -> Any:
    if not callable(func):
        raise TypeError(f"a reward function must be callable, got {type(func).__name__}: {func!r}")
    try:
        setattr(func, _NAME, what)
    except AttributeError:
        raise TypeError(f"{func!r} takes no attributes; wrap it in a function") from None
    return func


def declared(func: Any) -> Declared:
    """Return what a function declares; for a ``functools.partial``, what its function does."""
    return _declaration(func) or Declared()


def is_declared(func: Any) -> bool:
    """Return whether a function is declared with ``@assay.reward``."""
    return callable(func) and _declaration(func) is not None


def innermost(func: Any) -> Any:
    """Return the function of nested ``functools.partial``."""
    while isinstance(func, partial):
        func = func.func
    return func


def _declaration(func: Any) -> Declared | None:
    what = getattr(innermost(func), _NAME, None)
    return what if isinstance(what, Declared) else None
