"""Texts, and random patterns that Python may accept, for tests of regular expressions."""

import random
import re
import warnings

from assay.testing import hostile_texts

# short, for a random pattern may backtrack exponentially in Python
TEXTS = [text[:14] for text in hostile_texts(220, seed=5)] + [
    *(
        "",
        "\n",
        "a",
        "a\n",
        "a\n\n",
        "ab\ncd",
        "a b",
        "aXb",
        "\x1c",
        "x\x1cy",
        "é",
        "e\u0301",
        "ΑΣ",
        "ß",
        "ẞ",
        "ſ",
        "K",
        "İ",
        "i̇",
        "_",
        "٣",
        "²",
    ),
    *(
        "abab",
        "aa",
        "foo.bar",
        "3,000.50",
        "\u2028",
        "a\u200db",
        "👍🏽",
        "</think>",
        "\r\n",
        "\x00",
        "ab12",
        "ǅ",
        "ﬁ",
        "FI",
        "ı",
        "I",
    ),
]

ATOMS = (
    *(
        "a",
        "b",
        "k",
        "s",
        "i",
        "K",
        "ß",
        "ſ",
        "Σ",
        "ς",
        "é",
        "\u212a",
        "İ",
        "ı",
        "1",
        "_",
        " ",
        ".",
        r"\.",
        r"\n",
        r"\x1c",
        r"\u0301",
    ),
    *(
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        "[a-z]",
        "[^a-z]",
        r"[\w-]",
        r"[^\W\d]",
        r"[\s,]",
        "[a-z&&[b]]",
        "[[:alpha:]]",
        "[]a]",
        "[^]a]",
    ),
    *(
        "^",
        "$",
        r"\A",
        r"\Z",
        r"\b",
        r"\B",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!b)",
        "(?:)",
        "(?i:k)",
        "(?s:.)",
        "(?m:$)",
        "(?a:\\w)",
        "(?-i:k)",
    ),
)
REPEATS = ("", "", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{0,2}", "{1,}", "{2}?", "?+", "*+", "++", "{1,2}+")
FLAGS = ("", "", "", "", "(?i)", "(?s)", "(?m)", "(?x)", "(?a)", "(?ims)", "(?im)", "(?ia)")


def random_pattern(rng: random.Random, depth: int = 2) -> str:
    parts = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        kind = rng.random()
        if depth and kind < 0.25:
            inner = "|".join(random_pattern(rng, depth - 1) for _ in range(rng.choice((1, 2, 2, 3))))
            atom = rng.choice(("(", "(?:", "(?:", "(?P<n>", "(?>", "(?=", "(?i:")) + inner + ")"
        elif kind < 0.28:
            atom = r"(a|b)\1"
        else:
            atom = rng.choice(ATOMS)
        parts.append(atom + rng.choice(REPEATS))
    return "".join(parts)


def accepted(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
