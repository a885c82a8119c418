"""Similarity by the packages that people call in a loop: rapidfuzz for edits, rouge_score for ROUGE; scores without reasons."""

import json
from pathlib import Path


def prepare(spec, frame):
    del frame
    (check,) = json.loads(Path(spec).read_text("utf-8"))["checks"]
    return _rouge(check["metric"]) if check["metric"].startswith("rouge") else _edits(check["metric"])


def _rouge(metric):
    from rouge_score.rouge_scorer import RougeScorer

    name = metric.replace("_", "").replace("rougel", "rougeL")
    scorer = RougeScorer([name])
    return lambda text, gold: scorer.score(gold, text)[name].fmeasure


def _edits(metric):
    from rapidfuzz import distance, fuzz

    if metric == "token_set":
        return lambda text, gold: fuzz.token_set_ratio(text, gold) / 100.0
    return {"ratio": distance.Indel, "levenshtein": distance.Levenshtein}[metric].normalized_similarity


def run(score, frame):
    pairs = zip(frame["completion"].to_list(), frame["reference"].to_list(), strict=True)
    return {"reward": [score(text, gold) for text, gold in pairs]}
