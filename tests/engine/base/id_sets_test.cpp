// Encoded sets of ids.
#include "engine/base/sets/id_sets.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

using Ids = std::vector<std::int32_t>;

Ids random_ids(std::uint64_t seed, std::int32_t bound, double share) {
  Ids ids;
  for (std::int32_t id = 0; id < bound; ++id)
    if (uniform(seed, 1, static_cast<std::uint64_t>(id)) < share) ids.push_back(id);
  if (ids.empty()) ids.push_back(bound / 2);
  return ids;
}

TEST(IdSets, ComeBackInTheShortestForm) {
  std::uint64_t seed = 0;
  std::string forms;
  for (const std::int32_t bound : {2, 7, 8, 9, 300, 20000, 151936})
    for (const double share : {1e-5, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999}) {
      const Ids ids = random_ids(++seed, bound, share);
      const std::string set = encode_id_set(ids, bound);
      if (set.empty()) {
        EXPECT_EQ(std::ssize(ids), bound);
        continue;
      }
      EXPECT_EQ(value_or_throw(decode_id_set(set, bound)), ids) << bound << " " << share;
      std::vector<std::uint64_t> words((bound + 63) / 64, 0xA5), expected(words.size());
      for (const auto id : ids) expected[id / 64] |= std::uint64_t{1} << id % 64;
      EXPECT_TRUE(decode_id_set(set, bound, words));
      EXPECT_EQ(words, expected) << bound << " " << share;
      EXPECT_LE(std::ssize(set), max_id_set_bytes(bound));
      forms += set[0];
    }
  for (const char form : {'d', 'x', 'b'}) EXPECT_NE(forms.find(form), std::string::npos) << form;
}

TEST(IdSets, KnownBytes) {
  EXPECT_EQ(encode_id_set(Ids{0, 2, 200}, 100000), std::string("d\0\1\xC5\1", 5));
  Ids most(1000);
  std::iota(most.begin(), most.end(), 0);
  EXPECT_EQ(encode_id_set(most, 1000), "");
  most.erase(most.begin() + 3);
  EXPECT_EQ(encode_id_set(most, 1000), "x\3");
  EXPECT_EQ(encode_id_set(Ids{0, 2, 4, 6, 9, 11, 13, 15}, 16), "b\x55\xAA");
}

// Rows of a Zipf distribution with exponent 1.1 over 151,936 tokens whose ids are in random order
// (seed 44): median bytes of the sets that top_p and top_k leave (docs/grpo.md#sampling-masks).
TEST(IdSets, MedianBytesOfZipfRows) {
  constexpr std::int32_t tokens = 151936;
  std::vector<double> mass(tokens);
  for (std::int32_t rank = 0; rank < tokens; ++rank) mass[rank] = std::pow(rank + 1, -1.1);
  const double all = std::accumulate(mass.begin(), mass.end(), 0.0);
  const auto left_by_top_p = [&](double top_p) {
    double sum = 0;
    std::int32_t count = 0;
    while (sum < top_p * all) sum += mass[count++];
    return count;
  };
  std::vector<std::int32_t> counts = {left_by_top_p(0.8), left_by_top_p(0.9), left_by_top_p(0.95),
                                      50};
  std::vector<std::vector<std::size_t>> bytes(counts.size());
  for (std::uint64_t row = 0; row < 5; ++row) {
    std::vector<std::pair<double, std::int32_t>> order;
    for (std::int32_t id = 0; id < tokens; ++id)
      order.emplace_back(uniform(44, row, static_cast<std::uint64_t>(id)), id);
    std::ranges::sort(order);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      Ids ids;
      for (std::int32_t rank = 0; rank < counts[i]; ++rank) ids.push_back(order[rank].second);
      std::ranges::sort(ids);
      bytes[i].push_back(encode_id_set(ids, tokens).size());
    }
  }
  std::vector<std::size_t> medians;
  for (auto& each : bytes) {
    std::ranges::sort(each);
    EXPECT_LE(each.back(), tokens / 8 + 16);
    medians.push_back(each[2]);
  }
  EXPECT_THAT(counts, testing::ElementsAre(2670, 16444, 46995, 50));
  EXPECT_THAT(medians, testing::ElementsAre(2946, 16445, 18993, 98));
}

TEST(IdSets, BytesOfOthersAreRefused) {
  const auto error = [](std::string_view set, std::int64_t bound) {
    const auto decoded = decode_id_set(set, bound);
    return decoded ? "accepted" : decoded.error().what;
  };
  EXPECT_THAT(error("q\1", 10), testing::HasSubstr("expected 'd' (ids)"));
  EXPECT_THAT(error("d", 10), testing::HasSubstr("empty"));
  EXPECT_THAT(error("d\x0A", 10), testing::HasSubstr("the id 10"));
  EXPECT_THAT(error("d\x05\x05", 10), testing::HasSubstr("the id 11"));
  EXPECT_THAT(error("d\x85", 1000), testing::HasSubstr("ends within an id"));
  EXPECT_THAT(error("d\xFF\xFF\xFF\xFF\xFF\x01", 1000), testing::HasSubstr("ends within an id"));
  EXPECT_THAT(error("b\x01", 10), testing::HasSubstr("expected 2"));
  EXPECT_THAT(error(std::string_view("b\0\0", 3), 10), testing::HasSubstr("empty"));
  EXPECT_THAT(error(std::string_view("b\0\4", 3), 10), testing::HasSubstr("the id 10"));
  std::string all = "x";
  for (int i = 0; i < 10; ++i) all += '\0';
  EXPECT_THAT(error(all, 10), testing::HasSubstr("empty"));
}

TEST(IdSets, ListsKeepTheirOrder) {
  IdSets some, others;
  some.push_back("d\1");
  some.append_whole(2);
  EXPECT_FALSE(some.all_whole());
  others.append_whole(1);
  EXPECT_TRUE(others.all_whole());
  others.append(some, 0, 2);
  EXPECT_EQ(others.size(), 3u);
  EXPECT_EQ(others[1], "d\1");
  EXPECT_EQ(others[2], "");
  EXPECT_TRUE(others.validate());
  std::get<0>(fields(others))[1] = 9;
  EXPECT_FALSE(others.validate());
}

}  // namespace
}  // namespace troupe
