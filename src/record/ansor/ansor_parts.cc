#include "record/ansor/ansor_parts.h"

namespace tensorsmith::record {

namespace {

using namespace sched;  // NOLINT: uses the steps' unqualified names

// Whether a step is of a kind that only TVM's sketch rules make.
bool makes_structure(const Step& step) {
  return std::holds_alternative<Split>(step) || std::holds_alternative<FollowSplit>(step) ||
         std::holds_alternative<FollowFusedSplit>(step) || std::holds_alternative<Reorder>(step) ||
         std::holds_alternative<CacheRead>(step) || std::holds_alternative<CacheWrite>(step) ||
         std::holds_alternative<Rfactor>(step);
}

// Moves the numbers of a step to `out`.
void take_numbers(Step& step, std::vector<int64_t>& out) {
  if (auto* split = std::get_if<Split>(&step)) {
    out.insert(out.end(), split->lengths.begin(), split->lengths.end());
    split->lengths.assign(split->lengths.size(), 1);
  } else if (auto* unroll = std::get_if<Unroll>(&step)) {
    out.push_back(unroll->auto_max_step);
    unroll->auto_max_step = 0;
  }
}

}  // namespace

size_t numbers_of(const Step& step) {
  if (const auto* split = std::get_if<Split>(&step)) return split->lengths.size();
  return std::holds_alternative<Unroll>(step) ? 1 : 0;
}

void set_number(Step& step, size_t place, int64_t value) {
  if (auto* split = std::get_if<Split>(&step))
    split->lengths[place] = value;
  else
    std::get<Unroll>(step).auto_max_step = value;
}

AnsorParts split_trace(const Trace& trace) {
  AnsorParts parts;
  size_t end = trace.steps.size();
  while (end > 0 && !makes_structure(trace.steps[end - 1])) --end;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    Step step = trace.steps[i];
    take_numbers(step, parts.numbers);
    (i < end ? parts.sketch : parts.placement).steps.push_back(std::move(step));
  }
  return parts;
}

std::optional<Trace> join_trace(const AnsorParts& parts) {
  Trace trace;
  size_t at = 0;
  for (const Trace* half : {&parts.sketch, &parts.placement})
    for (const Step& step : half->steps) {
      Step& filled = trace.steps.emplace_back(step);
      const size_t count = numbers_of(filled);
      if (at + count > parts.numbers.size()) return std::nullopt;
      for (size_t i = 0; i < count; ++i) set_number(filled, i, parts.numbers[at++]);
    }
  if (at != parts.numbers.size()) return std::nullopt;
  return trace;
}

}  // namespace tensorsmith::record
