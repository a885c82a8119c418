"""Patterns that the linear engine runs once they are written without look-ahead, back-references and possessive parts."""

import random
import re
import tomllib
import warnings

import polars as pl
import pytest
from cases import ROOT, sized
from patterns import accepted

import assay
from assay.expressions.regex import guarded
from assay.expressions.regex import search as search_module
from assay.expressions.regex.compiled import compile_pattern
from assay.expressions.regex.search import linear_answers, route, search_all

SHAPE = tomllib.loads((ROOT / "specs/answer-format/answer-format.toml").read_text("utf-8"))["checks"][0]["params"][
    "pattern"
]

AHEAD = [
    SHAPE,
    r"(?ms)^<think>(?!.*<think>)(.*?)</think>.*$",
    r"^<think>([^<]*(?:<(?!/?think>)[^<]*)*)</think>\n<answer>([\s\S]*?)</answer>$",
    r"(?s)^<think>((?!</think>).)*</think>\s*<answer>((?!</answer>).)+</answer>$",
    r"(?s)<think>(?:.(?!<think>))*?</think>",
    r"<answer>(?:(?!<answer>)[\s\S])*?</answer>",
    r"<answer>(?:[^<]|<(?!/answer>))*</answer>",
    r"(?s)<answer>.*</answer>(?!.*<answer>)",
    r"(?s)</think>(?!.*</?think>)",
    r"(?s)```python\n(?:(?!```).)*```",
    r"(?m)^(?:(?!error|warning).)+$",
    r"(?m)#(?!\s*TODO).*$",
    r"(?i)^(?:(?!sorry).)*$",
    r"(?s)\\boxed\{(?!.*\\boxed)",
    r"(?s)(\d+)(?!.*\d)",
    r"a(?!b)c|a(?!bc|d)",
    r"(?!a)\w+(?!\s*$)",
    r"(?!ab|ba)\w{2,4}\Z",
    r"(?:(?!aba).)+ab",
    r"(?:(?!a*b).)*c",
    r"(?:(?!)a)*b(?!)|(?!\Z)a",
    r"(?!a[^\w\W])a(?!b[^\w\W]|$)",
]
OTHERS = [
    r"(?s)<(search|answer)>(.*?)</\1>",
    r"""(["'])(?:(?!\1).)*\1""",
    r"(?m)^(`{3}|~~~)[^`]*\n\1$",
    r"(a|b)?c" + r"(x)(?(2)y|z)\2",
    r"(a|ab)(b?)\1\2",
    r'"[^"]*+"',
    r"(?>\w+)(?=:)",
    r"\d++\.\d++(?:,|\Z)",
    r"(?>ab)(?>c *)$",
    r"a?+b|(?:a++b)*c",
]
TEXTS = [
    "".join(random.Random(at).choices(["a", "b", "c", "A", "B", "x", "1", " ", "\n", "é", ":", '"', "'", "`", "."], k=at % 12))
    for at in range(300)
] + [
    "<think>a</think>\n<answer>1</answer>", "<think></think><answer></answer>", "<think><think></think></think>", "<think>a",
    "<think>a</think><answer>b</answer><answer>c</answer>", "</think></think>", "x\n<think>a</think>b", "<think>a</think> <think>",
    "<search>a</answer>", "<search>a</search>", "```python\na``b```", "```python\na", "```\na\n```", "~~~\na\n```", "# TODO", "# x", "#\nTODO",
    "I am Sorry", "\\boxed{1} \\boxed{2}", "\\boxed{", "no error\nat all", "an error", "1.5,", "12.34", "ab c\n", "abc: d", "<answer><b></answer>",
    "<answer></answe></answer>", "<<answer><</answer>", "ﬆraße", "<think>é</think>\n<answer>ж</answer>", "\n", "",
]  # fmt: skip


def assert_same(pattern, texts):
    wanted = compile_pattern(pattern)
    answers = linear_answers(pl.Series("text", texts), route(pattern)).to_list()
    for text, answer in zip(texts, answers, strict=True):
        assert answer in (None, wanted.search(text) is not None), (pattern, text)


@pytest.mark.parametrize("pattern", AHEAD + OTHERS)
def test_what_people_write_is_linear(pattern):
    assert route(pattern).in_columns, route(pattern).why
    assert_same(pattern, TEXTS)
    assert_same(f"(?i:{pattern})" if not pattern.startswith("(?") else pattern, TEXTS)


def test_the_pattern_of_the_documentation_needs_no_process(monkeypatch):
    monkeypatch.setattr(guarded, "guarded_search", lambda *_, **__: pytest.fail("a process was asked"))
    texts = [f"<think>{'Let me see. ' * at}</think> <answer>{at}</answer>{'' if at % 3 else '<'}" for at in range(400)]
    plan = assay.compile({"checks": [{"type": "regex", "pattern": SHAPE}]})
    rewards = plan.score_rows([{"completion": text} for text in texts])["reward"].to_list()
    assert rewards == [float(bool(re.search(SHAPE, text))) for text in texts]


CHARACTERS = ("a", "b", "[ab]", "[^a]", ".", r"[^\n]", r"\w", r"[\s\S]", "c")
WORDS = (
    "a",
    "b",
    "ab",
    "aa",
    "ba",
    "aba",
    "[ab]",
    "[^a]",
    ".",
    "c",
    r"\n",
    r"\s",
    "a?",
    "b*",
    "a+",
    "a{1,2}",
    "(?:a|b)",
    "$",
    r"\Z",
)


def words(rng, depth=2):
    if depth and rng.random() < 0.2:
        return f"(?:{words(rng, depth - 1)}|{words(rng, depth - 1)}){rng.choice(('', '?', '*', '+', '{2}', '{0,2}'))}"
    return "".join(rng.choices(WORDS, k=rng.choice((1, 1, 2, 3))))


def ahead(rng, depth=2):
    character, count = rng.choice(CHARACTERS), rng.choice(("*", "+", "*?", "", "?", "{2}", "{1,3}", "{2,}"))
    kinds = [
        lambda: f"(?:(?!{words(rng)}){character}){count}",
        lambda: f"(?:{character}(?!{words(rng)})){count}",
        lambda: f"(?!{words(rng)})",
        lambda: f"(?!.*{words(rng)})",
        lambda: f"(?:[^a]|a(?!{words(rng)}))*",
        lambda: f"{character}{count}",
        lambda: words(rng),
        lambda: rng.choice((r"\b", "^", "$", r"\Z", "(?=a)", "(?<=a)", "(?<!b)")),
        lambda: (
            f"(?:{sequence(rng, ahead, depth - 1)}|{sequence(rng, ahead, depth - 1)}){rng.choice(('', '?', '*', '+'))}"
        ),
    ]
    return rng.choice(kinds[: -1 if not depth else None])()


def possessive(rng, groups=0):
    character, number = rng.choice(CHARACTERS), rng.randint(1, max(groups, 1))
    parts = [
        *(
            f"{character}*+",
            f"{character}++",
            f"{character}?+",
            f"{character}{{1,2}}+",
            f"(?>{character}+)",
            f"(?>a{character}*)",
        ),
        *(
            "(?>ab)",
            f"(?>{character}+?)",
            "(?>a|ab)",
            f"(?:{character}++b)*",
            character,
            f"{character}*",
            "$",
            r"\b",
            "(?=b|c)",
            "(?!b)",
        ),
    ]
    if groups:
        parts += [rf"\{number}", rf"\{number}*", rf"(?!\{number})", rf"(?:(?!\{number}).)*", rf"(?({number})a|b)"] * 2
    return rng.choice(parts)


def sequence(rng, part, depth=2):
    return "".join(part(rng, depth) for _ in range(rng.randint(1, 3)))


def with_groups(rng, _=2):
    parts, groups = [], 0
    for _ in range(rng.randint(1, 5)):
        is_group = rng.random() < 0.35
        groups += is_group
        parts.append(
            f"({rng.choice(('a|b', '[ab]', 'ab|b', 'a?', 'a{1,2}', 'aa|a|', '(?:a|b){2}', 'b'))})"
            if is_group
            else possessive(rng, groups)
        )
    return "".join(parts)


@pytest.mark.parametrize("draw", [lambda rng: sequence(rng, ahead), with_groups], ids=["look-ahead", "groups"])
@pytest.mark.parametrize("seed", range(sized(12, 3)))
def test_random_patterns_agree_with_python(seed, draw):
    rng = random.Random(f"{seed}")
    texts = ["".join(rng.choices("aaabbbccA\n é", k=rng.randrange(9))) for _ in range(200)] + [
        "",
        "a",
        "b",
        "ab",
        "\n",
        "a\n",
    ]
    linear = 0
    for _ in range(sized(150, 75)):
        pattern = "".join(
            (
                rng.choice(("", "", "(?s)", "(?i)", "(?m)")),
                rng.choice(("", r"\A")),
                draw(rng),
                rng.choice(("", "$", r"\Z")),
            )
        )
        if accepted(pattern) and route(pattern).in_columns:
            assert_same(pattern, texts)
            linear += 1
    assert linear > 20  # what is tested is not left to Python


# ── what is not linear: Python first ────────────────────────────────────────────────────────────────────────────────────

BEHIND = r"(?:\w|\s)+(?<!x)(?:a|aa)+(?<!y)$"
"""Takes Python years on some texts."""
LOOPING = "a" * 200 + "!"


def test_positions_are_asked_only_where_python_is_late(monkeypatch):
    searched = []
    search = search_module.Positions.search
    monkeypatch.setattr(
        search_module.Positions,
        "search",
        lambda self, text, steps=None: searched.append(text) or search(self, text, steps),
    )
    texts = ["a" * at for at in range(30)] + [LOOPING, "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = search_all(r"(?:a|aa)+(?<!y)$", texts)
    assert answers == [False, *[True] * 29, False, False]
    assert searched in ([LOOPING], [])  # unless Python is fast


@pytest.mark.parametrize("seconds", [None, 0.2])
def test_a_text_on_which_python_would_take_for_ever_has_a_verdict(seconds):
    plan = assay.compile({"checks": [{"type": "regex", "pattern": BEHIND}]})
    rows = [{"completion": text} for text in (LOOPING, "a a", LOOPING + "?")]
    scored = assay.score(rows, plan, **({} if seconds is None else {"regex_timeout": seconds}))
    assert scored["reward"].to_list() == [0.0, 1.0, 0.0]
    assert scored["error"].null_count() == 3
