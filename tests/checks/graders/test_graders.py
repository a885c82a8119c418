"""Checks of type ``grader``: what specs say, what rows bring, and what results say of them."""

import json
import pickle
import re
import subprocess
import sys
import time

import polars as pl
import pytest
import yaml
from cases import LONG, sized, some

import assay
from assay.checks.graders.table import GRADERS
from assay.cli.views import graders_document
from assay.spec.graders_listing import fragment_of, variants
from assay.spec.verifier import load_verifier

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

GOLD = {"value": {"column": "answer"}}


def spec(name, **fields):
    return {"checks": [{"type": "grader", "name": name, **fields}]}


def scored(rows, name, **fields):
    return assay.score(rows, spec(name, **fields)).to_dicts()


def test_the_id_is_the_name_and_a_reason_tells_what_was_compared():
    rows = [{"completion": "ANSWER: Paris", "answer": gold} for gold in ("Rome", "Paris")]
    wrong, right = scored(rows, "inspect.answer", **GOLD, options={"pattern": "line"})
    assert wrong["check/verifier/inspect-answer"] == 0.0
    assert wrong["feedback"] == 'inspect-answer: inspect.answer: "Paris" is not "Rome"'
    assert (right["reward"], right["feedback"]) == (1.0, "")


def test_a_fragment_has_the_same_words():
    (row,) = scored([{"completion": "It is 4.", "answer": "5"}], "inspect.match", **GOLD)
    assert row["feedback"] == 'inspect-match: inspect.match: "it is 4" is not "5"'
    (row,) = scored([{"completion": "It is 4.", "answer": "4"}], "promptfoo.not-contains", **GOLD)
    assert row["feedback"] == 'promptfoo-not-contains: promptfoo.not-contains: "It is 4." is "4"'
    (row,) = scored([{"completion": "no numbers", "answer": "4"}], "verl.gsm8k", **GOLD)
    assert row["feedback"] == 'verl-gsm8k: verl.gsm8k: "[invalid]" is not "4"'


def test_what_stands_around_a_check_stands_around_a_grader():
    rows = [{"completion": "<answer>Paris.</answer> I think", "answer": "A: paris", "kind": kind} for kind in "ab"]
    steps = {"on": [{"tag": "answer"}], "goldOn": [{"after": "A:"}]}
    for name in ("inspect.match", "inspect.exact", "squad.exact"):
        first, second = scored(rows, name, **GOLD, **steps, when={"column": "kind", "equals": "a"}, negate=True, id="x")
        assert (first["check/verifier/x"], second["check/verifier/x"]) == (0.0, None)
    (row,) = scored([{"completion": "nothing", "answer": "A: x"}], "inspect.exact", **GOLD, **steps)
    assert row["feedback"] == "inspect-exact: found nothing: tag"
    rows = [{"completion": "x b c d", "answer": "x b"}]
    assert scored(rows, "squad.f1", **GOLD, threshold=0.6)[0]["reward"] == 1.0
    assert scored(rows, "inspect.f1", **GOLD, threshold=0.7)[0]["reward"] == 0.0


def test_the_best_of_several_golds_counts_and_nulls_are_none():
    rows = [
        {"completion": "b", "golds": ["a", None, "b"]},
        {"completion": "b", "golds": [None]},
        {"completion": None, "golds": ["b"]},
        {"completion": "", "golds": [""]},
    ]
    for name in ("openai_evals.match", "openai_evals.fuzzy_match"):
        found = scored(rows, name, value={"column": "golds"})
        assert [row["reward"] for row in found] == [1.0, None, None, 1.0]
        assert found[1]["error"] == "gold is missing: golds"
    assert scored([{"completion": "b"}], "inspect.exact", value=["a", "b"])[0]["reward"] == 1.0
    found = scored(rows[1:2], "inspect.exact", value={"column": "golds"}, missingGold="fail")
    assert (found[0]["reward"], found[0]["error"]) == (0.0, "inspect-exact: gold is missing: golds")


def test_a_gold_that_the_tool_cannot_read_leaves_the_row_unscored():
    rows = [{"completion": r"\boxed{4}", "answer": gold} for gold in ("Friday", "4")]
    first, second = scored(rows, "trl.accuracy", **GOLD)
    assert first["error"] == 'gold cannot be used: answer is "Friday", not parseable by trl.accuracy'
    assert (first["reward"], second["reward"]) == (None, 1.0)


def test_what_rows_bring_for_options_is_checked_there():
    options = {"choices": {"column": "n"}}
    rows = [{"completion": "ANSWER: B", "answer": "B", "n": n} for n in (3, 0, None)]
    found = scored(rows, "inspect.choice", **GOLD, options=options)
    assert [row["reward"] for row in found] == [1.0, None, None]
    assert 'n is "0", which is not the number of choices' in found[1]["error"]
    assert found[2]["error"] == "gold is missing: n"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "inspect.mtch", **GOLD}, 'no grader is called "inspect.mtch". Did you mean `inspect.match`?'),
        ({"name": "inspect.match"}, "`inspect.match` needs `value`, the gold"),
        ({**GOLD}, "`grader` needs `name`"),
        ({"name": "trl.think_format", **GOLD}, "`trl.think_format` compares with no gold"),
        (
            {"name": "inspect.match", **GOLD, "options": {"locaton": "end"}},
            "$.checks[0].options.locaton: `inspect.match` has no option `locaton`. Did you mean `location`?",
        ),
        (
            {"name": "inspect.match", **GOLD, "options": {"location": "ned"}},
            "is not end, begin, any, exact. Did you mean `end`?",
        ),
        ({"name": "inspect.match", **GOLD, "options": {"numeric": 1}}, "1 is not true or false"),
        ({"name": "inspect.match", **GOLD, "options": {"numeric": {"column": "n"}}}, "is the same on every row"),
        ({"name": "inspect.pattern", **GOLD}, "`inspect.pattern` needs the option `pattern`"),
        ({"name": "inspect.pattern", **GOLD, "options": {"pattern": "("}}, "is not a pattern"),
        (
            {"name": "inspect.match", **GOLD, "version": "0.3.200"},
            "this Assay has `inspect.match` of inspect_ai 0.3.285",
        ),
        ({"name": "inspect.match", **GOLD, "options": {"ignore_case": True, "ignoreCase": True}}, "is given twice"),
        (
            {"name": "lm_eval.exact_match", **GOLD, "options": {"filter_list": [{"function": "regx"}]}},
            "Did you mean `regex`?",
        ),
        (
            {"name": "lm_eval.exact_match", **GOLD, "options": {"filter_list": [{"function": "regex", "patern": "a"}]}},
            "has the option `patern`",
        ),
        (
            {"name": "verl.math_dapo", **GOLD},
            "scores beyond [0, 1]: the verifier needs `combine: sum` and `range: null`",
        ),
        ({"name": "promptfoo.is-json", "options": {"value": {"type": "objct"}}}, "is not a JSON Schema: the schema is"),
        ({"name": "promptfoo.is-json", "options": {"value": "a.json"}}, '"a.json" is not a JSON Schema'),
        ({"name": "promptfoo.regex", "value": "(?s)."}, "is not of JavaScript's patterns"),
        ({"name": "inspect.match", **GOLD, "pattern": "x"}, "unknown field `pattern`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_a_spec_is_refused(fields, message):
    with pytest.raises(assay.SpecError) as caught:
        load_verifier({"checks": [{"type": "grader", **fields}]})
    assert message in str(caught.value)


def test_libraries_are_those_that_the_options_need():
    schema = {"value": {"type": "object"}}
    needed = {
        ("promptfoo.is-json", ()): [],
        ("promptfoo.is-json", ("value",)): ["jsonschema-rs"],
        ("promptfoo.contains-json", ()): ["PyYAML"],
        ("promptfoo.contains-json", ("value",)): ["PyYAML", "jsonschema-rs"],
    }
    for (name, given), libraries in needed.items():
        verifier = load_verifier(spec(name, options={key: schema[key] for key in given}))
        assert [*verifier.libraries] == libraries


def test_options_may_be_spelled_as_either():
    for options in ({"ignoreCase": False}, {"ignore_case": False}):
        assert (
            scored([{"completion": "A", "answer": "a"}], "inspect.includes", **GOLD, options=options)[0]["reward"] == 0
        )


def test_scores_beyond_one_are_summed():
    verifier = {"combine": "sum", "range": None, "checks": [{"type": "grader", "name": "verl.math_dapo", **GOLD}]}
    assert assay.score([{"completion": "Answer: 4", "answer": "5"}], verifier)["reward"].to_list() == [-1.0]
    wide = {"method": "flexible", "score": 2.0}
    with pytest.raises(assay.SpecError, match="beyond"):
        load_verifier(spec("verl.gsm8k", **GOLD, options=wide))
    load_verifier(spec("verl.gsm8k", **GOLD, options={"method": "flexible", "score": 0.5}))


def every_grader():
    """A check of each grader, with options that it needs."""
    of_rows = {"tokens": "tokens", "token_ids": "ids", "choices": "n", "min_len": "low", "max_len": "high"}
    given = {"pattern": "(a+)", "max_completion_len": 9, "soft_punish_cache": 3, "max_len": 9, "ngram_size": 2}
    given |= {"max_penalty": -1.0, "filter_list": [{"function": "regex", "regex_pattern": "(a+)"}]}
    for grader in GRADERS.values():
        for options in variants(grader):
            for name, option in grader.options.items():
                if name == "filter_list" and not options:
                    continue
                if option.required and name not in options:
                    options[name] = {"column": of_rows[name]} if option.row else given[name]
            gold = {} if grader.golds == "none" else {"value": {"column": "golds" if grader.whole_list else "answer"}}
            yield {"type": "grader", "name": grader.name, "options": options, **gold}


ROW = {
    "completion": '{"a": 1} <answer>a</answer> ANSWER: A #### 4 \\boxed{4}',
    "answer": "4",
    "golds": ["4"],
    "tokens": 4,
    "ids": [1, 2, 3],
    "n": 90,
    "low": 1,
    "high": 90,
    "tools": [],
    "prompt": "",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
}


@pytest.mark.filterwarnings("ignore")
def test_every_grader_loads_pickles_and_has_one_canonical_form():
    for check in every_grader():
        verifier = load_verifier({"combine": "sum", "range": None, "checks": [check]})
        again = load_verifier(json.loads(verifier.canonical.replace('"kind":"native",', "")))
        assert again.canonical == verifier.canonical
        assert pickle.loads(pickle.dumps(verifier)).canonical == verifier.canonical  # noqa: S301
        assert verifier.graders == (check["name"],)


def test_a_fragment_is_a_spec_that_loads():
    for grader in GRADERS.values():
        for options in variants(grader):
            if (check := fragment_of(grader, options)) is not None:
                load_verifier({"checks": [check]}, strict=grader.name != "ifeval")


def test_no_package_of_another_tool_is_imported():
    named = [check for check in every_grader() if GRADERS[check["name"]].kind[0] in "FR"]
    checks = [{**check, "id": f"c{at}"} for at, check in enumerate(named)]
    program = f"""
import sys
TOOLS = {{"inspect_ai", "lm_eval", "trl", "open_r1", "verl", "evals", "lighteval", "helm", "simple_evals", "transformers"}}
TOOLS |= {{"rouge_score", "sacrebleu", "bfcl_eval", "math_verify", "latex2sympy2_extended", "sympy"}}
class Refuse:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in TOOLS:
            raise AssertionError(name)
sys.meta_path.insert(0, Refuse())
import assay
assay.score([{ROW!r}], {{"combine": "sum", "range": None, "checks": {checks!r}}})
print(sorted(TOOLS & {{name.partition(".")[0] for name in sys.modules}}))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_footer_names_graders_and_another_version_is_told(tmp_path, monkeypatch):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"completion": "a 4", "answer": "4"}\n' * 3)
    plain = {"type": "contains", "value": "a"}
    verifier = {"id": "v", "checks": [{"type": "grader", "name": "inspect.exact", **GOLD}, plain]}
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    assay.score_file(rows, verifier, first)
    entry = {"name": "inspect.exact", "tool": "inspect_ai", "version": "0.3.285", "revision": 1}
    assert assay.read_provenance(first)["graders"] == [entry]
    assert assay.verify(first).intact
    run = assay.score_file(rows, verifier, second, reuse=first)
    assert pl.read_parquet(second)["reward"].to_list() == pl.read_parquet(first)["reward"].to_list()
    assert "2 of 2 checks reused" in "\n".join(run.notes)
    from dataclasses import replace

    from assay.checks.graders import table

    changed = {**GRADERS, "inspect.exact": replace(GRADERS["inspect.exact"], revision=2)}
    monkeypatch.setattr(table, "GRADERS", changed)
    told = r"inspect.exact 0.3.285 \(revision 1\), this is 0.3.285 \(revision 2\)"
    with pytest.raises(assay.InputError, match=told):
        assay.verify(first)
    assert assay.verify(first, any_version=True).intact
    run = assay.score_file(rows, verifier, tmp_path / "third.parquet", reuse=first)
    assert "inspect-exact: runs again: made with inspect.exact 0.3.285 (revision 1)" in "\n".join(run.notes)


def test_a_math_grader_needs_tested_libraries(monkeypatch):
    import importlib.metadata

    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.15.0" if name == "sympy" else version(name))
    (broken,) = load_verifier(spec("trl.accuracy", **GOLD)).unusable
    assert "math libraries not tested: sympy 1.15.0" in broken
    with pytest.warns(assay.AssayWarning, match="libraries not tested: sympy 1.15.0"):
        scored([{"completion": "4", "answer": "4"}], "trl.accuracy", **GOLD, anyVersion=True)
    monkeypatch.setattr(importlib.metadata, "version", _without("sacrebleu", version))
    (broken,) = load_verifier(spec("sacrebleu.sentence", **GOLD)).unusable
    assert "sacrebleu.sentence needs sacrebleu: pip install 'sacrebleu==2.6.0'" in broken


def _without(absent, version):
    import importlib.metadata

    def of(name):
        if name == absent:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    return of


def test_patterns_and_long_texts_have_a_limit(monkeypatch):
    from assay.checks.graders import running

    monkeypatch.setattr(running, "SECONDS", 0.5)
    (row,) = scored(
        [{"completion": "a" * 60 + "!", "answer": "x"}], "inspect.pattern", **GOLD, options={"pattern": r"(a+)+$"}
    )
    assert row["reward"] == 0.0
    assert row["error"] == "inspect-pattern: TimeoutError: inspect.pattern: no answer within 0.5 s of processor time"
    (row,) = scored([{"completion": "{" * 60_000}], "promptfoo.contains-json")
    assert "no answer within" in row["error"]


HOSTILE = ("{", "[", "\\boxed{", "<answer>", "$", "answer is A ", "1,", '{"a":', "\\text{ ", "#### ")
ENDED = re.compile(
    "no answer within|RecursionError"  # a parser that nests raises as the tool's does
    "|math libraries not tested|: pip install "
    "|a call is an object|is no JSON|is no choice|fit in a box|neither a number nor"  # what is not a gold
    "|not parseable by|Could not parse any mathematical target"
)


@pytest.mark.parametrize("unit", some(HOSTILE))
@pytest.mark.filterwarnings("ignore")
def test_hostile_texts_and_golds_end_within_the_budget(unit, monkeypatch):
    from assay.checks.graders import running

    monkeypatch.setattr(running, "SECONDS", sized(0.2, 0.1))
    named = {(check["name"], LONG and str(check["options"])): check for check in every_grader()}
    assert {name for name, _ in named} == {*GRADERS}
    checks = [{**check, "id": f"c{at}"} for at, check in enumerate(named.values())]
    hostile = unit * (30_000 // len(unit))
    golds = {"answer": hostile, "golds": [hostile]}
    rows = [{**ROW, "completion": hostile}, {**ROW, **golds}, {**ROW, **golds, "completion": hostile}]
    started = time.process_time()
    found = assay.score(rows, {"combine": "sum", "range": None, "checks": checks})
    assert time.process_time() - started < 30  # in this process: the others are limited
    for error in filter(None, "\n".join(filter(None, found["error"])).split("\n")):
        assert ENDED.search(error), error


def test_adapters_take_the_name_of_a_grader(tmp_path, monkeypatch):
    chats = [[{"role": "assistant", "content": text}] for text in (r"\boxed{4}", r"\boxed{5}")]
    reward = assay.adapters.trl("trl.accuracy")
    assert reward(completions=chats, solution=["4", "4"]) == [1.0, 0.0]
    assert pickle.loads(pickle.dumps(reward))(completions=chats, solution=["4", "Friday"]) == [1.0, None]  # noqa: S301
    assert assay.adapters.trl("trl.think_format")(completions=chats) == [0.0, 0.0]
    assert assay.adapters.row("verl.math_dapo")("Answer: 4", answer="5")["reward"] == -1.0
    assert assay.adapters.row("squad.f1")("b c", answer="c")["reward"] == 2 / 3
    with pytest.raises(assay.SpecError, match="needs the option `pattern`"):
        assay.adapters.row("inspect.answer")
    for name, guess in (("squad.exat", "squad.exact"), ("promptfoo.not_contains", "promptfoo.not-contains")):
        with pytest.raises(assay.SpecError, match=f"no registered verifier has this name[^`]*Did you mean `{guess}`"):
            assay.adapters.row(name)
    with pytest.raises(assay.SpecError, match="no such file"):
        assay.adapters.row("squad.exat.yaml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "squad.f1").write_text("checks: []")
    with pytest.raises(assay.AssayError):
        assay.adapters.row("squad.f1")


def test_the_check_that_a_listing_shows_is_one():
    for entry in assay.graders():
        shown = "\n".join(graders_document([entry], is_one=True).blocks[0].lines)
        check = yaml.safe_load(shown.partition("  check ")[2])
        if "…" not in str(check):
            load_verifier({"combine": "sum", "range": None, "checks": [check]})
