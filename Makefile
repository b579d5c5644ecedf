# make setup   build everything into .venv, so that .venv/bin/airpath runs
# make demo    a real TCP transfer over an emulated GPRS link, with its picture
# make test    Rust and Python tests (also installs the programs they drive; with CI set, builds the
#              kernel of runs in virtual time unless it is in the cache)
# make bench   tables of what the emulator costs and how exact it is; JSON under bench-results/
# make fuzz    mutated inputs for every reader of files, packets, texts and requests, a minute or two
# make kills   100 runs killed at random, and what they leave behind
# make soak    30 minutes of many flows and hostile packets over one link, as root
# make lint    formatting, clippy, ruff, mypy, fresh schema and lock files
# make format  rewrite Rust and Python files in the project's style
# make docs    the documentation as a site under build/site, with search; no network is needed to read it
# make wheel   one wheel under dist/ with the Python package and the engine, tried out
# make clean   remove everything that was built

PYTHON ?= python3
export PYTHON

.PHONY: help setup demo test bench fuzz kills soak lint format docs wheel clean

help:
	@sed -n 's/^# make/make/p' Makefile

setup:
	@scripts/system-packages build
	@scripts/setup

demo: setup
	@scripts/demo

test: setup
	@scripts/system-packages test
	@scripts/test

bench: setup
	@scripts/bench

fuzz: setup
	@scripts/fuzz

kills: setup
	@scripts/kills

soak: setup
	@scripts/soak

lint: setup
	@scripts/lint

format: setup
	cargo fmt --all
	.venv/bin/ruff check --quiet --fix
	.venv/bin/ruff format --quiet

docs: setup
	@scripts/docs

wheel: setup
	@scripts/wheel

clean:
	rm -rf .venv .venv-tools .docs-packages target build dist python/airpath.egg-info bench-results demo-results \
		.mypy_cache .pytest_cache .ruff_cache
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
