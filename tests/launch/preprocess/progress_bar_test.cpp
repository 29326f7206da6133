// The progress of `troupe preprocess`.
#include "launch/tools/preprocess/progress_bar.h"

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

TEST(PreprocessBar, ShowsShareRowsTokensAndSpeed) {
  double now = 10;
  tools::preprocess::PreprocessBar bar(stderr, {.bytes = 4'000'000, .before = {.bytes = 500'000}},
                                       [&] { return now; });
  now = 12;
  EXPECT_EQ(bar.line({.bytes = 1'500'000, .rows = 12, .tokens = 345}),
            "[#######.............] 37 % 12 rows 345 tokens 0.50 MB/s");
  EXPECT_EQ(bar.line({.bytes = 9'000'000}).substr(0, 28), "[####################] 100 %");
}

TEST(PreprocessBar, RedrawsOneLineOfATerminal) {
  double now = 0;
  const std::string text = shown([&](std::FILE* out) {
    tools::preprocess::PreprocessBar bar(out, {.terminal = true, .bytes = 10}, [&] { return now; });
    bar.show({.rows = 1});
    bar.show({.rows = 2});  // too soon
    now = 1;
    bar.show({.rows = 3});
    bar.finish({.bytes = 10, .rows = 4});
  });
  EXPECT_EQ(text,
            "\r[....................] 0 % 1 rows 0 tokens 0 MB/s\x1b[K"
            "\r[....................] 0 % 3 rows 0 tokens 0.00 MB/s\x1b[K"
            "\r[####################] 100 % 4 rows 0 tokens 0.00 MB/s\x1b[K\n");
}

TEST(PreprocessBar, WritesALineForEachInterval) {
  double now = 0;
  const std::string text = shown([&](std::FILE* out) {
    tools::preprocess::PreprocessBar bar(out, {.log_interval = 10, .bytes = 10},
                                         [&] { return now; });
    bar.show({.rows = 9});
    bar.show({.rows = 10});
    bar.show({.rows = 20});  // within a second
    now = 2;
    bar.show({.rows = 25});
  });
  EXPECT_EQ(text,
            "[....................] 0 % 10 rows 0 tokens 0 MB/s\n"
            "[....................] 0 % 25 rows 0 tokens 0.00 MB/s\n");
}

}  // namespace
}  // namespace troupe::launch
