// The memory that is left, from what the kernel states of it.
#include "engine/base/environment/available_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/sanitized.h"

namespace troupe {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr const char* meminfo =
    "MemTotal:       33554432 kB\nMemFree:          100000 kB\nMemAvailable:   16777216 kB\n";

TEST(AvailableMemory, IsWhatTheKernelCallsAvailable) {
  const auto found = available_memory({.meminfo = meminfo, .status = "", .groups = {}});
  EXPECT_EQ(found.machine.bytes, 16 * gib);
  EXPECT_EQ(found.machine.limit, "MemAvailable of /proc/meminfo");
  EXPECT_FALSE(found.process.known());
  EXPECT_EQ(found.least().bytes, 16 * gib);
}

TEST(AvailableMemory, IsLimitedByTheTightestControlGroup) {
  // The page cache of a group is dropped when memory is needed; shared memory (shmem) is not.
  const GroupReading inner{"/sys/fs/cgroup/a/b", "max\n", "123\n", ""};
  const GroupReading outer{"/sys/fs/cgroup/a", "8589934592\n", "5368709120\n",
                           "anon 1\nfile 3000000000\nshmem 900\ninactive_file 1073741824\n"
                           "active_file 1073741824\n"};
  const auto found = available_memory({.meminfo = meminfo, .status = "", .groups = {inner, outer}});
  EXPECT_EQ(found.machine.bytes, 5 * gib) << "8 - (5 - 2)";
  EXPECT_EQ(found.machine.limit, "the limit of the control group /sys/fs/cgroup/a");
}

TEST(AvailableMemory, ReadsBothVersionsOfUnlimited) {
  for (const char* limit : {"max\n", "9223372036854771712\n", "18446744073709551615\n", "", "x"})
    EXPECT_EQ(
        available_memory({.meminfo = meminfo, .status = "", .groups = {{"g", limit, "1", ""}}})
            .machine.bytes,
        16 * gib)
        << limit;
}

TEST(AvailableMemory, OfAFullGroupIsNothing) {
  const auto found = available_memory({.meminfo = meminfo,
                                       .status = "",
                                       .groups = {{"g", "1000\n", "2000\n", "active_file 10\n"}}});
  EXPECT_TRUE(found.machine.known());
  EXPECT_EQ(found.machine.bytes, 0u);
}

TEST(AvailableMemory, OfAProcessIsWhatItsLimitsLeave) {
  MemoryReadings readings{
      .meminfo = meminfo, .status = "VmSize:\t 1048576 kB\nVmData:\t  524288 kB\n", .groups = {}};
  readings.address_space = 4 * gib;
  EXPECT_EQ(available_memory(readings).process.bytes, 3 * gib);
  EXPECT_EQ(available_memory(readings).least().limit, "the limit of the address space (ulimit -v)");
  readings.data = 2 * gib;
  EXPECT_EQ(available_memory(readings).process.bytes, gib + gib / 2);
  EXPECT_EQ(available_memory(readings).machine.bytes, 16 * gib);
  readings.meminfo = "no such line\n";
  EXPECT_FALSE(available_memory(readings).machine.known());
  EXPECT_EQ(available_memory(readings).least().bytes, gib + gib / 2);
}

TEST(AvailableMemory, OfThisMachineIsKnown) {
  EXPECT_GT(memory_available(), 0u);
}

TEST(PeakResidentMemory, CountsWhatWasTouchedOnly) {
  if (test::sanitized) GTEST_SKIP() << "shadow memory counts as well";
  constexpr std::size_t mib = 1 << 20;
  // A process of its own: earlier tests have peaks, too.
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t before = peak_resident_memory();
    auto* reserved = static_cast<char*>(std::malloc(512 * mib));
    const bool untouched = peak_resident_memory() < before + 64 * mib;
    std::memset(reserved, 1, 128 * mib);
    const std::uint64_t grown = peak_resident_memory() - before;
    std::free(reserved);
    const bool kept = peak_resident_memory() >= before + 120 * mib;
    _exit(untouched && kept && grown >= 120 * mib && grown <= 192 * mib ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace troupe
