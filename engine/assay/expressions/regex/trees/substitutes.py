r"""Patterns with back-references, possessive repeats and atomic groups, written without them where that changes no verdict.

* ``(["'])[^"']*\1``: a group that is one of a few texts, and is not repeated. The pattern is a choice of patterns with one text each.
* ``"[^"]*+"``: a run of characters that ends where it must, since what follows cannot begin with such a character. It might as well give
  characters back.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain, product
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.regex.trees.charsets import CHARACTERS, Ranges, accepted, in_both
from assay.expressions.regex.trees.nodes import REPEATS, First, Node, Nodes, all_nodes, first_of, ways_of, with_flags

_MOST_TEXTS = 16
"""Maximum texts of a group, and maximum choices of several groups together."""
_POSSESSIVE = (sre.POSSESSIVE_REPEAT, sre.ATOMIC_GROUP)


def has_substitutes(tree: Any) -> bool:
    """Return whether there is a back-reference, a possessive repeat or an atomic group in a tree."""
    return any(op in (sre.GROUPREF, *_POSSESSIVE) for op, _ in all_nodes(tree))


def with_substitutes(tree: Any) -> Any:
    """Return a tree that matches in the same texts, with fewer back-references, possessive repeats and atomic groups."""
    nodes = _yielding(list(tree), [], tree.state.flags, tree.state)
    return sre_parser.SubPattern(tree.state, _without_references(nodes, tree.state, _MOST_TEXTS))


def _yielding(items: Nodes, after: Sequence[Node], flags: int, state: Any) -> Nodes:
    """Let possessive parts of a sequence give characters back, where that makes no difference."""
    written: Nodes = []
    for at, (op, value) in enumerate(items):
        following = [*with_flags(items[at + 1 :], flags), *after]
        if op in _POSSESSIVE:
            written += _greedy(Node(op, value, flags), following) or [(op, value)]
        elif op is sre.SUBPATTERN:
            group, add, remove, inner = value
            inside = _yielding(list(inner), following, (flags | add) & ~remove, state)
            written.append((op, (group, add, remove, sre_parser.SubPattern(state, inside))))
        elif op is sre.BRANCH:
            ways = [sre_parser.SubPattern(state, _yielding(list(way), following, flags, state)) for way in value[1]]
            written.append((op, (value[0], ways)))
        else:
            written.append(_repeated(op, value, following, flags, state) if op in REPEATS else (op, value))
    return written


def _repeated(op: Any, value: Any, following: Sequence[Node], flags: int, state: Any) -> tuple[Any, Any]:
    low, high, inner = value
    again = Node(op, (0, high, inner), flags)  # or what follows, after the last time
    return op, (low, high, sre_parser.SubPattern(state, _yielding(list(inner), [again, *following], flags, state)))


def _greedy(node: Node, following: Sequence[Node]) -> Nodes:
    """Return a possessive part as a greedy one; nothing if that might make a difference."""
    op, value, flags = node
    *before, (last, own) = list(value) if op is sre.ATOMIC_GROUP and len(value) else [(sre.MAX_REPEAT, value)]
    if any(kind not in CHARACTERS for kind, _ in before):
        return []
    if last in CHARACTERS:
        return [*before, (last, own)]
    if last is not sre.MAX_REPEAT or len(own[2]) != 1 or own[2][0][0] not in CHARACTERS:
        return []
    ((kind, characters),) = own[2]
    return [*before, (last, own)] if _is_over(accepted(kind, characters, flags), following) else []


def _is_over(members: Ranges, following: Sequence[Node]) -> bool:
    """Return whether nothing that follows a run can match before the end of the run, or whether it matches there, too."""
    for node in following:
        if node.op is sre.ASSERT and node.value[0] > 0:
            asked = first_of(with_flags(node.value[1], node.flags))
            if not (asked.empty or _meets(members, asked)):
                return True
        elif node.op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            break
    first = first_of(following)
    return not _meets(members, first) and (not first.empty or _asks_nothing(following))


def _meets(members: Ranges, first: First) -> bool:
    return any(in_both(members, ranges) for ranges in first.members)


def _asks_nothing(nodes: Iterable[Node]) -> bool:
    return all(
        node.op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT) and all(map(_asks_nothing, ways_of(node))) for node in nodes
    )


_Text = tuple[int, ...]
"""The code points of a text that a group may match."""


def _without_references(nodes: Nodes, state: Any, most: int) -> Nodes:
    """Write a choice of sequences in place of groups that are referred to, as far as they have few texts."""
    flags = reduce(or_, (value[1] for op, value in all_nodes(nodes) if op is sre.SUBPATTERN), state.flags)
    if flags & sre.SRE_FLAG_IGNORECASE:  # a reference ignores case by another rule than a character
        return nodes
    for at, (op, value) in enumerate(nodes):
        group = value[0] if op is sre.SUBPATTERN else None
        rest = nodes[at + 1 :]
        if group is None or (sre.GROUPREF, group) not in all_nodes(rest):
            continue
        texts = _texts(value[3], most)
        if texts is not None:
            ways = []
            for text in texts:
                letters = [(sre.LITERAL, code) for code in text]
                following = _without_references(_referring(rest, group, letters, state), state, most // len(texts))
                ways.append(sre_parser.SubPattern(state, [*letters, *following]))
            return [*nodes[:at], (sre.BRANCH, (None, ways))]
    return nodes


def _texts(items: Iterable[tuple[Any, Any]], most: int) -> list[_Text] | None:
    texts: list[_Text] = [()]
    for op, value in items:
        own = _texts_of(op, value, most)
        if own is None or len(texts) * len(own) > most:
            return None
        texts = [*dict.fromkeys((*before, *behind) for before, behind in product(texts, own))]
    return texts


def _texts_of(op: Any, value: Any, most: int) -> list[_Text] | None:
    if op is sre.LITERAL:
        return [(value,)]
    if op is sre.IN and all(kind is sre.LITERAL for kind, _ in value):
        return [(code,) for _, code in value]
    if op is sre.SUBPATTERN and value[0] is None:
        return _texts(value[3], most)
    if op is sre.BRANCH:
        ways = [_texts(way, most) for way in value[1]]
        return None if None in ways else [*dict.fromkeys(chain.from_iterable(way or () for way in ways))]
    if op in REPEATS and value[1] is not sre.MAXREPEAT and value[1] <= most:
        low, high, inner = value
        times = [_texts([*inner] * count, most) for count in range(low, high + 1)]
        return None if None in times else [*dict.fromkeys(chain.from_iterable(texts or () for texts in times))]
    return None


def _referring(node: Any, group: int, letters: Nodes, state: Any) -> Any:
    """Return nodes, or a part of one, with letters in place of references to a group."""
    if isinstance(node, sre_parser.SubPattern | list):
        inside = [part for item in node for part in _in_place_of(item, group, letters, state)]
        return sre_parser.SubPattern(state, inside) if isinstance(node, sre_parser.SubPattern) else inside
    if isinstance(node, tuple):
        return tuple(_referring(part, group, letters, state) for part in node)
    return node


def _in_place_of(item: Any, group: int, letters: Nodes, state: Any) -> list[Any]:
    if item == (sre.GROUPREF, group):
        return letters
    if isinstance(item, tuple) and item[0] is sre.GROUPREF_EXISTS and item[1][0] == group:
        return [(sre.SUBPATTERN, (None, 0, 0, _referring(item[1][1], group, letters, state)))]
    return [_referring(item, group, letters, state)]
