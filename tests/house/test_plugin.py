"""A verifier class in a package of its own: installed into an environment, found through its entry point, by name."""

import json
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from cases import ROOT

PLUGIN = ROOT / "specs" / "plugin" / "assay-length-band"
ROWS = [{"completion": "x" * length} for length in (90, 120, 150, 151)]


pytestmark = pytest.mark.xdist_group("plugin")  # its environment is made once


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment that sees this one's packages, with the plug-in installed into it."""
    if find_spec("pip") is None or find_spec("hatchling") is None:
        pytest.skip("pip and hatchling are needed to install the plug-in: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("plugin")
    env = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    python = env / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT / "engine")}
    Path(site, "outer.pth").write_text("\n".join(sorted(seen)) + "\n")
    source = shutil.copytree(PLUGIN, folder / "source")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(python),
        "install",
        "--no-deps",
    ]
    done = subprocess.run(
        [*install, "--no-build-isolation", "--no-index", "--quiet", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "rollouts.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    return folder


def run(environment, *args):
    return subprocess.run(
        [environment / "env" / "bin" / "python", "-W", "error", *args],
        cwd=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_spec_finds_the_class_that_is_installed(environment):
    spec = str(PLUGIN / "length-band.yaml")
    done = run(environment, "-m", "assay", "score", "rollouts.jsonl", "--spec", spec, "--out", "-")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["reward"] for row in rows] == [1.0, 1.0, 1.0, 0.0]
    assert rows[3]["info/length-band"] == '{"chars_off":31}'
    assert rows[3]["feedback"] == 'length_band: {"chars_off":31}'


def test_it_is_not_loaded_before_a_spec_asks_for_it(environment):
    code = (
        "import sys, assay\n"
        "assert 'length_band' in assay.list_verifiers()\n"
        "assert 'assay_length_band' not in sys.modules\n"
        "assay.load_verifier({'kind': 'format_only'})\n"
        "assert 'assay_length_band' not in sys.modules\n"
        "assay.load_verifier({'kind': 'length_band'})\n"
        "assert 'assay_length_band' in sys.modules\n"
    )
    done = run(environment, "-c", code)
    assert done.returncode == 0, done.stderr


def test_its_twin_conforms_and_its_source_is_in_the_provenance(environment):
    code = (
        "import assay\n"
        "assay.testing.assert_verifier_conforms('length_band', params=[{}, {'target_len': 3, 'tolerance': 0}], cases=500)\n"
        "assay.score_file('rollouts.jsonl', {'kind': 'length_band'}, 'out.parquet')\n"
        "[code] = assay.read_provenance('out.parquet')['verifiers'][0]['code']\n"
        "print(code['module'], code['qualname'], len(code['sha256']))\n"
    )
    done = run(environment, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["assay_length_band", "LengthBandVerifier", "64"]


def test_a_plugin_that_cannot_be_loaded_is_named(environment):
    broken = environment / "broken"
    info = broken / "broken_plugin-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[assay.verifiers]\nshattered = broken_plugin:Shattered\n")
    (broken / "broken_plugin.py").write_text("raise ImportError('no such luck')\n")
    (environment / "broken.yaml").write_text("kind: shattered\n")
    code = f"import sys; sys.path.insert(0, {str(broken)!r}); from assay.cli.main import main; main()"
    done = run(environment, "-c", code, "score", "rollouts.jsonl", "--spec", "broken.yaml")
    assert done.returncode == 2
    said = "$.kind (line 1): the plug-in shattered = broken_plugin:Shattered of broken-plugin 2.0 cannot be loaded: ImportError: no such luck"
    assert said in done.stderr
    assert "Traceback" not in done.stderr
