"""Rows of a result as a document."""

from collections.abc import Mapping
from typing import Any

from assay.insight.evidence.documents import checks_table, quotes
from assay.writing.documents import Document, Lines, Quote, Table
from assay.writing.numbers import number


def cards_document(headline: str, cards: Mapping[str, Any]) -> Document:
    """Return rows, of their ``as_json()``: each with a table of its checks, its gold, and the texts that were scored."""
    blocks: list[Lines | Table | Quote] = [Lines([headline, *(f"note: {note}" for note in cards["notes"])])]
    return Document("assay show", [*blocks, *(block for card in cards["cards"] for block in _card(card))])


def _card(card: Mapping[str, Any]) -> list[Lines | Table | Quote]:
    keys = [f"{name} {'–' if value is None else value}" for name, value in card["key"].items()]
    heading = " · ".join([f"row {card['row']:,}", *keys, f"reward {number(card['reward'])}", card["state"]])
    lines = [*card["feedback"], *(f"error: {line}" for line in card["error"])]
    lines += [f"{name}: {gold}" for name, gold in card["gold"].items()]
    texts = quotes(card["checks"], {"completion": card["text"], **card.get("sources", {})})
    return [checks_table(card["checks"], heading), *([Lines(lines)] if lines else []), *texts]
