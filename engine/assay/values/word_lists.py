r"""Words and patterns by which functions of other tools read answers; NOTICE names the sources."""

MINERVA_SUBSTITUTIONS = (
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    ("\\$", ""),
    ("\\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (",\\text{and}", ","),
    ("\\text{and}", ","),
    ("\\text{m}", "\\text{}"),
)
"""What is replaced first, in order."""
MINERVA_REMOVED = (
    "square",
    "ways",
    "integers",
    "dollars",
    "mph",
    "inches",
    "hours",
    "km",
    "units",
    "\\ldots",
    "sue",
    "points",
    "feet",
    "minutes",
    "digits",
    "cents",
    "degrees",
    "cm",
    "gm",
    "pounds",
    "meters",
    "meals",
    "edges",
    "students",
    "childrentickets",
    "multiples",
    "\\text{s}",
    "\\text{.}",
    "\\text{\ns}",
    "\\text{}^2",
    "\\text{}^3",
    "\\text{\n}",
    "\\text{}",
    "\\mathrm{th}",
    "^\\circ",
    "^{\\circ}",
    "\\;",
    ",\\!",
    "{,}",
    '"',
    "\\dots",
)
"""What is removed then, in order: units, and LaTeX around an answer."""

INSPECT_ANSWER = {
    "letter": r"(?is)ANSWER\s*:\s*([A-Za-z])(?:[^\w]|\n|$)(?!.*ANSWER\s*:)",
    "word": r"(?is)ANSWER\s*:\s*(\S+?)(?=[.,;:!?]?\s*(?:\n|$))(?!.*ANSWER\s*:)",
    "line": r"(?i)ANSWER\s*:\s*([^\n]+)\s*\Z",
}
"""What stands behind the last ``ANSWER:``, by the name of the pattern."""
INSPECT_UNWRAPPED = (
    ("\\$\\s*([A-Za-z\\d][A-Za-z\\d ,]*?)\\s*\\$", "\\1"),
    ("\\*\\*\\s*([A-Za-z\\d][A-Za-z\\d ,]*?)\\s*\\*\\*", "\\1"),
    ("(?i)(^|[:,])(\\s*)\\(([A-Za-z\\d])\\)(?=\\s*(?:,|\\.|\\n|\\Z))", "\\1\\2\\3"),
)
"""What is replaced in the answer to a question with choices, in order."""
INSPECT_CHOICES = (
    "(?im)^ANSWER\\s*:\\s*([A-Za-z\\d ,]+)\\s*(?:$|\\n|\\.)",
    "(?i)ANSWER\\s*:\\s*([A-Za-z\\d ,]+)(?:[^\\w]|\\n|$|\\.)",
)
"""Patterns of chosen letters: the last match of the first that has one."""

LIGHTEVAL_LETTERS = (
    r"(?i:final answer is)\:?\s*X\.?\s?I hope",
    r"(?i:final answer.{0,100}?)\s+is\:?\s*X",
    r"(?i:answer)\s?:.{0,50}?W",
    r"(?i:answer).{0,50}?W",
    r"^S",
    r"\nS",
)
"""Patterns of a chosen letter, in order; X is a letter, W one between spaces, S one at a start."""
LIGHTEVAL_ANYWHERE = ("W", "X")
"""The last two, which need no words before the letter."""
LIGHTEVAL_SUFFIX = r"(?:\*\*)?(?:[.,]|\s?:| |$)"

MMLU_MARKS = (
    "**",
    "$\\boxed{",
    "}$",
    "\\$",
    "$\\text{",
    "$",
    "\\mathrm{",
    "\\{",
    "\\text",
    "\\(",
    "\\mathbf{",
    "{",
    "\\boxed",
)
"""What is deleted from an answer, in order."""
MMLU_WORDS = (
    "Answer\\s*:",
    "Answer\\s*:\u200b\u200b\u200b\u200b\u200b\u200b",
    "\u0989\u09a4\u09cd\u09a4\u09b0\\s*:",
    "\u0909\u0924\u094d\u0924\u0930\\s*:",
    "\u0989\u09a4\u09cd\u09a4\u09b0\u0983",
    "\u0989\u09a4\u09cd\u09a4\u09b0\\s*:",
    "Antwort\\s*:",
    "\ub2f5\ubcc0\\s*:",
    "\uc815\ub2f5\\s*:",
    "\ub2f5\\s*:",
    "\u7b54\u6848\\s*\uff1a",
    "\u7b54\u6848\\s*:",
    "\u7b54\\s*\uff1a",
    "\u7b54\\s*:",
    "\u7b54\u590d\\s*\uff1a",
    "\u7b54\u66f0\\s*\uff1a",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629:",
    "\u0627\u0644\u062c\u0648\u0627\u0628:",
    "\u0625\u062c\u0627\u0628\u0629:",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0627\u0644\u0646\u0647\u0627\u0626\u064a\u0629:",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0627\u0644\u0635\u062d\u064a\u062d\u0629:",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0627\u0644\u0635\u062d\u064a\u062d\u0629 \u0647\u064a:",
    "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0647\u064a:",
    "\u0627\u0644\u062c\u0648\u0627\u0628 \u0627\u0644\u0646\u0647\u0627\u0626\u064a:",
    "Respuesta\\s*:",
    "Risposta\\s*:",
    "\u7b54\u3048\\s*:",
    "\u7b54\u3048\\s*\uff1a",
    "\u56de\u7b54\\s*:",
    "\u56de\u7b54\\s*\uff1a",
    "\u89e3\u7b54\\s*:",
    "Jawaban\\s*:",
    "R\xe9ponse\\s*:",
    "Resposta\\s*:",
    "Jibu\\s*:",
    "Idahun\\s*:",
    "\xccd\xe1h\xf9n\\s*:",
    "Id\xe1h\xf9n\\s*:",
    "A\u0300m\u1ecd\u0300na\u0300\\s*:",
    "\xc0d\xe1h\xf9n\\s*:",
    "A\u0300nu\u0301go\u0323\\s*:",
    "\xc0\u1e63\xe0y\xe0n\\s*:",
)
"""What stands before the letter, in order."""
MMLU_LETTER = "[ \t]*([A-D]|[\u0623-\u062f]|[\u0985]|[\u09ac]|[\u09a1]|[\u09a2]|[\uff21]|[\uff22]|[\uff23]|[\uff24])"
"""The letter behind such a word."""
