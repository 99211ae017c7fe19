// A language model writes as many programs for a task as are requested.
#include "engine/language/language_writer.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/language/different_programs.h"
#include "engine/tune/prepare_tasks.h"
#include "ir/structural.h"
#include "random_language_model.h"
#include "sched/step.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::language_writer_test {
namespace {

struct Case {
  Case() {
    task.workload = test::standard::matmul(64, 96, 64);
    task.key = ir::structural_key(task.workload);
    task.name = "matmul";
  }
  target::Device device = target::find_device("epyc-9654:threads=1").value();
  graph::Task task;
};

std::string program_of(const space::DesignSpace& space, const space::Candidate& candidate) {
  return sched::print(space.to_trace(candidate).value());
}

TEST(DifferentPrograms, KeepsTheFirstOfEach) {
  const Case c;
  const auto space = space::DesignSpace::build(c.task.workload, c.device, {}).value();
  Rng rng(3);
  std::vector<space::Candidate> candidates, first;
  std::set<uint64_t> drawn;
  std::set<std::string> programs;
  while (candidates.size() < 2000) {
    const auto candidate = space.sample(rng);
    if (!drawn.insert(candidate.hash()).second) continue;
    candidates.push_back(candidate);
    if (programs.insert(program_of(space, candidate)).second) first.push_back(candidate);
  }
  ASSERT_LT(first.size(), candidates.size()) << "some different candidates are one program";
  const auto all = different_programs(space, candidates, candidates.size());
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(*all, first);
  first.resize(10);
  EXPECT_EQ(different_programs(space, candidates, 10).value(), first);
}

TEST(LanguageWriter, WritesDifferentPrograms) {
  const Case c;
  const auto space = space::DesignSpace::build(c.task.workload, c.device, {}).value();
  const auto writer =
      LanguageWriter::create(random_model({.width = 16, .heads = 2, .layers = 1, .hidden = 32}, 4), 1);
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  const auto written =
      (*writer)->write(*prepare_task(c.task, c.device).value(), {}, {.count = 200, .written = 2});
  ASSERT_TRUE(written.ok()) << written.error().message();
  std::set<std::string> programs;
  for (const auto& candidate : *written) programs.insert(program_of(space, candidate));
  EXPECT_EQ(programs.size(), 200u);
}

}  // namespace
}  // namespace tensorsmith::engine::language_writer_test
