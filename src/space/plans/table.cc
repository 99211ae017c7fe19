// The table of the kinds of plans.
#include "space/plan_kind.h"

// One line per kind: its folder, which defines NAME_kind.
#define TENSORSMITH_PLAN_KINDS(KIND) \
  KIND(attention)                    \
  KIND(winograd)                     \
  KIND(tiled)                        \
  KIND(window)                       \
  KIND(rows)                         \
  KIND(spatial)                      \
  KIND(plain)                        \
  KIND(gpu_wgmma)                    \
  KIND(gpu_mma)                      \
  KIND(gpu_tiled)                    \
  KIND(gpu_rows)                     \
  KIND(gpu_spatial)                  \
  KIND(gpu_transpose)                \
  KIND(gpu_plain)

namespace tensorsmith::space {

#define TENSORSMITH_DECLARE(name) extern const PlanKind name##_kind;
TENSORSMITH_PLAN_KINDS(TENSORSMITH_DECLARE)
#undef TENSORSMITH_DECLARE

namespace {

#define TENSORSMITH_ENTRY(name) &name##_kind,
constexpr const PlanKind* kKinds[] = {TENSORSMITH_PLAN_KINDS(TENSORSMITH_ENTRY)};
#undef TENSORSMITH_ENTRY

}  // namespace

std::span<const PlanKind* const> plan_kinds() { return kKinds; }

const PlanKind& fallback_kind(target::DeviceKind device) {
  const PlanKind* last = nullptr;
  for (const PlanKind* kind : kKinds)
    if (kind->device == device) last = kind;
  return *last;
}

}  // namespace tensorsmith::space
