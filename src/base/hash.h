// Stable 64- and 128-bit hashes: the same on every machine and in every version, so they may be stored.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace tensorsmith {

// Finalizer of SplitMix64: a bijection of 64-bit words with full avalanche.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Streaming hasher; the order of add() calls matters. Not cryptographic.
class Hasher {
 public:
  Hasher& add(uint64_t word) {
    a_ = mix64(a_ ^ word);
    b_ = mix64(b_ + (word * 0xff51afd7ed558ccdULL) + 0x2545f4914f6cdd1dULL);
    return *this;
  }
  template <class E>
    requires std::is_enum_v<E>
  Hasher& add(E value) {
    return add(static_cast<uint64_t>(value));
  }
  Hasher& add(std::string_view bytes) { return add(bytes.size()).add_words(bytes); }
  // Adds the bytes as words; the last word is filled up with zeros.
  Hasher& add_words(std::string_view bytes) {
    uint64_t word = 0;
    while (bytes.size() >= 8) {
      std::memcpy(&word, bytes.data(), 8);
      add(word);
      bytes.remove_prefix(8);
    }
    if (!bytes.empty()) {
      word = 0;
      std::memcpy(&word, bytes.data(), bytes.size());
      add(word);
    }
    return *this;
  }
  uint64_t digest64() const { return mix64(a_ ^ mix64(b_)); }
  // Returns a number in [0, 1).
  double uniform() const { return (digest64() >> 11) * 0x1.0p-53; }
  // Returns 32 lower-case hex digits: the content key used in databases and file names.
  std::string hex128() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(32, '0');
    const uint64_t words[2] = {mix64(a_ + 1), mix64(b_ ^ a_)};
    for (int w = 0; w < 2; ++w) {
      for (int i = 0; i < 16; ++i) out[w * 16 + i] = kDigits[(words[w] >> (60 - 4 * i)) & 15];
    }
    return out;
  }

 private:
  uint64_t a_ = 0x243f6a8885a308d3ULL;
  uint64_t b_ = 0x13198a2e03707344ULL;
};

inline std::string content_key(std::string_view bytes) { return Hasher().add(bytes).hex128(); }

}  // namespace tensorsmith
