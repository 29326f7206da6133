// The trainer's checkpoints that are written while it trains on.
#include <gtest/gtest.h>

#include <limits>

#include "actors/roles/trainer.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/random_decoder.h"

namespace troupe::actors::roles {
namespace {

/// A checkpoint of which all values are read at once, with this result.
class Write final : public CheckpointWrite {
 public:
  explicit Write(Result<std::string> result) : result_(std::move(result)) {}
  std::int64_t wait_for(std::int64_t) override { return std::numeric_limits<std::int64_t>::max(); }
  void wait_for_all() override {}
  std::optional<Result<std::string>> finish(bool wait) override {
    if (!wait) return std::nullopt;
    return result_;
  }

 private:
  Result<std::string> result_;
};

class TrainerSaves : public testing::Test {
 protected:
  Trainer trainer(const Result<std::string>& result) {
    return {std::make_unique<engine::train::Trainer>(test::random_decoder(*device_, 1, true),
                                                     engine::train::TrainerOptions{}),
            engine::loss::LossTable(),
            [result](std::int64_t, const protocol::RunState&, engine::train::Trainer&) {
              return Result<std::unique_ptr<CheckpointWrite>>(std::make_unique<Write>(result));
            }};
  }
  std::unique_ptr<engine::ops::Device> device_ = engine::ops::make_cpu_device({.threads = 1});
};

TEST_F(TrainerSaves, FinishSaveTellsThePathOnce) {
  auto saved = trainer("checkpoint-4");
  EXPECT_EQ(saved.on(protocol::Save{4, {}, true}), "");
  EXPECT_EQ(saved.on(protocol::FinishSave{false}), "");
  EXPECT_EQ(saved.on(protocol::FinishSave{true}), "checkpoint-4");
  EXPECT_EQ(saved.on(protocol::FinishSave{true}), "");
  EXPECT_EQ(saved.on(protocol::Save{5, {}, false}), "checkpoint-4");
}

TEST_F(TrainerSaves, AnErrorIsReportedToEveryLaterMessage) {
  auto saved = trainer(fail(Errc::io, "checkpoint-4: the disk is full"));
  EXPECT_EQ(saved.on(protocol::Save{4, {}, true}), "");
  for (const bool wait : {true, true, false}) {
    const auto again = saved.on(protocol::FinishSave{wait});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().what, "checkpoint-4: the disk is full");
  }
  EXPECT_FALSE(saved.on(protocol::Save{5, {}, true}));
}

}  // namespace
}  // namespace troupe::actors::roles
