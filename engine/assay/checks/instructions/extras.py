"""What the extra ``ifeval`` brings: the language of a text by langdetect; sentences and words of English by nltk.

Nothing is downloaded: what is not installed is an error that tells what to run.
"""

import threading
from functools import lru_cache
from typing import Any

from assay.errors import did_you_mean, install, quoted
from assay.system.cache import cached_within

LANGUAGES = (
    *("af", "ar", "bg", "bn", "ca", "cs", "cy", "da", "de", "el", "en", "es", "et", "fa"),
    *("fi", "fr", "gu", "he", "hi", "hr", "hu", "id", "it", "ja", "kn", "ko", "lt", "lv"),
    *("mk", "ml", "mr", "ne", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "so"),
    *("sq", "sv", "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh-cn", "zh-tw"),
)
"""The languages that langdetect 1.0.9 knows."""

_INSTALL = install("ifeval")
_PUNKT = "python -m nltk.downloader punkt_tab"
_READ = 20_000
"""Code points that langdetect certainly reads no further than: it takes 10,000 after composing pairs of them."""
_CACHED = 4_000_000
"""Bytes of texts whose language is remembered."""
_SPLIT = 100_000
"""Maximum code points of a text that is split into sentences or words by nltk: of stops and blanks alone, these take some seconds."""
_LOADING = threading.Lock()


class MissingError(Exception):
    """A package or data of the extra is not installed."""


def check_language(language: str) -> str:
    """Return the code of a language."""
    if language not in LANGUAGES:
        guess = did_you_mean(language, LANGUAGES)
        raise ValueError(f"unknown language {quoted(language)}. {guess or 'Known: ' + ', '.join(LANGUAGES) + '.'}")
    return language


@cached_within(_CACHED, lambda _, text: 4 * len(text))
def detected(text: str) -> str | None:
    """Return the language of a text by langdetect with seed 0; None if nothing in the text tells."""
    with _LOADING:
        detector = _detectors().create()
    from langdetect.lang_detect_exception import ErrorCode, LangDetectException

    detector.append(_leading(text, detector))
    try:
        return str(detector.detect())
    except LangDetectException as error:
        if error.code != ErrorCode.CantDetectError:
            raise
        return None


@lru_cache(maxsize=1)
def _detectors() -> Any:
    # NOTE: not the factory of ``langdetect.detect``, which the whole process shares: its seed is somebody else's to set, and while
    # one thread loads it, another one finds it without languages; what a detector changes is its own
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError:
        raise MissingError(f"langdetect, which detects languages, is not installed: {_INSTALL}") from None
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.set_seed(0)
    return factory


def _leading(text: str, detector: Any) -> str:
    """Return as much of a text as langdetect needs: it searches all of it for addresses, and then reads the beginning."""
    size = 2 * _READ
    while size < len(text):
        end = text.find(" ", size)  # no address contains a blank
        if end < 0:
            return text
        kept = detector.MAIL_RE.sub(" ", detector.URL_RE.sub(" ", text[:end]))
        if len(kept) >= _READ:
            return text[:end]
        size = 2 * end
    return text


def sentences(text: str) -> list[str]:
    """Return the sentences of a text by Punkt with its English parameters."""
    if len(text) > _SPLIT:
        raise ValueError(f"a text of {len(text):,} characters is not split into sentences; {_SPLIT:,} are the most")
    with _LOADING:
        punkt = _punkt()
    return [*punkt.tokenize(text)]


def word_tokens(text: str) -> list[str]:
    """Return the tokens of ``nltk.word_tokenize``: those of each sentence."""
    parts = sentences(text)
    from nltk.tokenize.destructive import NLTKWordTokenizer

    tokenize = NLTKWordTokenizer().tokenize
    return [token for sentence in parts for token in tokenize(sentence)]


@lru_cache(maxsize=1)
def _punkt() -> Any:
    try:
        from nltk import tokenize
    except ImportError:
        raise MissingError(f"nltk, which splits sentences, is not installed: {_INSTALL}") from None
    try:
        return tokenize.punkt.PunktTokenizer("english")
    except LookupError:
        where = "NLTK_DATA is the folder with `tokenizers/punkt_tab`, if it is not in a usual place"
        raise MissingError(f"nltk's data for sentences is not installed: {_PUNKT} ({where})") from None
