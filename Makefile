# Needs Python >= 3.11 and make; everything else is installed into .venvs/ on first use.
PYTHON ?= python3
NEEDED := import sys; sys.version_info >= (3, 11) or sys.exit("Python >= 3.11 is needed: make PYTHON=…")
LANES := $(PYTHON) -c '$(NEEDED)' && $(PYTHON) scripts/lanes.py

.PHONY: test demo thorough lint docs bench quality newest clean

test: ## lint, types, docs, core tests and every lane, in about a twentieth of the thorough depth
	@$(LANES) test ci

demo: ## a broken history, what is wrong with it, and the repaired one
	@$(LANES) run core python examples/demo.py

thorough: ## make test with ten times the examples, and the benchmarks
	@$(LANES) test thorough

lint: ## ruff and mypy
	@$(LANES) run core ruff check .
	@$(LANES) run core ruff format --check .
	@$(LANES) run core mypy

docs: ## the documentation, in site/
	@$(LANES) run core mkdocs build --strict --quiet

bench: ## the benchmarks
	@$(LANES) run core python benchmarks/run.py

quality: ## what convnorm and other libraries make of the same broken histories, into docs/quality.md
	@$(LANES) run core python benchmarks/quality.py

newest: ## resolve the pins in constraints/ anew; make LANE="core adapters" newest picks some
	@$(LANES) newest $(LANE)

clean: ## remove environments, results and caches
	rm -rf .venvs .lanes site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
