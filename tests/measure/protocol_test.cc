#include "measure/protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/rng.h"
#include "ir/structural.h"
#include "measure/wire.h"
#include "support/standard_workloads.h"

namespace tensorsmith::measure::protocol_test {
namespace {

RunRequest sample_run() {
  RunRequest request;
  request.object = {'a', '\0', 'b'};
  request.symbol = "kernel";
  request.launches = {{"first", {4, 5, 6}, {7, 8, 9}, 1024, {{2, 0}, {-1, 64}}},
                      {"second", {1, 1, 1}, {32, 1, 1}, 0, {}}};
  request.launches[0].arguments[1].map = runtime::TensorMap{
      .element_bytes = 1, .extents = {64, 9}, .strides = {80}, .box = {32, 8}, .swizzle_bytes = 32};
  request.shared_workspace_bytes = 10;
  const sched::Layout layout = {{0, 16, 4}, {1, 1, 3}};
  const auto transform = std::make_shared<const ir::Workload>(test::standard::matmul(2, 3, 4));
  request.prepared = {{1, nullptr, layout}, {2, transform, std::nullopt}, {3, transform, layout}};
  request.timing.best_seconds = 0.25;
  request.timing.hopeless_repeats = 2;
  request.timing.flush_cache = true;
  return request;
}

TaskSpec sample_task() {
  TaskSpec task;
  task.inputs = {{ir::DType::kF32, {4, 4}, 0, {}}};
  task.outputs = {{ir::DType::kI8, {3}, 64, {1e-3, 0.5, 2}}};
  task.memory_bytes = 128;
  task.memory_limit_bytes = 1000;
  task.threads = 2;
  task.measure_energy = true;
  return task;
}

TEST(Protocol, MessagesReadBack) {
  const auto run = decode_run(encode(sample_run()));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(encode(*run), encode(sample_run()));
  EXPECT_EQ(run->launches, sample_run().launches);
  ASSERT_EQ(run->prepared.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const lower::PreparedConstant expected = sample_run().prepared[i];
    EXPECT_EQ(run->prepared[i].input, expected.input);
    EXPECT_EQ(run->prepared[i].layout, expected.layout);
    ASSERT_EQ(run->prepared[i].transform != nullptr, expected.transform != nullptr);
    if (expected.transform) {
      EXPECT_TRUE(ir::structural_equal(*run->prepared[i].transform, *expected.transform));
    }
  }
  EXPECT_EQ(run->timing.best_seconds, 0.25);
  EXPECT_EQ(run->timing.hopeless_repeats, 2);
  const auto task = decode_task(encode(sample_task()));
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(encode(*task), encode(sample_task()));
  EXPECT_EQ(task->outputs[0].tolerance.allowed, 2);
  EXPECT_TRUE(task->measure_energy);
  record::MeasureResult result;
  result.outcome = record::Outcome::kWrongOutput;
  result.reason = "why";
  result.seconds = {1, 2};
  const auto read = decode_result(encode(result));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->reason, "why");
  EXPECT_EQ(read->seconds, result.seconds);
  EXPECT_FALSE(read->joules.has_value());
  result.joules = 0.5;
  EXPECT_EQ(decode_result(encode(result))->joules, 0.5);
}

TEST(Protocol, BadMessagesAreRefused) {
  auto task = sample_task();
  task.outputs[0].offset = 126;  // 3 bytes from this offset end outside of the data
  EXPECT_FALSE(decode_task(encode(task)).ok());
  task = sample_task();
  task.inputs[0].shape = {1 << 30, 1 << 30};
  EXPECT_FALSE(decode_task(encode(task)).ok());
  task = sample_task();
  task.threads = 0;
  EXPECT_FALSE(decode_task(encode(task)).ok());
  auto run = sample_run();
  run.flush_bytes = -1;
  EXPECT_FALSE(decode_run(encode(run)).ok());
  // Cutting the message anywhere and changing any byte gives an error or a message, never a crash.
  const auto bytes = encode(sample_run());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(decode_run({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}).ok());
  const uint64_t seed = 12;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int round = 0; round < 20000; ++round) {
    auto damaged = round % 2 ? encode(sample_run()) : encode(sample_task());
    for (int i = 0; i < 3; ++i) damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    (void)decode_run(damaged).ok();
    const auto decoded = decode_task(damaged);
    if (decoded.ok()) {
      for (const auto& tensor : decoded->inputs)
        EXPECT_LE(tensor.offset + tensor.bytes(), decoded->memory_bytes);
    }
    (void)decode_result(damaged).ok();
  }
}

class Sockets : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0); }
  void TearDown() override {
    for (const int s : sockets_) {
      if (s >= 0) ::close(s);
    }
  }
  void close(int i) {
    ::close(sockets_[i]);
    sockets_[i] = -1;
  }
  int sockets_[2] = {-1, -1};
};

TEST_F(Sockets, LargeMessagesAndDescriptorsArrive) {
  std::vector<char> payload(5 << 20);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 7);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::thread sender([&] {
    EXPECT_TRUE(send_message(sockets_[0], MessageType::kTask, payload, pipe[1], 0).ok());
    EXPECT_TRUE(send_message(sockets_[0], MessageType::kRun, {}, -1, 0).ok());
  });
  auto message = receive_message(sockets_[1], monotonic_seconds() + 20);
  sender.join();
  ASSERT_TRUE(message.ok()) << message.error().message();
  EXPECT_EQ(message->type, MessageType::kTask);
  EXPECT_EQ(message->payload, payload);
  ASSERT_GE(message->fd, 0);
  EXPECT_EQ(::write(message->fd, "x", 1), 1);
  char x = 0;
  EXPECT_EQ(::read(pipe[0], &x, 1), 1);
  EXPECT_EQ(x, 'x');
  ::close(message->fd);
  ::close(pipe[0]);
  ::close(pipe[1]);
  message = receive_message(sockets_[1], monotonic_seconds() + 20);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->type, MessageType::kRun);
  EXPECT_EQ(message->fd, -1);
}

TEST_F(Sockets, SilenceClosingAndGarbage) {
  auto message = receive_message(sockets_[1], monotonic_seconds() + 0.02);
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, ErrorCode::kTimeout);
  // Nobody reads, so that the buffer fills up.
  const auto status = send_message(sockets_[0], MessageType::kRun, std::vector<char>(10 << 20), -1,
                                   monotonic_seconds() + 0.05);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTimeout);
  const std::string garbage(100, 'g');
  ASSERT_EQ(::write(sockets_[1], garbage.data(), garbage.size()), 100);
  message = receive_message(sockets_[0], monotonic_seconds() + 5);
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, ErrorCode::kCorrupt);
}

TEST_F(Sockets, AWaitIsGivenUp) {
  int asked = 0;
  const double start = monotonic_seconds();
  const auto message = receive_message(sockets_[1], {start + 20, [&] { return ++asked == 3; }});
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_LT(monotonic_seconds() - start, 5);
}

TEST_F(Sockets, ClosedByTheOtherSide) {
  close(1);
  const auto message = receive_message(sockets_[0], monotonic_seconds() + 5);
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, ErrorCode::kIo);
  EXPECT_EQ(send_message(sockets_[0], MessageType::kRun, {}, -1, 0).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace tensorsmith::measure::protocol_test
