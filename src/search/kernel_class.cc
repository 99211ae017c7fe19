#include "search/kernel_class.h"

#include <cmath>
#include <cstdio>

#include "base/hash.h"
#include "ir/analysis.h"

namespace tensorsmith::search {

uint64_t kernel_class(const ir::Workload& workload) {
  Hasher hasher;
  for (const auto& op : workload.operations) {
    if (op->is_placeholder()) continue;
    hasher.add(op->combiner);
    hasher.add(op->spatial.size());
    hasher.add(op->reduce.size());
    for (const auto& body : op->bodies) {
      ir::for_each_expr(body, [&](const ir::Expr& e) {
        hasher.add(e->kind.index());
        if (const auto* binary = ir::as<ir::Binary>(e)) hasher.add(binary->op);
        if (const auto* call = ir::as<ir::Call>(e)) hasher.add(call->intrinsic);
      });
    }
  }
  return hasher.digest64();
}

std::string kernel_class_text(uint64_t kernel_class) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(kernel_class));
  return text;
}

double shape_distance(const ir::Workload& a, const ir::Workload& b) {
  const auto points = [](const ir::Operation& op) {
    double product = 1;
    for (const auto& axis : op.spatial) product *= axis.extent;
    for (const auto& axis : op.reduce) product *= axis.extent;
    return product;
  };
  const auto computed = [](const ir::Workload& workload) {
    std::vector<const ir::Operation*> list;
    for (const auto& op : workload.operations)
      if (!op->is_placeholder()) list.push_back(op.get());
    return list;
  };
  const auto of_a = computed(a), of_b = computed(b);
  size_t heaviest = 0;
  for (size_t i = 1; i < of_a.size(); ++i)
    if (points(*of_a[i]) > points(*of_a[heaviest])) heaviest = i;
  if (heaviest >= of_a.size() || of_a.size() != of_b.size()) return 0;
  double distance = 0;
  const auto add = [&](const std::vector<ir::Axis>& axes, const std::vector<ir::Axis>& others) {
    for (size_t i = 0; i < std::min(axes.size(), others.size()); ++i) {
      if (axes[i].extent < 1 || others[i].extent < 1) continue;
      distance +=
          std::abs(std::log(static_cast<double>(axes[i].extent) / static_cast<double>(others[i].extent)));
    }
  };
  add(of_a[heaviest]->spatial, of_b[heaviest]->spatial);
  add(of_a[heaviest]->reduce, of_b[heaviest]->reduce);
  return distance;
}

}  // namespace tensorsmith::search
