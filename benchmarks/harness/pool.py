"""Checks as people write them, to draw specs from: id, type, and the parameter that the type takes.

Every pattern is one that Assay answers without backtracking. A pattern that only backtracking can decide costs up to its limit of
time on each row: that is a limit, not a speed.
"""

__all__ = ["POOL"]

_PATTERNS = {
    # words
    "refund-word": r"\brefund(?:s|ed|ing)?\b",
    "greeting": r"(?i)^\s*(?:hi|hello|dear|sure|certainly|of course)\b",
    "ten-topics": r"\b(?:water|music|city|family|science|health|money|history|language|travel)\b",
    "ten-apologies": r"(?i)\b(?:sorry|apologi[sz]e|apologies|regret|unfortunately|cannot|can't|unable|won't|forgive)\b",
    "ten-connectives": r"\b(?:However|Therefore|Moreover|Furthermore|Additionally|Finally|First|Second|Third|Consequently)\b",
    "refusal": r"(?i)\bas an? (?:ai|artificial intelligence)(?: language)? model\b",
    "hedge": r"(?i)\b(?:might|maybe|perhaps|probably|possibly)\b",
    "closing": r"(?i)\bin (?:conclusion|summary)\b",
    "capital-words": r"\b[A-Z]{2,}\b",
    "ends-with-stop": r"[.!?。।]\s*$",
    "two-spaces": r"[^\s]  +[^\s]",
    "identifier": r"\b[a-z]+_[a-z_]+\b",
    "long-word": r"\b\w{15,}\b",
    "question": r"\?(?:\s|$)",
    # dates, numbers, amounts
    "number": r"\b\d+(?:\.\d+)?\b",
    "iso-date": r"\b\d{4}-\d{2}-\d{2}\b",
    "slashed-date": r"\b\d{1,2}/\d{1,2}/\d{4}\b",
    "long-date": r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2}, \d{4}\b",
    "time": r"\b(?:[01]?\d|2[0-3]):[0-5]\d\b",
    "thousands": r"\b\d{1,3}(?:,\d{3})+\b",
    "price": r"[$€£]\s?\d+(?:\.\d{2})?",
    "percentage": r"\d+(?:\.\d+)?\s?%",
    "order-number": r"\bORD-\d{5}\b",
    "phone": r"\+?\d{1,2}[ -]\d{3}-\d{3}-\d{4}\b",
    "citation": r"\[\d{1,2}\]",
    "final-number": r"(?i)the answer is:?\s*\$?-?\d[\d,]*(?:\.\d+)?",
    "boxed": r"\\boxed\{[^{}]+\}",
    # addresses
    "url": r"https?://[\w.-]+(?:/[^\s)]*)?",
    "email": r"\b[\w.+-]+@[\w-]+\.[\w.]+\b",
    "markdown-link": r"\[[^\]]+\]\([^)]+\)",
    # layout
    "bullets": r"(?m)^\s*(?:[-*]|\d+\.)\s",
    "heading": r"(?m)^#{1,6} \S",
    "fence": r"(?s)```(?:\w+)?\n.*?```",
    "json-fence": r"(?s)^\s*```(?:json)?\s*\{.*\}\s*```\s*$",
    "bold": r"\*\*[^*\n]+\*\*",
    "inline-code": r"`[^`\n]+`",
    "table": r"(?m)^\|.+\|$",
    "three-paragraphs": r"\S\n\n+\S(?s:.*?)\n\n+\S",
    # tags
    "think-answer": r"(?s)^<think>.*?</think>\s*<answer>.*?</answer>\s*$",
    "answer-tag": r"<answer>\s*\S",
    "closed-thought": r"</think>",
    "any-tag": r"</?[a-z]+>",
    # parts of JSON
    "urgency": r'"urgency":\s*"(?:low|medium|high)"',
    "confidence": r'"confidence":\s*(?:0?\.\d+|1(?:\.0)?)\b',
    # look-around
    "refund-not-policy": r"refund(?! policy)",
    "price-behind-sign": r"(?<=\$)\d+",
    "no-placeholder": r"^(?!.*\b(?:TODO|FIXME|lorem ipsum)\b)",
    "letters-and-digits": r"(?s)^(?=.*\d)(?=.*[A-Z])",
    # beyond Latin
    "cyrillic": r"[А-Яа-яЁё]{3,}",
    "chinese": r"[\u4e00-\u9fff]{2,}",
}
_LITERALS = {
    # name: type, phrase, as written
    "the": ("contains", "the", False),
    "however": ("contains", "However", False),
    "order": ("contains", "order", True),
    "customer-name": ("contains", "Customer", False),
    "because": ("contains", "because", True),
    "answer-key": ("contains", '"answer"', True),
    "russian-answer": ("contains", "Ответ", False),
    "chinese-order": ("contains", "订单", True),
    "no-ai": ("not_contains", "as an AI", False),
    "no-sorry": ("not_contains", "I'm sorry", True),
    "no-gift-card": ("not_contains", "gift card", False),
    "no-placeholder-text": ("not_contains", "[insert", False),
    "no-think-tag": ("not_contains", "<think>", True),
    "no-replacement": ("not_contains", "\ufffd", True),
}
_OTHERS = (
    {"type": "equals", "id": "says-no", "value": "no"},
    {"type": "min_length", "id": "at-least-100", "value": 100},
    {"type": "min_length", "id": "at-least-600", "value": 600},
    {"type": "max_length", "id": "at-most-1500", "value": 1_500},
    {"type": "max_length", "id": "at-most-4000", "value": 4_000},
    {"type": "json_valid", "id": "is-json"},
    {"type": "json_keys", "id": "answer-and-score", "requiredKeys": ["answer", "score"]},
    {"type": "json_keys", "id": "four-keys", "requiredKeys": ["answer", "urgency", "tags", "confidence"]},
    {"type": "task_expectations", "id": "expectations"},
)

POOL: tuple[dict[str, object], ...] = (
    *({"type": "regex", "id": name, "pattern": pattern} for name, pattern in _PATTERNS.items()),
    *(
        {"type": kind, "id": name, "value": phrase, "caseSensitive": as_written}
        for name, (kind, phrase, as_written) in _LITERALS.items()
    ),
    *_OTHERS,
)
"""The checks."""
