# SPDX-License-Identifier: Apache-2.0
# A thin front for Meson. "make help" lists the targets. Every target first makes sure that the Debian
# packages it needs are there (tools/setup), and leaves everything it makes below build*/.

PREFIX ?= /usr/local
SECONDS ?= 60
PYTHON := /usr/bin/python3
MESON_DIR := build/meson
export CLOCHE_SHARED ?= $(abspath ../shared)

# Variables of the caller's environment that would change what the tests and programs trust.
unexport SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS
unexport GIT_SSL_CAINFO

.DELETE_ON_ERROR:
.PHONY: all run check test cluster deb bench install fuzz lint clean help

all:
	@tools/setup build
	@tools/build
	@echo "built: build/bin/cloche; \"make install PREFIX=DIR\" installs it, \"make help\" lists the rest"

run: all
	@tools/setup run
	@tools/demo/run

check:
	@tools/setup build test
	@tools/build --tests
	@$(PYTHON) tools/test --quick

test:
	@tools/setup build test
	@tools/build --tests
	@$(PYTHON) tools/test $(TEST)

# It goes into a cache outside of the tree. "make test" then also runs the group cluster.
cluster:
	@tools/cluster build

# The packages of debian/, into build/deb, and a try of each in fresh roots, for which it takes Debian from the network.
deb:
	@tools/setup build deb
	@tools/deb
	@$(PYTHON) tools/test deb

bench: all
	@tools/setup bench
	@bench/run

install:
	@tools/setup build
	@tools/build --install "$(abspath $(PREFIX))"

fuzz:
	@tools/setup build fuzz
	@tools/fuzz $(SECONDS) $(TARGET)

lint:
	@tools/setup build lint
	@tools/lint

clean:
	rm -rf build build-asan build-fuzz build-lint

help:
	@echo 'make                      build; programs are then in build/bin/'
	@echo 'make run                  the demonstration: a real agent in a room (REAL=1: real API)'
	@echo 'make run PROVIDER=ssh|kubernetes [PLACE=WHERE]   the same there; without a place, in one of this machine'
	@echo 'make check                what one runs while working: checks, units, some scenarios, a room'
	@echo 'make test [TEST=NAME...]  all tests, or groups: checks unit asan integration scenarios escape scale crash cluster vm'
	@echo 'make cluster              build a real Kubernetes for the tests of the group cluster, into a cache (10 minutes)'
	@echo 'make deb                  build the Debian packages into build/deb, and try them in fresh roots'
	@echo 'make bench                measure against other tools; writes bench/RESULTS.md'
	@echo 'make install PREFIX=DIR   install (DESTDIR is honoured)'
	@echo 'make fuzz [SECONDS=60] [TARGET=NAME]   run the fuzz targets, keep their corpora'
	@echo 'make lint                 style, layers, static analysers, spelling'
	@echo 'make clean                remove everything that was built'
