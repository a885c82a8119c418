"""Regular expressions: the columns' verdict is Python's, for every pattern Python accepts."""

import random
import re

import polars as pl
import pytest
from cases import sized, some
from patterns import FLAGS, TEXTS, accepted, random_pattern

import assay
from assay.expressions.regex.compiled import compile_pattern, parsed
from assay.expressions.regex.search import backtracking_lane, route, search, search_expr
from assay.expressions.regex.trees.charsets import accepted as accepted_points
from assay.expressions.regex.trees.charsets import accepted_ascii, most_ranges, reaches_beyond_ascii
from assay.expressions.shared_columns import columns_read, layers
from assay.names import TEXT
from assay.thresholds import EVER, set_to


def assert_same(pattern: str, texts: list[str] | None = None) -> None:
    texts = TEXTS if texts is None else texts
    wanted = [python(pattern, text) for text in texts]
    # texts beyond ASCII: the linear engine; Python; the linear engine for all texts of a small batch
    for rows, few in ((0, 0), (EVER, 0), (0, EVER)) if route(pattern).beyond else ((0, 0),):
        with set_to(beyond_rows=rows, small_batch=few):
            verdicts = columns(pattern, texts)["found"]
        for text, verdict, searched in zip(texts, verdicts, wanted, strict=True):
            assert verdict == searched, (pattern, text, route(pattern))


def python(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).search(text) is not None
    except SystemError:  # a bug of re's own, on some possessive groups: the check scores 0.0 with an error
        return False


def columns(pattern: str, texts: list[str | None]) -> pl.DataFrame:
    frame = pl.DataFrame({TEXT: texts}, schema={TEXT: pl.String})
    with columns_read() as lanes:
        found, lane = search_expr(pattern), backtracking_lane(pattern)
        error = pl.lit(None, dtype=pl.String) if lane is None else lane.col.struct.field("error")
    for layer in layers(lanes, frame.schema):
        frame = frame.with_columns(layer)
    return frame.select("^.*text$", found=found, error=error)


@pytest.mark.parametrize("seed", range(sized(8, 4)))
def test_random_patterns_agree_with_python_on_hostile_texts(seed):
    rng = random.Random(seed)
    tried = 0
    linear = 0
    while tried < 60:
        pattern = rng.choice(FLAGS) + random_pattern(rng)
        if accepted(pattern):
            assert_same(pattern)
            tried += 1
            linear += bool(route(pattern).in_columns)
    assert linear > 15  # the fast lane is tested too


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"b(?<=a)", "look-around"),
        (r"a(?!\b)c", "look-around"),
        (r"a(?!b(?<=a))", "look-around"),
        (r"(?i)(?:(?!a)[ab]|a(?!c)|A(?!B))*c", "look-around"),
        (r"^(?=a)(?=b(?<=a))", "look-around"),
        (r"a$\n", "$ with something after it"),
        (r"\Ba", r"\B"),
        (r"(a*)*b", "a repeat of something that may be empty"),
        (r"(?:(a?|b*)+c{0,3})*\Z", "a repeat of something that may be empty"),
        (r"(?:^|a*)*b", "a repeat of something that may be empty"),
        (r"(?:a?){2,3}b", "a repeat of something that may be empty"),
        (r"(?:){1}a(?!\b)c", "look-around"),
        (r"\w{1000}", "a pattern too large for the linear engine"),
        (r"^\W*(?:\w+\W+){100,300}$", "a pattern too large for the linear engine"),
        ("ab" * 20_000, "a pattern too large for the linear engine"),
        ("(?:" * 300 + "a" + ")+" * 300, "a pattern too large for the linear engine"),
    ],
)
def test_what_the_linear_engine_cannot_do_goes_to_python_and_then_to_positions_and_says_why(pattern, why):
    assert not route(pattern).in_columns
    said = "Python's re in a separate process, and sets of positions where it takes long"
    assert route(pattern).why == f"{said}: {why}"
    assert_same(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(\w)\1", "a back-reference"),
        (r"(a*)\1b", "a back-reference"),
        (r"(?:(a)|b)\1", "a back-reference"),
        (r"(a)?(?(1)b|c)", "a conditional group"),
        (r"(?>a+)ab", "an atomic group"),
        (r"(?>a+?)b", "an atomic group"),
        (r"(?>a|ab)b", "an atomic group"),
        (r"a++\w", "a possessive repeat"),
        (r"a++(?!b)", "a possessive repeat"),
        (r"a++(?=.)", "a possessive repeat"),
        (r"(?:ab)++c", "a possessive repeat"),
        (r"(?a:\w)", "scoped a/u flags"),
        (r"(?a)(?u:\w)", "scoped a/u flags"),
        (r"(?ia:k)", "scoped a/u flags"),
        (r"(?:ab|a)++b", "a possessive repeat"),
        (r"(?i)(k)\1", "a back-reference"),
        (r"(?:(a|b)\1)+", "a back-reference"),
        (r"\A(?:b)??((?:b){1,2}a*(?:a|ab))(?:\1){0,2}\Z", "a back-reference"),
        (r"(?>(a|b))\1", "an atomic group"),
        (r"(?!(a)b)(?(1)a|b)", "look-around; a conditional group"),
        (r"(?<=(a|b))\1", "a back-reference"),
        (r"(a(?(1)b|c))", "a conditional group"),
        (r"(?<=(?>a))b", "an atomic group"),
        (r"b(?<=(?>a))", "look-around; an atomic group"),
        (r"(?>(?:a?)*)b", "an atomic group"),
        ("a" * 100_001, "a pattern of more than 100,000 characters"),
        ("(?i)" + "[!-\uffff]" * 51, "a pattern whose classes take long to compile"),
        pytest.param(
            "(?i)[" + "".join(f"{chr(first)}-\uffff" for first in range(0x3400, 0x3500)) + "]",
            "a pattern whose classes take long to compile",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_only_python_can_answer_goes_to_python_and_says_why(pattern, why):
    assert not route(pattern).in_columns
    assert route(pattern).why == f"Python's re in a separate process, {{limit}}: {why}"
    assert_same(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"done$",
            r"^a",
            r"\Aa\Z",
            r"(?m)^b$",
            r"(?s)a.b",
            r"a.b",
            r"\s",
            r"\S+",
            r"\d",
            r"\w\w",
            r"(?i)k",
            r"(?i)s",
            r"(?i)ß",
            r"(?i)ς",
        ),
        *(
            r"(?i)[a-k]",
            r"(?i)[^k]",
            r"(?i)i",
            r"(?i)İ",
            r"(?a)\w",
            r"(?a)\bfoo",
            r"[a-z&&[b]]",
            r"[[:alpha:]]",
            r"a{2,3}",
            r"a{,2}b",
        ),
        *(
            r"(?x) a  b # both",
            r"(?i:a)b",
            r"(?i)a(?-i:b)",
            r"x|y|",
            r"(?:a|b)$",
            r"\x1c",
            "\x00",
            r"[\x00-\x1f]",
            r"\\",
            r"[^\n]$",
        ),
    ],
)
def test_what_both_engines_have_stays_in_the_linear_one(pattern):
    assert route(pattern).in_columns
    assert_same(pattern)


WORDS = [
    *(
        "foo",
        "foo\u0301",
        "\u0301foo",
        "foo\u200d",
        "²foo",
        "foo²",
        "fooé",
        "éfoo",
        "foo.",
        "",
        "\u2040foo",
        "é foo",
        "é",
        "éé",
    ),
    *(
        "é foo bar",
        "é foobar",
        "é-foo",
        "é.foo.",
        "foo é",
        "\u0301é",
        "²é",
        "é\nfoo",
        "é\n\u0301foo",
        "é, 12.5",
        "é٣",
        "é12²",
        "_é",
    ),
    *(
        "a.b@é.de",
        "x a@b.c",
        "éa@b.c.",
        ".@a.",
        "é.fo@o-o.oé",
        "fooé.",
        "foo.é",
        "é fo",
        "é f o o",
        "é FOO",
        "é unfoo",
        "é foo\n",
        "\U0001f600\ufe0f foo",
        "é Straße",
        "é ſtraße",
    ),
]


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\bfoo\b", r"(?i)\bfoo\b", r"\bfoo", r"foo\b", r"\b\d+(?:\.\d+)?\b", r"\b(?:foo|bar)\b", r"(?:\bfoo|bar\b)"),
        *(
            r"\bfoo\b\s+\bbar\b",
            r"\b\w+\b",
            r"\b(?:un)?foo\b",
            r"\b\.",
            r"\.\b",
            r"\b[^\W\d]+\b",
            r"foo\b[.,]",
            r"\b-foo\b",
        ),
        *(
            r"^.*\bfoo",
            r"\A\w*\bfoo",
            r"^[^a]*?\b-",
            r"(?s)^.*\b\d",
            r"^\s*\b\w",
            r"^[é.]*\bfoo",
            r"(?m)(?:^.*\bfoo|x)",
            r"^é*\b\.",
        ),
        *(r"(?i)\bstraße\b", r"(?s)\bfoo\b|\bé", r"\b[a-zé]+\b", r"(?:\bfoo)?é", r"\b(?i:FOO)\b"),
    ],
)
def test_a_word_boundary_becomes_the_neighbour_it_asks_for(pattern):
    assert route(pattern).in_columns
    assert backtracking_lane(pattern) is None, route(pattern)
    assert_same(pattern, WORDS)
    assert_same(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"foo\b.*\bbar",
        r"\b",
        r"\b.\b",
        r"(?:\bfoo)+",
        r"a(?:\bfoo|)",
        r"foo\b(?:x|)",
        r"\bfoo?\b|.\b.",
        r"foo\bbar",
        r"\b.?a",
    ],
)
def test_a_word_boundary_beside_any_character_is_linear_but_for_characters_of_disputed_wordness(pattern):
    assert route(pattern).in_columns
    assert route(pattern).disputed
    assert_same(pattern, WORDS)
    assert_same(pattern)


@pytest.mark.parametrize(
    "point", some(["a", "_", "1", "é", "²", "½", "\u0301", "\u200d", "\u2040", "٣", "-", " ", "\ufe0f", "ª", "Ⅷ"])
)
def test_random_boundaries_beside_every_kind_of_character(point):
    rng = random.Random(point)
    atoms = (
        "a",
        r"\d",
        r"\w",
        r"\W",
        r"\s",
        "[^a]",
        ".",
        re.escape(point),
        f"[a{point}]",
        "(?:a|-)",
        "(?:ab)?",
        "a*",
        "a+",
    )
    texts = ["".join(rng.choices(["a", "b", "1", "-", " ", "\n", "é", point], k=rng.randrange(6))) for _ in range(300)]
    for _ in range(sized(60, 15)):
        parts = [rng.choice(atoms) for _ in range(rng.choice((1, 2, 3)))]
        for _ in range(rng.choice((1, 1, 2))):
            parts.insert(rng.choice((0, len(parts), rng.randrange(len(parts) + 1))), r"\b")
        assert_same(rng.choice(("", "(?m)", "(?s)", "(?i)")) + "".join(parts), texts)


@pytest.mark.parametrize(
    "pattern",
    [r"(?m)^\s*(?:[-*]|\d+\.)\s", r"(?m)^foo$", r"(?m)^", r"(?m)^$", r"(?m)^\bfoo\b", r"(?m)^^a", r"(?m)(?:^a|b)"],
)
def test_the_beginning_of_a_line_at_the_head_of_a_pattern(pattern):
    texts = [
        "",
        "\n",
        "\n\n",
        "- a",
        "a\n- b",
        "a\n 1. b",
        "foo\n",
        "a\nfoo",
        "a\nfoo\nb",
        "afoo",
        "\r\nfoo",
        "a",
        "b\na",
        "\u2028foo",
    ]
    assert_same(pattern, texts)
    assert_same(pattern)


@pytest.mark.parametrize(
    "letter", some(["i", "s", "k", "ß", "σ", "ı", "İ", "\u212a", "ſ", "µ", "ǅ", "ﬅ", "Ω", "θ", "\u0345", "1"])
)
def test_ignoring_case_accepts_exactly_the_code_points_python_accepts(letter):
    every = sized(1, 5)  # above the planes that have letters with case
    points = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, every))]
    matcher = re.compile(f"(?i){letter}")
    found = columns(f"(?i){letter}", points).filter("found")[TEXT].to_list()
    assert found == [point for point in points if matcher.search(point)]


@pytest.mark.parametrize("pattern", [r"[^\ue000]", r"[^\ud7ff]", r"[\ud7ff\ue000]", r"[^\x00-\ud7ff]"])
def test_classes_that_end_beside_the_surrogates_are_linear(pattern):
    assert route(pattern).in_columns
    assert_same(pattern, ["", "a", "\ud7ff", "\ue000", "\ue001", "\U0010ffff"])


@pytest.mark.parametrize("pattern", [r"(a|aa)+$", r"(?:a+)+b$", r"<think>.*?</think>", r"(?i)(a|A)*c"])
def test_no_row_hangs_where_the_linear_engine_has_an_answer(pattern):
    hostile = ["a" * 60 + "b", "<think>" * 20_000, "b" + "a" * 60]
    assert [search(pattern, text) for text in hostile] == columns(pattern, hostile)["found"].to_list()
    rows = [{"completion": text, "verifier": {"fn_name": "regex_match", "expected": pattern}} for text in hostile]
    assert assay.score(rows)["reward"].to_list() == [float(search(pattern, text)) for text in hostile]


def test_a_looping_model_costs_linear_time_in_the_linear_engine():
    looping = "<think>" * 20_000
    assert route(r"(?s)<think>.*?</think>").in_columns
    assert_same(r"<answer>.*?</answer>", [looping, looping + "<answer>1</answer>"])


FOLDED = [
    "FOO",
    "foo",
    "fOo bar",
    "KELVIN",
    "\u212aelvin",
    "éFOO",
    "FOOé",
    "Foo é",
    "STRASSE",
    "Straße",
    "ſtraße",
    "İX",
    "ix",
    "RED é",
]


@pytest.mark.parametrize(
    ("pattern", "lowered"),
    [
        (r"(?i)(?:red|green|blue)", True),
        (r"(?i)\b(?:foo|bar|baz)\b", True),
        (r"(?i)(?:foo|kelvin|straße|ix)", True),
        (r"(?i)(?:foo|[^k]z|\w+x|.é)$", True),
        (r"(?i)\b(?:foo|bar|.x).*\b", True),
        (r"(?i:foo|bar|baz)", True),
        (r"(?i)(?:foo|(?-i:Bar)|x\d)", False),
        (r"(?:(?i:foo)|Bar|baz)", False),
        (r"(?i)foo", False),
        (r"(?:foo|bar|baz)", False),
    ],
)
def test_many_words_in_either_case_are_searched_for_in_lower_case(pattern, lowered):
    assert route(pattern).lowered == lowered
    assert_same(pattern, FOLDED)
    assert_same(pattern, WORDS)
    assert_same(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"a(?=b)",
            r"(?<=a)b",
            r"a(?!b)",
            r"(?<!a)b",
            r"(?<!\d)\d{2}(?!\d)",
            r"(?<![.\d])\d+(?![.\d])",
            r"(?<!ab)c",
            r"a(?!bc)",
        ),
        *(
            r"a(?!b\d\s)",
            r"(?<!\n.)b",
            r"(?:a(?=b)|c(?!d))",
            r"(?i)k(?!k)",
            r"(?i)(?<!s)t",
            r"(?i)(?:a|b|c)(?!d)",
            r"a(?=b$)",
        ),
        *(
            r"(?<=^a)b",
            r"(?<=\ba)b",
            r"a(?=b\b)",
            r"a(?=\s*\Z)",
            r"(?s)a(?!.)",
            r"a(?!.)",
            r"(?<!.)a",
            r"a(?![^b])",
            r"é(?!\w)",
        ),
        *(
            r"(?m)^(?<!a)b",
            r"(?m)b(?=$)",
            r"(?<=a|b)c",
            r"(?:a(?=b))+",
            r"(?<!\u0130)i",
            r"a(?=(?:b|c)+)",
            r"\b(?!a)",
            r"a(?!\w)\b",
        ),
    ],
)
def test_look_around_at_the_edge_of_a_pattern_is_read(pattern):
    texts = [
        *WORDS,
        "ab",
        "abc",
        "ac",
        "b",
        "c",
        "cd",
        "ce",
        "ab\n",
        "aab",
        "12",
        "123",
        "a12b",
        "1.5",
        "x12.",
        "kk",
        "kK",
        "st",
        "ſt",
        "ab1 ",
    ]
    assert_same(pattern, texts)
    assert_same(pattern)


@pytest.mark.parametrize(
    ("pattern", "conditions"),
    [
        (r"^(?=.*a)(?!.*b).*$", 3),
        (r"(?is)^(?!.*sorry)", 1),
        (r"\A(?=.*\d)(?=.*[)\]])a", 3),
        (r"(?s)^(?=.*\bfoo\b)(?=.*\bbar\b)", 2),
        (r"^(?!a(b)\))(?=x|(?:y))", 2),
        (r"^(?=[\s\S]*?\bbar\b)(?![\s\S]*a\b|x)(?=.*?f)", 3),
        (r"^(?=(a))(?=(b))", 0),
        (r"(?m)^(?=.*a)b", 0),
        (r"^(?=a)|b", 0),
        (r"^(?=.*foo\b.*\bbar)a", 2),
        (r"^(?!.*\b(?:foo|bar)\b)", 1),
        (r"^(?:(?=a))b", 0),
    ],
)
def test_look_ahead_at_the_start_is_a_condition_of_its_own(pattern, conditions):
    assert len(route(pattern).conditions) == conditions
    texts = [
        *WORDS,
        "a1)",
        "a)",
        "a1",
        "I am Sorry",
        "x\nsorry",
        "foo\nbar",
        "ab",
        "ab)",
        "x",
        "y",
        "b\na",
        "a\n",
        "a\nb",
    ]
    assert_same(pattern, texts)
    assert_same(pattern)


def test_a_pattern_that_can_never_match_matches_nothing():
    assert_same(r"(?!)")
    assert_same(r"a(?!)|b")


def test_a_class_of_many_ranges_that_are_no_work_stays_in_the_linear_engine():
    ranges = "".join(f"{chr(first)}-{chr(first + 9)}" for first in range(0x3400, 0x9000, 20))
    assert route(f"(?i)[{ranges}]").in_columns
    assert_same(f"[{ranges}]", ["\u3400", "\u340a", "a"])


@pytest.mark.parametrize("rows", [0, EVER])
def test_nulls_stay_null(rows):
    with set_to(beyond_rows=rows):
        for pattern in ("a", r"(?=a)", r"\ba", r"\s|a", r"\b.*a"):
            assert columns(pattern, [None, "a", None, "éa"])["found"].to_list() == [None, True, None, pattern != r"\ba"]


@pytest.mark.parametrize("pattern", [r"a\ud800", r"[\ud800-\udbff]", r"a[^\x00-\U0010ffff]", r"\ud800|b"])
def test_what_no_text_can_hold_matches_nothing(pattern):
    assert route(pattern).in_columns
    assert_same(pattern)


NODES = [
    *(r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", ".", "a", "k", "[^k]", "é", "K", "ſ", "[a-z]", "[^a-z]", "[é-ü]"),
    *(r"[\w-]", r"[^\W\d]", "[a-zé]", "[K-ſ]", "[ıi]", r"[\x00-\uffff]", r"[^\x00-\U0010ffff]", "[ß]", "[0-9.,]"),
]


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.ASCII, re.IGNORECASE | re.ASCII, re.DOTALL])
def test_a_class_cut_to_ascii_is_the_part_of_the_class_that_is_ascii(flags):
    for node in NODES:
        tree = parsed(node, flags)
        ((op, value),) = tree
        whole = accepted_points(op, value, tree.state.flags)
        cut = accepted_ascii(op, value, tree.state.flags)
        assert [code for first, last in cut for code in range(first, last + 1)] == [
            code for first, last in whole for code in range(first, min(last, 127) + 1)
        ]
        if any(last > 127 for _, last in whole):
            assert reaches_beyond_ascii(op, value, tree.state.flags)
        assert len(whole) <= most_ranges(op, value, tree.state.flags)
