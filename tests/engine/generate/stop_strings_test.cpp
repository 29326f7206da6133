#include "engine/generate/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/sanitized.h"

namespace troupe::engine::generate {
namespace {

/// Token i is the i-th piece; token 0 has no text, as a special token that is left out; a leading
/// space of the text is stripped.
const std::vector<std::string> pieces = {"",   " ",  "a",    "b",        "ab",
                                         "ba", "\n", "\n\n", " the end", "é"};

std::string decode(std::span<const std::int32_t> ids) {
  std::string text;
  for (const std::int32_t id : ids) text += pieces[id];
  return text.starts_with(' ') ? text.substr(1) : text;
}

TEST(StopStrings, MayCrossTokens) {
  const std::vector<std::int32_t> ids = {2, 3, 2, 8};
  const StopMatch match = find_stop(ids, {"a the"}, decode);
  EXPECT_EQ(match.stop, "a the");
  EXPECT_EQ(match.text, "ab");
  EXPECT_FALSE(find_stop(std::span(ids).first(3), {"a the"}, decode).found());
}

TEST(StopStrings, TheEarliestInTheTextWins) {
  const std::vector<std::int32_t> ids = {4, 8};
  EXPECT_EQ(find_stop(ids, {"end", "the"}, decode).stop, "the");
  EXPECT_EQ(find_stop(ids, {"b", "b the"}, decode).stop, "b") << "the first listed among equals";
}

TEST(StopStrings, AStrippedSpaceAtTheTailIsNotForgotten) {
  std::vector<std::int32_t> ids(200, 2);
  ids.push_back(8);
  EXPECT_EQ(find_stop(ids, {" the end"}, decode).text, std::string(200, 'a'));
}

TEST(StopStrings, EndBeyondTheFirstTokens) {
  const std::vector<std::int32_t> ids = {2, 3, 3, 4, 2};  // "a" "b" "b" "ab" "a"
  const auto at = [&](std::size_t count, std::int32_t at_least, const std::string& stop) {
    return find_stop(std::span(ids).first(count), {stop}, decode, at_least);
  };
  EXPECT_FALSE(at(2, 2, "b").found()) << "the output has no more tokens";
  EXPECT_EQ(at(3, 2, "b").text, "ab") << "the second b follows the two tokens";
  EXPECT_EQ(at(3, 2, "bb").text, "a") << "a match may begin within them";
  EXPECT_FALSE(at(3, 2, "ab").found());
  EXPECT_EQ(at(4, 2, "ab").text, "abb");
  EXPECT_EQ(at(5, 0, "b").text, "a");
}

TEST(StopStrings, MayHaveTokensWithoutTextInside) {
  std::vector<std::int32_t> ids(100, 3);
  ids.push_back(2);
  ids.insert(ids.end(), 500, 0);
  ids.push_back(8);
  EXPECT_EQ(find_stop(ids, {"a the"}, decode).text, std::string(100, 'b'));
}

TEST(StopStrings, SearchingTheTailFindsWhatSearchingTheWholeFinds) {
  std::mt19937 random(5);
  // The oracle decodes the whole text for each token, which is slow with a sanitizer.
  const int rounds = test::sanitized ? 30 : 300;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<std::string> stops = {"aab\nb", "é the end\n", std::string(40, 'a')};
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 400; ++i) {
      // Long stretches without text and of the same letter, so that tails of all kinds occur.
      const bool stretch = random() % 8 == 0;
      const auto id = static_cast<std::int32_t>(random() % pieces.size());
      for (std::size_t n = stretch ? random() % 100 : 1; n > 0; --n) {
        ids.push_back(stretch && random() % 2 == 0 ? 0 : id);
        std::size_t expected = std::string::npos;
        for (const auto& stop : stops) expected = std::min(expected, decode(ids).find(stop));
        const StopMatch match = find_stop(ids, stops, decode);
        ASSERT_EQ(match.found(), expected != std::string::npos);
        if (!match.found()) continue;
        ASSERT_EQ(match.at, expected);
        ids.clear();
        break;
      }
      if (ids.size() > 300) break;
    }
  }
}

}  // namespace
}  // namespace troupe::engine::generate
