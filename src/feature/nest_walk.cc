#include "feature/nest_walk.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/floor_div.h"
#include "ir/analysis.h"
#include "ir/linear.h"

namespace tensorsmith::feature {

namespace {

using ir::Expr;
using ir::ExprNode;

constexpr int64_t kSamples = 64;       // samples of the loops that are not unrolled
constexpr int64_t kMostSamples = 256;  // including the iterations of the unrolled loops
constexpr size_t kMostLoops = 64;

using Values = std::unordered_map<const ir::VarNode*, int64_t>;

// Returns the value of an integer or bool expression; none if it depends on data.
std::optional<int64_t> evaluate(const Expr& e, const Values& values);

std::optional<int64_t> evaluate_binary(const ir::Binary& binary, const Values& values) {
  const auto a = evaluate(binary.a, values), b = evaluate(binary.b, values);
  if (!a || !b) return std::nullopt;
  switch (binary.op) {
    case ir::BinaryOp::kAdd:
      return *a + *b;
    case ir::BinaryOp::kSub:
      return *a - *b;
    case ir::BinaryOp::kMul:
      return *a * *b;
    case ir::BinaryOp::kDiv:
      return *b == 0 ? 0 : *a / *b;
    case ir::BinaryOp::kFloorDiv:
      return *b > 0 ? floor_div(*a, *b) : 0;
    case ir::BinaryOp::kFloorMod:
      return *b > 0 ? floor_mod(*a, *b) : 0;
    case ir::BinaryOp::kMin:
      return std::min(*a, *b);
    case ir::BinaryOp::kMax:
      return std::max(*a, *b);
    case ir::BinaryOp::kEq:
      return *a == *b;
    case ir::BinaryOp::kNe:
      return *a != *b;
    case ir::BinaryOp::kLt:
      return *a < *b;
    case ir::BinaryOp::kLe:
      return *a <= *b;
    case ir::BinaryOp::kGt:
      return *a > *b;
    case ir::BinaryOp::kGe:
      return *a >= *b;
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kBitAnd:
      return *a & *b;
    case ir::BinaryOp::kOr:
    case ir::BinaryOp::kBitOr:
      return *a | *b;
    case ir::BinaryOp::kBitXor:
      return *a ^ *b;
    case ir::BinaryOp::kShl:
    case ir::BinaryOp::kShr:
      return std::nullopt;  // not used in indices
  }
  return std::nullopt;
}

std::optional<int64_t> evaluate(const Expr& e, const Values& values) {
  if (ir::is_float(e.dtype())) return std::nullopt;
  return ir::visit(
      ir::overloaded{
          [](const ir::IntImm& imm) -> std::optional<int64_t> { return imm.value; },
          [](const ir::FloatImm&) -> std::optional<int64_t> { return std::nullopt; },
          [&](const ir::VarRef& ref) -> std::optional<int64_t> {
            const auto it = values.find(ref.var.get());
            return it == values.end() ? std::nullopt : std::optional<int64_t>(it->second);
          },
          [&](const ir::Unary& unary) -> std::optional<int64_t> {
            const auto a = evaluate(unary.a, values);
            if (!a) return std::nullopt;
            return unary.op == ir::UnaryOp::kNeg ? -*a : unary.op == ir::UnaryOp::kNot ? !*a : ~*a;
          },
          [&](const ir::Binary& binary) { return evaluate_binary(binary, values); },
          [&](const ir::Select& select) -> std::optional<int64_t> {
            const auto condition = evaluate(select.condition, values);
            if (!condition) return std::nullopt;
            return evaluate(*condition != 0 ? select.a : select.b, values);
          },
          [&](const ir::Cast& cast) { return evaluate(cast.a, values); },
          [](const ir::Call&) -> std::optional<int64_t> { return std::nullopt; },
          [](const ir::Load&) -> std::optional<int64_t> { return std::nullopt; },
      },
      e);
}

bool has_select(const Expr& e) {
  bool found = false;
  ir::for_each_expr(e, [&](const Expr& part) { found = found || ir::as<ir::Select>(part) != nullptr; });
  return found;
}

class NestWalker {
 public:
  NestTree run(const ir::Program& program) {
    visit(*program.body);
    return std::move(tree_);
  }

 private:
  struct OpenLoop {
    const ir::For* loop = nullptr;
    NestLoopId number;
    int64_t largest = 1;  // largest extent
  };
  struct Guard {
    Expr condition;
    bool holds = true;
  };

  void visit(const ir::StmtNode& stmt) {
    std::visit(ir::overloaded{
                   [&](const ir::For& loop) { visit_loop(loop); },
                   [&](const ir::Store& store) { visit_store(store); },
                   [&](const ir::IfThenElse& branch) {
                     guards_.push_back({branch.condition, true});
                     visit(*branch.then_body);
                     guards_.back().holds = false;
                     if (branch.else_body) visit(*branch.else_body);
                     guards_.pop_back();
                   },
                   [&](const ir::Seq& seq) {
                     for (const ir::Stmt& s : seq.stmts) visit(*s);
                   },
                   [&](const ir::Allocate& allocate) {
                     allocated_at_[allocate.buffer.get()] = std::min(path_.size(), kMostLoops - 1);
                     visit(*allocate.body);
                   },
               },
               stmt.kind);
  }

  void visit_loop(const ir::For& loop) {
    if (path_.size() == kMostLoops) return visit(*loop.body);
    const auto [mean, largest] = extent_of(loop.extent);
    NestLoop added;
    added.extent = mean;
    added.kind = loop.kind;
    if (!path_.empty()) added.parent = path_.back().number;
    added.first_leaf = tree_.leaves.size();
    const NestLoopId number = tree_.loops.push_back(std::move(added));
    (path_.empty() ? tree_.roots : tree_.loops[path_.back().number].children).push_back(number);
    path_.push_back({&loop, number, largest});
    visit(*loop.body);
    path_.pop_back();
    tree_.loops[number].past_leaf = tree_.leaves.size();
  }

  // Returns the mean and the largest extent over the loops outside.
  std::pair<double, int64_t> extent_of(const Expr& extent) {
    if (const auto* imm = ir::as<ir::IntImm>(extent))
      return std::pair(std::max<int64_t>(imm->value, 0), std::max<int64_t>(imm->value, 1));
    double sum = 0;
    int64_t largest = 1, count = 0;
    for_samples([&] {
      const int64_t value = std::max<int64_t>(evaluate(extent, values_).value_or(1), 0);
      sum += value;
      largest = std::max(largest, value);
      ++count;
    });
    return {count > 0 ? sum / count : 1, largest};
  }

  // Calls `visit` with values for the variables of the open loops. The iterations of unrolled loops
  // are enumerated; the others are spread evenly (a Weyl sequence with a different irrational step
  // for each loop).
  template <class Visit>
  void for_samples(Visit&& visit) {
    int64_t unrolled = 1;
    for (const OpenLoop& open : path_) {
      if (open.loop->kind == ir::ForKind::kUnrolled)
        unrolled = std::min<int64_t>(unrolled * open.largest, int64_t{1} << 40);
    }
    const int64_t rounds = std::max<int64_t>(1, kSamples / unrolled);
    const int64_t samples = std::min(unrolled * rounds, kMostSamples);
    for (int64_t s = 0; s < samples; ++s) {
      // If there are more iterations than samples, evenly spread ones are taken.
      int64_t rest = unrolled <= kMostSamples ? s % unrolled : s * (unrolled / samples) + s % 7;
      double step = 2;
      for (const OpenLoop& open : path_) {
        int64_t& value = values_[open.loop->var.get()];
        const auto* constant = ir::as<ir::IntImm>(open.loop->extent);
        const int64_t extent = constant != nullptr
                                   ? std::max<int64_t>(constant->value, 1)
                                   : std::max<int64_t>(evaluate(open.loop->extent, values_).value_or(1), 1);
        if (open.loop->kind == ir::ForKind::kUnrolled) {
          value = rest % open.largest;
          rest /= open.largest;
        } else {
          const double at = (s + 0.5) * std::sqrt(step);
          value = std::min(extent - 1, static_cast<int64_t>((at - std::floor(at)) * extent));
        }
        step += step < 2.5 ? 1 : 2;  // 2, 3, 5, 7, 11, ...: without 9, whose root is not irrational
        if (step == 9) step = 11;
      }
      visit();
    }
  }

  // Returns whether the condition only depends on unrolled loops and thus costs nothing.
  bool free_of_charge(const ExprNode* select, const Expr& condition) {
    const auto known = free_.find(select);
    if (known != free_.end()) return known->second;
    bool free = true;
    ir::for_each_expr(condition, [&](const Expr& part) {
      const auto* ref = ir::as<ir::VarRef>(part);
      if (ref == nullptr) return;
      for (const OpenLoop& open : path_) {
        if (open.loop->var == ref->var && open.loop->kind != ir::ForKind::kUnrolled) free = false;
      }
    });
    free_[select] = free;
    return free;
  }

  // Counts what one run evaluates at the current values of the loops. A shared node counts once.
  void count(const Expr& e, NestLeaf& leaf) {
    if (e.is_shared() && !seen_.insert(e.get()).second) return;
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [](const ir::VarRef&) {},
                  [&](const ir::Unary& unary) {
                    if (ir::is_float(e.dtype())) ++leaf.others;
                    count(unary.a, leaf);
                  },
                  [&](const ir::Binary& binary) { count_binary(binary, leaf); },
                  [&](const ir::Select& select) {
                    const auto condition = evaluate(select.condition, values_);
                    if (!condition || !free_of_charge(e.get(), select.condition)) ++leaf.selects;
                    if (!condition) count(select.condition, leaf);
                    if (!condition || *condition != 0) count(select.a, leaf);
                    if (!condition || *condition == 0) count(select.b, leaf);
                  },
                  [&](const ir::Cast& cast) { count(cast.a, leaf); },
                  [&](const ir::Call& call) {
                    ++(call.intrinsic == ir::Intrinsic::kSqrt ? leaf.divisions : leaf.calls);
                    for (const Expr& arg : call.args) count(arg, leaf);
                  },
                  [&](const ir::Load& load) {
                    ++loads_[&load];
                    for (const Expr& index : load.indices) count(index, leaf);
                  },
              },
              e);
  }

  void count_binary(const ir::Binary& binary, NestLeaf& leaf) {
    if (ir::is_float(binary.a.dtype())) {
      const bool sum = binary.op == ir::BinaryOp::kAdd || binary.op == ir::BinaryOp::kSub;
      for (const Expr* operand : {&binary.b, &binary.a}) {
        const auto* product = ir::as<ir::Binary>(*operand);
        if (!sum || product == nullptr || product->op != ir::BinaryOp::kMul) continue;
        ++leaf.multiply_adds;
        count(product->a, leaf);
        count(product->b, leaf);
        count(operand == &binary.a ? binary.b : binary.a, leaf);
        return;
      }
      ++(binary.op == ir::BinaryOp::kDiv ? leaf.divisions : leaf.others);
    }
    count(binary.a, leaf);
    count(binary.b, leaf);
  }

  void visit_store(const ir::Store& store) {
    NestLeaf leaf;
    for (const OpenLoop& open : path_) leaf.path.push_back(open.number);
    leaf.is_float = ir::is_float(store.value.dtype());
    loads_.clear();
    double samples = 0, reached = 0;
    const auto run = [&] {
      ++samples;
      for (const Guard& guard : guards_) {
        const auto holds = evaluate(guard.condition, values_);
        if (holds && (*holds != 0) != guard.holds) return;
      }
      ++reached;
      seen_.clear();
      count(store.value, leaf);
    };
    if (guards_.empty() && !has_select(store.value)) {
      run();
    } else {
      for_samples(run);
    }
    if (reached == 0) return;  // reached too seldom to matter
    leaf.share = reached / samples;
    for (double* x : {&leaf.multiply_adds, &leaf.others, &leaf.divisions, &leaf.calls, &leaf.selects})
      *x /= reached;
    add_access(leaf, store.buffer, store.indices, true, 1);
    // In the order of the program text; that of the map differs from run to run.
    for (const ir::Load* load : ir::loads_of(store.value)) {
      const auto it = loads_.find(load);
      if (it == loads_.end()) continue;
      leaf.update = leaf.update || load->buffer == store.buffer;
      add_access(leaf, load->buffer, load->indices, false, it->second / reached);
      loads_.erase(it);
    }
    tree_.leaves.push_back(std::move(leaf));
  }

  void add_access(NestLeaf& leaf, const ir::Buffer& buffer, const std::vector<Expr>& indices, bool write,
                  double count) {
    NestAccess access;
    access.buffer = buffer;
    access.write = write;
    access.element_bytes = ir::bytes_of(buffer->dtype);
    access.count = count;
    if (const auto at = allocated_at_.find(access.buffer.get()); at != allocated_at_.end())
      access.moved_by = (uint64_t{1} << at->second) - 1;
    std::vector<double> constants;
    for (size_t d = 0; d < indices.size(); ++d) {
      access.dims.push_back(dim_of(indices[d], access.moved_by, constants));
      access.dims.back().extent = buffer->shape[d];
    }
    access.vector_step = vector_step(*buffer, indices);
    for (size_t a = 0; a < leaf.accesses.size(); ++a) {
      NestAccess& other = leaf.accesses[a];
      if (other.buffer != access.buffer || other.write != write || !same_terms(other, access)) continue;
      other.count += count;
      for (size_t d = 0; d < constants.size(); ++d) {
        auto& [low, high] = constants_[a][d];
        low = std::min(low, constants[d]);
        high = std::max(high, constants[d]);
        other.dims[d].spread = high - low;
      }
      return;
    }
    if (leaf.accesses.empty()) constants_.clear();
    constants_.emplace_back();
    for (const double c : constants) constants_.back().emplace_back(c, c);
    leaf.accesses.push_back(std::move(access));
  }

  static bool same_terms(const NestAccess& a, const NestAccess& b) {
    for (size_t d = 0; d < a.dims.size(); ++d) {
      const auto &x = a.dims[d].terms, &y = b.dims[d].terms;
      if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& s, const auto& t) {
            return s.place == t.place && s.coefficient == t.coefficient;
          }))
        return false;
    }
    return true;
  }

  std::optional<size_t> place_of(const ir::Var& var) const {
    for (size_t p = path_.size(); p-- > 0;) {
      if (path_[p].loop->var == var) return p;
    }
    return std::nullopt;
  }

  NestAccess::Dim dim_of(const Expr& index, uint64_t& moved_by, std::vector<double>& constants) const {
    NestAccess::Dim dim;
    const ir::LinearSum sum = ir::linearize(index);
    constants.push_back(sum.constant);
    const auto add = [&](const ir::Var& var, double coefficient) {
      const auto place = place_of(var);
      if (!place) return;
      moved_by |= uint64_t{1} << *place;
      dim.terms.push_back({*place, coefficient});
    };
    for (const auto& term : sum.terms) {
      const double coefficient = std::abs(term.coefficient);
      if (const auto* ref = ir::as<ir::VarRef>(term.atom)) {
        add(ref->var, coefficient);
        continue;
      }
      // A quotient moves more slowly than its dividend. A remainder or a select moves as fast as
      // its operands.
      double divisor = 1;
      if (const auto* binary = ir::as<ir::Binary>(term.atom);
          binary != nullptr && binary->op == ir::BinaryOp::kFloorDiv) {
        if (const auto* imm = ir::as<ir::IntImm>(binary->b)) divisor = std::max<int64_t>(imm->value, 1);
      }
      ir::for_each_expr(term.atom, [&](const Expr& part) {
        if (const auto* ref = ir::as<ir::VarRef>(part)) add(ref->var, coefficient / divisor);
      });
    }
    return dim;
  }

  // Returns the elements between adjacent lanes of the innermost vectorized loop, at the first
  // iteration of all loops.
  double vector_step(const ir::BufferNode& buffer, const std::vector<Expr>& indices) {
    const ir::VarNode* lanes = nullptr;
    values_.clear();
    for (const OpenLoop& open : path_) {
      values_[open.loop->var.get()] = 0;
      if (open.loop->kind == ir::ForKind::kVectorized) lanes = open.loop->var.get();
    }
    if (lanes == nullptr) return 0;
    const std::vector<int64_t> strides = buffer.effective_strides();
    const auto address = [&] {
      double sum = 0;
      for (size_t d = 0; d < indices.size(); ++d)
        sum += strides[d] * evaluate(indices[d], values_).value_or(0);
      return sum;
    };
    const double first = address();
    values_[lanes] = 1;
    return std::abs(address() - first);
  }

  NestTree tree_;
  std::vector<OpenLoop> path_;
  std::vector<Guard> guards_;
  Values values_;
  std::unordered_map<const ir::BufferNode*, size_t> allocated_at_;  // number of loops around the allocation
  std::unordered_map<const ir::Load*, double> loads_;               // executions, summed over the samples
  std::unordered_set<const ExprNode*> seen_;  // shared nodes counted in the current sample
  std::unordered_map<const ExprNode*, bool> free_;
  // Smallest and largest constant, by access of the leaf and dimension.
  std::vector<std::vector<std::pair<double, double>>> constants_;
};

}  // namespace

NestTree walk_nests(const ir::Program& program) { return NestWalker().run(program); }

Touched touched_by(const NestAccess& access, const NestLeaf& leaf, const NestTree& tree, size_t from,
                   double line_bytes) {
  Touched out;
  bool contiguous = true;
  double run = 1;
  out.lines = 1;
  for (size_t d = access.dims.size(); d-- > 0;) {
    const NestAccess::Dim& dim = access.dims[d];
    double range = 1 + dim.spread, iterations = 1 + dim.spread;
    for (const NestAccess::Term& term : dim.terms) {
      if (term.place < from) continue;
      const double extent = tree.loops[leaf.path[term.place]].extent;
      range += term.coefficient * (std::max(extent, 1.0) - 1);
      iterations *= std::max(extent, 1.0);
    }
    range = std::min(range, dim.extent);
    const double elements = std::min(iterations, range);
    out.elements *= elements;
    if (contiguous) {
      run *= range;
      contiguous = range >= dim.extent;
      if (!contiguous || d == 0) {
        // A run can begin anywhere in a line. Elements that are far apart take a line each.
        const double bytes = run * access.element_bytes;
        out.lines *= std::min(bytes / line_bytes + (bytes >= line_bytes ? 0.5 : 0.0), run);
        out.lines = std::max(out.lines, 1.0);
      }
    } else {
      out.lines *= elements;
    }
  }
  out.run = run * access.element_bytes;
  return out;
}

}  // namespace tensorsmith::feature
