// Base64 (RFC 4648, section 4): three bytes as four letters, the last group filled up with '='.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorsmith {

std::string to_base64(std::string_view bytes);
// Returns nullopt for text that is not the base64 of any bytes. Line breaks are not accepted.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tensorsmith
