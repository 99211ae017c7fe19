// The output of a language model for a prompt: a sequence of decisions, each a nonnegative number.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "learn/lm/vocabulary.h"

namespace tensorsmith::learn::lm {

// Quality level of an answer. A model reads it with each sentence that it learns from, and it
// states the wanted level when the model generates. For measured programs, it says how much slower
// the program is than the task's fastest known one.
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
// slower: seconds / seconds of the fastest program - 1.
Quality quality_of(double slower);

// The grammar of an answer. Every allowed sequence of decisions can be continued to a complete
// answer.
class Answer {
 public:
  virtual ~Answer() = default;
  virtual bool done() const = 0;
  // The next decision: the range of possible values, least() to most(), and whether a value in it
  // is allowed.
  virtual int64_t least() const = 0;
  virtual int64_t most() const = 0;
  virtual bool allows(int64_t value) const = 0;
  // Makes the next decision. Returns false and changes nothing if the value is not allowed.
  virtual bool take(int64_t value) = 0;
  // Adds features of the next decision to the position that is being built.
  virtual void describe(Positions& out) const = 0;
  // Returns values that are likely to include allowed ones even if few are allowed; they are tried
  // first.
  virtual std::vector<int64_t> examples() const = 0;
};

// Writes an answer token by token. No sequence of allowed tokens gets stuck before the answer is
// complete.
class TokenWalk {
 public:
  explicit TokenWalk(Answer& answer) : answer_(answer) {}
  // Continues from the state of another walk. answer: a copy of the other's answer.
  TokenWalk(const TokenWalk& other, Answer& answer)
      : answer_(answer),
        high_(other.high_),
        written_(other.written_),
        example_(other.example_),
        before_(other.before_),
        decided_(other.decided_) {}

  bool done() const { return answer_.done() && !writing(); }
  // Adds a position that describes the next token: decision, digits so far and previous decision.
  void describe(Quality quality, Positions& out) const;
  bool allows(uint8_t token) const;
  std::bitset<kOutputs> allowed() const;
  // Returns false and changes nothing if the token is not allowed.
  bool take(uint8_t token);

 private:
  bool writing() const { return written_ > 0; }
  // Returns an allowed value that has further digits after the leading digits `high`, which must
  // not be 0; nothing if none was found.
  std::optional<int64_t> value_beginning(int64_t high) const;

  Answer& answer_;
  int64_t high_ = 0;      // the digits so far of the current number
  int written_ = 0;       // number of these digits
  int64_t example_ = -1;  // an allowed value that begins with these digits
  int64_t before_ = -1;   // the previous decision; -1: none
  int decided_ = 0;
};

}  // namespace tensorsmith::learn::lm
