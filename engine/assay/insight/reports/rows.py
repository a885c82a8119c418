"""Rows of a result as a page shows them: lines of a list, and cards with the prompt and the other rows of the task."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.errors import InputError
from assay.expressions.completion import completion_text
from assay.expressions.json import loads
from assay.expressions.mixed import untyped, without_nulls
from assay.expressions.shared_columns import exactly
from assay.insight.originals import originals, some_rows
from assay.insight.probes import PROMPTS, prompt_of
from assay.insight.reports.index import Index
from assay.insight.reports.showing import Card, cards_of
from assay.insight.results import ROW, Result
from assay.names import COMPLETION
from assay.values.chats import chat_of
from assay.values.plain import json_data

Data = dict[str, Any]

_ASKED = (*PROMPTS, COMPLETION)
_MOST_OF_TASK = 16

_END = 150
"""Code points of each end of what is read and expected that are shown: the rest is in the text, where it is marked."""


def cards_data(
    result: Result, rows: Sequence[int], rollouts: Any = None, index: Index | None = None, *, text: bool = True
) -> tuple[Iterator[Data], str]:
    """Return cards of rows as JSON data, in order of ``rows``, each made when it is asked for; and a note if there are no texts, or ``""``.

    What is read and expected is cut: a check without steps reads the whole text. With an ``index`` of the result, cards have ``prompt``,
    ``messages`` and ``same_task``, too. Without ``text``, they have neither texts nor what is in them.
    """
    also = _ASKED if index is not None and text else ()
    found, why, rollouts_of = cards_of(result, rows, rollouts=rollouts, also=also, text=text)
    asked = {} if not also else _conversations(result, rows, rollouts, rollouts_of)
    same_task = {} if index is None else index.same_tasks(rows, _MOST_OF_TASK)

    def data_of(card: Card) -> Data:
        data: Data = json_data(card.as_json())
        for evidence in filter(None, (check["evidence"] for check in data["checks"])):
            evidence["read"] = evidence["read"] and _ends(evidence["read"])
            evidence["expected"] = [_ends(gold) for gold in evidence["expected"]]
        if index is not None:
            row = {name: _chat(asked.get(card.row, {}).get(name)) for name in _ASKED}
            data |= {"prompt": prompt_of(row), "messages": _messages(row), "same_task": json_data(same_task[card.row])}
        return data

    return map(data_of, found), why


def _ends(text: str) -> str:
    left_out = len(text) - 2 * _END
    return text if left_out <= 0 else f"{text[:_END]} … {left_out:,} more … {text[-_END:]}"


def line_of(card: Mapping[str, Any], check: str | None = None) -> Data:
    """Return a row of a list from its card; ``read``, ``expected`` and ``near`` are those of a check, else of the first that fails."""
    checks = card["checks"]
    names = [entry["check"] for entry in checks]
    failing = (at for at, entry in enumerate(checks) if entry["passes"] is False)
    chosen = names.index(check) if check in names else next(failing, None)
    evidence = {} if chosen is None else checks[chosen].get("evidence") or {}
    line = {name: card[name] for name in ("row", "key", "state", "reward")}
    line["scores"] = [entry["score"] for entry in checks]
    return line | {name: evidence.get(name) for name in ("read", "expected", "near")}


def _conversations(
    result: Result, rows: Sequence[int], rollouts: Any, known: Mapping[int, Mapping[str, Any]]
) -> Mapping[int, Mapping[str, Any]]:
    columns = next(iter(known.values()), {}).keys()
    is_of_rollouts = rollouts is not None or COMPLETION not in result.schema
    if COMPLETION in columns and (is_of_rollouts or {*PROMPTS} & columns):
        return known
    table, _ = originals(result, rows, _ASKED, rollouts, kept=False)
    if table.is_empty() and COMPLETION in columns:
        return known
    if table.is_empty():
        table = some_rows(result, rows, [exactly(name) for name in _ASKED if name in result.schema])
    return {row[ROW]: row for row in table.iter_rows(named=True)}


def _messages(row: Mapping[str, Any]) -> list[Data] | None:
    """Return the messages before the text that was scored, which is the last one of a completion of messages."""
    prompt = next((row[name] for name in PROMPTS if row[name]), None)
    completion = row[COMPLETION]
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}] if prompt else []
    messages = [*messages, *(completion[:-1] if isinstance(completion, list) else ())]
    is_chat = isinstance(prompt, list) or len(messages) > 1
    return [_message(message) for message in messages if isinstance(message, Mapping)] if is_chat else None


def _chat(value: Any) -> Any:
    """Return messages from a value of a column, also if they are JSON text there, as those whose content has several types are."""
    value = untyped(value)
    try:
        chat = loads(value) if isinstance(value, str) and value.startswith("[{") else chat_of(value, "message")
    except (InputError, ValueError, RecursionError):  # a text that looks like it, or ``exact`` of another program
        return value
    is_chat = isinstance(chat, list) and all(isinstance(message, dict) and "role" in message for message in chat)
    return chat if is_chat or not isinstance(value, str) else value


def _message(message: Mapping[str, Any]) -> Data:
    text = completion_text([message], any_role=True) or ""
    calls = message.get("tool_calls")
    called = [json.dumps(without_nulls(call), ensure_ascii=False, default=str) for call in calls or ()]
    return {"role": str(message.get("role")), "content": "\n".join(filter(None, [text, *called]))}
