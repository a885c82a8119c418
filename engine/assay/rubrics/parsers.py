r"""Parsers, which extract an answer from the text of a model: after its thoughts, or between two tags.

    parser = assay.XMLParser(["think", ("answer", "code")])
    parser.parse("<think>2 + 2</think> <answer> 4 </answer>").answer     # "4"
    parser.parse_answer(completion)                                     # the answer of a conversation, or None
    parser.format(think="2 + 2", answer="4")                            # what a model should write
    assay.Rubric([correct, parser.get_format_reward_func()], parser=parser)

A parser returns what the class of the same name in PrimeIntellect's ``verifiers`` 0.1.6 returns, wherever that one returns
anything. Where that one raises, this one does not: a conversation without a message of the assistant has no answer (None) and
no format (0.0), a message without a role is ignored, a message without content is empty, and a text counts as one message of
the assistant. Parsers and their reward functions can be pickled if their ``extract_fn`` can.
"""

import functools
import inspect
import logging
import re
from collections.abc import Callable, Iterable
from operator import add
from types import SimpleNamespace
from typing import Any

from assay.expressions.completion import completion_text
from assay.expressions.tags import TagText
from assay.types import ChatMessage, Messages

__all__ = ["Parser", "ThinkParser", "XMLParser", "extract_boxed_answer", "extract_hash_answer", "get_text_content"]


def get_text_content(completion: Messages | None) -> str:
    """Return the text of a completion, as checks read it with ``--any-role``.

    Args:
        completion: Text, or chat messages.

    Returns:
        Text as it is; for messages, the content of the last assistant message, else of the last message, its parts joined;
        ``""`` if there is no text.
    """
    return completion_text(completion, any_role=True) or ""


def _as_it_is(text: str) -> str:
    return text


class Parser:
    """Returns text unchanged; the answer is the last message of the assistant.

    Args:
        extract_fn: Applied to the parsed text.

    Attributes:
        extract_fn: The same.
        logger: ``assay.parsers.<name of the class>``.
    """

    def __init__(self, extract_fn: Callable[[str], Any] = _as_it_is) -> None:
        self.logger = logging.getLogger(f"assay.parsers.{type(self).__name__}")
        self.extract_fn = extract_fn

    def parse(self, text: str) -> Any:
        """Return ``extract_fn(text)``."""
        return self.extract_fn(text)

    def parse_answer(self, completion: Messages) -> str | None:
        """Parse a text, or the last message of the assistant.

        Args:
            completion: Text, or chat messages. Content that is not text is converted with ``str()``: None to ``"None"``, missing
                content to ``""``.

        Returns:
            The answer; None if there is no message of the assistant.
        """
        answer: str | None
        if isinstance(completion, str):
            answer = self.parse(completion)
            return answer
        messages = self.get_assistant_messages(completion)
        answer = self.parse(_content_text(messages[-1])) if messages else None
        return answer

    def get_assistant_messages(self, completion: Messages) -> list[ChatMessage]:
        """Return the messages of the assistant; a text that is not empty counts as one."""
        return _messages(completion, "assistant")

    def get_system_messages(self, completion: Messages) -> list[ChatMessage]:
        """Return the messages of the system."""
        return _messages(completion, "system")

    def get_user_messages(self, completion: Messages) -> list[ChatMessage]:
        """Return the messages of the user."""
        return _messages(completion, "user")

    def get_tool_messages(self, completion: Messages) -> list[ChatMessage]:
        """Return the messages of tools."""
        return _messages(completion, "tool")

    def get_format_reward_func(self) -> Callable[..., float]:
        """Return a reward function, ``format_reward_func``, that scores how well a completion follows the format.

        Returns:
            A function of ``completion``, in [0, 1]. In this class it always returns 1.0, as any text is valid.
        """
        return _FormatReward(self._format_reward)

    def _format_reward(self, completion: Messages) -> float:
        del completion
        return 1.0


class _FormatReward:
    __signature__ = inspect.Signature([inspect.Parameter("completion", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    """The argument that a rubric passes; further ones are ignored."""

    def __init__(self, score: Callable[[Messages], float]) -> None:
        self.__name__ = self.__qualname__ = "format_reward_func"
        self._score = score

    def __call__(self, completion: Messages, **kwargs: Any) -> float:
        del kwargs  # the other arguments of a rubric
        return self._score(completion)


def _messages(completion: Messages | None, role: str) -> list[ChatMessage]:
    if isinstance(completion, str):
        return [{"role": role, "content": completion}] if completion and role == "assistant" else []
    messages = () if completion is None else completion
    return [message for message in messages if message and message.get("role") == role]


def _content_text(message: ChatMessage) -> str:
    return str(message.get("content", ""))


@functools.cache
def _warn_of_thoughts(logger: logging.Logger) -> None:
    logger.warning(
        "Expected <think>…</think> in every message. Parsing fails if the server or the chat template removes thoughts, as "
        "with Qwen3 and DeepSeek-R1."
    )


class ThinkParser(Parser):
    """Returns the text after the last ``</think>``; a text without ``</think>`` has no answer.

    For models that write their thoughts between ``<think>`` and ``</think>`` and whose server keeps them.

    Args:
        extract_fn: Applied to the text after the thoughts, stripped; to ``""`` if there is no ``</think>``.
    """

    def __init__(self, extract_fn: Callable[[str], Any] = _as_it_is) -> None:
        super().__init__(extract_fn=extract_fn)
        _warn_of_thoughts(self.logger)

    def parse(self, text: str) -> Any:
        """Return ``extract_fn`` of the text after the last ``</think>``, stripped."""
        return self.extract_fn(text.rpartition("</think>")[2].strip() if "</think>" in text else "")

    def get_format_reward_func(self) -> Callable[..., float]:
        """Return a reward function, ``format_reward_func``: the share of the assistant's messages that think once, then answer.

        Returns:
            A function of ``completion``: a message counts if it begins with its only ``<think>`` and something, even white
            space, follows its only ``</think>``. Parts of content are joined; a completion without messages scores 0.0.
        """
        return super().get_format_reward_func()

    def _format_reward(self, completion: Messages) -> float:
        texts = [get_text_content([message]) for message in self.get_assistant_messages(completion)]
        thinks_once = [
            text.count("<think>") == text.count("</think>") == 1
            and text.lstrip().startswith("<think>")
            and not text.endswith("</think>")
            for text in texts
        ]
        return sum(thinks_once) / len(texts) if texts else 0.0


class XMLParser(Parser):
    """Returns the texts between tags.

    Args:
        fields: Names of tags; a tuple is the name of a field, followed by alternative tags for it.
        answer_field: The tag that ``parse_answer`` reads.
        extract_fn: Kept as an attribute; it is not applied to fields.

    Raises:
        TypeError: A field is neither a name nor a tuple of names.
        ValueError: A tuple is empty, or two fields have the same name.
    """

    def __init__(
        self,
        fields: Iterable[str | tuple[str, ...]],
        answer_field: str = "answer",
        extract_fn: Callable[[str], Any] = _as_it_is,
    ) -> None:
        super().__init__(extract_fn=extract_fn)
        self.answer_field = answer_field
        self._fields: list[tuple[str, list[str]]] = []
        for names in map(_names, fields):
            if names[0] in self.get_fields():
                raise ValueError(f"Two fields are named `{names[0]}`.")
            self._fields.append((names[0], names))
        self._tags = {name: TagText(name) for _, names in self._fields for name in names}
        self._begins = tuple(f"<{name}>" for _, names in self._fields[:1] for name in names)
        self._ends = tuple(f"</{name}>" for _, names in self._fields[-1:] for name in names)
        if "think" in self.get_fields():
            _warn_of_thoughts(self.logger)

    def parse(self, text: str, strip: bool = True, last: bool = False) -> Any:
        """Return the text between ``<tag>`` and the next ``</tag>``, for every tag of every field.

        White space next to the tags is removed, whatever ``strip`` is. A name with special characters of regular expressions is
        read as a regular expression if it is a valid one, else literally. Only names with groups, alternatives or repeats can
        take more than linear time.

        Args:
            text: What the model wrote.
            strip: Strip texts whose tag is a regular expression; the texts of other tags are stripped anyway.
            last: Return the last such text instead of the first.

        Returns:
            An object with an attribute for every tag: its text, or None if the tag is missing.
        """
        return SimpleNamespace(**{name: tag.find(text, strip=strip, last=last) for name, tag in self._tags.items()})

    def parse_answer(self, completion: Messages) -> str | None:
        """Return the last answer in a text, or the first one in the last message of the assistant that has any.

        Args:
            completion: Text, or chat messages. Content that is not text is converted with ``str()``.

        Returns:
            The answer; None if there is none.
        """
        if isinstance(completion, str):
            return self._answer(completion, last=True)
        for message in reversed(self.get_assistant_messages(completion)):
            if (answer := self._answer(_content_text(message))) is not None:
                return answer
        return None

    def _answer(self, text: str, *, last: bool = False) -> str | None:
        tag = self._tags.get(self.answer_field)
        if tag is not None and self._has_own_parse():  # the same result without searching for the other tags
            return tag.find(text, strip=True, last=last)
        answer: str | None = getattr(self.parse(text, last=True) if last else self.parse(text), self.answer_field, None)
        return answer

    def _has_own_parse(self) -> bool:
        return getattr(self.parse, "__func__", None) is XMLParser.parse

    def get_format_str(self) -> str:
        """Return the format as text, to show to a model."""
        tags = [names[0] if len(names) == 1 else f"[ {' | '.join(names)} ]" for _, names in self._fields]
        return "\n".join(f"<{tag}>\n...\n</{tag}>" for tag in tags).strip()

    def get_fields(self) -> list[str]:
        """Return the names of the fields in order; for a tuple, its first name."""
        return [name for name, _ in self._fields]

    def format(self, /, **kwargs: Any) -> str:
        """Write values in their tags, one field after another.

        Args:
            kwargs: A value for every field, by its name or one of its alternative tags.

        Raises:
            ValueError: A field has no value.
        """
        parts = []
        for field, names in self._fields:
            value = kwargs.get(next((name for name in [field, *names] if name in kwargs), field))
            if value is None:
                raise ValueError(f"Missing value for field `{field}`; pass it as {' or '.join(names)}.")
            parts.append(f"<{field}>\n{value}\n</{field}>")
        return "\n".join(parts)

    def get_format_reward_func(self) -> Callable[..., float]:
        """Return a reward function, ``format_reward_func``: the mean format score of the assistant's messages.

        Returns:
            A function of ``completion``. A message gets up to 1.0: 0.4 times the share of fields that have a tag, if any
            field has a text; 0.2 for beginning with a tag of the first field; 0.2 for ending with a tag of the last field; and
            0.2 unless a subclass overrides ``parse`` and finds with ``strip`` a field that it does not find without. A
            completion without messages scores 0.0, and so does any with a parser without fields.
        """
        return super().get_format_reward_func()

    def _format_reward(self, completion: Messages) -> float:
        messages = self.get_assistant_messages(completion)
        if not messages or not self._fields:
            return 0.0
        scores = (self._format_score(_content_text(message)) for message in messages)
        return functools.reduce(add, scores) / len(messages)  # sum() of Python 3.12 rounds otherwise

    def _format_score(self, content: str) -> float:
        if self._has_own_parse():
            present = loose = {name for name, tag in self._tags.items() if tag.is_in(content)}
        else:
            parsed = (self.parse(content), self.parse(content, strip=False))
            present, loose = ({name for name in self._tags if getattr(each, name, None) is not None} for each in parsed)
        attempted = sum(
            not present.isdisjoint(names) or any(f"<{name}>" in content or f"</{name}>" in content for name in names)
            for _, names in self._fields
        )
        bare = content.strip()
        score = 0.0
        # keep the order of additions: another one would differ in the last bit
        if present:
            score += 0.4 * (attempted / len(self._fields))
        if present <= loose:
            score += 0.2
        if bare.startswith(self._begins):
            score += 0.2
        if bare.endswith(self._ends):
            score += 0.2
        return score


def _names(field: Any) -> list[str]:
    if isinstance(field, str):
        return [field]
    if not isinstance(field, tuple):
        raise TypeError(f"A field must be a name or a tuple of names, not {type(field).__name__}.")
    if not field:
        raise ValueError("A field needs at least one name; the tuple is empty.")
    if not all(isinstance(name, str) for name in field):
        raise TypeError(f"The names of a field must be strings, got {field!r}.")
    return list(field)


def extract_boxed_answer(text: str) -> str:
    r"""Return the content of the last ``\boxed{…}``, nested braces included; the whole text if no box is closed."""
    start = text.rfind(box := "\\boxed{")
    if start < 0:
        return text
    start += len(box)
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return text[start : brace.start()]
    return text


def extract_hash_answer(text: str) -> str:
    """Return the text between the first ``####`` and the next one, stripped; the whole text if there is no ``####``."""
    _, mark, rest = text.partition("####")
    return rest.partition("####")[0].strip() if mark else text
