"""What a release says of itself: one name, extras that exist, versions that were tried."""

import re
import tomllib

from cases import ROOT
from readme import TRIED, pins

from assay._version import DISTRIBUTION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {*PROJECT["optional-dependencies"]}


def files():
    """The texts that users read: the engine, the pages, the samples; and the tests, which say what to install."""
    for folder in ("engine", "docs", "specs", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".yaml", ".toml", ".json"}:
                yield path, path.read_text("utf-8")
    for path in ROOT.glob("*.md"):
        yield path, path.read_text("utf-8")


def test_one_name_is_installed_everywhere_with_extras_that_exist():
    assert PROJECT["name"] == DISTRIBUTION
    count = 0
    for path, text in files():
        for name, extra in re.findall(r"pip install '([\w-]*assay[\w-]*)\\?\[([\w-]+)", text):
            assert name == DISTRIBUTION, path
            assert extra in EXTRAS, path
            count += 1
        for extra in re.findall(r"(?:\./assay|(?<!['\w/])assay-rollouts)\[([\w-]+)\]", text):
            assert extra in EXTRAS, path
        assert not re.search(r"(?<![\w/.-])assay\\?\[[a-z-]+\\?\]", text), path
        for extra in re.findall(r'\b(?:install|package)\((?:"\w+", )?"([\w-]+)"\)', text):
            assert path.suffix != ".py" or "engine" not in path.parts or extra in EXTRAS, path
    assert count > 40
    plugin = tomllib.loads((ROOT / "specs/plugin/assay-length-band/pyproject.toml").read_text("utf-8"))
    assert plugin["project"]["dependencies"] == [DISTRIBUTION]


def test_every_adapted_package_has_a_version_that_was_tried():
    support = {"datasets", "transformers", "peft", "accelerate"}
    assert {*pins()} - support == {*TRIED}
