#include "engine/loss/loss.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::loss {
namespace {

enum class Kind { plain, squared };
constexpr std::array<std::string_view, 2> names_of(Kind) {
  return {"plain", "squared"};
}

struct ToyLoss {
  static constexpr std::string_view name = "toy";
  double beta = 0.5;
  int rounds = 1;
  bool entropy = false;
  Kind kind = Kind::plain;
  std::vector<double> weights{1, 0.5};
  static void each_field(auto& self, auto&& field) {
    field("beta", self.beta, above_0, "a number above 0");
    field("rounds", self.rounds);
    field("entropy", self.entropy);
    field("kind", self.kind);
    field("weights", self.weights, from_0_to_1);
  }
  Needs needs() const { return {.entropy = entropy, .temperature = 0.7}; }
  Result<> validate() const {
    if (rounds > 9 && entropy) return fail(Errc::usage, "toy.rounds: too many with entropies");
    return {};
  }
  Expr operator()(const TokenStats& now, const data::Experience& b, Report& report) const {
    report.mean("logp", now.logp, b.mask);
    const Expr x = kind == Kind::plain ? now.logp : square(now.logp);
    return -beta * sum((entropy ? x + now.entropy : x) * b.mask) / b.count;
  }
};
static_assert(Loss<ToyLoss>);

data::Experience batch() {
  data::Experience b;
  b.append({1, 2, 3}, {1, 1, 1});
  b.append({4, 5}, {1, 1});
  b.count = 3;
  return b;
}

Json json(const char* text) {
  return value_or_throw(parse_json(text, "test"));
}

TEST(LossTable, ASpecGivesBackTheLossThatMadeIt) {
  LossTable table;
  table.insert(entry<ToyLoss>());
  ToyLoss loss{.beta = 0.25, .rounds = 3, .entropy = true, .kind = Kind::squared, .weights = {0.1}};
  const LossSpec spec = AnyLoss(loss).spec();
  const auto again = make_loss(table, {spec.name, json(spec.fields.dump().c_str())});
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->spec(), spec);
  EXPECT_EQ(spec.fields.dump(),
            R"({"beta":0.25,"rounds":3,"entropy":true,"kind":"squared","weights":[0.1]})");
  EXPECT_TRUE(again->needs().entropy);
  EXPECT_EQ(again->needs().temperature, 0.7);
}

TEST(LossTable, AbsentFieldsKeepTheirDefaults) {
  LossTable table;
  table.insert(entry<ToyLoss>());
  EXPECT_EQ(make_loss(table, {"toy", {}})->spec(), AnyLoss(ToyLoss{}).spec());
}

TEST(LossTable, NonsenseIsRefusedWithTheNearestWord) {
  LossTable table;
  table.insert(entry<ToyLoss>());
  const auto message = [&](const char* name, const char* fields) {
    const auto made = make_loss(table, {name, json(fields)});
    EXPECT_FALSE(made) << fields;
    return made ? "" : made.error().what;
  };
  EXPECT_NE(message("toi", "{}").find("did you mean toy?"), std::string::npos);
  EXPECT_NE(message("toy", R"({"betta": 1})").find("did you mean beta?"), std::string::npos);
  EXPECT_NE(message("toy", R"({"kind": "square"})").find("did you mean squared?"),
            std::string::npos);
  EXPECT_NE(message("toy", R"({"beta": "1"})").find("toy.beta: expected a number"),
            std::string::npos);
  EXPECT_NE(message("toy", R"({"rounds": 1.5})").find("toy.rounds: expected a whole number"),
            std::string::npos);
  EXPECT_NE(message("toy", R"({"rounds": 99999999999})").find("toy.rounds"), std::string::npos);
  EXPECT_NE(message("toy", R"({"weights": [1, true]})").find("toy.weights[1]"), std::string::npos);
  EXPECT_EQ(message("toy", R"({"beta": 0})"), "toy.beta: expected a number above 0, found 0");
  EXPECT_EQ(message("toy", R"({"weights": [1, 2]})"),
            "toy.weights: expected a number at least 0, at most 1, found 2");
  EXPECT_NE(message("toy", R"({"rounds": 10, "entropy": true})").find("too many"),
            std::string::npos);
  EXPECT_NE(message("toy", "[]").find("expected an object"), std::string::npos);
}

TEST(Evaluate, GivesLossGradientsAndMetrics) {
  const std::vector<float> logp{0, -1, -2, 0, -4};
  Report report;
  const auto out = value_and_grads(AnyLoss(ToyLoss{}),
                                   {.logp = logp, .entropy = {}, .collision = {}, .scores = {}},
                                   batch(), report);
  EXPECT_DOUBLE_EQ(out.loss, 0.5 * 7 / 3);
  EXPECT_EQ(out.dlogp, (std::vector<float>{0, -0.5f / 3, -0.5f / 3, 0, -0.5f / 3}));
  EXPECT_TRUE(out.dentropy.empty());
  EXPECT_TRUE(out.dscores.empty());
  EXPECT_DOUBLE_EQ(report.values().at("logp"), -7.0 / 3);
}

TEST(Evaluate, EntropyThatIsGivenHasAGradient) {
  const std::vector<float> logp{0, -1, -2, 0, -4}, entropy{1, 1, 1, 1, 1};
  Report report;
  const auto out = value_and_grads(
      AnyLoss(ToyLoss{.entropy = true}),
      {.logp = logp, .entropy = entropy, .collision = {}, .scores = {}}, batch(), report);
  EXPECT_EQ(out.dentropy, out.dlogp);
}

TEST(Evaluate, MissingQuantitiesAreBugs) {
  const std::vector<float> logp{0, -1, -2, 0, -4}, shorter{0, -1};
  Report report;
  EXPECT_THROW(value_and_grads(AnyLoss(ToyLoss{.entropy = true}),
                               {.logp = logp, .entropy = {}, .collision = {}, .scores = {}},
                               batch(), report),
               Bug);
  EXPECT_THROW(value_and_grads(AnyLoss(ToyLoss{}),
                               {.logp = shorter, .entropy = {}, .collision = {}, .scores = {}},
                               batch(), report),
               Bug);
  auto uncounted = batch();
  uncounted.count = 0;
  EXPECT_THROW(value_and_grads(AnyLoss(ToyLoss{}),
                               {.logp = logp, .entropy = {}, .collision = {}, .scores = {}},
                               uncounted, report),
               Bug);
}

}  // namespace
}  // namespace troupe::engine::loss
