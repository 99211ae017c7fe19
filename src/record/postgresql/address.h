// Addresses of PostgreSQL servers, and how to show them without secrets. Internal to src/record.
#pragma once

#include <string>
#include <string_view>

namespace tensorsmith::record {

// True for "postgresql://..." and "postgres://...".
bool is_postgresql_address(std::string_view text);

// "postgresql://user:secret@host/name?password=x&sslmode=require" ->
// "postgresql://user@host/name?sslmode=require". For text that is not a valid address, removes too
// much rather than too little.
std::string without_password(const std::string& address);

// Removes the passwords of the address from a message about it.
std::string without_passwords_of(const std::string& address, std::string message);

}  // namespace tensorsmith::record
