// The display of a tuning run, with a fake clock and a fake terminal.
#include "tools/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "tools/ticker.h"

namespace tensorsmith::tools::progress_display_test {
namespace {

using engine::TunePhase;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = DisplayOutput::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();

class FakeClock final : public Clock {
 public:
  double monotonic_seconds() const override { return now; }
  int64_t unix_milliseconds() const override { return static_cast<int64_t>(now * 1000); }
  double now = 1000;
};

// One task that takes 9 ms untuned and `best_seconds` now.
search::TuneProgress progress_of(int64_t trials, double best_seconds, double expected_seconds = 0) {
  search::TuneProgress p;
  p.elapsed_seconds = 10;
  p.trials = trials;
  p.tasks = {{"conv", 1, trials, 0, 9e-3, best_seconds, 0}};
  p.expected_model_seconds = expected_seconds;
  return p;
}

class Progress : public ::testing::Test {
 protected:
  DisplayOutput output(Kind kind) {
    return {kind, [this](std::string_view bytes) { written_ += bytes; }, [this] { return columns_; }};
  }
  // Returns the output since the last call; for a terminal, the visible line.
  std::string shown() {
    std::string text = std::exchange(written_, "");
    const size_t erased = text.rfind(kErase);
    return erased == std::string::npos ? text : text.substr(erased + kErase.size());
  }
  // Like shown(), after `seconds` and a tick.
  std::string shown_after(double seconds, ProgressDisplay& display) {
    clock_.now += seconds;
    written_.clear();
    display.tick();
    return shown();
  }

  const std::string kErase = "\r\033[K";
  FakeClock clock_;
  std::string written_;
  size_t columns_ = 200;
};

TEST_F(Progress, EveryPhaseShowsItsNameAndTheTime) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kTerminal));
  EXPECT_EQ(shown(), "reading    0 s / 1:00  ETA 1:00");
  EXPECT_EQ(shown_after(2, display), "reading    2 s / 1:00  ETA 58 s");
  display.begins(TunePhase::kUntuned, {});
  EXPECT_EQ(shown(), "compiling  2 s / 1:00  ETA 58 s");
  EXPECT_EQ(shown_after(5, display), "compiling  7 s / 1:00  ETA 53 s");
  display.begins(TunePhase::kSearch, {40, 13});
  EXPECT_EQ(shown(), "measuring  7 s / 1:00  ETA 53 s");
  clock_.now += 3;
  display.progress(progress_of(30, 6e-3, 5e-3));
  EXPECT_EQ(shown(),
            "measuring  10 s / 1:00  ETA 50 s  estimate 9.000 ms -> 6.000 ms (1.50x) -> 5.000 ms expected  "
            "30 trials (3.0/s)  | conv: 6.000 ms");
  // The search ended early, so that less time is left than the budget says.
  display.begins(TunePhase::kCompare, {10, 3});
  EXPECT_EQ(shown(),
            "comparing  10 s / 1:00  ETA 13 s  estimate 9.000 ms -> 6.000 ms (1.50x)  30 trials (3.0/s)");
  EXPECT_THAT(shown_after(4, display), HasSubstr("comparing  14 s / 1:00  ETA 9 s"));
  // The end-to-end speed-up of the model replaces the estimate.
  display.compared({9.5e-3, 7.6e-3, 0.02});
  display.begins(TunePhase::kWrite, {3});
  EXPECT_THAT(shown_after(1, display),
              AllOf(HasSubstr("writing    15 s / 1:00  ETA 2 s  end to end 9.500 ms -> 7.600 ms (1.25x)"),
                    Not(HasSubstr("estimate"))));
  // The next model shows its own estimate.
  display.begins(TunePhase::kCompare, {10, 3});
  EXPECT_THAT(shown(), HasSubstr("estimate 9.000 ms -> 6.000 ms (1.50x)"));
  display.finish();
  EXPECT_EQ(shown(), "\n");
  EXPECT_EQ(shown_after(1, display), "");
}

TEST_F(Progress, WhatIsNotKnownIsLeftOut) {
  ProgressDisplay display(clock_, {100, 0}, output(Kind::kTerminal));
  EXPECT_EQ(shown(), "reading    0 s");
  display.begins(TunePhase::kSearch, {});
  search::TuneProgress p = progress_of(1, kNever);
  p.elapsed_seconds = 0;
  p.tasks[0].default_seconds = kNever;
  display.progress(p);
  EXPECT_EQ(shown_after(1, display), "measuring  1 s  1 / 100 trials");
  clock_.now += 1;
  display.progress(progress_of(2, 6e-3));
  EXPECT_THAT(shown(),
              AllOf(HasSubstr("(1.50x)  2 / 100 trials (0.2/s)  | conv"), Not(HasSubstr("expected"))));
  p = progress_of(3, 6e-3);
  p.failures = 2;
  clock_.now += 1;
  display.progress(p);
  EXPECT_THAT(shown(), HasSubstr("3 / 100 trials (0.3/s), 2 failed  |"));
  // A phase without planned time, and one that takes longer than planned.
  display.begins(TunePhase::kWrite, {});
  EXPECT_THAT(shown(), Not(HasSubstr("ETA")));
  display.begins(TunePhase::kWrite, {3});
  EXPECT_THAT(shown(), HasSubstr("ETA 3 s"));
  EXPECT_THAT(shown_after(4, display), Not(HasSubstr("ETA")));
}

// Without a time limit, the pace of the trials determines the time left.
TEST_F(Progress, TheTimeLeftFollowsFromTheTrialsLeft) {
  ProgressDisplay display(clock_, {100, 0}, output(Kind::kTerminal));
  display.begins(TunePhase::kSearch, {0, 7.2});
  clock_.now += 30;  // time before the first trial does not count
  display.progress(progress_of(1, 6e-3));
  EXPECT_THAT(shown(), Not(HasSubstr("ETA")));
  clock_.now += 10;
  display.progress(progress_of(21, 6e-3));
  EXPECT_THAT(shown(), HasSubstr("ETA 47 s"));  // 79 trials of half a second, then 7.2 s
  EXPECT_THAT(shown_after(3, display), HasSubstr("ETA 44 s"));
  EXPECT_THAT(shown_after(1000, display), HasSubstr("ETA 7 s"));
}

TEST_F(Progress, TheTighterLimitEndsTheSearch) {
  ProgressDisplay display(clock_, {100, 30}, output(Kind::kTerminal));
  display.begins(TunePhase::kSearch, {25, 5});
  display.progress(progress_of(0, 6e-3));
  clock_.now += 10;
  display.progress(progress_of(20, 6e-3));
  EXPECT_THAT(shown(), HasSubstr("10 s / 30 s  ETA 20 s"));
  clock_.now += 1;
  display.progress(progress_of(90, 6e-3));
  EXPECT_THAT(shown(), HasSubstr("11 s / 30 s  ETA 6 s"));
}

TEST_F(Progress, FiguresThatHaveNoRoomAreLeftOut) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kTerminal));
  display.begins(TunePhase::kSearch, {});
  display.progress(progress_of(30, 6e-3, 5e-3));
  columns_ = 80;
  EXPECT_EQ(shown_after(1, display),
            "measuring  1 s / 1:00  ETA 59 s  estimate 9.000 ms -> 6.000 ms (1.50x)");
  columns_ = 24;
  EXPECT_EQ(shown_after(0, display), "measuring  1 s / 1:00");
}

TEST_F(Progress, ATerminalIsRedrawnTenTimesASecondAtMost) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kTerminal));
  display.begins(TunePhase::kSearch, {});
  written_.clear();
  for (int i = 1; i <= 100; ++i) {
    clock_.now += 0.01;
    display.progress(progress_of(i, 6e-3));
  }
  size_t redrawn = 0;
  for (size_t at = written_.find(kErase); at != std::string::npos; at = written_.find(kErase, at + 1))
    ++redrawn;
  EXPECT_GE(redrawn, 9U);
  EXPECT_LE(redrawn, 11U);
  EXPECT_EQ(written_.find('\n'), std::string::npos);
}

TEST_F(Progress, PlainOutputIsALineAPhaseAndOneEveryFewSeconds) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kLines));
  EXPECT_FALSE(display.redraws());
  display.tick();
  EXPECT_EQ(shown(), "");  // an early error of the model is then the only line
  clock_.now += 1;
  display.begins(TunePhase::kUntuned, {});
  EXPECT_EQ(shown(), "  1.0 s  compiling and timing the untuned model ...\n");
  display.begins(TunePhase::kSearch, {});
  EXPECT_EQ(shown(), "  1.0 s  measuring schedules ...\n");
  for (int i = 1; i <= 110; ++i) {
    clock_.now += 0.1;
    display.progress(progress_of(i, 6e-3));
    display.tick();
  }
  const std::string lines = shown();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;  // at once, after 5 and after 10 s
  EXPECT_THAT(lines,
              AllOf(HasSubstr("measuring  1 s / 1:00  ETA 59 s  estimate 9.000 ms"), Not(HasSubstr("\r"))));
  display.begins(TunePhase::kWrite, {});
  EXPECT_EQ(shown(), " 12.0 s  writing the compiled model ...\n");
  display.finish();
  EXPECT_EQ(shown(), "");
}

TEST_F(Progress, OtherLinesDoNotRunIntoTheRedrawnOne) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kTerminal));
  written_.clear();
  display.print_apart([&] { written_ += "warning\n"; });
  EXPECT_EQ(written_, kErase + "warning\n" + kErase + "reading    0 s / 1:00  ETA 1:00");
  display.finish();
  written_.clear();
  display.print_apart([&] { written_ += "warning\n"; });
  EXPECT_EQ(written_, "warning\n");
}

TEST_F(Progress, QuietIsQuiet) {
  ProgressDisplay display(clock_, {0, 60}, standard_error_display(/*quiet=*/true));
  EXPECT_FALSE(display.redraws());
  display.begins(TunePhase::kSearch, {});
  display.progress(progress_of(30, 6e-3));
  display.tick();
  bool printed = false;
  display.print_apart([&] { printed = true; });
  EXPECT_TRUE(printed);
}

// Names in a model cannot send escape codes.
TEST_F(Progress, NamesAreMadePrintable) {
  ProgressDisplay display(clock_, {0, 60}, output(Kind::kTerminal));
  display.begins(TunePhase::kSearch, {});
  clock_.now += 1;
  search::TuneProgress p = progress_of(1, 6e-3);
  p.tasks[0].name = "a\033[2Jb\nc";
  display.progress(p);
  EXPECT_THAT(shown(), HasSubstr("| a\\x1b[2Jb\\nc: 6.000 ms"));
}

TEST(TickerTest, TicksUntilItIsGone) {
  std::atomic<int> ticks{0};
  {
    const Ticker ticker(0.001, [&] { ++ticks; });
    while (ticks < 3) std::this_thread::yield();
  }
  const int at_the_end = ticks;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ticks, at_the_end);
}

TEST(TickerTest, EndsAtOnceHoweverLongItsInterval) {
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  {
    const Ticker ticker(3600, [] {});
  }
  EXPECT_LT(clock.monotonic_seconds() - start, 60);
}

// For the thread sanitizer.
TEST(TickerTest, RedrawsBesideARunThatReports) {
  const SystemClock clock;
  std::atomic<int> written{0};  // by both threads
  std::string last;             // under the display's lock
  ProgressDisplay display(clock, {0, 60},
                          {Kind::kTerminal,
                           [&](std::string_view bytes) {
                             last = bytes;
                             ++written;
                           },
                           [] { return size_t{100}; }});
  {
    const Ticker ticker(0.0005, [&] { display.tick(); });
    display.begins(TunePhase::kSearch, {40, 5});
    int i = 0;
    while (written < 200) {
      display.progress(progress_of(++i, 6e-3));
      display.print_apart([] {});
    }
    display.begins(TunePhase::kWrite, {5});
  }
  display.finish();
  EXPECT_EQ(last, "\n");
}

}  // namespace
}  // namespace tensorsmith::tools::progress_display_test
