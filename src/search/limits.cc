#include "search/limits.h"

#include <algorithm>

namespace tensorsmith::search {

namespace {

// Share of a limited time that is reserved for confirming winners, if they are confirmed. Chosen,
// not fitted.
constexpr double kConfirmTimeShare = 0.06;

}  // namespace

double Limits::search_seconds() const {
  const bool confirms = options_.confirm && !options_.survey;
  return confirms ? options_.seconds * (1 - kConfirmTimeShare) : options_.seconds;
}

bool Limits::finished() const {
  if (cancelled()) return true;
  if (options_.trials > 0 && trials_ >= options_.trials) return true;
  return options_.seconds > 0 && elapsed() >= search_seconds();
}

double Limits::progress() const {
  double share = 0;
  if (options_.trials > 0) share = static_cast<double>(trials_) / static_cast<double>(options_.trials);
  if (options_.seconds > 0) share = std::max(share, elapsed() / search_seconds());
  return std::min(share, 1.0);
}

}  // namespace tensorsmith::search
