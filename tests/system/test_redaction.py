"""What must not be shown is not."""

import re

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from assay.system import redaction
from assay.system.redaction import redacted, redacted_command, secrets_of


@each(
    ("text", "shown"),
    [
        ("nothing to hide: a?b=c@d", "nothing to hide: a?b=c@d"),
        ("https://h/a.parquet", "https://h/a.parquet"),
        ("https://h:80/a@b.parquet", "https://h:80/a@b.parquet"),
        ("https://h/a.parquet?sig=1 (x)", "https://h/a.parquet?*** (x)"),
        ("(HTTPS://u:p@h/a?TOKEN)", "(HTTPS://***@h/a?***"),
        ("https://user@h/a#part", "https://***@h/a#***"),
        ("s3://b/a?.parquet", "s3://b/a?.parquet"),
        ("az://c/a.parquet?sv=1&sig=2", "az://c/a.parquet?***"),
        ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
        ("abfss://c:key@account/a", "abfss://***@account/a"),
    ],
)
def test_users_and_queries_of_urls_are_hidden(text, shown):
    assert redacted(text) == shown


@each(
    ("arguments", "shown"),
    [
        (["--storage-option", "k=v=w", "x=y"], ["--storage-option", "k=***", "x=y"]),
        (["--storage-option=k=v=w", "x"], ["--storage-option=k=***", "x"]),
        (["score", "https://h/a?sig=1", "-s", "v.json"], ["score", "https://h/a?***", "-s", "v.json"]),
        (["--storage-option", "v"], ["--storage-option", "***"]),
    ],
)
def test_a_command_is_told_without_its_secrets(arguments, shown):
    assert redacted_command(arguments) == shown


def test_values_of_options_are_hidden_in_every_form(monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "from+the/environment")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    secrets = secrets_of(["https://u:pass@h/a?X-Sig=abc%2Fdef"], {"key": "a b+c/d", "allow": "true", "timeout": "30s"})
    said = "a b+c/d a%20b%2Bc%2Fd a+b%2Bc%2Fd abc/def abc%2Fdef pass from+the/environment true 30s eu-west-1"
    assert redacted(said, secrets) == "*** *** *** *** *** *** *** true 30s eu-west-1"


PIECES = (
    "http", "s3", "://", ":", "//", "/", "@", "a", "A1", "9", ".", "-", "+", "_", "é", "ſ", " ", "'", "?", "#", "k=v",
    "\n",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_urls_are_found_as_their_pattern_finds_them(text):
    found = [(start, rest.end(), scheme, *rest.groups()) for start, scheme, rest in redaction._urls(text)]
    assert found == [(*match.span(), *match.groups()) for match in re.finditer(redaction._URL, text)]


def test_a_long_word_with_dots_takes_linear_time():
    text = "a." * 500_000
    assert redacted(text) == text
    assert redacted(f"{text} http://me:secret@host/") == f"{text} http://***@host/"
