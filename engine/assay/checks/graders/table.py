"""The graders by name: what they are, where they come from, their options, and what decides their verdicts. To add one, add a line."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import reduce
from operator import or_
from typing import Any, Literal

from assay.checks.graders import fragments
from assay.checks.graders.fragments import Fragment
from assay.checks.graders.options import Option
from assay.checks.mathematics.client import LIBRARIES
from assay.errors import did_you_mean
from assay.expressions.regex.javascript import python_pattern
from assay.frozen import frozen

Golds = Literal["each", "all", "spans", "value", "none"]
"""How a function takes the golds of a row: the best of each counts, or it takes all, as texts, as lists of spans, as values; or none."""


@frozen
class Tool:
    """A tool at one version.

    Attributes:
        package: Name and version of the distribution, or the repository with the commit.
        version: The version or commit.
        licence: Its licence.
        files: The folder or file of its functions.
    """

    package: str
    version: str
    licence: str
    files: str


TOOLS = {
    "inspect": Tool("inspect_ai", "0.3.285", "MIT", "inspect_ai/scorer/"),
    "lm_eval": Tool("lm-eval", "0.4.13", "MIT", "lm_eval/"),
    "trl": Tool("trl", "1.16.0", "Apache-2.0", "trl/rewards/"),
    "open_r1": Tool("huggingface/open-r1", "1416fa0", "Apache-2.0", "src/open_r1/rewards.py"),
    "verl": Tool("verl", "0.9.1", "Apache-2.0", "verl/utils/reward_score/"),
    "openai_evals": Tool("openai/evals", "4bfc1f5", "MIT", "evals/elsuite/"),
    "openai": Tool("OpenAI graders, by their documentation", "documentation", "none", ""),
    "promptfoo": Tool("promptfoo", "0.123.1", "MIT", "src/assertions/"),
    "lighteval": Tool("lighteval", "0.13.0", "MIT", "lighteval/metrics/"),
    "helm": Tool(
        "stanford-crfm/helm", "63754d0", "Apache-2.0", "src/helm/benchmark/metrics/evaluate_reference_metrics.py"
    ),
    "simple_evals": Tool("openai/simple-evals", "ee3b031", "MIT", ""),
    "squad": Tool("SQuAD-explorer", "eee5fdb", "MIT", "evaluate-v2.0.py"),
    "rouge_score": Tool("rouge_score", "0.1.2", "Apache-2.0", "rouge_score/rouge_scorer.py"),
    "sacrebleu": Tool("sacrebleu", "2.6.0", "Apache-2.0", "sacrebleu/metrics/bleu.py"),
    "bfcl": Tool("gorilla", "6ea5797", "Apache-2.0", "bfcl_eval/eval_checker/ast_eval/"),
    "ifeval": Tool("lm-eval", "0.4.13", "MIT", "lm_eval/tasks/ifeval/"),
}
"""The tools by what their graders' names begin with."""


@frozen
class Grader:
    """A grader.

    Attributes:
        name: ``tool.function`` as the tool spells it.
        kind: ``F``, checks and steps; ``R``, a function of a row; ``F, R``, by its options; ``M``, math-verify in other processes;
            ``P``, the installed package in other processes.
        where: File and function in the tool.
        score: Module and function here that score a row; for M and P the style of the program; ``""`` for F alone.
        golds: How it takes golds.
        options: Its options by the tool's names.
        fragment: Returns its fragment, or None where options ask for more than checks and steps.
        gold_param: The param of the fragment's check that takes the gold.
        unbounded: With its options, whether scores may lie beyond [0, 1].
        rounded: Whether its arithmetic may go beyond 1 by last bits, which the verifier's range cuts.
        whole_list: Whether a list is one gold of the fragment's check.
        inverted: Whether the score is 1 minus that of the function.
        libraries: Libraries that decide verdicts with any options, each with the versions that have been tested.
        literal: What makes the param of a gold of the spec that is a text; golds of rows then take the function.
        revision: Of this implementation: it changes with verdicts.
    """

    name: str
    kind: str
    where: str
    score: str = ""
    golds: Golds = "each"
    options: Mapping[str, Option] = field(default_factory=dict)
    fragment: Callable[[Mapping[str, Any]], Fragment | None] = lambda _: None
    gold_param: str = "value"
    unbounded: Callable[[Mapping[str, Any]], bool] = lambda _: False
    rounded: bool = False
    whole_list: bool = False
    inverted: bool = False
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    literal: Callable[[str], str] | None = None
    revision: int = 1

    @property
    def tool(self) -> Tool:
        return TOOLS[self.name.partition(".")[0]]

    def libraries_with(self, options: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return the libraries that decide verdicts with options."""
        given = (option.libraries for name, option in self.options.items() if options[name])
        return reduce(or_, given, {**self.libraries})

    def searches(self, options: Mapping[str, Any]) -> bool:
        """Return whether it searches for patterns of users, so that a text of any length may take long."""
        given = any(option.has_patterns and options[name] for name, option in self.options.items())
        return given or self.literal is not None

    @property
    def place(self) -> str:
        """File and function in the tool."""
        return f"{self.tool.files}{self.where}"


def _flag(*, default: bool = False) -> Option:
    return Option("flag", default)


def _one(default: str | None, *choices: str) -> Option:
    return Option("text", default, choices if default is None else (default, *choices))


def _required(kind: str, *choices: str, row: bool = False) -> Option:
    return Option(kind, None, choices, row=row, required=True)


_MINERVA_MATH = LIBRARIES | {"antlr4-python3-runtime": ("4.11.0",)}
_COSINE = {
    "min_value_wrong": Option("number", -1.0),
    "max_value_wrong": Option("number", -0.5),
    "min_value_correct": Option("number", 0.5),
    "max_value_correct": Option("number", 1.0),
}
_IGNORED = {
    "ignore_case": _flag(),
    "ignore_punctuation": _flag(),
    "ignore_numbers": _flag(),
    "regexes_to_ignore": Option("patterns"),
}
_LIGHTEVAL_FORMS = Option("text", None, ("helm", "triviaqa", "bigbench", "gsm8k"))
_SCHEMA = {"value": Option("schema", libraries={"jsonschema-rs": ()})}


def _always(_: Mapping[str, Any]) -> bool:
    return True


def _beyond_one(options: Mapping[str, Any]) -> bool:
    return not all(0 <= options[name] <= 1 for name in ("score", "format_score"))


_SCORES = {"format_score": Option("number", 0.0), "score": Option("number", 1.0)}

_INSPECT = (
    Grader(
        "inspect.match",
        "F, R",
        "_match.py:match",
        "inspect:match",
        options={
            "location": _one("end", "begin", "any", "exact"),
            "ignore_case": _flag(default=True),
            "numeric": _flag(),
        },
        fragment=fragments.inspect_match,
    ),
    Grader(
        "inspect.includes",
        "F",
        "_match.py:includes",
        options={"ignore_case": _flag(default=True)},
        fragment=fragments.inspect_includes,
    ),
    Grader(
        "inspect.pattern",
        "R",
        "_pattern.py:pattern",
        "inspect:pattern",
        "all",
        {"pattern": _required("pattern"), "ignore_case": _flag(default=True), "match_all": _flag()},
    ),
    Grader(
        "inspect.answer",
        "R",
        "_answer.py:answer",
        "inspect:answer",
        "all",
        {"pattern": _required("text", "letter", "word", "line")},
    ),
    Grader("inspect.exact", "R", "_classification.py:exact", "inspect:exact"),
    Grader("inspect.f1", "R", "_classification.py:f1", "inspect:f1", "all", {"stop_words": Option("texts")}),
    Grader(
        "inspect.choice",
        "R",
        "_choice.py:choice",
        "inspect:choice",
        "all",
        {"choices": _required("choices", row=True), "multiple_correct": _flag()},
    ),
    Grader(
        "inspect.math",
        "P",
        "_math.py:math",
        "inspect.math",
        "all",
        libraries={"inspect_ai": ("0.3.285",), **LIBRARIES},
    ),
)
_LM_EVAL = (
    Grader(
        "lm_eval.exact_match",
        "F, R",
        "api/metrics.py:exact_match_hf_evaluate",
        "lm_eval:exact_match",
        "all",
        {**_IGNORED, "filter_list": Option("filters"), "choices": Option("list", row=True)},
        fragments.lm_eval_exact_match,
    ),
    Grader(
        "lm_eval.gsm8k",
        "F",
        "tasks/gsm8k/gsm8k.yaml",
        options={"filter": _required("text", "strict-match", "flexible-extract")},
        fragment=fragments.lm_eval_gsm8k,
    ),
    Grader("lm_eval.triviaqa", "R", "tasks/triviaqa/default.yaml", "lm_eval:triviaqa", "all"),
    Grader("lm_eval.nq_open", "R", "tasks/nq_open/nq_open.yaml", "lm_eval:nq_open", "all"),
    Grader("lm_eval.hendrycks_math", "R", "tasks/hendrycks_math/utils.py:process_results", "lm_eval:hendrycks_math"),
    Grader(
        "lm_eval.minerva_math",
        "M",
        "tasks/minerva_math/utils.py:process_results",
        "minerva",
        options={"metric": _required("text", "exact_match", "math_verify")},
        libraries=_MINERVA_MATH,
    ),
    Grader(
        "lm_eval.drop",
        "R",
        "tasks/drop/utils.py:process_results",
        "lm_eval:drop_metric",
        "spans",
        {"metric": _required("text", "em", "f1")},
    ),
)
_TRL = (
    Grader("trl.accuracy", "M", "accuracy_rewards.py:accuracy_reward", "trl", libraries=LIBRARIES),
    Grader(
        "trl.reasoning_accuracy",
        "M",
        "accuracy_rewards.py:reasoning_accuracy_reward",
        "trl reasoning",
        libraries=LIBRARIES,
    ),
    Grader(
        "trl.cosine",
        "M",
        "accuracy_rewards.py:get_cosine_scaled_reward",
        "trl cosine",
        options={"max_len": _required("positive"), **_COSINE, "tokens": _required("tokens", row=True)},
        unbounded=_always,
        libraries=LIBRARIES,
    ),
    Grader(
        "trl.think_format",
        "F",
        "format_rewards.py:think_format_reward",
        golds="none",
        fragment=fragments.trl_think_format,
    ),
    Grader(
        "trl.repetition",
        "R",
        "other_rewards.py:get_repetition_penalty_reward",
        "rewards:token_repetition",
        "none",
        {
            "ngram_size": Option("positive", 3),
            "max_penalty": Option("penalty", -1.0),
            "token_ids": _required("list", row=True),
        },
        unbounded=_always,
    ),
    Grader(
        "trl.soft_overlong",
        "R",
        "other_rewards.py:get_soft_overlong_punishment",
        "rewards:soft_overlong",
        "none",
        {
            "max_completion_len": _required("whole"),
            "soft_punish_cache": _required("whole"),
            "tokens": _required("tokens", row=True),
        },
        unbounded=_always,
    ),
)
_OPEN_R1 = (
    Grader("open_r1.accuracy", "M", ":accuracy_reward", "open_r1", libraries=LIBRARIES),
    Grader(
        "open_r1.cosine",
        "M",
        ":get_cosine_scaled_reward",
        "open_r1 cosine",
        options={"max_len": Option("positive", 1000), **_COSINE},
        unbounded=_always,
        libraries=LIBRARIES,
    ),
    Grader(
        "open_r1.len",
        "M",
        ":len_reward",
        "open_r1 len",
        options={"min_len": _required("whole", row=True), "max_len": _required("whole", row=True)},
        unbounded=_always,
        libraries=LIBRARIES,
    ),
    Grader("open_r1.format", "F", ":format_reward", golds="none", fragment=fragments.open_r1_format),
    Grader("open_r1.tag_count", "R", ":tag_count_reward", "rewards:tag_count", "none"),
    Grader("open_r1.reasoning_steps", "R", ":reasoning_steps_reward", "rewards:reasoning_steps", "none"),
    Grader(
        "open_r1.repetition",
        "R",
        ":get_repetition_penalty_reward",
        "rewards:word_repetition",
        "none",
        {"ngram_size": _required("positive"), "max_penalty": _required("penalty")},
        unbounded=_always,
    ),
)
_VERL = (
    Grader(
        "verl.gsm8k",
        "F, R",
        "gsm8k.py:compute_score",
        "rewards:verl_gsm8k",
        options={"method": _one("strict", "flexible"), **_SCORES},
        fragment=fragments.verl_gsm8k,
        unbounded=_beyond_one,
    ),
    Grader("verl.math_reward", "R", "math_reward.py:compute_score", "rewards:math_reward"),
    Grader(
        "verl.math_dapo",
        "R",
        "math_dapo.py:compute_score",
        "rewards:math_dapo",
        options={"strict_box_verify": _flag()},
        unbounded=_always,
    ),
    Grader(
        "verl.search_r1",
        "R",
        "search_r1_like_qa_em.py:compute_score",
        "rewards:search_r1",
        "all",
        {"match": _one("em", "subem"), **_SCORES},
        unbounded=_beyond_one,
    ),
    Grader("verl.math_verify", "M", "math_verify.py:compute_score", "verl", libraries=LIBRARIES),
)
_OPENAI = (
    Grader("openai_evals.match", "F", "basic/match.py:Match", fragment=fragments.openai_evals_match),
    Grader(
        "openai_evals.includes",
        "F",
        "basic/includes.py:Includes",
        options={"ignore_case": _flag()},
        fragment=fragments.openai_evals_includes,
    ),
    Grader(
        "openai_evals.fuzzy_match",
        "R",
        "basic/fuzzy_match.py:FuzzyMatch",
        "openai:fuzzy_match",
        options={"metric": _one("accuracy", "f1_score")},
    ),
    Grader("openai_evals.json_match", "R", "basic/json_match.py:JsonMatch", "openai:json_match"),
    Grader(
        "openai.string_check",
        "F",
        "string_check",
        options={"operation": _required("text", "eq", "ne", "like", "ilike")},
        fragment=fragments.string_check,
    ),
)


def _assertion(name: str, **fields: Any) -> Grader:
    if name in fragments.PROMPTFOO:
        fields = {"kind": "F", "fragment": fragments.PROMPTFOO[name], **fields}
    return Grader(**{"name": f"promptfoo.{name}", "where": f"{fields.pop('file', name)}.ts", "kind": "R", **fields})


_LISTS = {"gold_param": "values", "whole_list": True, "file": "contains"}
_ASSERTIONS = (
    _assertion("contains"),
    _assertion("icontains", file="contains"),
    _assertion("contains-any", **_LISTS),
    _assertion("icontains-any", **_LISTS),
    _assertion("contains-all", **_LISTS),
    _assertion("icontains-all", **_LISTS),
    _assertion("starts-with", file="startsWith"),
    _assertion("equals"),
    _assertion("regex", gold_param="pattern", kind="F, R", score="promptfoo:regex", literal=python_pattern),
    _assertion(
        "levenshtein",
        score="promptfoo:levenshtein",
        options={"threshold": Option("number", 5)},
        libraries={"rapidfuzz": ()},
    ),
    _assertion("gleu", score="promptfoo:gleu", golds="all"),
    _assertion("bleu", score="promptfoo:bleu", golds="all"),
    _assertion("word-count", score="promptfoo:word_count", golds="value", file="wordCount"),
    _assertion("is-json", score="promptfoo:is_json", golds="none", options=_SCHEMA, file="json"),
    _assertion(
        "contains-json",
        score="promptfoo:contains_json",
        golds="none",
        options=_SCHEMA,
        file="json",
        libraries={"PyYAML": ()},
    ),
    _assertion("tool-call-f1", whole_list=True, file="toolCallF1"),
)


def _inverted(grader: Grader) -> Grader:
    return replace(grader, name=grader.name.replace(".", ".not-"), inverted=True)


_LIGHTEVAL = (
    Grader(
        "lighteval.exact_match",
        "F, R",
        "metrics_sample.py:ExactMatches",
        "helm:exact_match",
        options={"normalize": _LIGHTEVAL_FORMS, "type": _one("full", "prefix", "suffix"), "strip_strings": _flag()},
        fragment=fragments.lighteval_exact_match,
    ),
    Grader("lighteval.f1", "R", "metrics_sample.py:F1_score", "helm:f1", options={"normalize": _LIGHTEVAL_FORMS}),
    Grader(
        "lighteval.letters",
        "R",
        "utils/extractive_match_utils.py:lazy_indices_regex",
        "helm:letters",
        options={"choices": _required("choices", row=True), "without_anchor": _flag(default=True)},
    ),
)
_HELM = (
    *(Grader(f"helm.{name}", "F", f":{name}", fragment=fragment) for name, fragment in fragments.HELM.items()),
    *(
        Grader(f"helm.{name}", "R", f":{name}", f"helm:{name}")
        for name in ("prefix_exact_match", "quasi_prefix_exact_match")
    ),
    Grader("helm.f1_score", "F", ":f1_score", fragment=fragments.helm_f1),
    Grader(
        "helm.exact_match_indicator",
        "R",
        ":exact_match_indicator",
        "helm:exact_match_indicator",
        options={"indicator": Option("mark", " ")},
    ),
    Grader("helm.final_number_exact_match", "R", ":final_number_exact_match", "helm:final_number_exact_match"),
)
_OTHERS = (
    Grader("simple_evals.multichoice", "F", "gpqa_eval.py:GPQAEval", fragment=fragments.multichoice),
    Grader("simple_evals.mmlu", "R", "mmlu_eval.py:MMLUEval", "openai:mmlu"),
    Grader(
        "simple_evals.mgsm", "R", "mgsm_eval.py:score_mgsm", "openai:mgsm", options={"prefix": Option("mark", "Answer")}
    ),
    Grader(
        "simple_evals.drop",
        "R",
        "drop_eval.py:DropEval",
        "openai:drop_eval",
        "all",
        {"metric": _one("score", "em", "f1")},
    ),
    Grader("squad.exact", "F", ":compute_exact", fragment=fragments.squad_exact),
    Grader("squad.f1", "F", ":compute_f1", fragment=fragments.squad_f1),
    Grader(
        "rouge_score",
        "F, R",
        ":RougeScorer",
        "rouge:stemmed",
        options={
            "type": _required("text", *(f"rouge{kind}" for kind in (1, 2, 3, 4, 5, "L"))),
            "use_stemmer": _flag(),
        },
        fragment=fragments.rouge,
        libraries={"nltk": ()},
    ),
    Grader(
        "sacrebleu.sentence",
        "P",
        ":BLEU.sentence_score",
        "sacrebleu.sentence",
        options={
            "lowercase": _flag(),
            "force": _flag(),
            "tokenize": _one("13a", "intl", "char", "none", "zh"),
            "smooth_method": _one("exp", "floor", "add-k", "none"),
            "smooth_value": Option("number"),
            "max_ngram_order": Option("positive", 4),
            "effective_order": _flag(),
        },
        rounded=True,
        libraries={"sacrebleu": ("2.6.0",)},
    ),
    Grader("bfcl.ast", "F", "ast_checker.py:ast_checker", fragment=fragments.bfcl, whole_list=True),
    Grader(
        "ifeval",
        "F",
        "utils.py:process_results",
        golds="none",
        options={"mode": _one("strict", "loose"), "level": _one("instruction", "prompt")},
        fragment=fragments.ifeval,
    ),
)
_ALL = (
    *_INSPECT,
    *_LM_EVAL,
    *_TRL,
    *_OPEN_R1,
    *_VERL,
    *_OPENAI,
    *_ASSERTIONS,
    *map(_inverted, _ASSERTIONS),
    *_LIGHTEVAL,
    *_HELM,
    *_OTHERS,
)

GRADERS: Mapping[str, Grader] = {grader.name: grader for grader in _ALL}
"""The graders by name."""


def likely_grader(name: str, cutoff: float = 0.6) -> str:
    """Return the hint for a name that no grader has: a similar one, or how to list those of its tool; else ``""``."""
    tool, dot, _ = name.partition(".")
    of_tool = f"Graders of {tool}: assay graders {tool}" if dot and tool in TOOLS else ""
    return did_you_mean(name, GRADERS, 0.6 if of_tool else cutoff) or of_tool


LEFT_OUT = {
    "lighteval's mathematics": "its latex2sympy2_extended 1.0.6 excludes math-verify 0.9",
    "verl `prime_math`": "sympy's `parse_expr` runs text of a model as Python",
    "OpenAI `text_similarity`": "its code is not public",
    "promptfoo `rouge-n`": "another tokeniser",
    "promptfoo `is-refusal`": "its list of phrases",
    "promptfoo `is-xml`, `is-html`, `is-sql` and `contains-…` of them": "nothing parses them here",
    "`rougeLsum`, `bleu` of a corpus, `chrf`, `ter`": "they are about sentences or a corpus",
    "what compares several completions, runs code, asks a model or reads probabilities": "a row has one text",
}
"""What has no grader, and why."""
