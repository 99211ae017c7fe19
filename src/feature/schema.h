// Feature schemas as data: each column has a name, a unit and a descriptive sentence. Code names a
// column by a string literal, which the compiler resolves to an index; no index is written by hand.
#pragma once

#include <array>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::feature {

// How the number in a column follows from the quantity x.
enum class Scale : uint8_t {
  kPlain,       // x
  kLog2,        // log2(x), x > 0
  kSignedLog2,  // sign(x) log2(|x| + 1)
};

struct Column {
  // The name is group + field. Columns of a group share one of the two parts, e.g. "B0." in
  // "B0.bytes".
  std::string_view group, field;
  std::string_view unit;  // unit of the quantity, e.g. "bytes"; also "ratio" and "flag" (0 or 1)
  Scale scale = Scale::kPlain;
  std::string_view sentence;  // description; "%" stands for `subject`
  std::string_view subject;   // topic of the group's columns: "floating-point"
  bool of_device = false;     // the same for all programs of a device
  bool of_size = false;       // describes the size of the workload, which later programs may exceed

  static constexpr Column plain(std::string_view name, std::string_view unit, std::string_view sentence) {
    return {"", name, unit, Scale::kPlain, sentence, ""};
  }
  static constexpr Column flag(std::string_view name, std::string_view sentence) {
    return plain(name, "flag", sentence);
  }
  static constexpr Column log2(std::string_view name, std::string_view unit, std::string_view sentence) {
    return {"", name, unit, Scale::kLog2, sentence, ""};
  }
  // A column of a program summary that is a time.
  static constexpr Column resource(std::string_view name, std::string_view sentence) {
    return plain(name, "seconds", sentence);
  }
  static constexpr Column device(Column column) {
    column.of_device = true;
    return column;
  }
  static constexpr Column size(Column column) {
    column.of_size = true;
    return column;
  }
  static constexpr Column amount(std::string_view name, std::string_view unit, std::string_view sentence,
                                 std::string_view subject = "") {
    return {"", name, unit, Scale::kSignedLog2, sentence, subject};
  }

  constexpr bool is_named(std::string_view name) const {
    return name.starts_with(group) && name.substr(group.size()) == field;
  }
  std::string name() const { return std::string(group) + std::string(field); }
  std::string description() const;
};

// Concatenates the columns of several parts.
template <size_t... N>
consteval auto concatenated(const std::array<Column, N>&... parts) {
  std::array<Column, (N + ...)> out{};
  size_t at = 0;
  const auto append = [&](const auto& part) {
    for (const Column& column : part) out[at++] = column;
  };
  (append(parts), ...);
  return out;
}

// Makes the fields the columns of a group, whose name precedes theirs.
template <size_t N>
consteval std::array<Column, N> grouped(std::string_view group, std::string_view subject,
                                        std::array<Column, N> fields) {
  for (Column& column : fields) {
    column.group = group;
    column.subject = subject;
  }
  return fields;
}

// Makes the fields the columns of a group, whose name follows theirs.
template <size_t N>
consteval std::array<Column, N> grouped_behind(std::string_view suffix, std::string_view subject,
                                               std::array<Column, N> fields) {
  for (Column& column : fields) {
    column.group = column.field;
    column.field = suffix;
    column.subject = subject;
  }
  return fields;
}

// Returns the index of a column. This is a constant expression, and thus compiles, only if the
// schema has the column.
template <size_t N>
constexpr size_t place_of(const std::array<Column, N>& columns, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (columns[i].is_named(name)) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "no column has this name");
}
// Returns the index of the first column of a group.
template <size_t N>
constexpr size_t place_of_group(const std::array<Column, N>& columns, std::string_view group) {
  for (size_t i = 0; i < N; ++i) {
    if (columns[i].group == group) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "no group has this name");
}

// Returns the index at which `part` is contained in `columns`.
template <size_t N, size_t M>
constexpr size_t place_of_part(const std::array<Column, N>& columns, const std::array<Column, M>& part) {
  for (size_t i = 0; i + M <= N; ++i) {
    if (columns[i].group == part[0].group && columns[i].field == part[0].field) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "the columns do not contain this part");
}

// A column of the schema, resolved from its name at compile time.
template <const auto& kColumns>
class ColumnName {
 public:
  consteval ColumnName(const char* name) : place_(place_of(kColumns, name)) {}  // NOLINT: by its name
  constexpr size_t place() const { return place_; }

 private:
  size_t place_;
};

// A group of columns, resolved from its name at compile time.
template <const auto& kColumns>
class GroupName {
 public:
  consteval GroupName(std::string_view group)
      : place_(place_of_group(kColumns, group)) {}  // NOLINT: by its name
  constexpr size_t place() const { return place_; }

 private:
  size_t place_;
};

// Numbers in the order of the columns.
template <const auto& kColumns, class T = const float>
class ColumnValues {
 public:
  explicit ColumnValues(std::span<T> values) : values_(values.first(kColumns.size())) {}
  T& operator[](ColumnName<kColumns> column) const { return values_[column.place()]; }
  // Returns the quantity of a column with Scale::kSignedLog2, i.e. undoes the scaling.
  double quantity(ColumnName<kColumns> column) const { return quantity_at(column.place()); }
  // The same by index, for loops over all columns.
  double quantity_at(size_t place) const {
    const double x = values_[place];
    return std::copysign(std::exp2(std::abs(x)) - 1, x);
  }
  // The columns of a group, addressed by their fields.
  template <const auto& kFields>
  ColumnValues<kFields, T> group(GroupName<kColumns> name) const {
    return ColumnValues<kFields, T>(values_.subspan(name.place(), kFields.size()));
  }
  template <const auto& kPart>
  ColumnValues<kPart, T> part() const {
    constexpr size_t kPlace = place_of_part(kColumns, kPart);
    return ColumnValues<kPart, T>(values_.subspan(kPlace, kPart.size()));
  }
  std::span<T> values() const { return values_; }

 private:
  std::span<T> values_;
};

// The quantities of a row that is being built; each is set by its column's name.
template <const auto& kColumns>
class Quantities {
 public:
  void set(ColumnName<kColumns> column, double value) {
    values_[column.place()] = value;
    set_.set(column.place());
  }
  // Sets all columns of a part at once; `first` is the first of them.
  template <const auto& kPart>
  void set(ColumnName<kColumns> first, const Quantities<kPart>& part) {
    for (size_t i = 0; i < kPart.size(); ++i) {
      values_[first.place() + i] = part.values()[i];
      set_.set(first.place() + i);
    }
  }
  // The values in the order of the columns. All of them must have been set.
  const std::array<double, kColumns.size()>& values() const {
    TS_CHECK(set_.all(), "a column of the schema has no value");
    return values_;
  }

 private:
  std::array<double, kColumns.size()> values_{};
  std::bitset<kColumns.size()> set_;
};

// A schema for documentation and for looking up columns at run time.
struct Schema {
  std::string name;  // "per-store"
  std::string rows;  // a sentence that says what a row describes
  std::span<const Column> columns;

  std::optional<size_t> find(std::string_view column) const;
  std::vector<std::string> names() const;
};

// Returns "x", "log2(x)" or "slog(x)".
std::string_view to_string(Scale scale);
// Returns a heading and a table of the columns.
std::string to_markdown(const Schema& schema);

}  // namespace tensorsmith::feature
