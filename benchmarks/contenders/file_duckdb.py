"""A spec in SQL, by DuckDB: ``pip install 'assay-rollouts[bench]'``."""

import re

from contenders.spec import NotExpressibleError, checks_of, complaint, linear_pattern


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _phrase(check):
    if check.get("caseSensitive", False):
        return f"contains(completion, {_quoted(check['value'])})"
    return f"contains(low, {_quoted(check['value'].lower())})"


def _equals(check):
    text, phrase = "trim(completion, e' \\t\\r\\n')", check["value"].strip()
    return (
        f"{text} = {_quoted(phrase)}"
        if check.get("caseSensitive", False)
        else f"lower({text}) = {_quoted(phrase.lower())}"
    )


def _regex(check):
    """A pattern as RE2 writes it: it has no ``\\u`` escapes."""
    pattern = re.sub(r"\\u([0-9a-fA-F]{4})", r"\\x{\1}", linear_pattern(check))
    return f"regexp_matches(completion, {_quoted(pattern)})"


def _json_keys(check):
    paths = ", ".join(_quoted(f"$.{key}") for key in check["requiredKeys"])
    every = ", ".join("true" for _ in check["requiredKeys"])
    return f"CASE WHEN json_valid(completion) THEN json_exists(completion, [{paths}]) = [{every}] ELSE false END"


def _expectations(check):
    raise NotExpressibleError(f"{check['id']}: phrases in lists of each row")


_CHECKS = {
    "contains": _phrase,
    "not_contains": lambda check: f"NOT {_phrase(check)}",
    "regex": _regex,
    "equals": _equals,
    "min_length": lambda check: f"length(completion) >= {check['value']}",
    "max_length": lambda check: f"length(completion) <= {check['value']}",
    "json_valid": lambda _: "json_valid(completion)",
    "json_keys": _json_keys,
    "task_expectations": _expectations,
}


def query(spec, files):
    """Return the statement."""
    checks = checks_of(spec)
    verdicts = ", ".join(f'({_CHECKS[check["type"]](check)})::DOUBLE AS "{check["id"]}"' for check in checks)
    total = " + ".join(f'"{check["id"]}"' for check in checks)
    lines = ", ".join(f'CASE WHEN "{check["id"]}" < 1 THEN {_quoted(complaint(check))} END' for check in checks)
    names = ", ".join(f'"{check["id"]}"' for check in checks)
    rollouts, out = map(_quoted, files)
    return f"""
        COPY (
            WITH texts AS (SELECT id, completion, lower(completion) AS low FROM read_parquet({rollouts})),
            scored AS (SELECT id, {verdicts} FROM texts)
            SELECT id, ({total}) / {len(checks)} AS reward, ({total}) / {len(checks)} >= 1 AS passed,
                concat_ws(chr(10), {lines}) AS feedback, {names}
            FROM scored
        ) TO {out} (FORMAT parquet, COMPRESSION zstd)
    """  # noqa: S608  (names of our own)


def prepare(spec, files):
    return query(spec, files)


def run(prepared, files):
    import duckdb

    del files
    try:
        duckdb.sql(prepared)
    except duckdb.Error as error:
        raise NotExpressibleError(str(error).partition("\n")[0]) from error
