#!/usr/bin/env bash
# Runs shellcheck over every shell script of the tree, told by its first line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -d '' -t scripts < <(git grep -z -l --untracked -E -e '^#!.*\b(ba)?sh$' -- . | while IFS= read -r -d '' file; do
  if head -n 1 "$file" | grep -q '^#!.*sh$'; then printf '%s\0' "$file"; fi
done)
shellcheck -- "${scripts[@]}"
