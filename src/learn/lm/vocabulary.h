// The vocabulary of the language model: its inputs and outputs.
//
// Inputs are positions. A position is a set of features, each an entry of one embedding table with
// a weight; the position's vector is the weighted sum of the entries. A number is represented by
// its magnitude, its divisors and, if small, itself; words are hashed. So every number, operator
// and device has features.
//
// Outputs are numbers in base-64 digits, the most significant one first. With kOutputs tokens, any
// number can be written, small numbers are a single token, and each number has exactly one
// spelling.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tensorsmith::learn::lm {

inline constexpr int kRadix = 64;  // base of the digits
inline constexpr int kOutputs =
    2 * kRadix;  // 0 .. 63: the last digit; 64 .. 127: a digit that is followed by another one
inline constexpr int kNumberFeatures = 104;  // number of entries for one kind of number
inline constexpr int kWordFeatures = 512;    // number of entries that words of one kind are hashed to

// Kinds of numbers, each with entries of its own.
enum class NumberKind : uint8_t {
  kExtent,    // extent of an axis
  kElements,  // number of elements of a tensor
  kStride,    // elements by which an axis moves a read
  kLimit,     // greatest value of the next decision
  kDecided,   // the previous decision
  kDigits,    // digits so far of the number being written
  kDraft,     // this decision in the candidate that the analytic estimate ranks first
  kSimilar,   // this decision in a fast program of a similar task, adapted to this one
  kSimilar2,  // likewise, in another program
  kCategories,
  kCount,
};
// Kinds of words.
enum class WordKind : uint8_t {
  kPosition,  // subject of a position: "device", "axis", "decision"
  kOperation,
  kAxis,
  kSketch,
  kSlot,
  kDevice,
  kCount,
};

inline constexpr int kFirstWord = static_cast<int>(NumberKind::kCount) * kNumberFeatures;
inline constexpr int kFirstAmount = kFirstWord + static_cast<int>(WordKind::kCount) * kWordFeatures;
// Entries whose weight is an amount: a device figure, the number of decisions made.
inline constexpr int kAmounts = 64;
inline constexpr int kFeatures = kFirstAmount + kAmounts;

struct Feature {
  int32_t entry = 0;  // in [0, kFeatures)
  float weight = 1;
  friend bool operator==(const Feature&, const Feature&) = default;
};

// A sequence of positions, each a list of features.
struct Positions {
  std::vector<int32_t> begin{0};  // index of each position's first feature; one more at the end
  std::vector<Feature> features;

  size_t size() const { return begin.size() - 1; }
  // Ends the position that features have been added to.
  void end_position() { begin.push_back(features.size()); }
  void add_number(NumberKind kind, int64_t value);
  void add_word(WordKind kind, std::string_view word, float weight = 1);
  // amount: in [0, kAmounts). value: should not be much larger than 1.
  void add_amount(int amount, double value);
  void clear();
};

// Appends the digits of a nonnegative number as tokens, at most 11.
void append_tokens(int64_t value, std::vector<uint8_t>& tokens);

}  // namespace tensorsmith::learn::lm
