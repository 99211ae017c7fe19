#include "engine/report/report_peers.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"

namespace tensorsmith::engine {
namespace {

constexpr int64_t kMaxPeersBytes = int64_t{16} << 20;

}  // namespace

Result<std::vector<ReportPeer>> read_peers(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMaxPeersBytes));
  const auto json = parse_json<nlohmann::json>(text);
  const auto corrupt = [&](const std::string& what) {
    return Error{ErrorCode::kCorrupt, path, what + "; name a file of `python -m tensorsmith.peers --json`"};
  };
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array())
    return corrupt("has no array 'results'");
  std::vector<ReportPeer> peers;
  for (size_t i = 0; i < json["results"].size(); ++i) {
    const auto& row = json["results"][i];
    const std::string place = "results[" + std::to_string(i) + "]";
    if (!row.is_object()) return corrupt(place + " is not an object");
    for (const char* name : {"model", "peer"})
      if (!row.contains(name) || !row[name].is_string())
        return corrupt(place + " has no string '" + name + "'");
    for (const char* name : {"threads", "tensorsmith_ms", "peer_ms", "ratio", "ratio_p10", "ratio_p90"}) {
      const bool positive = row.contains(name) && row[name].is_number() && row[name].get<double>() > 0;
      if (!positive || row[name].get<double>() > 1e12)
        return corrupt(place + " has no positive number '" + name + "'");
    }
    peers.push_back({row["model"], row["peer"], static_cast<int>(std::min(row["threads"].get<double>(), 1e6)),
                     1e-3 * row["tensorsmith_ms"].get<double>(), 1e-3 * row["peer_ms"].get<double>(),
                     row["ratio"], row["ratio_p10"], row["ratio_p90"]});
  }
  return peers;
}

}  // namespace tensorsmith::engine
