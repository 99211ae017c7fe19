#include "learn/net/checkpoint.h"

#include <torch/serialize.h>

#include <sstream>

#include "base/input_file.h"
#include "record/jsonl.h"

namespace tensorsmith::learn::net {

namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

constexpr int64_t kMaxFileBytes = int64_t{8} << 30;

Tensor numbers_of(const TrainState& s) {
  return torch::tensor({static_cast<int64_t>(s.epoch), s.step, s.programs, static_cast<int64_t>(s.best_epoch),
                        std::ssize(s.best)},
                       torch::kInt64);
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> state_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const auto& item : module.named_parameters()) out.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) out.emplace_back(item.key(), item.value());
  return out;
}

Status save_checkpoint(const std::string& path, const std::string& training, const TrainState& state,
                       const torch::nn::Module& net, const torch::optim::Optimizer& optimizer) {
  OutputArchive archive;
  archive.write("training", c10::IValue(training));
  archive.write("numbers", numbers_of(state));
  archive.write("errors", torch::tensor({state.loss_sum, state.best_error}, torch::kFloat64));
  const auto now = state_of(net);
  for (size_t i = 0; i < now.size(); ++i) archive.write("now" + std::to_string(i), now[i].second);
  for (size_t i = 0; i < state.best.size(); ++i) archive.write("best" + std::to_string(i), state.best[i]);
  OutputArchive moments;
  optimizer.save(moments);
  archive.write("optimizer", moments);
  std::ostringstream bytes;
  archive.save_to(bytes);
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(writer->write(bytes.str()));
  return writer->commit();
}

namespace {

// Returns an empty string if there is no file.
Result<std::string> read_checkpoint(const std::string& path) {
  if (path.empty()) return std::string();
  auto bytes = read_input(path, kMaxFileBytes);
  if (!bytes.ok() && bytes.error().code == ErrorCode::kNotFound) return std::string();
  return bytes;
}

Status restore(std::string bytes, const std::string& path, const std::string& training, TrainState& state,
               torch::nn::Module& net, torch::optim::Optimizer& optimizer) {
  std::istringstream file(std::move(bytes));
  const torch::NoGradGuard no_gradients;
  try {
    InputArchive archive;
    archive.load_from(file);
    Tensor numbers, errors;
    c10::IValue name;
    archive.read("training", name);
    if (!name.isString() || name.toStringRef() != training)
      return Error{
          ErrorCode::kMismatch, path,
          "is the checkpoint of a training with other data or parameters; remove it or name another file"};
    archive.read("numbers", numbers);
    archive.read("errors", errors);
    const auto* n = numbers.data_ptr<int64_t>();
    TrainState read;
    read.epoch = static_cast<int>(n[0]);
    read.step = n[1];
    read.programs = n[2];
    read.best_epoch = static_cast<int>(n[3]);
    read.loss_sum = errors.data_ptr<double>()[0];
    read.best_error = errors.data_ptr<double>()[1];
    const auto now = state_of(net);
    for (size_t i = 0; i < now.size(); ++i) {
      Tensor value;
      archive.read("now" + std::to_string(i), value);
      now[i].second.copy_(value);
      if (n[4] == 0) continue;
      archive.read("best" + std::to_string(i), value);
      read.best.push_back(value.to(now[i].second.device()));
    }
    InputArchive moments;
    archive.read("optimizer", moments);
    optimizer.load(moments);
    state = std::move(read);
  } catch (const c10::Error&) {
    return Error{ErrorCode::kCorrupt, path, "is a damaged checkpoint; remove it to train from the start"};
  }
  return {};
}

}  // namespace

Status resume(const std::string& path, const std::string& training, ProcessGroup* group, TrainState& state,
              torch::nn::Module& net, torch::optim::Optimizer& optimizer) {
  std::string bytes;
  if (group == nullptr || group->rank() == 0) {
    TS_ASSIGN_OR_RETURN(bytes, read_checkpoint(path));
  }
  if (group != nullptr) {
    TS_RETURN_IF_ERROR(group->check_same(training, "trains with other data or parameters"));
    TS_ASSIGN_OR_RETURN(bytes, group->broadcast(std::move(bytes)));
  }
  if (!bytes.empty()) TS_RETURN_IF_ERROR(restore(std::move(bytes), path, training, state, net, optimizer));
  return group != nullptr ? group->broadcast(state_of(net)) : Status();
}

}  // namespace tensorsmith::learn::net
