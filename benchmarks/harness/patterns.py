"""Patterns that people score completions with, and texts by seed that some of them match and others do not.

The patterns are those of ``specs/``, of trainers' rewards for a format, of evaluation tools' filters and scorers, and of answers on the web.
"""

import random
from dataclasses import dataclass

from harness.texts import texts

__all__ = ["PATTERNS", "SIZES", "UsedPattern", "pattern_texts"]

SIZES = {"short": 100, "answer": 1_500, "reasoning": 8_000}
"""About how many bytes a text has, by name."""


@dataclass(frozen=True)
class UsedPattern:
    """A pattern and where it is used."""

    name: str
    pattern: str


_THINK_ONLY = "(?:(?!</?(?:think|answer)>).)*"

PATTERNS = tuple(
    UsedPattern(*pair)
    for pair in (
        # rewards for a format
        ("specs/answer-format", rf"(?s)\A\s*<think>{_THINK_ONLY}</think>\s*<answer>{_THINK_ONLY}</answer>\s*\Z"),
        ("open-r1 format", r"(?ms)^<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>$"),
        ("TRL think_format", r"(?ms)^<think>(?!.*<think>)(.*?)</think>.*$"),
        ("R1 strict", r"(?s)^<think>.*?</think>\s*<answer>.*?</answer>$"),
        (
            "R1 once each",
            r"(?s)^(?!.*<think>.*<think>)(?!.*<answer>.*<answer>)\s*<think>.+?</think>\s*<answer>.+?</answer>\s*$",
        ),
        ("R1 prefilled", r"^([^<]*(?:<(?!/?think>)[^<]*)*)<\/think>\n<answer>([\s\S]*?)<\/answer>$"),
        ("R1 think, negated class", r"^<think>([^<]*(?:<(?!/?think>)[^<]*)*)<\/think>\s*<answer>([\s\S]*?)<\/answer>$"),
        ("think, then no tag", r"(?s)<think>(?:(?!</think>).)+</think>(?!.*</?think>)"),
        ("tempered, lazy, classes", r"<answer>(?:(?!<answer>)[\s\S])*?</answer>"),
        ("tempered, group, end", r"(?s)<think>((?!<think>).)*</think>\s*<answer>((?!</?answer>).)*</answer>\s*$"),
        ("tempered, behind", r"(?s)<think>(?:.(?!<think>))*?</think>"),
        ("unrolled", r"<answer>[^<]*(?:<(?!/answer>)[^<]*)*</answer>"),
        ("the last answer", r"(?s).*<answer>(.*?)</answer>(?!.*<answer>)"),
        ("soft format", r"(?s)<reasoning>.*?</reasoning>\s*<answer>.*?</answer>"),
        (
            "search-R1 turns",
            r"(?s)^\s*<think>.*?</think>\s*(?:<search>.*?</search>\s*<information>.*?</information>\s*<think>.*?</think>\s*)*<answer>.*?</answer>\s*$",
        ),
        ("search-R1 call", r"(?s)<(search|answer)>(.*?)</\1>"),
        ("any tag closed", r"(?s)<(\w+)>.*?</\1>"),
        ("tool call", r"(?s)<tool_call>\s*(\{.*?\})\s*</tool_call>"),
        ("no text behind the answer", r"(?s)</answer>(?=\s*\S)"),
        ("lines without a tag", r"(?m)^(?:(?!<).)*$"),
        # mathematics
        ("verl gsm8k", r"#### (\-?[0-9\.\,]+)"),
        ("lm-eval gsm8k strict", r"#### (\-?[0-9\.\,]+)$"),
        ("lm-eval gsm8k flexible", r"(-?[$0-9.,]{2,})|(-?[0-9]+)"),
        ("DAPO answer", r"(?i)Answer\s*:\s*([^\n]+)"),
        ("boxed", r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}"),
        ("boxed, nested", r"\\boxed\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"),
        ("the last boxed", r"(?s)\\boxed\{(?!.*\\boxed)"),
        ("minerva", r"Final Answer: The final answer is(.*?)\. I hope it is correct\."),
        ("the answer is", r"(?i)the (?:final )?answer is:?\s*\$?(-?[\d,]+(?:\.\d+)?)"),
        ("a number alone", r"(?<![\w.])-?\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w.])"),
        ("a last number", r"(?s)(-?\d[\d,]*(?:\.\d+)?)(?!.*\d)"),
        ("money", r"\$\s?\d+(?:,\d{3})*(?:\.\d{2})?"),
        ("percent", r"\b\d+(?:\.\d+)?\s?%"),
        ("a fraction", r"\\frac\{([^{}]+)\}\{([^{}]+)\}"),
        ("an equation", r"(?m)^\s*[\w\s+*/()^-]+=\s*-?\d+(?:\.\d+)?\s*$"),
        # choices
        ("simple-evals choice", r"(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?"),
        ("inspect answer letter", r"(?i)ANSWER\s*:\s*([A-Za-z])(?:[^\w]|\n|$|\.)"),
        ("inspect answer line", r"(?i)ANSWER\s*:\s*([^\n]+)"),
        ("MMLU-Pro", r"answer is \(?([A-J])\)?"),
        ("MMLU-Pro, last letter", r"(?s)\b[A-J]\b(?!.*\b[A-J]\b)"),
        ("lm-eval choice", r"(\([A-Z]\))"),
        ("MGSM", r"(?<=The answer is )(.*)(?=\.)"),
        ("bbh", r"(?<=the answer is )(.*)(?=.)"),
        # instructions
        ("IFEval title", r"<<[^\n]+>>"),
        ("IFEval bullets", r"(?m)^\s*\*[^\*].*$"),
        ("IFEval highlights", r"\*[^\n\*]*\*"),
        ("IFEval placeholders", r"\[.*?\]"),
        ("IFEval sections", r"(?m)\s?Section\s?\d+\s?"),
        ("a heading", r"(?m)^#{1,6}\s+\S"),
        ("no commas", r"^[^,]*$"),
        ("all lower case", r"^[^A-Z]*$"),
        # forms
        ("e-mail", r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
        ("URL", r"https?://(?:www\.)?[-\w@:%.+~#=]{1,256}\.[a-z]{2,6}\b"),
        ("ISO date", r"\b\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b"),
        ("phone", r"(?<!\d)(?:\+?\d{1,3}[ -]?)?\(?\d{3}\)?[ -]?\d{3}[ -]?\d{4}(?!\d)"),
        ("a time", r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b"),
        ("IPv4", r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b"),
        ("UUID", r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
        ("citation", r"\[\d+(?:,\s*\d+)*\]"),
        ("password", r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$"),
        ("JSON object", r"(?s)\{.*\}"),
        ("JSON field", r'"tool"\s*:\s*"[a-z_]+"'),
        ("quoted", r'"(?:[^"\\]|\\.)*"'),
        ("either quote", r"""(["'])(?:(?!\1).)*\1"""),
        # code
        ("code fence", r"(?s)```(?:\w+)?\n(.*?)```"),
        ("code fence, tempered", r"(?s)```python\n(?:(?!```).)*```"),
        ("fences in pairs", r"(?m)^(```|~~~)[^\n]*\n(?:.*\n)*?\1\s*$"),
        ("a function", r"(?m)^\s*def\s+(\w+)\s*\([^)]*\)\s*(?:->\s*[^:]+)?:"),
        ("a comment without TODO", r"(?m)#(?!\s*TODO).*$"),
        ("SQL without DROP", r"(?is)\bselect\b(?:(?!\bdrop\b).)*?\bfrom\b"),
        # phrases
        (
            "refusal",
            r"(?i)\b(?:i(?:'m| am) (?:sorry|unable)|i can(?:no|')t (?:help|assist)|as an ai(?: language)? model)\b",
        ),
        ("politeness", r"(?i)\b(?:please|thank(?:s| you)|sorry)\b"),
        ("not after not", r"(?i)(?<!not )\b(?:refund|return)\b"),
        ("refund but no policy", r"(?i)refund(?! policy)"),
        ("no apology, an answer", r"(?is)^(?!.*\bsorry\b)(?=.*\banswer\b).+$"),
        ("line without a word", r"(?m)^(?:(?!error).)+$"),
        ("near", r"(?i)\brefund\W+(?:\w+\W+){0,5}?policy\b"),
        ("near, tempered", r"(?is)\brefund\b(?:(?!\.\s).)*?\bcustomer\b"),
        ("a word twice", r"(?i)\b(\w+)\s+\1\b"),
        ("a phrase again", r"(\b\w+(?:\s+\w+){3})\b.*\1"),
        ("a letter thrice", r"(\w)\1\1"),
        ("sentences", r"(?:[A-Z][^.!?]*[.!?]\s*){3,}"),
        ("a sentence's end", r"(?<!\bDr)(?<!\bMr)\.\s+(?=[A-Z])"),
        ("atomic words", r"(?>\w+)(?=:)"),
        ("possessive quotes", r'"[^"]*+"'),
        ("Cyrillic", r"[а-яА-ЯёЁ]{3,}"),
        ("Chinese", r"[\u4e00-\u9fff]+"),
    )
)


def pattern_texts(size: int, count: int, seed: int) -> list[str]:
    """Return texts of about ``size`` bytes: an answer with thoughts or without, with some of what patterns look for."""
    rng = random.Random(f"{seed} {size}")
    sentences = _sentences(seed)
    return [_text(rng, sentences, size) for _ in range(count)]


def _sentences(seed: int) -> list[str]:
    return [part for text in texts("chat", 400, seed) for part in text.split(". ") if 10 < len(part) < 200]


def _prose(rng: random.Random, sentences: list[str], size: int) -> str:
    parts: list[str] = []
    while size > 0:
        part = _fact(rng) if rng.random() < 0.06 else rng.choice(sentences)
        parts.append(part + rng.choice((". ", ". ", ". ", ".\n", "\n\n")))
        size -= len(parts[-1])
    return "".join(parts).rstrip()


def _text(rng: random.Random, sentences: list[str], size: int) -> str:
    answer = rng.choice(_ANSWERS).replace("%d", str(rng.randrange(2, 9_999))).replace("%c", rng.choice("ABCDEFG"))
    thoughts = _prose(rng, sentences, size)
    space = rng.choice(("", "\n"))
    return rng.choice(_LAYOUTS).format(thoughts=thoughts, answer=answer, space=space)


_ANSWERS = (
    "%d",
    "The answer is %d.",
    "#### %d",
    r"\boxed{%d}",
    r"\boxed{\frac{%d}{7}}",
    "Answer: %c",
    "the answer is (%c).",
    "ANSWER: %c\n",
    '{"tool": "search", "count": %d}',
    "Final Answer: The final answer is %d. I hope it is correct.",
    "I'm sorry, I can't help with that.",
)
_LAYOUTS = (
    "<think>{space}{thoughts}{space}</think>\n<answer>{space}{answer}{space}</answer>",
    "<think>\n{thoughts}\n</think>\n<answer>\n{answer}\n</answer>",
    "<think>{thoughts}</think>{space}<answer>{answer}</answer>{space}",
    "<think>{thoughts}<think>{space}{answer}</think>",
    "<think>{thoughts}</think><answer>{answer}",
    "<think>{thoughts}</think>\n<search>{answer}</search>\n<information>{answer}</information>\n<think>so</think>\n<answer>{answer}</answer>",
    "<reasoning>{thoughts}</reasoning>\n<answer>{answer}</answer>",
    "{thoughts}\n</think>\n<answer>{answer}</answer>",
    "{thoughts}\n{answer}",
    "{thoughts}{space}{answer}\n",
    "{thoughts}",
)


def _fact(rng: random.Random) -> str:
    number = rng.randrange(10, 9_999)
    return rng.choice(_FACTS).replace("%d", str(number)).replace("%x", f"{rng.getrandbits(48):012x}")


_FACTS = (
    "The price is $%d.50, or %d%",
    "Write to ann.%d@example.com",
    "See https://www.example.com/page/%d",
    "x + 2 = %d",
    "At 12:45 on 2024-05-17 they called 555-123-4567",
    "192.168.0.%d is down",
    "an error of %d",
    "[1, 2]",
    "*very* important",
    "* a point",
    "<<A title>>",
    "# Heading",
    "Section 1",
    "```python\ndef f(x):\n    return x + %d  # done\n```",
    "~~~\ncode\n~~~",
    "the the city",
    "SELECT a FROM b",
    'she said "no, %d"',
    "it's 'fine'",
    "Dr. Who and Mr. X",
    "Please, thank you",
    "As an AI language model",
    "a refund of the policy",
    "not refund",
    "refund for the customer",
    "Note: %d",
    "ж это ответ",
    "这是答案",
    "aaa",
    "Hello there, World",
    "3f2504e0-4f89-11d3-9a0c-%x",
    r"\frac{1}{%d}",
    "a < b",
    "if a</b> then",
)
