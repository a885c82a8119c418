"""The checks of a spec by promptfoo's assertions, in Node: ``make promptfoo``."""

import json
import os
import re
import subprocess
from pathlib import Path

from contenders.spec import NotExpressibleError, checks_of, refuse
from harness.generate import CACHE

_FLAGS = re.compile(r"\(\?([ims]+)\)")
_PARSED = "(() => { try { return JSON.parse(output); } catch { return undefined; } })()"


def _phrase(check):
    return f"{'' if check.get('caseSensitive', False) else 'i'}contains", check["value"]


def _regex(check):
    """A pattern as JavaScript writes it; flags stand behind it there, so those in the middle of one cannot be said."""
    flags = _FLAGS.match(check["pattern"])
    pattern = check["pattern"].removeprefix(flags[0] if flags else "")
    if "(?s:" in pattern or "(?i:" in pattern or "(?P" in pattern:
        raise NotExpressibleError(f"{check['id']}: flags within a pattern")
    if not flags:
        return "regex", pattern
    return "javascript", f"new RegExp({json.dumps(pattern)}, {json.dumps(flags[1])}).test(output)"


def _equals(check):
    if check.get("caseSensitive", False):
        return "javascript", f"output.trim() === {json.dumps(check['value'].strip())}"
    return "javascript", f"output.trim().toLowerCase() === {json.dumps(check['value'].strip().lower())}"


def _json_keys(check):
    keys = json.dumps(check["requiredKeys"])
    of_object = "value !== null && typeof value === 'object' && !Array.isArray(value)"
    return "javascript", f"(value => {of_object} && {keys}.every(key => key in value))({_PARSED})"


_CHECKS = {
    "contains": _phrase,
    "not_contains": lambda check: (f"not-{_phrase(check)[0]}", check["value"]),
    "regex": _regex,
    "equals": _equals,
    "min_length": lambda check: ("javascript", f"[...output].length >= {check['value']}"),
    "max_length": lambda check: ("javascript", f"[...output].length <= {check['value']}"),
    "json_valid": lambda _: ("is-json", None),
    "json_keys": _json_keys,
    "task_expectations": refuse,
}


def assertions(spec):
    """Return the assertions."""
    made = (_CHECKS[check["type"]](check) for check in checks_of(spec))
    return [{"type": kind} if value is None else {"type": kind, "value": value} for kind, value in made]


def prepare(spec, frame):
    node = subprocess.Popen(  # noqa: S603  (our own script)
        ["node", Path(__file__).with_suffix(".mjs"), CACHE / "promptfoo"],  # noqa: S607  (the one on the path)
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "LOG_LEVEL": "error"},
    )
    asked = {"assert": assertions(spec), "texts": frame["completion"].to_list()}
    assert _asked(node, json.dumps(asked)) == "ready"
    return node, [check["id"] for check in checks_of(spec)]


def run(prepared, frame):
    del frame
    node, names = prepared
    scored = json.loads(_asked(node, "go"))
    return dict(zip(("reward", *names), map(list, zip(*scored, strict=True)), strict=True))


def _asked(node, line):
    node.stdin.write(f"{line}\n")
    node.stdin.flush()
    return node.stdout.readline().rstrip("\n")
