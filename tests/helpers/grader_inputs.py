"""Inputs for graders: those of the goldens, and changed texts."""

import gzip
import json
from functools import cache
from importlib.resources import files

from cases import sized

CASES = sized(300, 100)
PIECES = (
    *(
        " ",
        "\n",
        ".",
        "!",
        ",",
        "$",
        "**",
        "(",
        ")",
        "-",
        "\u00a0",
        "İ",
        "ß",
        "ﬁ",
        "é",
        "½",
        "3²",
        "十二",
        "１２",
        "٣",
        "1,000",
        "1e3",
    ),
    *(
        "nan",
        "inf",
        "the ",
        "An ",
        "\\text{ cm}",
        "\\frac12",
        "\\sqrt",
        "\\boxed{4}",
        "\\boxed 4$",
        "Answer: ",
        "ANSWER: A\n",
        "#### 7",
    ),
    *(
        "<answer>",
        "</answer>",
        "</think>",
        "A",
        "(B)",
        "x/y",
        "3/4",
        "=",
        "0.5",
        "\\%",
        "\0",
        "\t",
        "’",
        "“",
        "\x1c",
        "\u2028",
    ),
)


@cache
def goldens():
    return json.loads(gzip.decompress(files("assay.checks.graders").joinpath("goldens.json.gz").read_bytes()))


def changed(text, draw):
    """A text with a few changes."""
    for _ in range(draw.choice((0, 0, 1, 1, 2, 4))):
        at = draw.randint(0, len(text))
        kind = draw.randrange(5)
        if kind == 0:
            text = text[:at] + draw.choice(PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[min(at + draw.randint(1, 5), len(text)) :]
        elif kind == 2:
            text = draw.choice((str.upper, str.lower, str.strip, str.title))(text)
        elif kind == 3:
            text = text[at:] + draw.choice(PIECES)
        else:
            text = draw.choice(PIECES) + text
    return text


def calls_changed(text, draw):
    """Calls, as JSON, with a few changes of names, arguments and their types."""
    calls = json.loads(text)
    for _ in range(draw.choice((0, 1, 1, 2))):
        if not calls:
            return text
        call = draw.choice(calls)
        kind, arguments = draw.randrange(6), call["arguments"]
        if kind == 0:
            call["name"] = changed(call["name"], draw)
        elif kind == 1:
            calls.append(json.loads(json.dumps(call))) if draw.random() < 0.5 else calls.remove(call)
        elif kind == 2:
            arguments[draw.choice(["unit", *arguments])] = draw.choice(
                (1, 1.0, "1", True, None, [], ["a"], {}, "A, b.")
            )
        elif arguments:
            name = draw.choice([*arguments])
            arguments[name] = _value_changed(arguments[name], draw)
    return json.dumps(calls)


def _value_changed(value, draw):
    if isinstance(value, str):
        return draw.choice((changed(value, draw), value.upper(), value.replace(" ", ""), f"{value}.", [value]))
    if isinstance(value, list):
        return draw.choice((value[::-1], [_value_changed(one, draw) for one in value], [*value, *value[:1]]))
    if isinstance(value, dict):
        return {name: _value_changed(one, draw) for name, one in value.items()}
    return draw.choice((str(value), value + 1, float(value), [value], bool(value)))
