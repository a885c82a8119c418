"""The real functions behind graders, for tests/peers: each takes a row's text, gold and options, and returns the tool's score.

Packages are imported without what their scoring functions do not need (torch, transformers and the like), for which others stand in.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STOOD_IN = {
    *("torch", "datasets", "accelerate", "huggingface_hub", "ray", "tensordict", "hydra", "omegaconf"),
    *("peft", "pytablewriter", "colorlog", "aenum", "GitPython", "git", "pycountry", "sentencepiece", "wandb", "spacy"),
    *(
        "stanza",
        "blobfile",
        "openai",
        "tenacity",
        "tree_sitter",
        "tree_sitter_java",
        "tree_sitter_javascript",
        "dill",
    ),
}
"""Packages that tools import and that no scoring function here calls: where they are not installed, others stand in."""
ALWAYS_STOOD_IN = {"helm", "transformers", "bfcl_eval.constants.model_config", "simple_evals.evals.mmlu_eval"}
"""Modules that import clients of models or pandas, beside the file that has the scoring functions."""


class _Anything:
    """A value that takes any use."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *args: Any, **_: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return (object,)

    def __or__(self, other: Any) -> Any:
        return other

    __ror__ = __or__


class _StandIn(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012
    __version__ = "99.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Anything,), {}) if name[:1].isupper() else _Anything()


class _Finder:
    def __init__(self) -> None:
        self.names = ALWAYS_STOOD_IN | {name for name in STOOD_IN if importlib.util.find_spec(name) is None}

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name in self.names or name.partition(".")[0] in self.names:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


@cache
def _stand_in() -> None:
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]


def module_of(name: str) -> Any:
    """Import a module, with stand-ins for what is not here."""
    _stand_in()
    return importlib.import_module(name)


@cache
def file_of(distribution: str, path: str) -> Any:
    """Import one file of a distribution without its package."""
    file = Path(str(importlib.metadata.distribution(distribution).locate_file(path)))
    spec = importlib.util.spec_from_file_location(path.removesuffix(".py").replace("/", "."), file)
    assert spec is not None
    assert spec.loader is not None
    _stand_in()
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Real = Callable[[str, Any, dict[str, Any]], Any]
"""Takes a text, its gold as the row has it, and options with the row's values; returns the score, None for a gold it cannot read."""


def _listed(gold: Any) -> list[Any]:
    return gold if isinstance(gold, list) else [gold]


def _without(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _count(choices: Any) -> int:
    return choices if isinstance(choices, int) else len(choices)


def _inspect(name: str) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        from inspect_ai import scorer

        state: Any = SimpleNamespace(output=SimpleNamespace(completion=text))
        value = asyncio.run(getattr(scorer, name)(**options)(state, scorer.Target(_listed(gold)))).value
        return {"C": 1.0, "I": 0.0, "N": 0.0}.get(value, value)

    return score


def _inspect_choice(text: str, gold: Any, options: dict[str, Any]) -> float:
    from inspect_ai import scorer
    from inspect_ai.solver import _multiple_choice as solver
    from inspect_ai.solver._task_state import Choices

    choices = Choices(["x"] * _count(options["choices"]))
    state: Any = SimpleNamespace(output=SimpleNamespace(completion=text), choices=choices, scores={})
    answers = solver.parse_answers(state, bool(options.get("multiple_correct")))
    solver.set_choices_based_on_generated_response(state, answers)
    value = asyncio.run(scorer.choice()(state, scorer.Target(_listed(gold)))).value
    return 1.0 if value == "C" else 0.0


def _lm_eval(text: str, gold: Any, options: dict[str, Any]) -> float:
    metrics, extraction, transformation = map(
        module_of, ("lm_eval.api.metrics", "lm_eval.filters.extraction", "lm_eval.filters.transformation")
    )
    extraction.sys = SimpleNamespace(
        maxunicode=0x20000
    )  # it looks at each character for punctuation: there is none beyond
    filters = {
        "regex": extraction.RegexFilter,
        "multi_choice_regex": extraction.MultiChoiceRegexFilter,
        "remove_whitespace": extraction.WhitespaceFilter,
        "lowercase": transformation.LowercaseFilter,
        "uppercase": transformation.UppercaseFilter,
        "map": transformation.MapFilter,
    }
    answers = [[text]]
    for step in options.get("filter_list") or ():
        if step["function"] != "take_first":
            made = filters[step["function"]](**_without(step, "function"))
            answers = [[*one] for one in made.apply(answers, [{"choices": options.get("choices")}])]
    golds = _listed(gold)
    given = _without(options, "filter_list", "choices")
    # as a task with several targets asks: the prediction once for each
    found = metrics.exact_match_hf_evaluate(predictions=answers[0] * len(golds), references=golds, **given)
    return float(found["exact_match"] > 0)


def _task(name: str) -> Any:
    return file_of("lm_eval", f"lm_eval/tasks/{name}/utils.py")


def _lm_eval_gsm8k(text: str, gold: Any, options: dict[str, Any]) -> float:
    from assay.checks.graders.tools.lm_eval import GSM8K, GSM8K_IGNORED  # as gsm8k.yaml has them

    pattern, at = GSM8K[options["filter"]]
    steps = [{"function": "regex", "regex_pattern": pattern, "group_select": at}]
    return _lm_eval(text, gold, {"filter_list": steps, "ignore_case": True, "regexes_to_ignore": [*GSM8K_IGNORED]})


def _qa(**others: Any) -> Real:
    options = {"filter_list": [{"function": "remove_whitespace"}], "ignore_case": True, "ignore_punctuation": True}
    return lambda text, gold, _: _lm_eval(text, gold, {**options, **others})


def _hendrycks(text: str, gold: Any, _: dict[str, Any]) -> float:
    return float(_task("hendrycks_math").process_results({"solution": rf"\boxed{{{gold}}}"}, [text])["exact_match"])


def _minerva(text: str, gold: Any, options: dict[str, Any]) -> float:
    if options["metric"] == "math_verify":
        from math_verify import parse, verify

        answers = (parse(value, parsing_timeout=None) for value in (f"so $\\boxed{{{gold}}}$", text))
        return float(verify(*answers, timeout_seconds=None))
    task = _task("minerva_math")
    answer = task.normalize_final_answer(task.get_unnormalized_answer(text))
    return float(task.is_equiv(answer, task.normalize_final_answer(gold)))


def _lm_eval_drop(text: str, gold: Any, options: dict[str, Any]) -> float:
    golds = [tuple(spans) for spans in gold]
    return float(_task("drop").process_results({"answers": golds}, [text])[options["metric"]])


def _ifeval(text: str, _: Any, options: dict[str, Any]) -> float:
    from langdetect import DetectorFactory

    DetectorFactory.seed = 0  # by default it draws
    ifeval = module_of("lm_eval.tasks.ifeval.utils")
    doc = {"key": 0, **{name: options[name] for name in ROW["ifeval"]}}
    level = "prompt" if options.get("level") == "prompt" else "inst"
    found = _listed(ifeval.process_results(doc, [text])[f"{level}_level_{options['mode']}_acc"])
    return sum(found) / len(found)


def _trl(name: str, *, make: bool = False) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> Any:
        function = getattr(module_of("trl.rewards"), name)
        ids = options.get("token_ids")
        if ids is None:
            ids = [1] * options["tokens"] if "tokens" in options else []
        if make:
            function = function(**_without(options, "tokens", "token_ids"))
        if name in ("get_soft_overlong_punishment", "get_repetition_penalty_reward"):
            return function(completion_ids=[ids])[0]
        completions = [[{"role": "assistant", "content": text}]]
        if name == "think_format_reward":
            return function(completions)[0]
        return function(completions=completions, solution=[gold], completion_ids=[ids])[0]

    return score


def _open_r1(name: str, *, make: bool = False) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> Any:
        function = getattr(module_of("open_r1.rewards"), name)
        if make:
            function = function(**options)
        texts = [text]
        if name == "len_reward":  # of the shortest and the longest of a batch
            texts += ["-" * options["min_len"], "-" * options["max_len"]]
        completions = [[{"role": "assistant", "content": one}] for one in texts]
        return function(completions, solution=[gold] * len(texts))[0]

    return score


def _verl(module: str, gold_of: Callable[[Any], Any] = lambda gold: gold) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        random.seed(2)  # what it prints, it prints by chance
        functions = file_of("verl", f"verl/utils/reward_score/{module}.py")
        name = "compute_score_subem" if options.get("match") == "subem" else "compute_score"
        result = getattr(functions, name)(text, gold_of(gold), **_without(options, "match"))
        return float(result["score"] if isinstance(result, dict) else result)

    return score


def _verl_math(text: str, gold: Any, _: dict[str, Any]) -> float:
    verify = file_of("verl", "verl/utils/reward_score/math_verify.py")._verify_in_subprocess
    return float(verify(rf"\boxed{{{gold}}}", text))


def _openai_evals(name: str) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        os.environ.setdefault("OPENAI_API_KEY", "none")  # evals makes a client when it is imported
        from evals.base import RunSpec
        from evals.record import RecorderBase

        class Recorder(RecorderBase):
            def record_event(self, type: str, data: Any = None, sample_id: Any = None) -> None:  # noqa: A002
                self._events.append(self._create_event(type, data))

        module = importlib.import_module(f"evals.elsuite.basic.{name}")
        made = getattr(module, name.title().replace("_", ""))
        completion = SimpleNamespace(get_completions=lambda: [text])
        sample = {"input": "", "ideal": gold}
        metric = options.get("metric")
        recorder = Recorder(RunSpec(["x"], "x.test", "x", "test", {}, ""))
        with recorder.as_default_recorder("0"):
            eval_ = made([lambda **_: completion], "", eval_registry_path=Path(), **_without(options, "metric"))
            eval_.eval_sample(sample, random.Random(0))
        if metric is not None:
            return float(recorder.get_metrics()[0][metric])
        return float(recorder.get_events("match")[0].data["correct"])

    return score


def _lighteval(kind: str) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        from lighteval.metrics import metrics_sample as metrics
        from lighteval.metrics import normalizations as forms

        named = {
            "helm": forms.helm_normalizer,
            "triviaqa": forms.harness_triviaqa_normalizer,
            "bigbench": forms.bigbench_normalizer,
            "gsm8k": forms.gsm8k_normalizer,
        }
        form = named.get(options.get("normalize"))
        given: dict[str, Any] = {"normalize_gold": form, "normalize_pred": form}
        if kind == "exact":
            given["strip_strings"] = options.get("strip_strings", False)
            given["type_exact_match"] = options.get("type", "full")
        metric = (metrics.ExactMatches if kind == "exact" else metrics.F1_score)(**given)
        return max(float(metric.compute_one_item(gold=one, pred=text)) for one in _listed(gold))

    return score


def _letters(text: str, gold: Any, options: dict[str, Any]) -> float:
    from lighteval.metrics.utils import extractive_match_utils as reading
    from lighteval.utils.language import Language

    config = reading.IndicesExtractionConfig(
        prefix_for_extraction="Letters", try_extract_without_anchor=options.get("without_anchor", True)
    )
    patterns = [(reading.lazy_indices_regex(config, _count(options["choices"]), Language.ENGLISH), config)]
    found = reading.extract_target_from_pred(text, patterns, "no_fallback", "first_match", 10**6)
    return float([str(one).strip() for one in found][:1] == [gold])


def _helm(name: str) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        metrics = file_of("crfm-helm", "helm/benchmark/metrics/evaluate_reference_metrics.py")
        return float(max(getattr(metrics, name)(one, text, **options) for one in _listed(gold)))

    return score


def _mgsm(text: str, gold: Any, options: dict[str, Any]) -> float:
    mgsm = module_of("simple_evals.evals.mgsm_eval")
    return float(mgsm.score_mgsm(gold, mgsm.parse_answer(text, options.get("prefix", "Answer"))))


def _simple_evals_drop(text: str, gold: Any, options: dict[str, Any]) -> float:
    drop = module_of("simple_evals.evals.drop_eval")
    match = re.search(drop.ANSWER_PATTERN, text)
    answer, golds = match.group(1) if match else text, _listed(gold)
    if options["metric"] == "score":
        return float(any(drop.fuzzy_match(answer, one) for one in golds))
    em, f1 = drop.drop_metric(answer, golds)
    return float(em) if options["metric"] == "em" else float(f1) / 100.0


def _squad(at: int) -> Real:
    def score(text: str, gold: Any, _: dict[str, Any]) -> float:
        metrics = file_of("transformers", "transformers/data/metrics/squad_metrics.py")
        example = SimpleNamespace(qas_id="0", answers=[{"text": one} for one in _listed(gold)])
        return float(metrics.get_raw_scores([example], {"0": text})[at]["0"])

    return score


def _rouge(text: str, gold: Any, options: dict[str, Any]) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    kind = options["type"]
    return float(RougeScorer([kind], use_stemmer=options.get("use_stemmer", False)).score(gold, text)[kind].fmeasure)


def _sentence_bleu(text: str, gold: Any, options: dict[str, Any]) -> float:
    from sacrebleu.metrics import BLEU

    return BLEU(**options).sentence_score(text, [gold]).score / 100.0


def _bfcl(text: str, gold: Any, options: dict[str, Any]) -> float:
    named = SimpleNamespace(underscore_to_dot=False)
    module_of("bfcl_eval.constants.model_config").MODEL_CONFIG_MAPPING = {"any": named}
    checker = module_of("bfcl_eval.eval_checker.ast_eval.ast_checker")
    language = module_of("bfcl_eval.constants.enums").Language.PYTHON
    calls, golds = ([{call["name"]: call["arguments"]} for call in json.loads(value)] for value in (text, gold))
    return float(checker.ast_checker(json.loads(options["tools"]), calls, golds, language, "parallel", "any")["valid"])


_HELM = (
    *("exact_match", "prefix_exact_match", "quasi_exact_match", "quasi_prefix_exact_match"),
    *("quasi_leave_articles_exact_match", "f1_score", "exact_match_indicator", "final_number_exact_match"),
)
_INSPECT = ("match", "includes", "pattern", "answer", "exact", "f1", "math")

REAL: dict[str, tuple[str, Real]] = {
    **{f"inspect.{name}": ("inspect_ai", _inspect(name)) for name in _INSPECT},
    "inspect.choice": ("inspect_ai", _inspect_choice),
    "lm_eval.exact_match": ("lm_eval", _lm_eval),
    "lm_eval.gsm8k": ("lm_eval", _lm_eval_gsm8k),
    "lm_eval.triviaqa": ("lm_eval", _qa()),
    "lm_eval.nq_open": ("lm_eval", _qa(regexes_to_ignore=["\\b(?:The |the |An |A |The |a |an )"])),
    "lm_eval.hendrycks_math": ("lm_eval", _hendrycks),
    "lm_eval.minerva_math": ("lm_eval", _minerva),
    "lm_eval.drop": ("lm_eval", _lm_eval_drop),
    "ifeval": ("lm_eval", _ifeval),
    "trl.accuracy": ("trl", _trl("accuracy_reward")),
    "trl.reasoning_accuracy": ("trl", _trl("reasoning_accuracy_reward")),
    "trl.cosine": ("trl", _trl("get_cosine_scaled_reward", make=True)),
    "trl.think_format": ("trl", _trl("think_format_reward")),
    "trl.repetition": ("trl", _trl("get_repetition_penalty_reward", make=True)),
    "trl.soft_overlong": ("trl", _trl("get_soft_overlong_punishment", make=True)),
    "open_r1.accuracy": ("open-r1", _open_r1("accuracy_reward")),
    "open_r1.cosine": ("open-r1", _open_r1("get_cosine_scaled_reward", make=True)),
    "open_r1.len": ("open-r1", _open_r1("len_reward")),
    "open_r1.format": ("open-r1", _open_r1("format_reward")),
    "open_r1.tag_count": ("open-r1", _open_r1("tag_count_reward")),
    "open_r1.reasoning_steps": ("open-r1", _open_r1("reasoning_steps_reward")),
    "open_r1.repetition": ("open-r1", _open_r1("get_repetition_penalty_reward", make=True)),
    "verl.gsm8k": ("verl", _verl("gsm8k")),
    "verl.math_reward": ("verl", _verl("math_reward")),
    "verl.math_dapo": ("verl", _verl("math_dapo")),
    "verl.search_r1": ("verl", _verl("search_r1_like_qa_em", lambda gold: {"target": gold})),
    "verl.math_verify": ("verl", _verl_math),
    **{
        f"openai_evals.{name}": ("evals", _openai_evals(name))
        for name in ("match", "includes", "fuzzy_match", "json_match")
    },
    "lighteval.exact_match": ("lighteval", _lighteval("exact")),
    "lighteval.f1": ("lighteval", _lighteval("f1")),
    "lighteval.letters": ("lighteval", _letters),
    **{f"helm.{name}": ("crfm-helm", _helm(name)) for name in _HELM},
    "simple_evals.mgsm": ("nvidia-simple-evals", _mgsm),
    "simple_evals.drop": ("nvidia-simple-evals", _simple_evals_drop),
    "squad.exact": ("transformers", _squad(0)),
    "squad.f1": ("transformers", _squad(1)),
    "rouge_score": ("rouge_score", _rouge),
    "sacrebleu.sentence": ("sacrebleu", _sentence_bleu),
    "bfcl.ast": ("bfcl-eval", _bfcl),
}
"""The real functions, each with the distribution that has it: of SQuAD and simple-evals a copy.

open-r1 is on no index: its functions are compared where somebody has installed it from its repository.
"""
ROW = {"bfcl.ast": ("tools",), "ifeval": ("prompt", "instruction_id_list", "kwargs")}
"""The columns that graders read beside the gold and their options."""
NO_FUNCTION = {
    "simple_evals.multichoice": "on no index; nvidia-simple-evals has other patterns",
    "simple_evals.mmlu": "on no index; nvidia-simple-evals has other patterns",
    "openai.string_check": "its code is not public",
}
"""Graders whose function no distribution has, and why; the goldens have their verdicts."""
