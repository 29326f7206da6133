#include "engine/loss/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/base/errors/check.h"

namespace troupe::engine::loss {
namespace {

TEST(Report, MeansOfPartsMergeToTheMeanOfTheWhole) {
  Report a, b, whole;
  a.mean("kl", std::vector<double>{1, 2, 3}, std::vector<double>{1, 1, 0});
  b.mean("kl", std::vector<double>{7}, std::vector<double>{1});
  whole.mean("kl", std::vector<double>{1, 2, 3, 7}, std::vector<double>{1, 1, 0, 1});
  a.max("ratio", 2);
  b.max("ratio", 5);
  a.min("low", 2);
  b.min("low", 5);
  a.merge(b);
  EXPECT_DOUBLE_EQ(a.values().at("kl"), whole.values().at("kl"));
  EXPECT_DOUBLE_EQ(a.values().at("kl"), 10.0 / 3);
  EXPECT_EQ(a.values().at("ratio"), 5);
  EXPECT_EQ(a.values().at("low"), 2);
}

TEST(Report, ElementsOfWeightZeroMayBeNaN) {
  Report report;
  report.mean("x", std::vector<double>{1, std::nan("")}, std::vector<double>{1, 0});
  EXPECT_EQ(report.values().at("x"), 1);
}

TEST(Report, AMeanOfNothingHasNoValue) {
  Report report;
  report.mean("x", 0, 0);
  EXPECT_FALSE(report.values().contains("x"));
  EXPECT_EQ(report.find("x"), std::nullopt);
  EXPECT_TRUE(report.statistics().at("x").empty());
}

TEST(Report, OneNameWithTwoKindsIsABug) {
  Report report;
  report.mean("x", 1, 1);
  EXPECT_THROW(report.min("x", 1), Bug);
}

TEST(Report, CrossesTheWireUnchanged) {
  Report report;
  report.mean("a", 0.1, 3);
  report.min("b", -std::numeric_limits<double>::infinity());
  report.max("c", std::nan(""));
  const auto text = report.to_json().dump();
  const auto back = Report::from_json(value_or_throw(parse_json(text, "test")));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->to_json().dump(), text);
  EXPECT_EQ(back->values().at("a"), 0.1 / 3);
  EXPECT_TRUE(std::isinf(back->values().at("b")));
  EXPECT_TRUE(std::isnan(back->values().at("c")));
}

TEST(Report, MalformedJsonIsRefused) {
  for (const char* text : {"[]", R"({"a": 1})", R"({"a": ["mode", 1, 1]})",
                           R"({"a": ["mean", "one", 1]})", R"({"a": ["mean", 1]})"})
    EXPECT_FALSE(Report::from_json(value_or_throw(parse_json(text, "test")))) << text;
}

}  // namespace
}  // namespace troupe::engine::loss
