"""Completions by seed, of four kinds: chat answers, JSON objects, think-and-answer, scripts beyond Latin; 1.3 kB on average.

A text is made of a few thousand sentences drawn once, so that half a million texts take seconds, and no two texts are alike.
"""

import json
import random
from collections.abc import Iterator

__all__ = ["KINDS", "MEAN_BYTES", "texts"]

MEAN_BYTES = 1_300
"""The bytes of UTF-8 that a text has on average, about."""

_SENTENCES = 4_000

_VOCABULARY = """
the the the a a of of to to and and in in is for that with you your we can will please because however therefore refund
policy order customer account invoice shipping delivery item price total answer question model system result number table
value function error message user data file server request response time day week month year first second third last next
water music city family science health money history language travel school energy market paper garden bridge window river
summary conclusion step example note section detail option reason choice plan check review update release version
should could would might must has have had been being make made take taken give given find known write written
read send return open close start stop keep change move help need want think believe show explain describe compare list
"""
_WORDS = _VOCABULARY.split()
_ACCENTED = [*_WORDS, "café", "naïve", "résumé", "–", "“quoted”", "…"]
_SCRIPTS = {
    "Russian": "и в не на что он она это как по но из за вы так же от ответ вопрос заказ возврат город время человек система данные число результат пример потому однако поэтому можно нужно",
    "Chinese": "的 是 在 我们 可以 因为 所以 但是 问题 答案 系统 数据 用户 结果 时间 城市 订单 退款 服务 例如 首先 其次 最后 需要 方法 第一 步骤 说明",
    "Arabic": "في من على إلى هذا هذه أن لا ما كان يمكن السؤال الجواب النظام المدينة الوقت الطلب النتيجة مثال لأن لكن أولا ثانيا أخيرا ٤٢ ١٥",
    "Hindi": "और के का की में है यह से को पर नहीं क्या उत्तर प्रश्न शहर समय आदेश परिणाम उदाहरण क्योंकि लेकिन पहला दूसरा अंत १२ ३४",
    "Greek": "και το να είναι του της στο με για που από απάντηση ερώτηση πόλη χρόνος σύστημα αποτέλεσμα παράδειγμα όμως πρώτα τέλος ΟΔΟΣ οδός",
    "Japanese": "これ は です が を に で と も から まで ので しかし 例えば 質問 回答 都市 時間 注文 返金 結果 データ システム まず 次に 最後に",
}
_ENDS = ("。", "।", ".", ".", "!", "?")


def _fact(rng: random.Random) -> str:
    """Something that a pattern looks for: a date, a number, an address, a citation."""
    day, month, year = rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1990, 2030)
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{day}/{month}/{year}",
            f"{rng.choice(('January', 'March', 'July', 'October'))} {day}, {year}",
            f"{rng.randrange(1_000_000):,}",
            f"${rng.randrange(1_000)}.{rng.randrange(100):02}",
            f"{rng.randrange(101)}%",
            f"{rng.random():.3f}",
            f"{rng.randrange(24):02}:{rng.randrange(60):02}",
            f"+1 {rng.randrange(200, 999)}-{rng.randrange(200, 999)}-{rng.randrange(10_000):04}",
            f"https://example.{rng.choice(('org', 'com', 'net'))}/{rng.choice(_WORDS)}?id={rng.randrange(10_000)}",
            f"{rng.choice(_WORDS)}.{rng.choice(_WORDS)}@mail.example.com",
            f"#{rng.randrange(100_000)}",
            f"[{rng.randrange(1, 30)}]",
            f"`{rng.choice(_WORDS)}_{rng.choice(_WORDS)}()`",
            f"**{rng.choice(_WORDS)}**",
            f"ORD-{rng.randrange(100_000):05}",
        )
    )


def _sentence(
    rng: random.Random, words: list[str], space: str = " ", ends: tuple[str, ...] = (".", ".", ".", "!", "?", ":")
) -> str:
    chosen = rng.choices(words, k=rng.randrange(5, 22))
    if rng.random() < 0.35:
        chosen[rng.randrange(len(chosen))] = _fact(rng)
    if rng.random() < 0.3:
        chosen[rng.randrange(len(chosen))] += ","
    prose, end = space.join(chosen), rng.choice(ends)
    if space and rng.random() < 0.08:
        return (
            rng.choice(("However, ", "In summary, ", "I'm sorry, but ", "As an AI, ", "Sure! ", "Note that "))
            + prose
            + end
        )
    return prose[:1].upper() + prose[1:] + end


def _sentences(rng: random.Random, kind: str) -> list[str]:
    if kind != "scripts":
        # one text in five goes beyond ASCII
        return [_sentence(rng, _WORDS if at % 10 else _ACCENTED) for at in range(_SENTENCES)]
    made = []
    for at in range(_SENTENCES):
        name = list(_SCRIPTS)[at % len(_SCRIPTS)]
        space = "" if name in {"Chinese", "Japanese"} else " "
        made.append(_sentence(rng, _SCRIPTS[name].split(), space, _ENDS))
    return made


_LAYOUTS = (
    lambda rng, parts: f"{'#' * rng.randrange(1, 4)} {parts[0]}",
    lambda _, parts: "\n".join(f"- {part}" for part in parts),
    lambda _, parts: "\n".join(f"{at}. {part}" for at, part in enumerate(parts, 1)),
    lambda rng, parts: f"```{rng.choice(('python', 'json', 'sh', ''))}\n{parts[0]}\n```",
    lambda _, parts: f"> {parts[0]}",
    lambda _, parts: f"| {' | '.join(part[:12] for part in parts)} |\n|---|",
)
"""A heading, lists, code, a quotation, a table."""


def _block(rng: random.Random, prose: str) -> str:
    """Lay out a part of a chat answer; every other one is a paragraph."""
    return prose if rng.random() < 0.5 else rng.choice(_LAYOUTS)(rng, prose.split(". "))


def _numbered(at: int, text: str) -> str:
    """A text with its number as the second word, which makes it unlike all others."""
    first, space, rest = text.partition(" ")
    return f"{first} {at}{space}{rest}"


def _chat(rng: random.Random, at: int, prose: list[str]) -> str:
    size = max(1, len(prose) // 4)
    blocks = [" ".join(prose[begin : begin + size]) for begin in range(0, len(prose), size)]
    return _numbered(at, "\n\n".join(_block(rng, block) for block in blocks))


def _object(rng: random.Random, at: int, prose: list[str]) -> str:
    value = {
        "answer": " ".join(prose),
        "score": at,
        "confidence": round(rng.random(), 3),
        "urgency": rng.choice(("low", "medium", "high")),
        "tags": rng.sample(_WORDS, 3),
        "sources": [f"https://example.org/{at}"],
        "due": rng.choice((None, "2026-01-31")),
    }
    if rng.random() < 0.1:
        del value["score"]
    text = json.dumps(value, ensure_ascii=rng.random() < 0.2, indent=rng.choice((None, None, 2)))
    fate = rng.random()
    if fate < 0.06:
        return text[: rng.randrange(len(text))]
    if fate < 0.14:
        return f"```json\n{text}\n```"
    return f"Here is the JSON:\n{text}" if fate < 0.18 else text


def _thought(rng: random.Random, at: int, prose: list[str]) -> str:
    thought, answer = " ".join(prose[:-1]), f"{prose[-1]} {at}"
    fate = rng.random()
    if fate < 0.05:
        return f"<think>\n{thought}"
    if fate < 0.12:
        return f"{thought}\nThe answer is {rng.randrange(1_000)}. {answer}"
    boxed = f" \\boxed{{{rng.randrange(1_000)}}}" if rng.random() < 0.3 else ""
    return f"<think>\n{thought}\n</think>\n<answer>\n{answer}{boxed}\n</answer>"


def _foreign(rng: random.Random, at: int, prose: list[str]) -> str:
    return _numbered(at, rng.choice((" ", "\n", "\n\n", "\n- ", "\u00a0")).join(prose))


KINDS = {"chat": _chat, "json": _object, "think": _thought, "scripts": _foreign}
"""The kinds of text, and what makes one from its number and a few sentences."""


def texts(kind: str, count: int, seed: int = 0) -> Iterator[str]:
    """Yield texts of one kind; the first ones of a longer series are the same."""
    rng = random.Random(f"{kind} {seed}")
    sentences = _sentences(rng, kind)
    mean = sum(len(sentence.encode()) for sentence in sentences) / len(sentences)
    most = round(2 * MEAN_BYTES / mean)
    for at in range(count):
        yield KINDS[kind](rng, at, rng.choices(sentences, k=rng.randrange(2, most)))
