// Parquet files with damaged internals (footers, page headers, encodings, compressed pages): each
// is read or rejected, soon and in little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "engine/base/text/text.h"
#include "tests/hostile/folder.h"
#include "tests/hostile/program.h"

namespace troupe::hostile {
namespace {

using testing::HasSubstr;
using testing::Not;

class DamagedParquet : public testing::TestWithParam<const char*> {};

// Damages one byte or four at positions over the whole file, most of them in its footer.
TEST_P(DamagedParquet, IsReadOrRejected) {
  const Folder folder(cat(testing::TempDir(), "parquet_", GetParam()));
  const std::string source = cat("formats/parquet/", GetParam(), ".parquet");
  folder.copy(source, "rows.parquet");
  const auto size =
      static_cast<std::int64_t>(std::filesystem::file_size(folder.path() + "/rows.parquet"));
  const std::array<std::string, 3> damages{"\xff\xff\xff\x7f", std::string(1, '\0'), "\x80"};
  constexpr int positions = 14;
  for (int i = 0; i < positions; ++i) {
    const std::int64_t footer = size - 8,
                       at = 4 + (footer - 8) * (i * (2 * positions - i)) / (positions * positions);
    folder.copy(source, "rows.parquet")
        .patch("rows.parquet", at, damages[static_cast<std::size_t>(i) % damages.size()]);
    const Ended ended =
        run_hostile(folder.path() + ".run", cat("info ", folder.path(), "/rows.parquet"), "", {});
    const std::string said = ended.out + ended.err;
    // 3: it is read, and no algorithm uses its columns.
    EXPECT_TRUE(ended.code == 0 || ended.code == 3 || ended.code == 5)
        << "at " << at << ": " << ended.code << said;
    EXPECT_TRUE(ended.in_time) << "at " << at;
    EXPECT_THAT(said, Not(HasSubstr("please report it"))) << "at " << at;
    EXPECT_LE(ended.processor_seconds, sanitized ? 120 : 2) << "at " << at;
    EXPECT_TRUE(sanitized || ended.peak_mib <= 200) << "at " << at << ": " << ended.peak_mib;
  }
  std::filesystem::remove_all(folder.path());
}

INSTANTIATE_TEST_SUITE_P(All, DamagedParquet,
                         testing::Values("nested_lists.snappy", "delta_length_byte_array",
                                         "byte_stream_split.zstd", "alltypes_dictionary",
                                         "datapage_v2.snappy"),
                         [](const auto& each) {
                           std::string name = each.param;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace troupe::hostile
