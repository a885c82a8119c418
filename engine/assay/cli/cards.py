"""Print rows of a result as cards; control characters from data are escaped."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from assay.cli.tables import print_notes
from assay.errors import counted, printable

if TYPE_CHECKING:
    from assay.insight.rows.showing import Card, Cards, Verdict

_TEXT_LINES, _LINES = 12, 3
"""Lines of the terminal for a text, and for a gold."""

_BEFORE = 80
"""Characters before the first match that are shown, where the text begins long before it."""

_STATES = {"pass": ("✓ passed", "green"), "fail": ("✗ failed", "red"), "unscored": ("– unscored", "yellow")}
_STATES["scored"] = ("scored", "")
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}
_OPEN, _CLOSE = "⟦", "⟧"


def print_cards(console: Console, cards: "Cards") -> None:
    """Print rows of a result, a card each."""
    for card in cards.cards:
        _print_card(console, card)
    shown = counted(len(cards.cards), "row")
    of = f" of {cards.matching:,} that match" if cards.matching != cards.rows else ""
    console.print(
        f"{shown}{of}; {printable(cards.name)} has {cards.rows:,}", highlight=False, markup=False, soft_wrap=True
    )
    print_notes(console, cards.notes)


def _print_card(console: Console, card: "Card") -> None:
    words, style = _STATES[card.state]
    reward = "–" if card.reward is None else f"{card.reward:.4g}"
    keys = "".join(f" · {printable(name)} {_value(value)}" for name, value in card.key.items())
    console.print(
        Text.assemble((f"row {card.row:,}", "bold"), keys, f" · reward {reward} · ", (words, style)), soft_wrap=True
    )
    width = max((len(printable(verdict.check)) for verdict in card.checks), default=0)
    for verdict in card.checks:
        _print_verdict(console, verdict, width)
    for line in card.feedback:
        console.print(Text(f"  {printable(line)}"), soft_wrap=True)
    for line in card.error:
        console.print(Text.assemble(("  error: ", "red"), printable(line)), soft_wrap=True)
    for name, gold in card.gold.items():
        _print_text(console, Text.assemble((f"{printable(name)}: ", "bold"), printable(gold)), _LINES)
    if card.text is not None:
        _print_completion(console, card)
    console.print()


def _value(value: object) -> str:
    return "–" if value is None else printable(str(value))


def _print_verdict(console: Console, verdict: "Verdict", width: int) -> None:
    mark, style = _MARKS[verdict.passes]
    score = "–" if verdict.score is None else f"{verdict.score:.4g}"
    name = printable(verdict.check)
    line = Text.assemble("  ", (mark, style), f" {name:{width}}  {score:6}  ", printable(verdict.feedback))
    line.rstrip()
    console.print(line, soft_wrap=True)
    if verdict.title:
        console.print(Text(f"    {printable(verdict.title)}", "dim"), soft_wrap=True)
    if verdict.error and verdict.error != verdict.feedback:
        console.print(Text.assemble(("    error: ", "red"), printable(verdict.error)), soft_wrap=True)


def _print_completion(console: Console, card: "Card") -> None:
    """Print the text with what matched marked; from shortly before the first match, if that is far from the beginning."""
    text = card.text or ""
    room = max(console.width - 4, 20) * _TEXT_LINES
    first = card.matches[0][0] if card.matches else 0
    begin = max(0, first - _BEFORE) if first > room // 2 else 0
    end = min(len(text), begin + room)
    shown = Text(f"… {begin:,} characters … " if begin else "", "dim")
    at = begin
    for start, stop, _ in card.matches:
        if start >= end:
            break
        shown.append(printable(text[at:start], lines=True), "default")
        marked = printable(text[start : min(stop, end)], lines=True)
        # without colours, brackets mark what matched
        shown.append(marked if console.color_system else f"{_OPEN}{marked}{_CLOSE}", "bold reverse")
        at = min(stop, end)
    shown.append(printable(text[at:end], lines=True), "default")
    _print_text(console, shown, _TEXT_LINES, more=len(text) - end)


def _print_text(console: Console, text: Text, most: int, more: int = 0) -> None:
    """Print a text, wrapped and indented, up to a number of lines; ``more`` characters of it are left out already."""
    lines = text.wrap(console, max(console.width - 4, 20))
    left_out = sum(len(line.plain) for line in lines[most:]) + more
    for line in lines[:most]:
        console.print(Text("  │ ", "dim") + line, soft_wrap=True)
    if left_out:
        console.print(Text(f"  │ … {left_out:,} more characters", "dim"), soft_wrap=True)
