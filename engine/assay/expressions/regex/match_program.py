"""What workers do with a pattern and texts: Python's ``re``, or the package ``regex``.

NOTE: it runs without Assay. The package is imported with its first pattern, and only here.
"""

import importlib
import json
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any


def prepare(context: tuple[str, int, str, str, float], _: Any) -> Callable[[str], Any]:
    """Compile a pattern, and return what to do with a text."""
    pattern, flags, task, package, seconds = context
    within: dict[str, Any] = {}
    warnings.simplefilter("ignore")
    re.purge()
    if package:
        folder, lists = json.loads(package)
        if folder not in sys.path:
            sys.path.append(folder)
        regex: Any = importlib.import_module("regex")
        regex.purge()
        compiled: Any = regex.compile(pattern, flags | regex.VERSION0, ignore_unused=True, cache_pattern=False, **lists)
        within = {"timeout": seconds or None, "concurrent": True}
    else:
        compiled = re.compile(pattern, flags)
    return partial(TASKS[task], compiled, **within)


def _spans(matches: Iterator[Any]) -> list[tuple[int, int]] | None:
    """Return where the first of the matches is, and each of its groups; -1 for a group without part."""
    match = next(matches, None)
    return None if match is None else [match.span(group) for group in range(match.re.groups + 1)]


TASKS: dict[str, Callable[..., Any]] = {
    "found": lambda compiled, text, **within: compiled.search(text, **within) is not None,
    "first": lambda compiled, text, **within: _spans(compiled.finditer(text, **within)),
    "last": lambda compiled, text, **within: _spans(iter(deque(compiled.finditer(text, **within), maxlen=1))),
    "spans": lambda compiled, text, **within: [match.span() for match in compiled.finditer(text, **within)],
    "removed": lambda compiled, text, **within: compiled.sub("", text, **within),
    "counted": lambda compiled, text, **within: len(compiled.findall(text, **within)),
    "groups": lambda compiled, _, **__: {"": compiled.groups, **compiled.groupindex},
}
"""What is done with a compiled pattern and a text."""
