// The constraints of all requests of a served model together.
#include "launch/serve/api/output_constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {
namespace {

constexpr std::size_t most = std::size_t{256} << 20;

/// About 6 MiB when it is compiled; other numbers make others.
serve::api::ConstraintText large_expression(int number) {
  std::string text;
  for (int i = 0; i < 95'000; ++i) text += "ab";
  return {.kind = serve::api::ConstraintKind::regex,
          .value = Json(text + std::to_string(number)),
          .field = "structured_outputs.regex"};
}

TEST(OutputConstraints, TheBytesOfAllThatAreUsedAreBounded) {
  const auto tokenizer =
      value_or_throw(engine::tokenizer::Tokenizer::load(TROUPE_TEST_DATA "/models/stories260k/hf"));
  serve::api::OutputConstraints constraints(tokenizer, 512);
  std::vector<serve::api::OutputConstraint> used;
  std::size_t bytes = 0;
  int number = 0;
  const auto use_another = [&] {
    used.push_back(value_or_throw(constraints.compile(large_expression(++number))));
    bytes += used.back().compiled->bytes() + used.back().source->size();
  };
  const auto use_all = [&] {
    while (number < 200) use_another();
  };
  try {
    use_all();
    ADD_FAILURE() << "no bound";
  } catch (const serve::api::ApiFailure& failure) {
    EXPECT_EQ(failure.status(), 429);
    EXPECT_THAT(failure.what(), testing::HasSubstr("need more than 256 MiB; try again later"));
  }
  EXPECT_LE(bytes, most);
  EXPECT_GT(bytes, most / 4 * 3);
  EXPECT_THROW(use_another(), serve::api::ApiFailure);
  used.resize(used.size() / 2);  // the others have ended
  EXPECT_NO_THROW(use_another());
}

}  // namespace
}  // namespace troupe::launch::serve::api
