"""What trainers read: the columns of each target and recipe, and what form of a prompt or a completion it cannot take."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from assay.errors import UsageError

MESSAGE = pl.Struct({"role": pl.String, "content": pl.String})
MESSAGES = pl.List(MESSAGE)
_TURN = pl.Struct({"from": pl.String, "value": pl.String})
_SPEAKERS = {"system": "system", "user": "human", "assistant": "gpt"}

PROMPT, COMPLETION, REJECTED = pl.col("prompt"), pl.col("completion"), pl.col("rejected")
LABEL, GOLD, SOURCE, ABILITY = pl.col("label"), pl.col("gold"), pl.col("data_source"), pl.col("ability")


def _answer(text: pl.Expr) -> pl.Expr:
    """Return a text as a message of the assistant."""
    return pl.struct(pl.lit("assistant").alias("role"), text.alias("content"))


def _list(message: pl.Expr) -> pl.Expr:
    return pl.concat_list(message)


def _turn(text: pl.Expr) -> pl.Expr:
    return pl.struct(pl.lit("gpt").alias("from"), text.alias("value"))


def _turns(messages: pl.Expr) -> pl.Expr:
    role, content = (pl.element().struct.field(name) for name in ("role", "content"))
    return messages.list.eval(pl.struct(role.replace(_SPEAKERS).alias("from"), content.alias("value")))


def _ranked() -> pl.Expr:
    parts = [
        pl.struct(pl.lit(rank, pl.Int64).alias("rank"), _list(_answer(text)).alias("completion"))
        for rank, text in enumerate((COMPLETION, REJECTED))
    ]
    return pl.concat_list(parts)


_M, _A, _R = PROMPT, _list(_answer(COMPLETION)), _list(_answer(REJECTED))
_DIALOGUE = pl.concat_list(PROMPT, _answer(COMPLETION))
_TOLD = PROMPT.list.first().struct.field("content")

Layout = dict[str, pl.Expr]

_PAIR: Layout = {"prompt": _M, "chosen": _A, "rejected": _R}
_PAIR_OF_TEXTS: Layout = {"prompt": _TOLD, "chosen": COMPLETION, "rejected": REJECTED}
_KTO: Layout = {"prompt": _TOLD, "completion": COMPLETION, "label": LABEL}
_CONVERSATIONS: Layout = {"conversations": _turns(_DIALOGUE)}


class Target(NamedTuple):
    """A trainer.

    Attributes:
        version: The version whose columns these are.
        messages: The columns of each recipe that it trains on, from ``PROMPT`` and the other columns.
        text: Likewise, where it takes texts.
        files: The kinds of files that it reads.
        forms: Phrases of ``FORMS`` that it adds, by recipe.
    """

    version: str
    messages: Mapping[str, Layout]
    text: Mapping[str, Layout] = {}
    files: tuple[str, ...] = (".parquet", ".jsonl")
    forms: Mapping[str, tuple[int, ...]] = {}


IS_MESSAGES, NOT_PLAIN, RENDERED, ASSISTANT_TURNS, NOT_ALTERNATING, NOT_ONE_MESSAGE, NOT_ONE_TEXT, MORE_THAN_TEXT = (
    range(1, 9)
)
FORMS = (
    "",
    "the prompt is messages",
    "the prompt is not plain messages",
    "the prompt is a rendered template",
    "the prompt has assistant turns",
    "the turns do not alternate",
    "the prompt is not one user message",
    "the completion is not one text message",
    "the completion has more than text",
)
"""Why a row has no form that the target reads; the first that holds is the reason."""

TARGETS: Mapping[str, Target] = {
    "trl": Target(
        "1.16.0",
        {
            "sft": {"prompt": _M, "completion": _A},
            "dpo": _PAIR,
            "kto": {"prompt": _M, "completion": _A, "label": LABEL},
            "prompts": {"prompt": _M, "answer": GOLD},
        },
        {
            "sft": {"prompt": _TOLD, "completion": COMPLETION},
            "dpo": _PAIR_OF_TEXTS,
            "kto": _KTO,
            "prompts": {"prompt": _TOLD, "answer": GOLD},
        },
    ),
    "verl": Target(
        "0.9.1",
        {
            "sft": {"messages": _DIALOGUE},
            "prompts": {
                "data_source": SOURCE,
                "prompt": _M,
                "ability": ABILITY,
                "reward_model": pl.struct(pl.lit("rule").alias("style"), GOLD.alias("ground_truth")),
                "extra_info": pl.struct("split", "index"),
            },
        },
        files=(".parquet",),
        forms={"sft": (ASSISTANT_TURNS,)},
    ),
    "openrlhf": Target(
        "0.11.2",
        {
            "sft": {"input": _M, "output": _A},
            "dpo": _PAIR,
            "prompts": {"input": _M, "label": GOLD, "datasource": SOURCE},
        },
        {
            "sft": {"input": _TOLD, "output": COMPLETION},
            "dpo": _PAIR_OF_TEXTS,
            "prompts": {"input": _TOLD, "label": GOLD, "datasource": SOURCE},
        },
    ),
    "nemo-rl": Target(
        "566c178",
        {
            "sft": {"messages": _DIALOGUE},
            "dpo": {"context": _M, "completions": _ranked()},
            "prompts": {"input": _TOLD, "output": GOLD},
        },
        files=(".jsonl",),
        forms={"sft": (ASSISTANT_TURNS,), "prompts": (NOT_ONE_MESSAGE,)},
    ),
    "axolotl": Target(
        "0.19.0",
        {
            "sft": {"messages": _DIALOGUE},
            "dpo": {"messages": _M, "chosen": _answer(COMPLETION), "rejected": _answer(REJECTED)},
        },
        {"kto": _KTO},
        forms={"sft": (ASSISTANT_TURNS,)},
    ),
    "llamafactory": Target(
        "0.9.5",
        {
            "sft": _CONVERSATIONS,
            "dpo": {"conversations": _turns(_M), "chosen": _turn(COMPLETION), "rejected": _turn(REJECTED)},
            "kto": _CONVERSATIONS | {"label": LABEL},
        },
        forms={
            "sft": (ASSISTANT_TURNS, NOT_ALTERNATING),
            "dpo": (NOT_ALTERNATING,),
            "kto": (NOT_ALTERNATING,),
        },
    ),
}


def layout_of(settings: Mapping[str, Any]) -> Layout:
    """Return the columns of a recipe for its target; an error if that has none."""
    name, recipe, form = settings["target"], settings["recipe"], settings["format"]
    target = TARGETS[name]
    layouts = target.text if form == "text" else target.messages
    if recipe not in layouts:
        has = [f"{recipe} as messages" for recipe in target.messages] + [f"{recipe} as text" for recipe in target.text]
        raise UsageError(f"{name}: does not train on {recipe} as {form}.", f"It has {', '.join(has)}.")
    return layouts[recipe]


def forms_of_target(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the phrases of ``FORMS`` that exclude rows."""
    recipe = settings["recipe"]
    own = (NOT_PLAIN, RENDERED, *TARGETS[settings["target"]].forms.get(recipe, ()))
    of_prompt = (IS_MESSAGES,) if settings["format"] == "text" else own
    return of_prompt if recipe == "prompts" else (*of_prompt, NOT_ONE_TEXT, MORE_THAN_TEXT)
