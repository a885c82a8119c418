"""A file of another tool, read and made a spec, and the spec as YAML."""

import json
import re
from pathlib import Path
from typing import Any

from assay.errors import SpecError, shown_path
from assay.spec.importers.imported import Imported
from assay.spec.importers.openai_graders import is_openai, read_openai
from assay.spec.importers.promptfoo import is_promptfoo, read_promptfoo
from assay.spec.verifier import load_verifier
from assay.system.documents import read_document

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ .-][A-Za-z0-9_]+)*", re.ASCII)
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""Texts that some reader of YAML takes for something else."""


def import_file(path: Path) -> Imported:
    """Read a file of promptfoo or of OpenAI's graders."""
    document = read_document(path)
    name = shown_path(path)
    if is_openai(document.data):
        imported = read_openai(document)
    elif is_promptfoo(document.data):
        imported = read_promptfoo(document)
    else:
        hint = "Known: a promptfoo configuration with `tests` or `defaultTest`, and OpenAI graders, alone, in a list or in `testing_criteria`."
        raise SpecError(f"{name}: neither a promptfoo configuration nor an OpenAI grader.", hint)
    if not imported.spec["checks"]:
        listed = "".join(f"\n  {line}" for line in imported.left_out)
        raise SpecError(f"{name}: nothing in it has a counterpart{':' if listed else '.'}{listed}")
    load_verifier({"id": "imported", **imported.spec})
    return imported


def yaml_text(spec: Any) -> str:
    """Return a spec as YAML that every version of YAML reads alike."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # the reader of specs refuses them
            del data
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')

    Dumper.add_representer(str, represent)
    text: str = yaml.dump(spec, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return text


def tasks_text(imported: Imported) -> str:
    """Return the task table as JSONL."""
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in imported.tasks)
