#include "learn/latency/tensorsmith_rows.h"

#include <cmath>

namespace tensorsmith::learn {
namespace {

PackSumData no_rows(feature::ProgramKind kind) {
  PackSumData rows;
  rows.width = TensorsmithModel::width(kind);
  rows.column_name = [kind](size_t column) { return TensorsmithModel::column_name(kind, column); };
  return rows;
}

}  // namespace

TreeRows tree_rows(const TensorsmithModel& model, feature::ProgramKind kind, const ChosenPrograms& programs,
                   const TrainingData& source) {
  const auto& [data, chosen] = programs;
  TreeRows out{no_rows(kind), {}};
  const std::vector<double> weights = task_weights(data, chosen);
  std::vector<float> all;
  std::vector<double> labels;
  for (const size_t i : chosen) {
    SummarizedProgram program = data.program(kind, i);
    program.base =
        model.base_seconds(program.summary, program.structure, source.devices[data.device[i]]->name);
    model.append_row(program, all);
    labels.push_back(std::log(data.seconds[i] / program.base));
  }
  std::vector<double> sums(chosen.size(), 0), rank_sums(chosen.size(), 0);
  if (!model.kinds[static_cast<size_t>(kind)].members.empty())
    model.add_trees(kind, all, sums, {}, rank_sums);
  const auto width = static_cast<size_t>(out.data.width);
  for (size_t i = 0; i < chosen.size(); ++i) {
    out.data.add(std::span(all).subspan(i * width, width), static_cast<float>(labels[i] - sums[i]),
                 static_cast<float>(weights[i]));
    out.rank_labels.push_back(static_cast<float>(labels[i] - rank_sums[i]));
  }
  return out;
}

PackSumData device_tree_rows(const TensorsmithModel& model, feature::ProgramKind kind,
                             const ChosenPrograms& programs) {
  const auto& [data, chosen] = programs;
  PackSumData rows = no_rows(kind);
  const std::vector<double> weights = task_weights(data, chosen);
  std::vector<float> row;
  for (size_t j = 0; j < chosen.size(); ++j) {
    SummarizedProgram program = data.program(kind, chosen[j]);
    program.base = model.base_seconds(program.summary, program.structure, "");
    row.clear();
    model.append_general_row(program, row);
    rows.add(row, static_cast<float>(std::log(data.seconds[chosen[j]] / program.base)),
             static_cast<float>(weights[j]));
  }
  return rows;
}

}  // namespace tensorsmith::learn
