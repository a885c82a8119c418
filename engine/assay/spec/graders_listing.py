"""The graders as plain data, and the checks that make them."""

import json
from collections.abc import Mapping
from typing import Any

from assay.checks.graders.table import GRADERS, LEFT_OUT, TOOLS, Grader, likely_grader
from assay.errors import UsageError, did_you_mean, quoted
from assay.spec.graders import expanded


def graders(name: str | None = None) -> list[dict[str, Any]]:
    """Return the scoring functions of other tools that ``type: grader`` has, as plain data.

    Args:
        name: Only that of this name, or those of a tool: ``inspect.match``, ``inspect``. By default all.

    Returns:
        For each: ``name``, ``tool`` (the package or repository), ``version``, ``file`` and ``function`` in it, ``licence``, ``kind``
        (``F``: checks and steps; ``R``: a function of a row; ``M``: math-verify in other processes; ``P``: the installed package in
        other processes), ``golds`` (how it takes them), ``options`` (name, kind, default, choices, whether a row may bring it, whether
        it is required), ``unbounded`` (whether it may score beyond [0, 1]), ``libraries`` and ``revision`` (of Assay's code for it).

    Raises:
        UsageError: No grader and no tool has this name.
    """
    return [_entry(grader) for grader in graders_named(name)]


def graders_named(name: str | None) -> list[Grader]:
    """Return the graders of a name, or of a tool; all without a name."""
    if name is None:
        return [*GRADERS.values()]
    if name in GRADERS:
        return [GRADERS[name]]
    if name in TOOLS:
        return [grader for grader in GRADERS.values() if grader.name.startswith(f"{name}.")]
    hint = likely_grader(name) or did_you_mean(name, TOOLS) or "All of them: assay graders"
    raise UsageError(f"{quoted(name)}: no grader and no tool has this name.", hint)


def _entry(grader: Grader) -> dict[str, Any]:
    file, _, function = grader.place.partition(":")
    options = [
        {
            "name": name,
            "kind": option.kind,
            "default": option.default,
            "choices": [*option.choices],
            "row": option.row,
            "required": option.required,
        }
        for name, option in grader.options.items()
    ]
    return {
        "name": grader.name,
        "tool": grader.tool.package,
        "version": grader.tool.version,
        "file": file,
        "function": function or grader.name.partition(".")[2],
        "licence": grader.tool.licence,
        "kind": grader.kind,
        "golds": "list" if grader.whole_list else grader.golds,
        "options": options,
        "unbounded": grader.unbounded(_any_options(grader)),
        "libraries": [*grader.libraries_with(dict.fromkeys(grader.options, True))],
        "revision": grader.revision,
    }


def _any_options(grader: Grader) -> dict[str, Any]:
    return {name: option.default for name, option in grader.options.items()}


def spec_of_name(name: str) -> dict[str, Any]:
    """Return a verifier that is one grader, whose gold is the column ``answer``."""
    grader = GRADERS[name]
    check = {"type": "grader", "name": name} | ({} if grader.golds == "none" else {"value": {"column": "answer"}})
    beyond = {"combine": "sum", "range": None} if grader.unbounded(_any_options(grader)) else {}
    return {"id": name, **beyond, "checks": [check]}


def variants(grader: Grader) -> list[dict[str, Any]]:
    """Return options that show what a grader may be: its defaults, and each choice of each option in turn."""
    required = {name: option for name, option in grader.options.items() if option.required}
    base = {name: option.choices[0] for name, option in required.items() if option.choices}
    others = [
        {**base, name: value}
        for name, option in grader.options.items()
        for value in (option.choices or ((not option.default,) if option.kind == "flag" else ()))
        if value not in (option.default, base.get(name))
    ]
    return [base, *others]


def fragment_of(grader: Grader, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the check that makes a grader with options, as a spec writes it; None if a function of a row does."""
    fragment = grader.fragment({**_any_options(grader), **options})
    if fragment is None:
        return None
    value = None if grader.golds == "none" else {"column": "golds" if grader.whole_list else "answer"}
    check = expanded(grader, fragment, value, {})
    if check.pop("inverted", False) != grader.inverted:
        check["negate"] = True
    return check | ({"threshold": 1} if check.pop("whole", False) else {})


def as_markdown() -> str:
    """Return the tables of ``docs/from-other-tools.md``: the graders of each tool, then what is left out."""
    lines = []
    for prefix, tool in TOOLS.items():
        named = [grader for grader in GRADERS.values() if grader.name.partition(".")[0] == prefix]
        about = (
            f"{tool.package}"
            if tool.version in tool.package or tool.version == "documentation"
            else f"{tool.package} {tool.version}"
        )
        licence = "" if tool.licence == "none" else f", {tool.licence}"
        lines += [f"**{about}**{licence}", "", "| grader | function there | options | kind |", "|---|---|---|---|"]
        lines += [_line(grader) for grader in named if not grader.inverted]
        lines.append("")
    lines += ["| left out | why |", "|---|---|", *(f"| {what} | {why} |" for what, why in LEFT_OUT.items())]
    return "\n".join(lines) + "\n"


def _line(grader: Grader) -> str:
    options = ", ".join(_described(name, grader) for name in grader.options)
    return f"| `{grader.name}` | `{grader.place}` | {options} | {grader.kind} |"


def _described(name: str, grader: Grader) -> str:
    option = grader.options[name]
    if option.choices:
        values = " ".join(f"`{choice}`" for choice in option.choices)
        return f"`{name}`: {values}" if option.default is not None or option.required else f"`{name}`: none {values}"
    of_row = ", of rows" if option.row else ""
    if option.required:
        return f"`{name}` (required{of_row})"
    default = "" if option.default is None else f"={json.dumps(option.default)}"
    return f"`{name}{default}`" + (" (of rows)" if option.row else "")
