"""The outcome of a row as it is defined, in plain Python, and results drawn to try it on."""

LIMITS = {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
STOPS = {"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"}
SIGNS = ("is_truncated", "truncated", "finish_reason", "stop_reason", "stop_condition")


def naive_cut_off(row):
    values = [row.get(name) for name in SIGNS]
    if all(value is None for value in values):
        return None
    flags = [value for value in values[:2] if value is not None]
    if any(value is True or value in ("1", "true") or (not isinstance(value, str) and value == 1) for value in flags):
        return True
    if any(isinstance(value, str) and value.strip().lower() in LIMITS for value in values[2:4]):
        return True
    return isinstance(values[4], str) and values[4] in STOPS


def naive_outcome(row, labels):
    if row["reward"] is None:
        return "unscored"
    if row["passed"]:
        return "pass"
    if row.get("error") is not None:
        return "error"
    if naive_cut_off(row):
        return "truncated"
    for line in (row.get("feedback") or "").split("\n"):
        fitting = [label for label in labels if line.startswith(f"{label}: ")]
        if fitting and line[len(max(fitting, key=len)) + 2 :].startswith("found nothing: "):
            return "not_found"
    return "fail"


IDS = ["a", "b", "a: b", "found nothing", "a: found nothing", "a: found nothing: x", "box", "é: ✓", "g"]
STEPS = ["boxed", "think", "number", {"tag": "answer"}, "fence"]


def drawn_check(random, ident):
    """A check of a kind that may find nothing."""
    kind = random.randrange(5)
    check = {"id": ident, "weight": random.choice([0.5, 1, 2])}
    if kind == 0:
        return check | {"type": "equals", "value": "4", "on": [random.choice(STEPS)]}
    if kind == 1:
        return check | {"type": "number", "value": {"column": "answer"}}
    if kind == 2:
        return check | {
            "type": "contains",
            "value": "4",
            "on": [random.choice(STEPS)],
            "notFound": random.choice(["fail", "pass"]),
        }
    if kind == 3:
        return check | {"type": "json_valid"}
    return check | {"type": "contains", "value": random.choice(["4", "x"])}


def drawn_spec(random, ident):
    """A spec whose checks have ids that begin one another, now and then in a group."""
    checks = [drawn_check(random, name) for name in random.sample(IDS, random.randint(1, 4))]
    if random.random() < 0.3:
        inner = [drawn_check(random, name) for name in random.sample(IDS[:4], 2)]
        group = {"id": "group", "type": random.choice(["all_of", "any_of", "mean", "none_of"]), "checks": inner}
        checks.append(group)
    return {"id": ident, "passThreshold": random.choice([0, 0.5, 1]), "checks": checks}


TEXTS = [
    *("4", r"\boxed{4}", r"\boxed{5} x", "<answer>4</answer>", "<think>4</think> 5", "no idea", "", None, "x"),
    *('{"a": 4}', "```\n4\n```", "found nothing: x", "a: found nothing: boxed"),
]
FLAGS = [None, True, False, 1, 0, 1.0, 2, "1", "true", "True", " true", "1.0", "length"]
REASONS = [None, "stop", "length", " LENGTH\n", "Max_Tokens", "model_length", "max_turns", "1", "", 1, True]
CONDITIONS = [None, "max_turns", "max_turns ", "MAX_TURNS", "compaction_failed", "length", "done", 1]


def drawn_rows(random, number):
    """Rollouts with any of the columns that say how they ended, each of one type or of several."""
    kinds = dict(zip(SIGNS, (FLAGS, FLAGS, REASONS, REASONS, CONDITIONS), strict=True))
    names = [name for name in SIGNS if random.random() < 0.5]
    values = {}
    for name in names:
        pool = kinds[name]
        kind = random.choice([type(value) for value in pool if value is not None])
        values[name] = (
            pool if random.random() < 0.4 else [value for value in pool if value is None or type(value) is kind]
        )
    return [
        {"completion": random.choice(TEXTS), "answer": random.choice(["4", "5", None, "x"])}
        | {name: random.choice(pool) for name, pool in values.items() if random.random() < 0.9}
        for _ in range(number)
    ]
