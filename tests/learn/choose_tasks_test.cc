#include "learn/dataset/choose_tasks.h"

#include <gmock/gmock.h>

#include <set>

#include "latency_testing.h"
#include "learn/dataset/split.h"

namespace tensorsmith::learn::choose_tasks_test {
namespace {

using ::testing::HasSubstr;
using testing::MadeStore;
using testing::MadeStoreOptions;

// Clusters that are far apart are found with any seed.
TEST(Cluster, FindsClouds) {
  Rng rng(4);
  std::vector<float> points;
  std::vector<size_t> cloud;
  for (int i = 0; i < 400; ++i) {
    cloud.push_back(rng.below(4));
    points.push_back(static_cast<float>(20.0 * static_cast<double>(cloud.back() % 2) + 0.1 * rng.normal()));
    points.push_back(static_cast<float>(20.0 * static_cast<double>(cloud.back() / 2) + 0.1 * rng.normal()));
  }
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Clusters found = cluster(points, 2, 4, seed);
    std::map<size_t, std::set<size_t>> clusters_of_cloud;
    for (size_t i = 0; i < cloud.size(); ++i) clusters_of_cloud[cloud[i]].insert(found.of[i]);
    std::set<size_t> used;
    for (const auto& [c, clusters] : clusters_of_cloud) {
      EXPECT_EQ(clusters.size(), 1u) << "seed " << seed;
      used.insert(clusters.begin(), clusters.end());
    }
    EXPECT_EQ(used.size(), 4u) << "seed " << seed;
    // Each centroid is the mean of its points.
    for (size_t j = 0; j < 4; ++j) {
      double x = 0;
      for (size_t i = 0; i < cloud.size(); ++i)
        x += found.of[i] == j ? static_cast<double>(points[2 * i]) : 0;
      EXPECT_NEAR(found.centroids[2 * j], x / static_cast<double>(found.sizes[j]), 1e-9);
    }
  }
}

TEST(Cluster, EqualPointsAreNoTrouble) {
  const std::vector<float> points(30, 1.0F);
  const Clusters found = cluster(points, 3, 5, 1);
  EXPECT_EQ(found.sizes.size(), 5u);
  size_t all = 0;
  for (const size_t size : found.sizes) all += size;
  EXPECT_EQ(all, 10u);
}

// Nine tasks of three kinds with very different programs: if three tasks are chosen, there is one
// of each kind.
TEST(ChooseTasks, OneOfEachCluster) {
  record::testing::TempDir folder;
  auto writer = StoreWriter::create(folder.file("store"));
  ASSERT_TRUE(writer.ok());
  Rng rng(8);
  StoreRecord record;
  record.device = (*writer)->add_device("v100");
  record.mean_seconds = 1e-3;
  record.seconds = {1e-3};
  for (int task = 0; task < 9; ++task) {
    record.workload = (*writer)->add_workload({"w" + std::to_string(task), "conv", "text", 1, {}});
    for (int p = 0; p < 20 + 10 * (task % 3); ++p) {
      testing::MadeProgram program;
      program.operations = std::exp2(10.0 + 10 * (task % 3)) * (1 + rng.uniform());
      program.bytes = std::exp2(25.0 - 8 * (task % 3)) * (1 + rng.uniform());
      record.leaves = testing::make_leaves(program, true);
      record.trace.steps = {sched::Unroll{task, p}};
      ASSERT_TRUE((*writer)->add(record).ok());
    }
  }
  ASSERT_TRUE((*writer)->finish().ok());
  const auto store = Store::open(folder.file("store"));
  ASSERT_TRUE(store.ok());
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (const TaskChoice choice : {TaskChoice::kKmeans, TaskChoice::kMedoids}) {
      const auto chosen = choose_tasks(**store, 0, 3, choice, seed);
      ASSERT_EQ(chosen.size(), 3u);
      std::set<uint32_t> kinds;
      for (const uint32_t w : chosen) kinds.insert(w % 3);
      EXPECT_EQ(kinds.size(), 3u) << to_string(choice) << ", seed " << seed;
    }
  }
  for (const TaskChoice choice : {TaskChoice::kRandom, TaskChoice::kKmeans, TaskChoice::kMedoids}) {
    EXPECT_EQ(choose_tasks(**store, 0, 100, choice, 0).size(), 9u);
    EXPECT_EQ(parse_task_choice(std::string(to_string(choice))).value(), choice);
  }
  EXPECT_EQ(choose_tasks(**store, 0, 5, TaskChoice::kRandom, 0),
            choose_tasks(**store, 0, 5, TaskChoice::kRandom, 0));
  EXPECT_NE(choose_tasks(**store, 0, 5, TaskChoice::kRandom, 0),
            choose_tasks(**store, 0, 5, TaskChoice::kRandom, 1));
  EXPECT_FALSE(parse_task_choice("best").ok());
}

// k-medoids begin in the largest cluster, and choose a task that is far from all others before a
// second one of a cluster.
TEST(ChooseTasks, MedoidsCoverWhatIsFar) {
  record::testing::TempDir folder;
  auto writer = StoreWriter::create(folder.file("store"));
  ASSERT_TRUE(writer.ok());
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  StoreRecord record;
  record.device = (*writer)->add_device("v100");
  record.mean_seconds = 1e-3;
  record.seconds = {1e-3};
  // Tasks 0 to 7 and 8 to 10 are clusters; 11 is alone.
  for (int task = 0; task < 12; ++task) {
    record.workload = (*writer)->add_workload({"w" + std::to_string(task), "conv", "text", 1, {}});
    const double size = task < 8 ? 10 : task < 11 ? 20 : 30;
    for (int p = 0; p < 30; ++p) {
      testing::MadeProgram program;
      program.operations = std::exp2(size) * (1 + 0.3 * rng.uniform());
      program.bytes = std::exp2(35 - size) * (1 + 0.3 * rng.uniform());
      record.leaves = testing::make_leaves(program, true);
      record.trace.steps = {sched::Unroll{task, p}};
      ASSERT_TRUE((*writer)->add(record).ok());
    }
  }
  ASSERT_TRUE((*writer)->finish().ok());
  const auto store = Store::open(folder.file("store"));
  ASSERT_TRUE(store.ok());
  const auto group = [](uint32_t task) { return task < 8 ? 0 : task < 11 ? 1 : 2; };
  const auto one = choose_tasks(**store, 0, 1, TaskChoice::kMedoids, 0);
  ASSERT_EQ(one.size(), 1u);
  const auto three = choose_tasks(**store, 0, 3, TaskChoice::kMedoids, 0);
  std::set<int> groups;
  for (const uint32_t task : three) groups.insert(group(task));
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_EQ(group(one.front()), 0);
}

// With three clusters, the next task is from the unmeasured one. With two unmeasured clusters, the task is
// from the one with the greater uncertainty. Tasks without programs are not chosen.
TEST(NextTasks, WhatIsUncertainAndStandsForOthers) {
  const uint64_t seed = 3;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const auto make = [&](double size) {
    CandidateTask task;
    for (int p = 0; p < 10; ++p) {
      testing::MadeProgram program;
      program.operations = std::exp2(size) * (1 + 0.3 * rng.uniform());
      program.bytes = std::exp2(35 - size) * (1 + 0.3 * rng.uniform());
      task.programs.push_back(testing::make_leaves(program, true));
    }
    return task;
  };
  std::vector<CandidateTask> tasks;
  for (const double size : {10, 10, 10, 10, 10, 10, 20, 20, 20, 30, 30}) tasks.push_back(make(size));
  tasks.emplace_back().weight = 100;
  EXPECT_LT(next_tasks(tasks, 1).front(), 6u);
  tasks[1].measured = true;
  const auto second = next_tasks(tasks, 2);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_TRUE(second[0] >= 6 && second[0] < 9) << second[0];
  EXPECT_GE(second[1], 9u);
  for (const size_t sure : {6, 7, 8}) tasks[sure].weight = 0.1;
  const size_t next = next_tasks(tasks, 1).front();
  EXPECT_GE(next, 9u);
  EXPECT_EQ(next_tasks(tasks, 100).size(), 10u);
  EXPECT_TRUE(next_tasks({}, 3).empty());
}

// The chosen tasks are used for training and all others of the device for testing; times do not
// affect the choice.
TEST(FewTasks, SplitsByTaskOnTheTestDevice) {
  const MadeStore made(MadeStoreOptions{.devices = {"v100", "k80"}, .tasks = 12});
  SplitOptions options;
  options.kind = SplitKind::kFewTasks;
  options.test_devices = {"k80"};
  options.profile_tasks = 4;
  options.validation = 0.2;
  const auto split = make_split(made.store(), options);
  ASSERT_TRUE(split.ok()) << split.error().message();
  EXPECT_TRUE(check_split(made.store(), *split).ok());
  std::set<uint32_t> trained, tested;
  int64_t validation = 0;
  for (int64_t i = 0; i < made.store().size(); ++i) {
    const auto entry = made.store().entry(i);
    const Part part = split->parts[static_cast<size_t>(i)];
    if (entry.device == 0) {
      EXPECT_NE(part, Part::kTest);
      continue;
    }
    validation += part == Part::kValidation ? 1 : 0;
    (part == Part::kTest ? tested : trained).insert(entry.workload);
  }
  EXPECT_EQ(trained.size(), 4u);
  EXPECT_EQ(tested.size(), 8u);
  EXPECT_GT(validation, 0);
  for (const uint32_t w : trained) EXPECT_EQ(tested.count(w), 0u);

  const std::string path = made.folder().file("split");
  ASSERT_TRUE(save_split(*split, path).ok());
  const auto loaded = load_split(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->options.profile_tasks, 4);
  EXPECT_EQ(loaded->options.choice, TaskChoice::kMedoids);
  EXPECT_EQ(loaded->content_hash(), split->content_hash());

  Split leaking = *split;
  const auto test = split->records_of(Part::kTest);
  leaking.parts[static_cast<size_t>(test.front())] = Part::kValidation;
  EXPECT_THAT(check_split(made.store(), leaking).error().message(), HasSubstr("few-tasks"));
  EXPECT_NE(leaking.content_hash(), split->content_hash());
  // Tasks chosen with another seed or method make another split.
  options.choice = TaskChoice::kRandom;
  const auto random = make_split(made.store(), options);
  options.seed = 5;
  EXPECT_NE(random->parts, make_split(made.store(), options)->parts);
  options.test_devices = {};
  EXPECT_FALSE(make_split(made.store(), options).ok());
}

}  // namespace
}  // namespace tensorsmith::learn::choose_tasks_test
