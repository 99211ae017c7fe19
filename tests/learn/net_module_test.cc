// The neural models as the program uses them: through the registry, from a module that is loaded on
// demand.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "lab/kinds/kinds.h"
#include "latency_testing.h"
#include "learn/net/module.h"

namespace tensorsmith::learn::net_module_test {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

#if TENSORSMITH_TORCH
TEST(NetModule, TrainsSavesAndLoadsThroughTheRegistry) {
  const testing::MadeStore store({.tasks = 3, .programs = 20});
  const TrainingData data = store.data();
  for (const char* kind : {"mlp", "tlp", "mtl-tlp", "cdmpp", "resource-net"}) {
    EXPECT_THAT(lab::cost_model_kinds().names(), Contains(kind));
    const auto trainer = lab::cost_model_kinds().make_trainer(kind, json{{"epochs", 1}, {"width", 16}});
    ASSERT_TRUE(trainer.ok()) << trainer.error().message();
    const auto model = (*trainer)->train(data, {});
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ((*model)->card().kind, kind);
    const std::string path = store.folder().file(kind);
    ASSERT_TRUE((*model)->save(path).ok());
    const auto read = lab::cost_model_kinds().load(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    const auto before = predict_records(**model, store.store(), data.devices, store.test());
    const auto after = predict_records(**read, store.store(), data.devices, store.test());
    ASSERT_TRUE(before.ok() && after.ok());
    for (size_t i = 0; i < before->size(); ++i) EXPECT_EQ((*before)[i].seconds, (*after)[i].seconds);
  }
}
#else
TEST(NetModule, TheErrorSaysHowToGetNeuralModels) {
  const auto trainer = lab::cost_model_kinds().make_trainer("cdmpp", json::object());
  ASSERT_FALSE(trainer.ok());
  EXPECT_EQ(trainer.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(trainer.error().message(), HasSubstr("TENSORSMITH_TORCH=ON"));
}
#endif

}  // namespace
}  // namespace tensorsmith::learn::net_module_test
