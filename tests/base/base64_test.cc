// Base64 text of bytes, and back.
#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tensorsmith::base64_test {
namespace {

TEST(Base64, ExamplesOfTheStandard) {
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, AllBytesComeBack) {
  Rng rng(7);
  for (size_t size = 0; size < 70; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(rng.next());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(Base64, OtherTextIsRefused) {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "Zg==Zg==", "Zm9v\n", "Zm9*", "Zh==", "Zm9="})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tensorsmith::base64_test
