# Two commands on a fresh clone: `make demo` and `make test`. See CONTRIBUTING.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Compiled modules are kept, though an image may say otherwise: each process that a test or a
# benchmark starts would compile all of ours again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup setup-dev browser r demo test test-fast coverage package-test fuzz fuzz-parsers mutants faults canaries lint bench calibrate papers docs requirements licences audit release-files clean

# A stamp holds the digest of what was installed, so that a second run is quick and a changed
# requirements file is noticed.
setup: $(VENV)/core.stamp
setup-dev: $(VENV)/dev.stamp

$(VENV)/core.stamp: requirements/core.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --no-deps --require-hashes -r requirements/core.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/core.stamp
	$(PIP) install --no-deps --require-hashes -r requirements/dev.txt
	touch $@

# The pages are tested in a real browser: Debian's, where there is none yet and we may install it.
# Elsewhere those tests skip by name; SHOAL_CHROMIUM names a browser that lies in another place.
browser:
	@command -v chromium >/dev/null || test -n "$$SHOAL_CHROMIUM" || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& apt-get update -qq >/dev/null && apt-get install -qq -y chromium >/dev/null; } \
		|| echo "no chromium, and it cannot be installed here: the browser tests will be skipped"

# The public report has lines of R; they are run where R is, or may be installed.
r:
	@Rscript -e 'library(jsonlite)' >/dev/null 2>&1 || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& apt-get update -qq >/dev/null \
		&& apt-get install -qq -y --no-install-recommends r-base-core r-cran-jsonlite >/dev/null; } \
		|| echo "no R, and it cannot be installed here: its test will be skipped"

demo: setup
	$(BIN)/shoal demo --out demo

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# On as many processes as there are cores; PYTEST_ARGS="-n 0" for one, as a debugger needs it. Each
# takes whole files, so that what their tests share, such as a session of Spark, is started once.
PYTEST_ARGS ?= -n auto --dist loadfile --no-loadscope-reorder
# Kernels are compiled once, for all processes; a test looks whether that left any out.
WARM := $(VENV)/kernels
test: lint browser r docs
	rm -rf $(WARM) $(WARM)-of-tests
	NUMBA_CACHE_DIR=$(CURDIR)/$(WARM) $(BIN)/shoal warmup
	cp -r $(WARM) $(WARM)-of-tests
	SHOAL_WARM=$(CURDIR)/$(WARM) NUMBA_CACHE_DIR=$(CURDIR)/$(WARM)-of-tests $(BIN)/python -m pytest $(PYTEST_ARGS)

# Between two edits: at most 90 CPU-seconds where kernels are compiled, in one process; no browser, no
# Spark, no reference tables. What is left out is in tests/conftest.py; the end says what it took.
FAST := -n 0 -m "not slow and not browser and not spark and not data"
test-fast: setup-dev
	$(BIN)/python -m pytest $(FAST)

# Of the same tests. The floor is in pyproject.toml, with what is not counted and why.
coverage: setup-dev
	$(BIN)/python -m pytest $(FAST) --cov --cov-report=term:skip-covered

# Wheel and sdist, each installed with the core's pinned packages alone, and the demonstration.
package-test: setup-dev
	$(BIN)/python tests/package/run.py

# The same suite on new examples, and more of them: for a quiet evening, not for a landing.
fuzz: setup-dev
	SHOAL_EXAMPLES=fuzz $(BIN)/python -m pytest $(PYTEST_ARGS)

# Attacks on ourselves; docs/research/attacks.md has the figures. Each ends with 1 if something got through.
# Privacy bugs put into a copy of the source, each of which a test must catch.
MUTANTS_ARGS ?= --jobs 2
mutants: setup-dev
	$(BIN)/python tests/mutants/run.py $(MUTANTS_ARGS)

# SIGKILL and a full disk at every file-changing call; by strace where it is there.
faults: setup-dev
	$(BIN)/python tests/faults/run.py $(FAULTS_ARGS)

# Marked tables through the whole command; CANARIES_ARGS="--runs 500" for a long evening.
canaries: setup-dev
	$(BIN)/python -m tests.canaries.run $(CANARIES_ARGS)

# Mutated files for every parser and the whole command; prints a table, and keeps what it finds.
FUZZ_ARGS ?= --inputs 100000
fuzz-parsers: setup-dev
	$(BIN)/python tests/fuzz/harness.py $(FUZZ_ARGS)

# One table: CPU seconds beside those of plain work on the same machine, and what has become slower
# than bench/results.json says. BENCH_ARGS="--keep" writes that file, "evaluate" takes some lines.
bench: setup-dev
	$(BIN)/python bench/run.py $(BENCH_ARGS)

# Time and memory of the methods: the constants of their cost models.
# CALIBRATE_ARGS="--write" puts them into the source, "--check" compares forecasts with runs.
calibrate: setup-dev
	$(BIN)/python bench/calibrate.py $(CALIBRATE_ARGS)

# With the reference tables (SHOAL_DATA or ../shared/data), else on the shipped sample.
papers: setup-dev
	$(BIN)/python papers/sanchez2014.py
	$(BIN)/python papers/soriacomas2017.py
	$(BIN)/python papers/iftikhar2019.py
	$(BIN)/python papers/cormode2013.py
	$(BIN)/python papers/domingoferrer2015_pram.py
	$(BIN)/python papers/domingoferrer2015.py
	$(BIN)/python papers/tallies.py

docs: setup-dev
	$(BIN)/sphinx-build -W --keep-going -q -b html -d site/.cache docs site

# For maintainers, after a change of dependencies; needs uv on the path. The lists are complete: pip
# installs them without resolving anything, which a newer release on the index could upset.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links
requirements:
	$(COMPILE) pyproject.toml requirements/build.in -o requirements/core.txt
	$(COMPILE) --all-extras -c requirements/core.txt pyproject.toml requirements/build.in \
		-o requirements/dev.txt
	$(COMPILE) -c requirements/core.txt requirements/release.in -o requirements/release.txt

# The licences of all that is pinned, as the installed packages state them.
licences: setup-dev
	$(BIN)/python requirements/licences.py

# Tools of the release process, apart from what is released.
RELEASE := .release
RELEASE_PIP := $(RELEASE)/bin/python -m pip --disable-pip-version-check --quiet
$(RELEASE)/tools.stamp: requirements/release.txt
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE_PIP) install --no-deps --require-hashes -r requirements/release.txt
	touch $@

# Asks a vulnerability service about every pinned package. --strict: a package that the service does
# not answer for is a failure, not a pass.
audit: $(RELEASE)/tools.stamp
	@for file in core dev release; do \
		$(RELEASE)/bin/pip-audit --strict --require-hashes --disable-pip \
			-r requirements/$$file.txt || { \
			echo "requirements/$$file.txt is NOT audited: a package has a known fault, or the" \
				"service could not be asked; see the line above."; exit 1; }; \
	done

# What is published with a version: sdist and wheel, bills of materials (CycloneDX 1.6) of the core
# and of all extras and tools, the licences, and the digests of all of it.
BOM := $(RELEASE)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
	--spec-version 1.6 --output-reproducible --output-format JSON
release-files: licences $(RELEASE)/tools.stamp
	rm -rf dist $(RELEASE)/core
	$(RELEASE)/bin/hatchling build -d dist -t sdist -t wheel
	$(PYTHON) -m venv --without-pip $(RELEASE)/core
	$(RELEASE_PIP) --python $(RELEASE)/core/bin/python install --no-deps --require-hashes -r requirements/core.txt
	$(BOM) -o dist/shoal-core.cdx.json $(RELEASE)/core/bin/python
	$(BOM) -o dist/shoal-all.cdx.json $(BIN)/python
	cp requirements/LICENCES.md dist/
	cd dist && sha256sum * > SHA256SUMS

clean:
	rm -rf $(VENV) $(RELEASE) dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis site
