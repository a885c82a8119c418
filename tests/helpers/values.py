"""Values of every kind that a run can hold, and when two of them are the same."""

from datetime import UTC
from pathlib import Path

from hypothesis import strategies as st


def alike(one, other):
    """Equal and of one type at every depth, NaN equal to NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            alike(*items) for pair in zip(one.items(), other.items(), strict=True) for items in zip(*pair, strict=True)
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or (one != one and other != other)  # noqa: PLR0124


ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from("\ud83d\ude00$\x00")), max_size=6)
KEYS = st.one_of(ANY_TEXT, st.just("$assay"), st.just("value"))
HASHABLE = st.recursive(
    st.one_of(
        ANY_TEXT, st.integers(), st.floats(allow_nan=False), st.booleans(), st.none(), st.binary(max_size=3), st.dates()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2).map(tuple), st.frozensets(inner, max_size=2)),
    max_leaves=3,
)
BIG = st.integers(4000, 5000).map(lambda digits: -(10**digits))
SCALARS = st.one_of(
    *(HASHABLE, BIG, st.floats(), st.datetimes(timezones=st.sampled_from([None, UTC]))),
    *(
        st.times(),
        st.timedeltas(),
        st.decimals().filter(lambda number: not number.is_snan()),
        st.uuids(),
        st.complex_numbers(),
        st.just(Path("a/b")),
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        *(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.sets(HASHABLE, max_size=3)),
        *(st.dictionaries(KEYS, inner, max_size=3), st.dictionaries(HASHABLE, inner, max_size=2)),
    ),
    max_leaves=8,
)
