#pragma once

#include <memory>
#include <vector>

#include "space/design_space.h"
#include "space/sketch.h"

namespace tensorsmith::space {

struct DesignSpace::Impl {
  Impl(ir::Workload w, const target::Device& device, const Options& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const Sketch& sketch(int number) const { return sketches.at(number); }
  const Sketch& sketch(const Candidate& c) const { return sketch(c.sketch); }
  Status check(const Candidate& c) const;
  double estimate(const Candidate& c) const;
  sched::Trace trace(const Candidate& c) const;
  // Computes the schedule that replaying trace(c) gives.
  Status schedule(const Candidate& c, sched::Schedule& out) const;
  size_t pick_sketch(Rng& rng) const;
  // Returns a legal candidate of the sketch if one is found in a few tries.
  std::optional<Candidate> draw(Rng& rng, size_t sketch) const;
  std::optional<Candidate> mutate(const Candidate& c, Rng& rng) const;
  // Returns the first candidate of the sketch: all lengths 1 and all categories 0.
  Candidate first(size_t sketch) const;
  bool advance(Candidate& c) const;
  // Fills seeds and sketch_weights with the analytic model and takes the best seed as the default.
  void find_seeds();

  ir::Workload workload;
  mutable sched::Rewrites rewrites;
  std::vector<std::unique_ptr<const Algorithm>> algorithms;
  std::vector<Sketch> sketches;        // the last one is plain loops
  double left_out = 0;                 // see sketches_left_out
  std::vector<Candidate> seeds;        // good by the analytic model, best first
  std::vector<double> sketch_weights;  // how often sampling draws from each
  Candidate default_candidate;
};

}  // namespace tensorsmith::space
