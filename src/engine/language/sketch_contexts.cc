#include "engine/language/sketch_contexts.h"

#include <utility>

namespace tensorsmith::engine {

namespace {

// Most programs of similar tasks that the model sees while it answers for a sketch.
constexpr size_t kSimilar = 2;

}  // namespace

std::vector<std::shared_ptr<const search::SketchContext>> sketch_contexts(const search::PreparedTask& task,
                                                                          const WarmStart& known) {
  const space::DesignSpace& space = task.design();
  std::vector<std::shared_ptr<const search::SketchContext>> contexts(space.num_sketches());
  std::vector<SeededCandidate> seeds;
  if (!known.empty()) {
    SeedOptions options;
    options.same_task = 0;
    seeds = known.seeds(task, options);
  }
  for (size_t k = 0; k < contexts.size(); ++k) {
    auto grammar = space::SketchGrammar::create(space, k);
    if (!grammar.ok()) continue;
    search::SketchContext context{std::move(*grammar), {}};
    for (const auto& seed : seeds)
      if (std::cmp_equal(seed.candidate.sketch, k) && context.similar.size() < kSimilar &&
          space.check(seed.candidate).ok())
        context.similar.push_back(seed.candidate);
    contexts[k] = std::make_shared<const search::SketchContext>(std::move(context));
  }
  return contexts;
}

}  // namespace tensorsmith::engine
