"""Verifier classes: rewards with their own configuration, named by the ``kind`` of a spec.

    @assay.register_verifier("length_band")
    class LengthBand:
        name = "length_band"
        Config = LengthConfig                      # a pydantic model with extra="forbid"
        def __init__(self, *, target_len=100, tolerance=20): ...
        def verify(self, *, prompt, completion, target) -> assay.VerificationResult: ...

A package can provide a class through the entry-point group ``assay.verifiers`` or ``evsys_sdk.verifiers``; it is loaded only when a spec
names it.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from assay.calls.limits import is_user_error
from assay.calls.places import defined_at, raised_at
from assay.errors import describe_error, did_you_mean

_GROUPS = ("assay.verifiers", "evsys_sdk.verifiers")
"""Entry-point groups of plug-ins: ours, and that of an SDK with the same interface."""

_RESERVED = ("native", "in_process", "function")


@dataclass
class VerificationResult:
    """A verifier class's result for one completion.

    Attributes:
        reward: Any finite number.
        info: Diagnostics, written to the output as JSON text and shown as feedback if the reward is below 1.
    """

    reward: float
    info: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Verifier(Protocol):
    """The interface of a verifier class.

    It may also have a Polars twin, ``verify_expr(self, *, prompt, completion)``: the same computation, from two String expressions
    to a struct expression with the fields ``reward`` (a number) and ``info`` (a struct).
    ``assay.testing.assert_verifier_conforms`` checks that the two agree.

    Attributes:
        name: Its name in the registry, used as the ``kind`` of a spec.
        Config: Pydantic model of its params, with ``extra="forbid"``; its fields are the keyword arguments of the class.
    """

    name: ClassVar[str]
    Config: ClassVar[type]

    def verify(self, *, prompt: str, completion: str, target: dict[str, Any]) -> VerificationResult:
        """Verify one completion.

        Args:
            prompt: The text the model saw; ``""`` if the rollouts have no ``prompt``.
            completion: The text the model wrote.
            target: Reference data of the row: its ``target``, else whichever it has of ``answer``, ``expected``, ``metadata`` and
                ``expected_output_schema``.
        """
        ...


_Class = TypeVar("_Class", bound=type)
_REGISTRY: dict[str, type] = {}


def register_verifier(name: str) -> Callable[[_Class], _Class]:
    """Register a verifier class under the ``kind`` that specs use.

    Raises:
        ValueError: The name is taken, reserved or not allowed.
        TypeError: The class is not a verifier.
    """
    if not isinstance(name, str):
        raise TypeError('register_verifier takes a name: @register_verifier("length_band")')

    def register(cls: _Class) -> _Class:
        _check(name, cls)
        registered = _REGISTRY.setdefault(name, cls)
        if registered is not cls:
            raise ValueError(
                f"The verifier {name!r} is already registered, by {registered.__module__}.{registered.__qualname__}."
            )
        return cls

    return register


def _check(name: str, cls: Any) -> None:
    if not name.strip() or "/" in name or not name.isprintable() or name in _RESERVED:
        raise ValueError(f"{name!r} cannot be the name of a verifier class.")
    verify: Any = getattr(cls, "verify", None)
    if not isinstance(cls, type) or not callable(verify):
        raise TypeError(f"{name}: a verifier is a class with a method `verify`; this is {cls!r}.")
    config = getattr(cls, "Config", None)
    if not (
        isinstance(config, type) and issubclass(config, BaseModel) and config.model_config.get("extra") == "forbid"
    ):
        raise TypeError(
            f'{cls.__qualname__}.Config must be a pydantic model with model_config = ConfigDict(extra="forbid").'
        )
    class_name = getattr(cls, "name", name)
    if class_name != name:
        raise ValueError(f"{cls.__qualname__}.name is {class_name!r}, but the class is registered as {name!r}.")
    if not (place := defined_at(inspect.unwrap(verify))):  # not written in Python
        return
    signature = inspect.signature(verify)
    is_function = inspect.isfunction(inspect.getattr_static(cls, "verify"))
    try:
        signature.bind(*([None] if is_function else []), prompt="", completion="", target="")
    except TypeError:
        raise TypeError(
            f"{name}: verify is called with the keywords prompt, completion and target; "
            f"this one takes {signature} ({place})."
        ) from None


def list_verifiers() -> list[str]:
    """Return the names of registered classes and installed plug-ins, without loading the plug-ins."""
    return sorted({*_REGISTRY, *(point.name for point in _plugins())})


def registered_configs() -> dict[str, Any]:
    """Return the pydantic models of the classes registered in this process, by name."""
    return {name: cls.Config for name, cls in sorted(_REGISTRY.items())}  # type: ignore[attr-defined]


def get_verifier(name: str, *, load: bool = True) -> type:
    """Return the class registered under a name, loading its plug-in if necessary.

    Args:
        name: The name.
        load: Whether to import a plug-in; otherwise one that is imported already counts.

    Raises:
        ValueError: No class has the name, two have it, or its plug-in cannot be loaded; the message says which.
    """
    installed = [point for point in _plugins() if point.name == name]
    points = [point for point in installed if load or point.module in sys.modules]
    if not points:
        if name in _REGISTRY:
            return _REGISTRY[name]
        if installed:
            raise ValueError(f'"{name}" is a plug-in, which no footer loads. Import it: --import {installed[0].module}')
        guess = did_you_mean(name, list_verifiers())
        names = ", ".join(("native", *list_verifiers()))
        raise ValueError(f'unknown kind "{name}". {guess + " " if guess else ""}Known: {names}.')
    if len(points) > 1:
        raise ValueError(f'several plug-ins provide the verifier "{name}": {"; ".join(map(_shown, points))}')
    before, (point,) = _REGISTRY.get(name), points
    try:
        cls: type = register_verifier(point.name)(point.load())
    except BaseException as exception:
        if not is_user_error(exception):
            raise
        place = raised_at(exception)
        problem = f"{describe_error(exception)}{f' ({place})' if place else ''}"
        raise ValueError(f"the plug-in {_shown(point)} cannot be loaded: {problem}") from exception
    if before is not None and before is not cls:
        where = f"{before.__module__}.{before.__qualname__}"
        raise ValueError(f'two verifiers are called "{name}": {where} and the plug-in {_shown(point)}')
    return cls


def _plugins() -> list[EntryPoint]:
    points = (point for group in _GROUPS for point in entry_points(group=group))
    return [*{(point.name, point.value): point for point in points}.values()]


def _shown(point: EntryPoint) -> str:
    dist = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"{point.name} = {point.value}{dist}"


class _FormatConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")

    has_think_reward: float = Field(0.5, allow_inf_nan=False, description="Added when <think> and </think> occur.")
    has_answer_reward: float = Field(0.5, allow_inf_nan=False, description="Added when <answer> and </answer> occur.")


@register_verifier("format_only")
class FormatOnly:
    """Rewards structure only: both think tags and both answer tags, anywhere in the completion."""

    name: ClassVar[str] = "format_only"
    Config: ClassVar[type] = _FormatConfig

    def __init__(self, *, has_think_reward: float = 0.5, has_answer_reward: float = 0.5) -> None:
        self.has_think_reward = has_think_reward
        self.has_answer_reward = has_answer_reward

    def verify(self, *, prompt: str, completion: str, target: dict[str, Any]) -> VerificationResult:
        """Return the sum of the rewards of the tags that occur."""
        del prompt, target
        has_think = "<think>" in completion and "</think>" in completion
        has_answer = "<answer>" in completion and "</answer>" in completion
        reward = (self.has_think_reward if has_think else 0.0) + (self.has_answer_reward if has_answer else 0.0)
        return VerificationResult(reward, {"has_think": has_think, "has_answer": has_answer})

    def verify_expr(self, *, prompt: pl.Expr, completion: pl.Expr) -> pl.Expr:
        """``verify`` as an elementwise expression."""
        del prompt
        has_think, has_answer = (
            completion.str.contains(f"<{tag}>", literal=True) & completion.str.contains(f"</{tag}>", literal=True)
            for tag in ("think", "answer")
        )
        reward = pl.when(has_think).then(self.has_think_reward).otherwise(0.0) + pl.when(has_answer).then(
            self.has_answer_reward
        ).otherwise(0.0)
        return pl.struct(reward=reward, info=pl.struct(has_think=has_think, has_answer=has_answer))
