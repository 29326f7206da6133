// The pages for users of other tools name only keys, algorithms and commands that are there.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_types.h"

namespace troupe::launch::coming_from_test {
namespace {

std::string page(const std::string& name) {
  return value_or_throw(read_file(std::string(TROUPE_DOCS) + "/" + name));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Returns the texts between backticks.
std::vector<std::string> in_backticks(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t open = text.find('`'); open != std::string::npos; open = text.find('`', open)) {
    const auto close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    if (close > open + 1) out.push_back(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return out;
}

/// The letters and underlines of text from `at` on.
std::string word_at(const std::string& text, std::size_t at) {
  return text.substr(at, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at) - at);
}

/// The key that text sets or names ("grpo.beta", "grpo.beta: 0.1"), or nothing; file names of a run
/// ("timeline.jsonl") are no keys.
std::string key_of(const std::string& text) {
  if (text.ends_with(".jsonl") || text.ends_with(".svg")) return {};
  const std::string section = word_at(text, 0);
  if (section.empty() || section.find('_') != std::string::npos ||
      text.substr(section.size(), 1) != ".")
    return {};
  const std::string key = section + "." + word_at(text, section.size() + 1),
                    rest = text.substr(key.size());
  return key.size() > section.size() + 1 && (rest.empty() || rest.starts_with(": "))
             ? key
             : std::string();
}

/// The algorithm that text chooses ("--algorithm dapo ...", "algorithm: dapo"), or nothing.
std::string algorithm_of(const std::string& text) {
  for (const std::string_view opening : {"--algorithm ", "algorithm: "})
    if (text.starts_with(opening)) return word_at(text, opening.size());
  return {};
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> out;
  for (std::size_t at = 1; at < row.size();) {
    const auto end = std::min(row.find('|', at), row.size());
    out.push_back(row.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Names in the reference page: the first cells of its tables (keys and algorithms), and keys in
/// its sentences (data.map_keys).
std::set<std::string> reference() {
  std::set<std::string> out;
  for (const auto& line : lines_of(page("configuration.md"))) {
    const auto names =
        line.starts_with("| `") ? in_backticks(cells_of(line).at(0)) : std::vector<std::string>{};
    if (!names.empty()) out.insert(names[0]);
    for (auto at = line.find("data."); at != std::string::npos; at = line.find("data.", at + 1))
      if (const auto key = word_at(line, at + 5); !key.empty()) out.insert("data." + key);
  }
  return out;
}

/// The quoted names of the columns that are headed "troupe".
std::vector<std::string> ours(const std::string& name) {
  std::vector<std::string> out;
  std::size_t column = 0;
  for (const auto& line : lines_of(page(name))) {
    if (!line.starts_with("|")) {
      column = 0;
      continue;
    }
    const auto cells = cells_of(line);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (cells[i] == " troupe ") column = i;
    if (column && column < cells.size())
      for (const auto& one : in_backticks(cells[column])) out.push_back(one);
  }
  return out;
}

const std::vector<std::string> pages = {"coming-from-trl.md", "coming-from-llama-factory.md",
                                        "coming-from-openrlhf.md", "coming-from-verl.md",
                                        "coming-from-mindspeed.md"};

TEST(ComingFrom, EveryKeyOfOursIsInTheReference) {
  const auto known = reference();
  std::set<std::string> sections;
  for (const auto& key : known)
    if (key.find('.') != std::string::npos) sections.insert(key.substr(0, key.find('.')));
  std::size_t keys = 0;
  for (const auto& name : pages)
    for (const auto& text : ours(name)) {
      if (const auto key = key_of(text); sections.contains(key.substr(0, key.find('.')))) {
        EXPECT_TRUE(known.contains(key)) << name << ": " << text;
        ++keys;
      }
      if (const auto chosen = algorithm_of(text); !chosen.empty()) {
        EXPECT_TRUE(known.contains(chosen)) << name << ": " << text;
      }
    }
  EXPECT_GT(keys, 200u);
}

// GitHub cuts off what an unescaped bar adds, also between backticks.
TEST(Docs, EveryRowOfATableHasTheColumnsOfItsHead) {
  std::size_t rows = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TROUPE_DOCS)) {
    if (entry.path().extension() != ".md") continue;
    std::size_t columns = 0;
    bool fenced = false;
    for (const auto& line : lines_of(value_or_throw(read_file(entry.path().string())))) {
      if (line.starts_with("```")) fenced = !fenced;
      if (fenced || !line.starts_with("|")) {
        columns = 0;
        continue;
      }
      std::size_t bars = 0;
      for (std::size_t i = 0; i < line.size(); ++i)
        bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
      if (columns == 0) columns = bars;
      EXPECT_EQ(bars, columns) << entry.path() << ": " << line;
      ++rows;
    }
  }
  EXPECT_GT(rows, 500u);
}

TEST(ComingFrom, EveryPromptTypeIsInThePageAndTheOtherWayRound) {
  const std::string text = page("coming-from-mindspeed.md");
  const auto begin = text.find("## Prompt types"), end = text.find("| what | troupe |");
  ASSERT_LT(begin, end);
  const auto there = text.find("Available names:", begin);
  std::set<std::string> named;
  for (const auto& name : in_backticks(text.substr(there, end - there))) named.insert(name);
  const auto names = engine::tokenizer::prompt_type_names();
  EXPECT_EQ(named, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace troupe::launch::coming_from_test
