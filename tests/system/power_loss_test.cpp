// A power failure at points of a run: the directory as a disk may have it, then the same command
// again.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/disturbed_runs.h"
#include "tests/system/recorded_files.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class PowerLoss : public DisturbedRuns {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  }
  /// Runs over what the failure left. The journal is durable before a checkpoint is: there is no
  /// gap to report.
  void expect_recovery(const std::string& method, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_THAT(run(run_of(method, "lost")), Not(HasSubstr("lines that it had when")));
    expect_undisturbed("whole", "lost");
    std::filesystem::remove_all(path("lost"));
  }
  /// Two directories for each point: unsynchronized data and names lost, or names kept and data
  /// zero.
  void expect_agreement(const std::string& method, std::size_t points);
};

void PowerLoss::expect_agreement(const std::string& method, std::size_t points) {
  const auto operations = record(method, "whole");
  RecordedFiles files;
  std::size_t done = 0;
  for (std::size_t point = 0; point < points && !HasFailure(); ++point) {
    const std::size_t until = (2 * point + 1) * operations.size() / (2 * points);
    for (; done < until; ++done) files.apply(operations[done]);
    for (const bool zeros : {false, true}) {
      const std::string folder = path("disk");
      if (zeros)
        files.restore_with_zeros(folder);
      else
        files.restore_durable(folder);
      std::error_code none;  // the directory itself was not there yet
      std::filesystem::rename(folder + "/whole", path("lost"), none);
      std::filesystem::remove_all(folder);
      expect_recovery(method, cat("after ", until, " of ", operations.size(), " operations, ",
                                  zeros ? "zeros" : "lost names"));
    }
  }
}

TEST_F(PowerLoss, AtAnyPointJournalAndCheckpointAgree) {
  expect_agreement("grpo", wanted_count("TROUPE_POWER_LOSSES", 12));
}

TEST_F(PowerLoss, AtAnyPointACheckpointOfFourRanksIsWhole) {
  expect_agreement("sft_ranks", wanted_count("TROUPE_POWER_LOSSES", 12) / 4);
}

// What the replay makes of all operations is what is on the disk.
TEST_F(PowerLoss, ARecordingIsComplete) {
  const auto operations = record("grpo", "whole");
  RecordedFiles files;
  for (const FileOperation& operation : operations) files.apply(operation);
  for (const FileOperation& operation : operations) {
    if (operation.kind == 's' || !std::filesystem::exists(path(operation.path))) continue;
    files.apply({.kind = 's', .path = operation.path, .other = {}, .offset = 0, .data = {}});
  }
  files.restore_with_zeros(path("disk"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("whole"))) {
    if (!entry.is_regular_file()) continue;
    const std::string file = std::filesystem::relative(entry.path(), folder_).string();
    EXPECT_EQ(read_file(path("disk/" + file)).value_or("missing"),
              value_or_throw(read_file(path(file))))
        << file;
  }
}

}  // namespace
}  // namespace troupe::test
