// Timings beside other engines, as `python -m tensorsmith.peers --json` writes them.
#pragma once

#include <string>
#include <vector>

#include "engine/report_data.h"

namespace tensorsmith::engine {

// {"results": [{"model", "threads", "peer", "tensorsmith_ms", "peer_ms", "ratio", "ratio_p10", "ratio_p90"}, ...]};
// other members count nothing. kCorrupt: the reason names the member; kNotFound, kIo.
Result<std::vector<ReportPeer>> read_peers(const std::string& path);

}  // namespace tensorsmith::engine
