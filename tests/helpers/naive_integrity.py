"""Whether groups hold together, row by row, as the definition says: plain dicts, and nothing of the engine."""

from collections import Counter, defaultdict

import naive_export
from naive_export import compact, joined, text_of
from rapidfuzz.distance import Indel

MASK = 2**64 - 1


def splitmix64(seed, number):
    x = (seed + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def prompt_of(row):
    value = row.get("prompt")
    return naive_export.prompt_of({"prompt": row.get("instruction") if value is None else value})


def gold_of(row):
    value = next((row[name] for name in ("answer", "target", "expected") if row.get(name) is not None), None)
    if value is None or isinstance(value, str):
        return value
    return compact(value) if isinstance(value, list | dict) else str(value)


def may_be(a, b, near):
    return 1 - abs(len(a) - len(b)) / (len(a) + len(b)) >= near


def components(texts, near):
    """The distinct texts of a group, each with the first one that it hangs together with; and how many pairs are compared."""
    distinct, pairs = [*dict.fromkeys(texts)], 0
    top = {text: text for text in distinct}
    for at, one in enumerate(distinct[:64]):
        for other in distinct[at + 1 : 64]:
            a, b = one[:4096], other[:4096]
            if not may_be(a, b, near):
                continue
            pairs += 1
            if Indel.normalized_similarity(a, b) >= near:
                old, new = sorted((top[one], top[other]), key=distinct.index, reverse=True)
                top = {text: new if head == old else head for text, head in top.items()}
    return top, pairs


def share(rows, keys):
    """The share of the reward that rows have of which an earlier one has the same key."""
    seen, repeated, total = set(), 0.0, 0.0
    for row, key in zip(rows, keys, strict=True):
        reward = row["reward"] or 0.0
        total += reward
        repeated += reward if key in seen else 0.0
        seen.add(key)
    return repeated / total if total > 0 else None


def integrity(rows, group, *, task="task_id", near=0.95, size=None, vote=None, seed=0, most=2_000_000):
    """The table by key, and the facts. Numbers of groups are their places in the order of their keys."""
    groups, sharing = defaultdict(list), defaultdict(set)
    for row in rows:
        if row[task] is not None:
            groups[tuple(row[name] for name in group)].append(row)
    others = [name for name in group if name != task]
    for of in groups.values():
        for row in of:
            if prompt_of(row):
                sharing[joined(prompt_of(row)), *(row[name] for name in others)].add(row[task])
    sizes = Counter(map(len, groups.values()))
    usual = size or max(sizes, key=lambda rows: (sizes[rows], rows), default=None)
    table, pairs = {}, {}
    for key, of in groups.items():
        prompts, golds = [prompt_of(row) for row in of], [gold_of(row) for row in of]
        told = [row for row in of if text_of(row) is not None]
        texts = [text_of(row) for row in told]
        top, pairs[key] = components(texts, near)
        table[key] = entry = {
            "rows": len(of),
            "odd_size": len(of) != usual,
            "prompts": len({compact(prompt) for prompt in prompts if prompt}),
            "golds": len({*golds} - {None}),
            "shared_prompt": any(
                len(sharing[joined(prompt_of(row)), *(row[name] for name in others)]) > 1
                for row in of
                if prompt_of(row)
            ),
            "texts": len(texts),
            "distinct": len({*texts}),
            "near_distinct": len({*top.values()}),
            "duplicate_reward": share(told, texts),
            "near_duplicate_reward": share(told, [top[text] for text in texts]),
        }
        if vote:
            counts = Counter(row[vote] for row in of if row[vote] is not None).values()
            entry["answers"] = len(counts)
            entry["effective_answers"] = sum(counts) ** 2 / sum(n * n for n in counts) if counts else None
    numbers = {
        key: number for number, key in enumerate(sorted(table, key=lambda key: [(v is not None, v) for v in key]))
    }
    used, compared = 0, 0
    for key in sorted(table, key=lambda key: splitmix64(seed, numbers[key])):
        used += pairs[key]
        if used > most:
            table[key] |= {"near_distinct": None, "near_duplicate_reward": None}
        compared += used <= most
    entries = table.values()
    facts = {
        "groups": len(table),
        "usual_size": usual,
        "odd_size": sum(entry["odd_size"] for entry in entries),
        "mixed_prompts": sum(entry["prompts"] > 1 for entry in entries),
        "mixed_golds": sum(entry["golds"] > 1 for entry in entries),
        "shared_prompt": sum(entry["shared_prompt"] for entry in entries),
        "texts": sum(entry["texts"] for entry in entries),
        "duplicates": sum(entry["texts"] - entry["distinct"] for entry in entries),
        "near_duplicates": sum(
            entry["texts"] - entry["near_distinct"] for entry in entries if entry["near_distinct"] is not None
        ),
        "compared": compared,
    }
    facts["near_duplicates"] = facts["near_duplicates"] if compared or not table else None
    return table, facts
