#include "learn/lm/answer.h"

#include <algorithm>
#include <limits>
#include <string>

namespace tensorsmith::learn::lm {

namespace {

// Indices of vocabulary amounts that answers use; prompts use those below 32.
constexpr int kDecided = 32, kWritten = 33;
// Number of evenly spaced values that are tried in a large range.
constexpr int64_t kTried = 32;

}  // namespace

Quality quality_of(double slower) {
  if (slower <= 0.005) return Quality::kBest;
  if (slower <= 0.02) return Quality::kWithin2;
  if (slower <= 0.05) return Quality::kWithin5;
  if (slower <= 0.10) return Quality::kWithin10;
  if (slower <= 0.25) return Quality::kWithin25;
  if (slower <= 1) return Quality::kWithin100;
  return Quality::kSlow;
}

void TokenWalk::describe(Quality quality, Positions& out) const {
  out.add_word(WordKind::kPosition, "decision");
  out.add_word(WordKind::kPosition, "quality " + std::to_string(static_cast<int>(quality)));
  answer_.describe(out);
  out.add_number(NumberKind::kLimit, answer_.most());
  if (before_ >= 0) out.add_number(NumberKind::kDecided, before_);
  if (writing()) {
    out.add_number(NumberKind::kDigits, high_);
    out.add_amount(kWritten, written_ / 4.0);
  }
  out.add_amount(kDecided, decided_ / 16.0);
  out.end_position();
}

std::optional<int64_t> TokenWalk::value_beginning(int64_t high) const {
  if (high == 0) return std::nullopt;  // the most significant digit is never 0
  const auto begins = [&](int64_t value) {
    value /= kRadix;
    while (value > high) value /= kRadix;
    return value == high;
  };
  if (example_ >= 0 && begins(example_)) return example_;
  for (const int64_t value : answer_.examples())
    if (value >= kRadix && begins(value) && answer_.allows(value)) return value;
  int64_t first = high, count = 1;
  while (first <= std::numeric_limits<int64_t>::max() / kRadix - kRadix) {
    first *= kRadix;
    count *= kRadix;
    const int64_t last = std::min(first + count - 1, answer_.most());
    if (first > last) break;
    const int64_t step = std::max<int64_t>(1, (last - first) / kTried);
    for (int64_t value = first; value <= last; value += step)
      if (answer_.allows(value)) return value;
  }
  return std::nullopt;
}

bool TokenWalk::allows(uint8_t token) const {
  if (token >= kOutputs || done()) return false;
  if (token < kRadix) return answer_.allows(high_ * kRadix + token);
  if (high_ > answer_.most() / kRadix) return false;
  return value_beginning(high_ * kRadix + token - kRadix).has_value();
}

std::bitset<kOutputs> TokenWalk::allowed() const {
  std::bitset<kOutputs> result;
  for (int token = 0; token < kOutputs; ++token) result[token] = allows(token);
  return result;
}

bool TokenWalk::take(uint8_t token) {
  if (token >= kOutputs || done()) return false;
  if (token < kRadix) {
    const int64_t value = high_ * kRadix + token;
    if (!answer_.take(value)) return false;
    high_ = written_ = 0;
    example_ = -1;
    before_ = value;
    ++decided_;
    return true;
  }
  if (high_ > answer_.most() / kRadix) return false;
  const int64_t high = high_ * kRadix + token - kRadix;
  const auto example = value_beginning(high);
  if (!example) return false;
  high_ = high;
  ++written_;
  example_ = *example;
  return true;
}

}  // namespace tensorsmith::learn::lm
