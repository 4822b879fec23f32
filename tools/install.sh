#!/usr/bin/env bash
# Installs from Debian 12's packages what varve needs, and does nothing (in about 0.1 s) when all of it is there.
#
#   tools/install.sh            what a build needs
#   tools/install.sh --client   and kcat, the client that ./run's example lines use
#   tools/install.sh --tests    and what ./test needs: test libraries, Java, Python's venv, the linters
#   tools/install.sh --check    installs nothing; exits with 1 and names what is missing
#
# Needs root, or sudo. Only tests fetch anything that is not a Debian package (tests/e2e/setup.sh).
set -euo pipefail

build_packages=(
  clang-19 libclang-rt-19-dev mold ccache cmake ninja-build git python3
  libboost1.81-dev libsqlite3-dev libssl-dev
  libzstd-dev liblz4-dev libsnappy-dev zlib1g-dev libxxhash-dev
  libfmt-dev libcli11-dev libpugixml-dev
)
client_packages=(kcat)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format-19 clang-tidy-19 llvm-19 shellcheck
  kcat python3-venv ca-certificates openjdk-17-jdk-headless maven make curl procps faketime
)

main() {
  local packages=("${build_packages[@]}") check_only=false argument
  for argument in "$@"; do
    case "$argument" in
      --client) packages+=("${client_packages[@]}") ;;
      --tests) packages+=("${test_packages[@]}") ;;
      --check) check_only=true ;;
      *) fail "unknown option $argument; see the head of tools/install.sh" ;;
    esac
  done

  local missing
  missing=$(missing_of "${packages[@]}")
  [ -n "$missing" ] || return 0
  if $check_only; then fail "missing Debian packages: $missing"; fi
  install_packages "$missing"
}

# Prints those of its arguments that are not installed, parted by spaces.
missing_of() {
  command -v dpkg-query > /dev/null || fail "this script knows Debian only; elsewhere install by hand: $*"
  local installed package missing=()
  # One call for all: dpkg-query fails when it does not know a package, which is no failure here.
  installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "$@" 2> /dev/null || true)"
  for package in "$@"; do
    [[ $installed == *" installed=$package "* ]] || missing+=("$package")
  done
  echo "${missing[*]:-}"
}

install_packages() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null || fail "run as root, or install sudo; missing Debian packages: $1"
    as_root=(sudo)
  fi
  echo "Installing: $1" >&2
  local names
  read -r -a names <<< "$1"
  local log
  log=$(mktemp)
  # shellcheck disable=SC2024 # the log is the caller's own file, also under sudo
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends "${names[@]}"; } > "$log" 2>&1 < /dev/null; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: $1"
  fi
  rm -f "$log"
}

fail() {
  echo "tools/install.sh: $*" >&2
  exit 1
}

main "$@"
