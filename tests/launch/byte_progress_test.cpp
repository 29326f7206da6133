#include "launch/terminal/byte_progress.h"

#include <gtest/gtest.h>

#include <array>

namespace troupe::launch {
namespace {

// What is written to a file while `show` runs.
template <class Show>
std::string shown(const Show& show) {
  std::FILE* file = std::tmpfile();
  show(file);
  std::rewind(file);
  std::array<char, 4096> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size(), file);
  std::fclose(file);
  return {text.data(), size};
}

TEST(ByteProgress, ShowsShareCountsSpeedAndTheTimeLeft) {
  double now = 10;
  terminal::ByteProgress progress(stderr, {}, 4'000'000, 500'000, [&] { return now; });
  now = 12;
  progress.show(1'500'000, "12 rows 345 tokens", false);
  EXPECT_EQ(progress.line(), "[#######.............] 37 % 12 rows 345 tokens 0.50 MB/s ETA 0:05");
  progress.show(9'000'000, "more than there is", false);
  EXPECT_EQ(progress.line(), "[####################] 100 % more than there is 4.25 MB/s ETA 0:00");
}

TEST(ByteProgress, RedrawsOneLineOfATerminal) {
  double now = 0;
  const std::string text = shown([&](std::FILE* out) {
    terminal::ByteProgress progress(out,
                                    {.terminal = true, .columns = [] { return 32; }, .redraw = 0.2},
                                    10, 0, [&] { return now; });
    EXPECT_TRUE(progress.show(0, "1 rows", false));
    EXPECT_FALSE(progress.show(0, "2 rows", false)) << "too soon";
    now = 1;
    EXPECT_TRUE(progress.show(5, "3 rows", false));
    progress.finish(10, "4 rows", false);
  });
  EXPECT_EQ(text,
            "\r[..........] 0 % 1 rows 0 MB/s\x1b[J\r"
            "\r50 % 3 rows 0.00 MB/s ETA 0:01\x1b[J\r"
            "\r100 % 4 rows 0.00 MB/s ETA 0:00\x1b[J\r\n");
}

TEST(ByteProgress, WritesTheLinesThatAreDueElsewhere) {
  double now = 0;
  const std::string text = shown([&](std::FILE* out) {
    terminal::ByteProgress progress(out, {}, 10, 0, [&] { return now; });
    EXPECT_FALSE(progress.show(0, "9 rows", false));
    EXPECT_TRUE(progress.show(0, "10 rows", true));
    EXPECT_FALSE(progress.show(0, "20 rows", true)) << "within a second";
    now = 2;
    EXPECT_TRUE(progress.show(0, "25 rows", true));
    progress.finish(10, "26 rows", true);
  });
  EXPECT_EQ(text,
            "[....................] 0 % 10 rows 0 MB/s\n"
            "[....................] 0 % 25 rows 0.00 MB/s\n"
            "[####################] 100 % 26 rows 0.00 MB/s ETA 0:00\n");
}

}  // namespace
}  // namespace troupe::launch
