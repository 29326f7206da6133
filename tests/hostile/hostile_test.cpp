// Every hostile file ends with one sentence and its exit code, soon and in little memory: no crash,
// no hang, no mistake of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/base/text/text.h"
#include "tests/hostile/case.h"

namespace troupe::hostile {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double max_seconds =
    sanitized ? 120 : 2;  // of processors, which a machine with much to do does not stretch
constexpr double max_mib = 200;
constexpr std::size_t longest_sentence = 900;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto* table :
       {&safetensors_cases(), &shard_cases(), &config_cases(), &tokenizer_cases(),
        &template_cases(), &template_cost_cases(), &growth_cases(), &row_cases(), &reader_cases(),
        &piece_cases(), &run_file_cases(), &adapter_cases(), &run_folder_cases(), &place_cases(),
        &token_file_cases()})
    all.insert(all.end(), table->begin(), table->end());
  return all;
}

// The line that has the words, or nothing.
std::string line_with(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  if (at == std::string::npos) return "";
  const auto begin = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const auto from = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(from, text.find('\n', at) - from);
}

// Counts occurrences at the beginnings of lines.
int times_said(const std::string& text, const std::string& words) {
  int times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    times += at == 0 || text[at - 1] == '\n';
  return times;
}

class HostileFile : public testing::TestWithParam<Case> {};

TEST_P(HostileFile, EndsWithOneSentence) {
  const Case& given = GetParam();
  const Folder folder(cat(testing::TempDir(), "hostile_", given.name));
  given.make(folder);
  Surroundings surroundings = given.surroundings;
  surroundings.disk = placed(surroundings.disk, folder.path());
  const Ended ended =
      run_hostile(folder.path() + ".run", placed(given.command, folder.path()),
                  given.long_input ? given.long_input() : given.input, surroundings);
  if (!ended.started) GTEST_SKIP() << "this machine does not let a test mount a disk of its own";
  const std::string said = ended.out + ended.err,
                    sentence = line_with(said, placed(given.says, folder.path()));
  EXPECT_TRUE(ended.in_time) << "it had to be killed";
  EXPECT_EQ(ended.code, given.code) << said;
  EXPECT_NE(sentence, "") << "expected: " << placed(given.says, folder.path())
                          << "\nsaid: " << said.substr(0, 3000);
  EXPECT_TRUE(sentence.size() <= longest_sentence || sentence.starts_with("{\"ids\":"))
      << sentence.substr(0, 2000);
  EXPECT_TRUE(valid_utf8(said));
  EXPECT_TRUE(std::none_of(said.begin(), said.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n';
  })) << said;
  EXPECT_THAT(said, Not(HasSubstr("internal error, please report it")));
  EXPECT_LE(times_said(ended.err, "troupe: "), 1) << ended.err;
  EXPECT_LE(ended.processor_seconds, max_seconds);
  EXPECT_TRUE(sanitized || ended.peak_mib <= max_mib) << ended.peak_mib << " MiB";
  RecordProperty("milliseconds", static_cast<int>(ended.seconds * 1000));
  RecordProperty("processor_milliseconds", static_cast<int>(ended.processor_seconds * 1000));
  RecordProperty("peak_mib", static_cast<int>(ended.peak_mib));
  std::filesystem::remove_all(folder.path());
}

INSTANTIATE_TEST_SUITE_P(All, HostileFile, testing::ValuesIn(all_cases()),
                         [](const auto& each) { return each.param.name; });

TEST(HostileFiles, AreAtLeastAHundredAndTenWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Case& each : all_cases()) EXPECT_TRUE(names.insert(each.name).second) << each.name;
  EXPECT_GE(names.size(), 110u);
}

TEST(HostileFiles, AreMeasuredAlone) {
  if (sanitized)
    GTEST_SKIP() << "the shadow memory of a sanitizer is not troupe's own: the bound of 200 MB is "
                    "not checked here";
  const Ended ended = run_hostile(testing::TempDir() + "hostile_version", "--version", "", {});
  EXPECT_EQ(ended.out.substr(0, 7), "troupe ");
  EXPECT_GT(ended.peak_mib, 1);
  EXPECT_LT(ended.peak_mib, 100);
}

}  // namespace
}  // namespace troupe::hostile
