"""A spec as contenders read it: a list of checks, and what cannot be said in their language."""

import json
import re
from pathlib import Path

_LOOK_AROUND = re.compile(r"\(\?<?[=!]")


class NotExpressibleError(Exception):
    """A check means what the language of a contender cannot say."""


def checks_of(spec):
    """Return the checks of a spec, each with its id."""
    return [{"id": check["type"], **check} for check in json.loads(Path(spec).read_text("utf-8"))["checks"]]


def linear_pattern(check):
    """Return the pattern of a check for an engine that does not backtrack."""
    if _LOOK_AROUND.search(check["pattern"]):
        raise NotExpressibleError(f"{check['id']}: look-around")
    return check["pattern"]


def complaint(check):
    """Return the line of feedback of a failed check, as one writes it by hand."""
    wanted = next((check[name] for name in ("value", "pattern", "requiredKeys") if name in check), "")
    return f"{check['id']}: {check['type']} {json.dumps(wanted, ensure_ascii=False)} is not met"


def parsed(text):
    """Return the value of a JSON text, ``...`` if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return ...


def refuse(check):
    """Say that a check reads more than a text, which no contender has."""
    raise NotExpressibleError(f"{check['id']}: reads more than the text")
