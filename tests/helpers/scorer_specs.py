"""Draw specs whose checks are functions, classes, the rows' verifiers and other specs, nested as all checks are."""

import json
import random

import fuzz_specs
import spec_rewards

NAMES = ("starts", "fussy", "ends", "exact_match", "contains", "regex_match", "tool_calls_match")
REWARDS = ("brevity", "picky", "evens", "slow")
BUILT_IN = NAMES[3:]


def _gold(rng):
    return rng.choice((*fuzz_specs.WORDS, *fuzz_specs.GOLDS, {"column": "golds"}, {"tool": "a"}, 42))


def _function(rng):
    name = rng.choice(NAMES)
    check = {"type": "function", "name": name} if name in BUILT_IN or rng.random() < 0.5 else {"type": name}
    if rng.random() < 0.7:
        listed = [_gold(rng) for _ in range(rng.randrange(1, 4))]
        check["expected"] = rng.choice((_gold(rng), listed))
    if rng.random() < 0.5:
        level = {"column": "level"}
        check["params"] = {"otherwise": rng.choice((0.5, level)), "ignore_case": rng.random() < 0.5}
    return check


def leaf_with(files):
    """Return a function that draws a check; some are one of the files."""

    def draw(rng):
        other = {"type": "spec", "path": rng.choice(files)} if files else {"kind": "format_only"}
        return rng.choice(
            (
                _function(rng),
                _function(rng),
                {"type": f"{spec_rewards.HERE}:{rng.choice(REWARDS)}"},
                {"kind": "format_only", "params": {"has_think_reward": rng.choice((0.25, 0.5))}},
                {"type": "row_verifier"} | rng.choice(({}, {"verifierName": "starts"})),
                other,
                other,
                {"type": "contains", "value": "a"},
            )
        )

    return draw


def _usable(check):
    """Remove what does not go together: another spec has no steps of its own."""
    if check.get("type") == "spec":
        check = {name: value for name, value in check.items() if name not in ("on", "notFound", "missingGold")}
    return check | ({"checks": [*map(_usable, check["checks"])]} if "checks" in check else {})


def _draw_spec(rng, files):
    spec = fuzz_specs.draw_spec(rng, leaf_with(files))
    return spec | {"checks": [*map(_usable, spec["checks"])]}


def write_spec(seed, folder):
    """Write a spec that includes others, three deep; return its path, and a random number generator."""
    rng = random.Random(seed)
    deep, inner, outer = (folder / name for name in ("inner/deep.json", "inner/inner.json", f"outer-{seed}.json"))
    deep.parent.mkdir(exist_ok=True)
    for file, files in ((deep, []), (inner, ["deep.json"]), (outer, ["inner/inner.json", "inner/deep.json"])):
        file.write_text(json.dumps(_draw_spec(rng, files)))
    return outer, rng


def draw_rows(rng, count):
    """Return rollouts that name functions."""
    rows = fuzz_specs.draw_rows(rng, count)
    for row in rows:
        row["fn_name"] = rng.choice(
            ("starts", "contains", "exact_match", "fussy", *([None] if rng.random() < 0.1 else []))
        )
        row["params"] = rng.choice((None, '{"ignore_case": true}', '{"otherwise": 0.5}'))
    return rows
