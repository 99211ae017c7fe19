// Einsum: sums of products, with ellipsis and repeated labels. Products of more than two tensors are imported as several
// nodes (onnx/expand_einsum.cc).
#include "graph/ops/einsum.h"

#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

// Parses "ab...c" into labels; ellipsis_rank is the number of dimensions that the dots stand for.
std::optional<Labels> parse_term(const std::string& term, size_t ellipsis_rank) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == '.') {
      if (seen || term.compare(i, 3, "...") != 0) return std::nullopt;
      seen = true;
      i += 2;
      for (int k = ellipsis_rank; k > 0; --k) labels.push_back(-k);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

struct Equation {
  std::vector<std::string> terms;
  std::optional<std::string> output;
};

Equation split_equation(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    equation.output = text.substr(arrow + 2);
    text.resize(arrow);
  }
  size_t begin = 0;
  for (size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', begin)) {
    equation.terms.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  equation.terms.push_back(text.substr(begin));
  return equation;
}

}  // namespace

Result<EinsumTerms> read_einsum(OpContext& ctx) {
  const std::string text = ctx.string_attr("equation", "");
  const Equation equation = split_equation(text);
  const auto malformed = [&] { return ctx.invalid("the equation '" + text + "' does not fit the inputs"); };
  if (equation.terms.size() != ctx.num_inputs()) return malformed();

  EinsumTerms terms;
  auto& [operands, output, extents] = terms;
  std::map<int, int> occurrences;
  size_t ellipsis = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const std::string& term = equation.terms[i];
    const size_t letters = std::ranges::count_if(term, [](char c) { return c != '.'; });
    const bool dots = letters < term.size();
    if (dots ? letters > ctx.rank(i) : letters != ctx.rank(i)) return malformed();
    const auto labels = parse_term(term, ctx.rank(i) - letters);
    if (!labels || labels->size() != ctx.rank(i)) return malformed();
    ellipsis = std::max(ellipsis, ctx.rank(i) - letters);
    for (size_t d = 0; d < labels->size(); ++d) {
      const int64_t extent = ctx.shape(i)[d];
      auto [entry, fresh] = extents.emplace((*labels)[d], extent);
      if (!fresh && entry->second != extent) {
        if (entry->second != 1 && extent != 1) return malformed();
        entry->second = std::max(entry->second, extent);
      }
      ++occurrences[(*labels)[d]];
    }
    operands.push_back(*labels);
  }
  if (equation.output) {
    const auto labels = parse_term(*equation.output, ellipsis);
    if (!labels) return malformed();
    output = *labels;
  } else {
    // The implicit output has the ellipsis first, then the labels that occur once, in alphabetical
    // order.
    for (int k = ellipsis; k > 0; --k) output.push_back(-k);
    for (const auto& [label, count] : occurrences) {
      if (label > 0 && count == 1) output.push_back(label);
    }
  }
  for (size_t i = 0; i < output.size(); ++i)
    if (!extents.contains(output[i]) ||
        std::find(output.begin(), output.begin() + i, output[i]) != output.begin() + i)
      return malformed();
  return terms;
}

namespace {

Result<Buffers> emit_einsum(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const EinsumTerms terms, read_einsum(ctx));
  const auto& [operands, output, extents] = terms;
  const auto name_of = [](int label) {
    return label > 0 ? std::string(1, static_cast<char>(label)) : "e" + std::to_string(-label);
  };
  std::map<int, Expr> variables;
  std::vector<ir::Axis> spatial;
  for (int label : output) {
    spatial.push_back({ir::Var(name_of(label)), extents.at(label)});
    variables.emplace(label, spatial.back().var);
  }
  std::vector<ir::Axis> reduce;
  for (const Labels& labels : operands) {
    for (int label : labels) {
      if (variables.contains(label)) continue;
      variables.emplace(label, add_reduce_axis(reduce, name_of(label), extents.at(label)));
    }
  }
  Expr body;
  for (size_t i = 0; i < operands.size(); ++i) {
    Exprs indices;
    for (size_t d = 0; d < operands[i].size(); ++d) {
      indices.push_back(ctx.shape(i)[d] == 1 ? Expr(0) : variables.at(operands[i][d]));
    }
    const Expr factor = ir::load(ctx.in(i), indices);
    body = body.defined() ? body * factor : factor;
  }
  const ir::Combiner combiner = reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum;
  return Buffers{ctx.reduce("einsum", std::move(spatial), std::move(reduce), combiner, std::move(body))};
}

}  // namespace

std::span<const OpEntry> einsum_operators() {
  static const OpEntry kEntries[] = {{"Einsum", "n:T*", emit_einsum}};
  return kEntries;
}

}  // namespace tensorsmith::graph
