// Cost models that are programs of the user, in `tune` and `compare`.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_support.h"

namespace tensorsmith::testing::custom_model_cli_test {
namespace {

class CustomModelCli : public ::testing::Test {
 protected:
  void SetUp() override { options_.directory = directory_.path(); }
  CliResult cli(const std::vector<std::string>& arguments) const { return run_cli(arguments, options_); }
  // Writes a model, a shell script; `batch` is run for each batch, whose kind is "predict" or "update" and
  // whose size is n. Returns the name of the cost model.
  std::string model(const std::string& batch) const {
    std::ofstream(directory_.path() / "model.sh")
        << "IFS= read -r first; echo '{\"inputs\":[\"features\"],\"update\":true}'\n"
        << "scores() { s=1; i=2; while [ $i -le $n ]; do s=$s,$((i%7)); i=$((i+1)); done; echo $s; }\n"
        << "while IFS= read -r line; do\n"
        << "case \"$line\" in *'\"predict\":'*) kind=predict;; *'\"update\":'*) kind=update;; *) continue;; "
           "esac\n"
        << "n=${line#*\\\"$kind\\\":}; n=${n%%,*}; echo $kind $n >>asked\n"
        << batch << "\ndone\n";
    return "command:sh model.sh";
  }
  static std::string answering() {
    return "if [ $kind = update ]; then echo '{}'; else echo \"{\\\"scores\\\":[$(scores)]}\"; fi";
  }
  // The error of a run must be one line.
  void expect_error(const std::vector<std::string>& arguments, const std::string& text) const {
    const CliResult result = cli(arguments);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }

  const std::vector<std::string> tune_ = {"tune",
                                          "zoo:bert_tiny",
                                          "-o",
                                          "out",
                                          "--trials",
                                          "16",
                                          "--batch",
                                          "4",
                                          "--threads",
                                          "1",
                                          "--quiet",
                                          "--skip-end-to-end",
                                          "--no-warm-start",
                                          "--cost-model"};
  TemporaryDirectory directory_;
  CliOptions options_;
};

std::vector<std::string> with(std::vector<std::string> arguments, const std::string& last) {
  arguments.push_back(last);
  return arguments;
}

TEST_F(CustomModelCli, Tunes) {
  auto arguments = with(tune_, model(answering()));
  arguments.insert(arguments.end(), {"--report", "report.html"});
  const CliResult tuned = cli(arguments);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  std::ifstream asked(directory_.path() / "asked");
  const std::string text(std::istreambuf_iterator<char>(asked), {});
  EXPECT_NE(text.find("update "), std::string::npos) << text;
  EXPECT_NE(text.find("predict "), std::string::npos) << text;
  std::ifstream report(directory_.path() / "report.html");
  const std::string page(std::istreambuf_iterator<char>(report), {});
  EXPECT_NE(page.find("command:sh model.sh"), std::string::npos);
}

TEST_F(CustomModelCli, IsComparedWithEveryStrategy) {
  const CliResult compared = cli({"compare",      "zoo:bert_tiny",
                                  "--heaviest",   "1",
                                  "--trials",     "8",
                                  "--batch",      "4",
                                  "--seeds",      "1",
                                  "--threads",    "1",
                                  "--strategy",   "evolutionary",
                                  "--strategy",   "annealing",
                                  "--strategy",   "descent",
                                  "--strategy",   "ansor",
                                  "--strategy",   "mixed",
                                  "--cost-model", model(answering()),
                                  "--cost-model", "random",
                                  "--quiet",      "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const auto methods = nlohmann::json::parse(compared.out)["methods"];
  ASSERT_EQ(methods.size(), 10U);
  for (size_t m = 0; m < methods.size(); ++m) {
    EXPECT_EQ(methods[m]["model"], m % 2 == 0 ? "command:sh model.sh" : "random");
    EXPECT_EQ(methods[m]["runs"][0]["trials"], 8);
  }
}

TEST_F(CustomModelCli, ErrorsEndTheCommand) {
  expect_error(with(tune_, "command:no-such-program"), "the program 'no-such-program' was not found");
  expect_error(with(tune_, "command:"), "names no program");
  expect_error(with(tune_, "command:sh -c 'echo bad weights >&2; exit 2'"),
               "ended with status 2 instead of answering: bad weights");
  const std::string learns = "if [ $kind = update ]; then echo '{}'; else ";
  expect_error(
      with(tune_, model(learns + "echo no memory >&2; exit 1; fi")),
      "cost model command:sh model.sh: the program ended with status 1 instead of answering: no memory");
  expect_error(with(tune_, model(learns + "echo '{\"scores\":[1]}'; fi")), "returned 1 scores for ");
  expect_error({"compare", "zoo:bert_tiny", "--heaviest", "1", "--trials", "8", "--batch", "4", "--seeds",
                "1", "--threads", "1", "--quiet", "--cost-model", model(learns + "echo nonsense; fi")},
               "not a JSON object: nonsense");
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "out"));
  // Earlier measurements are kept.
  EXPECT_EQ(cli(with(tune_, "none")).exit_code, 0);
}

}  // namespace
}  // namespace tensorsmith::testing::custom_model_cli_test
