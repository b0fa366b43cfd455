# Everything a developer runs. `make run` and `make test` set themselves up on a machine that has
# Python 3.11 or newer. A C compiler makes the hot path and the record decoder fast; without one the
# same sources are interpreted, and the broker's log says so.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs
COMPILED := build/compiled
# Commands, documents, clients, settings and the benchmark are the same, compiled or not; brokers that
# run are tested as users run them.
NOT_COMPILED := bench_* cli_* client_* configs_* container_* docstrings_* first_minutes_* language_pages_* metrics_* own_log_* quota_* refusal_* storage_command_* testing_*
OF_SOURCES := tests/unit tests/golden $(wildcard $(NOT_COMPILED:%=tests/integration/%test.py)) tests/spark tests/deploy $(wildcard tests/*_test.py)
OF_COMPILED := tests/unit/wire tests/unit/storage tests/unit/broker tests/simulated tests/integration $(NOT_COMPILED:%=--ignore-glob='*/integration/%')
SEED ?= 1
ARGS ?=

.PHONY: help setup bytecode compiled demo run test check fmt lint types imports unit ratchet ratchet-compiled sim bench bench-spark spark-faults pipeline-faults spark-cluster spark-declarative compat e2e deploy plugin docs planted faults lock clean try readme
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) ## make the environment in .venv

$(STAMP): requirements.lock pyproject.toml setup.py $(wildcard src/runnel/native/*.pyx src/runnel/native/*.pxd)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Runnel needs Python 3.11 or newer; set PYTHON=/path/to/it"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (about a minute the first time)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $(STAMP)

# What running takes, and nothing to build or test with: a dozen packages, seconds instead of minutes.
$(RUNS): requirements-run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Runnel needs Python 3.11 or newer; set PYTHON=/path/to/it"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-run.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $(RUNS)

# Some machines forbid Python to write bytecode; compiling 200 modules at each start takes 0.2 s.
bytecode: $(STAMP)
	@$(BIN)/python -m compileall -q src/runnel

# The package as a wheel has it. Apart from the sources, so that an edit is never shadowed.
compiled: $(COMPILED)/.built

$(COMPILED)/.built: $(STAMP) setup.py $(wildcard tools/hot_*) tools/client_types.py $(shell find src/runnel -name '*.py')
	@echo "compiling the hot path into $(COMPILED) (about a minute)"
	@rm -rf $(COMPILED)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps --target $(COMPILED) .
	@$(BIN)/python -m compileall -q $(COMPILED)/runnel
	@touch $@

try: $(if $(wildcard $(STAMP)),$(STAMP),$(RUNS)) ## a broker at once, without compiling; else as `make run`
	@exec env PYTHONPATH=src $(BIN)/python -m runnel serve $(ARGS)

demo: $(STAMP) ## a shop's day: two pipelines, SQL, a picture, in under two minutes (ARGS=--fast)
	PYTHONPATH=src $(BIN)/python examples/demo $(ARGS)

run: compiled ## a broker on localhost:9092, data in ./runnel-data (ARGS="--port 9093" ...)
	@exec env PYTHONPATH=$(COMPILED) $(BIN)/python -m runnel serve $(ARGS)

test: $(STAMP) compiled ## every test that needs nothing but Python: of the sources, then compiled
	$(BIN)/python -m pytest -n 2 --dist worksteal $(OF_SOURCES) $(ARGS)
	PYTHONPATH=$(COMPILED) $(BIN)/python -m pytest -n 2 $(OF_COMPILED) $(ARGS)
	$(MAKE) -s ratchet-compiled ARGS=

check: lint types imports unit ratchet ## what must be clean before a commit

fmt: $(STAMP) ## format and sort imports
	$(BIN)/ruff format -q .
	$(BIN)/ruff check -q --fix .

lint: $(STAMP)
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 tests/unit tests/simulated tests/tidy_test.py

ratchet: bytecode ## instructions of produce and fetch against the baseline (ARGS=--accept)
	$(BIN)/python -m bench.ratchet.run $(ARGS)

ratchet-compiled: compiled ## the same of what users run
	PYTHONPATH=$(COMPILED) $(BIN)/python -m bench.ratchet.run $(ARGS)

sim: $(STAMP) ## repeat one simulated run exactly: make sim SEED=123
	$(BIN)/python -m tests.simulated.run --seed $(SEED) $(ARGS)

planted: $(STAMP) ## plant eight bugs in copies of the tree; passes if the tests find each
	$(BIN)/python -m tests.planted.run $(ARGS)

faults: compiled ## the long fault suites: 1000 seeds, kill -9, exactly-once copy, churn, planted bugs
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.simulated.run --seeds 1000
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.integration.exactly_once --runs 10
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.integration.churn --protocol classic
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.integration.churn --protocol consumer
	PYTHONPATH=$(COMPILED) KILL_CYCLES=20 $(BIN)/python -m pytest -q -s tests/integration/kill_test.py
	$(BIN)/python -m pytest -q -s tests/unit/storage/torn_tail_test.py
	$(BIN)/python -m tests.planted.run

spark-faults: compiled ## Spark, exactly once: kill -9 of each victim at each step, then SEEDS more
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.spark_faults.topics --seeds $(or $(SEEDS),20) $(ARGS)
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.spark_faults.tables --seeds $(or $(SEEDS),20)

pipeline-faults: compiled ## every kind of pipeline killed in the middle, then compared (ARGS="--only table --seeds 3")
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.pipeline_faults.run $(ARGS)

bench: compiled ## Runnel beside Apache Kafka (QUICK=1, ROUNDS=3, ONLY=fetch; needs java and mvn)
	PYTHONPATH=$(COMPILED) $(BIN)/python -m bench.run $(if $(filter-out 0,$(QUICK)),--quick) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only "$(ONLY)") $(ARGS)

bench-spark: compiled ## Spark's own Kafka connector and Runnel's source (QUICK=1, ONLY=local; needs mvn)
	PYTHONPATH=$(COMPILED) $(BIN)/python -m bench.spark.run $(if $(filter-out 0,$(QUICK)),--quick) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only "$(ONLY)") $(ARGS)

compat: $(STAMP) ## every client: Java, Scala, Python, Go, Node, Rust, C (ARGS="--only matrix:franz-go")
	$(BIN)/python -m pytest -q -n 2 tests/compat/matrix_test.py
	tests/compat/run.sh $(ARGS)
	$(if $(ARGS),,$(MAKE) -s plugin)

spark-cluster: $(STAMP) ## source, sinks and tables on a Spark standalone cluster: a master, two workers
	$(BIN)/python -m tests.compat.spark.cluster_suite runnel

spark-declarative: $(STAMP) ## a Spark Declarative Pipelines project, run twice, with and without Java
	$(BIN)/python -m tests.spark_declarative
	$(BIN)/python -m tests.spark_declarative --without-java

docs: $(STAMP) ## the documentation as a site in build/site (ARGS=serve shows it at localhost:8000)
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=src $(BIN)/mkdocs $(or $(ARGS),build --strict)
	@$(if $(ARGS),,echo "open build/site/index.html")

e2e: $(STAMP) ## the demo, with and without Java; a real Prometheus (Debian's, downloaded once)
	$(BIN)/python -m pytest -q tests/e2e $(ARGS)

deploy: $(STAMP) ## the image's own steps, run without Docker (root on Linux), its entry point probed
	$(BIN)/python -m pytest -q tests/deploy
	$(BIN)/python -m tests.deploy.run $(ARGS)

readme: $(STAMP) ## the README's own blocks in a fresh clone: with downloads, then with what they left
	$(BIN)/python -m tests.readme.run $(ARGS)

plugin: $(STAMP) ## the pytest plugin as users get it: a wheel in an environment of its own
	$(BIN)/python -m tests.plugin.run $(ARGS)

lock: ## choose newer versions of all dependencies
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url -o requirements.lock pyproject.toml
	echo 'setuptools>=77' | $(BIN)/uv pip compile -q --universal --python-version 3.11 --extra client \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url -c requirements.lock \
	  -o requirements-run.lock pyproject.toml -

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist src/*.egg-info src/runnel/native/*.so src/runnel/native/*.c
