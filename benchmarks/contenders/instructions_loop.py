"""Instructions of IFEval by hand: a plain loop, a function for each instruction, patterns compiled, a text lowered once; scores without reasons."""

import json
import re
from pathlib import Path

TEXT, LOW = range(2)
"""What an instruction reads: the text, or the lowered text."""

_WORD = re.compile(r"\w+")
_PLACEHOLDER = re.compile(r"\[.*?\]")
_BULLETS = re.compile(r"^\s*\*[^\*].*$", re.MULTILINE), re.compile(r"^\s*-.*$", re.MULTILINE)
_HIGHLIGHTS = re.compile(r"\*[^\n\*]*\*"), re.compile(r"\*\*[^\n\*]*\*\*")
_TITLE = re.compile(r"<<[^\n]+>>")
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_POSTSCRIPT = re.compile(r"\s*p\.\s?s\..*$", re.MULTILINE)
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def prepare(spec, frame):
    mode = json.loads(Path(spec).read_text("utf-8"))["checks"][0]["mode"]
    tasks = [*map(task_of, frame["instruction_id_list"].to_list(), frame["kwargs"].to_list())]
    return mode == "loose", list(zip(frame["completion"].to_list(), tasks, strict=True))


def run(prepared, frame):
    del frame
    loose, rows = prepared
    return {"reward": [share(text, task, loose=loose) for text, task in rows]}


def task_of(idents, kwargs):
    """Return what follows each instruction of a row."""
    return [_INSTRUCTIONS[ident](given or {}) for ident, given in zip(idents, kwargs, strict=True)]


def share(text, task, *, loose):
    """Return the share of the instructions that a text follows."""
    forms = [(text, text.lower())]
    followed = [_follows(instruction, forms) for instruction in task]
    if loose and not all(followed):
        lines = text.split("\n")
        parts = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
        forms = [
            (part, part.lower())
            for part in dict.fromkeys([*parts, *(part.replace("*", "") for part in [text, *parts])])
        ]
        followed = [done or _follows(instruction, forms) for done, instruction in zip(followed, task, strict=True)]
    return sum(followed) / len(followed)


def _follows(instruction, forms):
    read, follows = instruction
    return any(form[TEXT].strip() and follows(form[read]) for form in forms)


def _related(relation):
    return (
        (lambda number, bound: number < bound) if relation == "less than" else (lambda number, bound: number >= bound)
    )


def _keywords(given):
    lowered = [keyword.lower() for keyword in given["keywords"]]
    return LOW, lambda low: all(keyword in low for keyword in lowered)


def _keyword_frequency(given):
    keyword, bound, holds = given["keyword"].lower(), given["frequency"], _related(given["relation"])
    return LOW, lambda low: holds(low.count(keyword), bound)


def _forbidden_words(given):
    search = re.compile(rf"\b(?:{'|'.join(given['forbidden_words'])})\b", re.IGNORECASE).search
    return TEXT, lambda text: search(text) is None


def _letter_frequency(given):
    letter, bound, holds = given["letter"].lower(), given["let_frequency"], _related(given["let_relation"])
    return LOW, lambda low: holds(low.count(letter), bound)


def _words(given):
    bound, holds = given["num_words"], _related(given["relation"])
    return TEXT, lambda text: holds(len(_WORD.findall(text)), bound)


def _paragraphs(given):
    number = given["num_paragraphs"]

    def follows(text):
        parts = [part.strip() for part in _DIVIDER.split(text)]
        return all(parts[1:-1]) and sum(map(bool, parts)) == number

    return TEXT, follows


def _first_word(given):
    number, at, word = given["num_paragraphs"], given["nth_paragraph"] - 1, given["first_word"].lower()

    def follows(low):
        parts = low.split("\n\n")
        if sum(bool(part.strip()) for part in parts) != number or not (words := parts[at].split(None, 1)):
            return False
        return re.split("[.,?!'\"]", words[0].lstrip("'\""), maxsplit=1)[0] == word

    return LOW, follows


def _sections(given):
    number, search = given["num_sections"], re.compile(rf"\s?{given['section_spliter']}\s?\d+\s?").findall
    return TEXT, lambda text: len(search(text)) >= number


def _at_least(name, count):
    def instruction(given):
        bound = given[name]
        return TEXT, lambda text: count(text) >= bound

    return instruction


def _bullets(given):
    number = given["num_bullets"]
    return TEXT, lambda text: sum(len(bullet.findall(text)) for bullet in _BULLETS) == number


def _is_json(text):
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except ValueError:
        return False
    return True


def _has_title(text):
    return any(title.strip("<>").strip() for title in _TITLE.findall(text))


def _two_responses(text):
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(set(responses)) == len(responses) == 2


def _begins(given):
    prompt = given["prompt_to_repeat"].strip().lower()
    return LOW, lambda low: low.strip().startswith(prompt)


def _ends(given):
    phrase = given["end_phrase"].strip().lower()
    return LOW, lambda low: low.strip().strip('"').endswith(phrase)


def _always(read, follows):
    return lambda _: (read, follows)


_INSTRUCTIONS = {
    "keywords:existence": _keywords,
    "keywords:frequency": _keyword_frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "length_constraints:number_words": _words,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": _at_least(
        "num_placeholders", lambda text: len(_PLACEHOLDER.findall(text))
    ),
    "detectable_content:postscript": _always(LOW, lambda low: _POSTSCRIPT.search(low) is not None),
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": _always(TEXT, lambda text: any(answer in text for answer in _ANSWERS)),
    "detectable_format:number_highlighted_sections": _at_least(
        "num_highlights",
        lambda text: sum(bool(found.strip("* ")) for pattern in _HIGHLIGHTS for found in pattern.findall(text)),
    ),
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _always(TEXT, _is_json),
    "detectable_format:title": _always(TEXT, _has_title),
    "combination:two_responses": _always(TEXT, _two_responses),
    "combination:repeat_prompt": _begins,
    "startend:end_checker": _ends,
    "punctuation:no_comma": _always(TEXT, lambda text: "," not in text),
    "startend:quotation": _always(
        TEXT, lambda text: len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"'
    ),
}
