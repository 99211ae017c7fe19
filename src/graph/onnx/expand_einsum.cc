// Einsum of more than two tensors as a sequence of products of two, in the order with the fewest multiplications.
#include <algorithm>
#include <bit>
#include <limits>

#include "graph/onnx/expand.h"
#include "graph/ops/einsum.h"

namespace tensorsmith::graph {

namespace {

// A set of operands, as bits.
using Operands = uint32_t;

class Contraction {
 public:
  Contraction(Expansion& e, const EinsumTerms& terms) : e_(e), terms_(terms), plans_(size_t{1} << count()) {}

  // Returns false if the labels are too many for the letters of an equation.
  bool name_labels() {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (terms_.extents.size() > kLetters.size()) return false;
    for (const auto& [label, extent] : terms_.extents) letters_.emplace(label, kLetters[letters_.size()]);
    return true;
  }

  // The sets are visited in the order of their numbers, so that all parts of a set come before it.
  void find_order() {
    for (Operands set = 1; set < plans_.size(); ++set) {
      Plan& plan = plans_[set];
      plan.labels = labels_left(set);
      if (std::has_single_bit(set)) {
        const Labels& own = terms_.operands[std::countr_zero(set)];
        plan.cost =
            plan.labels.size() < own.size() ? points(own) : 0;  // labels that nothing else has are summed
        continue;
      }
      plan.cost = std::numeric_limits<double>::infinity();
      // Each split once: the part with the lowest operand.
      const Operands lowest = set & (~set + 1);
      for (Operands part = (set - 1) & set; part != 0; part = (part - 1) & set) {
        if ((part & lowest) == 0) continue;
        const Plan& a = plans_[part];
        const Plan& b = plans_[set ^ part];
        Labels both = a.labels;
        for (const int label : b.labels)
          if (std::ranges::find(both, label) == both.end()) both.push_back(label);
        const double cost = a.cost + b.cost + points(both);
        if (cost < plan.cost) {
          plan.cost = cost;
          plan.part = part;
        }
      }
    }
  }

  Result<ValueId> compute(Operands set) {
    const Plan& plan = plans_[set];
    if (std::has_single_bit(set)) {
      const size_t i = std::countr_zero(set);
      const Labels& own = terms_.operands[i];
      if (plan.labels.size() == own.size()) return e_.in(i);
      return einsum({e_.in(i)}, {own}, plan.labels);
    }
    TS_ASSIGN_OR_RETURN(const ValueId a, compute(plan.part));
    TS_ASSIGN_OR_RETURN(const ValueId b, compute(set ^ plan.part));
    const bool all = set + 1 == plans_.size();
    return einsum({a, b}, {plans_[plan.part].labels, plans_[set ^ plan.part].labels},
                  all ? terms_.output : plan.labels);
  }

  Operands all() const { return static_cast<Operands>(plans_.size() - 1); }

 private:
  struct Plan {
    double cost = 0;    // points of all products
    Labels labels;      // of the result
    Operands part = 0;  // one of the two factors
  };

  size_t count() const { return terms_.operands.size(); }

  // Returns the labels of the set's operands that the output or another operand has.
  Labels labels_left(Operands set) const {
    Labels left;
    for (size_t i = 0; i < count(); ++i) {
      if ((set >> i & 1) == 0) continue;
      for (const int label : terms_.operands[i]) {
        if (std::ranges::find(left, label) != left.end()) continue;
        bool wanted = std::ranges::find(terms_.output, label) != terms_.output.end();
        for (size_t other = 0; other < count() && !wanted; ++other)
          wanted = (set >> other & 1) == 0 &&
                   std::ranges::find(terms_.operands[other], label) != terms_.operands[other].end();
        if (wanted) left.push_back(label);
      }
    }
    // A single operand keeps its diagonals.
    return std::has_single_bit(set) && left.size() == distinct(terms_.operands[std::countr_zero(set)])
               ? terms_.operands[std::countr_zero(set)]
               : left;
  }

  static size_t distinct(Labels labels) {
    std::ranges::sort(labels);
    return std::unique(labels.begin(), labels.end()) - labels.begin();
  }

  double points(const Labels& labels) const {
    double product = 1;
    for (const int label : labels) product *= static_cast<double>(terms_.extents.at(label));
    return product;
  }

  Result<ValueId> einsum(std::vector<ValueId> inputs, const std::vector<Labels>& terms,
                         const Labels& output) {
    std::string equation;
    for (const Labels& labels : terms) {
      if (!equation.empty()) equation += ',';
      for (const int label : labels) equation += letters_.at(label);
    }
    equation += "->";
    for (const int label : output) equation += letters_.at(label);
    return e_.op("Einsum", std::move(inputs), {{"equation", equation}});
  }

  Expansion& e_;
  const EinsumTerms& terms_;
  std::vector<Plan> plans_;  // by set
  std::map<int, char> letters_;
};

Result<std::vector<ValueId>> expand_einsum(Expansion& e) {
  const Node& node = e.node();
  const auto whole = [&]() -> Result<std::vector<ValueId>> {
    TS_ASSIGN_OR_RETURN(const ValueId result, e.op("Einsum", node.inputs, node.attributes));
    return std::vector<ValueId>{result};
  };
  // The orders of more tensors would take too long to compare.
  constexpr size_t kMostOperands = 12;
  if (node.inputs.size() < 3) return whole();
  if (node.inputs.size() > kMostOperands)
    return e.ctx.unsupported("more than " + std::to_string(kMostOperands) +
                             " inputs; split it into several nodes");
  TS_ASSIGN_OR_RETURN(const EinsumTerms terms, read_einsum(e.ctx));
  Contraction contraction(e, terms);
  if (!contraction.name_labels()) return whole();
  contraction.find_order();
  TS_ASSIGN_OR_RETURN(const ValueId result, contraction.compute(contraction.all()));
  return std::vector<ValueId>{result};
}

}  // namespace

std::span<const ExpandEntry> einsum_expansions() {
  static const ExpandEntry kEntries[] = {{"Einsum", "n:T*", expand_einsum}};
  return kEntries;
}

}  // namespace tensorsmith::graph
