// Cost models of users: as a program, and what is said about programs that do not keep to the protocol.
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/scratch_directory.h"
#include "feature/schema.h"
#include "learn/custom/command_model.h"
#include "learn/custom/model_process.h"
#include "learn/search_model.h"
#include "support/quality.h"
#include "support/sanitizers.h"

namespace tensorsmith::learn::custom_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

target::Device device() { return target::find_device("xeon-8358").value(); }

// Programs of two tasks with everything that a model may read. The first feature of program i is i.
struct Programs {
  std::array<StoredWorkload, 2> tasks;
  target::Device device = custom_model_test::device();
  std::vector<feature::ProgramSummary> summaries;
  std::vector<feature::FeatureMatrix> rows;
  std::vector<sched::Trace> traces;
  std::vector<record::DesignPoint> points;
  std::vector<ProgramQuery> queries;

  explicit Programs(size_t count) : summaries(count), rows(count), traces(count), points(count) {
    tasks[0] = {"key-0", "first", "", 1e9, {}};
    tasks[1] = {"key-1", "second", "", 2e9, {}};
    const feature::SummarySchema& schema = feature::summary_schema(feature::ProgramKind::kCpuNests);
    for (size_t i = 0; i < count; ++i) {
      summaries[i].kind = feature::ProgramKind::kCpuNests;
      summaries[i].resources.assign(schema.resources.columns.size(), 0.25);
      summaries[i].resources.front() = static_cast<double>(i);
      summaries[i].columns.assign(schema.columns.columns.size(), 0.5F);
      rows[i].rows = 1 + static_cast<int>(i % 2);
      rows[i].values.assign(static_cast<size_t>(rows[i].rows) * feature::kPerStoreWidth,
                            static_cast<float>(i));
      points[i] = {static_cast<int>(i), {8, 20'000'000}};
      queries.push_back({.workload = &tasks[2 * i / std::max<size_t>(count, 1)],
                         .trace = &traces[i],
                         .device = &device,
                         .rows = &rows[i],
                         .summary = &summaries[i],
                         .point = &points[i]});
    }
  }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
};

class CustomModel : public ::testing::Test {
 protected:
  // Writes a shell script and returns the name of its cost model. The script may use these functions:
  //   start ANSWER     reads the first message into the file "first" and answers
  //   ask              reads lines up to the next batch into the file "asked", and sets kind and n, its size
  //   scores           prints a list of n scores: 1, 2, ...
  std::string script(const std::string& body) {
    const std::string file = folder_.file("model.sh");
    std::ofstream(file)
        << "cd '" << folder_.file("") << "'\n"
        << "start() { IFS= read -r line;\n"
        << "  printf '%s\\n' \"$line\" >first; echo \"$1\"; }\n"
        << "ask() { while IFS= read -r line; do printf '%s\\n' \"$line\" >>asked;\n"
        << "  case \"$line\" in\n"
        << "    *'\"predict\":'*) kind=predict; n=${line#*'\"predict\":'}; n=${n%%,*}; return 0;;\n"
        << "    *'\"update\":'*) kind=update; n=${line#*'\"update\":'}; n=${n%%,*}; return 0;;\n"
        << "  esac; done; exit 0; }\n"
        << "scores() { s=1; i=2; while [ $i -le $n ]; do s=$s,$i; i=$((i+1)); done; echo $s; }\n"
        << body;
    return "command:sh '" + file + "'";
  }
  Result<std::unique_ptr<CostModel>> make(const std::string& body, bool frozen = false) {
    return make_search_model({.model = script(body), .frozen = frozen}, device());
  }
  std::vector<Json> lines(const std::string& file) const {
    std::ifstream in(folder_.file(file));
    std::vector<Json> out;
    for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
    return out;
  }
  static std::vector<double> seconds(const Result<std::vector<Prediction>>& predicted) {
    EXPECT_TRUE(predicted.ok()) << predicted.error().message();
    std::vector<double> out;
    if (predicted.ok())
      for (const Prediction& prediction : *predicted) out.push_back(prediction.seconds);
    return out;
  }

  ScratchDirectory folder_ = ScratchDirectory::create("custom-model-test").value();
  const Programs programs_{4};
};

// The loop of a model that gives programs the scores 1, 2, ...
std::string answering(const std::string& first) {
  return "start '" + first + "'\nid=0\nwhile ask; do id=$((id+1))\n" +
         "if [ $kind = update ]; then echo \"{\\\"id\\\":$id}\"; " +
         "else echo \"{\\\"id\\\":$id,\\\"scores\\\":[$(scores)]}\"; fi; done\n";
}

TEST(SplitCommandTest, WordsAndQuotes) {
  EXPECT_THAT(split_command("python3  model.py\t--depth 3").value(),
              ElementsAre("python3", "model.py", "--depth", "3"));
  EXPECT_THAT(split_command(R"('my model' "a 'b'" c\ d "" '\')").value(),
              ElementsAre("my model", "a 'b'", "c d", "", "\\"));
  EXPECT_THAT(split_command("python3 'model.py").error().message(), HasSubstr("has no end"));
  EXPECT_THAT(split_command("  ").error().message(), HasSubstr("command:PROGRAM"));
}

TEST(CustomFeaturesTest, NamesDiffer) {
  for (const auto kind : {target::DeviceKind::kCpu, target::DeviceKind::kGpu})
    for (const bool recorded : {false, true}) {
      const CustomFeatures features(kind, recorded);
      const std::set<std::string> names(features.names().begin(), features.names().end());
      EXPECT_EQ(names.size(), features.names().size());
      EXPECT_GT(names.size(), 40U);
    }
  const CustomFeatures own(target::DeviceKind::kCpu, false), all(target::DeviceKind::kCpu, true);
  EXPECT_EQ("cpu-nests." + own.names().front(), all.names().front());
  // A row has its numbers in the columns of its kind.
  const Programs programs(3);
  feature::ProgramSummary other = programs.summaries[2];
  other.kind = feature::ProgramKind::kGpuFlat;
  std::vector<float> values;
  all.append_row(programs.summaries[2], values);
  all.append_row(other, values);
  ASSERT_EQ(values.size(), 2 * all.names().size());
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[own.names().size() - 1], 0.5F);
  EXPECT_EQ(values[own.names().size()], 0);
  EXPECT_EQ(values[all.names().size()], 0);
}

TEST_F(CustomModel, IsAskedAboutFeatures) {
  const auto model = make(answering(R"({"inputs":["features"],"sigma":0.125})"));
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_THAT((*model)->card().kind, HasSubstr("command:sh "));
  EXPECT_TRUE((*model)->ranks_only());
  EXPECT_TRUE((*model)->takes_large_batches());
  EXPECT_FALSE((*model)->learns());
  EXPECT_TRUE((*model)->inputs().summary);
  const auto predicted = (*model)->predict(programs_.queries);
  EXPECT_THAT(seconds(predicted),
              ElementsAre(std::exp(-1.0), std::exp(-2.0), std::exp(-3.0), std::exp(-4.0)));
  EXPECT_EQ(predicted->front().log_sigma, 0.125);
  EXPECT_THAT(seconds((*model)->predict(std::span(programs_.queries).first(1))), ElementsAre(std::exp(-1.0)));

  const Json first = lines("first").front();
  EXPECT_EQ(first["protocol"], 1);
  EXPECT_EQ(first["device"]["name"], "xeon-8358");
  EXPECT_EQ(first["store_names"].size(), static_cast<size_t>(feature::kPerStoreWidth));
  const auto asked = lines("asked");
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[0]["name"], "first");
  EXPECT_EQ(asked[1]["task"], 1);
  EXPECT_EQ(asked[1]["flops"], 2e9);
  EXPECT_EQ(asked[2]["predict"], 4);
  EXPECT_EQ(asked[2]["tasks"], Json({0, 0, 1, 1}));
  ASSERT_EQ(asked[2]["features"].size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(asked[2]["features"][i].size(), first["feature_names"].size());
    EXPECT_EQ(asked[2]["features"][i][0], i);
    EXPECT_EQ(asked[2]["features"][i][1], 0.25);
  }
  EXPECT_FALSE(asked[2].contains("stores"));
  EXPECT_EQ(asked[3]["predict"], 1);
}

TEST_F(CustomModel, IsAskedAboutAllElse) {
  const auto model = make(answering(R"({"inputs":["stores","decisions","traces","programs"]})"));
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_TRUE((*model)->inputs().rows);
  EXPECT_TRUE((*model)->inputs().point);
  EXPECT_TRUE((*model)->inputs().trace_beside_summary);
  std::vector<ProgramQuery> queries(programs_.queries.begin(), programs_.queries.begin() + 2);
  queries[1].point = nullptr;
  ASSERT_EQ(seconds((*model)->predict(queries)).size(), 2U);
  const Json asked = lines("asked").back();
  EXPECT_EQ(asked["stores"][0].size(), 1U);
  EXPECT_EQ(asked["stores"][1].size(), 2U);
  EXPECT_EQ(asked["stores"][1][1].size(), static_cast<size_t>(feature::kPerStoreWidth));
  EXPECT_EQ(asked["decisions"], Json::parse("[[0,8,20000000],[]]"));
  EXPECT_EQ(asked["traces"].size(), 2U);
  EXPECT_EQ(asked["programs"].size(), 2U);
  EXPECT_FALSE(asked.contains("features"));
}

TEST_F(CustomModel, LearnsUnlessItIsFrozen) {
  const std::string body = answering(R"({"inputs":["features"],"update":true})");
  std::vector<MeasuredProgram> measured;
  for (const ProgramQuery& query : programs_.queries) measured.push_back({query, 0.5});
  measured.back().seconds = INFINITY;
  const auto model = make(body);
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_TRUE((*model)->learns());
  EXPECT_FALSE((*model)->ready());
  ASSERT_TRUE((*model)->update(measured).ok());
  EXPECT_TRUE((*model)->ready());
  EXPECT_EQ(lines("asked").back()["update"], 4);
  EXPECT_EQ(lines("asked").back()["seconds"], Json::parse("[0.5,0.5,0.5,null]"));
  const auto frozen = make(body, true);
  ASSERT_TRUE(frozen.ok()) << frozen.error().message();
  EXPECT_FALSE((*frozen)->learns());
  EXPECT_TRUE((*frozen)->ready());
}

// A loop that reads the arrays behind each line and answers with zeros.
std::string binary_answering(const std::string& inputs, size_t bytes_each) {
  return "start '{\"inputs\":" + inputs + ",\"format\":\"binary\"}'\nwhile ask; do\n" + "head -c $((n*" +
         std::to_string(bytes_each) + ")) >>arrays; echo \"{\\\"scores\\\":$n}\"\n" +
         "head -c $((4*n)) /dev/zero; done\n";
}

TEST_F(CustomModel, MayReadBinaryArrays) {
  const size_t width = CustomFeatures(target::DeviceKind::kCpu, false).names().size();
  const auto model = make(binary_answering("[\"features\"]", 4 + 4 * width));
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_THAT(seconds((*model)->predict(programs_.queries)), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(seconds((*model)->predict(programs_.queries)), ElementsAre(1, 1, 1, 1));
  const Json asked = lines("asked").back();
  EXPECT_EQ(asked["arrays"], Json({{"tasks", {4}}, {"features", {4, width}}}));
  std::ifstream in(folder_.file("arrays"), std::ios::binary);
  std::vector<int32_t> tasks(4);
  std::vector<float> features(4 * width);
  in.read(reinterpret_cast<char*>(tasks.data()), 16);
  in.read(reinterpret_cast<char*>(features.data()), static_cast<std::streamsize>(16 * width));
  ASSERT_TRUE(in.good());
  EXPECT_THAT(tasks, ElementsAre(0, 0, 1, 1));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(features[i * width], static_cast<float>(i));
}

// Transport and arrays of a batch of some thousand programs cost less than 5 us a program.
TEST_F(CustomModel, ABatchCostsLittle) {
  constexpr size_t kCount = 4096;
  const Programs many(kCount);
  const size_t width = CustomFeatures(target::DeviceKind::kCpu, false).names().size();
  const auto model = make(binary_answering("[\"features\"]", 4 + 4 * width));
  ASSERT_TRUE(model.ok()) << model.error().message();
  double best = INFINITY;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(seconds((*model)->predict(many.queries)).size(), kCount);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (!TENSORSMITH_THREAD_SANITIZER && !TENSORSMITH_ADDRESS_SANITIZER)
    test::expect_below("microseconds_of_a_program", 1e6 * best / kCount, 5);
}

TEST_F(CustomModel, LargeScoresKeepTheirOrder) {
  const auto model =
      make("start '{\"inputs\":[\"features\"]}'; ask; echo '{\"scores\":[-1e6,-2e6,1e9,null]}'; ask");
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto predicted = seconds((*model)->predict(programs_.queries));
  EXPECT_LT(predicted[0], predicted[1]);
  EXPECT_LT(predicted[2], predicted[0]);
  EXPECT_GT(predicted[2], 0);
  EXPECT_TRUE(std::isfinite(predicted[1]));
  EXPECT_EQ(predicted[3], INFINITY);
}

TEST_F(CustomModel, BadFirstAnswers) {
  const auto error_of = [&](const std::string& body) {
    const auto model = make(body);
    return model.ok() ? std::string() : model.error().message();
  };
  EXPECT_THAT(error_of("echo 'no module torch' >&2; exit 3"),
              HasSubstr("ended with status 3 instead of answering: no module torch"));
  EXPECT_THAT(error_of("kill -9 $$"), HasSubstr("SIGKILL"));
  EXPECT_THAT(error_of("start hello"), HasSubstr("not a JSON object: hello"));
  EXPECT_THAT(error_of("start '{}'"), HasSubstr("reads no input; there are features, stores, decisions"));
  EXPECT_THAT(error_of("start '{\"inputs\":[\"loops\"]}'"), HasSubstr("unknown input 'loops'"));
  EXPECT_THAT(error_of("start '{\"inputs\":[\"features\"],\"updates\":true}'"),
              HasSubstr("unknown field \"updates\""));
  EXPECT_THAT(error_of("start '{\"inputs\":[\"features\"],\"protocol\":2}'"),
              HasSubstr("speaks protocol 2, not 1"));
  EXPECT_THAT(error_of("start '{\"inputs\":[\"features\"],\"timeout\":0}'"), HasSubstr("\"timeout\""));
  EXPECT_THAT(error_of("start '{\"error\":\"no GPU\"}'"), HasSubstr("no GPU"));
  const auto missing = make_search_model({.model = "command:no-such-program-here --x"}, device());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(),
            "cost model command:no-such-program-here --x: the program 'no-such-program-here' was not found");
  std::ofstream(folder_.file("plain.py")) << "print()";
  const auto plain = make_search_model({.model = "command:" + folder_.file("plain.py")}, device());
  ASSERT_FALSE(plain.ok());
  EXPECT_THAT(plain.error().message(), HasSubstr("may not be executed"));
  const CustomSession session{programs_.device, {}};
  const auto silent = make_command_model("sleep 100", session, {.start_timeout_s = 0.1});
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, ErrorCode::kTimeout);
}

TEST_F(CustomModel, BadAnswers) {
  const auto error_of = [&](const std::string& answer, const std::string& more = "") {
    const auto model = make("start '{\"inputs\":[\"features\"]" + more + "}'\nask\n" + answer + "\nask");
    EXPECT_TRUE(model.ok()) << model.error().message();
    const auto predicted = (*model)->predict(programs_.queries);
    EXPECT_FALSE(predicted.ok()) << answer;
    const std::string message = predicted.ok() ? "" : predicted.error().message();
    EXPECT_THAT(message, HasSubstr("cost model command:sh "));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    // Later errors would only follow from the first.
    EXPECT_EQ((*model)->predict(programs_.queries).error().message(), message);
    return message;
  };
  EXPECT_THAT(error_of("echo '{\"scores\":[1,2,3]}'"), HasSubstr("returned 3 scores for 4 programs"));
  EXPECT_THAT(error_of("echo '{\"scores\":[1,2,3,NaN]}'"), HasSubstr("NaN"));
  EXPECT_THAT(error_of("echo '{\"scores\":[1,2,\"3\",4]}'"), HasSubstr("a score is no number: \"3\""));
  EXPECT_THAT(error_of("echo '{\"scores\":4}'"), HasSubstr("not a list of numbers"));
  EXPECT_THAT(error_of("echo '{\"score\":[1,2,3,4]}'"), HasSubstr("has no \"scores\""));
  EXPECT_THAT(error_of("echo loss 0.5"), HasSubstr("not a JSON object: loss 0.5"));
  EXPECT_THAT(error_of("echo '{\"id\":7,\"scores\":[1,2,3,4]}'"), HasSubstr("another message than 1"));
  EXPECT_THAT(error_of("echo '{\"error\":\"ValueError: shapes\"}'"), HasSubstr("ValueError: shapes"));
  EXPECT_THAT(error_of("echo a >&2; echo 'KeyError: x' >&2; exit 1"),
              HasSubstr("ended with status 1 instead of answering: KeyError: x"));
  EXPECT_THAT(error_of("echo training >&2; sleep 100", ",\"timeout\":0.2"),
              HasSubstr("has not answered for 0.2 s; it printed: training"));
  EXPECT_THAT(
      error_of("head -c 1000000 >/dev/null; echo '{\"scores\":3}'", ",\"format\":\"binary\",\"timeout\":0.2"),
      HasSubstr("has not answered"));
  EXPECT_THAT(error_of("echo '{\"scores\":3}'", ",\"format\":\"binary\""),
              HasSubstr("returned 3 scores for 4 programs"));
  EXPECT_THAT(
      error_of(
          "echo '{\"scores\":4}'; printf '\\0\\0\\300\\177\\0\\0\\300\\177\\0\\0\\300\\177\\0\\0\\300\\177'",
          ",\"format\":\"binary\""),
      HasSubstr("returned NaN as score 1 of 4"));
}

// A program that does not read is not waited for longer than its timeout.
TEST_F(CustomModel, MayNotRefuseToRead) {
  const Programs many(8192);
  const auto model =
      make("start '{\"inputs\":[\"features\"],\"format\":\"binary\",\"timeout\":0.3}'; sleep 100");
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto predicted = (*model)->predict(many.queries);
  ASSERT_FALSE(predicted.ok());
  EXPECT_EQ(predicted.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace tensorsmith::learn::custom_model_test
