// Numbers of the kinds of CPU plans in EstimateParts::plan. Models are trained on them, so new kinds go to
// the end.
#pragma once

namespace tensorsmith::space {

enum class PlanNumber { kTiled, kTiledTwice, kRows, kSpatial, kWindow, kWinograd, kAttention, kPlain };

inline double plan_number(PlanNumber kind) { return static_cast<double>(kind); }

}  // namespace tensorsmith::space
