#!/usr/bin/env bash
# Tests the findings of scripts/check_release: check_release_test.sh SCRIPT
set -euo pipefail
check=$1
tree=$(dirname "$check")/..
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Makes a tree without findings.
fresh() {
  rm -rf "${directory:?}"/*
  mkdir -p "$directory/.github/workflows" "$directory/scripts"
  echo 'project(Tensorsmith VERSION 2.3.4 LANGUAGES CXX)' > "$directory/CMakeLists.txt"
  printf '%s\n' '# Changes' '' '## 2.3.4 (2030-01-02)' '' 'This is new.' '' '## 2.3.3 (2029-01-02)' '' 'That was.' > "$directory/CHANGELOG.md"
  printf '%s\n' 'version: 2.3.4' 'date-released: "2030-01-02"' 'url: https://a.example' 'repository-code: https://a.example/b' > "$directory/CITATION.cff"
  printf '%s\n' '[project.urls]' 'Homepage = "https://a.example"' 'Repository = "https://a.example/b"' > "$directory/pyproject.toml"
  printf '%s\n' '#!/bin/sh' > "$directory/scripts/make"
  chmod +x "$directory/scripts/make"
  printf '%s\n' 'COPY scripts/make scripts/' 'RUN scripts/make' > "$directory/Containerfile"
  echo '- run: scripts/make dist' > "$directory/.github/workflows/release.yml"
}

# expect TEXT [ARGUMENT...]: one finding, which contains it. expect "": none.
expect() {
  local text=$1 found
  shift
  found=$("$check" --root "$directory" "$@") && [ -z "$text" ] && return
  [ -n "$text" ] && [ "$(wc -l <<< "$found")" = 1 ] && [[ "$found" == *"$text"* ]] ||
    { echo "found '$found' instead of '$text'"; exit 1; }
}

fresh
expect ""
expect "" v2.3.4
expect "the tag is v2.3.5" v2.3.5
[ "$("$check" --root "$directory" --notes)" = "This is new." ]
sed -i 's/ (2030-01-02)/, not released yet/' "$directory/CHANGELOG.md"
expect "the first heading is not '## 2.3.4 (YYYY-MM-DD)'"
fresh
sed -i 's/^version.*/version: 2.3.3/' "$directory/CITATION.cff"
expect "the version is 2.3.3"
fresh
sed -i 's/2030-01-02/2030-01-03/' "$directory/CITATION.cff"
expect "the date is 2030-01-03"
fresh
sed -i 's/^repository-code.*/repository-code: https:\/\/other.example/' "$directory/CITATION.cff"
expect "repository-code is https://other.example"
fresh
echo '- run: scripts/none' >> "$directory/.github/workflows/release.yml"
expect "runs scripts/none, which is no program"
fresh
echo 'COPY none /' >> "$directory/Containerfile"
expect "copies none, which is not there"
# The workflows and the Containerfile call install_dependencies only with modes that it has.
for mode in $(grep -ohE '(RUN|run:) scripts/install_dependencies [a-z]+' "$tree/Containerfile" "$tree"/.github/workflows/*.yml | cut -d' ' -f3); do
  grep -q "^  $mode)" "$tree/scripts/install_dependencies" || { echo "install_dependencies has no '$mode'"; exit 1; }
done
