#include "tools/evaluation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "lab/evaluation_run.h"
#include "lab/kinds/kinds.h"
#include "learn/latency/queries.h"

namespace tensorsmith::tools {
namespace {

struct NamedFile {
  std::string name, path;
};
// Parses "NAME=FILE" or "FILE"; a '/' before the '=' shows that the whole text is a path.
NamedFile named_file(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || text.find('/') < equals) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Scores by device, for each model with the row's name.
using Cell = std::map<std::string, std::vector<learn::Scores>>;

struct Row {
  std::string name;
  bool ranks_only = false;
  std::vector<Cell> cells;  // by column
};

double mean_of(const std::vector<learn::Scores>& scores, double learn::Scores::* value) {
  double sum = 0;
  for (const learn::Scores& s : scores) sum += s.*value;
  return sum / scores.size();
}

double deviation_of(const std::vector<learn::Scores>& scores, double learn::Scores::* value) {
  const double mean = mean_of(scores, value);
  double sum = 0;
  for (const learn::Scores& s : scores) sum += (s.*value - mean) * (s.*value - mean);
  return scores.size() > 1 ? std::sqrt(sum / (scores.size() - 1)) : 0;
}

std::string text_of(const Cell& cell, bool ranks_only, const std::string& device) {
  double mape = 0, median = 0, deviation = 0, top1 = 0, top5 = 0;
  int devices = 0;
  size_t models = 0;
  for (const auto& [name, scores] : cell) {
    if (!device.empty() && name != device) continue;
    mape += mean_of(scores, &learn::Scores::mape);
    median += mean_of(scores, &learn::Scores::mape_median);
    deviation += deviation_of(scores, &learn::Scores::mape);
    top1 += mean_of(scores, &learn::Scores::top1);
    top5 += mean_of(scores, &learn::Scores::top5);
    models = std::max(models, scores.size());
    ++devices;
  }
  if (devices == 0) return "-";
  const double n = devices;
  std::string out;
  if (!ranks_only) {
    out = fmt::format("{:.1f}", 100 * mape / n);
    if (models > 1) out += fmt::format(" ± {:.1f}", 100 * deviation / n);
    out += fmt::format(" ({:.1f}) %, ", 100 * median / n);
  }
  return out + fmt::format("{:.3f} / {:.3f}", top1 / n, top5 / n);
}

// Returns the test records of the model's devices if some of them are in the split's training part;
// otherwise all test records.
std::vector<int64_t> test_records(const engine::ModelData& data, const learn::Split& split,
                                  const learn::ModelCard& card) {
  std::set<uint32_t> trained;
  for (size_t d = 0; d < data.devices().size(); ++d) {
    if (std::find(card.devices.begin(), card.devices.end(), data.devices()[d]->name) != card.devices.end())
      trained.insert(d);
  }
  std::vector<int64_t> all = split.records_of(learn::Part::kTest), own;
  for (const int64_t i : all) {
    if (trained.count(data.store().entry(i).device) != 0) own.push_back(i);
  }
  return own.empty() ? all : own;
}

}  // namespace

Result<std::string> evaluation_table(const engine::ModelData& data, const std::vector<std::string>& models,
                                     const std::vector<std::string>& splits, int threads) {
  std::vector<std::string> columns;  // splits with the same name share a column
  std::vector<learn::Split> loaded;
  std::vector<size_t> column_of;  // by split
  for (const std::string& text : splits) {
    NamedFile file = named_file(text);
    if (file.name.empty()) file.name = std::filesystem::path(file.path).stem().string();
    TS_ASSIGN_OR_RETURN(learn::Split split, data.load_split(file.path));
    const auto column = std::find(columns.begin(), columns.end(), file.name);
    column_of.push_back(column - columns.begin());
    if (column == columns.end()) columns.push_back(file.name);
    loaded.push_back(std::move(split));
  }
  const SystemClock clock;
  std::vector<Row> rows;
  for (const std::string& text : models) {
    NamedFile file = named_file(text);
    TS_ASSIGN_OR_RETURN(const auto model, lab::cost_model_kinds().load(file.path));
    if (file.name.empty()) file.name = model->card().kind;
    size_t at = 0;
    while (at < loaded.size() && loaded[at].content_hash() != model->card().split) ++at;
    if (at == loaded.size())
      return Error{ErrorCode::kMismatch, file.path, "was trained with none of these splits"};
    lab::EvaluationRun run(*model, threads, clock);
    TS_RETURN_IF_ERROR(lab::evaluate_store(
        data.store(), data.devices(), test_records(data, loaded[at], model->card()), model->inputs(), run));
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == file.name; });
    if (row == rows.end())
      row = rows.insert(row, {file.name, model->ranks_only(), std::vector<Cell>(columns.size())});
    for (const auto& [device, scores] : run.evaluation().by_device()) {
      if (scores.records > 0) row->cells[column_of[at]][device].push_back(scores);
    }
  }

  std::string out = "| model | device |", line = "|---|---|";
  for (const std::string& name : columns) {
    out += " " + name + " |";
    line += "---|";
  }
  out += "\n" + line + "\n";
  for (const Row& row : rows) {
    std::set<std::string> devices;
    for (const Cell& cell : row.cells) {
      for (const auto& [device, scores] : cell) devices.insert(device);
    }
    const auto add = [&](const std::string& label, const std::string& device) {
      out += "| " + row.name + " | " + label + " |";
      for (const Cell& cell : row.cells) out += " " + text_of(cell, row.ranks_only, device) + " |";
      out += "\n";
    };
    for (const std::string& device : devices) add(device, device);
    if (devices.size() > 1) add("mean", "");
  }
  return out;
}

}  // namespace tensorsmith::tools
