#include "learn/lm/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "base/result.h"

namespace tensorsmith::learn::lm {

namespace {

// Offsets of a number's features: its logarithm and the square of that, whether it is zero, bins of
// the logarithm, divisors, and the number itself if it is small.
constexpr int kLogarithm = 0, kSquare = 1, kZero = 2, kBins = 3, kBinCount = 21,
              kDivisors = kBins + kBinCount;
constexpr int64_t kDivisorList[] = {2, 4, 8, 16, 32, 64, 3, 5, 7};
constexpr int kItself = kDivisors + std::size(kDivisorList);
constexpr int64_t kLargestItself = kNumberFeatures - kItself - 1;
static_assert(kLargestItself >= 64);

}  // namespace

void Positions::add_number(NumberKind kind, int64_t value) {
  const int base = static_cast<int>(kind) * kNumberFeatures;
  const int64_t magnitude = value < 0 ? -value : value;
  const double log = std::log2(magnitude + 1.0);
  features.push_back({base + kLogarithm, static_cast<float>(log / 8)});
  features.push_back({base + kSquare, static_cast<float>(log * log / 64)});
  if (magnitude == 0) features.push_back({base + kZero, 1});
  // Interpolates between two bins, so that close numbers have similar features.
  const double place = std::min(log, kBinCount - 1.001);
  const int bin = static_cast<int>(place);
  const float above = place - bin;
  features.push_back({base + kBins + bin, 1 - above});
  if (above > 0) features.push_back({base + kBins + bin + 1, above});
  for (size_t i = 0; magnitude > 0 && i < std::size(kDivisorList); ++i)
    if (magnitude % kDivisorList[i] == 0) features.push_back({base + kDivisors + static_cast<int32_t>(i), 1});
  if (magnitude <= kLargestItself) features.push_back({base + kItself + static_cast<int32_t>(magnitude), 1});
}

void Positions::add_word(WordKind kind, std::string_view word, float weight) {
  const int32_t hashed = Hasher().add(word).digest64() % kWordFeatures;
  features.push_back({kFirstWord + static_cast<int32_t>(kind) * kWordFeatures + hashed, weight});
}

void Positions::add_amount(int amount, double value) {
  TS_CHECK(amount >= 0 && amount < kAmounts, "amount out of range");
  const auto weight = static_cast<float>(value);
  if (weight != 0) features.push_back({kFirstAmount + amount, weight});
}

void Positions::clear() {
  begin.assign(1, 0);
  features.clear();
}

void append_tokens(int64_t value, std::vector<uint8_t>& tokens) {
  TS_CHECK(value >= 0, "a number must not be negative");
  int shift = 0;
  while (shift < 60 && (value >> shift) >= kRadix) shift += 6;
  for (; shift > 0; shift -= 6) tokens.push_back(kRadix + ((value >> shift) & 63));
  tokens.push_back(value & 63);
}

}  // namespace tensorsmith::learn::lm
