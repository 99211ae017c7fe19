#include "lab/label_programs.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_set>
#include <vector>

#include "learn/dataset/import.h"
#include "learn/latency/queries.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kLabelledAtOnce = 4096;

// Record numbers of the device itself, and of other devices of its kind for programs that the
// device has not run.
struct Programs {
  std::vector<int64_t> own, others;
};

Programs programs_for(const engine::ModelData& data, const learn::Split* split,
                      const target::Device& device) {
  const learn::Store& store = data.store();
  const std::string name = learn::stored_device_name(device);
  std::unordered_set<uint64_t> seen;
  Programs out;
  const auto add = [&](bool own, std::vector<int64_t>& to) {
    for (int64_t i = 0; i < store.size(); ++i) {
      const learn::Store::Entry entry = store.entry(i);
      const target::Device& on = *data.devices()[entry.device];
      if (entry.failed() || entry.leaves == 0 || on.kind() != device.kind()) continue;
      if ((on.key() == device.key() || on.name == name) != own) continue;
      const learn::Part part = split == nullptr ? learn::Part::kTrain : split->parts[i];
      if (part != learn::Part::kTrain && part != learn::Part::kValidation) continue;
      if (seen.insert(entry.program).second) to.push_back(i);
    }
  };
  add(true, out.own);
  add(false, out.others);
  return out;
}

class LabelWriter {
 public:
  LabelWriter(const learn::Store& store, const target::Device& device, learn::StoreWriter& writer)
      : store_(store), writer_(writer) {
    record_.device = writer.add_device(device.name, device);
  }

  Status add(int64_t record, double seconds) {
    const learn::Store::Entry entry = store_.entry(record);
    record_.workload = writer_.add_workload(store_.workloads()[entry.workload]);
    record_.unix_seconds = entry.unix_seconds;
    record_.seconds = {seconds};
    record_.mean_seconds = seconds;
    store_.leaves(record, record_.leaves);
    TS_ASSIGN_OR_RETURN(record_.trace, store_.trace(record));
    return writer_.add(record_);
  }

 private:
  const learn::Store& store_;
  learn::StoreWriter& writer_;
  learn::StoreRecord record_;
};

}  // namespace

Result<LabelledPrograms> label_programs(const engine::ModelData& data, const learn::Split* split,
                                        const learn::CostModel& model, const target::Device& device,
                                        const std::string& output) {
  if (model.ranks_only())
    return Error{ErrorCode::kUnsupported, model.card().kind,
                 "only ranks programs; use a model that predicts seconds"};
  const Programs programs = programs_for(data, split, device);
  if (programs.own.empty() && programs.others.empty())
    return Error{ErrorCode::kNotFound, "the store",
                 "has no program of a device of the same kind (CPU or GPU) as " + device.name};
  target::Device asked = device;
  asked.name = learn::stored_device_name(device);
  TS_ASSIGN_OR_RETURN(const auto writer, learn::StoreWriter::create(output));
  LabelWriter labels(data.store(), asked, *writer);
  LabelledPrograms out;
  for (const int64_t record : programs.own) {
    TS_RETURN_IF_ERROR(labels.add(record, data.store().entry(record).mean_seconds));
    ++out.measured;
  }
  learn::QueryBatch batch(data.store(), data.devices(), model.inputs());
  for (size_t begin = 0; begin < programs.others.size(); begin += kLabelledAtOnce) {
    const auto records =
        std::span(programs.others).subspan(begin, std::min(kLabelledAtOnce, programs.others.size() - begin));
    TS_ASSIGN_OR_RETURN(const auto made, batch.make(records));
    std::vector<learn::ProgramQuery> queries(made.begin(), made.end());
    for (auto& query : queries) query.device = &asked;
    TS_ASSIGN_OR_RETURN(const auto predictions, model.predict(queries));
    for (size_t i = 0; i < records.size(); ++i) {
      if (predictions[i].unseen.kind) {
        ++out.unknown;
        continue;
      }
      if (!std::isfinite(predictions[i].seconds)) {
        ++out.refused;
        continue;
      }
      TS_RETURN_IF_ERROR(labels.add(records[i], predictions[i].seconds));
      ++out.labelled;
    }
  }
  if (out.labelled == 0 && out.unknown > 0)
    return Error{ErrorCode::kMismatch, model.card().kind,
                 "the model was not trained on the kind of programs that run on " + device.name};
  TS_RETURN_IF_ERROR(writer->finish());
  return out;
}

}  // namespace tensorsmith::lab
