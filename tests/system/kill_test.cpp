// SIGKILL at random times, then the same command again: the bytes are those of an uninterrupted
// run.
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "engine/base/random.h"
#include "engine/base/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

class Killed : public SystemRuns, public testing::WithParamInterface<const char*> {
 protected:
  std::string run_of(const std::string& output) const {
    return arguments(GetParam(), output,
                     "--set train.steps=12 --set train.save_every=2 --set train.warmup_steps=3");
  }
  /// A checkpoint is being written, or was when the process was killed.
  std::string half_written(const std::string& output) const {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(path(output), gone))
      if (entry.path().filename().string().starts_with(".tmp-")) return entry.path().string();
    return "";
  }
};

TEST_P(Killed, AtRandomMomentsItEndsWithTheSameBytes) {
  run(run_of("whole"));
  int kills = 0;
  for (std::uint64_t life = 0; life < 30; ++life) {
    Child child(command(run_of("killed")), log());
    // Kills after up to three more steps and up to 20 ms: during loading, a step or a checkpoint.
    const std::size_t steps = steps_written("killed") + uniform_below(4, 8, 0, life);
    child.until([&] { return steps_written("killed") >= steps; });
    const auto moment = std::chrono::steady_clock::now() +
                        std::chrono::microseconds(uniform_below(20000, 8, 1, life));
    child.until([&] { return std::chrono::steady_clock::now() >= moment; });
    child.signal(SIGKILL);
    const int code = child.wait();
    if (code == 0) break;
    ASSERT_EQ(code, -SIGKILL);
    ++kills;
  }
  EXPECT_GE(kills, 1) << "nobody was killed";
  run(run_of("killed"));
  expect_same_bytes("whole", "killed");
}

TEST_P(Killed, WhileACheckpointIsWrittenItEndsWithTheSameBytes) {
  run(run_of("whole"));
  int halves = 0;
  for (int life = 0; life < 6 && halves < 2; ++life) {
    Child child(command(run_of("killed")), log());
    std::string earlier = half_written("killed");  // the next checkpoint sweeps it away first
    child.until([&] {
      const std::string now = half_written("killed");
      return !now.empty() && now != earlier;
    });
    child.signal(SIGKILL);
    child.wait();
    halves += half_written("killed").empty() ? 0 : 1;
  }
  EXPECT_GE(halves, 1) << "no kill met a checkpoint";
  run(run_of("killed"));
  expect_same_bytes("whole", "killed");
  EXPECT_EQ(half_written("killed"), "") << "what killed runs left must be swept";
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Killed, testing::Values("sft", "dpo", "grpo"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace troupe::test
