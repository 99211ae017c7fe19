#include "feature/schema.h"

namespace tensorsmith::feature {

std::string Column::description() const {
  std::string out(sentence);
  if (const size_t at = out.find('%'); at != std::string::npos) out.replace(at, 1, subject);
  return out;
}

std::optional<size_t> Schema::find(std::string_view column) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].is_named(column)) return i;
  }
  return std::nullopt;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> out;
  for (const Column& column : columns) out.push_back(column.name());
  return out;
}

std::string_view to_string(Scale scale) {
  switch (scale) {
    case Scale::kPlain:
      return "x";
    case Scale::kLog2:
      return "log2(x)";
    case Scale::kSignedLog2:
      return "slog(x)";
  }
  return "";
}

std::string to_markdown(const Schema& schema) {
  std::string out = "## " + schema.name + "\n\n" + schema.rows + ".\n\n";
  out += "| column | number | x is in | x |\n|---|---|---|---|\n";
  for (const Column& column : schema.columns) {
    out += "| `" + column.name() + "` | " + std::string(to_string(column.scale)) + " | " +
           std::string(column.unit) + " | " + column.description() + " |\n";
  }
  return out;
}

}  // namespace tensorsmith::feature
