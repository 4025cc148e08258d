# The front door. Meson does the work; this file only names it.
.PHONY: all format clean

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@meson setup build . >/dev/null

build-asan/build.ninja:
	@meson setup build-asan . -Dbuildtype=debug -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-asan
