#include "learn/latency/tensorsmith_rows.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn {

namespace {

std::string tree_column_name(feature::ProgramKind kind, size_t column) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  for (const feature::Schema& part : {schema.resources, schema.columns}) {
    if (column < part.columns.size()) return part.columns[column].name();
    column -= part.columns.size();
  }
  return "base_over_roofline";
}

}  // namespace

void RowColumns::append_row(const feature::ProgramSummary& program, double base_seconds,
                            std::vector<float>& out) const {
  for (const double seconds : program.resources)
    out.push_back(static_cast<float>(std::log2(std::max(seconds / base_seconds, least_share))));
  const auto columns = feature::summary_schema(program.kind).columns.columns;
  for (size_t c = 0; c < program.columns.size(); ++c) {
    const bool hidden = (columns[c].of_device && !of_device) || (columns[c].of_size && !of_size);
    out.push_back(hidden ? 0 : program.columns[c]);
  }
  out.push_back(static_cast<float>(std::log2(base_seconds / program.roofline_seconds)));
}

size_t tree_row_width(feature::ProgramKind kind) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  return schema.resources.columns.size() + schema.columns.columns.size() + 1;
}

BaseRows base_rows(const TensorsmithBase& base, const RowColumns& columns, const ChosenPrograms& programs,
                   const TrainingData* source) {
  const KindData& data = programs.data;
  BaseRows out;
  for (const size_t i : programs.chosen) {
    const feature::ProgramSummary program = data.program(i);
    const double seconds =
        base.seconds(program, source != nullptr ? source->devices[data.device[i]]->name : "");
    columns.append_row(program, seconds, out.values);
    out.errors.push_back(std::log(data.seconds[i] / seconds));
  }
  return out;
}

PackSumData pack_rows(const ChosenPrograms& programs, std::span<const float> rows,
                      std::span<const double> labels) {
  const feature::ProgramKind kind = programs.data.kind;
  PackSumData out;
  out.width = tree_row_width(kind);
  out.column_name = [kind](size_t column) { return tree_column_name(kind, column); };
  const std::vector<double> weights = task_weights(programs);
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t width = rows.size() / labels.size();
    out.add(rows.subspan(i * width, width), static_cast<float>(labels[i]), static_cast<float>(weights[i]));
  }
  return out;
}

}  // namespace tensorsmith::learn
