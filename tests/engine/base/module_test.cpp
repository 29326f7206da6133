#include "engine/base/module.h"

#include <gmock/gmock.h>

namespace troupe {
namespace {

TEST(Module, OneThatIsNotThereIsRefusedWithTheFolder) {
  const auto symbol = load_from_module("libtroupe_nothing.so", "start");
  ASSERT_FALSE(symbol);
  EXPECT_EQ(symbol.error().code, Errc::not_found);
  EXPECT_THAT(symbol.error().what,
              ::testing::MatchesRegex("no libtroupe_nothing.so beside /.*tests"));
}

}  // namespace
}  // namespace troupe
