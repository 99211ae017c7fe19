// Finds which axes move along which dimensions of a workload's product, and which structure the
// computation has.
#include <algorithm>

#include "feature/program_summary.h"
#include "ir/linear.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::feature {

namespace {

using ir::Expr;

double bytes_of(const ir::Buffer& buffer) { return ir::bytes_of(buffer->dtype, buffer->num_elements()); }

// Returns the axes in an index; parts that are not multiples of an axis are left out.
std::vector<WorkloadAccess::Term> terms_of(const Expr& index, const ir::Operation& op) {
  std::vector<WorkloadAccess::Term> out;
  const ir::LinearSum sum = ir::linearize(index);
  if (sum.bad) return out;
  for (const auto& term : sum.terms) {
    const auto* var = ir::as<ir::VarRef>(term.atom);
    if (var == nullptr) continue;
    for (const bool reduce : {false, true}) {
      const auto& axes = reduce ? op.reduce : op.spatial;
      for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].var == var->var) out.push_back({reduce, a, term.coefficient});
      }
    }
  }
  return out;
}

WorkloadAccess::Read read_of(const ir::Load& load, const ir::Operation& op) {
  WorkloadAccess::Read read;
  read.shape = load.buffer->shape;
  for (const Expr& index : load.indices) read.dims.push_back(terms_of(index, op));
  return read;
}

// Returns whether every reduce axis shares a dimension with another axis in some read.
bool windows_only(const ir::Operation& op, const std::vector<WorkloadAccess::Read>& reads) {
  for (size_t a = 0; a < op.reduce.size(); ++a) {
    bool window = false;
    for (const auto& read : reads) {
      for (const auto& dim : read.dims) {
        const bool has = std::any_of(dim.begin(), dim.end(),
                                     [&](const auto& term) { return term.reduce && term.axis == a; });
        window = window || (has && dim.size() > 1);
      }
    }
    if (!window) return false;
  }
  return true;
}

}  // namespace

bool WorkloadAccess::Read::windowed() const {
  return std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.size() > 1; });
}

WorkloadAccess analyze_accesses(const ir::Workload& workload, double flops) {
  WorkloadAccess out;
  out.flops = flops;
  const ir::Operation* reduction = nullptr;
  int reductions = 0;
  for (const auto& op : workload.operations) {
    if (op->is_placeholder()) {
      out.input_bytes += bytes_of(op->output());
    } else if (op->has_reduction()) {
      ++reductions;
      reduction = op.get();
    }
  }
  for (const ir::Buffer& buffer : workload.outputs) out.output_bytes += bytes_of(buffer);
  if (reductions == 0) return out;
  if (reductions > 1) {
    out.structure = WorkloadStructure::kComposite;
    return out;
  }
  const Expr& body = reduction->bodies.front();
  const auto* product = ir::as<ir::Binary>(body);
  const bool sums_product = reduction->combiner == ir::Combiner::kSum && product != nullptr &&
                            product->op == ir::BinaryOp::kMul && ir::as<ir::Load>(product->a) != nullptr &&
                            ir::as<ir::Load>(product->b) != nullptr;
  if (reduction->combiner == ir::Combiner::kSum && product != nullptr && product->op == ir::BinaryOp::kMul) {
    const ir::Load *a = sched::mma_factor(product->a, body.dtype()),
                   *b = sched::mma_factor(product->b, body.dtype());
    if (a != nullptr && b != nullptr && a->buffer->dtype == b->buffer->dtype)
      out.mma_factors = a->buffer->dtype;
  }
  if (sums_product) {
    for (const Expr& operand : {product->a, product->b})
      out.reads.push_back(read_of(*ir::as<ir::Load>(operand), *reduction));
    for (const auto& axis : reduction->spatial) out.spatial.push_back(axis.extent);
    for (const auto& axis : reduction->reduce) out.reduce.push_back(axis.extent);
    out.structure =
        windows_only(*reduction, out.reads) ? WorkloadStructure::kWindow : WorkloadStructure::kContraction;
  } else {
    std::vector<WorkloadAccess::Read> reads;
    if (const auto* load = ir::as<ir::Load>(body); load != nullptr)
      reads.push_back(read_of(*load, *reduction));
    out.structure =
        windows_only(*reduction, reads) ? WorkloadStructure::kPooling : WorkloadStructure::kReduction;
  }
  return out;
}

}  // namespace tensorsmith::feature
