# The front door. Meson does the work; this file only names it.
#
#   make          build build/gua and build/libgua.so.0
#   make run      set up, build, record and report (simulated when there is no NVIDIA driver)
#   make test     set up, build twice, run all tests and checks; ends with "N passed, N failed"
#   make test-all the same with every test in both builds; some minutes more
#   make setup    install the Debian packages that building and testing need
#   make install  PREFIX=/usr/local DESTDIR=
#   make uninstall  remove what make install has installed, and no data; with PREFIX=: only there
#   make deb      build Debian packages in build-deb/
#   make rpm      build rpm packages in build-rpm/, and try them in a scratch root
#   make html     write the manual as HTML pages: build/html/index.html
#   make wheel    build a wheel of the Python package, with libgua in it, in build/wheel/
#   make test-systemd  boot a small Debian and try the service there, from the packages; as root
#   make test-real  run jobs of a real Slurm on the fake driver, and compare with the truth; as root
#   make sbom     write the bill of materials (SPDX) of the build: build/gua-VERSION.spdx.json
#   make dist     pack the committed tree: build/gua-VERSION.tar.xz
#   make image    pack programs and their libraries as an OCI image: build/gua-image.tar
#   make dist-bin pack programs that run on any Linux with glibc 2.28 or newer, in build-bin/
#   make reproducible  build packages, tarball and wheel twice, and compare them
#   make release  make every file of a release from the committed tree: build/release; as root, to try them
#   make format   let clang-format decide
#   make bench    measure speed and size against the goals; some minutes
#   make truth    record random lives of real processes for TRUTH_SECONDS (an hour), TRUTH_SEEDS
#                 plays at once, and compare with the truth; as root the processes have several users;
#                 TRUTH_OPTIONS="--before BUILD": beside another build of gua
#   make kills    kill a recorder KILLS times (10000) at random moments, 200 times with a full disk
#   make fuzz     run each fuzz target with libFuzzer for FUZZ_SECONDS; inputs that
#                 reach new code are kept in FUZZ_CORPUS
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 20
FUZZ_CORPUS ?= fuzz-corpus
TRUTH_SECONDS ?= 3600
TRUTH_SEEDS ?= 8
KILLS ?= 10000
KILLS_SEED ?= 1
# Shows what a command said only when it failed.
quietly = out=$$($(1) 2>&1) || { echo "$$out" >&2; exit 1; }
# Optimised a little: each program starts in two thirds of the time, and the reports are as good.
SANITIZE = -Dbuildtype=debug -Doptimization=1 -Db_lundef=false
SANITIZE_ARGS = -fno-sanitize-recover=all -fno-omit-frame-pointer -fno-optimize-sibling-calls
# The tests start programs thousands of times, so that the cost of a start decides how long they take. Undefined
# behaviour is a trap here, which AddressSanitizer reports with its place (handle_sigill in tools/test): the texts
# of UBSan's messages would be three quarters of each program.
SANITIZE_TESTS = $(SANITIZE) -Db_sanitize=address \
	-Dc_args="$(SANITIZE_ARGS) -fsanitize=undefined -fsanitize-undefined-trap-on-error -g1"

.PHONY: all setup run test test-all bench truth kills install uninstall deb rpm html wheel test-systemd test-real image dist sbom dist-bin reproducible release format fuzz clean

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@tools/setup --check build
	@$(call quietly,meson setup build .)

build-asan/build.ninja: Makefile
	@tools/setup --check build
	@$(call quietly,meson setup $$(test ! -e $@ || echo --reconfigure) build-asan . $(SANITIZE_TESTS))

setup:
	@tools/setup test

run:
	@tools/setup build
	@$(MAKE) --no-print-directory build/build.ninja
	@echo "Building gua: the first time, this takes half a minute on two cores" >&2
	@tools/build build gua
	@tools/run build/gua

test:
	@tools/setup test
	@tools/test

test-all:
	@tools/setup test
	@tools/test --all

bench: all
	@$(call quietly,ninja -C build bench-tools)
	@bench/run $(BENCH_OPTIONS)

truth: all
	@tools/truth $(TRUTH_OPTIONS) $(TRUTH_SECONDS) $(TRUTH_SEEDS)

kills: all
	@/usr/bin/python3 tests/kills.py --kills $(KILLS) --full 200 --seed $(KILLS_SEED)
	@/usr/bin/python3 tests/kills.py --kills 40 --full 40 --seed $(KILLS_SEED) --real

install: build/build.ninja
	@meson configure build -Dprefix="$(PREFIX)"
	@$(call quietly,ninja -C build)
	@DESTDIR="$(DESTDIR)" tools/install build "$(PREFIX)"

uninstall:
	@DESTDIR="$(DESTDIR)" tools/uninstall build $(if $(filter command environment,$(firstword $(origin PREFIX))),"$(PREFIX)")

deb:
	@tools/setup deb
	@tools/deb build-deb

rpm:
	@tools/setup rpm
	@tools/rpm build-rpm

html: all
	@tools/setup html
	@tools/html build

test-systemd: all
	@tools/setup systemd
	@tools/test-systemd $(SUITE)

test-real: all
	@tools/setup real
	@tools/test-real

# Needs no network.
wheel: build/build.ninja
	@tools/setup wheel
	@$(call quietly,ninja -C build libgua.so.0)
	@tools/wheel build

# The same bytes from the same commit.
dist:
	@version=$$(sed -n "s/^  version: '\\(.*\\)',/\\1/p" meson.build) && mkdir -p build && \
	git archive --format=tar --prefix="gua-$$version/" HEAD | xz -6 >"build/gua-$$version.tar.xz" && \
	echo "build/gua-$$version.tar.xz"

sbom: all
	@tools/sbom build "build/gua-$$(sed -n "s/^  version: '\\(.*\\)',/\\1/p" meson.build).spdx.json"

image: all
	@tools/image

dist-bin:
	@tools/setup bin
	@tools/dist-bin

reproducible:
	@tools/setup deb
	@tools/setup wheel
	@tools/reproducible

# The steps set up what they need by themselves.
release:
	@tools/release

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

build-fuzz/build.ninja:
	@tools/setup fuzz
	@$(call quietly,CC=clang meson setup build-fuzz . -Dfuzzers=true $(SANITIZE) -Db_sanitize=address,undefined \
		-Dc_args="$(SANITIZE_ARGS)")

# What libFuzzer finds stays in FUZZ_CORPUS and is minimised at the end of each run; see
# tests/fuzz/README.md. A crasher belongs into tests/fuzz/corpus.
fuzz: build-fuzz/build.ninja
	@$(call quietly,ninja -C build-fuzz)
	@for corpus in tests/fuzz/corpus/*; do \
		tests/fuzz/run "$$(basename $$corpus)" "$(FUZZ_CORPUS)" $(FUZZ_SECONDS) || exit 1; \
	done

clean:
	rm -rf build build-asan build-fuzz build-deb build-rpm build-bin build-reproducible build-systemd build-walk build-cover
