"""The card of a training set: what was made, of what, by which settings, and what was left out."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from assay.errors import counted
from assay.insight.exporting.rows import Rows
from assay.insight.exporting.rules import REASONS
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import TARGETS
from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.numbers import count, number, percent

_RATES = ("0", "0-.2", ".2-.4", ".4-.6", ".6-.8", ".8-1", "1")
_FEW_PAIRS, _LOPSIDED = 20, 0.2


def card_of(
    rows: Rows, frame: pl.DataFrame, chosen: pl.DataFrame, settings: Settings, units: pl.Series, notes: list[str]
) -> dict[str, Any]:
    """Return the card, and add to the notes what the user should know of the examples."""
    reasons = dict(frame.group_by("reason").len().sort("reason").iter_rows())
    used = reasons.pop(0, 0)
    sides = chosen.select("side", unit=units.gather(frame["task"].gather(chosen["at"])))
    card: dict[str, Any] = {
        "export": 1,
        "recipe": dict(settings),
        "target": f"{settings['target']} {TARGETS[settings['target']].version}",
        "results": [_source(source.result) for source in rows.sources],
        "rows": frame.height,
        "used": used,
        "excluded": {REASONS[code]: number for code, number in reasons.items()},
        "examples": {side: sides.filter(side=side).height for side in ("train", "validation")},
        "units": {side: sides.filter(side=side)["unit"].n_unique() for side in ("train", "validation")},
        "pass_rates": _pass_rates(frame),
    }
    card |= _of_recipe(frame, chosen, settings, notes)
    return card | {"files": {}, "notes": list(dict.fromkeys(notes))}


def _source(result: Any) -> dict[str, Any]:
    return {
        "name": result.name,
        "root": (result.provenance.get("content") or {}).get("root"),
        "rows": result.rows,
        "verifiers": [{"id": verifier["id"], "sha256": verifier["sha256"]} for verifier in result.verifiers],
    }


def _pass_rates(frame: pl.DataFrame) -> dict[str, int]:
    groups = frame.select("group", "n", "c").filter(pl.col("n") >= 1).group_by("group").agg(pl.col("n", "c").first())
    rate = pl.col("c") / pl.col("n")
    inner = pl.sum_horizontal(rate >= edge for edge in (0.2, 0.4, 0.6, 0.8)) + 1
    bins = groups.select(pl.when(rate == 0).then(0).when(rate == 1).then(6).otherwise(inner).alias("bin"))["bin"]
    return {name: int((bins == at).sum()) for at, name in enumerate(_RATES)}


def _of_recipe(frame: pl.DataFrame, chosen: pl.DataFrame, settings: Settings, notes: list[str]) -> dict[str, Any]:
    if settings["recipe"] == "dpo":
        sign = (chosen["length"] - chosen["other_length"]).sign()
        numbers = {
            name: int((sign == own).sum()) for name, own in (("chosen_longer", 1), ("chosen_shorter", -1), ("equal", 0))
        }
        pairs = max(1, chosen.height)
        longer, shorter = numbers["chosen_longer"] / pairs, numbers["chosen_shorter"] / pairs
        if chosen.height >= _FEW_PAIRS and abs(longer - shorter) > _LOPSIDED:
            notes.append(
                f"the chosen text is longer in {percent(longer)} of the pairs and shorter in {percent(shorter)}: a model may learn length; the setting balance: true evens it"
            )
        return {"length": numbers}
    if settings["recipe"] == "kto":
        passed = frame["passed"].gather(chosen["at"])
        good, bad = int(passed.sum()), int(passed.not_().sum())
        rarer = round(max(good, bad) / min(good, bad), 2) if min(good, bad) else 1.0
        weights = {"desirable_weight": rarer if good < bad else 1.0, "undesirable_weight": rarer if bad < good else 1.0}
        return {"labels": {"desirable": good, "undesirable": bad, **weights}}
    return {}


_SPLITS = """---
configs:
- config_name: default
  data_files:
{files}
---

"""


def readme(card: Mapping[str, Any], splits: Mapping[str, str] | None) -> str:
    """Return the card as Markdown; in a folder it begins with the files of the splits, which are all that ``datasets`` then reads."""
    files = "\n".join(f"  - split: {split}\n    path: {name}" for split, name in (splits or {}).items())
    return (_SPLITS.format(files=files) if files else "") + card_document(card).markdown()


def card_document(card: Mapping[str, Any], *, whole: bool = True) -> Document:
    """Return a card for people; without ``whole``, only what its readers do not know."""
    facts = [headline(card), f"{counted(sum(card['units'].values()), 'unit')}: tasks that share no prompt with others"]
    facts += [
        f"{title}: {', '.join(f'{name} {number(value)}' for name, value in card[key].items())}"
        for key, title in (("length", "pairs"), ("labels", "labels"))
        if key in card
    ]
    facts += [f"files: {', '.join(card['files'])}"] if card["files"] else []
    notes = [f"note: {note}" for note in card["notes"]]
    excluded = [[name, count(rows)] for name, rows in card["excluded"].items()]
    sides = [[split, count(examples), count(card["units"][split])] for split, examples in card["examples"].items()]
    blocks: list[Lines | Table | Quote] = [
        Lines(facts + notes),
        *([Table({"reason": False, "rows": True}, excluded, "Excluded")] if excluded else []),
        Table({"split": False, "examples": True, "units": True}, sides, "Splits"),
    ]
    return Document("assay export", blocks + (_pedigree(card) if whole else []))


def _pedigree(card: Mapping[str, Any]) -> list[Lines | Table | Quote]:
    """Return the groups, the results and the settings that examples come from."""
    sources = [
        [
            source["name"],
            count(source["rows"]),
            source["root"] or "",
            ", ".join(own["sha256"] for own in source["verifiers"]),
        ]
        for source in card["results"]
    ]
    rates = [[name, count(groups)] for name, groups in card["pass_rates"].items()]
    settings = [[name, json.dumps(value)] for name, value in card["recipe"].items()]
    columns = {"result": False, "rows": True, "root": False, "verifiers": False}
    return [
        Table({"pass rate": False, "groups": True}, rates, "Groups"),
        Table(columns, sources, "Results").filled(),
        Table({"setting": False, "value": False}, settings, "Recipe"),
    ]


def headline(card: Mapping[str, Any]) -> str:
    """Return how many examples there are, of how many rows."""
    examples = sum(card["examples"].values())
    of = f"{count(card['used'])} of {counted(card['rows'], 'row')}"
    return f"{counted(examples, 'example')} for {card['recipe']['recipe']}, {card['target']}, from {of}"


def dataset_info(settings: Settings, splits: Mapping[str, str]) -> dict[str, Any]:
    """Return what LLaMA-Factory is told of each file."""
    columns = {"messages": "conversations"}
    if settings["recipe"] == "dpo":
        columns |= {"chosen": "chosen", "rejected": "rejected"}
    if settings["recipe"] == "kto":
        columns |= {"kto_tag": "label"}
    entry: dict[str, Any] = {"formatting": "sharegpt"} | ({"ranking": True} if settings["recipe"] == "dpo" else {})
    return {split: {"file_name": name, **entry, "columns": columns} for split, name in splits.items()}
