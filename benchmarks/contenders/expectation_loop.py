"""The plain loop over texts and the expectations of their tasks."""

import json


def prepare(verifiers, frame):
    del verifiers, frame


def run(prepared, frame):
    del prepared
    rewards = []
    for completion, metadata in frame.select("completion", "metadata").iter_rows():
        read = json.loads(metadata) if isinstance(metadata, str) else metadata
        expected, text = read["expectations"], completion.lower()
        found = [_occurs(entry, text) for entry in expected["mustMention"]]
        found += [not _occurs(entry, text) for entry in expected["mustNotMention"]]
        rewards.append(sum(found) / len(found))
    return {"reward": rewards}


def _occurs(entry, text):
    return any(phrase.lower() in text for phrase in entry["anyOf"])
