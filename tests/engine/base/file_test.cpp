#include "engine/base/files/file.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "engine/base/files/mapped_file_faults.h"
#include "engine/base/files/mapped_pages.h"
#include "engine/base/memory/uncaught_bad_alloc.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe {
namespace {

struct Files : ::testing::Test {
  std::string folder = (std::filesystem::path(::testing::TempDir()) /
                        ("troupe-file-test-" + std::to_string(::getpid())))
                           .string();
  Files() { std::filesystem::create_directories(folder); }
  ~Files() override { std::filesystem::remove_all(folder); }
};

TEST_F(Files, ADurableWriteReadsBackAndLeavesNothingElse) {
  ASSERT_TRUE(write_file_durably(folder + "/a", "one"));
  ASSERT_TRUE(write_file_durably(folder + "/a", "two"));
  EXPECT_EQ(read_file(folder + "/a").value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Files, RefusesDirectoriesMissingFilesAndOversizedOnes) {
  EXPECT_EQ(read_file(folder).error().code, Errc::io);
  EXPECT_EQ(read_file(folder + "/none").error().code, Errc::not_found);
  ASSERT_TRUE(write_file_durably(folder + "/a", "12345"));
  EXPECT_EQ(read_file(folder + "/a", 4).error().code, Errc::bad_input);
  EXPECT_EQ(read_file("/dev/zero").error().code, Errc::io);
}

TEST_F(Files, TheKernelsFilesAreReadWithoutTheirSize) {
  EXPECT_TRUE(read_proc_file("/proc/self/stat").starts_with(std::to_string(::getpid()) + " ("));
  EXPECT_GT(read_proc_file("/proc/self/smaps").size(), 4096u);
  EXPECT_EQ(read_proc_file("/proc/self"), "");
  EXPECT_EQ(read_proc_file(folder + "/none"), "");
}

TEST_F(Files, AMapShowsTheBytes) {
  ASSERT_TRUE(write_file_durably(folder + "/a", "abc"));
  const auto map = MappedFile::open(folder + "/a");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(map->bytes()[1]), 'b');
}

/// Bytes of files that are in this process's memory.
std::int64_t resident_file_bytes() {
  const std::string status = read_proc_file("/proc/self/status");
  const auto at = status.find("RssFile:");
  return at == std::string::npos ? -1 : 1024 * std::stoll(status.substr(at + 8));
}

TEST_F(Files, ReleasedPagesOfAMapLeaveMemoryAndAreReadAgain) {
  constexpr std::size_t size = 8 << 20;
  ASSERT_TRUE(write_file_durably(folder + "/a", std::string(size, 'x')));
  const auto map = MappedFile::open(folder + "/a");
  ASSERT_TRUE(map);
  const auto count = [&] { return std::ranges::count(map->bytes(), static_cast<std::byte>('x')); };
  EXPECT_EQ(count(), size);
  const std::int64_t before = resident_file_bytes();
  release_pages(map->bytes().subspan(1, size - 2));
  EXPECT_LT(resident_file_bytes(), before - std::int64_t{size} / 2);
  EXPECT_EQ(count(), size);
  release_pages(map->bytes().subspan(5000, 100));  // no whole page
  release_pages({});
}

// The signal itself is tried in a child: it ends a process.
using MappedFileFaults = Files;

TEST_F(MappedFileFaults, EndTheProcessWithTheNameOfTheFile) {
  const std::string one = folder + "/one", two = folder + "/two";
  for (const std::string& path : {one, two})
    ASSERT_TRUE(write_file_durably(path, std::string(100000, 'x')));
  const auto read_last = [&](bool shorten) {
    install_sigbus_handler(7);
    auto first = value_or_throw(MappedFile::open(one)),
         second = value_or_throw(MappedFile::open(two));
    const MappedFile moved = std::move(second);
    first = value_or_throw(MappedFile::open(one));
    if (shorten) std::filesystem::resize_file(two, 10);
    thread_with_blocked_signals("reader", [&] {
      std::_Exit(moved.bytes()[90000] == std::byte{'x'} ? 0 : 1);
    }).join();
  };
  EXPECT_EXIT(read_last(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_last(true), testing::ExitedWithCode(7),
              "troupe: .*/two: expected the bytes that were there when it was opened");
}

TEST_F(MappedFileFaults, AreReportedOnlyWhereAFileIsMapped) {
  const auto raised = [] {
    install_sigbus_handler(7);
    ::raise(SIGBUS);
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(raised(), testing::KilledBySignal(SIGBUS), "");
}

TEST(UncaughtBadAlloc, EndsTheProcessWithItsCode) {
  const auto in_a_thread = [](const std::function<void()>& work) {
    install_bad_alloc_handler(10);
    thread_with_blocked_signals("allocates", work).join();
  };
  EXPECT_EXIT(in_a_thread([] { throw std::bad_alloc(); }), testing::ExitedWithCode(10),
              "troupe: out of memory in a thread that could not report it");
  EXPECT_EXIT(in_a_thread([] { throw std::length_error("another"); }),
              testing::KilledBySignal(SIGABRT), "another");
}

TEST(ThreadWithBlockedSignals, LeavesSignalsToOthersButThoseOfItsOwnInstructions) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  thread_with_blocked_signals("quiet", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
  }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1})
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
  for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL})
    EXPECT_EQ(sigismember(&inside, signal), 0) << signal;
  for (const int signal : {SIGINT, SIGTERM, SIGBUS})
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
}

// More files than there are slots: all can be read.
TEST_F(MappedFileFaults, OfVeryManyFilesAreHarmless) {
  ASSERT_TRUE(write_file_durably(folder + "/a", "abc"));
  std::vector<MappedFile> files;
  for (int i = 0; i < 1500; ++i) files.push_back(value_or_throw(MappedFile::open(folder + "/a")));
  for (const MappedFile& file : files) EXPECT_EQ(static_cast<char>(file.bytes()[2]), 'c');
}

}  // namespace
}  // namespace troupe
