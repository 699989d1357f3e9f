# make help   says what there is. Every target installs what it needs by itself.

HOST ?= 127.0.0.1
PORT ?= 8080
PIGPIO_PORT ?= 8888
BROWSER ?= 1
SEED ?= 1
CAMERA ?=
PINS ?=
RECORDINGS ?=
WIRE ?=
PIPE_DIR ?=
STATION ?= 1
STATION_PORT ?= 8100
STORE ?=
V ?= 0
BIN := .venv/bin

.PHONY: help run test test-all check benchmark bench soak deb image pictures docs lock clean

help:
	@echo "make run        a drivable car in your browser; HOST=0.0.0.0 for phones on the LAN"
	@echo "                PORT=8080 PIGPIO_PORT=8888 CAMERA='program ...' BROWSER=0 SEED=1"
	@echo "                RECORDINGS=DIR where it records (~/.local/state/fpvcar/recordings)"
	@echo "                STATION=0 without a base station; STATION_PORT=8100 STORE=DIR (~/fpvstation) STORE_GB=10"
	@echo "                PINS=kernel on an emulated kernel's pins, as a packaged car; PINS=pigpio"
	@echo "                V=1 prints the progress of all parts, too"
	@echo "                WIRE='22,27 5,6' pins that are wired; PIPE_DIR=DIR pigpio's pipes"
	@echo "make test       the quick tests: units, and a smoke of everything (6 minutes on two cores)"
	@echo "make test-all   every test: processes, browsers, pipes, virtual machines (40 minutes)"
	@echo "make check      format, lint, types: Python, page, shell, C"
	@echo "make benchmark  what it does on this machine, in figures; ONLY=video RUNS=30"
	@echo "make soak       what takes longer: an hour of video, minutes of fuzzing; ARGS='-k video'"
	@echo "make deb        builds the Debian packages of this computer into build/deb"
	@echo "                ARCHES='arm64 armhf' also rdpipe for these"
	@echo "make image      builds a card image for a Raspberry Pi into build/image"
	@echo "make pictures   takes the pictures of README and docs anew; ONLY='doctor-phone recordings'"
	@echo "make docs       writes the generated parts of docs/, web/ and tests/vectors/"
	@echo "make lock       brings the pinned Python packages up to date"
	@echo "make clean      removes what the targets made here"

run: export HOST := $(HOST)
run: export PORT := $(PORT)
run: export PIGPIO_PORT := $(PIGPIO_PORT)
run: export BROWSER := $(BROWSER)
run: export SEED := $(SEED)
run: export CAMERA := $(CAMERA)
run: export PINS := $(PINS)
run: export RECORDINGS := $(RECORDINGS)
run: export WIRE := $(WIRE)
run: export PIPE_DIR := $(PIPE_DIR)
run: export STATION := $(STATION)
run: export STATION_PORT := $(STATION_PORT)
run: export STORE := $(STORE)
run: export V := $(V)
run:
	@tools/setup.sh run
	@exec tools/run.sh

test:
	@tools/setup.sh test
	@tools/test.sh quick $(ARGS)

test-all:
	@tools/setup.sh test-all
	@tools/test.sh all $(ARGS)

check:
	@tools/setup.sh check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_prose.py
	npm run --silent check
	shellcheck tools/*.sh tools/image/*.sh tests/vm_*/*.sh testkit/vm/*.sh tests/roots/*.sh systemd/upgrade debian/*inst debian/*rm base-station/rdma/tests/*.sh .ci/run
	@$(MAKE) -s -C base-station/rdma check-static

benchmark:
	@tools/setup.sh benchmark
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

bench:
	@echo "make bench is make benchmark; the emulated car is 'make run' and 'fpvcar bench'"
	@$(MAKE) --no-print-directory benchmark

soak:
	@tools/setup.sh test-all
	@$(BIN)/python -m testkit.prepared --soak -m soak $(ARGS)
	@$(BIN)/python -m pytest -q -rA --soak -m soak $(ARGS)

deb:
	@tools/setup.sh deb
	@tools/deb.sh

image:
	@tools/setup.sh image
	@tools/image.sh

pictures:
	@tools/setup.sh test
	@$(BIN)/python -m tools.pictures $(ONLY)

docs:
	@tools/setup.sh run
	@$(BIN)/python -m tools.docs.profile_docs
	@$(BIN)/python -m tools.docs.wiring_docs
	@$(BIN)/python -m tools.docs.doctor_docs
	@$(BIN)/python -m tools.docs.build_docs
	@$(BIN)/python -m tools.docs.rights_docs
	@$(BIN)/python -m tools.docs.status_docs
	@$(BIN)/python -m tools.docs.wire_docs
	@$(BIN)/python -m tools.docs.page_messages
	@$(BIN)/python -m tests.vectors.make
	@$(BIN)/python -m tools.docs.page_texts

lock:
	@tools/lock.sh

clean:
	@$(MAKE) -s -C base-station/rdma clean
	rm -rf .venv node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f benchmark.json .coverage
