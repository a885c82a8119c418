"""Sets of positions: Python's verdict without backtracking, in a number of steps that the pattern and the text decide."""

import random
import re
import time
import warnings
from re import _parser as sre_parser

import pytest
from cases import sized
from patterns import FLAGS, TEXTS, accepted
from patterns import random_pattern as random_hostile_pattern

from assay.expressions.regex.compiled import compile_pattern
from assay.expressions.regex.positions import NotPositionsError, Positions, TooManyStepsError
from assay.expressions.regex.search import search
from assay.system.memory import uncollected

SHORT = ["".join(random.Random(at).choices("aaabbbAk1 \n", k=at % 9)) for at in range(90)]
LEAVES = (
    *("a", "b", "a", "b", "ab", "[ab]", ".", r"\w", r"\s", "k", r"\b", r"\B", "^", "$", r"\Z"),
    *("a*", "b*", "a+", "b+?", "a??", "[ab]*?", "a{1,2}", ".*", "a|ab", "ab|a", "|a", "b|"),
    *("(?=a)", "(?!b)", "(?<=a)", "(?<!ab)", "(?=b*a)", "(?i:A)"),
)
ENDINGS = ("", "", "?", "??", "*", "+?", "{2}", "{0,2}", "{1,3}?", "{3}")


def positions(pattern):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Positions(sre_parser.parse(pattern))


def random_pattern(rng, depth=3):
    parts = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.45:
            inner = "|".join(random_pattern(rng, depth - 1) for _ in range(rng.choice((1, 1, 2))))
            parts.append(rng.choice(("(", "(", "(?:", "(?=", "(?!")) + inner + ")" + rng.choice(ENDINGS))
        else:
            parts.append(f"(?:{rng.choice(LEAVES)})")
    return "".join(parts)


@pytest.mark.parametrize("seed", range(sized(12, 3)))
def test_random_patterns_agree_with_python(seed):
    rng = random.Random(seed)
    tried = 0
    while tried < 80:
        if tried % 2:
            pattern, texts = rng.choice(FLAGS) + random_hostile_pattern(rng), TEXTS
        else:
            start, end = rng.choice(("", "(?i)", "(?m)", r"\A")), rng.choice(("", r"\Z", "$"))
            pattern, texts = start + random_pattern(rng) + end, SHORT
        if not accepted(pattern):
            continue
        try:
            searched = positions(pattern)
        except NotPositionsError:
            continue
        wanted = compile_pattern(pattern)
        for text in texts:
            assert searched.search(text) == (wanted.search(text) is not None), (pattern, text)
        tried += 1


@pytest.mark.parametrize("pattern", [r"\B", r"(?=\B)", r"\B\Z"])
def test_where_nothing_is_no_boundary_is_what_this_python_says(pattern):
    texts = ("", "a", " ")
    assert [positions(pattern).search(text) for text in texts] == [bool(re.search(pattern, text)) for text in texts]


@pytest.mark.parametrize("pattern", [r"\w(?!\w)", r"[^\W\d](?=\s)", r"(?i)[k-s](?!a)", r"(?a)\w(?=\W)", r"(?i)ß(?!a)"])
@pytest.mark.parametrize("around", ["{0} {0}", "{0}a" + "".join(map(chr, range(0x4E00, 0x4F00)))])
def test_classes_of_many_ranges_hold_exactly_what_python_accepts(pattern, around):
    wanted, searched = re.compile(pattern), positions(pattern)
    for point in [*range(0x500), *range(0x1C80, 0x2200, 3), *range(0xFB00, 0xFB10), *range(0x10400, 0x10450)]:
        text = around.format(chr(point))
        assert searched.search(text) == (wanted.search(text) is not None), hex(point)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "a back-reference"),
        (r"(a)?(?(1)b|c)", "a conditional group"),
        ("(?>a)b", "an atomic group"),
        ("a++b", "a possessive repeat"),
        (r"(?a:\w)", "scoped a/u flags"),
    ],
)
def test_what_is_no_question_about_the_language_is_refused(pattern, why):
    with pytest.raises(NotPositionsError, match=re.escape(why)):
        positions(pattern)


NESTED = [
    (rf"\A{'(?:' * depth}a{repeat * depth}\Z", "a" * 300 + "!")
    for depth in (22, 100)
    for repeat in (")+", "b?)*", "c*){1,}")
]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        *NESTED,
        ("(?=a)(a+)+$", "a" * 5_000 + "!"),
        (r"^(?=(a|aa)+$)(?:a|b|ab)*c", "a" * 5_000),
        (r"\A(?:a|aa)" + "(?:a|aa)?" * 40 + r"x\Z", "a" * 60),
        (r"(?:(?:(?:a{2,}){2,}){2,}){2,}(?!a)\Z", "a" * 1_000 + "!"),
        (r"(?s)<think>.*?</think>(?!x)", "<think>" * 40_000),
        (r"^\W*(?:\w+\W+){1000,3000}$", "a b " * 2_000 + "!a"),
    ],
)
def test_what_takes_python_years_takes_no_time(pattern, text):
    started = time.thread_time()
    assert not positions(pattern).search(text)
    assert time.thread_time() - started < 20  # it takes less than 0.1 s


@pytest.mark.parametrize(("pattern", "text"), [("(?:ab|c)+(?=d)", "abc" * 50 + "d"), (r"\w+\s(?!x)", "é " * 40)])
def test_steps_are_a_matter_of_the_pattern_and_the_text(pattern, text):
    searched = positions(pattern)
    fewest = next(steps for steps in range(100, 1_000_000, 100) if not _too_many(searched, text, steps))
    assert fewest > 100
    for _ in range(3):
        assert _too_many(searched, text, fewest - 100)
        assert not _too_many(searched, text, fewest)


def _too_many(searched, text, steps):
    try:
        return not searched.search(text, steps)
    except TooManyStepsError:
        return True


DISTINCT = "".join(map(chr, range(0x3400, 0x3400 + 6_000)))


@pytest.mark.parametrize(
    ("pattern", "text"), [(f"(?:{DISTINCT})+(?!x)z", DISTINCT), ("(?=一)(?:a|一)+x", DISTINCT * 5_000)]
)
def test_looking_up_many_distinct_characters_is_counted(pattern, text):
    searched = positions(pattern)
    started = time.thread_time()
    with pytest.raises(TooManyStepsError):
        searched.search(text)
    assert time.thread_time() - started < 5  # some 1 s


@pytest.mark.parametrize(
    "pattern", [r"(?=a)" + r"\w" * 40_000, f"(?i)(?=a)(?:{DISTINCT})+x", "(?=a)" + r"[\w-]" * 3_000]
)
def test_making_sets_of_a_long_pattern_takes_no_longer_than_parsing_it(pattern):
    sre_parser.parse(pattern)
    with uncollected():  # else what other tests left is looked through
        started = time.thread_time()
        Positions(sre_parser.parse(pattern))
    assert time.thread_time() - started < 1  # some 0.2 s; more than 1 s where every class is looked at anew


@pytest.mark.parametrize("flags", ["", "(?i)", "(?ia)", "(?a)", "(?is)"])
def test_a_class_means_the_same_however_it_is_written(flags):
    text = "aAkKsſKßẞıİ1²é\n一"
    for one in (r"\w", r"[\w]", r"[^\W]", "[k]", "k", "[^k]", "一", "[^一]", "ß", "[ı]", "."):
        for other in (r"\b", r"\B"):
            pattern = f"{flags}{one}(?={other})"
            for point in (*text, text):
                wanted = re.search(pattern, point) is not None
                assert positions(pattern).search(point) == wanted, (pattern, point)


def test_the_text_with_the_most_steps_still_has_a_verdict():
    assert search("(?=a)(?:(?:ab)*c?)*$", "ab" * 3_000_000 + "!") is False
