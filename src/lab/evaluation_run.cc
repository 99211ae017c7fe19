#include "lab/evaluation_run.h"

#include <algorithm>
#include <limits>

#include "learn/latency/queries.h"

namespace tensorsmith::lab {

namespace {
constexpr size_t kEvaluatedAtOnce = 4096;
constexpr size_t kPart = 256;  // programs of a batch per call of engine::predict()
}  // namespace

EvaluationRun::EvaluationRun(const learn::CostModel& model, int threads, const Clock& clock, Seen seen)
    : model_(model),
      clock_(clock),
      seen_(std::move(seen)),
      threads_(threads),
      pool_(std::max(1, threads - 1)) {
  batch_.resize(kEvaluatedAtOnce);
}

Status EvaluationRun::add(EvaluatedProgram& program) {
  std::swap(batch_[filled_], program);
  return ++filled_ == kEvaluatedAtOnce ? flush() : Status();
}

Status EvaluationRun::flush() {
  const learn::ModelInputs inputs = model_.inputs();
  std::vector<learn::ProgramQuery> queries;
  std::vector<feature::FeatureMatrix> rows(inputs.rows ? filled_ : 0);
  std::vector<size_t> places;
  for (size_t i = 0; i < filled_; ++i) {
    const EvaluatedProgram& p = batch_[i];
    if (p.leaves.vectors.rows == 0) {
      evaluation_.add(*p.workload, p.device->name, std::numeric_limits<double>::infinity(), {});
      continue;
    }
    if (inputs.rows) rows[i] = p.leaves.per_store();
    queries.push_back({p.workload, &p.leaves, inputs.trace ? &p.trace : nullptr, p.device,
                       inputs.rows ? &rows[i] : nullptr});
    queries.back().parts = p.parts ? &*p.parts : nullptr;
    places.push_back(i);
  }
  filled_ = 0;
  const int64_t parts = (queries.size() + kPart - 1) / kPart;
  std::vector<Result<std::vector<learn::Prediction>>> results(parts, std::vector<learn::Prediction>());
  const auto work = [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const size_t begin = part * kPart;
      results[part] =
          model_.predict(std::span(queries).subspan(begin, std::min(kPart, queries.size() - begin)));
    }
  };
  const double start = clock_.monotonic_seconds();
  if (threads_ > 1) {
    pool_.parallel_for(parts, 1, work);
  } else {
    work(0, parts);
  }
  seconds_ += clock_.monotonic_seconds() - start;
  predicted_ += static_cast<int64_t>(queries.size());
  for (size_t part = 0; part < results.size(); ++part) {
    TS_RETURN_IF_ERROR(results[part].ok() ? Status() : Status(results[part].error()));
    for (size_t i = 0; i < results[part]->size(); ++i) {
      const EvaluatedProgram& p = batch_[places[part * kPart + i]];
      const learn::Prediction& prediction = (*results[part])[i];
      evaluation_.add(*p.workload, p.device->name, p.seconds, prediction);
      if (seen_) TS_RETURN_IF_ERROR(seen_(p, prediction));
    }
  }
  return {};
}

double EvaluationRun::programs_per_second() const { return seconds_ > 0 ? predicted_ / seconds_ : 0; }

Status evaluate_store(const learn::Store& store, const std::vector<const target::Device*>& devices,
                      const std::vector<int64_t>& records, const learn::ModelInputs& inputs,
                      EvaluationRun& run) {
  EvaluatedProgram program;
  learn::RecordedEstimates estimates(store, devices);
  for (const int64_t i : records) {
    const learn::Store::Entry entry = store.entry(i);
    program.workload = &store.workloads()[entry.workload];
    program.device = devices[entry.device];
    store.leaves(i, program.leaves);
    if (inputs.parts) {
      TS_ASSIGN_OR_RETURN(program.parts, estimates.of(i));
    }
    if (inputs.trace) {
      TS_ASSIGN_OR_RETURN(program.trace, store.trace(i));
    }
    program.seconds = entry.failed() ? std::numeric_limits<double>::infinity() : entry.mean_seconds;
    TS_RETURN_IF_ERROR(run.add(program));
  }
  return run.finish();
}

}  // namespace tensorsmith::lab
