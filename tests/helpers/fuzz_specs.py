"""Draw specs of the whole language, and rows for them: golds from columns, steps, groups, conditions, gates, penalties."""

import json
import random
from importlib.util import find_spec

from assay.testing import hostile_texts

WORDS = ("refund", "REFUND", "ΟΔΟΣ", "42", "a", "", "Straße", "yes", "B", "1,200", "x y", "3.5")
TEXTS = (
    "A: 42", "It is \\boxed{42}.", "<think>no refund</think> yes, a refund. #### 1,200", "<answer>B</answer>",
    "the answer is (B)", "a, b; c\nb, a", '{"a": 1, "b": [1, 2], "c": "refund"}', "```json\n{}\n```",
    "first\n\nlast 3.5", "<think> cut off",
)  # fmt: skip
SOURCES = ({"column": "note"}, "prompt", "assistant", "reasoning", "completion", {"template": "{note} = {level}"})
STEPS = (
    *("afterThink", "think", {"tag": "answer"}, {"tag": "answer", "at": "first"}, "boxed", {"after": "A:"}),
    *({"after": "####", "to": "end"}, "number", {"number": {"at": "first"}}, "choice", "fence", {"line": "last"}),
    *({"regex": r"(\w+) refund"}, {"regex": r"\d+", "at": "first"}, {"regex": r"(a)|b", "group": "any"}, "lower"),
    *("upper", "strip", {"remove": ["a", "re"]}, {"replace": {"old": "a", "new": "b"}}, {"map": {"yes": "B"}}),
    *({"normalize": "squad"}, {"json": {"path": "c"}}, {"json": {"at": "first"}}, {"after": "is", "notFound": "keep"}),
    {"firstOf": [["boxed"], [{"after": "A:"}], ["number"]]},
)
GOLDS = (
    *({"column": "answer"}, {"column": "golds"}, {"column": "level"}, {"column": "metadata.gold"}),
    *({"template": "{answer}"}, {"template": "#{level}"}, {"column": "listed", "list": True}),
)
INSTRUCTIONS = (
    {"punctuation:no_comma": {}, "detectable_format:title": {}},
    {
        "keywords:existence": {"keywords": ["refund", "a+"]},
        "length_constraints:number_words": {"relation": "at least", "num_words": 3},
    },
    {"keywords:letter_frequency": {"letter": "a", "let_relation": "less than", "let_frequency": 2}},
    {"combination:repeat_prompt": {}, "startend:quotation": {}, "detectable_format:json_format": {}},
    {"detectable_format:number_bullet_lists": {}},
    {"punctuation:none": {}},
)
PACKAGES = {"math": "math_verify", "language": "langdetect", "ifeval": "nltk"}
"""The check types of optional packages."""
MATHS = (
    "0.5", r"\frac{1}{2}", "x^2+2x+1", "(x+1)^2", r"2\sqrt{3}", r"\sqrt{12}", r"\{1, 2\}", r"\{2, 1\}", "(1, 2)",
    "1/3", r"50\%", "", "42", "x = 2", r"\frac", "no number", r"\pi", "1,000", "10^{400}", r"\text{B}", "x < 2",
    r"(-\infty, 2)", "A",
)  # fmt: skip
AROUND = ("{}", "{}", r"\boxed{{{}}}", "<think>1</think> ${}$", "A: {}", "the answer is {}\n", "<answer>{}</answer>")
SENTENCES = (
    "Where is the nearest railway station?", "Wo ist der nächste Bahnhof, bitte?", "Où est la gare la plus proche ?",
    "今日はとても良い天気ですね。", "Где находится ближайший вокзал?", "The refund, bitte: 返金", "42!",
    "WHERE IS MY REFUND? IT IS LATE.", "Dr. Smith paid 3.5 dollars. He left. Did he?", "ΠΟΥ ΕΙΝΑΙ",
    "a refund http://example.com/a un remboursement",
)  # fmt: skip
LANGUAGES = ("en", "de", "fr", "ja", "ru", "el", "zh-cn", "no such")
DETECTED = (
    {"language:response_language": {"language": "de"}, "change_case:english_lowercase": {}},
    {"change_case:english_capital": {}, "punctuation:no_comma": {}},
    {"length_constraints:number_sentences": {"relation": "at least", "num_sentences": 2}},
    {"change_case:capital_word_frequency": {"capital_relation": "less than", "capital_frequency": 2}},
)
"""Instructions that take langdetect or nltk."""
METRICS = (
    "ratio", "osa", "token_set", "partial", "levenshtein_distance", "token_f1", "rouge_1", "rouge_l", "bleu", "gleu",
)  # fmt: skip
GROUPS = ("all_of", "any_of", "none_of", "at_least", "mean", "min", "max", "product")


def _gold(rng):
    if rng.random() < 0.35:
        return rng.choice(WORDS)
    if rng.random() < 0.5:
        return rng.choice(GOLDS)
    return [rng.choice((rng.choice(WORDS), rng.choice(GOLDS))) for _ in range(rng.randrange(4))]


def _leaf(rng):
    phrase = {"value": _gold(rng)} | rng.choice(({}, {}, {"caseSensitive": True}))
    small = rng.choice(({"column": "level"}, 2, 5))
    return rng.choice(
        (
            *({"type": name} | phrase for name in ("contains", "not_contains", "equals", "starts_with", "ends_with")),
            {"type": "contains", "word": True} | phrase,
            {"type": "equals", "value": _gold(rng), "normalize": rng.choice(("squad", "inspect", "math", "casefold"))},
            {"type": "number", "value": _gold(rng)} | rng.choice(({}, {"relTol": 0.01}, {"at": "first"})),
            {"type": "choice", "value": _gold(rng)},
            {
                "type": "contains_any",
                "values": rng.choice((["a", "b"], {"column": "golds"}, [{"column": "answer"}, "a"])),
            },
            {"type": "contains_all", "values": ["a", "refund"], "score": "share"},
            {
                "type": "list_equals",
                "value": rng.choice((["a", "b"], {"column": "golds"})),
                "as": rng.choice(("set", "f1")),
            },
            {"type": "number_range", "min": 0, "max": small},
            {"type": "similarity", "value": _gold(rng), "metric": rng.choice(METRICS)},
            {"type": "count", "of": rng.choice(("words", "chars", "lines", "bullets")), "max": small},
            {"type": "case", "is": "upper"},
            {"type": "regex", "pattern": rng.choice((r"\d+", "(?i)refund", {"column": "pattern"}))},
            {"type": "min_length", "value": small},
            {"type": "repetition", "n": rng.choice((1, 3, {"column": "level"}))},
            {
                "type": "length_penalty",
                "max": 9,
                "buffer": rng.choice((0, 4, {"column": "level"})),
                "unit": rng.choice(("chars", "words", {"column": "level"}, {"column": "answer"})),
            },
            {"type": "json_valid"},
            {"type": "tool_calls", "value": rng.choice(([], [{"a": {"b": 1}}], {"column": "note"})), "score": "share"},
            {"type": "tool_f1", "value": rng.choice(("a, b", {"column": "note"}, {"column": "golds"}))},
            {"type": "tool_trajectory", "max": small},
            {"type": "tool_valid", "tools": rng.choice(([{"name": "a"}], {"column": "note"}))},
            {"type": "json_keys", "keys": ["a"]},
            {"type": "json_schema", "schema": rng.choice(({"type": "object"}, True, {"column": "answer"}))},
            {
                "type": "json_match",
                "value": rng.choice(({"a": 1, "b": [2, 1]}, {"column": "level"}, {"column": "golds"})),
                "score": rng.choice(("equal", "subset", "share", "f1")),
                "lists": rng.choice(("ordered", "unordered")),
            },
            {"type": "task_expectations"},
            {"type": "ifeval", "mode": rng.choice(("strict", "loose"))},
            {"type": "nonsense"},
            {"type": "max_length", "value": "many"},
        )
    )


def _condition(rng):
    test = rng.choice(({"equals": 3}, {"in": [1, 2, "x"]}, {"exists": rng.random() < 0.5}, {"matches": r"^\d"}, {}))
    column = {"column": rng.choice(("level", "note", "metadata.gold"))} | test
    condition = column if rng.random() < 0.7 else {"check": {**_leaf(rng), "type": "contains", "value": "a"}}
    if "check" in condition:
        condition = {"check": {"type": "contains", "value": _gold(rng)} | rng.choice(({}, {"on": "afterThink"}))}
    return condition | rng.choice(({}, {"not": True}))


def _around(rng, *, top):
    fields = {}
    if rng.random() < 0.2:
        fields["negate"] = True
    if rng.random() < 0.2:
        fields["threshold"] = rng.choice((0.1, 0.5, 1))
    if rng.random() < 0.25:
        fields["when"] = _condition(rng)
    if rng.random() < 0.4:
        fields["weight"] = rng.choice((0.3, 1, 2.5, 0))
    if top and rng.random() < 0.3:
        fields.pop("weight", None)
        fields |= rng.choice(({"gate": True}, {"penalty": 0.3}, {"required": True}))
    return fields


def draw_check(rng, depth=0, *, top=True, draw_leaf=_leaf):
    around = _around(rng, top=top)
    if depth < 3 and rng.random() < 0.25:
        kind = rng.choice(GROUPS)
        parts = [draw_check(rng, depth + 1, top=False, draw_leaf=draw_leaf) for _ in range(rng.randrange(1, 4))]
        return {"type": kind, "checks": parts} | ({"k": rng.randrange(1, 4)} if kind == "at_least" else {}) | around
    leaf = draw_leaf(rng) | around
    if rng.random() < 0.5:
        source = [rng.choice(SOURCES)] if rng.random() < 0.3 else []
        steps = [rng.choice(STEPS) for _ in range(rng.randrange(0 if source else 1, 3))]
        leaf["on"] = source + steps
    if rng.random() < 0.15:
        leaf["notFound"] = "pass"
    if rng.random() < 0.3:
        leaf["missingGold"] = rng.choice(("fail", "pass"))
    if rng.random() < 0.1 and "value" in leaf:
        leaf["goldOn"] = [rng.choice(STEPS)]
    return leaf


def draw_spec(rng, draw_leaf=_leaf):
    spec = {
        "id": rng.choice(("v", "w")),
        "checks": [draw_check(rng, draw_leaf=draw_leaf) for _ in range(rng.randrange(1, 5))],
    }
    if rng.random() < 0.4:
        spec["combine"] = rng.choice(("mean", "sum", "min", "max", "product"))
    if rng.random() < 0.3:
        spec |= {"range": rng.choice(([0, 1], None, [-1, 2]))}
    return spec | {"passThreshold": rng.choice((0.5, 1, 0.9))}


def draw_rows(rng, count):
    texts = [*hostile_texts(count, rng.randrange(1 << 30))]
    tasks = [rng.choice(INSTRUCTIONS) for _ in texts]
    return [
        {
            "completion": rng.choice((None, text, rng.choice(TEXTS), rng.choice(TEXTS), text + rng.choice(TEXTS))),
            "prompt": rng.choice((None, "Where is my refund?", text)),
            "answer": rng.choice((None, *WORDS, text)),
            "golds": rng.choice((None, [], [None], ["a", "b"], [None, "refund"], ["42", text])),
            "level": rng.choice((None, 1, 2, 3)),
            "note": rng.choice((None, "A: 42", text)),
            "listed": rng.choice((None, "[]", '["a", "42"]', "no list", "[1, null]")),
            "pattern": rng.choice((None, r"\d", "refund", "(", "a+$")),
            "metadata": rng.choice((None, json.dumps({"gold": rng.choice((None, 42, "refund", ["a", "B"]))}), "no")),
            "instruction_id_list": rng.choice((None, json.dumps([*task]), json.dumps([*task]))),
            "kwargs": rng.choice((json.dumps([*task.values()]), json.dumps([*task.values()]), "[]")),
        }
        for text, task in zip(texts, tasks, strict=True)
    ]


def _packaged_leaf(rng):
    gold = rng.choice(
        ({"column": "answer"}, {"column": "answer"}, {"column": "golds"}, rng.choice(MATHS), {"column": "level"})
    )
    checks = {
        "math": {"value": gold}
        | rng.choice(
            ({}, {}, {"precision": 2}, {"strict": False}, {"setRelations": True}, {"parse": "any"}, {"parse": "latex"})
        ),
        "language": {"is": rng.choice((*LANGUAGES, {"column": "language"}, {"column": "language"}))},
        "ifeval": {"mode": rng.choice(("strict", "loose", {"column": "note"}))},
    }
    kinds = [name for name, package in PACKAGES.items() if find_spec(package)]
    kind = rng.choice(kinds) if kinds and rng.random() < 0.8 else None
    return _leaf(rng) if kind is None else {"type": kind} | checks[kind]


def _packaged_row(rng):
    around, task = rng.choice(AROUND), rng.choice(DETECTED)
    texts = (
        around.format(rng.choice(MATHS)), rng.choice(SENTENCES), rng.choice(SENTENCES) + "\n" + rng.choice(SENTENCES),
    )  # fmt: skip
    return {
        "completion": rng.choice((*texts, texts[0], *TEXTS, None)),
        "answer": rng.choice((None, *MATHS, *MATHS)),
        "golds": rng.choice((None, [], [None, "0.5"], rng.choices(MATHS, k=2), rng.choices(MATHS, k=3))),
        "language": rng.choice((None, *LANGUAGES)),
        "note": rng.choice((None, "strict", "loose", "A: 42")),
        "instruction_id_list": rng.choice((None, json.dumps([*task]), json.dumps([*task]))),
        "kwargs": json.dumps([*task.values()]),
    }


def drawn_for_packages(seed, rows=8):
    rng = random.Random(f"packages {seed}")
    return draw_spec(rng, draw_leaf=_packaged_leaf), [row | _packaged_row(rng) for row in draw_rows(rng, rows)]


def drawn(seed, rows=30):
    rng = random.Random(seed)
    return draw_spec(rng), draw_rows(rng, rows)
