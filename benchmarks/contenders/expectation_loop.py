"""The plain loop over texts and the expectations of their tasks, which are parsed."""

import json


def prepare(spec, frame):
    del spec
    parsed = [json.loads(entry) if isinstance(entry, str) else entry for entry in frame["metadata"].to_list()]
    return list(zip(frame["completion"].to_list(), (entry["expectations"] for entry in parsed), strict=True))


def run(prepared, frame):
    del frame
    rewards = []
    for completion, expected in prepared:
        text = completion.lower()
        met = [_occurs(entry, text) for entry in expected["mustMention"]]
        met += [not _occurs(entry, text) for entry in expected["mustNotMention"]]
        rewards.append(sum(met) / len(met))
    return {"reward": rewards}


def _occurs(entry, text):
    return any(phrase.lower() in text for phrase in entry["anyOf"])
