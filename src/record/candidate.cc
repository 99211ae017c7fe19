#include "record/candidate.h"

#include <array>
#include <charconv>
#include <utility>

namespace tensorsmith::record {

namespace {

constexpr std::array<std::pair<Reason, std::string_view>, 11> kReasonNames = {{
    {Reason::kUnstated, "unstated"},
    {Reason::kDefault, "default"},
    {Reason::kFallback, "fallback"},
    {Reason::kPredicted, "predicted"},
    {Reason::kNeighbour, "neighbour"},
    {Reason::kUncertain, "uncertain"},
    {Reason::kRandom, "random"},
    {Reason::kTransferred, "transferred"},
    {Reason::kEnumerated, "enumerated"},
    {Reason::kSeeded, "seeded"},
    {Reason::kWritten, "written"},
}};

std::optional<DesignPoint> parse_point(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  DesignPoint point;
  const char* const end = text.data() + slash;
  const auto parsed = std::from_chars(text.data(), end, point.sketch);
  auto decisions = parse_decisions(text.substr(slash + 1));
  if (parsed.ec != std::errc() || parsed.ptr != end || point.sketch < 0 || !decisions) return std::nullopt;
  point.decisions = std::move(*decisions);
  return point;
}

}  // namespace

std::string_view to_string(Reason reason) {
  for (const auto& [value, name] : kReasonNames)
    if (value == reason) return name;
  return "unstated";
}

std::optional<Reason> parse_reason(std::string_view name) {
  for (const auto& [value, known] : kReasonNames)
    if (known == name) return value;
  return std::nullopt;
}

std::string print_decisions(const std::vector<int64_t>& decisions) {
  std::string text;
  for (const int64_t d : decisions) text += (text.empty() ? "" : ",") + std::to_string(d);
  return text;
}

std::optional<std::vector<int64_t>> parse_decisions(std::string_view text) {
  std::vector<int64_t> decisions;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    int64_t value = 0;
    const auto parsed = std::from_chars(p, end, value);
    if (parsed.ec != std::errc()) return std::nullopt;
    decisions.push_back(value);
    p = parsed.ptr;
    if (p == end) break;
    if (*p++ != ',' || p == end) return std::nullopt;
  }
  return decisions;
}

CandidateOrigin parse_origin(std::string_view text) {
  CandidateOrigin candidate;
  if (text == "default") {
    candidate.reason = Reason::kDefault;
    return candidate;
  }
  if (const size_t colon = text.find(':'); colon != std::string_view::npos)
    candidate.point = parse_point(text.substr(colon + 1));
  const auto& point = candidate.point;
  if (!point || "search:" + std::to_string(point->sketch) + "/" + print_decisions(point->decisions) != text)
    candidate.note = text;
  return candidate;
}

}  // namespace tensorsmith::record
