"""Results and changes drawn by a seed: ``whatif`` writes what a full run with the changed spec writes, or refuses."""

import copy
import json
import random
import re
from collections import Counter

import polars as pl

import assay
from assay.aggregating.pipeline import NO_CHECK
from assay.compiling.verifiers import verifiers_of_run
from assay.errors import AssayError, SpecError
from assay.insight.whatifs import write_rewards
from assay.scoring.reference import score_rows

CHANGES = 8
"""Changes of each result, of which the first is also compared with a run from file to file."""

LEAVES = (
    {"type": "contains", "value": "a"},
    {"type": "contains_all", "values": ["a", "b", "c"], "score": "share"},
    {"type": "min_length", "value": 3},
    {"type": "length_penalty", "max": 6, "buffer": 4},
    {"type": "regex", "pattern": r"\d", "negate": True},
    {"type": "equals", "value": {"column": "answer"}},
    {"type": "equals", "value": {"column": "answer"}, "missingGold": "fail"},
    {"type": "contains", "value": {"column": "answer"}, "missingGold": "pass"},
    {"type": "number", "value": "4", "on": [{"after": "b"}], "notFound": "pass"},
    {"type": "similarity", "value": "abc", "metric": "ratio", "threshold": 0.5},
    {"type": "max_length", "value": "many"},  # broken
    {"type": "function", "name": "exact_match", "expected": "a"},
)
SLOW_LEAVES = ({"type": "nonsense", "value": 1}, {"kind": "format_only"})
"""Of unknown type, and a class: installed packages are asked for both."""
GROUPS = ("all_of", "any_of", "none_of", "mean", "min", "max", "product", "length_scaled")
WEIGHTS = (0, 0, 0.1, 1 / 3, 1, 2.5, 7, 1e300)
TEXTS = (None, "", "a", "abc", "b 4", "c" * 12, "<think>a</think><answer>b</answer>", "ab12")
REFUSALS = {
    "the scores are not stored": r"no check applied to row \d.* is not stored",
    "the check did not run": r"did not run, for its type is unknown", "in a group": r"is in the group",
    "a gate has no weight": r"is a gate, which has no weight",
    "a negative weight": r"the weight of a check is not negative", "no weight is left": r"no check has a weight left",
    "a verifier has no weight": r"has no weight; it is a verifier",
    "the spec would be refused": r"^verifier: 1 problem|no reward of .* is below 0",
}  # fmt: skip


def condition(rng):
    test = rng.choice(({"equals": 1}, {"in": [1, 2]}, {"exists": False}, {"equals": 3, "not": True}))
    return {"column": "level"} | test if rng.random() < 0.8 else {"check": {"type": "contains", "value": "a"}}


def drawn_check(rng, ident, combine, depth=0):
    if depth < 2 and rng.random() < 0.15:
        kind = rng.choice(GROUPS if combine == "sum" and not depth else GROUPS[:-1])
        parts = [drawn_check(rng, f"p{at}", combine, depth + 1) for at in range(rng.randrange(1, 3))]
        check = {"type": kind} | ({"check": parts[0], "max": 9} if kind == "length_scaled" else {"checks": parts})
    else:
        check = dict(rng.choice(LEAVES if rng.random() < 0.95 else SLOW_LEAVES))
    check["id"] = ident
    if rng.random() < 0.55:
        check["when"] = condition(rng)
    if depth:
        return check
    role = rng.random()
    if role < 0.5:
        check["weight"] = rng.choice((*WEIGHTS, -1.5) if combine == "sum" else WEIGHTS)
    elif role < 0.6:
        check["gate"] = True
    elif role < 0.7:
        check["penalty"] = rng.choice((0, 0.3, 2))
    if rng.random() < 0.2:
        check["required"] = True
    return check


def drawn_spec(rng, ident):
    if rng.random() < 0.05:
        return {"id": ident, "kind": "format_only", "passThreshold": rng.choice((0.5, 1))}
    combine = rng.choice(("mean", "mean", "mean", "sum", "min", "max", "product"))
    checks = [drawn_check(rng, f"c{at}", combine) for at in range(rng.randrange(1, 5))]
    spec = {"id": ident, "checks": checks, "passThreshold": rng.choice((0, 0.5, 1))}
    spec |= {} if combine == "mean" else {"combine": combine}
    return spec | rng.choice(({}, {}, {"range": None}, {"range": [-1, 1.5]}, {"range": [0.25, 1]}))


def drawn_rows(rng):
    return [
        {
            "completion": rng.choice(TEXTS),
            "level": rng.choice((None, 1, 2, 3)),
            "answer": rng.choice(("a", "abc", "b", None) if at == 5 else ("a", "abc", "b")),
            "check/v0/zzz": "not of Assay",
        }
        for at in range(rng.randrange(1, 13))
    ]


def starts(completion):
    return float(completion[:1] == "a")


def lasts(completion):
    return 1.5e308 if "abc" in completion else 1.0


def drawn_change(rng, specs):
    several = len(specs) > 1
    names = [
        f"{spec['id']}/{check['id']}" if several else check["id"] for spec in specs for check in spec.get("checks", ())
    ]
    names += [spec["id"] for spec in specs if "checks" not in spec]
    chosen = rng.sample(names, min(len(names), rng.randrange(1, 4)))
    change = {"weights": {}, "required": {}, "drop": []}
    for name in chosen:
        kind = rng.random()
        if kind < 0.55:
            change["weights"][name] = rng.choice((*WEIGHTS, rng.random(), -2.0))
        elif kind < 0.7:
            change["required"][name] = rng.random() < 0.7
        else:
            change["drop"].append(name)
    if rng.random() < 0.3:
        change["pass_threshold"] = rng.choice((0, 0.4, 1, 1.2, -0.5))
    return change


def changed(specs, change):
    specs = copy.deepcopy(specs)
    for spec in specs:
        if "pass_threshold" in change:
            spec["passThreshold"] = change["pass_threshold"]
        for check in spec.get("checks", ()):
            names = (f"{spec['id']}/{check['id']}", check["id"])
            weights = [change["weights"][name] for name in names if name in change["weights"]]
            weights += [0 for name in names if name in change["drop"]]
            for weight in weights:
                check.pop("gate", None)
                check["penalty" if "penalty" in check else "weight"] = weight
            required = [change["required"][name] for name in names if name in change["required"]]
            required += [False for name in names if name in change["drop"]]
            if required:
                check["required"] = required[-1]
    return specs


class Case:
    """A result and its changes."""

    def __init__(self, seed, number, folder, counts):
        self.rng = random.Random(f"{seed}/{number}")
        self.name, self.folder, self.counts = f"case {number}", folder, counts
        self.specs = [drawn_spec(self.rng, f"v{at}") for at in range(self.rng.choice((1, 1, 1, 2, 3)))]
        self.rows = drawn_rows(self.rng)
        self.weights = [self.rng.choice((1.0, 0.5, -2.0)) for _ in (starts, lasts)]
        self.is_rubric = self.rng.random() < 0.05

    def run(self):
        schema = {"completion": pl.String, "level": pl.Int64, "answer": pl.String, "check/v0/zzz": pl.String}
        pl.DataFrame(self.rows, schema).write_parquet(self.folder / "rows.parquet")
        if self.score(self.source(self.specs, self.weights), "before") is None:
            self.counts["specs refused"] += 1
            return []
        self.counts["results"] += 1
        found = []
        for at in range(CHANGES):
            change, after, weights = self.drawn()
            case = json.dumps([self.specs, self.weights if self.is_rubric else None, self.rows, change])
            differing = self.compared(change, self.expected(after, weights), case)
            if at == 0 and not differing:
                differing = self.compared_with_a_run(change, self.source(after, weights), case)
            found += [f"{self.name}, change {at}: {text}" for text in differing]
        return found

    def drawn(self):
        if not self.is_rubric:
            change = drawn_change(self.rng, self.specs)
            return change, changed(self.specs, change), self.weights
        weight = self.rng.choice((1.0, 0.25, 4.0)) * (-1 if self.weights[-1] < 0 else 1)
        change = {"weights": {"lasts": weight}, "required": {}, "drop": []}
        checks = [f"{spec['id']}/{check['id']}" for spec in self.specs for check in spec.get("checks", ())]
        change["drop"] += [self.rng.choice(checks)] if checks else []
        return change, changed(self.specs, change), [*self.weights[:-1], weight]

    def source(self, specs, weights):
        try:
            loaded = [*map(assay.load_verifier, specs)]
        except SpecError:
            return None
        if not self.is_rubric:
            return loaded
        members = [verifier for verifier in loaded if verifier.kind == "native"]
        return assay.Rubric(funcs=[*members, starts, lasts], weights=[*[0.5] * len(members), *weights])

    def score(self, source, name, **options):
        if source is None:
            return None
        options |= {"overwrite": True, "lenient": True}
        return assay.score_file(self.folder / "rows.parquet", source, self.folder / f"{name}.parquet", **options).root

    def expected(self, specs, weights):
        source = self.source(specs, weights)
        return None if source is None else score_rows(self.rows, verifiers_of_run(source))

    def compared(self, change, expected, case):
        out = self.folder / "new.parquet"
        out.unlink(missing_ok=True)
        try:
            write_rewards(self.folder / "before.parquet", out, **change)
        except AssayError as error:
            return self.refused(str(error), case)
        self.counts["changes compared"] += 1
        if expected is None:
            return [f"a spec that is refused: {case}"]
        new = pl.read_parquet(out)
        gone = sum(row["error"] == NO_CHECK for row in expected) - (self.before["error"] == NO_CHECK).sum()
        self.counts["compared where rows lose their checks"] += bool(gone)
        rows = new.select([*expected[0]]).rows(named=True)
        kept = [name for name in new.columns if name not in expected[0]]
        same = rows == expected and new.select(kept).equals(self.before.select(kept))
        return [] if same else [f"{case}\n{rows}\n{expected}"]

    def compared_with_a_run(self, change, source, case):
        path = self.folder / "before.parquet"
        if source is None or not (self.folder / "new.parquet").exists():
            return []
        self.score(source, "full")
        new, full = (assay.read_provenance(self.folder / f"{name}.parquet") for name in ("new", "full"))
        if (new["content"], new["verifiers"]) != (full["content"], full["verifiers"]):
            return [f"files: {case}\n{new}\n{full}"]
        found, diff = assay.whatif(path, **change), assay.diff(path, self.folder / "full.parquet")
        told = (found.after["scored"], found.diff.matrix, found.diff.delta)
        expected = (pl.read_parquet(self.folder / "full.parquet")["reward"].count(), diff.matrix, diff.delta)
        self.counts["files and reports compared"] += 1
        return [] if told == expected else [f"told {told}, not {expected}: {case}"]

    @property
    def before(self):
        return pl.read_parquet(self.folder / "before.parquet")

    def refused(self, message, case):
        reason = next((name for name, pattern in REFUSALS.items() if re.search(pattern, message)), None)
        self.counts[f"refused: {reason}"] += 1
        without = (self.before["error"] == NO_CHECK).any()
        justified = reason is not None and (reason != "the scores are not stored" or without)
        return [] if justified else [f"refused without need: {message}\n{case}"]


def outcome(seed, number, folder):
    counts = Counter()
    problems = Case(seed, number, folder, counts).run()
    return counts, "\n".join(problems)
