#include "base/base64.h"

#include <array>
#include <cstdint>

namespace tensorsmith {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoLetter = 64;

constexpr std::array<uint8_t, 256> kValueOfLetter = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoLetter);
  for (size_t i = 0; i < kLetters.size(); ++i) values[static_cast<unsigned char>(kLetters[i])] = i;
  return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kLetters[group >> (18 - 6 * k) & 63];
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t missing = i + 4 == text.size() ? padding : 0;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const uint8_t value = k < 4 - missing ? kValueOfLetter[static_cast<unsigned char>(text[i + k])] : 0;
      if (value == kNoLetter) return std::nullopt;
      group = group << 6 | value;
    }
    for (size_t k = 0; k < 3 - missing; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
    if ((group & ((uint32_t{1} << 8 * missing) - 1)) != 0) return std::nullopt;  // bits that no byte has
  }
  return out;
}

}  // namespace tensorsmith
