// The disturbance of a measurement, read from a simulated /proc/stat and clock.
#include "measure/disturbance.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/processors.h"
#include "base/scratch_directory.h"
#include "record/disturbance.h"

namespace tensorsmith::measure::disturbance_test {
namespace {

namespace fs = std::filesystem;

// Columns: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
constexpr const char* kStat =
    "cpu  1000 20 300 90000 500 6 7 80 40 2\n"
    "cpu0 400 10 100 45000 200 1 2 30 40 2\n"
    "cpu1 500 9 150 40000 250 3 4 45 0 0\n"
    "cpu12 100 1 50 5000 50 2 1 5 0 0\n"
    "intr 4711 0 0\n"
    "cpu1 7\n";

TEST(BusySeconds, AddsWhatOthersCanTake) {
  const auto of = [](std::vector<int> processors) { return busy_seconds(kStat, processors, 100); };
  // By hand, without idle, iowait and the guests, which user contains.
  EXPECT_DOUBLE_EQ(of({0}).value(), 5.43);
  EXPECT_DOUBLE_EQ(of({1}).value(), 7.11);
  EXPECT_DOUBLE_EQ(of({0, 12}).value(), 5.43 + 1.59);
  EXPECT_FALSE(of({2}));
  EXPECT_FALSE(of({0, 2}));
  EXPECT_FALSE(of({}));
}

TEST(BusySeconds, DamagedTextIsNotKnown) {
  const std::vector<int> first = {0};
  for (const char* text :
       {"", "cpu", "cpu0", "cpu0 1 2 3\n", "cpu0 a b c d e f g h\n", "cpu0 1 -2 3 4 5 6 7 8\n",
        "cpu0 0 0 0 0 0 0 0 0 0 0\n", "intr 3\ncpu0 1 2 3 4 5 6 7 8\n"})
    EXPECT_FALSE(busy_seconds(text, first, 100)) << text;
  EXPECT_TRUE(busy_seconds("cpu0 1 2 3 4 5 6 7 8", first, 100));
}

TEST(SystemLoad, ReadsTheFile) {
  const ScratchDirectory root = ScratchDirectory::create("disturbance_test").value();
  const ProcessorPaths paths{root.file("sys"), root.file("proc")};
  fs::create_directories(root.file("proc/self"));
  const auto read = system_load(paths);
  EXPECT_FALSE(read());  // there is no such file
  std::string stat = "cpu  1 1 1 1 1 1 1 1 0 0\n";
  const auto allowed = allowed_processors();
  for (const int p : allowed) stat += "cpu" + std::to_string(p) + " 100 0 0 900 0 0 0 50 0 0\n";
  std::ofstream(root.file("proc/stat")) << stat << "intr 1\n";
  const auto load = read();
  ASSERT_TRUE(load);
  EXPECT_EQ(load->processors, std::ssize(allowed));
  EXPECT_DOUBLE_EQ(load->busy, 150.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)) * load->processors);

  // A container that may use half of a processor.
  std::ofstream(root.file("proc/self/cgroup")) << "0::/a\n";
  fs::create_directories(root.file("sys/fs/cgroup/a"));
  std::ofstream(root.file("sys/fs/cgroup/a/cpu.max")) << "50000 100000\n";
  EXPECT_FALSE(system_load(paths)());
  std::ofstream(root.file("sys/fs/cgroup/a/cpu.max")) << "max 100000\n";
  EXPECT_TRUE(system_load(paths)());
}

// Four processors and a program of ours that uses some of them.
struct SimulatedMachine {
  double now = 50, busy = 1000, own = 3;
  int reads = 0;
  bool tells = true;
  DisturbanceMeter meter{[this]() -> std::optional<ProcessorLoad> {
                           ++reads;
                           if (!tells) return std::nullopt;
                           return ProcessorLoad{now, busy, 4};
                         },
                         [this] { return own; }};
  // others, ours: in processors.
  void pass(double seconds, double others, double ours = 1) {
    now += seconds;
    busy += seconds * (others + ours);
    own += seconds * ours;
  }
};

TEST(DisturbanceMeter, IsTheShareThatOthersTook) {
  SimulatedMachine machine;
  machine.meter.restart();
  machine.pass(2, 0);
  EXPECT_NEAR(machine.meter.begin().value(), 0, 1e-9);
  machine.pass(1, 3);
  EXPECT_NEAR(machine.meter.end().value(), 0.75, 1e-9);
  EXPECT_NEAR(machine.meter.begin().value(), 0.75, 1e-9);
  machine.pass(3, 1, 0);  // a long measurement: nothing from before it counts
  EXPECT_NEAR(machine.meter.end().value(), 0.25, 1e-9);
}

TEST(DisturbanceMeter, ShortMeasurementsAreMeasuredWithTheTimeBeforeThem) {
  SimulatedMachine machine;
  machine.meter.restart();
  for (int i = 0; i < 10; ++i) {
    machine.pass(0.25, 2);
    machine.meter.begin();
    machine.pass(0.01, 2);
    EXPECT_NEAR(machine.meter.end().value(), 0.5, 1e-9) << i;
  }
}

TEST(DisturbanceMeter, IsNotKnownAtOnce) {
  SimulatedMachine machine;
  machine.meter.restart();
  EXPECT_FALSE(machine.meter.begin());
  machine.pass(0.05, 4, 0);
  EXPECT_FALSE(machine.meter.end());
  machine.pass(0.07, 4, 0);
  EXPECT_NEAR(machine.meter.end().value(), 1, 1e-9);
  // A restart forgets the samples, but the last disturbance is the best guess before a measurement.
  machine.meter.restart();
  EXPECT_NEAR(machine.meter.begin().value(), 1, 1e-9);
  machine.pass(0.05, 0);
  EXPECT_FALSE(machine.meter.end());
}

TEST(DisturbanceMeter, IsAShareWhateverTheCountersSay) {
  SimulatedMachine machine;
  machine.meter.restart();
  machine.now += 1;
  machine.own += 2;  // ticks that are not counted yet
  EXPECT_EQ(machine.meter.end(), 0);
  machine.now += 1;
  machine.busy += 100;
  EXPECT_EQ(machine.meter.end(), 1);
  machine.tells = false;
  EXPECT_FALSE(machine.meter.end());
}

double clock_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void work_until(clockid_t clock, double seconds) {
  const double begin = clock_seconds(clock);
  volatile double sum = 0;
  while (clock_seconds(clock) - begin < seconds) sum = sum + 1;
}

// The time of the system's processor clock, of this process and of a child that has ended. The system
// counts both in steps of up to 10 ms.
TEST(OwnSeconds, IsTheTimeOfTheProcessAndItsEndedChildren) {
  constexpr double kStep = 0.025;
  const double before = own_seconds(), clock = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  work_until(CLOCK_PROCESS_CPUTIME_ID, 0.1);
  EXPECT_NEAR(own_seconds() - before, clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - clock, kStep);
  const pid_t child = ::fork();
  if (child == 0) {
    work_until(CLOCK_PROCESS_CPUTIME_ID, 0.2);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const double own = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - clock;
  EXPECT_GE(own_seconds() - before, own + 0.2 - kStep);
}

TEST(Trust, FallsWithTheDisturbance) {
  EXPECT_EQ(record::trust({}), 1);
  EXPECT_EQ(record::trust(0), 1);
  EXPECT_DOUBLE_EQ(record::trust(0.5), 0.25);
  EXPECT_EQ(record::trust(1), record::kLeastTrust);
  EXPECT_FALSE(record::is_doubtful({}));
  EXPECT_FALSE(record::is_doubtful(0.09));
  EXPECT_TRUE(record::is_doubtful(0.1));
}

}  // namespace
}  // namespace tensorsmith::measure::disturbance_test
