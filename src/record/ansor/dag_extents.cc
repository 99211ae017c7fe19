// Infers the extents of the axes of a printed DAG.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "ir/affine.h"
#include "record/ansor/dag.h"

namespace tensorsmith::record {

namespace {

using Kind = DagNode::Kind;

constexpr int64_t kLimit = int64_t{1} << 40;      // numbers in the text, elements of a tensor
constexpr int64_t kMaxPoints = int64_t{1} << 60;  // iterations of an operation
constexpr int64_t kMaxCoefficient = int64_t{1} << 20;

// An affine sum of axes, by their numbers.
using AxisSum = ir::AffineSum<int>;

class AxisSums final : public ir::AffineRules<AxisSums, AxisSum> {
 public:
  static AxisSum start(int64_t constant) { return constant; }
  static void push(AxisSum& a, int axis, int64_t coefficient) { a.terms.push_back({axis, coefficient}); }
  static size_t count(const AxisSum& a) { return a.terms.size(); }
  static const AxisSum::Term& term(const AxisSum& a, size_t i) { return a.terms[i]; }
  static bool before(int a, int b) { return a < b; }
  static int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return ir::saturating_multiply_add(a, b, factor);
  }
};

std::optional<AxisSum> sum_of(const DagOperation& op, int id);

std::optional<AxisSum> combined(const DagOperation& op, const DagNode& node) {
  const auto a = sum_of(op, node.children[0]);
  const auto b = sum_of(op, node.children[1]);
  if (!a || !b) return std::nullopt;
  AxisSums sums;
  if (node.binary == ir::BinaryOp::kAdd) return sums.add(*a, *b);
  if (node.binary == ir::BinaryOp::kSub) return sums.add(*a, *b, -1);
  if (node.binary != ir::BinaryOp::kMul) return std::nullopt;
  if (b->is_constant()) return sums.scale(*a, b->constant);
  if (a->is_constant()) return sums.scale(*b, a->constant);
  return std::nullopt;
}

// Returns an index as a sum of axes; nullopt if it is not one, or if its numbers exceed what a
// shape can need.
std::optional<AxisSum> sum_of(const DagOperation& op, int id) {
  const DagNode& node = op.nodes[id];
  std::optional<AxisSum> out;
  switch (node.kind) {
    case Kind::kInt:
      out = node.integer;
      break;
    case Kind::kAxis:
      out.emplace().terms.push_back({node.index, 1});
      break;
    case Kind::kBinary:
      out = combined(op, node);
      break;
    case Kind::kCast:  // of indices, between integer types
      return sum_of(op, node.children[0]);
    case Kind::kFloat:
    case Kind::kRead:
    case Kind::kUnary:
    case Kind::kSelect:
    case Kind::kCall:
      return std::nullopt;
  }
  if (!out || out->constant > kLimit || out->constant < -kLimit) return std::nullopt;
  for (const AxisSum::Term& term : out->terms)
    if (term.coefficient > kMaxCoefficient || term.coefficient < -kMaxCoefficient) return std::nullopt;
  return out;
}

// low <= axis < high, from the conditions around a read; 0 and kLimit mean unbounded.
struct Guard {
  int64_t low = 0, high = kLimit;
};

// One index of one read.
struct IndexUse {
  int tensor = 0;
  size_t dimension = 0;
  std::optional<AxisSum> sum;  // nullopt: not a sum of axes
  std::vector<Guard> guards;   // by axis
};

class Inference {
 public:
  Inference(const DagSyntax& dag, const DagExtents& known, bool symmetric)
      : dag_(dag), symmetric_(symmetric) {
    extents_.resize(dag.size());
    uses_.resize(dag.size());
    for (size_t o = 0; o < dag.size(); ++o) {
      const DagOperation& op = dag[o];
      if (op.is_placeholder) {
        extents_[o] = op.shape;
        continue;
      }
      extents_[o].assign(op.axes.size(), 0);
      for (size_t a = 0; a < op.axes.size() && o < known.size() && a < known[o].size(); ++a)
        extents_[o][a] = known[o][a];
      collect(o, op.body, std::vector<Guard>(op.axes.size()));
    }
  }

  Result<DagExtents> run() {
    while (true) {
      if (forward()) continue;
      const auto open = first_open();
      if (!open) break;
      if (!backward()) {
        const DagOperation& op = dag_[open->first];
        return Error{ErrorCode::kNotFound, std::to_string(op.line) + ":" + std::to_string(op.column),
                     "the extent of axis '" + op.axes[open->second] + "' of '" + op.name +
                         "' does not follow from the text"};
      }
    }
    TS_RETURN_IF_ERROR(check());
    return std::move(extents_);
  }

 private:
  void collect(size_t o, int id, const std::vector<Guard>& guards) {
    const DagOperation& op = dag_[o];
    const DagNode& node = op.nodes[id];
    if (node.kind == Kind::kSelect) {
      collect(o, node.children[0], guards);
      std::vector<Guard> inner = guards;
      assume(op, node.children[0], inner);
      collect(o, node.children[1], inner);
      collect(o, node.children[2], guards);
      return;
    }
    if (node.kind == Kind::kRead) {
      for (size_t d = 0; d < node.children.size(); ++d)
        uses_[o].push_back({node.index, d, sum_of(op, node.children[d]), guards});
    }
    for (int child : node.children) collect(o, child, guards);
  }

  static void assume(const DagOperation& op, int id, std::vector<Guard>& guards) {
    const DagNode& node = op.nodes[id];
    if (node.kind != Kind::kBinary) return;
    if (node.binary == ir::BinaryOp::kAnd) {
      assume(op, node.children[0], guards);
      assume(op, node.children[1], guards);
      return;
    }
    const DagNode& axis = op.nodes[node.children[0]];
    const DagNode& limit = op.nodes[node.children[1]];
    if (axis.kind != Kind::kAxis || limit.kind != Kind::kInt) return;
    if (limit.integer > kLimit || limit.integer < -kLimit) return;
    Guard& guard = guards[axis.index];
    switch (node.binary) {
      case ir::BinaryOp::kGe:
        guard.low = std::max(guard.low, limit.integer);
        break;
      case ir::BinaryOp::kGt:
        guard.low = std::max(guard.low, limit.integer + 1);
        break;
      case ir::BinaryOp::kLt:
        guard.high = std::min(guard.high, limit.integer);
        break;
      case ir::BinaryOp::kLe:
        guard.high = std::min(guard.high, limit.integer + 1);
        break;
      default:
        break;
    }
  }

  std::optional<std::pair<size_t, size_t>> first_open() const {
    for (size_t o = 0; o < extents_.size(); ++o) {
      for (size_t a = 0; a < extents_[o].size(); ++a) {
        if (extents_[o][a] == 0) return std::pair{o, a};
      }
    }
    return std::nullopt;
  }

  // Returns the extent that the use implies for its only unknown axis; 0 if it implies none.
  int64_t suggested(size_t o, const IndexUse& use, bool sums, size_t* open_axis) const {
    const int64_t dimension = extents_[use.tensor][use.dimension];
    if (dimension == 0 || !use.sum) return 0;
    int64_t rest = dimension - 1 - use.sum->constant, factor = 0;
    size_t open = SIZE_MAX;
    for (const auto& [axis, c] : use.sum->terms) {
      if (extents_[o][axis] == 0) {
        if (open != SIZE_MAX || c < 0) return 0;
        open = axis;
        factor = c;
      } else if (c > 0) {
        rest -= c * (extents_[o][axis] - 1);
      }
    }
    if (open == SIZE_MAX || (use.sum->terms.size() > 1) != sums || rest < 0) return 0;
    *open_axis = open;
    const Guard& guard = use.guards[open];
    const int64_t whole = rest / factor + 1;
    // The padding behind is not known.
    if (guard.high >= whole && guard.high != kLimit && guard.low == 0) return 0;
    if (guard.high == kLimit) return whole;
    return symmetric_ ? guard.high + guard.low : 0;
  }

  // Infers axes that index a dimension alone before axes in sums.
  bool forward() {
    for (const bool sums : {false, true}) {
      bool found = false;
      for (size_t o = 0; o < dag_.size(); ++o) {
        std::vector<int64_t> best(extents_[o].size(), 0);
        for (const IndexUse& use : uses_[o]) {
          size_t axis = 0;
          const int64_t extent = suggested(o, use, sums, &axis);
          if (extent > 0 && (best[axis] == 0 || extent < best[axis])) best[axis] = extent;
        }
        for (size_t a = 0; a < best.size(); ++a) {
          if (best[a] == 0) continue;
          extents_[o][a] = best[a];
          found = true;
        }
        // One operation at a time, since other operations may then get simpler reads.
        if (found && sums) return true;
      }
      if (found) return true;
    }
    return false;
  }

  // Makes an unknown dimension as long as its readers need.
  bool backward() {
    for (size_t t = 0; t < dag_.size(); ++t) {
      for (size_t d = 0; d < dag_[t].rank; ++d) {
        if (extents_[t][d] != 0) continue;
        int64_t needed = 0;
        for (size_t o = t + 1; o < dag_.size(); ++o) {
          for (const IndexUse& use : uses_[o]) {
            if (use.tensor == static_cast<int>(t) && use.dimension == d && use.sum)
              needed = std::max(needed, reach(o, *use.sum) + 1);
          }
        }
        if (needed <= 0) continue;
        extents_[t][d] = needed;
        return true;
      }
    }
    return false;
  }

  // Returns the largest value of the sum, or -1 if an axis is unknown.
  int64_t reach(size_t o, const AxisSum& sum) const {
    int64_t value = sum.constant;
    for (const auto& [axis, coefficient] : sum.terms) {
      const int64_t extent = extents_[o][axis];
      if (extent == 0) return -1;
      if (coefficient > 0) value += coefficient * (extent - 1);
    }
    return value;
  }

  Status check() const {
    for (size_t o = 0; o < dag_.size(); ++o) {
      int64_t points = 1;
      for (size_t a = 0; a < extents_[o].size(); ++a) {
        const int64_t extent = extents_[o][a];
        if (extent > (a < dag_[o].rank ? kLimit : kMaxPoints) / points)
          return mismatch(o, "has too many elements");
        points *= extent;
      }
      for (const IndexUse& use : uses_[o]) {
        if (!use.sum) continue;
        const bool guarded = std::any_of(use.guards.begin(), use.guards.end(),
                                         [](const Guard& g) { return g.low != 0 || g.high != kLimit; });
        if (!guarded && reach(o, *use.sum) >= extents_[use.tensor][use.dimension])
          return mismatch(o, "reads beyond the end of '" + dag_[use.tensor].name + "'");
      }
    }
    return {};
  }
  Error mismatch(size_t o, const std::string& what) const {
    return {ErrorCode::kMismatch, std::to_string(dag_[o].line) + ":" + std::to_string(dag_[o].column),
            "'" + dag_[o].name + "' " + what};
  }

  const DagSyntax& dag_;
  const bool symmetric_;
  DagExtents extents_;
  std::vector<std::vector<IndexUse>> uses_;
};

}  // namespace

Result<DagExtents> infer_extents(const DagSyntax& dag, const DagExtents& known) {
  auto symmetric = Inference(dag, known, true).run();
  if (symmetric.ok()) return symmetric;
  // If the padding is not symmetric, pads only as much as is read.
  auto needed = Inference(dag, known, false).run();
  return needed.ok() ? std::move(needed) : std::move(symmetric);
}

DagExtents extents_of_key(const DagSyntax& dag, std::string_view workload_key) {
  DagExtents known(dag.size());
  const auto json = parse_json<nlohmann::json>(workload_key);
  if (!json.is_array() || json.empty() || !json[0].is_string() || dag.empty()) return known;
  const auto positive = [](const nlohmann::json& v) {
    return v.is_number_integer() && v > 0 && v < kLimit ? v.get<int64_t>() : int64_t{0};
  };
  if (json[0] == "pool_layer" && json.size() > 7) {  // kind, N, C, H, W, window height and width, ...
    for (size_t o = 0; o < dag.size(); ++o) {
      if (dag[o].combiner == ir::Combiner::kNone || dag[o].axes.size() != dag[o].rank + 2) continue;
      known[o].assign(dag[o].axes.size(), 0);
      known[o][dag[o].rank] = positive(json[6]);
      known[o][dag[o].rank + 1] = positive(json[7]);
    }
    return known;
  }
  // ["md5", shape of each input, shape of the output], as nested or flat lists.
  const DagOperation& last = dag.back();
  if (last.is_placeholder || json[0].get_ref<const std::string&>().size() != 32) return known;
  std::vector<int64_t> flat;
  for (size_t i = 1; i < json.size(); ++i) {
    if (json[i].is_array()) {
      for (const auto& v : json[i]) flat.push_back(positive(v));
    } else {
      flat.push_back(positive(json[i]));
    }
  }
  size_t expected = last.rank;
  for (const DagOperation& op : dag) expected += op.is_placeholder ? op.rank : 0;
  if (flat.size() == expected) known.back().assign(flat.end() - last.rank, flat.end());
  return known;
}

}  // namespace tensorsmith::record
