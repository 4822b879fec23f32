#!/usr/bin/env bash
# Checks the C++ files against .clang-format; prints nothing when all is well.
#
#   tools/format.sh             every file under src/ and tests/
#   tools/format.sh --changed   only files that differ from the last commit
#   tools/format.sh --fix       rewrites what is not formatted (with --changed: of those files)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fix=false changed=false
for argument in "$@"; do
  case "$argument" in
    --fix) fix=true ;;
    --changed) changed=true ;;
    *) echo "tools/format.sh: unknown option $argument" >&2; exit 2 ;;
  esac
done

list() {
  if $changed; then
    git diff --name-only -z --diff-filter=d HEAD
    git ls-files -z --others --exclude-standard
  else
    tools/list_files.py
  fi
}

existing=()
while IFS= read -r -d '' file; do
  if [[ $file =~ ^(src|tests)/.*\.(cc|h)$ && -f $file ]]; then existing+=("$file"); fi
done < <(list)
if ! $changed && [ "${#existing[@]}" -eq 0 ]; then
  echo "tools/format.sh: found no C++ file" >&2
  exit 1
fi
[ "${#existing[@]}" -gt 0 ] || exit 0

if $fix; then
  clang-format-19 -i -- "${existing[@]}"
  exit
fi
# One process per core; each names the places that differ.
if ! printf '%s\0' "${existing[@]}" |
  xargs -0 -n 16 -P "$(nproc)" clang-format-19 --dry-run -Werror --ferror-limit=3 --; then
  echo "tools/format.sh: run tools/format.sh --fix" >&2
  exit 1
fi
