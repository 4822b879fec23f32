#!/usr/bin/env bash
# Follows the README where nothing is installed: makes a minimal Debian 12 root, copies what git knows of this tree into
# it, and runs there ./run, the three lines it prints, a second ./run, and ./test --quick. Says how long each took.
#
#   tests/bare_root.sh [FOLDER]    FOLDER (a new one under /var/tmp) keeps the root; the caller removes it
#
# Needs root, mmdebstrap, 12 GB and most of an hour. The root takes over this machine's package sources, apt settings
# and local certificate authorities, and nothing else. It shares the network, so 127.0.0.1:9092 has to be free.
set -euo pipefail

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

main() {
  local root=${1:-}
  [ -n "$root" ] || root=$(mktemp -d /var/tmp/varve-bare-root.XXXXXX)
  make_root "$root"
  copy_tree "$root"
  inside "$root" "$(declare -f newcomer timed wait_for_lines stop_broker); newcomer"
}

make_root() {
  local sources=(/etc/apt/sources.list /etc/apt/sources.list.d/*) used=() hooks=() file
  for file in "${sources[@]}"; do
    if [ -s "$file" ] && grep -qE '^(deb|Types:)' "$file"; then used+=("$file"); fi
  done
  for file in /etc/apt/apt.conf.d/*; do
    if grep -q '^Acquire' "$file"; then hooks+=("--customize-hook=copy-in $file /etc/apt/apt.conf.d"); fi
  done
  if [ -d /usr/local/share/ca-certificates ]; then
    hooks+=("--customize-hook=copy-in /usr/local/share/ca-certificates /usr/local/share")
  fi
  echo "making a minimal root in $1"
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "${hooks[@]}" \
    bookworm "$1" "${used[@]}"
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

copy_tree() {
  mkdir -p "$1/srv/varve"
  git -C "$tree" archive HEAD | tar -x -C "$1/srv/varve"
}

# inside ROOT COMMANDS: with process ids of its own, so that nothing started there outlives it, and an empty environment.
inside() {
  unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" \
    env -i HOME=/srv PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$1" /bin/bash -euo pipefail -c "cd /srv/varve; $2"
}

newcomer() {
  local lines line
  ./run > /srv/run.txt 2>&1 &
  local broker=$!
  timed "first ./run until its lines" wait_for_lines $broker
  cat /srv/run.txt
  mapfile -t lines < <(grep -E '^  (seq|kcat) ' /srv/run.txt)
  [ ${#lines[@]} -eq 3 ]
  for line in "${lines[@]}"; do
    echo "\$ $line"
    bash -euo pipefail -c "$line" | tee -a /srv/lines.txt
  done
  diff <(printf '998\n999\n1000\n') <(head -n 3 /srv/lines.txt)
  grep -qE '^offset 500, written [0-9]+ ms: 501$' /srv/lines.txt
  stop_broker $broker

  rm /srv/run.txt  # or its lines would be taken for those of this run
  ./run > /srv/run.txt 2>&1 &
  broker=$!
  timed "second ./run until its lines" wait_for_lines $broker
  [ "$(kcat -C -b 127.0.0.1:9092 -t first -o beginning -e -q | wc -l)" = 1000 ]
  stop_broker $broker

  timed "./test --quick" ./test --quick
  timed "./test --quick on a built tree" ./test --quick
}

wait_for_lines() {
  until grep -qs 'offset %o' /srv/run.txt; do
    kill -0 "$1" 2> /dev/null || { cat /srv/run.txt; exit 1; }
    sleep 0.1
  done
}

stop_broker() {
  kill -TERM "$1"
  wait "$1" || true
}

timed() {
  local what=$1 began=$SECONDS
  shift
  "$@"
  echo "== $what: $((SECONDS - began)) s"
}

main "$@"
