"""promptfoo 0.123.1 itself, for tests/peers: what its assertions say of outputs."""

import json
import os
import subprocess
from itertools import islice
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE", f"{os.environ.get('TMPDIR', '/tmp')}/assay-bench"))  # noqa: S108
FOLDER = CACHE / "promptfoo-0.123"
RUNS = """
import fs from 'fs';
const {runAssertion, runAssertions} = (await import('promptfoo')).default.assertions;
const results = [];
for (const options of JSON.parse(fs.readFileSync(process.argv[1], 'utf8'))) {
  const run = options.assertion ? runAssertion : runAssertions;
  const {score, pass} = await run({test: {vars: {}}, prompt: '', ...options});
  results.push({score, pass});
}
fs.writeFileSync(process.argv[2], JSON.stringify(results));
process.exit(0);
"""

needs_promptfoo = pytest.mark.skipif(
    not (FOLDER / "node_modules" / "promptfoo").is_dir(), reason="needs promptfoo 0.123.1: make peers-test installs it"
)


def asserted(cases, folder):
    """Return ``score`` and ``pass`` for each case: options of ``runAssertion``, or of ``runAssertions`` without an assertion.

    Args:
        cases: Lists of cases by a name: promptfoo takes longer to start than for all of them.
        folder: A folder for the cases and promptfoo's settings.

    Returns:
        The lists of answers by the same names.
    """
    file, found = folder / "cases.json", folder / "answers.json"
    file.write_text(json.dumps([case for part in cases.values() for case in part]))
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_CONFIG_DIR": str(folder), "LOG_LEVEL": "error"}
    done = subprocess.run(
        [
            "node",
            "--input-type=module",
            "--eval",
            RUNS,
            file,
            found,
        ],  # a file here would be that of other processes, too
        cwd=FOLDER,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = iter(json.loads(found.read_text()))
    return {name: [*islice(answers, len(part))] for name, part in cases.items()}
