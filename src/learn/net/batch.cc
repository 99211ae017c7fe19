#include "learn/net/batch.h"

#include <algorithm>
#include <cmath>

#include "learn/latency/roofline.h"

namespace tensorsmith::learn::net {

namespace {

double base_of(const ProgramQuery& query, BaseKind kind) {
  switch (kind) {
    case BaseKind::kNone:
      return 0;
    case BaseKind::kFlops:
      return std::log(std::max(query.workload->flops, 1.0) /
                      (std::max(query.device->peak_f32_gflops, 1.0) * 1e9));
    case BaseKind::kRoofline:
      return std::log(roofline_seconds(*query.leaves, *query.device));
  }
  return 0;
}

}  // namespace

int resource_count(feature::ProgramKind kind) {
  return static_cast<int>(feature::summary_schema(kind).resources.columns.size());
}
int summary_width(feature::ProgramKind kind) {
  return resource_count(kind) + static_cast<int>(feature::summary_schema(kind).columns.columns.size());
}

Status Batch::add_summary(const ProgramQuery& query) {
  if (query.trace == nullptr || query.leaves == nullptr)
    return Error{ErrorCode::kInvalidArgument, "program " + std::to_string(programs),
                 "has no schedule steps, which this model needs"};
  const auto summary = summarizer.summarize(query);
  SummaryRows& rows_of_kind = summaries[static_cast<size_t>(summary.kind)];
  rows_of_kind.places.push_back(programs);
  rows_of_kind.structure.push_back(static_cast<int64_t>(summary.structure));
  for (const double seconds : summary.resources) {
    const double share = std::log(std::max(seconds / summary.roofline_seconds, 1e-30));
    rows_of_kind.values.push_back(std::max(static_cast<float>(share), kLeastResource));
  }
  rows_of_kind.values.insert(rows_of_kind.values.end(), summary.columns.begin(), summary.columns.end());
  base.push_back(std::log(summary.roofline_seconds));
  return {};
}

void Batch::clear() {
  programs = 0;
  row_begin.assign(1, 0);
  step_begin.assign(1, 0);
  rows.clear();
  positions.clear();
  steps.clear();
  device.clear();
  device_features.clear();
  base.clear();
  for (SummaryRows& kind : summaries) kind = {};
  log_seconds.clear();
  trust.clear();
  score.clear();
  task.clear();
}

Status Batch::add(const ProgramQuery& query, const BatchOptions& options) {
  const auto bad = [&](const char* reason) {
    return Error{ErrorCode::kInvalidArgument, "program " + std::to_string(programs), reason};
  };
  if (row_begin.empty()) clear();
  if (query.device == nullptr) return bad("has no device to predict for");
  int64_t count = 0;
  if (options.rows != RowKind::kNone) {
    if (query.leaves == nullptr || query.leaves->vectors.rows == 0)
      return bad("has no features, because the program could not be built");
    const feature::LeafFeatures& leaves = *query.leaves;
    for (int l = 0; l < leaves.vectors.rows; ++l) {
      const size_t at = l;
      if (options.rows == RowKind::kStores && leaves.row_numbers[at] < 0) continue;
      const std::span<const float> row = leaves.vectors.row(l);
      rows.insert(rows.end(), row.begin(), row.end());
      positions.push_back(leaves.positions[at]);
      ++count;
    }
    if (count == 0) return bad("has no features, because the program could not be built");
  }
  row_begin.push_back(row_begin.back() + count);
  int64_t length = 0;
  if (options.steps) {
    if (query.trace == nullptr) return bad("has no schedule steps, which this model needs");
    length = encode_steps(*query.trace, options.step_options, steps);
  }
  step_begin.push_back(step_begin.back() + length);

  const auto named = std::find(options.devices.begin(), options.devices.end(), query.device->name);
  device.push_back(named == options.devices.end() ? -1 : named - options.devices.begin());
  const auto figures = device_columns(*query.device);
  for (const float figure : figures) device_features.push_back(figure / kDeviceScale);
  if (options.summaries) {
    TS_RETURN_IF_ERROR(add_summary(query));
  } else {
    base.push_back(base_of(query, options.base));
  }
  if (!std::isfinite(base.back())) return bad("has no finite estimate that the model could start from");
  ++programs;
  return {};
}

}  // namespace tensorsmith::learn::net
