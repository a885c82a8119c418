"""What several test modules share: data that is not part of the project, and verifiers over it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPECS = sorted(path for path in (ROOT / "specs").glob("*/*") if path.suffix in {".json", ".yaml", ".toml"})
ON_ROW = ROOT / "specs" / "desk-agent"
DATA = ROOT.parent / "shared" / "data"
ALPACA = DATA / "alpaca_rollouts.parquet"

needs_alpaca = pytest.mark.skipif(not ALPACA.exists(), reason=f"the real rollouts are not there: {ALPACA}")
