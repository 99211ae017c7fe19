// Feature schemas as data: every column with its name, its unit and a sentence. Code names a column by a
// literal, and the compiler finds its place in the schema; no place is written down anywhere.
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

// How a column's number follows from the quantity x.
enum class Scale : uint8_t {
  kPlain,       // x
  kLog2,        // log2(x), x > 0
  kSignedLog2,  // sign(x) log2(|x| + 1)
};

struct Column {
  // The name is both together: columns of a group have one part in common, "B0." and "bytes".
  std::string_view group, field;
  std::string_view unit;  // of the quantity: "bytes"; "ratio", "flag" (0 or 1)
  Scale scale = Scale::kPlain;
  std::string_view sentence;  // "%" stands for the subject
  std::string_view subject;   // what the columns of the group are about: "floating-point"
  bool of_device = false;     // the same for all programs of a device
  bool of_size = false;       // says how large the workload is, which programs to come may surpass

  static constexpr Column plain(std::string_view name, std::string_view unit, std::string_view sentence) {
    return {"", name, unit, Scale::kPlain, sentence, ""};
  }
  static constexpr Column flag(std::string_view name, std::string_view sentence) {
    return plain(name, "flag", sentence);
  }
  static constexpr Column log2(std::string_view name, std::string_view unit, std::string_view sentence) {
    return {"", name, unit, Scale::kLog2, sentence, ""};
  }
  // Of a summary: a time.
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

// Columns of several parts, one part after the other.
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

// The fields as the columns of a group.
template <size_t N>
consteval std::array<Column, N> grouped(std::string_view group, std::string_view subject,
                                        std::array<Column, N> fields) {
  for (Column& column : fields) {
    column.group = group;
    column.subject = subject;
  }
  return fields;
}

// The same with the group's part of the name behind.
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

// The place of a column. A constant expression, and so compiled, only where the schema has the column.
template <size_t N>
constexpr size_t place_of(const std::array<Column, N>& columns, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (columns[i].is_named(name)) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "no column has this name");
}
// The place of the first column of a group.
template <size_t N>
constexpr size_t place_of_group(const std::array<Column, N>& columns, std::string_view group) {
  for (size_t i = 0; i < N; ++i) {
    if (columns[i].group == group) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "no group has this name");
}

// The place of columns that stand among others.
template <size_t N, size_t M>
constexpr size_t place_of_part(const std::array<Column, N>& columns, const std::array<Column, M>& part) {
  for (size_t i = 0; i + M <= N; ++i) {
    if (columns[i].group == part[0].group && columns[i].field == part[0].field) return i;
  }
  throw_internal_error(__FILE__, __LINE__, "the columns are no part of these");
}

// One of the columns, made of its name while compiling.
template <const auto& kColumns>
class ColumnName {
 public:
  consteval ColumnName(const char* name) : place_(place_of(kColumns, name)) {}  // NOLINT: by its name
  constexpr size_t place() const { return place_; }

 private:
  size_t place_;
};

// One of the groups of columns, likewise.
template <const auto& kColumns>
class GroupName {
 public:
  consteval GroupName(std::string_view group)
      : place_(place_of_group(kColumns, group)) {}  // NOLINT: by its name
  constexpr size_t place() const { return place_; }

 private:
  size_t place_;
};

// Numbers that stand in the order of the columns.
template <const auto& kColumns, class T = const float>
class ColumnValues {
 public:
  explicit ColumnValues(std::span<T> values) : values_(values.first(kColumns.size())) {}
  T& operator[](ColumnName<kColumns> column) const { return values_[column.place()]; }
  // The quantity of a column with Scale::kSignedLog2.
  double quantity(ColumnName<kColumns> column) const { return quantity_at(column.place()); }
  // By its place, to go through all of them.
  double quantity_at(size_t place) const {
    const double x = values_[place];
    return std::copysign(std::exp2(std::abs(x)) - 1, x);
  }
  // The columns of a group, by their fields.
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

// Quantities in the making, each set once by its name.
template <const auto& kColumns>
class Quantities {
 public:
  void set(ColumnName<kColumns> column, double value) {
    values_[column.place()] = value;
    set_.set(column.place());
  }
  // All columns of a part at once, the first of which has this name.
  template <const auto& kPart>
  void set(ColumnName<kColumns> first, const Quantities<kPart>& part) {
    for (size_t i = 0; i < kPart.size(); ++i) {
      values_[first.place() + i] = part.values()[i];
      set_.set(first.place() + i);
    }
  }
  // In the order of the columns.
  const std::array<double, kColumns.size()>& values() const {
    TS_CHECK(set_.all(), "a column of the schema has no value");
    return values_;
  }

 private:
  std::array<double, kColumns.size()> values_{};
  std::bitset<kColumns.size()> set_;
};

// A schema for people and for those who look columns up while running.
struct Schema {
  std::string name;  // "per-store"
  std::string rows;  // what a row of it is about, a sentence
  std::span<const Column> columns;

  std::optional<size_t> find(std::string_view column) const;
  std::vector<std::string> names() const;
};

// "x", "log2(x)", "slog(x)".
std::string_view to_string(Scale scale);
// A heading and a table of the columns.
std::string to_markdown(const Schema& schema);

}  // namespace tensorsmith::feature
