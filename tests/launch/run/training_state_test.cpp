// The state of recorded checkpoints is written as it was read, byte for byte.
#include "launch/run/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::run {
namespace {

using engine::checkpoint::read_training_state, engine::checkpoint::SavedState;
using testing::ElementsAre, testing::HasSubstr;

std::string recorded(const std::string& name) {
  return cat(TROUPE_TEST_DATA, "/checkpoints/", name);
}

TrainingState state_of(const std::string& name) {
  return value_or_throw(TrainingState::from(value_or_throw(read_training_state(recorded(name)))));
}

class TrainingStateOf : public testing::TestWithParam<const char*> {};

TEST_P(TrainingStateOf, IsWrittenAsItWasRead) {
  const auto state = state_of(GetParam());
  const Json whole(Json::Object{{"step", state.step}, {"state", state.to_json()}});
  EXPECT_EQ(whole.dump(1) + "\n",
            value_or_throw(read_file(recorded(GetParam()) + "/training/state.json")));
}

INSTANTIATE_TEST_SUITE_P(RecordedRuns, TrainingStateOf,
                         testing::Values("sft", "dpo", "ppo", "ppo_critic", "grpo_free",
                                         "grpo_pinned"),
                         [](const auto& each) { return std::string(each.param); });

TEST(TrainingState, HasWhatTheRunSaved) {
  const auto sft = state_of("sft");
  EXPECT_EQ(sft.step, 3);
  EXPECT_TRUE(sft.is_of("sft"));
  EXPECT_EQ(sft.trainer.updates, 0) << "each update overflowed";
  ASSERT_TRUE(sft.trainer.loss_scale);
  EXPECT_EQ(sft.trainer.loss_scale->scale, 1073741824);
  EXPECT_EQ(sft.trainer.loss_scale->left, -1);
  EXPECT_EQ(sft.trainer.loss_scale->skipped, 3);
  const auto free = state_of("grpo_free");
  EXPECT_EQ(std::tuple(free.batches, free.finished, free.round_start), std::tuple(2, 32, -1));
  EXPECT_EQ(free.trainer.updates, 4) << "absent: one in each step";
  const auto pinned = state_of("grpo_pinned");
  EXPECT_THAT(pinned.versions, ElementsAre(1, 2));
  EXPECT_EQ(pinned.round_start, 4);
  ASSERT_NE(state_of("ppo").algorithm.state.find("kl_coef"), nullptr);
  ASSERT_TRUE(state_of("dpo").selection);
  EXPECT_NE(state_of("dpo").selection->find("keep_best"), nullptr);
  ASSERT_TRUE(state_of("dpo").identity);
  EXPECT_EQ(state_of("dpo").identity->parts.at(0).name, "model");
}

TEST(TrainingState, OfTheProtocolIsWrittenInTheSameOrder) {
  const auto read = state_of("grpo_pinned");
  TrainingState own(read.step, "grpo",
                    {.data = *read.data,
                     .algorithm = {},
                     .batches = *read.batches,
                     .versions = read.versions,
                     .round_start = read.round_start});
  own.identity = read.identity;
  own.trainer.updates = read.step;
  EXPECT_EQ(own.to_json().dump(1), read.to_json().dump(1));
}

Result<TrainingState> from(const std::string& text) {
  return TrainingState::from(
      {.step = 7, .state = value_or_throw(parse_json(text, "state")), .file = "F"});
}

TEST(TrainingState, OfAnEarlierVersionMayLackKeys) {
  const auto state = value_or_throw(from(R"({"algorithm": {"name": "sft"}, "data": {}})"));
  EXPECT_TRUE(state.is_of("sft"));
  EXPECT_EQ(state.trainer.updates, 7);
  EXPECT_FALSE(state.batches || state.selection || state.identity || state.trainer.loss_scale);
  EXPECT_FALSE(value_or_throw(from("{}")).is_of("sft"));
  EXPECT_FALSE(value_or_throw(from("null")).data);
}

TEST(TrainingState, NamesTheFileAndTheKeyOfADamagedValue) {
  for (const auto& [text, expected] :
       {std::pair(R"({"batches": "two"})", "batches"),
        std::pair(R"({"updates": "two"})", "updates"), std::pair(R"({"updates": -1})", "updates"),
        std::pair(R"({"updates": 1e300})", "updates"), std::pair(R"({"identity": {}})", "parts")}) {
    const auto state = from(text);
    ASSERT_FALSE(state) << text;
    EXPECT_THAT(state.error().what, HasSubstr("F"));
    EXPECT_THAT(state.error().what, HasSubstr(expected));
  }
}

}  // namespace
}  // namespace troupe::launch::run
