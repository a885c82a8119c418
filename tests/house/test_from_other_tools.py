"""Every row of the tables in docs/from-other-tools.md that has a check: it scores examples as the other tool does."""

import re

import pytest
from cases import ROOT

import assay
from assay.system.documents import parse_text

TEXT = (ROOT / "docs" / "from-other-tools.md").read_text("utf-8")
NO_CHECK = "–"


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows():
    """The rows of each table: what is there, the check here, the note."""
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for line in section.splitlines():
            if line.startswith("| ") and not line.startswith(("| there", "|---")):
                there, here, note = cells(line)
                yield f"{title}: {there}", here, note


ROWS = {there: (here, note) for there, here, note in rows()}
SPECS = {
    there: parse_text(here.strip("`"), ".yaml", there).data for there, (here, _) in ROWS.items() if here != NO_CHECK
}


def calls(*named):
    calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in named]
    return {"completion": [{"role": "assistant", "content": None, "tool_calls": calls}]}


def row(completion, score, gold=None, **columns):
    golds = {} if gold is None else {"golds" if isinstance(gold, list) else "gold": gold}
    return {"completion": completion, **golds, **columns}, score


OPENAI, PROMPTFOO, INSPECT, LM, TRAINERS = "OpenAI graders", "promptfoo", "Inspect", "lm-eval", "Rewards of trainers"
CAT = "the cat sat on the mat"
SEARCH, REPLY = ("search", '{"q": "a"}'), ("reply", "{}")
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"required": ["q"]}}}]
ROUGE = [row(CAT, 1.0, CAT), row("dogs", 0.0, CAT)]
IFEVAL = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
BFCL = {
    "gold": '[{"search": {"q": ["a", "b"]}}]',
    "tools": [
        {"name": "search", "parameters": {"type": "dict", "properties": {"q": {"type": "string"}}, "required": ["q"]}}
    ],
}

CASES = {
    OPENAI: {
        "`string_check` `eq`": [row("a", 1.0, "a"), row("A", 0.0, "a"), row(" a", 0.0, "a")],
        "`string_check` `ne`": [row("a", 0.0, "a"), row("A", 1.0, "a")],
        "`string_check` `like`": [row("a cat", 1.0, "cat"), row("a Cat", 0.0, "cat")],
        "`string_check` `ilike`": [row("a Cat", 1.0, "cat"), row("a dog", 0.0, "cat")],
        "`text_similarity` `fuzzy_match`": [row("abcd", 1.0, "abcd"), row("ab", 0.5, "bc"), row("ab", 0.0, "cd")],
        "`text_similarity` `bleu`": [row(CAT, 1.0, CAT)],
        "`text_similarity` `gleu`": [row(CAT, 1.0, CAT), row("dogs", 0.0, CAT)],
        "`text_similarity` `rouge_1`": [*ROUGE, row("the dog", 0.5, "the cat")],
        "`text_similarity` `rouge_2`": [*ROUGE, row("on a b c", 0.0, CAT)],
        "`text_similarity` `rouge_3`": ROUGE,
        "`text_similarity` `rouge_4`": ROUGE,
        "`text_similarity` `rouge_5`": ROUGE,
        "`text_similarity` `rouge_l`": [*ROUGE, row("the dog", 0.5, "the cat")],
        "`pass_threshold: 0.8`": [row("abcdefghij", 1.0, "abcdefghix"), row("ab", 0.0, "bc")],
        "`multi`, `0.7 * a + 0.3 * b`": [row("a", 1.0, "a"), row("b", 0.3, "a"), row("a" * 10, 0.7, "a" * 10)],
        "`multi`, `min(a, b)`": [row("a", 1.0, "a"), row("b", 0.0, "a"), row("a" * 10, 0.0, "a" * 10)],
        "`sample.output_json.a.b`": [row('{"a": {"b": "x"}}', 1.0, "x"), row('{"a": {}}', 0.0, "x")],
    },
    PROMPTFOO: {
        "`contains`": [row("a cat", 1.0, "cat"), row("a Cat", 0.0, "cat")],
        "`icontains`": [row("a Cat", 1.0, "cat"), row("a dog", 0.0, "cat")],
        "`contains-any`": [row("a cat", 1.0, ["dog", "cat"]), row("a Cat", 0.0, ["dog", "cat"])],
        "`icontains-any`": [row("a Cat", 1.0, ["dog", "cat"]), row("a cow", 0.0, ["dog", "cat"])],
        "`contains-all`": [row("dog, cat", 1.0, ["dog", "cat"]), row("a cat", 0.0, ["dog", "cat"])],
        "`icontains-all`": [row("Dog, cat", 1.0, ["dog", "cat"]), row("a cat", 0.0, ["dog", "cat"])],
        "`not-contains-any`": [row("a cow", 1.0, ["dog", "cat"]), row("a cat", 0.0, ["dog", "cat"])],
        "`not-icontains-all`": [row("a cat", 1.0, ["dog", "cat"]), row("Dog, cat", 0.0, ["dog", "cat"])],
        "`starts-with`": [row("cats", 1.0, "cat"), row(" cats", 0.0, "cat"), row("Cats", 0.0, "cat")],
        "`ends-with`": [row("a cat", 1.0, "cat"), row("a cat ", 0.0, "cat")],
        "`equals`": [row("cat", 1.0, "cat"), row("cat ", 0.0, "cat")],
        "`equals` with an object": [row('{"a": 1.0}', 1.0), row('{"a": 1, "b": 2}', 0.0), row("a", 0.0)],
        "`regex`": [row("cat 42", 1.0, "[0-9]{2}"), row("cat", 0.0, "[0-9]{2}")],
        "`word-count`": [row("two words", 1.0), row("one", 0.0), row("a b c d e", 0.0)],
        "`character-count`": [row("four", 1.0), row("fives", 0.0)],
        "`is-json`": [row("[1]", 1.0), row("a [1]", 0.0)],
        "`is-json` with a schema": [row('{"a": 1}', 1.0), row("{}", 0.0), row("a", 0.0)],
        "`contains-json`": [row('a {"a": 1} b', 1.0), row("a", 0.0)],
        "`rouge-n`": [row(CAT, 1.0, CAT), row("the cat sat", 0.0, CAT)],
        "`bleu`": [row(CAT, 1.0, CAT), row("a dog", 0.0, CAT)],
        "`gleu`": [row(CAT, 1.0, CAT), row("a dog", 0.0, CAT)],
        "`levenshtein`": [row("sitting", 1.0, "kitten"), row("a dog", 0.0, CAT)],
        "`cost`": [row("a", 1.0, cost=0.01), row("a", 0.0, cost=0.02)],
        "`latency`": [row("a", 1.0, latency_ms=5000), row("a", 0.0, latency_ms=5001)],
        "`finish-reason`": [row("a", 1.0, "stop", finish_reason="stop"), row("a", 0.0, "stop", finish_reason="length")],
        "`tool-call-f1`": [
            row(calls(SEARCH, REPLY)["completion"], 1.0, ["reply", "search"]),
            row(calls(SEARCH)["completion"], 0.0, ["reply", "search"]),
        ],
        "`trajectory:tool-used`": [row(calls(SEARCH)["completion"], 1.0), row(calls(REPLY)["completion"], 0.0)],
        "`not-trajectory:tool-used`": [row(calls(REPLY)["completion"], 1.0), row(calls(SEARCH)["completion"], 0.0)],
        "`trajectory:tool-used` with `min`, `max`": [
            row(calls(SEARCH, SEARCH)["completion"], 1.0),
            row(calls(SEARCH, SEARCH, SEARCH)["completion"], 0.0),
        ],
        "`trajectory:tool-sequence`": [
            row(calls(SEARCH, SEARCH, REPLY)["completion"], 1.0),
            row(calls(REPLY, SEARCH)["completion"], 0.0),
        ],
        "`is-valid-openai-tools-call`": [
            row(calls(SEARCH)["completion"], 1.0, tools=TOOLS),
            row(calls(("search", "{}"))["completion"], 0.0, tools=TOOLS),
        ],
        "`assert-set` with `threshold: 0.5`": [row("a dog", 1.0, "cat"), row("a long text", 0.0, "cat")],
        "`is-refusal`": [row("I cannot do that.", 1.0), row("Here it is.", 0.0)],
    },
    INSPECT: {
        "`includes()`": [row("a Cat", 1.0, "cat"), row("a dog", 0.0, "cat")],
        "`match()`": [row("It is Paris.", 1.0, "Paris"), row("Paris it is", 0.0, "Paris")],
        '`match(location="begin")`': [row("Paris it is", 1.0, "paris"), row("It is Paris", 0.0, "paris")],
        '`match(location="any")`': [row("It is Paris, yes", 1.0, "paris"), row("Rome", 0.0, "paris")],
        '`match(location="exact")`': [row(" paris\n", 1.0, "Paris"), row("Paris it is", 0.0, "Paris")],
        "`match(numeric=True)`": [row("It is $1,200", 1.0, "1200"), row("It is 1200 or 12", 0.0, "1200")],
        "`exact()`": [row("The cat!", 1.0, "cat"), row("the cats", 0.0, "cat")],
        "`f1()`": [row("the cat", 1.0, "cat"), row("a dog", 0.0, "cat"), row("cat dog", 0.67, "cat")],
        r'`pattern(r"color: (\w+)")`': [row("Color: Red, color: blue", 1.0, "red"), row("red", 0.0, "red")],
        '`answer("letter")`': [row("ANSWER: b.", 1.0, "B"), row("ANSWER: bad", 0.0, "B")],
        '`answer("word")`': [row("Answer: yes, it is", 1.0, "yes"), row("yes", 0.0, "yes")],
        '`answer("line")`': [row("so\nANSWER: the blue one", 1.0, "the blue one"), row("ANSWER: red", 0.0, "blue")],
        "`choice()`": [row("ANSWER: C", 1.0, "C"), row("ANSWER: D", 0.0, "C")],
        "`math()`": [row("\\boxed{\\frac{1}{2}}", 1.0, "1/2"), row("\\boxed{2}", 0.0, "1/2")],
    },
    LM: {
        "`exact_match`": [row("Paris", 1.0, "Paris"), row("paris", 0.0, "Paris"), row("Paris ", 0.0, "Paris")],
        "`exact_match` with `ignore_case`, `ignore_punctuation`": [
            row("paris!", 1.0, "Paris"),
            row("Rome", 0.0, "Paris"),
        ],
        "`exact_match` with `regexes_to_ignore`": [row("$1,200", 1.0, "1200"), row("$1,201", 0.0, "1200")],
        "filter `regex`, `group_select: 0`": [row("1 coins, 2 coins", 1.0, "1"), row("1 coins, 2 coins", 0.0, "2")],
        "filter `regex`, `group_select: -1`": [row("1 coins, 2 coins", 1.0, "2"), row("1 coins, 2 coins", 0.0, "1")],
        "filter `remove_whitespace`": [row("\n Paris", 1.0, "Paris"), row("Rome", 0.0, "Paris")],
        "filters `lowercase`, `uppercase`": [row("PARIS", 1.0, "paris"), row("PARIS", 0.0, "Paris")],
        "filter `map`": [row("yes", 1.0, "1"), row("no", 0.0, "1")],
        "filter `multi_choice_regex`": [row("The answer is (B).", 1.0, "B"), row("The answer is (A).", 0.0, "B")],
        "filter `take_first`": [row("Paris", 1.0, "Paris"), row("Rome", 0.0, "Paris")],
        "GSM8K `strict-match`": [row("so\n#### 1,200", 1.0, "1200"), row("so 1200", 0.0, "1200")],
        "GSM8K `flexible-extract`": [row("so 1200", 1.0, "1,200"), row("1200 or 3", 0.0, "1200")],
        "`hendrycks_math`": [row("\\boxed{\\dfrac12}", 1.0, "\\frac{1}{2}"), row("\\boxed{2}", 0.0, "\\frac{1}{2}")],
        "`math_verify`": [row("\\boxed{0.5}", 1.0, "\\frac{1}{2}"), row("\\boxed{2}", 0.0, "\\frac{1}{2}")],
        "SQuAD `exact`": [row("The Normans.", 1.0, "Normans"), row("Norman", 0.0, "Normans")],
        "SQuAD `f1`": [row("the dukes", 1.0, "Dukes!"), row("dukes and kings", 0.5, "dukes"), row("a b", 0.0, "c")],
        "`rouge1`, `rouge2`, `rougeL`": [row("the dog", 0.5, "the cat"), row("x", 0.0, "y")],
        "`ifeval`, `prompt_level_strict_acc`": [row("no comma", 1.0, **IFEVAL), row("a, b", 0.0, **IFEVAL)],
    },
    TRAINERS: {
        "TRL and open-r1, accuracy": [row("\\boxed{0.5}", 1.0, "1/2"), row("\\boxed{2}", 0.0, "1/2")],
        "open-r1 `get_repetition_penalty_reward(3, -0.5)`": [
            row("a b c d", 1.0),
            row("so it is so it is", 1 - 0.5 * (1 - 3 / 4)),
        ],
        "TRL `get_soft_overlong_punishment(100, 20)`, verl DAPO": [
            row("a", 1.0, tokens=80),
            row("a", 0.5, tokens=90),
            row("a", 0.0, tokens=101),
        ],
        "TRL and open-r1 `get_cosine_scaled_reward`": [
            row("a" * 1000, 0.5, "a" * 1000),
            row("", 1.0, ""),
            row("", -1.0, "a"),
            row("a" * 1000, -0.5, "b"),
        ],
        "BFCL, AST": [
            row(calls(("search", '{"q": "A"}'))["completion"], 1.0, **BFCL),
            row(calls(("search", '{"q": "c"}'))["completion"], 0.0, **BFCL),
        ],
    },
}
EXAMPLES = {f"{title}: {there}": examples for title, rows_of in CASES.items() for there, examples in rows_of.items()}


def test_every_row_has_a_check_and_examples_or_says_why_not():
    assert SPECS.keys() == EXAMPLES.keys()
    assert len(ROWS) > len(SPECS) > 70
    without = [note for there, (here, note) in ROWS.items() if here == NO_CHECK and "all that ask a model" not in there]
    assert all(without)
    assert all(len({score for _, score in examples}) > 1 or "bleu" in there for there, examples in EXAMPLES.items())


@pytest.mark.parametrize("there", SPECS)
def test_a_row_scores_as_the_other_tool_does(there):
    spec = SPECS[there]
    verifier = spec if "checks" in spec and "combine" in spec else {"checks": [spec]}
    rows, scores = zip(*EXAMPLES[there], strict=True)
    result = assay.score([*rows], verifier)
    assert result["reward"].to_list() == list(scores)
    assert result["error"].null_count() == len(rows)
