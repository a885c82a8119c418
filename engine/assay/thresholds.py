"""Sizes that choose between equivalent implementations.

One implementation is faster for small batches, rare patterns and short phrases, another for large ones. No verdict may depend on the
choice: tests set each threshold to 0, 1 and ``EVER`` and compare the results. Put every such size here, and read it at run time, not
at import. Thresholds are not options for users.

Limits on what is computed at all (``expressions.json.MAX_DEPTH``, the digits of an integer, ``limits``) are not thresholds: they are
part of a verdict's definition.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

EVER = sys.maxsize
"""Larger than any size."""


class Thresholds:
    """One field per choice; the default is the fastest value measured.

    Attributes:
        small_batch: Maximum rows for the Python definition, which has no set-up cost; larger batches use columns.
        unstreamed_rows: Maximum rows in memory for Polars' in-memory engine, which starts faster than the streaming one.
        piece: Rows that go through a plan together: patterns are compiled anew for each piece …
        shared_piece: … and more where work is shared between rows.
        slice: Rows for which texts are lowered together: few, so that memory is reused rather than cleared for each row.
        slice_text: … but as many short ones as take the memory of so many texts with this size, in bytes.
        batch: Rows of a file that are counted and written together.
        counted_reasons: Minimum distinct reasons of a check in a batch for counting them in columns.
        reward_rows: Rollouts whose arguments are in memory at once for reward functions: few objects, freed early and cheaply.
        terms: Terms added in one expression: Polars' planning time grows with the square of the depth.
        known_metadata: Maximum code points of JSON metadata whose parsed expectations are cached.
        engine_keys: Maximum keys that Polars' JSON path looks up together; with more, parsing in Python is as fast.
        schema_rows: Minimum rows with the same list of keys for a column expression.
        template_uses: Minimum average number of uses of a verifier's template for it to be parsed.
        param_sets: Maximum distinct params for which the Polars version of a function runs for all rows; with more …
        param_rows: … it runs for params with at least this many rows, and the Python function runs for the others.
        pattern_rows: Minimum rows per pattern for the linear engine, which costs time to compile.
        beyond_rows: Maximum texts beyond ASCII that Python searches in this process; from then on the linear engine does, whose classes
            take Python's tables of Unicode.
        small_texts: Maximum bytes of a small batch to search at once with these classes, which are slower than those for ASCII texts.
        sharers: Minimum lanes for which a lane is computed that only makes them faster: to lower a text takes as long as two searches.
        skeleton_patterns: Minimum patterns that differ only in their literals for a search by columns, which has to try each place.
        literal_places: Maximum occurrences of a literal that are inspected one by one.
        pattern_steps: Maximum steps for which ``re`` runs in this process: it cannot take long.
        position_steps: Maximum steps of a search by sets of positions; beyond, ``re`` in another process runs to its limit.
        linear_bytes: Maximum estimated size of a pattern in the linear engine, in bytes; each thread uses about thirty times as much.
        phrase_bytes: Maximum bytes of a phrase that Polars searches for. Polars turns a single phrase into a regular expression:
            a long one takes quadratic time, a longer one is rejected.
        folded_phrase: Maximum code points of a phrase whose two cases are searched for as a pattern.
        lone_searches: Maximum rows of a column-to-column search that runs in Python; for a single row, too, Polars builds a regular
            expression.
        copied_text: Maximum average bytes of texts that are stripped without inspecting their ends: stripping copies a text.
        sparse: How many times as many bytes texts have as their characters beyond ASCII, at least, for the columns to change the case of
            these characters; Python does it in other texts.
        times_gold: How many times the bytes of their golds texts may have that are lowered whole; longer ones are cut to the gold's size.
        ngram_words: Maximum words of n-grams that are compared as tuples; longer ones get numbers, since each word is in many of them.
        struct_fields: Maximum fields of Python values that become structs; others become JSON text, for every row stores all fields.
        struct_depth: Maximum nesting of such structs: parquet's writer and Polars' recursion have limits near 100 and 500.
        first_chunk: Approximate bytes of the first chunk of a file of lines, which determines the columns.
        chunk: Approximate bytes of all other chunks.
        small_group: Minimum average rows of a row group with nested columns for Polars' parquet reader.
        grouped_rows: Rows of a result whose rewards are sorted into groups at once; more are read in several passes.
        held_rows: Rows of a result of plain columns that are held until more come, to be a row group together.
        kernel_rows: Minimum texts for which the kernel answers; for fewer, the definitions do.
        table_words: Maximum words in a table of results; with more, each row is scored by columns.
        rows_a_word: Minimum rows of a batch for each word that is new, where the table has seen several batches.
    """

    small_batch: int = 256
    unstreamed_rows: int = 4096
    piece: int = 65_536
    shared_piece: int = 131_072
    slice: int = 4_096
    slice_text: int = 1_024
    batch: int = 65_536
    counted_reasons: int = 1_000
    reward_rows: int = 512
    terms: int = 64
    known_metadata: int = 1_000
    engine_keys: int = 16
    schema_rows: int = 32
    template_uses: int = 8
    param_sets: int = 16
    param_rows: int = 64
    pattern_rows: int = 256
    beyond_rows: int = 64
    small_texts: int = 1 << 19
    sharers: int = 5
    skeleton_patterns: int = 64
    literal_places: int = 16
    pattern_steps: int = 10_000_000
    position_steps: int = 100_000_000
    linear_bytes: int = 2_000_000
    phrase_bytes: int = 1_000
    folded_phrase: int = 200
    lone_searches: int = 1
    copied_text: int = 256
    sparse: int = 16
    times_gold: int = 3
    ngram_words: int = 4
    struct_fields: int = 100
    struct_depth: int = 50
    first_chunk: int = 1 << 18
    chunk: int = 1 << 23
    small_group: int = 2048
    grouped_rows: int = 1 << 24
    held_rows: int = 1 << 14
    kernel_rows: int = 0
    table_words: int = 4_096
    rows_a_word: int = 8


NAMES = (*Thresholds.__annotations__,)
"""The names of the thresholds."""

THRESHOLDS = Thresholds()
"""The thresholds of this process."""


@contextmanager
def set_to(**values: int) -> Iterator[None]:
    """Set thresholds within a block, in all threads of this process; for tests."""
    if unknown := values.keys() - NAMES:
        raise AttributeError(f"unknown thresholds: {', '.join(sorted(unknown))}")
    before = {name: getattr(THRESHOLDS, name) for name in values}
    vars(THRESHOLDS).update(values)
    try:
        yield
    finally:
        vars(THRESHOLDS).update(before)
