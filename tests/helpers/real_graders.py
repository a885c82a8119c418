"""The real functions behind graders, for tests/peers: each takes a row's text, gold and options, and returns the tool's score.

Packages are imported without what their scoring functions do not need (torch, transformers and the like), for which others stand in.
"""

import asyncio
import importlib
import importlib.util
import random
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STOOD_IN = {
    *("torch", "datasets", "transformers", "accelerate", "huggingface_hub", "ray", "tensordict", "hydra", "omegaconf"),
    "peft",
    *(
        "pytablewriter",
        "colorlog",
        "aenum",
        "GitPython",
        "git",
        "pycountry",
        "sentencepiece",
        "wandb",
        "spacy",
        "stanza",
    ),
}
"""Packages that tools import and that no scoring function here calls."""


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
    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name.partition(".")[0] not in STOOD_IN:
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def stand_in() -> None:
    """Let modules stand in for packages that are not here."""
    absent = {name for name in STOOD_IN if importlib.util.find_spec(name) is None}
    STOOD_IN.intersection_update(absent)
    sys.meta_path.append(_Finder())  # type: ignore[arg-type]


def of_file(package: str, path: str) -> Any:
    """Import one file of a package without the package."""
    found = importlib.util.find_spec(package)
    assert found is not None
    file = Path(next(iter(found.submodule_search_locations or ()))) / path
    spec = importlib.util.spec_from_file_location(f"{package}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Real = Callable[[str, Any, dict[str, Any]], Any]
"""Takes a text, its gold as the row has it, and options with the row's values; returns the score, None for a gold it cannot read."""


def _listed(gold: Any) -> list[Any]:
    return gold if isinstance(gold, list) else [gold]


def _inspect(make: Callable[[Any, dict[str, Any]], Any]) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        from inspect_ai import scorer

        state: Any = SimpleNamespace(output=SimpleNamespace(completion=text))
        value = asyncio.run(make(scorer, options)(state, scorer.Target(_listed(gold)))).value
        return {"C": 1.0, "I": 0.0, "N": 0.0}.get(value, value)

    return score


def _inspect_choice(text: str, gold: Any, options: dict[str, Any]) -> float:
    from inspect_ai import scorer
    from inspect_ai.solver import _multiple_choice as solver
    from inspect_ai.solver._task_state import Choices

    count = options["choices"] if isinstance(options["choices"], int) else len(options["choices"])
    state: Any = SimpleNamespace(output=SimpleNamespace(completion=text), choices=Choices(["x"] * count), scores={})
    answers = solver.parse_answers(state, bool(options.get("multiple_correct")))
    solver.set_choices_based_on_generated_response(state, answers)
    value = asyncio.run(scorer.choice()(state, scorer.Target(_listed(gold)))).value
    return 1.0 if value == "C" else 0.0


def _lm_eval(text: str, gold: Any, options: dict[str, Any]) -> float:
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters import extraction, transformation

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
        given = {name: value for name, value in step.items() if name != "function"}
        if step["function"] != "take_first":
            made = filters[step["function"]](**given)
            answers = [[*one] for one in made.apply(answers, [{"choices": options.get("choices")}])]
    golds = _listed(gold)
    names = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
    given = {name: options[name] for name in names if name in options}
    # as a task with several targets asks: the prediction once for each
    result = exact_match_hf_evaluate(predictions=answers[0] * len(golds), references=golds, **given)["exact_match"]
    return float(result > 0)


def _task(name: str) -> Any:
    stand_in_once()
    return of_file("lm_eval", f"tasks/{name}/utils.py")


_ONCE: list[bool] = []


def stand_in_once() -> None:
    """``stand_in``, once in a process."""
    if not _ONCE:
        _ONCE.append(True)
        stand_in()


def _lm_eval_gsm8k(text: str, gold: Any, options: dict[str, Any]) -> float:
    from assay.checks.graders.tools.lm_eval import GSM8K, GSM8K_IGNORED  # as gsm8k.yaml has them

    pattern, at = GSM8K[options["filter"]]
    steps = [{"function": "regex", "regex_pattern": pattern, "group_select": at}]
    return _lm_eval(text, gold, {"filter_list": steps, "ignore_case": True, "regexes_to_ignore": [*GSM8K_IGNORED]})


def _qa(**others: Any) -> Real:
    steps = [{"function": "remove_whitespace"}]
    return lambda text, gold, _: _lm_eval(
        text, gold, {"filter_list": steps, "ignore_case": True, "ignore_punctuation": True, **others}
    )


def _hendrycks(text: str, gold: Any, _: dict[str, Any]) -> float:
    return float(_task("hendrycks_math").process_results({"solution": rf"\boxed{{{gold}}}"}, [text])["exact_match"])


def _minerva(text: str, gold: Any, options: dict[str, Any]) -> float:
    task = _task("minerva_math")
    if options["metric"] == "math_verify":
        from math_verify import parse, verify

        answers = (parse(value, parsing_timeout=None) for value in (f"so $\\boxed{{{gold}}}$", text))
        return float(verify(*answers, timeout_seconds=None))
    answer = task.normalize_final_answer(task.get_unnormalized_answer(text))
    return float(task.is_equiv(answer, task.normalize_final_answer(gold)))


def _drop(text: str, gold: Any, options: dict[str, Any]) -> float:
    golds = [tuple(spans) for spans in gold]
    return float(_task("drop").process_results({"answers": golds}, [text])[options["metric"]])


def _trl(name: str, *, make: bool = False) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> Any:
        stand_in_once()
        module = importlib.import_module("trl.rewards")
        function = getattr(module, name)
        ids = options.get("token_ids")
        if ids is None:
            ids = [1] * options["tokens"] if "tokens" in options else []
        given = {key: value for key, value in options.items() if key not in ("tokens", "token_ids")}
        function = function(**given) if make else function
        completions = [[{"role": "assistant", "content": text}]]
        if name in ("get_soft_overlong_punishment", "get_repetition_penalty_reward"):
            return function(completion_ids=[ids])[0]
        if name == "think_format_reward":
            return function(completions)[0]
        return function(completions=completions, solution=[gold], completion_ids=[ids])[0]

    return score


def _verl(module: str, gold_of: Callable[[Any], Any] = lambda gold: gold) -> Real:
    def score(text: str, gold: Any, options: dict[str, Any]) -> float:
        stand_in_once()
        random.seed(2)  # what it prints, it prints by chance
        functions = of_file("verl", f"utils/reward_score/{module}.py")
        name = "compute_score_subem" if options.get("match") == "subem" else "compute_score"
        given = {key: value for key, value in options.items() if key != "match"}
        result = getattr(functions, name)(text, gold_of(gold), **given)
        return float(result["score"] if isinstance(result, dict) else result)

    return score


def _verl_math(text: str, gold: Any, _: dict[str, Any]) -> float:
    stand_in_once()
    return float(of_file("verl", "utils/reward_score/math_verify.py")._verify_in_subprocess(rf"\boxed{{{gold}}}", text))


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

    count = options["choices"] if isinstance(options["choices"], int) else len(options["choices"])
    config = reading.IndicesExtractionConfig(
        prefix_for_extraction="Letters", try_extract_without_anchor=options.get("without_anchor", True)
    )
    patterns = [(reading.lazy_indices_regex(config, count, Language.ENGLISH), config)]
    found = reading.extract_target_from_pred(text, patterns, "no_fallback", "first_match", 10**6)
    return float([str(one).strip() for one in found][:1] == [gold])


def _rouge(text: str, gold: Any, options: dict[str, Any]) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    kind = options["type"]
    return float(RougeScorer([kind], use_stemmer=options.get("use_stemmer", False)).score(gold, text)[kind].fmeasure)


def _sentence_bleu(text: str, gold: Any, options: dict[str, Any]) -> float:
    from sacrebleu.metrics import BLEU

    return BLEU(**options).sentence_score(text, [gold]).score / 100.0


REAL: dict[str, tuple[str, Real]] = {
    "inspect.match": ("inspect_ai", _inspect(lambda scorer, options: scorer.match(**options))),
    "inspect.includes": ("inspect_ai", _inspect(lambda scorer, options: scorer.includes(**options))),
    "inspect.pattern": ("inspect_ai", _inspect(lambda scorer, options: scorer.pattern(**options))),
    "inspect.answer": ("inspect_ai", _inspect(lambda scorer, options: scorer.answer(options["pattern"]))),
    "inspect.exact": ("inspect_ai", _inspect(lambda scorer, _: scorer.exact())),
    "inspect.f1": ("inspect_ai", _inspect(lambda scorer, options: scorer.f1(**options))),
    "inspect.choice": ("inspect_ai", _inspect_choice),
    "inspect.math": ("inspect_ai", _inspect(lambda scorer, _: scorer.math())),
    "lm_eval.exact_match": ("lm_eval", _lm_eval),
    "lm_eval.gsm8k": ("lm_eval", _lm_eval_gsm8k),
    "lm_eval.triviaqa": ("lm_eval", _qa()),
    "lm_eval.nq_open": ("lm_eval", _qa(regexes_to_ignore=["\\b(?:The |the |An |A |The |a |an )"])),
    "lm_eval.hendrycks_math": ("lm_eval", _hendrycks),
    "lm_eval.minerva_math": ("lm_eval", _minerva),
    "lm_eval.drop": ("lm_eval", _drop),
    "trl.accuracy": ("trl", _trl("accuracy_reward")),
    "trl.reasoning_accuracy": ("trl", _trl("reasoning_accuracy_reward")),
    "trl.cosine": ("trl", _trl("get_cosine_scaled_reward", make=True)),
    "trl.think_format": ("trl", _trl("think_format_reward")),
    "trl.repetition": ("trl", _trl("get_repetition_penalty_reward", make=True)),
    "trl.soft_overlong": ("trl", _trl("get_soft_overlong_punishment", make=True)),
    "verl.gsm8k": ("verl", _verl("gsm8k")),
    "verl.math_reward": ("verl", _verl("math_reward")),
    "verl.math_dapo": ("verl", _verl("math_dapo")),
    "verl.search_r1": ("verl", _verl("search_r1_like_qa_em", lambda gold: {"target": gold})),
    "verl.math_verify": ("verl", _verl_math),
    "lighteval.exact_match": ("lighteval", _lighteval("exact")),
    "lighteval.f1": ("lighteval", _lighteval("f1")),
    "lighteval.letters": ("lighteval", _letters),
    "rouge_score": ("rouge_score", _rouge),
    "sacrebleu.sentence": ("sacrebleu", _sentence_bleu),
}
"""The graders whose package installs: the module, and the real function."""
