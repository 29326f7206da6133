#include "engine/generate/kv_cache.h"

#include <gtest/gtest.h>

namespace troupe::engine::generate {
namespace {

models::DecoderSpec spec_of(std::int64_t layers, std::int64_t kv_heads, std::int64_t head_size,
                            std::int64_t positions) {
  models::DecoderSpec spec;
  spec.layers = layers;
  spec.kv_heads = static_cast<int>(kv_heads);
  spec.head_size = static_cast<int>(head_size);
  spec.max_positions = positions;
  return spec;
}

// Qwen2.5-0.5B: 24 layers, 2 heads of 64.
TEST(CacheSize, ATokenHasKeysAndValuesInEachLayer) {
  EXPECT_EQ(cached_token_bytes(spec_of(24, 2, 64, 32768)), 24576);
}

TEST(CacheSize, HasRoomForAllSequencesOfTheRunsLength) {
  const auto small = spec_of(4, 4, 32, 2048);
  EXPECT_EQ(default_pages(small, 16, 512, 64), 512 * 4);
  EXPECT_EQ(default_pages(small, 16, 512, 65), 512 * 5) << "whole pages";
  EXPECT_EQ(default_pages(small, 16, 8, 0), 8 * 128) << "of the model's positions";
  EXPECT_EQ(default_pages(small, 16, 8, 1 << 20), 8 * 128)
      << "no sequence is longer than the model's";
}

TEST(CacheSize, EndsAtAGibibyteButHoldsASequenceOfAKnownLength) {
  const auto half_billion = spec_of(24, 2, 64, 32768);
  EXPECT_EQ(default_pages(half_billion, 16, 64, 1024), (std::int64_t{1} << 30) / (16 * 24576));
  EXPECT_EQ(default_pages(half_billion, 16, 64, 0), (std::int64_t{1} << 30) / (16 * 24576));
  const auto seven_billion = spec_of(32, 32, 128, 4096);  // a token takes 1 MiB
  EXPECT_EQ(default_pages(seven_billion, 16, 64, 2048), 128);
  EXPECT_EQ(default_pages(seven_billion, 16, 64, 0), 64) << "how long sequences get is not known";
}

TEST(CacheSize, IsCountedIn32Bits) {
  EXPECT_LE(
      default_pages(spec_of(1, 1, 1, std::int64_t{1} << 31), 16, 1 << 16, std::int64_t{1} << 31),
      max_cached_tokens / 16);
}

}  // namespace
}  // namespace troupe::engine::generate
