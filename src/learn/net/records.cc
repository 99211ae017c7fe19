#include "learn/net/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/hash.h"
#include "base/rng.h"
#include "record/disturbance.h"

namespace tensorsmith::learn::net {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Returns every n-th record, for the smallest n that leaves at most `most`.
std::vector<int64_t> thinned(const std::vector<int64_t>& records, int64_t most) {
  const int64_t n = std::ssize(records);
  const int64_t step = std::max<int64_t>(1, (n + most - 1) / most);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; i += step) out.push_back(records[i]);
  return out;
}

}  // namespace

Records::Records(const TrainingData& data, BatchOptions options)
    : data_(data),
      options_(std::move(options)),
      queries_(*data.store, data.devices, {.leaves = true, .trace = options_.steps || options_.summaries}) {}

uint32_t Records::task_of(const Store::Entry& entry) const {
  return entry.workload * static_cast<uint32_t>(data_.store->devices().size()) + entry.device;
}

Result<std::unique_ptr<Records>> Records::create(const TrainingData& data, const BatchOptions& options,
                                                 bool failed) {
  auto out = std::unique_ptr<Records>(new Records(data, options));
  const Store& store = *data.store;
  out->least_seconds_.assign(store.workloads().size() * store.devices().size(), kNever);
  for (const int64_t i : data.train) {
    const Store::Entry entry = store.entry(i);
    if (entry.leaves == 0 || (entry.failed() && !failed)) continue;
    const uint32_t task = out->task_of(entry);
    out->train_.push_back(i);
    out->train_task_.push_back(task);
    if (!entry.failed()) out->least_seconds_[task] = std::min(out->least_seconds_[task], entry.mean_seconds);
  }
  if (std::none_of(out->least_seconds_.begin(), out->least_seconds_.end(),
                   [](double s) { return s < kNever; }))
    return Error{ErrorCode::kInvalidArgument, "", "there is no measured program to train on"};
  std::vector<double> least(out->least_seconds_.size(), kNever);
  std::vector<std::pair<uint32_t, int64_t>> validation;
  for (const int64_t i : data.validation) {
    const Store::Entry entry = store.entry(i);
    if (entry.leaves == 0 || entry.failed()) continue;
    const uint32_t task = out->task_of(entry);
    validation.emplace_back(task, i);
    least[task] = std::min(least[task], entry.mean_seconds);
  }
  for (size_t t = 0; t < least.size(); ++t) {
    if (out->least_seconds_[t] == kNever) out->least_seconds_[t] = least[t];
  }
  std::sort(validation.begin(), validation.end());
  for (const auto& [task, i] : validation) out->validation_.push_back(i);
  for (const int64_t i : data.unlabelled) {
    if (store.entry(i).leaves > 0) out->unlabelled_.push_back(i);
  }
  return out;
}

std::vector<int64_t> Records::order(uint64_t seed, int epoch, int list) const {
  Rng rng(Hasher().add(seed).add(epoch).digest64());
  if (list <= 0) {
    std::vector<int64_t> out = train_;
    rng.shuffle(out);
    return out;
  }
  // Shuffles records within their tasks, cuts them into lists, and shuffles the lists.
  std::vector<size_t> places(train_.size());
  std::iota(places.begin(), places.end(), size_t{0});
  rng.shuffle(places);
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return train_task_[a] < train_task_[b]; });
  const size_t most = list;
  const auto same_task = [&](size_t i, size_t j) { return train_task_[places[i]] == train_task_[places[j]]; };
  std::vector<size_t> starts;
  for (size_t i = 0, length = 0; i < places.size(); ++i, ++length) {
    if (i > 0 && length < most && same_task(i, i - 1)) continue;
    starts.push_back(i);
    length = 0;
  }
  rng.shuffle(starts);
  std::vector<int64_t> out;
  out.reserve(train_.size());
  for (const size_t start : starts) {
    for (size_t i = start; i < std::min(places.size(), start + most) && same_task(i, start); ++i)
      out.push_back(train_[places[i]]);
  }
  return out;
}

Status Records::read_unlabelled(std::span<const int64_t> records, Batch& out) {
  out.clear();
  TS_ASSIGN_OR_RETURN(const std::span<const ProgramQuery> queries, queries_.make(records));
  for (const ProgramQuery& query : queries) TS_RETURN_IF_ERROR(out.add(query, options_));
  return {};
}

Status Records::read(std::span<const int64_t> records, Batch& out) {
  TS_RETURN_IF_ERROR(read_unlabelled(records, out));
  for (const int64_t i : records) {
    const Store::Entry entry = data_.store->entry(i);
    const uint32_t task = task_of(entry);
    const double seconds = entry.failed() ? kNever : entry.mean_seconds;
    out.log_seconds.push_back(std::log(seconds));
    out.trust.push_back(static_cast<float>(record::trust(entry.disturbance)));
    out.score.push_back(static_cast<float>(entry.failed() ? 0 : least_seconds_[task] / seconds));
    out.task.push_back(task);
  }
  return {};
}

Result<Records::Fit> Records::fit(ScalingKind scaling, const std::string& transform, int64_t most) {
  ColumnStatistics rows(feature::kPerStoreWidth), steps(options_.step_options.width());
  std::vector<ColumnStatistics> summaries;
  for (int k = 0; k < feature::kProgramKinds; ++k)
    summaries.emplace_back(summary_width(static_cast<feature::ProgramKind>(k)));
  std::vector<double> labels;
  const std::vector<int64_t> records = thinned(train_, most);
  Batch batch;
  constexpr size_t kChunk = 1024;
  for (size_t at = 0; at < records.size(); at += kChunk) {
    TS_RETURN_IF_ERROR(read(std::span(records).subspan(at, std::min(kChunk, records.size() - at)), batch));
    rows.add(batch.rows);
    steps.add(batch.steps);
    for (size_t k = 0; k < summaries.size(); ++k) summaries[k].add(batch.summaries[k].values);
    for (size_t p = 0; p < batch.log_seconds.size(); ++p) {
      if (std::isfinite(batch.log_seconds[p])) labels.push_back(batch.log_seconds[p] - batch.base[p]);
    }
  }
  Fit out{{rows.scaling(scaling), steps.scaling(scaling), {}}, LabelTransform::fit(transform, labels)};
  for (size_t k = 0; k < summaries.size(); ++k) out.inputs.summaries[k] = summaries[k].scaling(scaling);
  return out;
}

}  // namespace tensorsmith::learn::net
