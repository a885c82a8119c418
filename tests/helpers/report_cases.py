"""Results whose reports are looked at, in the tests of the page and in those of the page in a browser."""

import polars as pl

import assay
from assay.insight.reports.index import Index
from assay.insight.reports.offline import page_data as data_without_rows
from assay.insight.reports.rows import cards_data, line_of
from assay.insight.results import open_result

__all__ = ["EVIL", "hostile", "page_data"]

EVIL = (
    '"><script>alert(1)</script><img src=x onerror=alert(1)>',
    "</pre></style><style>*{display:none}</style>",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b[0m\x07\x00",
    "\u202egnp.exe\u2066 \u200b\ufeff\u00ad",
    "| a | b |\n```\n~~~\n````\n# heading\n![x](http://evil.example/x.png)",
    "javascript:alert(1) http://evil.example/ <a href='//evil.example'>",
)


def hostile(rows=400, checks=300, size=1_000_000):
    """A result whose names and texts are all somebody's attack."""
    texts = [EVIL[at % len(EVIL)] for at in range(rows)]
    frame = pl.DataFrame(
        {
            "task_id": [f"{text} {at % 40}" for at, text in enumerate(texts)],
            "model": texts,
            "step": [at % 20 for at in range(rows)],
            "reward": [None if at % 50 == 3 else at % 7 / 6 for at in range(rows)],
            "passed": [at % 7 == 6 for at in range(rows)],
            "completion": [text + ("x" * size if at < 5 else "") for at, text in enumerate(texts)],
            "error": [f"{text} {at}" if at % 50 == 3 else None for at, text in enumerate(texts)],
        }
    )
    names = [f"check/{EVIL[at % len(EVIL)]}/c{at}" for at in range(checks)]
    scores = {
        name: [float((row * 7 + at * at) % (at % 5 + 2) > 0) for row in range(rows)] for at, name in enumerate(names)
    }
    verifiers = list(dict.fromkeys(name.split("/", 1)[1].rpartition("/")[0] for name in names))
    feedback = [
        f"{verifiers[0]}/c0: {text}\n{verifiers[1 % len(verifiers)]}/c1: {text * 20} {at}"
        for at, text in enumerate(texts)
    ]
    more = {f"score/{name}": [0.5] * rows for name in verifiers}
    return pl.concat([frame, pl.DataFrame(more | scores)], how="horizontal").with_columns(feedback=pl.Series(feedback))


def page_data(result, limit=60, **more):
    """What the page of a result shows, with its first rows."""
    opened = open_result(result)
    index = Index(opened).scan()
    cards = [*cards_data(opened, range(min(limit, opened.rows)), index=index)[0]]
    data = data_without_rows("file", [opened.name], assay.report(opened).as_json() | {"heat": index.heat()})
    rows = {"total": opened.rows, "rows": [line_of(card) for card in cards]}
    return data | {"rows": rows, "cards": {str(card["row"]): card for card in cards}} | more
