// The attributes of a device file, listed once. The reader and the writer of files, the checks, the key of a
// device, the list of assumed attributes and the table in docs/devices.md all go through this list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "target/target.h"

namespace tensorsmith::target {

struct Attribute {
  enum Flags : uint8_t {
    kNone = 0,
    kRequired = 1,
    kInKey = 2,         // Device::key()
    kInKeyIfKnown = 4,  // as kInKey, but only if it is not 0
    kDecides = 8,       // decides how long a program takes: predictions say if its value is assumed
    kDecidesOnCpus = 16,
  };
  // Points to the value in a device; monostate if devices of that kind lack the attribute.
  using Place =
      std::variant<std::monostate, std::string*, double*, int*, int64_t*, std::vector<std::string>*>;

  std::string_view name;
  std::string_view unit;     // empty: the value has no unit
  std::string_view meaning;  // text for docs/devices.md
  int flags = kNone;
  std::string_view source;            // source of the default, or the figure used instead; empty: no default
  Place (*place)(Device&) = nullptr;  // nullptr: the attribute is the kind

  bool is(Flags flag) const { return (flags & flag) != 0; }
  bool applies_to(DeviceKind kind) const;
};

// Returns all attributes in the order in which files list them.
std::span<const Attribute> attributes();

// Calls fn with the value of the attribute, except for the kind itself. Returns whether devices of this kind
// have the attribute.
template <typename D, typename Fn>
bool visit_value(const Attribute& attribute, D& device, const Fn& fn) {
  if (attribute.place == nullptr) return true;
  const auto visitor = [&]<typename T>(T place) {
    if constexpr (std::is_pointer_v<T>) {
      if constexpr (std::is_const_v<D>) {
        fn(std::as_const(*place));
      } else {
        fn(*place);
      }
    }
  };
  const Attribute::Place place = attribute.place(const_cast<Device&>(device));
  std::visit(visitor, place);
  return place.index() != 0;
}

// Formats a number as "3", "1.6" or "1e+07".
std::string number_text(double value);
// Returns the table of docs/devices.md, in Markdown.
std::string attribute_table();

}  // namespace tensorsmith::target
