#include "measure/build_pipeline.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "base/memory.h"
#include "measure/timing.h"
#include "measure/wire.h"

namespace tensorsmith::measure {
namespace {

constexpr double kWallPerCpu = 4;
constexpr std::chrono::milliseconds kMemoryLook{20};

}  // namespace

BuildPipeline::BuildPipeline(std::shared_ptr<const Builder> builder, int threads, double timeout_s,
                             int64_t memory_bytes)
    : timeout_s_(timeout_s), shared_(std::make_shared<Shared>()) {
  shared_->builder = std::move(builder);
  shared_->memory_bytes = memory_bytes;
  for (int i = 0; i < threads && add_thread(); ++i) {
  }
}

bool BuildPipeline::Shared::may_begin() const {
  if (!has_next()) return false;
  return building == 0 || memory_bytes == 0 || resident_bytes() < memory_bytes;
}

bool BuildPipeline::add_thread() {
  try {
    threads_.emplace_back([shared = shared_] { run_thread(shared); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

BuildPipeline::~BuildPipeline() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  for (auto& thread : threads_) thread.join();
}

void BuildPipeline::run_thread(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    while (!shared->stopping && !shared->may_begin()) {
      // There is no notification when another build releases memory, so this polls.
      if (shared->has_next()) {
        shared->changed.wait_for(lock, kMemoryLook);
      } else {
        shared->changed.wait(lock);
      }
    }
    if (shared->stopping) return;
    ++shared->building;
    const std::shared_ptr<Job> job = shared->job;
    const size_t i = job->next++;
    Slot& slot = job->slots[i];
    slot.state = State::kBuilding;
    slot.started = monotonic_seconds();
    if (::pthread_getcpuclockid(::pthread_self(), &slot.cpu_clock) != 0) slot.cpu_clock = CLOCK_MONOTONIC;
    slot.cpu_started = clock_seconds(slot.cpu_clock);
    lock.unlock();
    BuildResult result;
    try {
      result = shared->builder->build(job->workload, job->traces[i]);
    } catch (const std::exception& e) {
      // For example, out of memory while building.
      result = BuildFailure{record::Outcome::kBuildError, e.what()};
    }
    const double ended = monotonic_seconds();
    lock.lock();
    if (slot.state == State::kTimedOut) {
      if (slot.replaced) return;  // another thread has replaced this one
      continue;
    }
    --shared->building;
    slot.build = {std::move(result), ended - slot.started};
    slot.state = State::kDone;
    shared->changed.notify_all();
  }
}

void BuildPipeline::start(const ir::Workload& workload, std::vector<sched::Trace> traces) {
  auto job = std::make_shared<Job>();
  job->workload = workload;
  job->slots.resize(traces.size());
  job->traces = std::move(traces);
  std::lock_guard lock(shared_->mutex);
  shared_->job = std::move(job);
}

void BuildPipeline::allow(size_t count) {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->job->allowed = std::min(count, shared_->job->slots.size());
  }
  shared_->changed.notify_all();
}

double BuildPipeline::seconds_left(const Slot& slot) const {
  const double wall = monotonic_seconds() - slot.started;
  if (wall < timeout_s_) return timeout_s_ - wall;
  // The thread still exists: it can change a kBuilding slot only under the lock.
  const double cpu = clock_seconds(slot.cpu_clock) - slot.cpu_started;
  return std::min(timeout_s_ - cpu, kWallPerCpu * timeout_s_ - wall);
}

void BuildPipeline::wait_for(size_t i, std::unique_lock<std::mutex>& lock) {
  Slot& slot = shared_->job->slots[i];
  while (slot.state == State::kWaiting || slot.state == State::kBuilding) {
    if (slot.state == State::kWaiting) {
      shared_->changed.wait_for(lock, std::chrono::milliseconds(50));
      // All threads may be stuck in earlier builds.
      for (size_t j = 0; j < i; ++j) {
        Slot& other = shared_->job->slots[j];
        if (other.state == State::kBuilding && seconds_left(other) <= 0) wait_for(j, lock);
        if (other.state == State::kTimedOut && !other.replaced) other.replaced = add_thread();
      }
      continue;
    }
    const double left = seconds_left(slot);
    if (left > 0) {
      shared_->changed.wait_for(lock, std::chrono::duration<double>(std::max(left, 0.001)));
      continue;
    }
    slot.state = State::kTimedOut;
    --shared_->building;  // its memory use need not be waited for
    char text[64];
    std::snprintf(text, sizeof text, "not compiled after %.3g s", timeout_s_);
    slot.build = {BuildFailure{record::Outcome::kBuildTimeout, text}, timeout_s_};
    slot.replaced = add_thread();
  }
}

TimedBuild BuildPipeline::take(size_t i) {
  std::unique_lock lock(shared_->mutex);
  TS_CHECK(i < shared_->job->allowed, "take() of a candidate that is not allowed to be built");
  wait_for(i, lock);
  return std::move(shared_->job->slots[i].build);
}

void BuildPipeline::wait_allowed() {
  std::unique_lock lock(shared_->mutex);
  for (size_t i = 0; i < shared_->job->allowed; ++i) wait_for(i, lock);
}

}  // namespace tensorsmith::measure
