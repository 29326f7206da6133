// An interrupted `troupe preprocess` and the same command again: the bytes are the same.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "launch/tools/preprocess/row_source.h"
#include "launch/tools/preprocess/token_files.h"
#include "tests/launch/program.h"
#include "tests/system/child.h"

namespace troupe::launch {
namespace {

using engine::data::RowPosition;
using engine::data::megatron::TokenType;
using ::testing::HasSubstr;

std::string bytes_of_file(const std::string& path) {
  return value_or_throw(read_file(path));
}

void expect_same_dataset(const std::string& prefix, const std::string& other) {
  for (const char* ending : {".bin", ".idx"})
    EXPECT_TRUE(bytes_of_file(prefix + ending) == bytes_of_file(other + ending))
        << prefix << ending;
}

tools::preprocess::TokenFiles::Options files_options(const std::string& folder,
                                                     const std::string& name) {
  return {.prefix = folder + "/" + name,
          .outputs = {"x", "y"},
          .type = TokenType::i32,
          .progress_file = folder + "/" + name + ".json",
          .settings = Json::Object{{"input", "a"}, {"max_samples", 0}}};
}

std::vector<tools::preprocess::TokenDocument> documents_of_row(std::int64_t row) {
  const auto token = static_cast<std::int32_t>(row);
  return {tools::preprocess::TokenDocument{{token, token + 1}, {token}},
          tools::preprocess::TokenDocument{}};
}

// Writes rows up to `end`, saves after row `saved` and is interrupted at the end.
void write_part(const std::string& folder, std::int64_t saved, std::int64_t end) {
  auto files = value_or_throw(tools::preprocess::TokenFiles::open(files_options(folder, "part")));
  for (std::int64_t row = files.position().number; row < end; ++row) {
    value_or_throw(files.add(documents_of_row(row)));
    const RowPosition next{.file = 0, .row = row + 1, .number = row + 1};
    if (row + 1 == saved) value_or_throw(files.save(next));
  }
}

TEST(InterruptedPreprocess, ContinuesAtTheLastSavedRow) {
  const std::string folder = scratch_folder();
  auto whole = value_or_throw(tools::preprocess::TokenFiles::open(files_options(folder, "whole")));
  for (std::int64_t row = 0; row < 20; ++row) value_or_throw(whole.add(documents_of_row(row)));
  value_or_throw(whole.finish({.file = 1, .row = 0, .number = 20}));
  write_part(folder, 3, 7);
  write_part(folder, 0, 9);
  write_part(folder, 12, 12);
  auto rest = value_or_throw(tools::preprocess::TokenFiles::open(files_options(folder, "part")));
  EXPECT_EQ(rest.position().number, 12);
  for (std::int64_t row = 12; row < 20; ++row) value_or_throw(rest.add(documents_of_row(row)));
  value_or_throw(rest.finish({.file = 1, .row = 0, .number = 20}));
  for (const char* output : {"_x_document", "_y_document"})
    expect_same_dataset(folder + "/part" + output, folder + "/whole" + output);
  EXPECT_FALSE(std::filesystem::exists(folder + "/part.json"));
}

TEST(InterruptedPreprocess, IsNotContinuedWithOtherSettings) {
  const std::string folder = scratch_folder();
  write_part(folder, 3, 7);
  auto options = files_options(folder, "part");
  options.settings.set("max_samples", 5);
  const auto files = tools::preprocess::TokenFiles::open(options);
  EXPECT_EQ(files.error().code, Errc::usage);
  EXPECT_THAT(files.error().what, HasSubstr("other settings (max_samples was \"0\", now it is "
                                            "\"5\"); repeat that command, or remove the file"));
}

TEST(InterruptedPreprocess, RefusesADamagedProgressFile) {
  const std::string folder = scratch_folder();
  const std::string path = files_options(folder, "part").progress_file;
  const std::string settings = R"("settings":{"input":"a","max_samples":0})";
  const std::string rows = R"("file":0,"row":0,"rows":0,"outputs":)";
  const std::vector<std::string> texts = {
      "x",
      "{}",
      "{" + settings + "}",
      "{" + settings + R"(,"file":0,"row":-1,"rows":0,"outputs":[]})",
      "{" + settings + "," + rows + "[]}",
      "{" + settings + "," + rows + R"([{"bytes":-1,"entries":0},{}]})",
      "{" + settings + "," + rows + R"([{"bytes":9,"entries":9},{"bytes":0,"entries":0}]})",
      "{" + settings + "," + rows + R"([{"bytes":0,"entries":4611686018427387905},{}]})"};
  for (const std::string& text : texts) {
    value_or_throw(write_file_durably(path, text));
    EXPECT_FALSE(tools::preprocess::TokenFiles::open(files_options(folder, "part")).has_value())
        << text;
  }
}

// Text of `rows` rows, different in each.
std::string many_rows(int rows) {
  std::string out;
  for (int i = 0; i < rows; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text += cat("Once upon a time there were ", i * k, " dogs. ");
    out += Json(Json::Object{{"text", text}}).dump() + "\n";
  }
  return out;
}

/// TROUPE_KILLS, or 5.
int kills_wanted() {
  const char* given = std::getenv("TROUPE_KILLS");
  return given ? std::atoi(given) : 5;
}

TEST(InterruptedPreprocess, KilledAtRandomTimesWritesTheSameBytes) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/a.jsonl", many_rows(4000)));
  value_or_throw(write_file_durably(folder + "/b.jsonl", many_rows(1000)));
  const auto command = [&](const std::string& name) {
    return cat("'" TROUPE_PROGRAM "' preprocess --workers 16 --append-eod --input ", folder,
               "/a.jsonl ", folder, "/b.jsonl --tokenizer-name-or-path ",
               data("models/stories260k/hf"), " --output-prefix ", folder, "/", name);
  };
  const auto started = std::chrono::steady_clock::now();
  ASSERT_EQ(test::Child(command("whole"), folder + "/log").wait(), 0)
      << bytes_of_file(folder + "/log");
  const std::chrono::duration<double, std::milli> whole =
      std::chrono::steady_clock::now() - started;
  const auto longest = static_cast<std::uint64_t>(whole.count()) + 1;
  const int wanted = kills_wanted();
  int kills = 0, continued = 0;
  // A run that ends before its moment is compared as well, and the next one begins anew.
  for (std::uint64_t life = 0; kills < wanted; ++life) {
    ASSERT_LT(life, 20U * static_cast<std::uint64_t>(wanted)) << "runs end before they are killed";
    continued += std::filesystem::exists(folder + "/killed.progress.json");
    test::Child child(command("killed"), folder + "/log");
    const auto moment = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(uniform_below(longest, 8, 1, life));
    if (child.until([&] { return std::chrono::steady_clock::now() >= moment; }))
      child.signal(SIGKILL);
    const int code = child.wait();
    kills += code == -SIGKILL;
    if (code == -SIGKILL) continue;
    ASSERT_EQ(code, 0) << bytes_of_file(folder + "/log");
    expect_same_dataset(folder + "/killed_text_document", folder + "/whole_text_document");
    for (const char* ending : {".bin", ".idx"})
      std::filesystem::remove(folder + "/killed_text_document" + ending);
  }
  ASSERT_EQ(test::Child(command("killed"), folder + "/log").wait(), 0)
      << bytes_of_file(folder + "/log");
  expect_same_dataset(folder + "/killed_text_document", folder + "/whole_text_document");
  EXPECT_FALSE(std::filesystem::exists(folder + "/killed.progress.json"));
  RecordProperty("kills", kills);
  RecordProperty("continued", continued);
}

}  // namespace
}  // namespace troupe::launch
