#include "launch/tools/megatron/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>

#include "engine/base/fields.h"
#include "engine/base/text.h"
#include "launch/tools/megatron/flag_rows.h"
#include "launch/tools/tables/tool_table.h"

namespace troupe::launch::tools::megatron {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// "adam" or "PretrainedFromHF or HuggingFaceTokenizer".
std::string alternatives(std::string_view values) {
  const auto words = tables::pieces(values, ' ');
  return join(std::vector<std::string>(words.begin(), words.end()), " or ");
}

Rule rule_of(std::string_view word) {
  constexpr std::array<std::string_view, 7> names{"import", "config", "key", "program",
                                                  "only",   "so",     "no"};
  return static_cast<Rule>(std::ranges::find(names, word) - names.begin());
}

std::vector<Flag> parse() {
  std::vector<Flag> out;
  std::string_view group;
  for (const auto line : tables::pieces(flag_rows(), '\n')) {
    if (line.starts_with("# ")) {
      group = line.substr(2);
      continue;
    }
    std::vector<std::string_view> cells;
    for (std::string_view rest = line; cells.size() < 4;) {
      const auto bar = std::min(rest.find('|'), rest.size());
      cells.push_back(trimmed(rest.substr(0, bar)));
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
    const auto blank = std::min(cells[2].find(' '), cells[2].size());
    const auto argument = trimmed(cells[2].substr(blank));
    for (const auto name : tables::pieces(cells[0], ','))
      out.push_back(
          {group, name, cells[1], rule_of(cells[2].substr(0, blank)), argument, cells[3]});
  }
  return out;
}

/// The row of the importer for a pretraining run, otherwise for any run that has a key.
const tables::ToolKey* row_of(const Flag& flag) {
  const auto rows = tables::find_rows(tables::Tool::mindspeed, tables::normal_name(flag.name));
  for (const tables::ToolKey* row : rows)
    if (row->equivalent == tables::Equivalent::setting) return row;
  return rows.empty() ? nullptr : rows[0];
}

bool same_value(std::string_view allowed, const std::string& given) {
  if (allowed == given) return true;
  double a = 0, b = 0;
  const auto read = [](std::string_view text, double& out) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
    return code == std::errc() && end == text.data() + text.size();
  };
  return read(allowed, a) && read(given, b) && a == b;
}

bool takes(std::string_view count, std::size_t values) {
  if (count == "*") return true;
  if (count == "+") return values > 0;
  return values == static_cast<std::size_t>(count[0] - '0');
}

std::string problem_of(const Given& given) {
  const Flag& flag = *given.flag;
  const std::string written = cat("--", flag.name);
  if (class_of(flag) == FlagClass::refused) return cat(written, ": ", remark_of(flag));
  if (!takes(flag.count, given.values.size()))
    return cat(written, ": expected ", flag.count == "+" ? "one or more" : flag.count,
               " values, found ", given.values.size());
  if (flag.rule != Rule::only) return "";
  const auto allowed = tables::pieces(flag.argument, ' ');
  for (const auto each : allowed)
    if (same_value(each, given.values[0])) return "";
  return cat(written, ' ', given.values[0], ": expected ", alternatives(flag.argument), "; ",
             flag.remark);
}

/// A word that begins with a dash and is not a number.
bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

bool is_setting(const std::string& word) {
  const auto equals = word.find('=');
  return !is_flag(word) && equals != std::string::npos && equals > 0 &&
         word.find_first_of("/ ") > equals;
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  Result<CommandLine> read() {
    while (at_ < words_.size()) next();
    for (const Given& given : out_.flags)
      if (auto problem = problem_of(given); !problem.empty())
        problems_.push_back(std::move(problem));
    if (!problems_.empty()) return fail(Errc::usage, join(problems_, "\n"));
    return std::move(out_);
  }

 private:
  void next() {
    const std::string& word = words_[at_++];
    if (is_setting(word)) {
      out_.overrides.push_back(word);
      return;
    }
    if (!is_flag(word)) {
      problems_.push_back(cat(quote(word), ": expected a flag such as --num-layers"));
      return;
    }
    const auto equals = word.find('=');
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(word.substr(equals + 1));
    while (equals == std::string::npos && at_ < words_.size() && !is_flag(words_[at_]) &&
           !is_setting(words_[at_]))
      values.push_back(words_[at_++]);
    const Flag* flag = find_flag(word.substr(0, equals));
    if (!flag) return unknown(word.substr(0, equals));
    std::erase_if(out_.flags, [&](const Given& given) { return given.flag == flag; });
    out_.flags.push_back({flag, std::move(values)});
  }

  void unknown(const std::string& word) {
    std::vector<std::string> known;
    for (const Flag& flag : flags()) known.push_back(cat("--", flag.name));
    const std::string meant = nearest(word, known);
    problems_.push_back(cat(word, ": no flag of this program",
                            meant.empty() ? "" : cat("; did you mean ", meant, "?"),
                            " `troupe flags` lists all"));
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  CommandLine out_;
  std::vector<std::string> problems_;
};

}  // namespace

std::span<const Flag> flags() {
  static const std::vector<Flag> table = parse();
  return table;
}

const Flag* find_flag(std::string_view name) {
  const std::string normal = tables::normal_name(name);
  for (const Flag& flag : flags())
    if (tables::normal_name(flag.name) == normal) return &flag;
  return nullptr;
}

FlagClass class_of(const Flag& flag) {
  if (flag.rule == Rule::so) return FlagClass::already_so;
  if (flag.rule == Rule::no) return FlagClass::refused;
  if (flag.rule != Rule::import) return FlagClass::acts;
  const tables::ToolKey* row = row_of(flag);
  if (!row || row->equivalent == tables::Equivalent::none ||
      row->equivalent == tables::Equivalent::by_hand)
    return FlagClass::refused;
  return row->equivalent == tables::Equivalent::setting ? FlagClass::acts : FlagClass::already_so;
}

std::string key_of(const Flag& flag) {
  if (flag.rule == Rule::config) return cat("config.json ", flag.argument);
  if (flag.rule == Rule::key || flag.rule == Rule::program) return std::string(flag.argument);
  const tables::ToolKey* row = flag.rule == Rule::import ? row_of(flag) : nullptr;
  return !row || row->targets.empty() ? "" : std::string(row->targets[0].key);
}

std::string remark_of(const Flag& flag) {
  const tables::ToolKey* row = flag.rule == Rule::import ? row_of(flag) : nullptr;
  if (flag.rule == Rule::only)
    return cat("expected ", alternatives(flag.argument), ": ", flag.remark);
  return std::string(row && flag.remark.empty() ? row->remark : flag.remark);
}

const Given* CommandLine::find(std::string_view name) const {
  for (const Given& given : flags)
    if (given.flag->name == name) return &given;
  return nullptr;
}

std::string CommandLine::value(std::string_view name, const std::string& otherwise) const {
  const Given* given = find(name);
  return given && !given->values.empty() ? given->values[0] : otherwise;
}

Result<CommandLine> read_command_line(const std::vector<std::string>& words) {
  return Reader(words).read();
}

int list_flags(bool as_json) {
  for (const Flag& flag : flags()) {
    const std::string key = key_of(flag);
    if (as_json)
      std::cout << Json()
                       .set("flag", cat("--", flag.name))
                       .set("group", flag.group)
                       .set("class", name_of(class_of(flag)))
                       .set("key", key.empty() ? Json() : Json(key))
                       .set("remark", remark_of(flag))
                       .dump()
                << '\n';
    else
      std::cout << "--" << flag.name << '\t' << name_of(class_of(flag)) << '\t' << key << '\t'
                << remark_of(flag) << '\n';
  }
  return 0;
}

}  // namespace troupe::launch::tools::megatron
