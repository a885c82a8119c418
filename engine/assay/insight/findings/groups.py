"""Findings about groups that do not hold together: several prompts or golds, prompts of other tasks, odd sizes."""

from collections.abc import Iterator

import polars as pl

from assay.errors import counted
from assay.insight.findings import words
from assay.insight.findings.columns import ResultColumns
from assay.insight.findings.facts import Facts, GroupFacts
from assay.insight.findings.finding import Finding, Selection
from assay.insight.findings.limits import LIMITS, MOST_ROWS
from assay.insight.integrity.groups import has_several, other_keys, sharing, usual_size
from assay.insight.integrity.prompts import gold_keys, prompt_keys
from assay.insight.probes import GOLDS
from assay.writing.numbers import count


def groups_of(columns: ResultColumns) -> GroupFacts | None:
    """Return which groups do not hold together; None without groups."""
    if columns.in_groups is None or columns.task is None:
        return None
    keys = [*prompt_keys(columns.result.schema), *gold_keys(columns.result.schema, GOLDS)]
    frame = columns.result.collect(columns.result.frame.select(keys)) if keys else pl.DataFrame()
    values = {"task": columns.task.codes, **{column.name: column for column in frame}}
    if "joined" in values:
        values["rest"] = columns.numbers(other_keys(columns.group_names, columns.task.names))
    several = [has_several(name) for name in ("prompt", "gold") if name in values]
    counts = [pl.len().alias("rows"), *([pl.any_horizontal(several).alias("mixed")] if several else [])]
    groups, prompts = list[pl.DataFrame](), list[pl.DataFrame]()
    for part in columns.in_groups.parts(**values):
        rows = part.rename({"g": "group"})
        groups.append(rows.group_by("group", maintain_order=True).agg(counts))
        if "joined" in values:
            prompts.append(rows.select("group", "task", "joined", "rest").drop_nulls("joined").unique())
    sizes = pl.concat(groups)
    if (size := usual_size(sizes["rows"])) is None:
        return None
    odd = sizes.filter(pl.col("rows") != size)["group"]
    mixed = sizes.filter("mixed")["group"] if several else odd.clear()
    return GroupFacts(sizes.height, size, mixed, sharing(pl.concat(prompts)) if prompts else odd.clear(), odd)


def mixed(facts: Facts) -> Iterator[Finding]:
    """Find groups with several prompts or golds."""
    yield from _of_groups(
        *(facts, "mixed", "several prompts or golds"),
        "Trainers compare the rewards of a group: compare the prompts and golds of these rows, and what makes a group (--group).",
    )


def shared_prompt(facts: Facts) -> Iterator[Finding]:
    """Find groups with a prompt of another task."""
    yield from _of_groups(
        *(facts, "shared_prompt", "the prompt of another task"),
        "Such tasks are counted as several, though they are one: compare their prompts and names.",
    )


def odd_size(facts: Facts) -> Iterator[Finding]:
    """Find groups with an unusual number of rows."""
    if facts.groups is not None:
        words_of_size = f"a size other than {count(facts.groups.size)}"
        yield from _of_groups(facts, "odd_size", words_of_size, "Rollouts may be missing, or be there twice.")


def _of_groups(facts: Facts, kind: str, what: str, hint: str) -> Iterator[Finding]:
    if facts.columns is None or facts.columns.group is None or (known := facts.groups) is None:
        return
    limits = LIMITS[kind]
    groups = {"mixed": known.mixed, "shared_prompt": known.shared, "odd_size": known.odd}[kind]
    if not len(groups) or known.groups < limits["groups"] or len(groups) < limits["share"] * known.groups:
        return
    codes = facts.columns.group
    rows = facts.rows_of(codes.is_in(groups.implode()).fill_null(value=False))
    first = rows.with_columns(group=codes.gather(rows["row"])).sort("group", "row")["row"].head(MOST_ROWS)
    model = facts.model_of(rows)
    yield Finding(
        *(kind, None, rows.height, facts.rows),
        model=model,
        effect=rows.height / facts.rows,
        numbers={"groups": len(groups), "of_groups": known.groups},
        title=f"{counted(len(groups), 'group')} {'has' if len(groups) == 1 else 'have'} {what}",
        sentences=[
            f"Of {counted(known.groups, 'group')}, with {words.share(rows.height, facts.rows)}{words.of_model(model)}.",
            hint,
        ],
        selection=Selection(row=tuple(first.sort())),
    )
