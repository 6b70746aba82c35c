# Every target makes its own environment from nothing; once it is there, that costs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One OpenBLAS/OpenMP thread per test worker: two workers share two cores.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=Agg
WORKERS ?= 2
# Cells of the league that are played at a time: CPU seconds count, so as many as cores are idle.
JOBS ?= 1

.PHONY: demo test check format lint types layers bench soundness mutation peers league recipes kills reproduction docs pictures load fuzz optimisation clean help

help:
	@echo "make demo    a map of rain: fit, scores beside simple models, certificate, report (in certgp-demo/)"
	@echo "make test    all tests"
	@echo "make check   what CI runs: format, lint, types, import layers, tests, docs' code blocks"
	@echo "make bench   accuracy on the benchmark data sets (needs CERTGP_DATA)"
	@echo "make peers   environments of the peers for benchmarks/peers.py, under .peers/ (about 6 GB)"
	@echo "make league  plays what the league lacks (hours; needs CERTGP_DATA), then docs/league.md and its pictures"
	@echo "make recipes engines over Ray and, where Java is, Spark against one process, under .peers/ (about 2 GB)"
	@echo "make kills   ten workers killed in the middle of a fit and of a prediction, and a lost scheduler"
	@echo "make soundness  every bound against the dense exact GP on 20,000 random problems"
	@echo "make mutation   weakened bounds, one per theorem, which the checks must notice"
	@echo "make reproduction  docs/reproduction.md and its figures from paper/results/"
	@echo "make load    1,000 requests over 20 connections to 'certgp serve', and how long they took"
	@echo "make fuzz    requests made from the OpenAPI document of 'certgp serve', right and wrong ones: no 5xx"
	@echo "make optimisation  a known function optimised with BoTorch and a surrogate on 5,000 points"
	@echo "make docs    build the documentation into site/"
	@echo "make pictures   the pictures of the gallery, from the code of its pages"
	@echo "make release build sdist and wheel, install the wheel in a clean environment, run the demo from it"

$(READY): pyproject.toml paper/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[plots,serve,onnx,botorch,docs,tests,lint]' --editable ./paper
	touch $@

demo: $(READY)
	$(BIN)/certgp demo --out certgp-demo

test: $(READY)
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 25

check: format lint types layers docs test

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/accuracy.py --json

# The peers need other versions of NumPy than certgp, and each other's: one environment each.
peers: $(READY) .peers/gpflow/.ready .peers/gpytorch/.ready .peers/gpboost/.ready .peers/trees/.ready

.peers/%/.ready: benchmarks/peers/requirements-%.txt
	test -x .peers/$*/bin/python || $(PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

league: peers
	$(BIN)/python benchmarks/league.py run --jobs $(JOBS)
	$(BIN)/python benchmarks/league.py page

# Neither is a dependency of anything here.
.peers/recipes/.ready: pyproject.toml
	test -x .peers/recipes/bin/python || $(PYTHON) -m venv .peers/recipes
	.peers/recipes/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . ray pyspark
	touch $@

recipes: .peers/recipes/.ready
	cd benchmarks/recipes && $(TEST_ENV) ../../.peers/recipes/bin/python ray_engine.py
	if command -v java; then cd benchmarks/recipes && $(TEST_ENV) ../../.peers/recipes/bin/python spark_engine.py; fi

kills: $(READY)
	$(TEST_ENV) $(BIN)/python benchmarks/kills.py --kills 10 --json

soundness: $(READY)
	$(TEST_ENV) PYTHONPATH=tests $(BIN)/python tests/theorems/soundness.py --problems 20000

mutation: $(READY)
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) tests/theorems/test_mutations.py

reproduction: $(READY)
	$(BIN)/python -m certgp_paper.page paper/results docs/reproduction.md docs/results

load: $(READY)
	$(BIN)/python benchmarks/serving.py

fuzz: $(READY) .peers/fuzz/.ready
	$(BIN)/python benchmarks/fuzz.py .peers/fuzz/bin/schemathesis

optimisation: $(READY)
	$(BIN)/python benchmarks/optimisation.py

# a warning is an error: links resolve, pages are in the navigation, docstrings are well-formed
docs: $(READY)
	$(BIN)/sphinx-build --quiet --fail-on-warning --jobs $(WORKERS) docs site

pictures: $(READY)
	$(TEST_ENV) $(BIN)/python scripts/draw_gallery.py

clean:
	rm -rf $(VENV) .peers site build certgp-demo

# Builds sdist and wheel, looks at what they hold, installs the wheel in a clean environment and runs the demo from it.
.PHONY: release
release: $(READY)
	PYTHON=$(CURDIR)/$(BIN)/python scripts/release.sh
