"""Libraries whose versions decide verdicts: what a footer says of them, and who asks for the same ones."""

import contextlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import some

import assay
from assay.checks.libraries import changed_versions, untested, versions
from assay.checks.registry import CHECKS
from assay.writing.footers import read_provenance

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

MATH = ["math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime"]
NEEDS = {
    "math": ({"value": "1"}, MATH),
    "language": ({"is": "en"}, ["langdetect"]),
    "ifeval": ({}, ["langdetect", "nltk", "punkt_tab"]),
    "similarity": ({"value": "1"}, ["rapidfuzz"]),
    "json_schema": ({"schema": {}}, ["jsonschema-rs"]),
    "tool_valid": ({"tools": []}, ["jsonschema-rs"]),
    "regex": ({"pattern": r"\p{Nd}", "flavor": "regex"}, ["regex"]),
}
PLAIN = {"type": "contains", "value": "1"}


@pytest.fixture
def installed(monkeypatch):
    """Versions that the test makes up, by distribution; None for one that is not installed."""
    fakes, version = {}, importlib.metadata.version

    def fake(name):
        if fakes.get(name, "") is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return fakes.get(name) or version(name)

    monkeypatch.setattr(importlib.metadata, "version", fake)
    return fakes


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """Score two rows with some checks into a file, or a folder, of the current folder."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(
        {"completion": ["1", "2"], "gold": ["1", "1"], "instruction_id_list": [["punctuation:no_comma"]] * 2}
    )
    frame.write_parquet("rollouts.parquet")

    def score(*checks, out="rewards.parquet", **options):
        return assay.score_file("rollouts.parquet", {"checks": list(checks)}, out, overwrite=True, **options)

    return score


def warned_of(kind):
    """Only versions of what `math` needs have been tested, and those that a test makes up are not among them."""
    return (
        pytest.warns(assay.AssayWarning, match="math libraries not tested: ")
        if kind == "math"
        else contextlib.nullcontext()
    )


def test_every_type_that_has_libraries_is_listed_here():
    assert {check.type for check in CHECKS if check.traits.libraries} == set(NEEDS) - {
        "regex"
    }  # which has another flavor, too


@pytest.mark.parametrize("kind", NEEDS)
def test_the_footer_has_the_versions_that_decide_the_verdicts(scored, installed, kind):
    params, names = NEEDS[kind]
    installed.update((name, f"9.{at}") for at, name in enumerate(names))
    check = {"type": kind, **params}
    known = {name: f"9.{at}" for at, name in enumerate(names) if name != "punkt_tab"}
    nested = {"type": "any_of", "checks": [check]}
    conditional = {**PLAIN, "when": {"check": check}}
    for spec in (check, nested, conditional):
        with warned_of(kind):
            scored(spec, PLAIN)
        assert known.items() <= read_provenance("rewards.parquet")["libraries"].items()
    with warned_of(kind):
        scored(check, out="parts/")
    assert known.items() <= read_provenance("parts")["libraries"].items()


def test_golds_of_rows_need_the_same_libraries(scored):
    scored({"type": "math", "value": {"column": "gold"}})
    assert [*read_provenance("rewards.parquet")["libraries"]] == MATH


def test_a_footer_without_such_checks_says_nothing(scored):
    scored(PLAIN)
    assert "libraries" not in read_provenance("rewards.parquet")


def test_to_read_versions_imports_nothing():
    program = (
        "import sys; from assay.checks.libraries import versions; "
        f"versions({[*MATH, 'nltk', 'langdetect', 'punkt_tab']}); "
        "print({'sympy', 'nltk', 'langdetect', 'math_verify', 'antlr4'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("is_imported", [False, True])
def test_the_data_of_punkt_have_a_digest(monkeypatch, tmp_path, is_imported):
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    if is_imported:
        monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [str(tmp_path)])
    else:
        monkeypatch.delitem(sys.modules, "nltk.data", raising=False)
        monkeypatch.setenv("NLTK_DATA", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
    assert versions(["punkt_tab"])["punkt_tab"] is None
    folder.mkdir(parents=True)
    digests = set()
    for text in ("a", "b"):
        (folder / "abbrev_types.txt").write_text(text)
        digests.add(versions(["punkt_tab"])["punkt_tab"])
    assert len(digests) == 2
    assert all(digest.startswith("sha256:") for digest in digests)


def test_nltk_looks_in_the_same_folders():
    """What is not asked of nltk, because its import takes long, is what nltk says."""
    program = (
        "import sys; from assay.checks import libraries; mine = libraries._nltk_folders(); import nltk.data; "
        "print(mine == libraries._nltk_folders())"
    )
    pytest.importorskip("nltk")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# ── what has not been tested ────────────────────────────────────────────────────────────────────────────────────────────


def test_untested_versions_are_a_warning_and_the_check_runs(scored, installed):
    installed["sympy"] = "9.9"
    check = {"type": "math", "value": "3"}
    with pytest.warns(assay.AssayWarning, match=r"math libraries not tested: sympy 9\.9;") as warned:
        frame = assay.score([{"completion": "6/2"}], {"checks": [check]})
    assert frame["reward"].to_list() == [1.0]
    assert len(warned) == 1
    with pytest.warns(assay.AssayWarning, match=r"math libraries not tested: sympy 9\.9;"):
        scored(check)


@pytest.mark.parametrize("antlr", ["4.9.3", "4.11.0", "4.13.2"])
def test_tested_versions_are_none(installed, antlr):
    installed["antlr4-python3-runtime"] = antlr
    assert assay.score([{"completion": "6/2"}], {"checks": [{"type": "math", "value": "3"}]})["reward"].to_list() == [1]


def test_any_version_will_do_of_a_library_without_tested_ones(installed):
    installed["langdetect"] = "0.1"
    assert untested({"langdetect": ()}) == []


# ── the same versions again ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", some(NEEDS))
def test_verify_asks_for_the_same_versions(scored, installed, kind):
    params, (name, *_) = NEEDS[kind]
    scored({"type": kind, **params}, PLAIN)
    assert assay.verify("rewards.parquet").intact
    then = importlib.metadata.version(name)
    installed[name] = "9.9"
    fact = f"rewards.parquet: was made with {name} {then}, this is 9.9."
    with pytest.raises(assay.InputError) as refused:
        assay.verify("rewards.parquet")
    assert refused.value.fact == fact
    assert refused.value.exit_code == 2
    found = assay.verify("rewards.parquet", any_version=True)
    assert found.intact
    assert found.notes == (f"it was made with {name} {then}, this is 9.9",)


def test_verify_asks_for_the_versions_of_a_folder(scored, installed):
    scored({"type": "language", "is": "en"}, out="parts/")
    assert assay.verify("parts").intact
    installed["langdetect"] = "9.9"
    with pytest.raises(assay.InputError, match=r"parts: was made with langdetect 1\..*, this is 9\.9"):
        assay.verify("parts")


def test_other_checks_do_not_ask(scored, installed):
    scored(PLAIN)
    installed["sympy"] = installed["langdetect"] = "9.9"
    assert assay.verify("rewards.parquet").intact


CHANGES = [
    ({"sympy": "1.14.0"}, "1.14.0", None),
    ({"sympy": "1.13.0"}, "1.14.0", "sympy 1.13.0, this is 1.14.0"),
    ({"sympy": None}, "1.14.0", "no sympy, this is 1.14.0"),
    ({"sympy": "1.14.0"}, None, "sympy 1.14.0, this is none"),
    ({"sympy": None}, None, None),
    *((recorded, "1.14.0", "an unknown version of sympy, this is 1.14.0") for recorded in ({}, None, ["sympy"])),
    ({"sympy": ["1.14.0"]}, "1.14.0", "sympy ['1.14.0'], this is 1.14.0"),
]


def test_what_is_not_as_it_was(installed):
    for recorded, here, clause in CHANGES:
        installed["sympy"] = here
        assert changed_versions(recorded, ["sympy"]) == ({} if clause is None else {"sympy": clause})


def test_reuse_runs_only_the_checks_again_that_other_versions_would_judge(scored, installed):
    step = {"id": "digit", "type": "equals", "value": "1", "on": [{"regex": r"\X", "flavor": "regex"}]}
    checks = [{"type": "language", "is": "en"}, {"type": "similarity", "value": "1"}, step, PLAIN]
    scored(*checks)
    installed["langdetect"] = installed["regex"] = "9.9"
    summary = scored(*checks, out="again.parquet", reuse="rewards.parquet")
    assert "2 of 4 checks reused from rewards.parquet" in summary.notes
    for check, library in (("language", "langdetect 1."), ("digit", "regex 2")):
        assert any(note.startswith(f"{check}: runs again: made with {library}") for note in summary.notes)
    footer = read_provenance("again.parquet")
    assert footer["reused"]["checks"] == ["similarity", "contains"]
    assert footer["libraries"]["langdetect"] == "9.9"


def test_a_folder_of_other_versions_is_not_continued(scored, installed):
    scored({"type": "language", "is": "en"}, out="parts/")
    before = Path("parts/_manifest.json").read_bytes()
    installed["langdetect"] = "9.9"
    with pytest.raises(assay.UsageError, match=r'library langdetect: "1\..*" then, "9\.9" now'):
        assay.score_file("rollouts.parquet", {"checks": [{"type": "language", "is": "en"}]}, "parts/")
    assert Path("parts/_manifest.json").read_bytes() == before


def test_a_package_that_was_missing_is_another_version(scored, installed, monkeypatch):
    scored({"type": "math", "value": "1"})
    monkeypatch.setitem(sys.modules, "math_verify", None)
    installed["math-verify"] = None
    with pytest.raises(assay.InputError, match=r"made with math-verify 0\.9\.0, this is none"):
        assay.verify("rewards.parquet")
