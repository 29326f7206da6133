// The values of the config.json that each dense model of `troupe info --models` is published with:
// all are read, and give the number of parameters that the model is published with.
#include <gtest/gtest.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/models/families.h"

namespace troupe::engine::models {
namespace {

TEST(PublishedConfigs, GiveTheNumbersOfTheirModels) {
  const std::string path = TROUPE_TEST_DATA "/model_configs/dense_models.json";
  const Json rows = value_or_throw(read_json(path));
  int compared = 0;
  for (const Json& row : rows.array()) {
    const std::string& model = row.find("model")->string();
    const auto spec = read_spec(*row.find("config"), model);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().what);
    const Json& published = *row.find("parameters");
    if (!spec || published.is_null()) continue;
    EXPECT_EQ(spec->parameter_count(), published.integer()) << model;
    ++compared;
  }
  EXPECT_GE(compared, 50);
}

}  // namespace
}  // namespace troupe::engine::models
