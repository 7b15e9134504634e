# The front door. CMakePresets.json says how each tree is built; this says what people do with them.
# `make help` lists the targets.

# One more than cores: some tests mostly wait.
TEST_JOBS ?= $(shell echo $$(( $$(nproc) + 1 )))
# One job a core, but no more than memory allows: a file that includes libtorch takes up to 1.5 GB to compile.
JOBS ?= $(shell awk -v cores="$$(nproc)" ' \
	FILENAME == "/proc/meminfo" && /^MemAvailable/ { kb = $$2 } \
	FILENAME != "/proc/meminfo" && /^[0-9]+$$/ && $$1 / 1024 < kb { kb = $$1 / 1024 } \
	END { n = int(kb / 1572864); if (n > cores) n = cores; print n < 1 ? 1 : n }' \
	/proc/meminfo $(wildcard /sys/fs/cgroup/memory.max))

.DEFAULT_GOAL := build
.PHONY: build test check sanitized browser faults fuzz mutants demo bench bench-policies lint format asan tsan clean help setup-build setup-test setup-lint setup-bench

build: setup-build build/release/build.ninja ## Build the drover binary (build/release/drover)
	@cmake --build --preset release --target drover drover_torch drover_fit -j $(JOBS)

test: setup-test check build sanitized ## Check, build and run all tests: C++, sanitizers, Python, the page in Chromium, README
	@cmake --build --preset release -j $(JOBS)
	@tools/test-cpp release $(TEST_JOBS)
	@tools/test-python build/release
	@tools/test-page browser $(CURDIR)/build/release/drover
	@tools/test-readme build/release
	@echo "All tests passed."

check: setup-test ## Read the sources: formatting, words, sizes, headers, Python's lint and types, docs
	@tools/check

# What takes input from outside, and decides. The whole tree under sanitizers is `make asan`.
SANITIZED := core_test wire_test shard_test coordinator_test worker_test job_test store_test cluster_test
sanitized: setup-build build/asan/build.ninja ## Unit tests of state machines, decoders and stores under ASan and UBSan
	@cmake --build --preset asan --target $(SANITIZED) -j $(JOBS)
	@tools/test-sanitized build/asan $(SANITIZED)

browser: setup-test build ## Test the live page and the report in Chromium
	@tools/test-page browser $(CURDIR)/build/release/drover

FAULT_SEEDS ?= 1-300
faults: build ## Break hundreds of real runs on purpose, and judge how they end (some need root)
	tools/faults build/release/drover --seeds $(FAULT_SEEDS)

fuzz: ## Look for inputs that break decoders and state machines, FUZZ_SECONDS=60 for each (clang is needed, and installed)
	@JOBS=$(JOBS) tools/fuzz

MUTANTS ?= 50
MUTANTS_SEED ?= 1
MUTANTS_LEAST ?= 90
mutants: setup-build ## Change MUTANTS=50 lines of code, one at a time, and list the changes that the tests miss
	tools/mutants --count $(MUTANTS) --seed $(MUTANTS_SEED) --least $(MUTANTS_LEAST) --jobs $(JOBS)

demo: build ## Train LeNet on Fashion-MNIST with four workers and two shards on this machine
	build/release/drover train examples/demo.toml

bench: setup-bench build ## Run the benchmarks: a shard's arithmetic, replay and simulation, and a step against PyTorch's DistributedDataParallel
	@cmake --build --preset release --target shard_bench system_bench make_trace -j $(JOBS)
	build/release/bin/shard_bench --benchmark_min_time=0.1
	bench/sim_speed
	build/release/bin/system_bench optimizer
	for transport in shm uds tcp; do build/release/bin/system_bench transport --transport $$transport && \
	  build/release/bin/system_bench server --transport $$transport || exit 1; done
	/usr/bin/python3 bench/compare_ddp.py

# TRACES=FOLDER adds recordings; POLICY_BENCH="--sizes 8 --seeds 1 --regimes even" is a quick part.
bench-policies: setup-bench build ## Compare all policies on made-up clusters, and on the recordings in TRACES=FOLDER
	@cmake --build --preset release --target bench_policies -j $(JOBS)
	nice build/release/bin/bench_policies --jobs $(JOBS) $(if $(TRACES),--traces $(TRACES)) $(POLICY_BENCH)

lint: setup-lint build/clang/build.ninja ## Formatting, clang's warnings, clang-tidy, headers that stand alone
	@tools/lint build/clang $(JOBS)

format: setup-lint ## Format the sources in place
	@find src tests bench -name '*.cc' -o -name '*.h' | xargs clang-format -i

asan tsan: %: setup-build build/%/build.ninja ## Build and test under the address and undefined (asan) or thread (tsan) sanitizers
	@cmake --build --preset $@ -j $(JOBS)
	@ctest --preset $@ -j $(TEST_JOBS) --no-tests=error

clean: ## Remove everything that was built
	@rm -rf build

help: ## List these targets
	@sed -nE 's/^([a-z ]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r name what; do \
	  printf '  make %-10s %s\n' "$$name" "$$what"; done

setup-build:
	@tools/setup build
setup-test:
	@tools/setup build check test
setup-lint:
	@tools/setup build lint
setup-bench:
	@tools/setup build bench

# Configured once; from then on Ninja notices by itself when a CMakeLists.txt changes.
build/%/build.ninja: CMakePresets.json | setup-build
	@cmake --preset $* -Wno-dev
	@touch $@
