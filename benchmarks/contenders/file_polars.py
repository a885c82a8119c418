"""A spec as one writes it in Polars by hand, with a line of feedback for each check that fails."""

import polars as pl

from contenders.spec import checks_of, complaint, linear_pattern

_TEXT = pl.col("completion")
_LOWER = _TEXT.str.to_lowercase()
_ENTRIES = pl.List(pl.Struct({"anyOf": pl.List(pl.String)}))
_METADATA = pl.Struct({"expectations": pl.Struct({"mustMention": _ENTRIES, "mustNotMention": _ENTRIES})})


def _phrase(check):
    as_written = check.get("caseSensitive", False)
    phrase = check["value"] if as_written else check["value"].lower()
    return (_TEXT if as_written else _LOWER).str.contains(phrase, literal=True)


def _equals(check):
    text, phrase = _TEXT.str.strip_chars(), check["value"].strip()
    return text == phrase if check.get("caseSensitive", False) else text.str.to_lowercase() == phrase.lower()


def _json_keys(check):
    return pl.all_horizontal(_TEXT.str.json_path_match(f"$.{key}").is_not_null() for key in check["requiredKeys"])


def _occurs(phrases):
    """Whether one of the two phrases that a list has at most occurs."""
    each = (phrases.list.get(at, null_on_oob=True).str.to_lowercase() for at in range(2))
    return pl.any_horizontal(_LOWER.str.contains(phrase, literal=True).fill_null(value=False) for phrase in each)


def _expectations(check):
    """As one who knows the lists: two entries to mention, one not to."""
    del check
    expected = pl.col("metadata").struct.field("expectations")
    entries = [expected.struct.field("mustMention").list.get(at).struct.field("anyOf") for at in range(2)]
    avoided = expected.struct.field("mustNotMention").list.get(0).struct.field("anyOf")
    met = [*map(_occurs, entries), ~_occurs(avoided)]
    return pl.sum_horizontal(met) / len(met)


_CHECKS = {
    "contains": _phrase,
    "not_contains": lambda check: ~_phrase(check),
    "regex": lambda check: _TEXT.str.contains(linear_pattern(check)),
    "equals": _equals,
    "min_length": lambda check: _TEXT.str.len_chars() >= check["value"],
    "max_length": lambda check: _TEXT.str.len_chars() <= check["value"],
    "json_valid": lambda _: _TEXT.str.json_path_match("$").is_not_null(),
    "json_keys": _json_keys,
    "task_expectations": _expectations,
}


def prepare(spec, files):
    checks = checks_of(spec)
    rollouts = pl.scan_parquet(files[0])
    if rollouts.collect_schema().get("metadata") == pl.String:
        rollouts = rollouts.with_columns(pl.col("metadata").str.json_decode(_METADATA))
    scored = rollouts.with_columns(
        _CHECKS[check["type"]](check).cast(pl.Float64).alias(check["id"]) for check in checks
    )
    names = [check["id"] for check in checks]
    lines = [
        pl.when(pl.col(check["id"]) < 1).then(pl.lit(f"{complaint(check)}\n")).otherwise(pl.lit("")) for check in checks
    ]
    reward = pl.sum_horizontal(names) / len(names)
    feedback = pl.concat_str(lines).str.strip_chars_end("\n")
    return scored.select(
        "id", reward.alias("reward"), (reward >= 1).alias("passed"), feedback.alias("feedback"), *names
    )


def run(prepared, files):
    prepared.sink_parquet(files[1])
