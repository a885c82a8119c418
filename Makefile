# Everything a fresh machine needs is Python ≥ 3.11, make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

PROMPTFOO := promptfoo@0.121.20
YAML_LANGUAGE_SERVER := yaml-language-server@2.0.0
CACHE := $(or $(ASSAY_BENCH_CACHE),$(or $(TMPDIR),/tmp)/assay-bench)

.PHONY: help demo specs test test-all fuzz lint docs bench compare ablation weight mutants peers peers-test promptfoo yaml-language-server dist kernel-dist readme golden clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# uv, where it is there, takes 7 s for what takes pip 30 s
UV := $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)

$(VENV)/.user: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(if $(UV),$(UV) venv --quiet --seed --allow-existing --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))
	$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q engine/assay  # else the first run compiles, and each where nothing may be written
	@touch $@

# Scoring takes about half the time with it, and gives the same without it. Only changed sources try again after a failure.
KERNEL := engine/kernel
$(VENV)/.kernel: $(VENV)/.user $(KERNEL)/pyproject.toml $(KERNEL)/hatch_build.py $(wildcard $(KERNEL)/native/*)
	@$(INSTALL) --no-deps --editable ./$(KERNEL) >$@.log 2>&1 || \
		echo "no kernel: $$({ grep -E 'No matching|RuntimeError|ziglang' $@.log || echo 'see $@.log'; } | tail -n 1 | sed -E 's/^[^A-Za-z]*(ERROR: )?//' | cut -c 1-160); scoring takes about twice as long"
	@touch $@

$(VENV)/.installed: $(VENV)/.user
	$(INSTALL) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.user $(VENV)/.kernel  ## install what a user needs, score the sample rollouts in specs/, and say what to try next
	$(BIN)/assay demo --overwrite

specs: $(VENV)/.installed  ## run the tests of the sample specs, and see that they notice four of five changes
	$(BIN)/assay test specs/*/*.yaml specs/*/*.json specs/*/*.toml --mutants --min-score 80%

test: $(VENV)/.installed $(VENV)/.kernel  ## run the whole suite
	$(BIN)/python -m pytest --numprocesses 3 --dist loadgroup

test-all: $(VENV)/.installed $(VENV)/.kernel  ## run the whole suite at its full sizes, which takes some minutes more
	ASSAY_LONG=1 $(BIN)/python -m pytest --numprocesses 3 --dist loadgroup

fuzz: $(VENV)/.installed $(VENV)/.kernel  ## what is drawn by a seed, at length: files, footers, rubrics, command lines, types of columns, formats, thresholds, other weights, odd results, texts for the kernel; for hours
	ASSAY_FUZZ_LOADER=20000 ASSAY_FUZZ_RUBRIC=2000 ASSAY_FUZZ_NEIGHBOURS=100000 ASSAY_FUZZ_FOOTERS=10000 ASSAY_FUZZ_COMMANDS=2000 \
	ASSAY_FUZZ_TYPES=20000 ASSAY_FUZZ_FORMATS=20000 ASSAY_FUZZ_TABLES=20000 ASSAY_FUZZ_WHATIFS=3000 ASSAY_FUZZ_INSIGHT=5000 \
	$(BIN)/python -m pytest tests/promises/test_fuzz.py
	ASSAY_FUZZ_THRESHOLDS=2000 $(BIN)/python -m pytest tests/promises/test_thresholds.py
	ASSAY_FUZZ_RESULTS=20000 $(BIN)/python -m pytest tests/promises/test_damaged_results.py
	ASSAY_FUZZ_OUTCOMES=5000 $(BIN)/python -m pytest tests/insight/test_outcomes_drawn.py
	ASSAY_FUZZ_KERNEL=1000000 $(BIN)/python -m pytest tests/kernel/test_hostile.py

weight: $(VENV)/.installed  ## count lines, functions, names and what a small run enters; with SUITE=1 run the suite, too, for its processor time
	@$(BIN)/python tests/house/weight.py $(if $(SUITE),--suite)

mutants: $(VENV)/.installed  ## change the engine in fifty drawn places, one by one, and see whether the suite notices; an hour
	@$(BIN)/python tests/house/mutants.py

lint: $(VENV)/.installed  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed  ## build the site from README.md and docs/ in build/site, with strict links; where Chromium is, see that no screen cuts a page
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	ASSAY_SITE=build/site $(BIN)/python -m pytest --quiet tests/peers/test_site.py $(SITE_TESTS)

bench: $(VENV)/.installed  ## run the benchmarks: equal results first, then one table, whose lines replace those in benchmarks/measured.md
	$(if $(filter ablation,$(MAKECMDGOALS)),$(BIN)/python benchmarks/ablation.py,$(BIN)/python -m pytest --quiet -p no:randomly \
		$(if $(filter compare,$(MAKECMDGOALS)),benchmarks/bench_throughput.py --benchmark-compare --benchmark-compare-fail=min:50%,benchmarks --benchmark-autosave))

compare ablation: bench  ## make bench compare: fail where a check type, step or function takes 1.5 times as long as in the last run kept; make bench ablation: switch off each threshold and second implementation, one by one

peers: $(VENV)/.installed  ## install what the benchmarks compare with
	$(INSTALL) --editable '.[dev,bench]'

# a folder for each, because their versions of torch, numpy and ray exclude each other's
PEERS := $(CACHE)/peers
PEER_TESTS := pytest pytest-randomly pytest-xdist hypothesis
TRAINERS := trl==1.16.0 datasets aiohttp
VERL := verl==0.9.1 ray
WITHOUT_DEPENDENCIES := openrlhf==0.11.2 skyrl-gym==0.4.0
# of LLaMA-Factory and Axolotl only what their loaders of data import
LLAMA_FACTORY := torch datasets==4.0.0 transformers==5.6.0 peft==0.18.1 accelerate==1.11.0 trl==0.24.0 omegaconf
AXOLOTL := torch datasets==4.8.4 transformers==5.16.1 peft==0.20.0 accelerate==1.13.0 trl==1.9.0 addict colorama numba posthog
INSPECT := inspect_ai==0.3.285
OPTIMISERS := gepa==0.1.4 dspy==3.4.1 $(INSPECT)
# lighteval 0.13.0 hashes text, which later versions of xxhash refuse
EVALUATORS := $(INSPECT) lm-eval==0.4.13 lighteval==0.13.0 evaluate==0.4.6 datasets==5.2.0 'xxhash<3.6'

CALLERS := mlflow==3.17.2 langsmith==0.15.0 langfuse==5.0.4 braintrust==0.47.0 pydantic-evals==2.62.0
# scoring functions beside Assay's graders: of evaluators and trainers only the files that have them, and nltk's data for sentences
GRADERS := $(INSPECT) rouge_score==0.1.2 sacrebleu==2.6.0 numpy==2.4.6 requests scipy immutabledict
GRADERS_ALONE := lm_eval==0.4.13 trl==1.16.0 verl==0.9.1 crfm-helm==0.5.16 bfcl-eval==2026.3.23 nvidia-simple-evals==26.3 \
	transformers==4.57.6 llama-index-core==0.14.25
OTHER_CALLERS := opik==2.2.122 openenv==0.10.0
# refuses the release of click that openenv wants
DEEPEVAL := deepeval==4.3.1

# evals without TensorFlow, web browsers and the like, which only some of its own evals import
OPENAI_EVALS := backoff blobfile lz4 openai requests tiktoken tqdm zstandard

# what promptfoo keeps its results in: a build for each platform, which is left out with the other optional packages
DATABASE := "const p = process; const name = '@libsql/' + p.platform + '-' + p.arch + (p.platform === 'linux' ? '-gnu' : ''); name + '@' + require('./node_modules/libsql/package.json').optionalDependencies[name]"

# pip of Python 3.11 finds no versions that go together where a later one does
define PEER
	test -d $(PEERS)/$(1) || $(PYTHON) -m venv --upgrade-deps $(PEERS)/$(1)
	$(if $(UV),$(UV) pip install --quiet --python $(PEERS)/$(1)/bin/python,$(PEERS)/$(1)/bin/python -m pip install --quiet --disable-pip-version-check)
endef

# a folder for each version of antlr, by which the verdicts of math-verify differ
define GRADERS_WITH
	$(call PEER,graders-$(1)) --editable '.[math,ifeval]' $(PEER_TESTS) $(GRADERS) antlr4-python3-runtime==$(1)
	$(call PEER,graders-$(1)) --no-deps $(GRADERS_ALONE)
endef

peers-test: promptfoo yaml-language-server  ## install the trainers, evaluators and editors' server, each outside of this folder, and run them with rewards of Assay; some minutes
	$(call PEER,trl) --editable '.[serve]' $(PEER_TESTS) $(TRAINERS)
	$(call PEER,verl) --editable '.[serve]' $(PEER_TESTS) $(VERL)
	$(call PEER,verl) --no-deps $(WITHOUT_DEPENDENCIES)
	$(call PEER,llama-factory) --editable . $(PEER_TESTS) $(LLAMA_FACTORY)
	$(call PEER,llama-factory) --no-deps llamafactory==0.9.5
	$(call PEER,axolotl) --editable . $(PEER_TESTS) $(AXOLOTL)
	$(call PEER,axolotl) --no-deps axolotl==0.19.0
	$(PEERS)/llama-factory/bin/python -m pytest tests/peers/test_training_set_loaders.py
	$(PEERS)/axolotl/bin/python -m pytest tests/peers/test_training_set_loaders.py
	ASSAY_LONG=1 $(PEERS)/trl/bin/python -m pytest tests/peers/test_trl.py tests/peers/test_training_sets.py tests/peers/test_worker_processes_of_trainers.py tests/adapters
	ASSAY_LONG=1 $(PEERS)/verl/bin/python -m pytest tests/peers/test_verl.py tests/peers/test_openrlhf.py tests/peers/test_skyrl_gym.py \
		tests/peers/test_peer_advantages.py tests/peers/test_training_set_loaders.py \
		tests/peers/test_worker_processes_of_trainers.py -k 'not loader and not map'
	$(call PEER,optimisers) --editable . $(PEER_TESTS) $(OPTIMISERS)
	$(call PEER,evaluators) --editable . $(PEER_TESTS) $(EVALUATORS)
	$(call PEER,evals) --editable . $(PEER_TESTS) $(OPENAI_EVALS)
	$(call PEER,evals) --no-deps evals==3.0.1.post1
	$(call PEER,verifiers) --editable . $(PEER_TESTS) verifiers==0.4.0
	$(call PEER,verifiers-0.1) --editable . $(PEER_TESTS) verifiers==0.1.14
	npm install --prefix $(CACHE)/promptfoo --omit=optional --no-audit --no-fund "$$(cd $(CACHE)/promptfoo && node -p $(DATABASE))"
	$(PEERS)/optimisers/bin/python -m pytest tests/peers/test_gepa.py tests/peers/test_dspy.py tests/peers/test_inspect.py tests/peers/test_promptfoo.py \
		tests/peers/test_editors.py
	$(PEERS)/evaluators/bin/python -m pytest tests/peers/test_lm_eval.py tests/peers/test_lighteval.py tests/peers/test_evaluate.py
	$(PEERS)/evals/bin/python -m pytest tests/peers/test_evals.py
	$(call PEER,callers) --editable . $(PEER_TESTS) $(CALLERS)
	$(call PEER,other-callers) --editable . $(PEER_TESTS) $(OTHER_CALLERS)
	$(call PEER,deepeval) --editable . $(PEER_TESTS) $(DEEPEVAL)
	$(PEERS)/callers/bin/python -m pytest tests/peers/test_row.py
	$(PEERS)/other-callers/bin/python -m pytest -p no:asyncio tests/peers/test_row.py
	$(PEERS)/deepeval/bin/python -m pytest -p no:asyncio tests/peers/test_row.py
	$(PEERS)/verifiers/bin/python -m pytest tests/peers/test_peer_verifiers.py
	$(PEERS)/verifiers-0.1/bin/python -m pytest tests/peers/test_peer_verifiers.py

	npm install --prefix $(CACHE)/promptfoo-0.123 --omit=optional --no-audit --no-fund promptfoo@0.123.1
	$(call GRADERS_WITH,4.11.0)
	$(call GRADERS_WITH,4.9.3)
	$(call GRADERS_WITH,4.13.2)
	ASSAY_LONG=1 NLTK_DATA="$$(echo $(PEERS)/graders-4.11.0/lib/python3*/site-packages/llama_index/core/_static/nltk_cache)" \
		$(PEERS)/graders-4.11.0/bin/python -m pytest tests/peers/test_graders.py tests/peers/test_promptfoo_graders.py tests/peers/test_from_other_tools.py
	ASSAY_LONG=1 $(PEERS)/graders-4.9.3/bin/python -m pytest tests/peers/test_graders.py -k 'math or accuracy or cosine or len'
	ASSAY_LONG=1 $(PEERS)/graders-4.13.2/bin/python -m pytest tests/peers/test_graders.py -k 'math or accuracy or cosine or len'
	ASSAY_LONG=1 $(PEERS)/evals/bin/python -m pytest tests/peers/test_graders.py -k openai
	ASSAY_LONG=1 $(PEERS)/evaluators/bin/python -m pytest tests/peers/test_graders.py -k lighteval

promptfoo:  ## install promptfoo, by npm, outside of this folder
	npm install --prefix $(CACHE)/promptfoo --omit=optional --no-audit --no-fund $(PROMPTFOO)

dist:  ## build the wheel and the sdist in dist/, and check them
	rm -rf dist
	$(call PEER,dist) build twine check-wheel-contents
	$(PEERS)/dist/bin/python -m build --outdir dist .
	$(PEERS)/dist/bin/twine check --strict dist/*
	$(PEERS)/dist/bin/check-wheel-contents dist/*.whl

kernel-dist: dist  ## build the kernel's wheels for all platforms and its sdist in dist/kernel, and check them; each wheel has to run on its platform before it is published
	for target in $$(sed -n 's/^    "\([^"]*\)": (".*/\1/p' $(KERNEL)/hatch_build.py); do \
		ASSAY_BUILD_TARGET=$$target $(PEERS)/dist/bin/python -m build --wheel --outdir dist/kernel $(KERNEL) || exit 1; done
	$(PEERS)/dist/bin/python -m build --sdist --outdir dist/kernel $(KERNEL)
	$(PEERS)/dist/bin/twine check --strict dist/kernel/*

yaml-language-server:  ## install what editors ask about YAML, by npm, outside of this folder
	npm install --prefix $(CACHE)/yaml-language-server --no-audit --no-fund $(YAML_LANGUAGE_SERVER)

readme: $(VENV)/.installed  ## write the generated parts and the shown output of README.md and docs/ anew
	$(BIN)/python tests/helpers/readme.py

golden: $(VENV)/.installed  ## compute the golden results in specs/ anew, by the row loop
	$(BIN)/python tests/helpers/goldens.py

clean:  ## remove what make made
	rm -rf $(VENV) build dist rewards.parquet rewards.html
