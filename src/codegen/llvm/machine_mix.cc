#include "codegen/llvm/machine_mix.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "codegen/llvm/trace_accesses.h"

namespace tensorsmith::codegen {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <size_t N>
bool begins_with_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.starts_with(part); });
}
template <size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

// A line of assembly, for example "vfmadd231ps (%rax){1to16}, %zmm1, %zmm0   # 4-byte Folded
// Reload".
struct Line {
  std::string_view mnemonic, operands, comment;
  std::string_view last;  // last operand, which is the destination in AT&T syntax

  explicit Line(std::string_view text) {
    if (const size_t hash = text.find('#'); hash != std::string_view::npos) {
      comment = text.substr(hash);
      text = text.substr(0, hash);
    }
    const auto trim = [](std::string_view s) {
      const size_t first = s.find_first_not_of(" \t");
      if (first == std::string_view::npos) return std::string_view();
      return s.substr(first, s.find_last_not_of(" \t") - first + 1);
    };
    text = trim(text);
    const size_t space = text.find_first_of(" \t");
    mnemonic = text.substr(0, space);
    if (space != std::string_view::npos) operands = trim(text.substr(space));
    // Operands are separated by commas, except within the parentheses of an address.
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      depth += operands[i] == '(' ? 1 : operands[i] == ')' ? -1 : 0;
      if (operands[i] == ',' && depth == 0) begin = i + 1;
    }
    last = trim(operands.substr(begin));
  }
  bool is_instruction() const { return !mnemonic.empty() && mnemonic[0] != '.' && mnemonic.back() != ':'; }
  bool has_memory() const { return contains(operands, "("); }
  int vector_bytes() const {
    return contains(operands, "%zmm")   ? 64
           : contains(operands, "%ymm") ? 32
           : contains(operands, "%xmm") ? 16
                                        : 0;
  }
};

constexpr std::array<std::string_view, 7> kFmaNames = {"fmadd", "fmsub", "fnmadd", "fnmsub",
                                                       "dpb",   "dpw",   "pmadd"};
constexpr std::array<std::string_view, 3> kDivisionNames = {"div", "sqrt", "idiv"};
constexpr std::array<std::string_view, 20> kShuffleNames = {
    "shuf",  "perm",    "unpck", "pack",   "punpck",  "pshuf",    "insert",   "pinsr", "extract",  "pextr",
    "align", "palignr", "blend", "pblend", "movddup", "movsldup", "movshdup", "movd",  "compress", "expand"};
constexpr std::array<std::string_view, 3> kHalfMoveNames = {"movhl", "movlh", "movmsk"};

bool is_scalar_float(std::string_view mnemonic) {
  return mnemonic.ends_with("ss") || mnemonic.ends_with("sd") || mnemonic.ends_with("sh");
}

MachineCount kind_of(const Line& line) {
  using enum MachineCount;
  std::string_view m = line.mnemonic;
  if (m.starts_with("prefetch")) return kPrefetches;
  if (m[0] == 'j' || m.starts_with("call") || m.starts_with("ret")) return kBranches;
  const bool vector = line.vector_bytes() > 0;
  if (!vector && m[0] == 'k') return kMasks;
  if (!vector) return begins_with_any(m, kDivisionNames) ? kDivisions : kInteger;
  if (m[0] == 'v') m.remove_prefix(1);
  if (contains(m, "gather") || contains(m, "scatter")) return kGathers;
  if (begins_with_any(m, kFmaNames)) return is_scalar_float(m) ? kScalarFloat : kFma;
  if (begins_with_any(m, kDivisionNames)) return kDivisions;
  if (contains(m, "broadcast")) return line.has_memory() ? kMoves : kShuffles;
  if (begins_with_any(m, kShuffleNames) || begins_with_any(m, kHalfMoveNames)) {
    // Storing or loading a single element counts as a move.
    return line.has_memory() && m.starts_with("mov") ? kMoves : kShuffles;
  }
  if (m.starts_with("mov") || m.starts_with("lddqu")) return kMoves;
  return is_scalar_float(m) ? kScalarFloat : kArithmetic;
}

void count_memory(const Line& line, MachineMix& mix) {
  using enum MachineCount;
  if (contains(line.comment, "Reload")) return void(++mix[kReloads]);
  if (contains(line.comment, "Spill")) return void(++mix[kSpills]);
  const std::string_view m = line.mnemonic;
  if (!line.has_memory() || m.starts_with("lea") || m.starts_with("prefetch") || m.starts_with("nop")) return;
  if (contains(m, "gather") || contains(m, "scatter")) return;
  if (contains(m, "broadcast") || contains(line.operands, "{1to")) return void(++mix[kBroadcasts]);
  const bool into = contains(line.last, "(");
  const bool only_compares =
      m.starts_with("cmp") || m.starts_with("test") || m.starts_with("j") || m.starts_with("call");
  if (!into || only_compares) return void(++mix[kLoads]);
  ++mix[kStores];
  const bool reads_too = line.vector_bytes() == 0 && !m.starts_with("mov") && !m.starts_with("set");
  if (reads_too) ++mix[kLoads];
}

// Length of the chain of dependent floating-point operations that produced each vector register.
class Chain {
 public:
  void step(const Line& line, MachineCount kind) {
    const std::optional<size_t> destination = register_at(line.last, 0);
    if (!destination) return;
    double longest = 0;
    for (size_t at = line.operands.find("mm"); at != std::string_view::npos;
         at = line.operands.find("mm", at + 1)) {
      const auto source = register_at(line.operands, at == 0 ? 0 : at - 1);
      const bool is_destination = line.operands.data() + at >= line.last.data();
      if (source && (!is_destination || reads_destination(kind, line)))
        longest = std::max(longest, depth_[*source]);
    }
    const bool computes = kind == MachineCount::kFma || kind == MachineCount::kArithmetic ||
                          kind == MachineCount::kScalarFloat || kind == MachineCount::kDivisions;
    const bool clears =
        contains(line.mnemonic, "xor") && longest == depth_[*destination] && same_operands(line);
    depth_[*destination] = clears ? 0 : longest + (computes ? 1 : 0);
  }
  double longest() const { return *std::max_element(depth_.begin(), depth_.end()); }

 private:
  static bool reads_destination(MachineCount kind, const Line& line) {
    return kind == MachineCount::kFma || (line.mnemonic[0] != 'v' && kind != MachineCount::kMoves);
  }
  static bool same_operands(const Line& line) {
    const size_t comma = line.operands.find(',');
    return comma != std::string_view::npos && line.operands.substr(0, comma) == line.last;
  }
  // Returns 12 for "%zmm12".
  static std::optional<size_t> register_at(std::string_view text, size_t from) {
    const size_t at = text.find("mm", from);
    if (at == std::string_view::npos) return std::nullopt;
    size_t number = 0;
    const char* begin = text.data() + at + 2;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
    if (error != std::errc() || number >= kRegisters) return std::nullopt;
    return number;
  }
  static constexpr size_t kRegisters = 32;
  std::array<double, kRegisters> depth_{};
};

// The lines of one machine block.
struct MachineBlock {
  std::string_view label;  // ".LBB0_3", empty without one
  size_t number = 0;       // number of the block that it is counted for
  std::vector<Line> lines;

  bool repeats_itself() const {
    return !label.empty() && std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
      return line.mnemonic[0] == 'j' && line.operands == label;
    });
  }
  // Returns the chain of one execution; if the block is a loop by itself, the length that an
  // iteration adds.
  double chain() const {
    constexpr int kRuns = 4;
    Chain chain;
    double first = 0;
    for (int run = 0; run < kRuns; ++run) {
      for (const Line& line : lines) chain.step(line, kind_of(line));
      if (run == 0) first = chain.longest();
      if (!repeats_itself()) return first;
    }
    return (chain.longest() - first) / (kRuns - 1);
  }
  void count(MachineMix& mix) const {
    using enum MachineCount;
    for (const Line& line : lines) {
      const MachineCount kind = kind_of(line);
      ++mix[kInstructions];
      ++mix[kind];
      if (kind == kFma || kind == kArithmetic) mix[kArithmeticBytes] += line.vector_bytes();
      count_memory(line, mix);
    }
    mix[kChain] += chain();
  }
};

// Returns the number in "# %ts12", or nothing for blocks with other names.
std::optional<size_t> block_number(std::string_view comment) {
  const std::string prefix = std::string("%") + kBlockPrefix;
  const size_t at = comment.find(prefix);
  if (at == std::string_view::npos) return std::nullopt;
  size_t number = 0;
  const char* begin = comment.data() + at + prefix.size();
  const auto [end, error] = std::from_chars(begin, comment.data() + comment.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<MachineMix> machine_mixes(std::string_view text, size_t blocks) {
  std::vector<MachineMix> out(blocks);
  MachineBlock block;
  const auto finish = [&](std::string_view label, std::optional<size_t> number) {
    if (block.number < blocks) block.count(out[block.number]);
    block.lines.clear();
    block.label = label;
    if (number) block.number = *number;
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (raw.starts_with(".LBB") || raw.starts_with("# %bb.")) {
      const size_t colon = raw.find(':');
      finish(raw[0] == '.' ? raw.substr(0, colon) : std::string_view(), block_number(raw));
      continue;
    }
    if (raw.empty() || (raw[0] != '\t' && raw[0] != ' ')) continue;
    const Line line(raw);
    if (line.is_instruction()) block.lines.push_back(line);
  }
  finish({}, std::nullopt);
  return out;
}

}  // namespace tensorsmith::codegen
