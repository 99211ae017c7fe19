#include "learn/latency/model_file.h"

#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "learn/latency/parameters.h"
#include "record/record_testing.h"

namespace tensorsmith::learn::model_file_test {
namespace {

using Json = nlohmann::json;
using record::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelFile sample() {
  ModelFile file;
  file.card.kind = "xgboost";
  file.card.feature_version = feature::kPerStoreVersion;
  file.card.store_hash = "0123456789abcdef0123456789abcdef";
  file.card.split = "fedcba9876543210fedcba9876543210";
  file.card.devices = {"v100", "quoted \"name\""};
  file.card.workloads = {"a", "b"};
  file.card.records = 123456789012345;
  file.card.seed = UINT64_MAX;
  file.card.command = "tensorsmith train --model 'x'";
  file.card.parameters = R"({"eta":0.2})";
  file.card.metrics = R"({"mape":0.125})";
  const float floats[] = {1.5F, -0.0F, INFINITY, 1e-40F, 2.0F, 3.0F};
  const double doubles[] = {0.1};
  const int32_t ints[] = {-1, 1 << 30};
  const uint16_t shorts[] = {65535, 0, 7};
  const uint8_t bytes[] = {255};
  file.add<uint8_t>("bytes", {1}, bytes);
  file.add<float>("floats", {2, 3}, floats);
  file.add<double>("scalar", {}, doubles);
  file.add<int32_t>("ints", {2}, ints);
  file.add<uint16_t>("shorts", {3}, shorts);
  file.add<float>("nothing", {0, 4}, {});
  return file;
}

void expect_equal(const ModelFile& a, const ModelFile& b) {
  EXPECT_EQ(a.card.kind, b.card.kind);
  EXPECT_EQ(a.card.feature_version, b.card.feature_version);
  EXPECT_EQ(a.card.store_hash, b.card.store_hash);
  EXPECT_EQ(a.card.split, b.card.split);
  EXPECT_EQ(a.card.devices, b.card.devices);
  EXPECT_EQ(a.card.workloads, b.card.workloads);
  EXPECT_EQ(a.card.records, b.card.records);
  EXPECT_EQ(a.card.seed, b.card.seed);
  EXPECT_EQ(a.card.command, b.card.command);
  EXPECT_EQ(a.card.parameters, b.card.parameters);
  EXPECT_EQ(a.card.metrics, b.card.metrics);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const ModelTensor& tensor : a.tensors) {
    const ModelTensor* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->type, tensor.type);
    EXPECT_EQ(other->shape, tensor.shape);
    EXPECT_EQ(other->data, tensor.data);
  }
}

TEST(ModelFile, WhatIsWrittenIsReadAgain) {
  const TempDir folder;
  const std::string path = folder.file("model");
  const ModelFile file = sample();
  ASSERT_TRUE(write_model_file(file, path).ok());
  const auto read = read_model_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  expect_equal(*read, file);
  EXPECT_EQ(to_bytes(*read), to_bytes(file));
  EXPECT_THAT(read->values<int32_t>("ints", {-1}).value(), ElementsAre(-1, 1 << 30));
  EXPECT_EQ(read->values<int32_t>("ints", {3}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read->values<float>("ints", {2}).error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read->values<float>("weights", {2}).error().message(), HasSubstr("'weights'"));
  EXPECT_THAT(folder.names(), ElementsAre("model"));
}

// Parsed according to the format's description, without our own code.
TEST(ModelFile, IsSafetensors) {
  const std::string bytes = to_bytes(sample());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  const Json header = Json::parse(bytes.substr(8, length));
  for (const auto& [name, value] : header["__metadata__"].items()) EXPECT_TRUE(value.is_string()) << name;
  EXPECT_EQ(header["floats"]["dtype"], "F32");
  EXPECT_EQ(header["floats"]["shape"], Json::parse("[2,3]"));
  const auto begin = header["floats"]["data_offsets"][0].get<size_t>();
  EXPECT_EQ(header["floats"]["data_offsets"][1].get<size_t>(), begin + 24);
  EXPECT_EQ(begin % 4, 0u);
  float first = 0;
  std::memcpy(&first, bytes.data() + 8 + length + begin, 4);
  EXPECT_EQ(first, 1.5F);
  EXPECT_EQ(header["scalar"]["data_offsets"], Json::parse("[0,8]"));  // the widest type first
}

TEST(ModelFile, AnyDamageIsFound) {
  const std::string good = to_bytes(sample());
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_EQ(parse_model_file(good.substr(0, size)).error().code, ErrorCode::kCorrupt) << size;
  EXPECT_FALSE(parse_model_file(good + "x").ok());
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = good;
    const size_t at = rng.below(good.size());
    damaged[at] ^= static_cast<char>(1 + rng.below(255));
    const auto read = parse_model_file(damaged);
    // Blanks around the header's JSON are ignored.
    if (read.ok()) {
      expect_equal(*read, sample());
      EXPECT_EQ(good[at], ' ') << at;
    }
  }
}

TEST(ModelFile, OtherVersionsAreNamed) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string bytes = to_bytes(sample());
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, from.size(), to);
    return parse_model_file(bytes);
  };
  EXPECT_EQ(changed(R"("version":"1")", R"("version":"9")").error().code, ErrorCode::kMismatch);
  EXPECT_EQ(changed(R"("feature_version":"1")", R"("feature_version":"9")").error().code,
            ErrorCode::kMismatch);
  EXPECT_THAT(changed("tensorsmith latency", "somebody's  latency").error().message(),
              HasSubstr("not a cost model"));
}

// Headers that are well-formed JSON, but do not describe tensors.
TEST(ModelFile, FalseHeadersAreRefused) {
  const auto parse = [](const std::string& entry, const std::string& data) {
    ModelFile empty = sample();
    empty.tensors.clear();
    const std::string bytes = to_bytes(empty);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    Json header = Json::parse(bytes.substr(8, length));
    header["t"] = Json::parse(entry);
    const std::string text = header.dump();
    length = text.size();
    std::string out(8, '\0');
    std::memcpy(out.data(), &length, 8);
    return parse_model_file(out + text + data).error().message();
  };
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", "1234"), HasSubstr("size"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "123"), HasSubstr("outside"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", "12345678"), HasSubstr("gaps"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", "12345"), HasSubstr("no tensor"));
  EXPECT_THAT(parse(R"({"dtype":"F16","shape":[1],"data_offsets":[0,2]})", "12"), HasSubstr("element type"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", "1234"), HasSubstr("shape"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})", ""),
              HasSubstr("size"));
  EXPECT_THAT(parse(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", "1234"),
              HasSubstr("shape"));
  EXPECT_THAT(parse(R"([1])", ""), HasSubstr("not described"));
  // The header is printed for its hash, with one call per level.
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string text = R"({"__metadata__":{},"t":)" + deep + "}";
  const uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  EXPECT_THAT(parse_model_file(bytes + text).error().message(), HasSubstr("not a JSON object"));
}

TEST(Parameters, ReadCheckedAndListed) {
  const auto read = [](const Json& given) -> Result<Json> {
    double eta = 0.2;
    int rounds = 300;
    bool weights = true;
    std::string label = "seconds";
    Parameters parameters(given);
    parameters.real("eta", eta, 0.001, 1);
    parameters.integer("rounds", rounds, 1, 10000);
    parameters.flag("weights", weights);
    parameters.choice("label", label, {"seconds", "throughput"});
    auto all = parameters.finish();
    if (all.ok()) {
      EXPECT_EQ((*all)["rounds"], rounds);
    }
    return all;
  };
  EXPECT_EQ(read(Json::object()).value(),
            Json::parse(R"({"eta":0.2,"rounds":300,"weights":true,"label":"seconds"})"));
  const auto given = parse_parameters({"rounds=7", "label=throughput", "weights=false", "eta=1e-2"});
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(read(*given).value(),
            Json::parse(R"({"eta":0.01,"rounds":7,"weights":false,"label":"throughput"})"));
  const auto message = [&](const char* text) { return read(Json::parse(text)).error().message(); };
  EXPECT_THAT(message(R"({"eta":2})"), HasSubstr("eta: must be a number from 0.001 to 1"));
  EXPECT_THAT(message(R"({"rounds":1.5})"), HasSubstr("rounds: must be a whole number"));
  EXPECT_THAT(message(R"({"rounds":"many"})"), HasSubstr("rounds"));
  EXPECT_THAT(message(R"({"weights":1})"), HasSubstr("true or false"));
  EXPECT_THAT(message(R"({"label":"x"})"), HasSubstr("seconds, throughput"));
  EXPECT_THAT(message(R"({"etta":0.1})"),
              HasSubstr("is unknown; the parameters of this kind of model are eta, label"));
  EXPECT_THAT(message("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(parse_parameters({"x"}).error().message(), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(parse_parameters({"x=1", "x=2"}).error().message(), HasSubstr("twice"));
}

}  // namespace
}  // namespace tensorsmith::learn::model_file_test
