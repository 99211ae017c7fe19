// Fast programs that are shipped: which of them a task begins with.
#include "engine/starter.h"

#include <gmock/gmock.h>

#include <fstream>

#include "cli_support.h"
#include "engine/load_model.h"
#include "search/pipeline.h"
#include "tools/shipped_file.h"

namespace tensorsmith::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StarterTest : public ::testing::Test {
 protected:
  StarterTest() {
    auto database = record::Database::open(folder_.file("a.db"));
    EXPECT_TRUE(database.ok());
    const target::Device wide = device(64, 1), narrow = device(32, 1), two = device(32, 2);
    for (const auto& d : {wide, narrow, two}) EXPECT_TRUE((*database)->add_device({d.key(), d}).ok());
    const auto add = [&](const target::Device& d, const record::DesignPoint& point, double seconds,
                         record::Reason reason = record::Reason::kPredicted) {
      record::Record record;
      record.task_key = "task";
      record.device_key = d.key();
      record.settings.threads = d.cores;
      record.trace = "trace of " + text(point);
      record.result.seconds = {seconds};
      record.candidate.reason = reason;
      record.candidate.point = point;
      EXPECT_TRUE((*database)->add({record}).ok());
    };
    add(wide, {1, {16, 2}}, 1e-3);
    add(wide, {1, {16, 4}}, 2e-3);
    add(narrow, {0, {6}}, 0.5e-3, record::Reason::kDefault);  // measured anyway
    add(narrow, {0, {8}}, 4e-3);
    add(narrow, {1, {16, 2}}, 5e-3);
    add(narrow, {0, {9}}, 9e-3);  // the fourth fastest, not exported
    add(two, {0, {7}}, 3e-3);
    EXPECT_TRUE((*database)->export_fastest(file_, 3).ok());
  }
  static target::Device device(int vector_bytes, int cores) {
    target::Device d;
    d.name = "local";
    d.arch = "x86-64";
    d.vector_bytes = vector_bytes;
    d.cores = cores;
    return d;
  }
  static std::vector<std::string> texts(const std::vector<space::Candidate>& candidates) {
    std::vector<std::string> out;
    for (const auto& c : candidates) out.push_back(text(search::to_point(c)));
    return out;
  }
  static std::string text(const record::DesignPoint& point) {
    return std::to_string(point.sketch) + "/" + record::print_decisions(point.decisions);
  }

  testing::TemporaryDirectory folder_;
  const std::string file_ = folder_.file("starter.jsonl");
};

TEST_F(StarterTest, TheSameKindOfDeviceFirstThenTheFastest) {
  const auto starter = engine::Starter::load(file_);
  ASSERT_TRUE(starter.ok()) << starter.error().message();
  EXPECT_THAT(texts(starter->of("task", device(32, 1), 9)), ElementsAre("0/8", "1/16,2", "0/7", "1/16,4"));
  EXPECT_THAT(texts(starter->of("task", device(64, 1), 2)), ElementsAre("1/16,2", "1/16,4"));
  EXPECT_THAT(texts(starter->of("task", device(32, 2), 1)), ElementsAre("0/7"));
  EXPECT_THAT(texts(starter->of("other", device(32, 1), 9)), IsEmpty());
}

TEST_F(StarterTest, FilesThatAreNone) {
  EXPECT_EQ(engine::Starter::load(folder_.file("none")).error().code, ErrorCode::kNotFound);
  std::ofstream(folder_.file("text")) << "no record\n";
  EXPECT_EQ(engine::Starter::load(folder_.file("text")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(shipped_file("no such file"), "");
}

// What is shipped loads and knows layers of ResNet.
TEST(ShippedStarter, HasFastProgramsOfTheZoo) {
  const std::string file = TENSORSMITH_SOURCE_DIR "/models/starter.jsonl.zst";
  const auto starter = engine::Starter::load(file);
  ASSERT_TRUE(starter.ok()) << starter.error().message();
  engine::ModelSource options;
  options.path = "zoo:resnet50";
  const auto model = engine::load_model(options);
  ASSERT_TRUE(model.ok());
  const target::Device device = target::find_device("epyc-9654").value();
  size_t known = 0;
  for (const auto& task : model->partition.tasks) known += starter->of(task.key, device, 3).empty() ? 0 : 1;
  EXPECT_GT(known, 0u);
}

}  // namespace
}  // namespace tensorsmith::tools
