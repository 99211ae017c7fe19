// Candidates that are test doubles: a trace of one Unroll step whose number selects a symbol of
// doubles.c.
#pragma once

#include <dirent.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ir/expr.h"
#include "measure/local_measurer.h"

namespace tensorsmith::measure {

inline ir::Workload matmul16() {
  const auto a = ir::placeholder("A", ir::DType::kF32, {16, 16});
  const auto b = ir::placeholder("B", ir::DType::kF32, {16, 16}, true);
  const ir::Axis i{ir::Var("i"), 16}, j{ir::Var("j"), 16}, k{ir::Var("k"), 16};
  const auto c = ir::compute("C", {i, j}, {k}, ir::Combiner::kSum,
                             {ir::load(a->output(), {i.var, k.var}) * ir::load(b->output(), {k.var, j.var})});
  ir::Workload workload;
  workload.operations = {a, b, c};
  workload.outputs = {c->output()};
  return workload;
}

// Builds doubles by name; for some names the builder itself fails or takes long.
class DoubleBuilder final : public Builder {
 public:
  static MeasureRequest candidate(const std::string& name) {
    const auto& names = all();
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return number(i);
    }
    throw_internal_error(__FILE__, __LINE__, "no double " + name);
  }

  BuildResult build(const ir::Workload&, const sched::Trace& trace) const override {
    const auto& name =
        all().at(static_cast<size_t>(std::get<sched::Unroll>(trace.steps.at(0)).auto_max_step));
    if (name == "not_legal") return BuildFailure{record::Outcome::kInvalidSchedule, "step 3: no"};
    if (name == "not_built") return BuildFailure{record::Outcome::kBuildError, "internal error: x"};
    if (name == "throws") throw std::bad_alloc();
    if (name == "builds_long") std::this_thread::sleep_for(std::chrono::seconds(5));
    if (name == "builds_busily") {
      const auto used = [] {  // returns the processor seconds of this thread
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
      };
      const double start = used();
      while (used() - start < 3) {
      }
    }
    BuiltCandidate built;
    built.kernel.symbol = name.starts_with("builds_") ? "right" : name;
    if (name == "no_object") {
      built.kernel.object = {'x'};
      return built;
    }
    if (name == "huge_workspace") {
      built.kernel.symbol = "right";
      built.kernel.shared_workspace_bytes = int64_t{1} << 44;
    }
    if (name == "right_with_workspace" || name == "writes_outside_workspace") {
      built.kernel.shared_workspace_bytes = 4096;
      built.kernel.thread_workspace_bytes = 256;
    }
    if (name == "right_packed") built.prepared = {{1, nullptr, {{{1, 1, 16}, {0, 1, 16}}}}};
    std::ifstream file(DOUBLES, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const std::string text = bytes.str();
    built.kernel.object.assign(text.begin(), text.end());
    return built;
  }

 private:
  static const std::vector<std::string>& all() {
    static const std::vector<std::string> names = {"right",
                                                   "right_with_workspace",
                                                   "right_packed",
                                                   "slow",
                                                   "slow_at_first",
                                                   "wrong_element",
                                                   "unwritten",
                                                   "accumulates",
                                                   "wrong_later",
                                                   "writes_before",
                                                   "writes_far_after",
                                                   "writes_outside_workspace",
                                                   "writes_input",
                                                   "segfaults",
                                                   "aborts",
                                                   "executes_nonsense",
                                                   "overflows_stack",
                                                   "loops",
                                                   "loops_everywhere",
                                                   "eats_memory",
                                                   "eats_memory_and_loops",
                                                   "exits",
                                                   "closes_descriptors",
                                                   "sends_garbage",
                                                   "not_legal",
                                                   "not_built",
                                                   "throws",
                                                   "builds_long",
                                                   "builds_busily",
                                                   "no_object",
                                                   "huge_workspace",
                                                   "opens_file",
                                                   "writes_file",
                                                   "removes_file",
                                                   "makes_directory",
                                                   "looks_for_file",
                                                   "reads_proc",
                                                   "makes_socket",
                                                   "makes_pipe",
                                                   "makes_memory_file",
                                                   "makes_ring",
                                                   "forks_process",
                                                   "executes_program",
                                                   "starts_a_thread",
                                                   "traces_parent",
                                                   "kills_parent",
                                                   "signals_parents_thread",
                                                   "reads_parents_memory",
                                                   "moves_the_parent",
                                                   "limits_the_parent",
                                                   "changes_root",
                                                   "outlives_parent",
                                                   "becomes_dumpable",
                                                   "poisons_memory",
                                                   "closes_socket",
                                                   "other_architecture",
                                                   "finds_environment"};
    return names;
  }
  static MeasureRequest number(size_t i) {
    MeasureRequest candidate;
    candidate.trace.steps = {sched::Unroll{0, static_cast<int64_t>(i)}};
    return candidate;
  }
};

inline target::Device test_device() {
  target::Device device;
  device.name = "test";
  device.cpu().cores = 2;
  device.l3_bytes = 1 << 20;
  return device;
}

// Returns the processes whose parent is `parent`, zombies included.
inline std::vector<int> children_of(int parent) {
  std::vector<int> children;
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const size_t end = text.rfind(')');
    if (end == std::string::npos || end + 4 > text.size()) continue;
    if (std::atoi(text.c_str() + end + 4) == parent) children.push_back(pid);
  }
  ::closedir(proc);
  return children;
}

}  // namespace tensorsmith::measure
