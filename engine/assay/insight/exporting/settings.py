"""What a recipe can be told: each setting with its default, and what it accepts."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from assay.errors import UsageError, did_you_mean, listed
from assay.insight.exporting.targets import TARGETS
from assay.system.documents import read_document

RECIPES = ("sft", "dpo", "kto", "prompts")
_FILES = (".yaml", ".yml", ".json", ".toml")

Settings = Mapping[str, Any]
"""All settings of a recipe by name, and ``recipe``."""


class Setting(NamedTuple):
    """A setting.

    Attributes:
        default: Its value where nothing is said; ``others`` has those of recipes that differ.
        expected: What it accepts, for messages.
        fits: Whether a value can be used.
        recipes: The recipes that have it.
    """

    default: Any
    expected: str
    fits: Callable[[Any], bool]
    recipes: tuple[str, ...] = RECIPES
    others: Mapping[str, Any] = {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))  # noqa: PLR2004
    return is_pair and 0 <= value[0] <= value[1] <= 1


def _words(default: str, *words: str, recipes: tuple[str, ...] = RECIPES) -> Setting:
    return Setting(default, " or ".join(words), words.__contains__, recipes)


def _flag(default: bool, recipes: tuple[str, ...] = RECIPES) -> Setting:
    return Setting(default, "true or false", lambda value: isinstance(value, bool), recipes)


def _rows(default: int, *recipes: str) -> Setting:
    return Setting(
        default, "a number of rows, at least 1, or all", lambda value: value == "all" or _is_whole(value, 1), recipes
    )


_TEXTS = ("sft", "dpo", "kto")
_LENGTH = Setting(
    None, "a length, at least 0, or none", lambda value: value is None or (_is_number(value) and value >= 0), _TEXTS
)

SETTINGS: Mapping[str, Setting] = {
    "target": _words("trl", *TARGETS),
    "format": _words("messages", "messages", "text"),
    "errors": _words("exclude", "exclude", "keep"),
    "truncated": _words("exclude", "exclude", "keep", recipes=_TEXTS),
    "mixed": _words("exclude", "exclude", "keep"),
    "reasoning": _words("exclude", "exclude", "drop", recipes=_TEXTS),
    "min_length": _LENGTH,
    "max_length": _LENGTH,
    "pass_rate": Setting((0, 1), "two shares from 0 to 1, such as 0.2,0.8", _is_range, others={"prompts": (0.2, 0.8)}),
    "min_rollouts": Setting(
        1, "a number of rows, at least 1", lambda value: _is_whole(value, 1), others={"prompts": 4}
    ),
    "passing": _flag(default=True, recipes=("sft",)),
    "min_reward": Setting(None, "a number, or none", lambda value: value is None or _is_number(value), ("sft",)),
    "best": _rows(4, "sft"),
    "by": _words("reward", "reward", "length", "row", recipes=("sft",)),
    "answer": Setting(None, "a column, or none", lambda value: value is None or isinstance(value, str), ("sft",)),
    "margin": Setting(0.25, "a number, at least 0", lambda value: _is_number(value) and value >= 0, ("dpo",)),
    "pairs": _rows(1, "dpo"),
    "length_ratio": Setting(
        1.5, "a ratio, at least 1, or none", lambda value: value is None or (_is_number(value) and value >= 1), ("dpo",)
    ),
    "balance": _flag(default=False, recipes=("dpo",)),
    "per_label": _rows(4, "kto"),
    "order": _words("row", "row", "easy", "hard", recipes=("prompts",)),
    "validation": Setting(0, "a share from 0 to below 1", lambda value: _is_number(value) and 0 <= value < 1),
    "seed": Setting(0, "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "trace": _flag(default=True),
}


def settled(recipe: Any, given: Settings) -> dict[str, Any]:
    """Return all settings of a recipe: its name, the path of a file, or a mapping; what is ``given`` wins."""
    told = {"recipe": recipe} if recipe in RECIPES else dict(_told(recipe))
    name = told.pop("recipe", None)
    if name not in RECIPES:
        fact = (
            f"recipe {name}: expected {', '.join(RECIPES)}, or a file." if name is not None else "recipe: is missing."
        )
        raise UsageError(fact, did_you_mean(str(name), RECIPES) or "For example: recipe: sft")
    told |= given
    known = {key: setting for key, setting in SETTINGS.items() if name in setting.recipes}
    for key in told:
        if key not in known:
            others = [other for other in RECIPES if key in SETTINGS and other in SETTINGS[key].recipes]
            hint = f"It is a setting of {', '.join(others)}." if others else did_you_mean(str(key), known)
            raise UsageError(f"{key}: is no setting of {name}.", hint or f"Settings: {listed([*known])}")
    # YAML and TOML have no word `none`
    told = {key: None if value == "none" and known[key].fits(None) else value for key, value in told.items()}
    settings = {key: setting.others.get(name, setting.default) for key, setting in known.items()} | told
    for key, value in settings.items():
        if not (isinstance(value, str | int | float | list | tuple | None) and known[key].fits(value)):
            guess = did_you_mean(value, known[key].expected.split(" or ")) if isinstance(value, str) else ""
            raise UsageError(f"{key} {value}: expected {known[key].expected}.", guess)
    ordered = {key: list(settings[key]) if key == "pass_rate" else settings[key] for key in known}
    return {"recipe": name} | ordered


def _told(recipe: Any) -> Mapping[str, Any]:
    """Return what a recipe says beside its name, from a mapping or a file."""
    if isinstance(recipe, Mapping):
        return recipe
    if not isinstance(recipe, str | Path):
        raise UsageError(f"A recipe is a name, a path or a mapping, not {type(recipe).__name__}.")
    path = Path(recipe)
    if path.suffix.lower() not in _FILES:
        raise UsageError(
            f"recipe {recipe}: expected {', '.join(RECIPES)}, or a file.", did_you_mean(str(recipe), RECIPES)
        )
    data = read_document(path).data
    if not isinstance(data, Mapping):
        raise UsageError(f"{path}: expected a mapping of settings.", "For example: recipe: dpo")
    return data
