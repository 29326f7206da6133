// What requests generate each in a generator of its own: the oracle of batches, caches and drafts.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/generate/generator.h"
#include "tests/support/generate_all.h"

namespace troupe::test {

inline void expect_same_bits(const engine::generate::Generation& found,
                             const engine::generate::Generation& expected) {
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.logp, expected.logp);
  EXPECT_EQ(found.sampling_logp, expected.sampling_logp);
  EXPECT_EQ(found.finish, expected.finish);
  EXPECT_EQ(found.stop_string, expected.stop_string);
  EXPECT_EQ(found.text, expected.text);
  ASSERT_EQ(found.top.size(), expected.top.size());
  for (std::size_t i = 0; i < found.top.size(); ++i) {
    ASSERT_EQ(found.top[i].size(), expected.top[i].size());
    for (std::size_t k = 0; k < found.top[i].size(); ++k) {
      EXPECT_EQ(found.top[i][k].id, expected.top[i][k].id);
      EXPECT_EQ(found.top[i][k].logp, expected.top[i][k].logp);
    }
  }
}

/// By id. Of `config` only what changes tokens is used.
inline std::map<std::uint64_t, engine::generate::Generation> generated_alone(
    engine::models::Decoder& model, const std::vector<engine::generate::Request>& requests,
    const engine::generate::GeneratorConfig& config) {
  std::map<std::uint64_t, engine::generate::Generation> out;
  for (const engine::generate::Request& each : requests) {
    auto generator =
        value_or_throw(engine::generate::Generator::create(model, {.precision = config.precision,
                                                                   .weights = config.weights,
                                                                   .eos_ids = config.eos_ids,
                                                                   .decode = config.decode}));
    out[each.id] = value_or_throw(test::generate_all(generator, {each})).at(0);
  }
  return out;
}

}  // namespace troupe::test
