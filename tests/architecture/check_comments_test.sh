#!/usr/bin/env bash
# Tests the findings of scripts/check_comments, and that it leaves other text alone: check_comments_test.sh SCRIPT
set -euo pipefail
check=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# expect NAME LINES: the file NAME has findings on these lines, separated by blanks.
expect() {
  local found
  found=$("$check" "$directory/$1" | sed -E 's/^[^:]*:([0-9]+):.*/\1/' | tr '\n' ' ') || true
  [ "${found% }" = "$2" ] || { echo "$1: findings on lines '${found% }' instead of '$2'"; exit 1; }
}

cat > "$directory/broken_list.h" <<'END'
// compute_at(stage, target_stage, target_iterator)
//   Rewrite: the producer is computed inside that loop, at its beginning, only the region that the readers
//   need
//     there (sched::infer_bounds); its own splits apply to the smaller extents.
int x;
  //  - Select evaluates only the chosen side: a read out of range on the other side is no error. A read out
  //  of range
  //    that is evaluated is a bug of the program.
END
expect broken_list.h "3 7"
cat > "$directory/no_subject.h" <<'END'
// Of a block: threads and registers.
int x;  // What a warp does.
// Limits of a block.
// What follows is indented as part of the sentence above.
int y = f("// Of a string");  // limit of a block
// The rates of before.
int z;  // the same of a GPU
END
expect no_subject.h "1 2 6 7"
cat > "$directory/broken_table.h" <<'END'
//   Checks: nothing is attached to, and no init is placed before, one that would disappear in the
//     middle. for i (4)            fuse i, j          for i.j.fused (12)
//       for j (3)             =>                C[f / 3, f % 3] = ...
END
expect broken_table.h "2"
cat > "$directory/broken_banner.cc" <<'END'
  // --- loops
  // ------------------------------------------------------------------------------------------------

  void nest();
END
expect broken_banner.cc "2"
cat > "$directory/broken_braces.h" <<'END'
//   for k in 512 { unrolled i in 4 { vectorized j in 16 { C[y*4+i, j] = C[y*4+i, j] + A[y*4+i, k] * B[k, j] }
//   } }
// =>
//     for k in 512 { unrolled i in 4 { vectorized j in 16 { C.acc[i, j] = C.acc[i, j] + A[y*4+i, k] * B[k, j]
//     } } } unrolled i in 4 { vectorized j in 16 { C[y*4+i, j] = C.acc[i, j] } }
END
expect broken_braces.h "2 5"
cat > "$directory/fine.h" <<'END'
//   Rewrite: the producer is computed inside that loop, at its beginning, only the region that the readers
//     need there (sched::infer_bounds); its own splits apply to the smaller extents, with one exception
//     below.
//   Checks: the leaves have the same kind.
//
//     for i (4)            fuse i, j          for i.j.fused (12)
//       for j (3)             =>                C[f / 3, f % 3] = ...
//
//     for i in 4 {
//       for j in 3 { x }
//     }
//   --- what is written ---
//   weights.bin    constants, each at a 64-byte aligned offset, in the layouts the kernels expect; mapped,
//                  not read
//   kernels.so     the kernels
END
expect fine.h ""
"$check" "$directory/fine.h"
if "$check" "$directory/broken_table.h" > /dev/null; then echo "a finding and no failure"; exit 1; fi
