#include "search/record_doubts.h"

#include <cstdio>

#include "search/plausible.h"

namespace tensorsmith::search {

namespace {

// A second measurement contradicts the first if it is longer by more than this factor.
constexpr double kContradicted = 2;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace

bool RecordDoubts::is_believed(size_t task, const record::MeasureResult& result) {
  if (!result.ok() || is_plausible(result, least_seconds_[task])) return true;
  if (implausible_.count++ == 0)
    implausible_.first = names_[task] + ", " + seconds_text(result.best_estimate());
  return false;
}

void RecordDoubts::ran_again(size_t task, double claimed, const record::MeasureResult& result) {
  const double seconds = result.best_estimate();
  if (!(seconds > kContradicted * claimed) || contradicted_.count++ > 0) return;
  contradicted_.first = names_[task] + ", " + seconds_text(claimed) + " there, but this run measured " +
                        (result.ok() ? seconds_text(seconds)
                                     : std::string(to_string(result.outcome)) + " (" + result.reason + ")");
}

void RecordDoubts::warn(LogSink& log) {
  if (implausible_.count > 0 && !implausible_.said) {
    log.log(LogLevel::kWarning, std::to_string(implausible_.count) +
                                    " records are ignored because their times are less than the device's "
                                    "peak rates allow; the first: " +
                                    implausible_.first);
    implausible_.said = true;
  }
  if (contradicted_.count > 0 && !contradicted_.said) {
    log.log(LogLevel::kWarning,
            std::to_string(contradicted_.count) +
                " records have much shorter times than this machine reaches now; the first: " +
                contradicted_.first);
    contradicted_.said = true;
  }
}

}  // namespace tensorsmith::search
