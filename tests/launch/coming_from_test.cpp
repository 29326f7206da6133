// The pages for users of other tools name only keys, algorithms and commands that are there.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/tokenizer/prompt_types.h"

namespace troupe::launch {
namespace {

std::string page(const std::string& name) { return value_or_throw(read_file(std::string(TROUPE_DOCS) + "/" + name)); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// What stands between backticks.
std::vector<std::string> in_backticks(const std::string& text) {
  std::vector<std::string> out;
  const std::regex code("`([^`]+)`");
  for (std::sregex_iterator it(text.begin(), text.end(), code), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
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

/// What the reference page names: the first cells of its tables (keys and algorithms), and keys in its sentences (data.map_keys).
std::set<std::string> reference() {
  std::set<std::string> out;
  for (const auto& line : lines_of(page("configuration.md"))) {
    const auto names = line.starts_with("| `") ? in_backticks(cells_of(line).at(0)) : std::vector<std::string>{};
    if (!names.empty()) out.insert(names[0]);
    const std::regex key("data\\.[a-z_]+");
    for (std::sregex_iterator it(line.begin(), line.end(), key), end; it != end; ++it) out.insert((*it)[0]);
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

const std::vector<std::string> pages = {"coming-from-trl.md", "coming-from-openrlhf.md", "coming-from-verl.md", "coming-from-mindspeed.md"};

TEST(ComingFrom, EveryKeyOfOursIsInTheReference) {
  const auto known = reference();
  std::set<std::string> sections;
  for (const auto& key : known)
    if (key.find('.') != std::string::npos) sections.insert(key.substr(0, key.find('.')));
  const std::regex key("([a-z]+)\\.([a-z_]+)(: .*)?"), algorithm("(--algorithm |algorithm: )([a-z_]+)( .*)?");
  std::size_t keys = 0;
  for (const auto& name : pages)
    for (const auto& text : ours(name)) {
      std::smatch found;
      if (std::regex_match(text, found, key) && sections.contains(found[1])) {
        EXPECT_TRUE(known.contains(cat(found[1].str(), ".", found[2].str()))) << name << ": " << text;
        ++keys;
      }
      if (std::regex_match(text, found, algorithm)) { EXPECT_TRUE(known.contains(found[2])) << name << ": " << text; }
    }
  EXPECT_GT(keys, 200u);
}

TEST(ComingFrom, EveryPromptTypeIsInThePageAndTheOtherWayRound) {
  const std::string text = page("coming-from-mindspeed.md");
  const auto begin = text.find("## Prompt types"), end = text.find("| what | troupe |");
  ASSERT_LT(begin, end);
  const auto there = text.find("There are:", begin);
  std::set<std::string> named;
  for (const auto& name : in_backticks(text.substr(there, end - there))) named.insert(name);
  const auto names = engine::tokenizer::prompt_type_names();
  EXPECT_EQ(named, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace troupe::launch
