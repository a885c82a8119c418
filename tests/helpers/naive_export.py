"""Training sets from rows, one by one, as the definition says: plain dicts, and nothing of the engine."""

import hashlib
import json
from collections import defaultdict

TEMPLATES = ("<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "[INST]", "<|user|>", "<｜User｜>")
LIMITS = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded")
DEFAULTS = {
    "target": "trl", "format": "messages", "errors": "exclude", "truncated": "exclude", "mixed": "exclude",
    "reasoning": "exclude", "min_length": None, "max_length": None, "pass_rate": [0, 1], "min_rollouts": 1, "validation": 0,
    "seed": 0, "trace": True, "passing": True, "min_reward": None, "best": 4, "by": "reward", "answer": None, "margin": 0.25, "pairs": 1,
    "length_ratio": 1.5, "balance": False, "per_label": 4, "order": "row",
}  # fmt: skip


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def prompt_of(row):
    """The messages of a prompt as pairs; None if there is none."""
    value = row["prompt"]
    messages = [{"role": "user", "content": value}] if isinstance(value, str) else value or []
    if all(isinstance(m["content"], str) and not m["content"].strip() for m in messages):
        return None
    return None if messages[-1]["role"] == "assistant" else [[m["role"], m["content"]] for m in messages]


def joined(pairs):
    return compact([[role, " ".join(text.split()) if isinstance(text, str) else text] for role, text in pairs])


def text_of(row):
    value = row["completion"]
    if isinstance(value, str) or value is None:
        return value
    answers = [m["content"] for m in value if m["role"] == "assistant"]
    return (answers[-1] or "") if answers else None


def form_of(row, recipe, settings):  # noqa: C901, PLR0911  (a list of conditions, in their order)
    """Why a target does not take a row; None if it does."""
    pairs, target, is_text = row["_prompt"], settings["target"], settings["format"] == "text"
    roles = [role for role, _ in pairs]
    if is_text and not isinstance(row["prompt"], str):
        return "the prompt is messages"
    if not is_text:
        if any(role not in ("system", "user", "assistant") or not isinstance(text, str) for role, text in pairs):
            return "the prompt is not plain messages"
        if any(mark in text for _, text in pairs for mark in TEMPLATES):
            return "the prompt is a rendered template"
        if recipe == "sft" and target in ("verl", "nemo-rl", "axolotl", "llamafactory") and "assistant" in roles:
            return "the prompt has assistant turns"
        turns = roles[1:] if roles[0] == "system" else roles
        is_even = len(turns) % 2 == 0
        if target == "llamafactory" and (
            is_even or any(r != ("user", "assistant")[i % 2] for i, r in enumerate(turns))
        ):
            return "the turns do not alternate"
        if recipe == "prompts" and target == "nemo-rl" and roles != ["user"]:
            return "the prompt is not one user message"
    if recipe != "prompts" and isinstance(row["completion"], list):
        message = row["completion"][-1]
        if len(row["completion"]) != 1 or message["role"] != "assistant" or not isinstance(message["content"], str):
            return "the completion is not one text message"
        ignored = {"role", "content"} | (
            {"reasoning", "reasoning_content"} if settings["reasoning"] == "drop" else set()
        )
        if any(value not in (None, "", [], {}) for name, value in message.items() if name not in ignored):
            return "the completion has more than text"
    return None


class Export:
    """What is made of ``results``, lists of rows: ``examples`` as tuples of rows, the reasons, the numbers of the card."""

    def __init__(self, results, recipe, settings, where=lambda row: True, group=None):
        own = {"pass_rate": [0.2, 0.8], "min_rollouts": 4} if recipe == "prompts" else {}
        self.settings, self.recipe = DEFAULTS | own | settings, recipe
        self.several = len(results) > 1
        self.rows = [{**row, "_result": at, "_row": n} for at, rows in enumerate(results) for n, row in enumerate(rows)]
        self.reasons, self.pass_rates = {}, []
        for at, row in enumerate(self.rows):
            row["_at"], row["_prompt"], row["_text"] = at, prompt_of(row), text_of(row)
            row["_task"] = None if row["task_id"] is None else compact([row["task_id"]])
            keys = [row["task_id"], row["model"], row["step"]] if recipe == "dpo" else [row["task_id"]]
            keys = [row[name] for name in group] if group else keys
            row["_group"] = compact([row["_result"] if recipe == "dpo" else 0, *keys])
            row["_where"] = where(row)
        self._first_rules()
        self.examples = getattr(self, f"_{recipe}")()
        self._split()

    def left(self):
        return [row for row in self.rows if row["_at"] not in self.reasons]

    def grouped(self):
        groups = defaultdict(list)
        for row in self.left():
            groups[row["_group"]].append(row)
        return groups.values()

    def exclude(self, row, reason, detail=None):
        self.reasons.setdefault(row["_at"], (reason, detail))

    def _first_rules(self):  # noqa: C901, PLR0912  (a list of rules, in their order)
        settings, prompts_only = self.settings, self.recipe == "prompts"
        prompts, golds = defaultdict(set), defaultdict(set)
        for row in self.rows:
            if row["_where"]:
                prompts[row["_group"]] |= {compact(row["_prompt"])} if row["_prompt"] else set()
                golds[row["_group"]] |= {row["answer"]} - {None}
            if not row["_where"]:
                self.exclude(row, "where")
            elif row["reward"] is None:
                self.exclude(row, "unscored", row["error"])
            elif row["error"] is not None and settings["errors"] == "exclude":
                self.exclude(row, "error", row["error"])
            elif row["_task"] is None:
                self.exclude(row, "no task")
        for rows in self.grouped():
            n, c = len(rows), sum(row["passed"] for row in rows)
            self.pass_rates.append(c / n)
            for row in rows:
                row["_n"], row["_c"] = n, c
        for row in self.left():
            text, length = row["_text"], None
            if row["_prompt"] is None:
                self.exclude(row, "no prompt")
                continue
            if not prompts_only and not (text and text.strip()):
                self.exclude(row, "no text")
                continue
            if form := form_of(row, self.recipe, settings):
                self.exclude(row, "form", form)
            if not prompts_only:
                if (row["finish_reason"] or "").strip().lower() in LIMITS and settings["truncated"] == "exclude":
                    self.exclude(row, "truncated")
                length = row["_length"] = len(text)
                least, most = settings["min_length"], settings["max_length"]
                if (least is not None and length < least) or (most is not None and length > most):
                    self.exclude(row, "length", str(length))
            for name, values in (("prompts", prompts), ("golds", golds)):
                if len(values[row["_group"]]) > 1 and settings["mixed"] == "exclude":
                    self.exclude(row, "mixed group", name)
        if not prompts_only:
            self._duplicates()
        for row in self.left():
            n, c = row["_n"], row["_c"]
            if n < settings["min_rollouts"]:
                self.exclude(row, "few rollouts", str(n))
            elif not settings["pass_rate"][0] <= c / n <= settings["pass_rate"][1]:
                reason = "never passes" if c == 0 else "always passes" if c == n else "pass rate"
                self.exclude(row, reason, f"{c} of {n}")

    def _duplicates(self):
        alike = defaultdict(list)
        for row in self.left():
            alike[compact(row["_prompt"]), row["_text"]].append(row)
        for rows in alike.values():
            first = f"row {rows[0]['_row']}"
            first = f"result {rows[0]['_result']}, {first}" if self.several else first
            is_contradictory = len({row["passed"] for row in rows}) > 1
            for row in rows if is_contradictory else rows[1:]:
                self.exclude(row, "contradictory" if is_contradictory else "duplicate", first)

    def _sft(self):
        settings = self.settings
        for row in self.left():
            if settings["passing"] and not row["passed"]:
                self.exclude(row, "does not pass")
            elif settings["min_reward"] is not None and row["reward"] < settings["min_reward"]:
                self.exclude(row, "low reward")
        order = {
            "reward": lambda row: (-row["reward"], row["_at"]),
            "length": lambda row: (row["_length"], -row["reward"], row["_at"]),
            "row": lambda row: row["_at"],
        }[settings["by"]]
        for rows in self.grouped():
            answers, taken = set(), 0
            for row in sorted(rows, key=order):
                answer = row[settings["answer"]] if settings["answer"] else None
                if answer is not None and answer in answers:
                    self.exclude(row, "same answer")
                elif settings["best"] != "all" and taken >= settings["best"]:
                    self.exclude(row, "not best")
                else:
                    taken += 1
                    answers.add(answer)
        return [(row,) for row in self.left()]

    def _kto(self):
        seen = defaultdict(int)
        for row in self.left():
            seen[row["_group"], row["passed"]] += 1
            if self.settings["per_label"] != "all" and seen[row["_group"], row["passed"]] > self.settings["per_label"]:
                self.exclude(row, "enough")
        return [(row,) for row in self.left()]

    def _prompts(self):
        rows = [min(rows, key=lambda row: row["_at"]) for rows in self.grouped()]
        sign = {"row": 0, "easy": -1, "hard": 1}[self.settings["order"]]
        return [(row,) for row in sorted(rows, key=lambda row: (sign * row["_c"] / row["_n"], row["_at"]))]

    def _dpo(self):  # noqa: C901, PLR0912  (the definition in one piece)
        settings, taken, why = self.settings, [], {}
        for rows in [*self.grouped()]:
            if len({row["passed"] for row in rows}) == 1:
                for row in rows:
                    self.exclude(row, "always passes" if row["passed"] else "never passes")
                continue
            candidates = []
            for row in rows:
                why[row["_at"]] = "margin"
            for chosen in (row for row in rows if row["passed"]):
                for rejected in (row for row in rows if not row["passed"]):
                    gap = chosen["reward"] - rejected["reward"]
                    lengths = sorted((chosen["_length"], rejected["_length"]))
                    ratio = lengths[1] / lengths[0]
                    if gap > 0 and gap >= settings["margin"]:
                        fits = settings["length_ratio"] is None or ratio <= settings["length_ratio"]
                        for row in (chosen, rejected):
                            reached = "not chosen" if fits else "length match"
                            why[row["_at"]] = max(
                                why[row["_at"]], reached, key=["margin", "length match", "not chosen"].index
                            )
                        if fits:
                            candidates.append((ratio, -gap, chosen["_at"], rejected["_at"]))
            used, number = set(), 0
            for ratio, _, chosen, rejected in sorted(candidates):
                if settings["pairs"] != "all" and (number >= settings["pairs"] or {chosen, rejected} & used):
                    continue
                number += 1
                used |= {chosen, rejected}
                taken.append((ratio, chosen, rejected))
        before = {at for _, *pair in taken for at in pair}
        if settings["balance"]:
            sides = {1: [], -1: [], 0: []}
            for ratio, chosen, rejected in sorted(taken):
                gap = self.rows[chosen]["_length"] - self.rows[rejected]["_length"]
                sides[(gap > 0) - (gap < 0)].append((ratio, chosen, rejected))
            least = min(len(sides[1]), len(sides[-1]))
            taken = sides[0] + sides[1][:least] + sides[-1][:least]
        after = {at for _, *pair in taken for at in pair}
        for row in self.left():
            if row["_at"] not in after:
                self.exclude(row, "length balance" if row["_at"] in before else why[row["_at"]])
        return [
            (self.rows[chosen], self.rows[rejected]) for _, chosen, rejected in sorted(taken, key=lambda pair: pair[1:])
        ]

    def _split(self):
        """Tasks that share a prompt get one name, until nothing changes."""
        names = {row["_task"]: row["_task"] for row in self.rows if row["_task"] is not None}
        shared = defaultdict(set)
        for row in self.rows:
            if row["_task"] is not None and row["_prompt"] is not None:
                shared[joined(row["_prompt"])].add(row["_task"])
        changed = True
        while changed:
            changed = False
            for tasks in shared.values():
                least = min((names[task] for task in tasks), key=str.encode)
                changed |= any(names[task] != least for task in tasks)
                names |= dict.fromkeys(tasks, least)
        self.unit = names
        limit = int(self.settings["validation"] * 2**64)
        self.sides = {}
        for unit in set(names.values()):
            text = f"assay split 1\0{self.settings['seed']}\0{unit}"
            held_out = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") < limit
            self.sides[unit] = "validation" if held_out else "train"

    def side(self, name):
        return [example for example in self.examples if self.sides[self.unit[example[0]["_task"]]] == name]

    def excluded(self):
        """The rows of ``excluded.parquet``, without roots."""
        return [
            {
                "assay_result": self.rows[at]["_result"],
                "assay_row": self.rows[at]["_row"],
                "assay_task": self.rows[at]["_task"],
                "assay_reward": self.rows[at]["reward"],
                "reason": reason,
                "detail": detail,
            }
            for at, (reason, detail) in sorted(self.reasons.items())
        ]

    def units(self, name):
        return len({self.unit[example[0]["_task"]] for example in self.side(name)})

    def written(self, name):
        """The examples of a split for TRL, as text or as messages."""
        is_text = self.settings["format"] == "text"

        def answer(row):
            return row["_text"] if is_text else [{"role": "assistant", "content": row["_text"]}]

        for own, *others in self.side(name):
            pairs = own["_prompt"]
            prompt = pairs[0][1] if is_text else [{"role": role, "content": text} for role, text in pairs]
            example = {"prompt": prompt}
            if self.recipe == "dpo":
                example |= {"chosen": answer(own), "rejected": answer(others[0])}
            elif self.recipe == "prompts":
                example |= {"answer": own["answer"]}
            else:
                example |= {"completion": answer(own)} | ({"label": own["passed"]} if self.recipe == "kto" else {})
            example |= {"assay_result": own["_result"], "assay_row": own["_row"], "assay_task": own["_task"]}
            if self.recipe == "prompts":
                example |= {"assay_pass_rate": own["_c"] / own["_n"], "assay_rollouts": own["_n"]}
            else:
                example["assay_reward"] = own["reward"]
            if self.recipe == "dpo":
                example |= {"assay_rejected_row": others[0]["_row"], "assay_rejected_reward": others[0]["reward"]}
            yield example
