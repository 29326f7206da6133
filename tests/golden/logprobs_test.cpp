// The program's `troupe logprobs` over the golden models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/golden/dense_models.h"
#include "tests/golden/mixture_models.h"
#include "tests/support/golden.h"

namespace troupe::engine::checkpoint {
namespace {

class GoldenLogprobs : public testing::TestWithParam<const char*> {};

TEST_P(GoldenLogprobs, TheProgramGivesThem) {
  const std::string relative = cat("models/", GetParam());
  SKIP_WITHOUT_GOLDEN(relative + "/golden.safetensors");
  const std::string folder = cat(test::golden_folder(), "/", relative);
  const auto golden = value_or_throw(SafetensorsFile::open(folder + "/golden.safetensors"));
  const Scratch scratch;
  std::string rows;
  int sequences = 0;
  for (; golden.find(cat("tokens.", sequences)); ++sequences) {
    std::vector<std::int32_t> ids(
        static_cast<std::size_t>(golden.find(cat("tokens.", sequences))->count()));
    value_or_throw(golden.read_i32(cat("tokens.", sequences), ids));
    Json::Array list;
    for (const auto id : ids) list.emplace_back(id);
    rows += Json(Json::Object{{"ids", std::move(list)}}).dump() + "\n";
  }
  put(scratch / "rows.jsonl", rows);
  const auto command = cat(TROUPE_PROGRAM " logprobs --model ", folder, " < ",
                           scratch / "rows.jsonl", " > ", scratch / "answers.jsonl");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::istringstream answers(slurp(scratch / "answers.jsonl"));
  std::string line;
  for (int i = 0; i < sequences; ++i) {
    ASSERT_TRUE(std::getline(answers, line)) << "sequence " << i;
    const Json found = value_or_throw(parse_json(line, "answer"));
    std::vector<double> wanted(static_cast<std::size_t>(golden.find(cat("logp.", i))->count()));
    value_or_throw(golden.read_f64(cat("logp.", i), wanted));
    ASSERT_EQ(found.find("logprobs")->array().size(), wanted.size() + 1);
    for (std::size_t t = 0; t < wanted.size(); ++t)
      EXPECT_NEAR(found.find("logprobs")->array()[t + 1].number(), wanted[t], 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenLogprobs, testing::ValuesIn(test::dense_models),
                         test::name_of_case);
INSTANTIATE_TEST_SUITE_P(Mixtures, GoldenLogprobs, testing::ValuesIn(test::mixture_models),
                         test::name_of_case);

}  // namespace
}  // namespace troupe::engine::checkpoint
