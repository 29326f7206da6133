// A checkpoint that is written while training changes what it holds.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "engine/base/text/text.h"
#include "engine/checkpoint/training_tensors.h"
#include "tests/engine/checkpoint/run_fixture.h"

namespace troupe::engine::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using OverlappedWrite = RunTest;

TEST_F(OverlappedWrite, HasTheBytesOfOneThatIsWaitedFor) {
  ASSERT_TRUE(write(3));
  const auto files = files_below(out / "checkpoint-3");
  std::vector<std::string> waited;
  for (const auto& file : files) waited.push_back(slurp(out / ("checkpoint-3/" + file)));
  ASSERT_TRUE(write_overlapped(3));
  ASSERT_EQ(files_below(out / "checkpoint-3"), files);
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(slurp(out / ("checkpoint-3/" + files[i])), waited[i]) << files[i];
  EXPECT_TRUE(holds(out / "checkpoint-3", 3));
}

TEST_F(OverlappedWrite, ReturnsBeforeItsValuesAreWrittenAndAnUpdateWaitsForThem) {
  const auto lock = DirectoryLock::acquire(out.path());
  std::promise<void> computed;
  std::atomic<bool> began = false;
  const WriteOptions options{.before = [&](std::string_view step) -> Result<> {
    if (step != "write values") return {};
    computed.get_future().wait();
    began = true;
    return {};
  }};
  auto write = value_or_throw(start_checkpoint(nullptr, &*lock, snapshot(3), options));
  EXPECT_FALSE(write->finish(false)) << "training continues";
  EXPECT_FALSE(began);
  computed.set_value();
  EXPECT_GT(write->wait_for(0), 0);
  EXPECT_TRUE(began);
  EXPECT_EQ(value_or_throw(*write->finish(true)), out / "checkpoint-3");
  EXPECT_TRUE(holds(out / "latest", 3));
}

// The parameters of the fixture are two tensors of 8 and 3 values.
TEST_F(OverlappedWrite, IsInTheOrderOfAnUpdate) {
  const auto lock = DirectoryLock::acquire(out.path());
  const Snapshot now = snapshot(3, {.type = StoredType::bf16});
  TensorParts tensors(now.parameters, {now.parameters.values(), now.exp_avg, now.exp_avg_sq});
  tensors.defer_values();
  const std::string folder = out / "parts";
  std::filesystem::create_directories(folder + "/training");
  ASSERT_TRUE(save_parameters(folder, tensors, now.model));
  ASSERT_TRUE(
      save_training_tensors(folder + "/training/optimizer.safetensors", tensors, true, true));
  std::vector<std::int64_t> ends;
  const auto written = tensors.write_values(
      [&](std::int64_t end) {
        ends.push_back(end);
        return true;
      },
      [] { return Result<>(); });
  ASSERT_TRUE(tensors.complete(written));
  EXPECT_THAT(ends, ElementsAre(0, 0, 0, 0, 8, 8, 8, 8, 11)) << "weights, moments, f32 weights";
}

TEST_F(OverlappedWrite, GivenUpLeavesTheCheckpointBefore) {
  ASSERT_TRUE(write(2));
  const auto lock = DirectoryLock::acquire(out.path());
  value_or_throw(start_checkpoint(nullptr, &*lock, snapshot(3))).reset();
  const auto found = names();
  for (const auto& name : found) EXPECT_FALSE(name.starts_with(".tmp")) << name;
  EXPECT_TRUE(holds(out / "latest", 2));
}

TEST_F(OverlappedWrite, ReportsTheErrorOfAnyStepAfterItReturned) {
  for (const char* bad : {"write values", "sync values", "write manifest", "swing latest"}) {
    const auto lock = DirectoryLock::acquire(out.path());
    const WriteOptions options{.before = [&](std::string_view step) -> Result<> {
      return step == bad ? Result<>(fail(Errc::io, cat(step, ": the disk is full"))) : Result<>();
    }};
    auto write = value_or_throw(start_checkpoint(nullptr, &*lock, snapshot(3), options));
    EXPECT_EQ(write->wait_for(parameters.count() - 1), parameters.count());
    const auto result = *write->finish(true);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().what, cat(bad, ": the disk is full"));
  }
}

TEST_F(OverlappedWrite, DoesNotBeginWhereItDoesNotFit) {
  const auto lock = DirectoryLock::acquire(out.path());
  WriteOptions full;
  full.free_bytes = [](const std::string&) -> std::uint64_t { return 0; };
  const auto refused = start_checkpoint(nullptr, &*lock, snapshot(3), full);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("a checkpoint needs"));
  EXPECT_THAT(names(), ElementsAre(".lock"));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
