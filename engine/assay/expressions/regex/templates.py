r"""``re.search`` with patterns that differ only in their literals, such as ``answer is \$?42\b`` and ``answer is \$?1,000\b``.

Without its literals, a pattern is a *skeleton*, which many patterns share; literals that all of them share belong to the skeleton, and
the others are its *holes*. A match is then a place of each literal with a match of what the skeleton has before, between and
after them. One column-to-column search finds the places, and a few fixed patterns, which the linear engine runs on all rows, try what is
beside each place. Where a fixed pattern cannot decide, or a literal occurs too often, the answer is null.

Python's own parser reads each skeleton, with characters for private use in its holes: it reads a run of plain characters anywhere as it
reads these.
"""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

import polars as pl

from assay.expressions.regex.compiled import TooExpensiveError, on_any_stack, parsed
from assay.expressions.regex.search import Route, linear_answers, route_of_tree
from assay.expressions.regex.trees.charsets import SIGMAS, is_word_character, unfolded
from assay.expressions.regex.trees.nodes import NotLinearError, all_nodes
from assay.expressions.shared_columns import encoded, nulls
from assay.expressions.text import ASCII_ALIKE, as_class, contains_column, in_slices, is_ascii, lower_rows
from assay.frozen import frozen
from assay.thresholds import THRESHOLDS

_LONGEST = 10_000
"""Longest pattern, in code points, that is looked at."""
_CHAINS = 16
"""Maximum ways through the alternatives of a skeleton that have holes."""
_MANY = 32
"""Minimum rows for more than ``literal_places`` places of a literal."""
_FIRST, _LAST = 0xF0000, 0xFFFFD
"""Characters for private use; a pattern that contains any has no skeleton."""
_GAP = chr(_LAST)
_ROUNDS = 8
"""Maximum places that are looked at in all rows together, as a multiple of ``literal_places``."""

_QUANTIFIED = r"(?:[*+?]|\{[0-9,}])"
_PLAIN = r"[^\\.^$*+?{\[|()\U000f0000-\U000ffffd]"
_OTHER = r"\{(?![0-9,}])|\\[^0-9A-Za-z]"
_TOKEN = re.compile(
    rf"((?:{_PLAIN}+|{_OTHER})+(?!{_QUANTIFIED}))"  # a literal, without a character that is repeated
    r"|(\\[AbBdDsSwWZafnrtv]"
    r"|\[\^?\]?(?:[^\]\\]|\\.)*(?:\]|\Z)"
    r"|\{[0-9]*,?[0-9]*\}"
    r"|\((?:(?!\?)|\?(?:[ims]+\)|[ims]*(?:-[ims]+)?:|P<[A-Za-z_][A-Za-z_0-9]*>|<?[=!]))"
    rf"|[.^$*+?|)]|{_PLAIN}|{_OTHER})",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def skeleton(pattern: str) -> tuple[str, list[str]] | None:
    """Split a pattern into its skeleton, with a mark for each literal, and its literals; None if that may change its meaning."""
    if len(pattern) > _LONGEST:
        return None
    literals, parts, size = [], [], 0
    for literal, other in _TOKEN.findall(pattern):
        size += len(literal) + len(other)
        if literal:
            literals.append(_ESCAPED.sub(r"\1", literal) if "\\" in literal else literal)
        parts.append(other or _GAP)
    return ("".join(parts), literals) if size == len(pattern) and literals else None


def search_templates(texts: pl.Series, patterns: pl.Series, flags: int) -> pl.Series:
    """Return whether ``re.search`` finds each row's pattern; null where this cannot tell."""
    distinct, which = encoded(patterns)
    split = [skeleton(pattern) for pattern in distinct.to_list()]
    names = pl.Series([None if each is None else each[0] for each in split], dtype=pl.String)
    rows = pl.DataFrame({"skeleton": names.gather(which), "which": which, "text": texts}).with_row_index("at")
    answers = nulls(texts, pl.Boolean)
    for part in rows.drop_nulls("skeleton").partition_by("skeleton"):
        used = part["which"].unique().sort()
        if len(used) >= THRESHOLDS.skeleton_patterns:
            literals = [each[1] for each in map(split.__getitem__, used.to_list()) if each is not None]
            table = pl.DataFrame(literals, orient="row")
            result = _search_skeleton(
                part["skeleton"][0], part["text"], table, used.search_sorted(part["which"]), flags
            )
            if result is not None:
                answers = answers.scatter(part["at"], result)
    return answers


def _search_skeleton(
    name: str, texts: pl.Series, literals: pl.DataFrame, which: pl.Series, flags: int
) -> pl.Series | None:
    shared = tuple(values[0] if values.n_unique() == 1 else None for values in literals)
    template = _template(name, shared, flags)
    if template is None:
        return None
    columns = [texts, *(values.gather(which) for values in literals)]
    return in_slices(partial(_search_batch, template), columns, THRESHOLDS.shared_piece)


def _search_batch(template: "_Template", columns: Sequence[pl.Series]) -> pl.Series:
    texts, *literals = columns
    unsure = pl.repeat(value=False, n=len(texts), eager=True)
    lowered = texts
    if template.folds:  # under IGNORECASE an ASCII literal matches only ASCII, except these characters
        unsure |= texts.str.contains(ASCII_ALIKE)
        beyond = unsure & False
        for at in {at for chain in template.chains for hole in chain.holes for at in hole}:
            others = ~is_ascii(literals[at])
            if others.any():
                unsure |= literals[at].str.contains(_unfolded())
                beyond |= others
            literals[at] = _folded(literals[at], others)
        if beyond.any():
            unsure |= beyond & texts.str.contains(_unfolded())
        lowered = _folded(texts, beyond)
    search = _Search(texts, lowered, literals, unsure)
    for chain in template.chains:
        search.run(chain)
    return search.answers()


@lru_cache(maxsize=1)
def _unfolded() -> str:
    return as_class(unfolded())


def _folded(texts: pl.Series, fully: pl.Series) -> pl.Series:
    """Return ``folded`` of some texts, and the others with their ASCII letters in lower case; every character stays where it is."""
    lowered = lower_rows(texts, fully)
    return lowered.str.replace_all(*SIGMAS, literal=True) if fully.any() else lowered


@frozen
class _Chain:
    """One way through a skeleton: fixed parts, with holes between them.

    Attributes:
        holes: The literals of each hole, by position; several follow each other.
        parts: What is before the first hole, between two, and after the last; None for nothing.
    """

    holes: tuple[tuple[int, ...], ...]
    parts: tuple["_TemplatePart | None", ...]


@frozen
class _TemplatePart:
    """A fixed part of a skeleton.

    Attributes:
        routes: How to search for it in the text beside a hole, which includes the hole's character next to it: by whether that is a
            word character, in front and behind; None where that does not matter.
        reach: Maximum characters of that text that decide; None if all may.
    """

    routes: tuple[tuple[bool | None, bool | None, Route], ...]
    reach: int | None


@frozen
class _Template:
    """A skeleton without the literals that all patterns share.

    Attributes:
        chains: The ways through it; the pattern matches where one of them does.
        folds: Whether case is ignored.
    """

    chains: tuple[_Chain, ...]
    folds: bool


@lru_cache(maxsize=256)
def _template(name: str, shared: tuple[str | None, ...], flags: int) -> _Template | None:
    """Return the template of a skeleton with the literals that all patterns share; None if it has none."""
    first, *parts = name.split(_GAP)
    middle = (_hole(at) if literal is None else re.escape(literal) for at, literal in enumerate(shared))
    pattern = first + "".join(literal + part for literal, part in zip(middle, parts, strict=True))
    try:
        tree = on_any_stack(lambda: parsed(pattern, flags))
        if tree.state.flags & ~_FLAGS:
            return None
        chains = _chains(list(tree))
        if len(chains) > _CHAINS or all(not isinstance(item, int) for chain in chains for item in chain):
            return None
        fold = bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE)
        return _Template(tuple(_chain(chain, tree.state) for chain in chains), fold)
    except (re.error, _NoTemplateError, NotLinearError, TooExpensiveError, RecursionError, OverflowError):
        return None


class _NoTemplateError(Exception):
    """A hole is where no chain can have one."""


_FLAGS = sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_MULTILINE | sre.SRE_FLAG_DOTALL | sre.SRE_FLAG_UNICODE
_DOT_AND_LINES = sre.SRE_FLAG_MULTILINE | sre.SRE_FLAG_DOTALL
_Items = list[Any]
"""Nodes of a parsed pattern, and the numbers of holes."""


def _hole(at: int) -> str:
    """Return what stands for a literal: two characters, because the parser turns a choice of single ones into a class."""
    return chr(_FIRST + 2 * at) + chr(_FIRST + 2 * at + 1)


def _is_hole(node: Any) -> bool:
    return node[0] in (sre.LITERAL, sre.NOT_LITERAL) and _FIRST <= node[1] < _LAST


def _has_hole(node: Any) -> bool:
    return any(map(_is_hole, all_nodes(node)))


def _chains(items: Sequence[Any]) -> list[_Items]:
    """Return the ways through a sequence; an alternative without holes is part of one way."""
    ways: list[_Items] = [[]]
    nodes = iter(items)
    for node in nodes:
        if _is_hole(node):
            next(nodes)  # the second character
            choices: list[_Items] = [[(node[1] - _FIRST) // 2]]
        elif _has_hole(node):
            choices = _choices(*node)
        else:
            choices = [[node]]
        if len(ways) * len(choices) > _CHAINS:
            raise _NoTemplateError
        ways = [way + choice for way in ways for choice in choices]
    return ways


def _choices(op: Any, value: Any) -> list[_Items]:
    if op is sre.BRANCH:
        fixed = [way for way in value[1] if not _has_hole(way)]
        choices = [[(sre.BRANCH, (None, fixed))]] if fixed else []
        return choices + [chain for way in value[1] if _has_hole(way) for chain in _chains(list(way))]
    if op is sre.SUBPATTERN and not (value[1] | value[2]) & ~_DOT_AND_LINES:
        chains = _chains(list(value[3]))
        return (
            [[_with_flags(item, *value[1:]) for item in chain] for chain in chains] if value[1] or value[2] else chains
        )
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[1] == 1:
        return [*([[]] if value[0] == 0 else []), *_chains(list(value[2]))]
    raise _NoTemplateError


def _with_flags(item: Any, add: int, remove: int, group: Any) -> Any:
    """Put one node of a group that has flags into a group of its own; these flags do not matter to a hole."""
    return item if isinstance(item, int) else (sre.SUBPATTERN, (None, add, remove, _sequence([item], group.state)))


def _sequence(items: _Items, state: Any) -> Any:
    return sre_parser.SubPattern(state, items)


def _chain(items: _Items, state: Any) -> _Chain:
    holes: list[tuple[int, ...]] = []
    parts: list[_Items] = [[]]
    for item in items:
        if not isinstance(item, int):
            parts[-1].append(item)
        elif holes and not parts[-1]:
            holes[-1] += (item,)
        else:
            holes.append((item,))
            parts.append([])
    last = len(parts) - 1
    routes = (_part(part, state, after=at > 0, before=at < last) for at, part in enumerate(parts))
    return _Chain(tuple(holes), tuple(routes))


_NEIGHBOUR = {
    None: (sre.SUBPATTERN, (None, sre.SRE_FLAG_DOTALL, 0, [(sre.ANY, None)])),
    True: (sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)]),
    False: (sre.IN, [(sre.CATEGORY, sre.CATEGORY_NOT_WORD)]),
}
"""What the hole's character next to a part is: anything, a word character or another."""
_FARTHEST = 200
"""Longest reach of a part for which texts are cut."""


def _part(items: _Items, state: Any, *, after: bool, before: bool) -> _TemplatePart | None:
    r"""Prepare the search for a fixed part; None if there is nothing to search for."""
    if not items and (after or before):
        return None
    if before and not state.flags & sre.SRE_FLAG_MULTILINE and (sre.AT, sre.AT_END) in all_nodes(items):
        raise _NoTemplateError  # the end of what is cut off is no end of the text
    # an anchor where the text is cut would have to match all of it, which is longer
    longest = _width(items, state) + after + before + 1
    reach = longest if (after or before) and longest <= _FARTHEST else None
    has_boundary = (sre.AT, sre.AT_BOUNDARY) in all_nodes(items)
    kinds = (True, False) if has_boundary else (None,)
    routes = []
    for left, right in product(kinds if after else (None,), kinds if before else (None,)):
        head = [(sre.AT, sre.AT_BEGINNING_STRING), _NEIGHBOUR[left]] if after else []
        tail = [_NEIGHBOUR[right], (sre.AT, sre.AT_END_STRING)] if before else []
        routes.append((left, right, route_of_tree(_sequence([*head, *items, *tail], state))))
    return _TemplatePart(tuple(routes), reach)


def _width(items: _Items, state: Any) -> int:
    """Return the most characters that decide whether a part matches: those of a match, and those that look-around reads beside it."""
    looks = (value[1] for op, value in all_nodes(items) if op in (sre.ASSERT, sre.ASSERT_NOT))
    return sum(int(sequence.getwidth()[1]) for sequence in (_sequence(items, state), *looks))


class _Search:
    """A search with the chains of one template.

    Attributes:
        found: The rows in which a chain matches.
        unsure: The rows in which a chain might match.
    """

    def __init__(self, texts: pl.Series, lowered: pl.Series, literals: Sequence[pl.Series], unsure: pl.Series) -> None:
        self.rows = pl.DataFrame({"text": texts, "lowered": lowered, "left": unsure}).with_row_index("row")
        self.literals = literals
        self.found = pl.repeat(value=False, n=len(texts), eager=True)
        self.unsure = unsure
        self.rounds = 0

    def answers(self) -> pl.Series:
        """Return the verdicts: null for rows that are unsure."""
        unsure = self.unsure & ~self.found
        return pl.DataFrame().select_seq(pl.when(~unsure).then(self.found)).to_series()

    def run(self, chain: _Chain) -> None:
        """Search with one chain."""
        self.rounds = 0
        rows = self.rows.filter(~(self.found | self.unsure))
        for hole in chain.holes[1:]:  # a literal that is nowhere spares the search for places of another one
            if rows.height:
                rows = rows.filter(contains_column(rows["lowered"], self._literal(hole, rows["row"])))
        if rows.height:
            self._descend(chain, rows, 0)

    def _descend(self, chain: _Chain, rows: pl.DataFrame, level: int) -> None:
        part = chain.parts[level]
        if level == len(chain.holes):
            matches = None
            if part is not None:
                near = _heads(rows["text"], part.reach) if level and part.reach is not None else rows["text"]
                matches = _decide(near, part, rows["left"], rows["left"])
            self._settle(rows["row"], matches)
            return
        literal = self._literal(chain.holes[level], rows["row"])
        first = literal.str.head(1).str.len_bytes().cast(pl.Int64)
        behind = literal.str.len_bytes().cast(pl.Int64) - literal.str.tail(1).str.len_bytes()
        begin = rows["text"].str.head(1).str.len_bytes().cast(pl.Int64) if level else 0 * first
        right, ends = (_are_words(characters) for characters in (literal.str.head(1), literal.str.tail(1)))
        rows = rows.with_columns_seq(
            literal=literal, first=first, behind=behind, begin=begin, origin=begin, right=right, ends=ends
        )
        reach = part.reach if part is not None else 0
        places = THRESHOLDS.literal_places
        for turn in range(_ROUNDS * places):
            if self.rounds >= _ROUNDS * places or (turn >= places and rows.height < _MANY):
                break
            self.rounds += 1
            rows = _next_place(rows)
            rows = rows.filter(~self.found.gather(rows["row"]))
            if level and reach is not None:
                rows = rows.filter(pl.col("place") <= pl.col("origin") + _BYTES * reach)
            if not rows.height:
                return
            candidates = rows
            if part is not None:
                near = _slices(rows["text"], rows["place"] + rows["first"], 0 if level else reach)
                matches = _decide(near, part, rows["left"], rows["right"])
                self.unsure = self.unsure.scatter(rows["row"].filter(matches.is_null()), values=True)
                candidates = rows.filter(matches.fill_null(value=False))
            elif level:  # nothing between two holes
                candidates = rows.filter(pl.col("place") == pl.col("begin"))
            if candidates.height:
                rest = pl.col("text", "lowered").cast(pl.Binary).bin.slice(pl.col("place") + pl.col("behind"))
                self._descend(chain, candidates.select_seq("row", rest.cast(pl.String), left="ends"), level + 1)
            rows = rows.with_columns_seq(begin=pl.col("place") + pl.col("first"))
        self.unsure = self.unsure.scatter(rows["row"], values=True)

    def _settle(self, rows: pl.Series, matches: pl.Series | None) -> None:
        if matches is None:
            self.found = self.found.scatter(rows, values=True)
            return
        self.found = self.found.scatter(rows.filter(matches.fill_null(value=False)), values=True)
        self.unsure = self.unsure.scatter(rows.filter(matches.is_null()), values=True)

    def _literal(self, hole: tuple[int, ...], rows: pl.Series) -> pl.Series:
        columns = [self.literals[at].gather(rows).alias(str(at)) for at in hole]
        return pl.DataFrame().select_seq(pl.concat_str(columns)).to_series() if len(columns) > 1 else columns[0]


def _decide(texts: pl.Series, part: _TemplatePart, left: pl.Series, right: pl.Series) -> pl.Series:
    """Return whether the text beside a hole has what the part asks for; null where the linear engine cannot tell."""
    texts = texts.alias("text")
    if len(part.routes) == 1:
        return linear_answers(texts, part.routes[0][2])
    answers = nulls(texts, pl.Boolean)
    for front, behind, route in part.routes:
        here = pl.repeat(value=True, n=len(texts), eager=True)
        here = here if front is None else here & (left == front)
        at = (here if behind is None else here & (right == behind)).arg_true()
        if len(at):
            answers = answers.scatter(at, linear_answers(texts.gather(at), route))
    return answers


def _are_words(characters: pl.Series) -> pl.Series:
    kinds, which = encoded(characters)
    return pl.Series([is_word_character(kind) for kind in kinds.to_list()], dtype=pl.Boolean).gather(which)


_BYTES = 4
"""Maximum bytes of a character."""


def _slices(texts: pl.Series, ends: pl.Series, reach: int | None) -> pl.Series:
    """Cut texts at positions in bytes; with a ``reach``, keep at least so many characters before the end."""
    rows = pl.DataFrame({"text": texts.cast(pl.Binary), "start": 0 * ends, "end": ends})
    if reach:
        rows = rows.with_columns_seq(start=pl.max_horizontal(0, pl.col("end") - _BYTES * reach))
        rows = rows.with_columns_seq(start=pl.when(_is_within("start")).then(0).otherwise("start"))
    cut = pl.col("text").bin.slice("start", pl.col("end") - pl.col("start"))
    return rows.select_seq(cut.cast(pl.String)).to_series()


def _heads(texts: pl.Series, reach: int) -> pl.Series:
    rows = texts.cast(pl.Binary).to_frame("text").with_columns_seq(end=pl.lit(_BYTES * reach))
    size = pl.when(_is_within("end")).then(pl.col("text").bin.size()).otherwise("end")
    return rows.select_seq(pl.col("text").bin.slice(0, size).cast(pl.String)).to_series()


def _is_within(place: str) -> pl.Expr:
    byte = pl.col("text").bin.slice(pl.col(place), 1).bin.reinterpret(dtype=pl.UInt8)
    return byte.is_between(0x80, 0xBF).fill_null(value=False)


def _next_place(rows: pl.DataFrame) -> pl.DataFrame:
    """Find the literal from ``begin`` on: add its ``place``, in bytes, and drop the rows where it is not."""
    rest = rows["lowered"]
    if (rows["begin"] > 0).any():
        rest = rows.select_seq(pl.col("lowered").cast(pl.Binary).bin.slice("begin").cast(pl.String)).to_series()
    if rows.height <= THRESHOLDS.lone_searches:  # Polars would build a regular expression
        pairs = zip(rest.to_list(), rows["literal"].to_list(), strict=True)
        splits = [text.partition(literal) for text, literal in pairs]
        place = pl.Series([len(before.encode()) if mark else None for before, mark, _ in splits], dtype=pl.Int64)
    else:
        place = rest.str.find(pl.lit(rows["literal"]), literal=True).cast(pl.Int64)
    rows = rows.with_columns_seq(place=place + rows["begin"])
    return rows.filter(pl.col("place").is_not_null())
