#include "launch/tools/megatron/flags.h"

#include <algorithm>
#include <iostream>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::megatron {
namespace {

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
      if (auto problem = tables::problem_of(*given.flag, given.values); !problem.empty())
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
    for (const Flag& flag : tables::megatron_flags()) known.push_back(cat("--", flag.name));
    const std::string meant = nearest(word, known);
    problems_.push_back(cat(word, ": no flag of this program; ",
                            meant.empty() ? "" : cat("did you mean ", meant, "? "),
                            "`troupe flags` lists all"));
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  CommandLine out_;
  std::vector<std::string> problems_;
};

}  // namespace

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
  for (const Flag& flag : tables::megatron_flags()) {
    const std::string key = tables::key_of(flag), remark = tables::remark_of(flag);
    if (as_json)
      std::cout << Json()
                       .set("flag", cat("--", flag.name))
                       .set("group", flag.section)
                       .set("class", name_of(class_of(flag)))
                       .set("key", key.empty() ? Json() : Json(key))
                       .set("default", flag.otherwise.empty() ? Json() : Json(flag.otherwise))
                       .set("remark", remark)
                       .dump()
                << '\n';
    else
      std::cout << "--" << flag.name << '\t' << name_of(class_of(flag)) << '\t' << key << '\t'
                << remark << '\n';
  }
  return 0;
}

}  // namespace troupe::launch::tools::megatron
