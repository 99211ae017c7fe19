#!/usr/bin/env bash
# Tests the findings of scripts/check_pages: check_pages_test.sh SCRIPT
set -euo pipefail
check=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/docs" "$directory/src/room"
echo 'void listed();' > "$directory/src/room/list.h"
touch "$directory/src/room/a.cc" "$directory/src/room/b.cc"
echo 'a.cc' > "$directory/src/room/sources"

# expect TEXT: one finding, which contains it. expect "": none.
expect() {
  local found
  found=$("$check" "$directory") && [ -z "$1" ] && return
  [ -n "$1" ] && [ "$(wc -l <<< "$found")" = 1 ] && [[ "$found" == *"$1"* ]] ||
    { echo "found '$found' instead of '$1'"; exit 1; }
}

page() { printf '%s\n' "$@" > "$directory/README.md"; }
page '[a page](docs/) and `src/room/list.h`'
expect ""
page '[a page](docs/none.md)'
expect "links to docs/none.md"
page '`src/room/none.h`'
expect "names src/room/none.h"
page '| file | names |' '|---|---|' '| `src/room/list.h` | `listed` |'
expect ""
page '| file | names |' '|---|---|' '| `src/room/list.h` | `list` |'
expect "has no 'list'"
page '| members | list | word |' '|---|---|---|' '| `src/room/*.cc` | `src/room/sources` | `*.cc` |'
expect "does not list src/room/b.cc"
page '| declared in | as | named in |' '|---|---|---|' '| `src/room/list.h` | `void (\w+)\(\)` | `src/room/sources` |'
expect "does not name listed"
page '| declared in | as | named in |' '|---|---|---|' '| `src/room/list.h` | `int (\w+)\(\)` | `src/room/sources` |'
expect "declares nothing"
page '[a page](docs/)' $(seq 119)
expect ""
page '[a page](docs/)' $(seq 120)
expect "has 121 lines, more than 120"
page 'Nothing to check.'
expect "no page says anything"
