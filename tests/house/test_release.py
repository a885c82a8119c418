"""What a release says of itself: one name, extras that exist, versions that were tried."""

import re
import tomllib

import yaml
from cases import ROOT
from readme import TRIED, pins

from assay._version import DISTRIBUTION, __version__

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
    support = {"datasets", "transformers", "peft", "accelerate", "llama-index-core"}
    assert {*pins()} - support == {*TRIED}


def test_the_version_and_the_targets_of_the_workflows_are_those_of_the_project():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["license"]
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    targets = {*re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)}
    pythons = {entry.split()[-1] for entry in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", entry)}
    jobs_of = {
        "ci": {"tests", "docs", "distributions", "wheel", "kernel", "kernel-on-musl"},
        "release": {"ci", "pypi", "pypi-kernel", "site"},
    }
    for name, jobs in jobs_of.items():
        workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
        assert {*workflow["jobs"]} == jobs
        for job in workflow["jobs"].values():
            commands = [step["run"] for step in job.get("steps", ()) if "run" in step]
            assert {target for command in commands for target in re.findall(r"make ([a-z-]+)", command)} <= targets
            assert {*job.get("strategy", {}).get("matrix", {}).get("python", pythons)} == pythons
    assert DISTRIBUTION.replace("-", "_") in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(path.read_text("utf-8")), path


def test_each_wheel_of_the_kernel_runs_on_its_platform_before_it_is_published():
    kernel = tomllib.loads((ROOT / "engine" / "kernel" / "pyproject.toml").read_text("utf-8"))["project"]
    assert kernel["name"] == f"{DISTRIBUTION}-kernel"
    targets = re.findall(r'": \("(\w+)", "lib', (ROOT / "engine" / "kernel" / "hatch_build.py").read_text("utf-8"))
    assert len(targets) == 8
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    run = [job["strategy"]["matrix"]["include"] for job in (jobs["kernel"], jobs["kernel-on-musl"])]
    assert {entry["wheel"] for entries in run for entry in entries} == {*targets}
    assert {*jobs["tests"]["strategy"]["matrix"]["kernel"]} == {"0", "1"}
