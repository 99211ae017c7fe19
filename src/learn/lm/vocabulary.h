// The tensor language: what a language model reads and writes.
//
// It reads positions. A position is a set of features, entries of one table of embeddings with a weight each; its
// vector is the weighted sum of the entries. Numbers become features of their size, their divisors and, where they are
// small, themselves; words are hashed. So there is no number, operator or device that has no features.
//
// It writes numbers, in base-64 digits, the most significant one first: kOutputs tokens, so that any number can be
// written and small ones are one token. A number has one spelling.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tensorsmith::learn::lm {

inline constexpr int kRadix = 64;  // the base
inline constexpr int kOutputs =
    2 * kRadix;  // 0 .. 63: the last digit; 64 .. 127: a digit that another one follows
inline constexpr int kNumberFeatures = 104;  // entries that one kind of number takes
inline constexpr int kWordFeatures = 512;    // entries that words of one kind are hashed to

// Kinds of numbers. Each has features of its own.
enum class NumberKind : uint8_t {
  kExtent,    // of an axis
  kElements,  // of a tensor
  kStride,    // by which an axis moves a read
  kLimit,     // the most that the next decision can be
  kDecided,   // the decision before
  kDigits,    // the digits of the number that is being written
  kDraft,     // what the analytic estimate's favourite has here
  kSimilar,   // what a fast program of a similar task has here, made to fit
  kSimilar2,  // another one
  kCategories,
  kCount,
};
// Kinds of words.
enum class WordKind : uint8_t {
  kPosition,  // what a position is about: "device", "axis", "decision"
  kOperation,
  kAxis,
  kSketch,
  kSlot,
  kDevice,
  kCount,
};

inline constexpr int kFirstWord = static_cast<int>(NumberKind::kCount) * kNumberFeatures;
inline constexpr int kFirstAmount = kFirstWord + static_cast<int>(WordKind::kCount) * kWordFeatures;
inline constexpr int kAmounts = 64;  // entries whose weight is a figure: of a device, of how much is decided
inline constexpr int kFeatures = kFirstAmount + kAmounts;

struct Feature {
  int32_t entry = 0;  // 0 .. kFeatures - 1
  float weight = 1;
  friend bool operator==(const Feature&, const Feature&) = default;
};

// Positions one after the other, each a list of features.
struct Positions {
  std::vector<int32_t> begin{0};  // of each position in features; one more at the end
  std::vector<Feature> features;

  size_t size() const { return begin.size() - 1; }
  // Ends the position that features were added to.
  void end_position() { begin.push_back(static_cast<int32_t>(features.size())); }
  void add_number(NumberKind kind, int64_t value);
  void add_word(WordKind kind, std::string_view word, float weight = 1);
  // amount: 0 .. kAmounts - 1; a weight of about 1 at most.
  void add_amount(int amount, float value);
  void clear();
};

// Appends the digits of a number >= 0 as tokens, at most 11.
void append_tokens(int64_t value, std::vector<uint8_t>& tokens);

}  // namespace tensorsmith::learn::lm
