# Every target sets up what it needs: Python 3.10 or 3.11 with venv, and g++, are enough.
#   make demo          runs the sharding tutorial with its memory table
#   make test          checks style and runs all tests on TensorFlow 2.15.1 but the slow ones
#   make test-slow     runs those: random models at length, every benchmark once, processes that take long
#   make test-221      runs the tests that need no Estimator on TensorFlow 2.21.0 (Python 3.10 to 3.13)
#   make test-221-ci   runs as much of that as CI has time for
#   make test-next     makes an environment with the newest TensorFlow that pip offers, pre-releases included, and runs the
#                      test of what we use of its insides, and README's first script
#   make test-pythons  does that on each promised Python that is installed, one after another
#   make asan          runs the tests of the C++ plugin under AddressSanitizer
#   make tsan          the same under ThreadSanitizer
#   make soak          random programs and models, threads, signals, full disks, memory over many runs, ops: for hours;
#                      then asan and tsan. SOAK_ARGS="--size 0.02" runs a fiftieth of each part, without asan and tsan
#   make lint          style, types as the oldest and the newest promised Python have them, generated pages up to date
#   make prose         checks the text of pages, docstrings and messages (part of lint); LIST=messages shows findings
#   make wheel         the wheel of the sources: the plugin is compiled at first use, or by `tf-ipu build`
#   make wheels        one wheel with the plugin for each of WHEEL_TENSORFLOWS inside, tried in new environments
#   make bench
#   make coverage      writes docs/coverage*.md, the names that are emulated, and their table for `tf-ipu check --static`
#   make options       writes docs/options*.md, the tables of what options change
#   make reference     writes the pages of commands, environment variables and compatibility
#   make facts         writes docs/reference/facts.md from validation/facts.csv
#   make lookup        writes docs/reference/errors.md and docs/reference/glossary.md from docs/data
#   make results       writes the pages of results in docs from the data in validation
#   make site          builds the documentation site in build/site; a broken link or docstring ends it

PYTHON ?= python3
PYTEST_ARGS ?=
# Three processes for CI's two cores, as one often waits for processes of its own. Whole files each: a file's tests share
# what they build. Where one dies, the others run what is left: pytest-xdist may wait for ever for one that takes its place.
SIDE_BY_SIDE := -n 3 --dist loadfile --max-worker-restart 0
BIN := .venv/bin
BIN_221 := .venv-221/bin
PIP := -m pip --disable-pip-version-check -q
# Python compiles what is imported: of TensorFlow's modules a third.
INSTALL := $(PIP) install --no-compile
# With the setuptools that TensorFlow brings.
INSTALL_EDITABLE := $(INSTALL) --no-build-isolation -e .
# What setup.cfg promises. The types are checked as the first and the last have them; TensorFlow's own come from .venv.
PYTHONS := 3.10 3.11 3.12 3.13
# Each writes pages of docs; with --check it ends with status 1 where a page is out of date.
GENERATORS := tools/generate_emulated_names.py tools/generate_coverage.py tools/generate_options.py tools/generate_reference.py tools/generate_results.py tools/generate_poplibs.py tools/generate_facts.py tools/generate_lookup.py

WHEEL_TENSORFLOWS ?= 2.15.1 2.16.2 2.17.1 2.18.1 2.19.1 2.20.0 2.21.0

export TF_CPP_MIN_LOG_LEVEL ?= 2
# pip compiles nothing: without bytecode files each process would compile TensorFlow and the package at import.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: environments demo test test-slow soak soak-parts test-221 test-221-ci test-next test-pythons asan tsan \
    lint style generated prose wheel wheels bench coverage options reference results poplibs facts lookup site clean

# All that .ci/run needs, side by side with `make -j`.
environments: $(BIN)/.ready $(BIN_221)/.ready .venv-site/bin/.ready

demo: $(BIN)/.ready
	$(BIN)/tf-ipu run --memory tutorials/sharding.py

test: lint
	$(BIN)/python -m pytest -m "not slow" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

test-slow: $(BIN)/.ready
	$(BIN)/python -m pytest -m slow $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# SOAK_ARGS="--size 0.02" for a look; "--ops" for nothing but TensorFlow's ops, "--ops Add Conv2D" for some.
soak: $(BIN)/.ready
	$(MAKE) -k -j1 soak-parts $(if $(SOAK_ARGS),,asan tsan)

soak-parts: $(BIN)/.ready
	PYTHONPATH=tools $(BIN)/python -m soak $(SOAK_ARGS)

# What imports no TensorFlow cannot differ on a second one.
test-221: $(BIN_221)/.ready
	$(BIN_221)/python -m pytest -m "not estimator and not slow and not without_tensorflow" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# CI has 20 minutes for both versions: tests marked `one_version` and the packages without TensorFlow run on the first.
NOT_AGAIN := not estimator and not slow and not one_version and not without_tensorflow
test-221-ci: $(BIN_221)/.ready
	$(BIN_221)/python -m pytest -m "$(NOT_AGAIN)" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# A requirement that names a pre-release allows those of that package alone. Made anew each time: a new one may be there.
NEXT := .venv-next
test-next:
	rm -rf $(NEXT)
	$(PYTHON) -m venv $(NEXT)
	$(NEXT)/bin/python $(PIP) install "$(TENSORFLOW)>=2.21.0rc0" -r tests/requirements.txt
	$(NEXT)/bin/python $(PIP) install --no-deps "tf_keras>=2.21.0rc0"
	$(IN_TURN) $(NEXT)/bin/python $(PIP) install --no-deps -e .
	$(NEXT)/bin/tf-ipu build
	$(NEXT)/bin/python -m pytest tests/house/test_tf_private.py $(PYTEST_ARGS)
	sed -n '/^```python$$/,/^```$$/p;/^```$$/q' README.md | sed '/^```/d' > $(NEXT)/first_script.py
	$(NEXT)/bin/tf-ipu run $(NEXT)/first_script.py

test-pythons:
	for version in $(PYTHONS); do \
	    python$$version -c "" 2>/dev/null || { echo "python$$version is not installed: not tested"; continue; }; \
	    $(MAKE) test-221 PYTHON=python$$version BIN_221=.venv-221-$$version/bin || exit 1; \
	done

# abseil's containers change their layout when they see the sanitizer, and TensorFlow was built without it: hence -U.
ASAN_CXX := g++ -g -fsanitize=address -U__SANITIZE_ADDRESS__
asan: $(BIN)/.ready
	CXX="$(ASAN_CXX)" $(BIN)/tf-ipu build
	CXX="$(ASAN_CXX)" ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:protect_shadow_gap=0 \
	    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    $(BIN)/python -m pytest -m "tensorflow and not no_sanitizer" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# What TensorFlow orders between threads is told to it (`tools/thread_sanitizer`). Memory at random addresses is not
# understood by the runtime of GCC 12: hence setarch. A report ends the process, as pytest captures what is written.
TSAN := tools/thread_sanitizer
TSAN_CXX := g++ -g -fsanitize=thread -U__SANITIZE_THREAD__
tsan: $(BIN)/.ready
	mkdir -p build
	g++ -O1 -g -fPIC -shared -o build/handoffs.so $(TSAN)/handoffs.cc -ldl
	CXX="$(TSAN_CXX)" $(BIN)/tf-ipu build
	CXX="$(TSAN_CXX)" TSAN_OPTIONS="halt_on_error=1 ignore_noninstrumented_modules=1 suppressions=$(CURDIR)/$(TSAN)/suppressions.txt" \
	    LD_PRELOAD="$$(g++ -print-file-name=libtsan.so) $(CURDIR)/build/handoffs.so" \
	    setarch -R $(BIN)/python -m pytest -m "tensorflow and $(NOT_AGAIN)" $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# Parts that do not wait for each other, for `make -j`.
TYPES := $(addprefix types-,$(firstword $(PYTHONS)) $(lastword $(PYTHONS)))
.PHONY: $(TYPES)
lint: style generated prose $(TYPES)

style: $(BIN)/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check

$(TYPES): types-%: $(BIN)/.ready
	$(BIN)/mypy --python-version $*

generated: $(BIN)/.ready
	for generator in $(GENERATORS); do $(BIN)/python $$generator --check || exit 1; done

# LIST="docstrings" prints the findings of one kind of text.
prose: $(BIN)/.ready
	PYTHONPATH=tools $(BIN)/python -m prose $(if $(LIST),--list "$(LIST)")

wheel: $(BIN)/.ready
	$(BIN)/python $(PIP) wheel --no-deps --wheel-dir dist .

wheels:
	$(PYTHON) tools/build_wheels.py --directory dist $(addprefix --tensorflow ,$(WHEEL_TENSORFLOWS))

bench: $(BIN)/.ready
	$(BIN)/python -m benchmarks

coverage: $(BIN)/.ready $(BIN_221)/.ready
	$(BIN)/python tools/generate_emulated_names.py
	$(BIN_221)/python tools/generate_emulated_names.py
	$(BIN)/python tools/generate_coverage.py

options: $(BIN)/.ready
	$(BIN)/python tools/generate_options.py

reference: $(BIN)/.ready
	$(BIN)/python tools/generate_reference.py

poplibs: $(BIN)/.ready
	$(BIN)/python tools/generate_poplibs.py

facts: $(BIN)/.ready
	$(BIN)/python tools/generate_facts.py

lookup: $(BIN)/.ready
	$(BIN)/python tools/generate_lookup.py

results: $(BIN)/.ready
	$(BIN)/python tools/generate_results.py

# For ARM there is no tensorflow-cpu.
TENSORFLOW := $(if $(filter x86_64,$(shell uname -m)),tensorflow-cpu,tensorflow)

# An editable install writes into the tree.
IN_TURN := flock Makefile
$(BIN)/.ready: setup.cfg pyproject.toml tests/requirements.txt tools/build_backend.py
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) $(TENSORFLOW)==2.15.1 -r tests/requirements.txt
	$(IN_TURN) $(BIN)/python $(INSTALL_EDITABLE)
	$(BIN)/tf-ipu build
	touch $@

$(BIN_221)/.ready: setup.cfg pyproject.toml tests/requirements.txt tools/build_backend.py
	$(PYTHON) -m venv $(BIN_221:/bin=)
	$(BIN_221)/python $(INSTALL) $(TENSORFLOW)==2.21.0 -r tests/requirements.txt
	$(IN_TURN) $(BIN_221)/python $(INSTALL_EDITABLE) --no-deps tf_keras==2.21.0
	$(BIN_221)/tf-ipu build
	touch $@

# TensorFlow is not needed: the API is read from the sources.
SITE := .venv-site/bin
site: $(SITE)/.ready
	NO_MKDOCS_2_WARNING=1 $(SITE)/mkdocs build

$(SITE)/.ready: tools/site/requirements.txt
	$(PYTHON) -m venv .venv-site
	$(SITE)/python $(INSTALL) -r tools/site/requirements.txt
	touch $@

clean:
	rm -rf .venv .venv-221* .venv-next .venv-site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
