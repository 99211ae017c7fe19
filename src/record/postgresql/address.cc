#include "record/postgresql/address.h"

#include <algorithm>
#include <vector>

namespace tensorsmith::record {

namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

struct Split {
  std::string shown;
  std::vector<std::string> secrets;  // passwords as written in the address
};

Split split(const std::string& address) {
  Split out;
  const size_t scheme = address.find("://");
  if (scheme == std::string::npos) return {address, {}};
  const size_t begin = scheme + 3;
  // An '@' or '/' in a password should be written as %40 or %2F; passwords with unescaped
  // characters are hidden too.
  size_t at = address.rfind('@', address.find('?', begin));
  if (at == std::string::npos || at < begin) {
    at = address.find('@', begin);
    if (at != std::string::npos && address.find('/', begin) < at) at = std::string::npos;
  }
  out.shown = address.substr(0, begin);
  size_t rest = begin;
  if (at != std::string::npos) {
    const std::string user = address.substr(begin, at - begin);
    const size_t colon = user.find(':');
    out.shown += user.substr(0, colon) + "@";
    if (colon != std::string::npos) out.secrets.push_back(user.substr(colon + 1));
    rest = at + 1;
  }
  const size_t question = address.find('?', rest);
  out.shown += address.substr(rest, question == std::string::npos ? question : question - rest);
  char before = '?';
  for (size_t i = question; i != std::string::npos;) {
    const size_t end = address.find('&', i + 1);
    const std::string parameter =
        address.substr(i + 1, end == std::string::npos ? std::string::npos : end - i - 1);
    const size_t equals = parameter.find('=');
    const std::string name = percent_decoded(parameter.substr(0, equals));
    if (name == "password" || name == "sslpassword") {
      if (equals != std::string::npos) out.secrets.push_back(parameter.substr(equals + 1));
    } else {
      out.shown += before + parameter;
      before = '&';
    }
    i = end;
  }
  return out;
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  if (what.empty()) return;
  for (size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + with.size()))
    text.replace(i, what.size(), with);
}

}  // namespace

bool is_postgresql_address(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

std::string without_password(const std::string& address) { return split(address).shown; }

std::string without_passwords_of(const std::string& address, std::string message) {
  const Split parts = split(address);
  replace_all(message, address, parts.shown);
  for (const std::string& secret : parts.secrets) {
    replace_all(message, secret, "***");
    replace_all(message, percent_decoded(secret), "***");
  }
  return message;
}

}  // namespace tensorsmith::record
