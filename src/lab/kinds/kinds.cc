#include "lab/kinds/kinds.h"

namespace tensorsmith::lab {

const learn::CostModelKinds& cost_model_kinds() {
  static const learn::CostModelKinds kinds = [] {
    std::vector<const learn::CostModelKind*> all = learn::product_kinds().all();
    all.insert(all.end(), {&random_kind(), &draft_kind()});
    for (const learn::CostModelKind& kind : learn::compared_net_kinds()) all.push_back(&kind);
    return learn::CostModelKinds(std::move(all));
  }();
  return kinds;
}

}  // namespace tensorsmith::lab
