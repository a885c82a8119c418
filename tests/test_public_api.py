"""What the package offers, and that it is what it says."""

import importlib
import pkgutil
import subprocess
import sys
import typing

import assay

PUBLIC = (
    *(
        "CHECKS",
        "AssayError",
        "AssayWarning",
        "Check",
        "CheckSpec",
        "ColumnsError",
        "Example",
        "InputError",
        "OutputError",
        "Params",
        "Plan",
    ),
    *(
        "Row",
        "SpecError",
        "Summary",
        "TooManyErrors",
        "UsageError",
        "VerifierSpec",
        "__version__",
        "compile",
        "json_schema",
        "load_verifier",
    ),
    *("fns", "VerificationResult", "Verifier", "get_verifier", "list_verifiers", "register_verifier"),
    *("Parser", "Rubric", "RubricGroup", "ThinkParser", "XMLParser", "get_text_content"),
    *("Environment", "MultiTurnEnv", "SingleTurnEnv"),
    *("ChatMessage", "GenerateInputs", "GenerateMetadata", "GenerateOutputs", "Info", "Messages", "ProcessedOutputs"),
    *("RewardFunc", "RolloutScore", "RolloutScores", "SamplingArgs", "State"),
    *("extract_boxed_answer", "extract_hash_answer"),
    *("read_provenance", "scan", "score", "score_file", "testing", "text"),
)


def test_the_public_names():
    assert sorted(assay.__all__) == sorted(PUBLIC)
    assert all(getattr(assay, name, None) is not None for name in PUBLIC)


def test_every_module_exports_what_it_says():
    for found in pkgutil.walk_packages(assay.__path__, "assay."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        names = getattr(module, "__all__", [])
        assert all(hasattr(module, name) for name in names), found.name
        assert len(names) == len(set(names)), found.name


def test_public_things_are_documented():
    for name in PUBLIC:
        thing = getattr(assay, name)
        if callable(thing) and not isinstance(thing, tuple) and typing.get_origin(thing) is None:  # an alias has none
            assert (thing.__doc__ or "").strip(), name


def test_importing_reads_nothing_and_starts_nothing():
    code = "import assay, sys, threading; assert threading.active_count() == 1; assert not {'assay.environment', 'datasets', 'openai'} & set(sys.modules); print('ok')"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"
