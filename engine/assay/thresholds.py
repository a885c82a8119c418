"""Sizes at which another implementation of the same verdict takes over.

Small batches, rare patterns and short phrases are quicker done in one way, large ones in another. No verdict may depend on which:
the tests set each of these to 0, 1 and ``EVER`` and compare. Whoever adds a size that chooses between implementations adds it here,
and reads it when it is used, not when a module is loaded. Users have no part in this.

Limits of what may be computed at all (``expressions.json.MAX_DEPTH``, the digits of an integer, ``limits``) are none of these: they
are part of what a verdict means.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

__all__ = ["EVER", "THRESHOLDS", "Thresholds", "set_to"]

EVER = sys.maxsize
"""More than there ever is of anything."""


@dataclass
class Thresholds:
    """One field for each choice, with what is quickest as its default.

    Attributes:
        small_batch: Rows up to which the definition runs instead of columns, which take longer to set up.
        unstreamed_rows: Rows in memory up to which the engine that does not stream is asked, which starts sooner.
        piece: Rows that go through a plan together, few for the sake of memory …
        shared_piece: … and more where what rows have in common is worked out once.
        batch: Rows of a file that are counted and written together.
        reward_rows: Rollouts whose arguments are in memory at once, where functions see one after another: few die young, and cheaply.
        terms: Terms added in one expression: the engine's time to plan one grows with the square of its depth.
        known_metadata: Code points of JSON text up to which it is remembered what it expects.
        engine_keys: Keys that the engine's JSON looks for at once; for more, Python reads the text as fast.
        schema_rows: Rows of one list of keys from which on columns look for them.
        template_uses: How often, on average, a verifier's template must be used for it to be worth reading.
        param_sets: Sets of params up to which a twin is asked for each of them; of more …
        param_rows: … for those that have so many rows, and the function for the others.
        pattern_rows: Rows of one pattern from which on the linear engine earns what it costs to compile.
        literal_places: Places of a literal that are looked at one by one.
        pattern_steps: Places to try within which ``re`` is asked and no other engine: it cannot take long.
        position_steps: Steps of a search by sets of positions; with more, the linear engine or ``re`` in another process is asked.
        linear_bytes: Bytes that a pattern may take in the linear engine, as estimated: each of its threads keeps some thirty.
        phrase_bytes: Bytes of a phrase up to which the engine searches for it. It makes a regular expression of a lone one: a long
            one is searched for in quadratic time, a longer one refused.
        folded_phrase: Code points of a phrase up to which both cases of it are searched for as a pattern.
        lone_searches: Rows of a column-to-column search up to which Python searches; of one row the engine makes a regular
            expression, too.
        padding: Bytes of a text more than of its gold up to which it is stripped without a look at its ends.
        struct_fields: Fields up to which values of plain Python become structs, JSON text beyond: every row pays for the fields of all.
        struct_depth: Levels up to which they do: parquet's writer and the engine's recursion have limits near 100 and 500.
        first_chunk: Bytes of the first chunk of a file of lines, about: it shows what the columns are.
        chunk: Bytes of every other chunk, about.
        small_group: Rows of a row group that is not worth the parquet reader of the engine.
        groups_at_once: Row groups of the size of which that reader may hold so many; more of small ones, fewer of large ones.
    """

    small_batch: int = 256
    unstreamed_rows: int = 4096
    piece: int = 16_384
    shared_piece: int = 131_072
    batch: int = 65_536
    reward_rows: int = 512
    terms: int = 64
    known_metadata: int = 1_000
    engine_keys: int = 16
    schema_rows: int = 32
    template_uses: int = 8
    param_sets: int = 16
    param_rows: int = 64
    pattern_rows: int = 256
    literal_places: int = 16
    pattern_steps: int = 10_000_000
    position_steps: int = 100_000_000
    linear_bytes: int = 2_000_000
    phrase_bytes: int = 1_000
    folded_phrase: int = 200
    lone_searches: int = 1
    padding: int = 16
    struct_fields: int = 100
    struct_depth: int = 50
    first_chunk: int = 1 << 18
    chunk: int = 1 << 23
    small_group: int = 2048
    groups_at_once: int = 24


THRESHOLDS = Thresholds()
"""Those of this process."""


@contextmanager
def set_to(**values: int) -> Iterator[None]:
    """Other thresholds for a while, in all threads of this process; for tests.

    Args:
        values: By name. Plans are compiled anew: some thresholds decide what a plan is.

    Raises:
        AttributeError: There is no threshold of a name.
    """
    known = {field.name for field in fields(Thresholds)}
    if unknown := values.keys() - known:
        raise AttributeError(f"no thresholds: {', '.join(sorted(unknown))}")
    before = {name: getattr(THRESHOLDS, name) for name in values}
    vars(THRESHOLDS).update(values)
    try:
        yield
    finally:
        vars(THRESHOLDS).update(before)
