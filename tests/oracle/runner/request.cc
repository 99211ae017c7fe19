#include "request.h"

#include <nlohmann/json.hpp>

namespace tensorsmith::oracle {
namespace {

using nlohmann::json;

json to_json(const std::vector<TensorReply>& tensors) {
  json list = json::array();
  for (const auto& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
  }
  return list;
}

}  // namespace

Result<Request> parse_request(std::string_view line) {
  const auto bad = [](const std::string& why) { return Error{ErrorCode::kInvalidArgument, "request", why}; };
  try {
    const json root = json::parse(line);
    Request request;
    request.directory = root.at("directory").get<std::string>();
    for (const json& entry : root.at("runs")) {
      RunRequest run;
      run.device = entry.value("device", run.device);
      run.threads = entry.value("threads", run.threads);
      run.seed = entry.value("seed", run.seed);
      const std::string schedule = entry.value("schedule", "default");
      if (schedule == "random") {
        run.schedule = ScheduleKind::kRandom;
      } else if (schedule == "interpreter") {
        run.schedule = ScheduleKind::kInterpreter;
      } else if (schedule != "default") {
        return bad("unknown schedule '" + schedule + "'");
      }
      request.runs.push_back(std::move(run));
    }
    return request;
  } catch (const json::exception& error) {
    return bad(error.what());
  }
}

std::string print(const Reply& reply) {
  json root = {
      {"inputs", to_json(reply.inputs)}, {"outputs", to_json(reply.outputs)}, {"tasks", reply.tasks}};
  if (!reply.stage.empty()) {
    root["stage"] = reply.stage;
    root["error"] = reply.error;
    root["code"] = reply.code;
  }
  root["runs"] = json::array();
  for (const auto& run : reply.runs) {
    json entry = {{"same_as", run.same_as}};
    if (!run.stage.empty()) {
      entry["stage"] = run.stage;
      entry["error"] = run.error;
    }
    if (!run.schedules.empty()) entry["schedules"] = run.schedules;
    root["runs"].push_back(std::move(entry));
  }
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tensorsmith::oracle
