#!/usr/bin/env bash
# Runs shellcheck over every shell script of the tree, told by its first line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts=()
while IFS= read -r -d '' file; do
  if head -c 64 "$file" | head -n 1 | grep -qaE '^#!.*\b(ba)?sh$'; then scripts+=("$file"); fi
done < <(tools/list_files.py)
shellcheck -- "${scripts[@]}"
