// A full disk: files that only describe a run are given up, the others end it.
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/disturbed_runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

struct FullFile {
  const char* name;
  bool ends_the_run;
};

class FullDisk : public DisturbedRuns, public testing::WithParamInterface<FullFile> {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "the runtime of a sanitizer must be loaded first";
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_P(FullDisk, EndsARunOnlyWhereResultsAreWritten) {
  const auto& [name, ends_the_run] = GetParam();
  run(run_of("ppo", "whole"));
  const std::string line = cat(recorder(cat("FILE_RECORDER_FULL=", name)),
                               command(run_of("ppo", "full")), " >'", log(), "' 2>&1 </dev/null");
  const int status = std::system(line.c_str());
  const std::string said = value_or_throw(read_file(log()));
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, ends_the_run ? 7 : 0) << said;
  EXPECT_EQ(count(said, "cannot write: No space left on device"), 1u) << said;
  EXPECT_THAT(said, HasSubstr(cat("/", name)));
  if (!ends_the_run) {
    EXPECT_THAT(said, HasSubstr("the run continues without this file"));
  }
  run(run_of("ppo", "full"));  // with space again
  expect_same_bytes("whole", "full");
}

INSTANTIATE_TEST_SUITE_P(
    Files, FullDisk,
    testing::Values(FullFile{"timeline.jsonl", false}, FullFile{"timeline.svg", false},
                    FullFile{"timings.jsonl", false}, FullFile{"samples.txt", false},
                    FullFile{"plot.svg", false}, FullFile{"events.out.tfevents", false},
                    FullFile{"metrics.jsonl", true}, FullFile{"samples.jsonl", true},
                    FullFile{"config.yaml", true}),
    [](const auto& each) {
      std::string name = each.param.name;
      std::erase_if(name, [](char c) { return c == '.'; });
      return name;
    });

}  // namespace
}  // namespace troupe::test
