// One changed bit of any operation that a path uses breaks its promise, and is located.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/parity/measure.h"
#include "launch/parity/prompts.h"
#include "launch/parity/runner.h"
#include "launch/run/exit_code.h"
#include "tests/launch/parity/flipped_bit.h"

namespace troupe::launch::parity {
namespace {

using engine::ops::Precision;

class Faults : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    texts_ =
        continue_prompts(runner_.inputs(value_or_throw(prompts_of(settings_, runner_.model()))));
    scores_ = runner_.run(paths().front(), texts_, nullptr);
  }

  PairResult compare_with(const Path& path) {
    const PathValues values = runner_.run(path, texts_, &scores_);
    return compare(scores_, values, path, path.promise, {runner_.spec(), texts_});
  }

  /// The last step of a generation has a row for the last token of a text; the first call of a pass
  /// over whole texts has a row for their second token, whose query weighs two keys.
  void change(const Path& path, const std::string& op, int calls, std::size_t output) {
    flip_.arm(op, path.samples ? calls - 1 : 0, output, path.samples ? 0 : 1);
  }

  void expect_located(const Path& path, const std::string& op, const PairResult& pair) {
    const auto at = runner_.locate(path, texts_, pair.broken->text, *pair.broken);
    ASSERT_TRUE(at) << "is not located";
    EXPECT_EQ(at->path, path.name);
    if (op == "scatter_rows" || op == "copy")
      EXPECT_EQ(at->op, "attention") << "reads the cache first";
    else if (op == "gather_rows" && path.samples)
      EXPECT_EQ(at->op, "gemm") << "reads the gathered row first";
    else
      EXPECT_EQ(at->op, op);
    if (op == "attention") {
      EXPECT_EQ(at->block, path.samples ? "layer 1" : "layer 0");
    }
  }

  FlippedBit flip_;
  Settings settings_ = value_or_throw(settings_of(flip_.options_for(GetParam())));
  PathRunner runner_{settings_, Precision::f32};
  std::vector<Text> texts_;
  PathValues scores_;
};

TEST_P(Faults, OfEachOperationOfEachPathAreFoundAndLocated) {
  for (const Path& path : paths().subspan(1)) {
    if (path.promise != Promise::equal) continue;
    flip_.count();
    ASSERT_FALSE(compare_with(path).broken) << path.name;
    const std::map<std::string, int> calls = flip_.calls();
    EXPECT_GE(calls.size(), 6U) << path.name;
    for (const auto& [op, count] : calls) {
      if (op == "copy" && path.trains) continue;  // of the backward pass
      for (std::size_t output = 0; output < 3; ++output) {
        change(path, op, count, output);
        const PairResult pair = compare_with(path);
        if (!flip_.flipped()) continue;
        SCOPED_TRACE(cat(path.name, ", output ", output, " of ", op));
        EXPECT_TRUE(pair.broken) << "is not found";
        if (pair.broken) expect_located(path, op, pair);
      }
    }
  }
}

TEST_P(Faults, OfTheScoresAreLocatedThere) {
  for (const char* op : {"gather_rows", "gemm", "attention", "head"}) {
    flip_.arm(op, 0, 0, 1);
    scores_ = runner_.run(paths().front(), texts_, nullptr);
    ASSERT_TRUE(flip_.flipped());
    const Path& prompt = *find_path("prompt");
    const PairResult pair = compare_with(prompt);
    ASSERT_TRUE(pair.broken) << op;
    const auto at = runner_.locate(prompt, texts_, pair.broken->text, *pair.broken);
    ASSERT_TRUE(at) << op;
    EXPECT_EQ(at->path, "score");
    EXPECT_EQ(at->op, op);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Faults, testing::Values("qwen2", "gpt2", "gemma2"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Fault, EndsTheCommandWithItsExitCodeAndItsPlace) {
  FlippedBit flip;
  ParityOptions options = flip.options_for("qwen2");
  options.paths = {"batch"};
  options.targets = 0;
  flip.count();
  testing::internal::CaptureStdout();
  EXPECT_EQ(parity(options), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("kept"));
  flip.arm("gated", flip.calls().at("gated") - 1, 0, 0);  // of the path `batch`, which is the last
  testing::internal::CaptureStdout();
  EXPECT_EQ(parity(options), run::exit_parity);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::ContainsRegex("broken: score and batch: text 0, position [0-9]+, token "
                                     "[0-9]+: hidden states differ.*; first in gated, layer 1, "
                                     "row of position [0-9]+, of the path batch"));
}

}  // namespace
}  // namespace troupe::launch::parity
