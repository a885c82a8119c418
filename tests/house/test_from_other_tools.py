"""Every row of the tables in docs/from-other-tools.md that has a check loads and scores: where tests/peers has the tool, as the tool does."""

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
    for section in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]:
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


OPENAI, PROMPTFOO = "OpenAI graders", "promptfoo"
CAT = "the cat sat on the mat"
SEARCH, REPLY = ("search", '{"q": "a"}'), ("reply", "{}")
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"required": ["q"]}}}]
ROUGE = [row(CAT, 1.0, CAT), row("dogs", 0.0, CAT)]
CASES = {
    OPENAI: {
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
        "`character-count`": [row("four", 1.0), row("fives", 0.0)],
        "`cost`": [row("a", 1.0, cost=0.01), row("a", 0.0, cost=0.02)],
        "`latency`": [row("a", 1.0, latency_ms=5000), row("a", 0.0, latency_ms=5001)],
        "`finish-reason`": [row("a", 1.0, "stop", finish_reason="stop"), row("a", 0.0, "stop", finish_reason="length")],
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
}
EXAMPLES = {f"{title}: {there}": examples for title, rows_of in CASES.items() for there, examples in rows_of.items()}


def test_every_row_has_a_check_and_examples_or_says_why_not():
    assert SPECS.keys() == EXAMPLES.keys()
    assert len(ROWS) > len(SPECS) > 20
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
