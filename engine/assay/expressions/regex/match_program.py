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

    def spans(matches: Iterator[Any]) -> list[tuple[int, int]] | None:
        match = next(matches, None)
        return None if match is None else [match.span(group) for group in range(compiled.groups + 1)]

    tasks: dict[str, Callable[[str], Any]] = {
        "found": lambda text: compiled.search(text, **within) is not None,
        "first": lambda text: spans(compiled.finditer(text, **within)),
        "last": lambda text: spans(iter(deque(compiled.finditer(text, **within), maxlen=1))),
        "removed": lambda text: compiled.sub("", text, **within),
        "counted": lambda text: len(compiled.findall(text, **within)),
        "groups": lambda _: {"": compiled.groups, **compiled.groupindex},
    }
    return tasks[task]
