"""The ten checks in SQL, by DuckDB: ``pip install 'assay[bench]'``."""

import duckdb

_CHECKS = {
    "contains": ("contains(low, 'the')", 'does not contain "the"'),
    "however": ("contains(low, 'however')", 'does not contain "However"'),
    "not_contains": ("NOT contains(low, 'as an ai')", 'contains "as an AI"'),
    "no-sorry": ("NOT contains(completion, 'I''m sorry')", 'contains "Im sorry"'),
    "number": (r"regexp_matches(completion, '\b\d+(?:\.\d+)?\b')", "there is no number"),
    "bullets": (r"regexp_matches(completion, '(?m)^\s*(?:[-*]|\d+\.)\s')", "there are no bullets"),
    "min_length": ("length(completion) >= 200", "has fewer than 200 characters"),
    "max_length": ("length(completion) <= 4000", "has more than 4000 characters"),
    "json_valid": ("json_valid(completion)", "is not JSON"),
    "json_keys": (
        "CASE WHEN json_valid(completion) THEN json_exists(completion, ['$.answer', '$.score']) = [true, true] ELSE false END",
        "lacks a key",
    ),
}


def prepare(spec, files):
    del spec
    checks = ", ".join(f'({met})::DOUBLE AS "check/ten/{name}"' for name, (met, _) in _CHECKS.items())
    total = " + ".join(f'"check/ten/{name}"' for name in _CHECKS)
    said = ", ".join(
        f"CASE WHEN \"check/ten/{name}\" < 1 THEN '{name}: {reason}' END" for name, (_, reason) in _CHECKS.items()
    )
    names = ", ".join(f'"check/ten/{name}"' for name in _CHECKS)
    rollouts, out = (path.replace("'", "''") for path in files)
    return f"""
        COPY (
            WITH texts AS (SELECT id, completion, lower(completion) AS low FROM read_parquet('{rollouts}')),
            scored AS (SELECT id, {checks} FROM texts)
            SELECT id, ({total}) / 10 AS reward, ({total}) / 10 >= 1 AS passed,
                concat_ws(chr(10), {said}) AS feedback, {names}
            FROM scored
        ) TO '{out}' (FORMAT parquet, COMPRESSION zstd)
    """  # noqa: S608  (names of our own)


def run(prepared, files):
    del files
    duckdb.sql(prepared)
