#include "engine/constraints/constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints {
namespace {

std::shared_ptr<const TokenTable> table_of(std::vector<std::string> tokens) {
  return std::make_shared<const TokenTable>(std::move(tokens));
}

std::vector<int> allowed(Constraint& constraint, Constraint::State state, int tokens) {
  std::vector<int> out;
  const auto mask = constraint.allowed(state);
  for (int id = 0; id < tokens; ++id)
    if (mask->has(id)) out.push_back(id);
  return out;
}

TEST(Constraint, AllowsTheTokensThatCanBeContinued) {
  const auto table = table_of({"", "a", "ab", "abc", "b", "c", "ca", "abc"});
  Constraint constraint(value_or_throw(compile_regex("(abc)+")), table);
  const auto start = constraint.start();
  EXPECT_THAT(allowed(constraint, start, 8), testing::ElementsAre(1, 2, 3, 7));
  EXPECT_FALSE(constraint.may_end(start));
  const auto ab = constraint.after(start, 2);
  EXPECT_THAT(allowed(constraint, ab, 8), testing::ElementsAre(5, 6));
  const auto abc = constraint.after(ab, 5);
  EXPECT_TRUE(constraint.may_end(abc));
  EXPECT_FALSE(constraint.must_end(abc));
  EXPECT_EQ(constraint.after(abc, 4), Automaton::dead);
  EXPECT_EQ(constraint.after(abc, 0), Automaton::dead);
  EXPECT_EQ(constraint.after(abc, 99), Automaton::dead);
}

TEST(Constraint, MasksAreThoseOfEachTokenAlone) {
  const auto table = test::small_vocabulary();
  Constraint constraint(
      value_or_throw(compile_schema(value_or_throw(parse_json(
          R"({"type": "array", "items": {"type": "string", "maxLength": 3}})", "schema")))),
      table);
  std::mt19937 random(3);
  auto state = constraint.start();
  for (int step = 0; step < 200 && !constraint.must_end(state); ++step) {
    const auto mask = constraint.allowed(state);
    std::vector<std::int32_t> next;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(table->size()); ++id) {
      EXPECT_EQ(mask->has(id), constraint.after(state, id) != Automaton::dead) << id;
      if (mask->has(id)) next.push_back(id);
    }
    ASSERT_FALSE(next.empty());
    state = constraint.after(state, next[random() % next.size()]);
  }
}

TEST(Constraint, MasksOfCountsAreThoseOfEachTokenAlone) {
  const auto table = test::small_vocabulary();
  for (const char* pattern :
       {"(a{2,300}|\\d){9,30}x", "((a?b?){0,40}){2,9}", "(\\W{50}\\n{0,9}){0,20}"}) {
    Constraint constraint(value_or_throw(compile_regex(pattern)), table);
    std::mt19937 random(4);
    for (int text = 0; text < 3; ++text) {
      auto state = constraint.start();
      for (int step = 0; step < 150; ++step) {
        const auto mask = constraint.allowed(state);
        std::vector<std::int32_t> next;
        for (std::int32_t id = 0; id < static_cast<std::int32_t>(table->size()); ++id) {
          ASSERT_EQ(mask->has(id), constraint.after(state, id) != Automaton::dead)
              << pattern << ", step " << step << ", token " << id;
          if (mask->has(id)) next.push_back(id);
        }
        if (next.empty()) break;
        state = constraint.after(state, next[random() % next.size()]);
      }
    }
  }
}

TEST(Constraint, StatesThatNoTokenDistinguishesShareAMask) {
  const auto table = test::small_vocabulary();
  Constraint constraint(value_or_throw(compile_regex("a{0,5000}")), table);
  std::set<std::shared_ptr<const TokenMask>> masks;
  auto state = constraint.start();
  for (int i = 0; i < 5000; ++i) {
    masks.insert(constraint.allowed(state));
    state = constraint.after(state, 'a' + 1);
  }
  EXPECT_LE(masks.size(), table->longest() + 2);
  EXPECT_FALSE(constraint.allowed(state)->has('a' + 1));
}

TEST(Constraint, AMaskInPartsIsTheSame) {
  const auto table = test::small_vocabulary();
  const Grammar grammar = value_or_throw(compile_regex("(.*a.{9}|[^x]{3,9}b){2,5}"));
  Constraint constraint(grammar, table), other(grammar, table);
  auto state = constraint.start(), same = other.start();
  for (int step = 0; step < 30; ++step) {
    MaskWalk walk;
    std::shared_ptr<const TokenMask> mask;
    int parts = 0;
    for (; mask == nullptr; ++parts) {
      std::uint64_t budget = 100;
      mask = constraint.allowed(state, walk, budget);
      EXPECT_TRUE(mask != nullptr || budget == 0);
    }
    EXPECT_GT(parts + step, 1);
    const auto whole = other.allowed(same);
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(table->size()); ++id)
      ASSERT_EQ(mask->has(id), whole->has(id));
    state = constraint.after(state, 'c' + 1);
    same = other.after(same, 'c' + 1);
  }
}

TEST(Constraint, AMaskIsComputedOncePerState) {
  const auto table = table_of({"a", "b"});
  Constraint constraint(value_or_throw(compile_regex("(ab)*")), table);
  const auto a = constraint.after(constraint.start(), 0);
  const auto mask = constraint.allowed(a);
  const auto again = constraint.after(constraint.after(a, 1), 0);
  EXPECT_EQ(again, a);
  EXPECT_EQ(constraint.allowed(again), mask);
}

TEST(Constraint, EndsWithTheLastCharacterOfAChoice) {
  const auto table = table_of({"yes", "no", "n", "o", "ye", "s", "x"});
  Constraint constraint(value_or_throw(compile_choice({"yes", "no", "not"})), table);
  EXPECT_THAT(allowed(constraint, constraint.start(), 7), testing::ElementsAre(0, 1, 2, 4));
  EXPECT_TRUE(constraint.must_end(constraint.after(constraint.start(), 0)));
  const auto no = constraint.after(constraint.start(), 1);
  EXPECT_TRUE(constraint.may_end(no));
  EXPECT_FALSE(constraint.must_end(no));
}

TEST(TokenTable, NodesAreInDepthFirstOrder) {
  const TokenTable table({"b", "abc", "", "a", "abd", "abc"});
  std::string bytes;
  for (const auto& node : table.nodes()) bytes += static_cast<char>(node.byte);
  EXPECT_EQ(bytes, "abcdb");
  EXPECT_EQ(table.nodes()[0].skip, 4);
  EXPECT_EQ(table.nodes()[2].last - table.nodes()[2].first, 2);
  EXPECT_EQ(table.nodes()[1].last - table.nodes()[1].first, 0);
  EXPECT_EQ(table.longest(), 3U);
}

}  // namespace
}  // namespace troupe::engine::constraints
