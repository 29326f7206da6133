#include "launch/evaluation/mindspeed/programs.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/mindspeed/extraction.h"
#include "launch/evaluation/mindspeed/prompts.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

/// The second of re.split(r"\s+", line), or "".
std::string second_word(const std::string& line) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const std::size_t gap = line.find_first_of(spaces);
  const std::size_t begin = line.find_first_not_of(spaces, gap);
  if (gap == std::string::npos || begin == std::string::npos) return "";
  const std::size_t end = line.find_first_of(spaces, begin);
  return line.substr(begin, end == std::string::npos ? end : end - begin);
}

std::string with_tests(std::string program, const Json& row) {
  return program + column(row, "test") + "\ncheck(" + column(row, "entry_point") + ")";
}

}  // namespace

std::string human_eval_program(const Json& row, const std::string& answer, bool fixed) {
  const std::string code = column(row, "prompt") + "    " + left_stripped(answer);
  const std::string name = column(row, "entry_point");
  std::string out = "from typing import List\nimport math\n";
  bool defined = false;
  std::size_t number = 0;
  for (std::size_t at = 0; at <= code.size(); ++number) {
    const std::size_t end = std::min(code.find('\n', at), code.size());
    const std::string line = code.substr(at, end - at);
    at = end + 1;
    if (number == 0 && engine::jinja::lower(line) == "python") continue;
    if (stripped(line).empty()) continue;
    const bool top = !begins_with_space(line);
    const bool function = line.starts_with("def");
    if (top && !function && !line.starts_with("from") && !line.starts_with("import")) {
      if (defined) break;
      continue;
    }
    if (top && function) {
      const std::string word = second_word(line);
      defined = defined || (fixed ? word.substr(0, word.find('(')) : word) == name;
    }
    out += line + '\n';
  }
  return with_tests(std::move(out), row);
}

Result<std::string> human_eval_fenced(const Json& row, const std::string& answer) {
  static const Regex fence = value_or_throw(python_regex("(?s)```\\w*\\n(.*?)```", "human_eval"));
  const auto blocks = fence.find_groups(answer);
  RETURN_IF_ERROR(blocks);
  std::string text = answer;
  if (!blocks->empty()) {
    const auto& range = blocks->front()[1];
    text = answer.substr(range.begin, range.end - range.begin);
  }
  return with_tests(cat(column(row, "prompt"), text, "\n"), row);
}

}  // namespace troupe::launch::evaluation::mindspeed
