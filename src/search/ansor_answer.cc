#include "search/ansor_answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "learn/lm/prompt.h"

namespace tensorsmith::search {

namespace {

using learn::lm::NumberKind;
using learn::lm::WordKind;

// Indices of vocabulary amounts; search/space_answer.cc uses those below.
constexpr int kAnsorPart = 44, kAnsorParts = 45, kThreads = 46, kPlaced = 47, kPlacements = 48;

std::vector<int64_t> divisors_of(int64_t number, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) out.push_back(d);
  return out;
}

}  // namespace

AnsorAnswer::AnsorAnswer(const AnsorContext& context, const record::AnsorParts* known)
    : context_(&context), known_(known), steps_(context.sketch()), threads_(context.threads()) {
  left_.resize(context.placements().size());
  std::iota(left_.begin(), left_.end(), size_t{0});
  if (known_ != nullptr) {
    const auto& listed = context.placements();
    known_placement_ = std::find(listed.begin(), listed.end(), known->placement) - listed.begin();
    TS_CHECK(known_placement_ < listed.size() && known->sketch == context.sketch(),
             "the program to follow does not belong to the context");
    size_t number = 0;
    for (const auto& step : context.sketch().steps) {
      first_number_.push_back(number);
      number += record::numbers_of(step);
    }
    first_number_.push_back(number);
  }
  advance();
}

int64_t AnsorAnswer::most() const { return std::max(allowed_.back(), known_value()); }

bool AnsorAnswer::allows(int64_t value) const {
  return std::binary_search(allowed_.begin(), allowed_.end(), value) ||
         (value >= 0 && value == known_value());
}

std::vector<int64_t> AnsorAnswer::examples() const {
  std::vector<int64_t> values = allowed_;
  if (const int64_t known = known_value(); known >= 0) values.push_back(known);
  return values;
}

int64_t AnsorAnswer::known_value() const {
  if (known_ == nullptr || done_) return -1;
  if (in_sketch()) return known_->numbers[first_number_[slot().step] + slot().part];
  if (symbol().open) return known_->numbers[first_number_.back() + unrolling_.size()];
  return context_->symbols()[known_placement_][depth_].value;
}

bool AnsorAnswer::take(int64_t value) {
  if (done_ || !allows(value)) return false;
  if (value != known_value()) known_ = nullptr;
  if (in_sketch()) {
    const AnsorSlot& at = slot();
    record::set_number(steps_.steps[at.step], at.part, value);
    if (at.parts > 0) {
      rest_ = std::max<int64_t>(1, rest_ / value);
      for (const int t : at.threads) threads_[t] *= value;
    }
    ++slot_;
  } else if (symbol().open) {
    unrolling_.push_back(value);
    ++depth_;
  } else {
    std::erase_if(left_, [&](size_t p) { return context_->symbols()[p][depth_].value != value; });
    ++depth_;
  }
  advance();
  return true;
}

void AnsorAnswer::advance() {
  allowed_.clear();
  if (in_sketch()) return allow_lengths();
  while (true) {
    const auto& symbols = context_->symbols();
    if (depth_ == symbols[left_.front()].size()) {
      done_ = true;
      allowed_.assign(1, 0);
      return;
    }
    if (symbol().open) {
      allowed_ = context_->unrolling();
      return;
    }
    for (const size_t p : left_) allowed_.push_back(symbols[p][depth_].value);
    std::sort(allowed_.begin(), allowed_.end());
    allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());
    if (allowed_.size() > 1) return;
    allowed_.clear();  // only one value is possible
    ++depth_;
  }
}

void AnsorAnswer::allow_lengths() {
  const AnsorSlot& at = slot();
  if (at.parts == 0) {
    allowed_ = context_->unrolling();
    return;
  }
  const bool innermost = at.part == at.parts - 1;
  if (innermost) rest_ = extent_ = at.extent > 0 ? at.extent : context_->extent_of(steps_, at.step);
  allowed_ = divisors_of(rest_, innermost ? kMostInnermost : rest_);
  const auto too_many = [&](int64_t value) {
    return std::any_of(at.threads.begin(), at.threads.end(),
                       [&](int t) { return threads_[t] * value > context_->most_threads(); });
  };
  std::erase_if(allowed_, [&](int64_t value) { return value > 1 && too_many(value); });
  if (allowed_.empty()) allowed_.assign(1, 1);
}

void AnsorAnswer::describe(learn::lm::Positions& out) const {
  if (done_) return;
  if (in_sketch()) {
    const AnsorSlot& at = slot();
    out.add_word(WordKind::kSlot, at.parts == 0        ? "role unroll"
                                  : at.threads.empty() ? "role tile"
                                                       : "role threads");
    out.add_word(WordKind::kSlot, "stage " + std::string(learn::lm::without_number(at.stage)));
    if (at.parts == 0) return;
    out.add_word(WordKind::kSlot, "axis " + at.axis);
    out.add_number(NumberKind::kExtent, extent_);
    out.add_amount(kAnsorPart, static_cast<float>(at.part) / 2);
    out.add_amount(kAnsorParts, static_cast<float>(at.parts) / 2);
    out.add_word(WordKind::kSlot, "part " + std::to_string(at.part) + " of " + std::to_string(at.parts));
    for (const int t : at.threads)
      out.add_amount(kThreads, static_cast<float>(std::log2(threads_[static_cast<size_t>(t)]) / 8));
    return;
  }
  const AnsorSymbol& next = symbol();
  out.add_word(WordKind::kSlot, next.open ? "role unroll" : "role placement");
  out.add_word(WordKind::kSlot, "place " + std::string(next.what));
  if (next.stage >= 0)
    out.add_word(WordKind::kSlot,
                 "stage " + std::string(learn::lm::without_number(context_->stage_name(next.stage))));
  out.add_number(NumberKind::kCategories, std::ssize(allowed_));
  out.add_amount(kPlaced, static_cast<float>(depth_) / 32);
  out.add_amount(kPlacements, static_cast<float>(std::log2(left_.size()) / 8));
}

record::AnsorParts AnsorAnswer::parts() const {
  TS_CHECK(done_, "the answer is not complete");
  record::AnsorParts out{context_->sketch(), context_->placements()[left_.front()], {}};
  out.numbers = record::split_trace(steps_).numbers;
  out.numbers.insert(out.numbers.end(), unrolling_.begin(), unrolling_.end());
  return out;
}

std::vector<int64_t> AnsorAnswer::split_extents() const {
  TS_CHECK(done_, "the answer is not complete");
  std::vector<int64_t> out(steps_.steps.size() + context_->placements()[left_.front()].steps.size(), 0);
  for (size_t i = 0; i < steps_.steps.size(); ++i) out[i] = context_->extent_of(steps_, i);
  return out;
}

std::optional<std::vector<int64_t>> decisions_in_order(const AnsorContext& context,
                                                       const record::AnsorParts& parts) {
  const auto& listed = context.placements();
  if (parts.sketch != context.sketch() ||
      std::find(listed.begin(), listed.end(), parts.placement) == listed.end())
    return std::nullopt;
  AnsorAnswer answer(context, &parts);
  std::vector<int64_t> out;
  while (!answer.done()) {
    out.push_back(answer.known_value());
    if (!answer.take(out.back())) return std::nullopt;
  }
  if (answer.parts() != parts) return std::nullopt;
  return out;
}

std::optional<record::AnsorParts> from_decisions(const AnsorContext& context,
                                                 const std::vector<int64_t>& decisions) {
  record::AnsorParts parts{context.sketch(), {}, {}};
  const auto& slots = context.slots();
  if (decisions.size() < slots.size()) return std::nullopt;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (decisions[s] < (slots[s].parts > 0 ? 1 : 0)) return std::nullopt;
    record::set_number(parts.sketch.steps[slots[s].step], slots[s].part, decisions[s]);
  }
  parts.numbers = record::split_trace(parts.sketch).numbers;
  parts.sketch = context.sketch();
  // Decodes the placement and its unrolling, as an answer would with nothing else to decide.
  std::vector<size_t> left(context.placements().size());
  std::iota(left.begin(), left.end(), size_t{0});
  size_t at = slots.size();
  for (size_t depth = 0; depth < context.symbols()[left.front()].size(); ++depth) {
    const auto& symbol = context.symbols()[left.front()][depth];
    const bool same = std::all_of(left.begin(), left.end(),
                                  [&](size_t p) { return context.symbols()[p][depth] == symbol; });
    if (same && !symbol.open) continue;
    if (at == decisions.size() || decisions[at] < 0) return std::nullopt;
    const int64_t value = decisions[at++];
    if (symbol.open)
      parts.numbers.push_back(value);
    else
      std::erase_if(left, [&](size_t p) { return context.symbols()[p][depth].value != value; });
    if (left.empty()) return std::nullopt;
  }
  if (at != decisions.size()) return std::nullopt;
  parts.placement = context.placements()[left.front()];
  return parts;
}

}  // namespace tensorsmith::search
