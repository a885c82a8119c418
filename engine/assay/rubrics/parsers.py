r"""From what a model wrote to the part that counts: the answer behind its thoughts, or between two tags.

    parser = assay.XMLParser(["think", ("answer", "code")])
    parser.parse("<think>2 + 2</think> <answer> 4 </answer>").answer     # "4"
    parser.parse_answer(completion)                                     # the answer of a conversation, or None
    parser.format(think="2 + 2", answer="4")                            # what a model should write
    assay.Rubric([correct, parser.get_format_reward_func()], parser=parser)

A parser gives what the class of the same name in PrimeIntellect's ``verifiers`` 0.1.6 gives, wherever that one gives
anything. Where that one raises, this one goes on: a conversation in which the assistant says nothing has no answer (None) and
no format (0.0), a message without a role is nobody's, one without content says nothing, and a text counts as one message of the
assistant. Parsers travel to other processes when their ``extract_fn`` does, and so do their reward functions.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from assay.expressions.completion import completion_text
from assay.expressions.tags import Tag
from assay.types import ChatMessage, Messages

__all__ = ["Parser", "ThinkParser", "XMLParser", "get_text_content"]


def get_text_content(completion: Messages | None) -> str:
    """The text of a completion, as checks read it.

    Args:
        completion: Text, or chat messages.

    Returns:
        Text as it is; of messages the content of the last one of the assistant, else of the last one, its parts joined;
        ``""`` where nothing is said.
    """
    return completion_text(completion) or ""


def _as_it_is(text: str) -> str:
    return text


class Parser:
    """Takes text as it is, and the last message of the assistant as the answer.

    Args:
        extract_fn: Applied to what is parsed.

    Attributes:
        extract_fn: The same.
        logger: Named after the class, below ``assay.parsers``.
    """

    def __init__(self, extract_fn: Callable[[str], Any] = _as_it_is) -> None:
        self.logger = logging.getLogger(f"assay.parsers.{type(self).__name__}")
        self.extract_fn = extract_fn

    def parse(self, text: str) -> Any:
        """What ``extract_fn`` makes of the text."""
        return self.extract_fn(text)

    def parse_answer(self, completion: Messages) -> str | None:
        """What ``parse`` makes of a text, or of the last message of the assistant.

        Args:
            completion: Text, or chat messages. Content that is no text is read as its ``str()``: None as ``"None"``, no
                content as ``""``.

        Returns:
            The answer; None where the assistant says nothing.
        """
        answer: str | None
        if isinstance(completion, str):
            answer = self.parse(completion)
            return answer
        messages = self.get_assistant_messages(completion)
        answer = self.parse(str(messages[-1].get("content", ""))) if messages else None
        return answer

    def get_assistant_messages(self, completion: Messages) -> list[ChatMessage]:
        """The messages of the assistant; a text that is not empty is one."""
        return _messages(completion, "assistant")

    def get_system_messages(self, completion: Messages) -> list[ChatMessage]:
        """The messages of the system."""
        return _messages(completion, "system")

    def get_user_messages(self, completion: Messages) -> list[ChatMessage]:
        """The messages of the user."""
        return _messages(completion, "user")

    def get_tool_messages(self, completion: Messages) -> list[ChatMessage]:
        """The answers of tools."""
        return _messages(completion, "tool")

    def get_format_reward_func(self) -> Callable[..., float]:
        """A reward function, ``format_reward_func``, of how well a completion keeps to the format.

        Returns:
            A function of ``completion``, in [0, 1]. That of this class always gives 1.0, for any text will do.
        """
        return _FormatReward(self._format_reward)

    def _format_reward(self, completion: Messages) -> float:
        del completion
        return 1.0


class _FormatReward:
    """What a rubric takes for a function, and what, unlike a function made on the spot, can be pickled."""

    __signature__ = inspect.Signature([inspect.Parameter("completion", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    """What it wants of a rubric; it does not mind what else it is given."""

    def __init__(self, judge: Callable[[Messages], float]) -> None:
        self.__name__ = self.__qualname__ = "format_reward_func"
        self._judge = judge

    def __call__(self, completion: Messages, **kwargs: Any) -> float:
        del kwargs  # what else a rubric knows
        return self._judge(completion)


def _messages(completion: Messages | None, role: str) -> list[ChatMessage]:
    if isinstance(completion, str):
        return [{"role": role, "content": completion}] if completion and role == "assistant" else []
    messages = () if completion is None else completion
    return [message for message in messages if message and message.get("role") == role]


def _said(message: ChatMessage) -> str:
    """Content as a text that tags are looked for in."""
    return str(message.get("content", ""))


@functools.cache
def _warn_of_thoughts(logger: logging.Logger) -> None:
    """Once a process and class: some models' thoughts are gone before a parser sees them."""
    logger.warning(
        "Expects <think>…</think> in every message; where the server or the chat template takes thoughts out, as with Qwen3 and "
        "DeepSeek-R1, parsing fails."
    )


class ThinkParser(Parser):
    """Takes what follows the last ``</think>``; text without one holds no answer.

    For models that write their thoughts between ``<think>`` and ``</think>`` and whose server leaves them there.

    Args:
        extract_fn: Applied to what follows the thoughts, stripped; to ``""`` where no thought was ended.
    """

    def __init__(self, extract_fn: Callable[[str], Any] = _as_it_is) -> None:
        super().__init__(extract_fn=extract_fn)
        _warn_of_thoughts(self.logger)

    def parse(self, text: str) -> Any:
        """What ``extract_fn`` makes of the text after the last ``</think>``, stripped."""
        return self.extract_fn(text.rpartition("</think>")[2].strip() if "</think>" in text else "")

    def get_format_reward_func(self) -> Callable[..., float]:
        """A reward function, ``format_reward_func``: the share of the assistant's messages that think once, then answer.

        Returns:
            A function of ``completion``: a message counts when it begins with its only ``<think>`` and something, be it white
            space, follows its only ``</think>``. Parts of content are joined; a completion without messages gives 0.0.
        """
        return super().get_format_reward_func()

    def _format_reward(self, completion: Messages) -> float:
        messages = self.get_assistant_messages(completion)
        if not messages:
            return 0.0
        return sum(_thinks_once(get_text_content([message])) for message in messages) / len(messages)


def _thinks_once(text: str) -> float:
    once = text.count("<think>") == 1 and text.count("</think>") == 1
    return float(once and text.lstrip().startswith("<think>") and not text.endswith("</think>"))


class XMLParser(Parser):
    """Takes the texts between tags.

    Args:
        fields: Names of tags; a tuple names a field and then the other tags that may stand for it.
        answer_field: The tag that ``parse_answer`` reads.
        extract_fn: Kept for those who look for it; fields are not put through it.

    Raises:
        TypeError: A field is neither a name nor a tuple of names.
        ValueError: A tuple is empty, or two fields have one name.
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
        seen = set()
        for field in fields:
            names = _names(field)
            if names[0] in seen:
                raise ValueError(f"Two fields are named `{names[0]}`.")
            seen.add(names[0])
            self._fields.append((names[0], names))
        self._tags = {name: Tag(name) for _, names in self._fields for name in names}
        self._begins = tuple(f"<{name}>" for _, names in self._fields[:1] for name in names)
        self._ends = tuple(f"</{name}>" for _, names in self._fields[-1:] for name in names)
        if "think" in seen:
            _warn_of_thoughts(self.logger)

    def parse(self, text: str, strip: bool = True, last: bool = False) -> Any:
        """The text between ``<tag>`` and the next ``</tag>``, for every tag of every field.

        White space next to the tags does not count, whatever ``strip`` says. A name with characters that mean something in a
        regular expression is read as one, and as it stands where it cannot be one. Only such names can take more than linear
        time.

        Args:
            text: What the model wrote.
            strip: Strip what a regular expression for a name took as the text; nothing is left to strip from others.
            last: Take the last such text instead of the first.

        Returns:
            An object with an attribute for every tag: its text, or None where the tag is not there.
        """
        return SimpleNamespace(**{name: tag.find(text, strip=strip, last=last) for name, tag in self._tags.items()})

    def parse_answer(self, completion: Messages) -> str | None:
        """The last answer of a text, or the first one of the last message of the assistant that has any.

        Args:
            completion: Text, or chat messages. Content that is no text is read as its ``str()``.

        Returns:
            The answer; None where there is none.
        """
        if isinstance(completion, str):
            return self._answer(completion, last=True)
        for message in reversed(self.get_assistant_messages(completion)):
            if (answer := self._answer(_said(message))) is not None:
                return answer
        return None

    def _answer(self, text: str, *, last: bool = False) -> str | None:
        tag = self._tags.get(self.answer_field)
        if tag is not None and self._parses_itself():  # the same without the other tags
            return tag.find(text, strip=True, last=last)
        answer: str | None = getattr(self.parse(text, last=True) if last else self.parse(text), self.answer_field, None)
        return answer

    def _parses_itself(self) -> bool:
        """Whether what ``parse`` does is known: that of this class, and not of one below it."""
        return getattr(self.parse, "__func__", None) is XMLParser.parse

    def get_format_str(self) -> str:
        """The format, to show it to a model."""
        tags = [names[0] if len(names) == 1 else f"[ {' | '.join(names)} ]" for _, names in self._fields]
        return "\n".join(f"<{tag}>\n...\n</{tag}>" for tag in tags).strip()

    def get_fields(self) -> list[str]:
        """The names of the fields, in their order; of a tuple, the first."""
        return [name for name, _ in self._fields]

    def format(self, /, **kwargs: Any) -> str:
        """Values in their tags, one field after the other.

        Args:
            kwargs: A value for every field, by its name, else by another of its tags.

        Raises:
            ValueError: A field has no value.
        """
        parts = []
        for field, names in self._fields:
            value = kwargs.get(next((name for name in [field, *names] if name in kwargs), field))
            if value is None:
                raise ValueError(f"Missing value for field `{field}`; it is given by: {', '.join(names)}.")
            parts.append(f"<{field}>\n{value}\n</{field}>")
        return "\n".join(parts)

    def get_format_reward_func(self) -> Callable[..., float]:
        """A reward function, ``format_reward_func``: the mean over the assistant's messages of how much of the format is there.

        Returns:
            A function of ``completion``. A message gets, of 1.0: 0.4 for the share of fields of which there is a tag, if any
            field has its text; 0.2 for beginning with a tag of the first field, 0.2 for ending with one of the last; and
            0.2 that only a subclass can lose, whose ``parse`` finds with ``strip`` what it does not find without. A
            completion without messages gives 0.0, and so does a parser without fields.
        """
        return super().get_format_reward_func()

    def _format_reward(self, completion: Messages) -> float:
        messages = self.get_assistant_messages(completion)
        if not messages or not self._fields:
            return 0.0
        return sum(self._format_score(_said(message)) for message in messages) / len(messages)

    def _format_score(self, content: str) -> float:
        if self._parses_itself():
            found = loose = {name for name, tag in self._tags.items() if tag.is_in(content)}
        else:
            found, loose = self._found(self.parse(content)), self._found(self.parse(content, strip=False))
        begun = 0
        for _, names in self._fields:
            begun += not found.isdisjoint(names) or any(
                f"<{one}>" in content or f"</{one}>" in content for one in names
            )
        bare = content.strip()
        score = 0.0
        # one addition after the other: another order would differ in the last bit
        if found:
            score += 0.4 * (begun / len(self._fields))
        if found <= loose:
            score += 0.2
        if bare.startswith(self._begins):
            score += 0.2
        if bare.endswith(self._ends):
            score += 0.2
        return score

    def _found(self, parsed: Any) -> set[str]:
        return {name for name in self._tags if getattr(parsed, name, None) is not None}


def _names(field: Any) -> list[str]:
    if isinstance(field, str):
        return [field]
    if not isinstance(field, tuple):
        raise TypeError(f"A field is a name or a tuple of names, not {type(field).__name__}.")
    if not field:
        raise ValueError("A field has at least one name; here is an empty tuple.")
    if not all(isinstance(name, str) for name in field):
        raise TypeError(f"The names of a field are strings; here are {field!r}.")
    return list(field)
