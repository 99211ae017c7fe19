// Reads timings against other engines, as `python -m tensorsmith.peers --json` writes them.
#pragma once

#include <string>
#include <vector>

#include "engine/report/report_data.h"

namespace tensorsmith::engine {

// Reads {"results": [{"model", "threads", "peer", "tensorsmith_ms", "peer_ms", "ratio",
// "ratio_p10", "ratio_p90"}, ...]}; other members are ignored. kCorrupt with a reason that names
// the member; kNotFound, kIo.
Result<std::vector<ReportPeer>> read_peers(const std::string& path);

}  // namespace tensorsmith::engine
