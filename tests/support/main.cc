// The main function of all test programs. A program holds the tests of a folder;
// `--sources=base/id_test.cc,...` runs only the tests in these files below tests/. GoogleTest's
// --gtest_filter selects among them.
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::testing {
namespace {

constexpr std::string_view kOption = "--sources=";

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(list)};
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// Returns the path of a test's file below tests/, with '/': compilers keep the path that they were
// given, without the prefix map.
std::string below_tests(std::string_view file) {
  constexpr std::string_view kFolder = "tests/";
  const size_t at = file.rfind(kFolder);
  return std::string(at == std::string_view::npos ? file : file.substr(at + kFolder.size()));
}

// Returns GoogleTest's filter for the tests in `sources` whose names match the positive part of
// `filter`, less those that its negative part excludes. Empty if one of the sources has no test.
std::string filter_of(const std::vector<std::string>& sources, std::string_view filter) {
  const size_t minus = std::min(filter.find('-'), filter.size());
  const auto patterns = split(minus == 0 ? "*" : filter.substr(0, minus), ':');
  std::vector<bool> has_tests(sources.size());
  std::string selected;
  const auto& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      const auto source = std::find(sources.begin(), sources.end(), below_tests(test.file()));
      if (source == sources.end()) continue;
      has_tests[static_cast<size_t>(source - sources.begin())] = true;
      const std::string name = std::string(suite.name()) + "." + test.name();
      const auto matches = [&](const std::string& p) { return ::fnmatch(p.c_str(), name.c_str(), 0) == 0; };
      if (std::any_of(patterns.begin(), patterns.end(), matches))
        selected += (selected.empty() ? "" : ":") + name;
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (has_tests[i]) continue;
    std::cerr << "no test lies in tests/" << sources[i] << "\n";
    return "";
  }
  return selected.empty() ? "-*" : selected + std::string(filter.substr(minus));
}

int run(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kOption)) {
      std::cerr << "unknown argument '" << argument << "'; known are " << kOption
                << "FILE,... and GoogleTest's\n";
      return 2;
    }
    const std::string filter = filter_of(split(argument.substr(kOption.size()), ','), GTEST_FLAG_GET(filter));
    if (filter.empty()) return 2;
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tensorsmith::testing

int main(int argc, char** argv) { return tensorsmith::testing::run(argc, argv); }
