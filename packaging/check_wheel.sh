#!/usr/bin/env bash
# Install the built wheel, or the source distribution where no wheel fits, into an empty environment of every Python
# that is given (default: 3.11 and newer), and use it: write, query, take, command line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  for minor in 11 12 13 14; do
    if found=$(command -v "python3.$minor") && "$found" -c '' 2>/dev/null; then pythons+=("$found"); fi
  done
fi
dist=$PWD/dist
for python in "${pythons[@]}"; do
  "$python" --version
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "$python" -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --find-links "$dist" --pre 'lance-sql[datafusion]' pandas
  cp packaging/first_steps.py "$folder"
  (cd "$folder" && venv/bin/python -W error::DeprecationWarning:lance_sql first_steps.py)
  (cd "$folder" && venv/bin/lance-sql query "SELECT count(*) AS rows FROM 'sales.lance'" && venv/bin/lance-sql --version)
  rm -rf "$folder"
done
