// What a language model writes about a prompt: decisions, one after the other, each a number that is not negative.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "learn/lm/vocabulary.h"

namespace tensorsmith::learn::lm {

// How good the answer is meant to be: what a model is told for each sentence that it learns from, and asked for when it
// writes. Of measured programs, how much slower than the fastest known one of the task.
enum class Quality : uint8_t {
  kUnmeasured,
  kBest,
  kWithin2,
  kWithin5,
  kWithin10,
  kWithin25,
  kWithin100,
  kSlow,
  kCount
};
// slower: seconds over those of the fastest one, minus 1.
Quality quality_of(double slower);

// The grammar of an answer. What is allowed can always be continued to a whole answer.
class Answer {
 public:
  virtual ~Answer() = default;
  virtual bool done() const = 0;
  // Of the next decision: the values that are possible, least() .. most(), and whether one is allowed.
  virtual int64_t least() const = 0;
  virtual int64_t most() const = 0;
  virtual bool allows(int64_t value) const = 0;
  // Decides. False, and nothing is changed: the value is not allowed.
  virtual bool take(int64_t value) = 0;
  // Adds features that say what is decided next to the position under way.
  virtual void describe(Positions& out) const = 0;
  // Values of which some are likely to be allowed where few are: what is tried first.
  virtual std::vector<int64_t> examples() const = 0;
};

// An answer token by token. No sequence of allowed tokens ends before the answer does.
class TokenWalk {
 public:
  explicit TokenWalk(Answer& answer) : answer_(answer) {}
  // Goes on where another is. answer: a copy of that one's.
  TokenWalk(const TokenWalk& other, Answer& answer)
      : answer_(answer),
        high_(other.high_),
        written_(other.written_),
        example_(other.example_),
        before_(other.before_),
        decided_(other.decided_) {}

  bool done() const { return answer_.done() && !writing(); }
  // A position that says what comes next: the decision, the digits so far, the decision before.
  void describe(Quality quality, Positions& out) const;
  bool allows(uint8_t token) const;
  std::bitset<kOutputs> allowed() const;
  // False, and nothing is changed: the token is not allowed.
  bool take(uint8_t token);

 private:
  bool writing() const { return written_ > 0; }
  // An allowed value whose digits begin with `high`, which is not 0, and go on; nothing: none was found.
  std::optional<int64_t> value_beginning(int64_t high) const;

  Answer& answer_;
  int64_t high_ = 0;      // the digits of the number under way
  int written_ = 0;       // how many they are
  int64_t example_ = -1;  // an allowed value that begins with them
  int64_t before_ = -1;   // the decision before; -1: there is none
  int decided_ = 0;
};

}  // namespace tensorsmith::learn::lm
