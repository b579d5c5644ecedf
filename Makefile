# make setup   build everything into .venv, so that .venv/bin/airpath runs
# make demo    a real TCP transfer over an emulated GPRS link, with its picture
# make test    Rust and Python tests (also installs the programs they drive; with CI set, builds the
#              kernel of runs in virtual time unless it is in the cache)
# make bench   tables of what the emulator costs and how exact it is; JSON under bench-results/
# make lint    formatting, clippy, ruff, mypy, fresh schema and lock files
# make format  rewrite Rust and Python files in the project's style
# make wheel   one wheel under dist/ with the Python package and the engine, tried out
# make clean   remove everything that was built

PYTHON ?= python3
export PYTHON

.PHONY: help setup demo test bench lint format wheel clean

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

lint: setup
	@scripts/lint

format: setup
	cargo fmt --all
	.venv/bin/ruff check --quiet --fix
	.venv/bin/ruff format --quiet

wheel: setup
	@scripts/wheel

clean:
	rm -rf .venv .venv-tools target build dist python/airpath.egg-info bench-results demo-results study-results \
		.mypy_cache .pytest_cache .ruff_cache
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
