#!/usr/bin/env bash
# Compile the kernels for 64-bit ARM with Debian's cross compiler, warnings as errors, and run their unit tests under
# QEMU. Run by root on Debian or in its container; packages for ARM are unpacked below build/aarch64, not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$PWD/.venv/bin/python
here=$PWD/build/aarch64
root=$here/root
mkdir -p "$here/debs" "$here/wheels" "$root"

command -v aarch64-linux-gnu-g++ qemu-aarch64-static >/dev/null ||
  apt-get install --yes --quiet --no-install-recommends g++-aarch64-linux-gnu qemu-user-static >/dev/null

if [ ! -x "$root/usr/bin/python3.11" ]; then
  dpkg --add-architecture arm64
  apt-get update --quiet >/dev/null
  packages=(python3.11 python3.11-minimal libpython3.11 libpython3.11-dev libpython3.11-minimal libpython3.11-stdlib
    libc6 libstdc++6 libgcc-s1 zlib1g libexpat1 libssl3 libffi8 libsqlite3-0 libbz2-1.0 liblzma5 libncursesw6 libtinfo6
    libreadline8 libuuid1 libcrypt1)
  (cd "$here/debs" && apt-get download --quiet "${packages[@]/%/:arm64}" >/dev/null)
  for package in "$here"/debs/*.deb; do dpkg-deb --extract "$package" "$root"; done
fi

if [ ! -d "$here/site" ]; then
  platforms=()
  for tag in manylinux2014 manylinux_2_17 manylinux_2_24 manylinux_2_26 manylinux_2_27 manylinux_2_28; do
    platforms+=(--platform "${tag}_aarch64")
  done
  # The versions of the tests' own environment.
  for package in attrs click duckdb fsspec hypothesis iniconfig lance-namespace numpy obstore packaging pluggy protobuf \
    pyarrow pygments pylance pyroaring PyStemmer pytest pytest-timeout pytz regex rich sortedcontainers sqlglot \
    typing_extensions; do
    version=$("$python" -c "import importlib.metadata as m; print(m.version('$package'))")
    "$python" -m pip download --quiet --no-deps --dest "$here/wheels" "${platforms[@]}" --platform any \
      --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none --only-binary :all: "$package==$version"
  done
  for wheel in "$here"/wheels/*.whl; do "$python" -m zipfile --extract "$wheel" "$here/site"; done
fi

cat >"$here/toolchain.cmake" <<'END'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
END
cmake=$PWD/.venv/bin/cmake
"$cmake" -S engine/kernels -B "$here/kernels" -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" \
  -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$root/usr/include/python3.11" \
  -DCMAKE_CXX_FLAGS="-isystem $root/usr/include -Werror" >/dev/null
"$cmake" --build "$here/kernels" --parallel 2 --target _kernels

rm -rf "$here/package"
mkdir -p "$here/package"
cp -R engine/lance_engine lance_sql "$here/package"
rm -f "$here"/package/lance_engine/_kernels*.so
cp "$here"/kernels/_kernels*.so "$here/package/lance_engine/_kernels.abi3.so"

# Skip tests that start another interpreter, because it would not be emulated.
left_out='missing_memory_is_told or nothing_is_said_of_what_caches_hold or test_simd_levels or distances_at_every_level'
exec env PYTHONPATH="$here/package:$here/site" PYTHONDONTWRITEBYTECODE=1 \
  qemu-aarch64-static -L "$root" "$root/usr/bin/python3.11" -W ignore -m pytest -q -p no:cacheprovider --timeout 3600 \
  -k "not ($left_out)" "${@:-tests/unit/kernels}"
