# Everything a fresh machine needs is Python ≥ 3.11, make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := specs/refund-quality

PROMPTFOO := promptfoo@0.121.20
CACHE := $(or $(ASSAY_BENCH_CACHE),$(or $(TMPDIR),/tmp)/assay-bench)

.PHONY: help demo test test-all fuzz lint docs bench peers promptfoo readme golden clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## score the sample rollouts in specs/, print the summary and where the rewards are
	$(BIN)/assay score $(DEMO)/rollouts.jsonl --tasks $(DEMO)/tasks.jsonl --spec $(DEMO)/refund-quality.json --out rewards.parquet --overwrite

test: $(VENV)/.installed  ## run the whole suite
	$(BIN)/python -m pytest --numprocesses 3 --dist loadgroup --benchmark-disable

test-all: $(VENV)/.installed  ## run the whole suite at its full sizes, which takes some minutes more
	ASSAY_LONG=1 $(BIN)/python -m pytest --numprocesses 3 --dist loadgroup --benchmark-disable

fuzz: $(VENV)/.installed  ## what is drawn by a seed, at length: files, rubrics, command lines, thresholds; for hours
	ASSAY_FUZZ=20000 $(BIN)/python -m pytest tests/test_fuzz_loader.py
	ASSAY_FUZZ=2000 $(BIN)/python -m pytest tests/test_fuzz_rubric.py
	ASSAY_FUZZ_COMMANDS=2000 $(BIN)/python -m pytest tests/test_fuzz_commands.py
	ASSAY_FUZZ_THRESHOLDS=2000 $(BIN)/python -m pytest tests/test_thresholds.py

lint: $(VENV)/.installed  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed  ## build the site from README.md and docs/ in build/site, with strict links
	$(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.installed  ## run the benchmarks: equal results first, then one table, also in benchmarks/results.md
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-quiet -p no:randomly

peers: $(VENV)/.installed  ## install what the benchmarks compare with
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'

promptfoo:  ## install promptfoo, by npm, outside of this folder
	npm install --prefix $(CACHE)/promptfoo --omit=optional --no-audit --no-fund $(PROMPTFOO)

readme: $(VENV)/.installed  ## write the generated parts and the shown output of README.md and docs/ anew
	$(BIN)/python tests/readme.py

golden: $(VENV)/.installed  ## compute the golden results in specs/ anew, by the row loop
	$(BIN)/python tests/goldens.py

clean:  ## remove what make made
	rm -rf $(VENV) build rewards.parquet
