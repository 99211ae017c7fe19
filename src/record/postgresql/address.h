// Addresses of PostgreSQL servers, and what of them may be shown. For use inside the room.
#pragma once

#include <string>
#include <string_view>

namespace tensorsmith::record {

// "postgresql://..." or "postgres://...".
bool is_postgresql_address(std::string_view text);

// "postgresql://user:secret@host/name?password=x&sslmode=require" -> "postgresql://user@host/name?sslmode=require". Of text
// that is no proper address, rather too much is left out.
std::string without_password(const std::string& address);

// A message about the address without the passwords in it.
std::string without_passwords_of(const std::string& address, std::string message);

}  // namespace tensorsmith::record
