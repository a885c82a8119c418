r"""Patterns that differ only in their literals, against ``re.search``: every skeleton with hostile literals in hostile texts."""

import random
import re
from itertools import product

import polars as pl
import pytest
from cases import crossed, sized

from assay.expressions.regex.templates import search_templates, skeleton
from assay.functions.registry import regex_match_expr
from assay.thresholds import set_to

LITERALS = [
    "a",
    "ab",
    "aa",
    "b_1",
    "é",
    "-",
    "a-",
    "1",
    "12",
    "\n",
    "ſ",
    "\u212a",
    "K",
    "Σς",
    "οδός",
    "μ",
    "Ⱥß",
    "日本",
    "😊",
    "a b",
    "}",
    "]",
    "x",
]
SKELETONS = [
    r"\b{0}\b.*{1}",
    r"^\s*{0}$",
    r"(?m)^{0}\s*$",
    r"{0}|{1}",
    r"\b(?:{0}|{1}|{2})s?\b",
    r"({0}|x+)(?:{1})?\b{2}",
    r"(?:{0})?{1}",
    r"(?i){0}\s*(?:is|:)?\s*\$?{1}\b",
    r"\\?\{{{0}\}}",
    r"[^{{}}\]a]{0}",
    r"{0}.{{0,3}}{1}",
    r"{0}.{{0,3}}?{1}\Z",
    r"{0}\B{1}",
    r"(?:{0})+",
    r"(?={0}){1}",
    r"(?<!\w){0}(?!\w)",
    r"(?<={0}){1}",
    r"(?<!a){0}(?![b\d])|{1}(?=\W)",
    r"(?<=[^a]){0}(?=a)",
    r"(?<!.){0}(?!.)",
    r"(?<!ab){0}(?!ab)",
    r"(?s:{0}.)\n?(?m:{1}$)",
    r"(?i:{0}){1}",
    r"(?m:^){0}(?-m:x$)?",
    r"(?!a){0}(?<!b)",
    r"(?P<n>{0})x(?P=n)",
    r"({0})\1",
    r"(?s:{0}.{1})",
    r"(?s){0}.+{1}",
    r"(?x){0} {1}",
    r"\d+{0}|{1}\w*$",
    r"\A{0}",
    r"{0}\n?",
    r"\b{0}(?:\.0+)?\b",
    r"{0}\s+\w+\s+(?:the|a|{1})\b",
    r"({0}",
    r"{0}**",
    r"{0}{{2}}{1}",
    r"{0}\012",
    r"\x41{0}",
    r"[{0}]{1}",
    r"$?{0}",
    r"{0}$|{1}",
    r"\W{0}\W",
    r"\b",
]


def _texts(rng, literals):
    glue = [
        "",
        " ",
        "a",
        "_",
        "é",
        "s",
        "\n",
        ".0",
        ": ",
        " the ",
        "x",
        "\u0301",
        "1",
        "-",
        "İ",
        "ſ",
        "K",
        "σ",
        "Ο",
        "\u00b5",
        "{",
        "}",
        "$",
    ]
    return "".join(
        part
        for literal in literals
        for part in (rng.choice(glue), rng.choice((literal, literal.upper(), "")), rng.choice(glue))
    )


def _pairs(seed, template, rows=24):
    rng = random.Random(f"{seed} {template}")
    for _ in range(rows):
        literals = [rng.choice(LITERALS) for _ in range(3)]
        if rng.random() < 0.3:
            literals[1] = "ab"
        yield _texts(rng, literals * rng.randrange(1, 3)), template.format(*map(re.escape, literals))


def _found(pattern, text, flags):
    try:
        return re.search(pattern, text, flags) is not None
    except re.error:
        return None


@pytest.fixture(autouse=True)
def _small():
    with set_to(skeleton_patterns=1, small_batch=0):
        yield


@pytest.mark.parametrize("template", SKELETONS)
def test_templates_find_what_re_finds(template):
    for flags, places in product((0, re.IGNORECASE), sized([0, 1, 16], [1])):
        assert_found(template, flags, places)


def assert_found(template, flags, places):
    pairs = list(_pairs(f"{flags} {places}", template, sized(24, 12)))
    texts, patterns = (pl.Series(values) for values in zip(*pairs, strict=True))
    wanted = [_found(pattern, text, flags) for text, pattern in pairs]
    with set_to(literal_places=places, shared_piece=max(places, 1)):
        found = search_templates(texts, patterns, flags).to_list()
    wrong = [(*pair, one) for pair, one, other in zip(pairs, found, wanted, strict=True) if one not in (None, other)]
    assert wrong == []


@pytest.mark.parametrize(
    "template",
    [
        *(
            "{0}(?!{1})",
            "{0}(?={1})",
            r"{0}\w?(?!{1})",
            r"({0}\w?(?={1}))",
            r"{0}(?:s(?={1})|x(?!{1}))",
            "(?i){0}(?!{1})",
        ),
        *(
            "(?<!{1}){0}",
            "(?<={1}){0}",
            r"(?<!{1})\s?{0}",
            r"((?<={1})\s?){0}",
            r"(?<!{1}){0}(?!{1})",
            r"{0}(?!{1})|(?<={1}){0}x",
        ),
    ],
)
def test_look_around_reads_as_far_as_it_has_to(template):
    for behind in (" policy for ever", "😊" * 9, "é" * 12, "ab"):
        assert_read(template, behind)


def assert_read(template, behind):
    cuts = [behind[:size] for size in range(len(behind) + 1)]
    sides = [*cuts, *(behind[-size:] for size in range(1, len(behind))), f"{behind[:-1]}!", f"s{behind}", f"x{behind}"]
    pairs = [
        (text, re.escape(gold).join(template.split("{0}")).replace("{1}", behind))
        for gold in ("gold", "日本")
        for side in sides
        for text in (gold + side, side + gold, f"- {gold}{side} -", f"- {side}{gold}x")
    ]
    texts, patterns = (pl.Series(values) for values in zip(*pairs, strict=True))
    found = search_templates(texts, patterns, 0).to_list()
    wanted = [_found(pattern, text, 0) for text, pattern in pairs]
    assert [
        (*pair, one) for pair, one, other in zip(pairs, found, wanted, strict=True) if one not in (None, other)
    ] == []


@pytest.mark.parametrize(("rows", "engine"), crossed([1, 2, 100], ["in-memory", "streaming"]))
def test_batches_of_any_size_and_chunks(rows, engine):
    pairs = [pair for template in SKELETONS for pair in _pairs(rows, template, sized(3, 1))]
    expr = regex_match_expr(pl.col("text"), pl.col("pattern"), {})
    frame = pl.concat([pl.DataFrame([pair], schema=["text", "pattern"], orient="row") for pair in pairs], rechunk=False)
    parts = [part.lazy().select(expr).collect(engine=engine) for part in frame.iter_slices(rows)]
    wanted = [_found(pattern, text, 0) for text, pattern in pairs]
    found = pl.concat(parts).to_series().to_list()
    assert [pair for pair, one, other in zip(pairs, found, wanted, strict=True) if one not in (None, other)] == []


@pytest.mark.parametrize(
    "template", [r"\b{0}\b.*{1}", r"\b(?:{0}|{1}|{2})s?\b", r"(?m)^{0}\s*$", r"\b{0}(?:\.0+)?\b", r"{0}.{{0,3}}{1}"]
)
def test_patterns_with_plain_literals_are_not_left_to_re(template):
    pairs = [pair for seed in range(8) for pair in _pairs(seed, template)]
    pairs = [(text.replace("\u0301", ""), pattern) for text, pattern in pairs]  # the engines disagree about it
    texts, patterns = (pl.Series(values) for values in zip(*pairs, strict=True))
    assert search_templates(texts, patterns, 0).null_count() == 0


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"ab\.c+d", ["ab.", "d"]),
        (r"a{2}b{c}", ["b{c}"]),
        (r"[]a]b[^]c]", ["b"]),
        (r"(?:a|b)", ["a", "b"]),
        (r"\x41b", None),
        (r"\1a", None),
        (r"a\0", None),
        (r"(?x)a b", None),
        (r"(?#c)a", None),
        (r"(?(1)a|b)", None),
        (r"a{2", None),
        (r"\d+", None),
        ("\U000f0000a", None),
        ("a" * 10_001, None),
    ],
)
def test_literals_of_a_pattern(pattern, literals):
    split = skeleton(pattern)
    assert (split and split[1]) == literals


def test_many_places_of_a_literal_end():
    texts = pl.Series(["a " * 2_000 + "b", "a a " * 1_000])
    patterns = pl.Series([r"a\s+b\b", r"a\s+c\b"])
    answers = search_templates(texts, patterns, 0).to_list()
    assert all(one in (None, other) for one, other in zip(answers, [True, False], strict=True))
