#include "actors/roles/rules/rule.h"

#include <array>
#include <memory>
#include <utility>

#include "actors/roles/rules/command.h"
#include "actors/roles/rules/math_answer.h"
#include "actors/roles/rules/math_number.h"
#include "actors/roles/rules/published_math.h"
#include "actors/roles/rules/python_function.h"
#include "actors/roles/rules/text_rules.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/regex.h"

namespace troupe::actors::rules {
namespace {

using RewardRequest = protocol::RewardRequest;

// Returns the row's answer as a string: data sets contain 72, "72" and "... #### 72".
Result<std::string> answer_text(const Json& answer) {
  if (answer.is_string()) return answer.string();
  if (answer.is_number()) return answer.dump();
  return fail(Errc::bad_input,
              cat("the row's answer should be a text or a number, it is ", answer.type_name()));
}
Result<std::string> answer_of(const RewardRequest& s) {
  return answer_text(s.answer);
}
// Check of a rule that reads the answer as it is.
Result<> any_answer(const Json& answer) {
  return answer_text(answer).map([](const std::string&) {});
}

std::string_view scored_part(const RewardRequest& s, const std::string& tag) {
  return tag.empty() ? std::string_view(s.completion) : inside_tag(s.completion, tag);
}

struct Exact {
  ExactOptions match;
  std::string tag;
  static void each_field(auto& self, auto&& field) {
    field("strip", self.match.strip);
    field("collapse_spaces", self.match.collapse_spaces);
    field("ignore_case", self.match.ignore_case);
    field("tag", self.tag);
  }
  static Result<> check_answer(const Json& answer) { return any_answer(answer); }
  Result<double> operator()(const RewardRequest& s) const {
    const auto answer = answer_of(s);
    RETURN_IF_ERROR(answer);
    return exact_match(scored_part(s, tag), *answer, match) ? 1.0 : 0.0;
  }
};

struct Gsm8k {
  bool flexible = false;
  double format_score = 0;
  std::string tag;
  static void each_field(auto& self, auto&& field) {
    field("flexible", self.flexible);
    field("format_score", self.format_score);
    field("tag", self.tag);
  }
  static Result<> check_answer(const Json& given) {
    const auto answer = answer_text(given);
    RETURN_IF_ERROR(answer);
    const auto truth = after_hashes(*answer).value_or(std::string_view(*answer));
    if (!read_number(normalize_math(truth)))
      return fail(Errc::bad_input, cat("the row's answer is not a number: ", quote(truth)));
    return {};
  }
  Result<double> operator()(const RewardRequest& s) const {
    RETURN_IF_ERROR(check_answer(s.answer));
    const auto answer = answer_of(s);
    const auto truth = after_hashes(*answer).value_or(std::string_view(*answer));
    const auto text = scored_part(s, tag);
    auto found = after_hashes(text);
    if (!found && flexible) found = last_number(text);
    if (!found) return 0.0;
    return same_answer(*found, truth) ? 1.0 : format_score;
  }
};

struct Boxed {
  double tolerance = 1e-9, format_score = 0;
  std::string tag;
  static Result<> check_answer(const Json& answer) { return any_answer(answer); }
  static void each_field(auto& self, auto&& field) {
    field("tolerance", self.tolerance);
    field("format_score", self.format_score);
    field("tag", self.tag);
  }
  Result<double> operator()(const RewardRequest& s) const {
    const auto answer = answer_of(s);
    RETURN_IF_ERROR(answer);
    const auto hashes = after_hashes(*answer), boxed = last_boxed(*answer);
    const std::string_view truth = boxed ? *boxed : hashes ? *hashes : std::string_view(*answer);
    const auto found = last_boxed(scored_part(s, tag));
    if (!found) return 0.0;
    return same_answer(*found, truth, tolerance) ? 1.0 : format_score;
  }
};

struct PublishedGsm8k {
  static void each_field(auto&, auto&&) {}
  // The published code reads the number from the solution; a number alone is one, too.
  static std::string truth_of(const std::string& answer) {
    return gsm8k_answer(answer).value_or(gsm8k_answer(cat("#### ", answer)).value_or(""));
  }
  static Result<> check_answer(const Json& given) {
    const auto answer = answer_text(given);
    RETURN_IF_ERROR(answer);
    if (truth_of(*answer).empty())
      return fail(Errc::bad_input, cat("the row's answer has no number: ", quote(*answer, 80)));
    return {};
  }
  Result<double> operator()(const RewardRequest& s) const {
    RETURN_IF_ERROR(check_answer(s.answer));
    return gsm8k_answer(s.completion) == truth_of(*answer_of(s)) ? 1.0 : 0.0;
  }
};

struct PublishedMath {
  static void each_field(auto&, auto&&) {}
  static Result<> check_answer(const Json& answer) { return any_answer(answer); }
  Result<double> operator()(const RewardRequest& s) const {
    const auto answer = answer_of(s);
    RETURN_IF_ERROR(answer);
    const auto found = math_boxed(s.completion);
    return found && math_equivalent(*found, math_boxed(*answer).value_or(*answer)) ? 1.0 : 0.0;
  }
};

struct Format {
  std::vector<std::string> tags{"think", "answer"};
  static void each_field(auto& self, auto&& field) { field("tags", self.tags); }
  Result<> validate(const std::string& where) const {
    if (tags.empty()) return fail(Errc::usage, cat(where, ".tags: expected at least one tag"));
    for (const auto& tag : tags)
      if (tag.empty() || tag.find_first_of("<>/") != tag.npos)
        return fail(Errc::usage,
                    cat(where, ".tags: expected names like \"think\", found ", quote(tag)));
    return {};
  }
  Result<double> operator()(const RewardRequest& s) const {
    return has_format(s.completion, tags) ? 1.0 : 0.0;
  }
};

enum class LengthUnit { characters, words };
constexpr std::array<std::string_view, 2> names_of(LengthUnit) {
  return {"characters", "words"};
}

struct Length {
  LengthUnit unit = LengthUnit::characters;
  int min = 0, max = 0, buffer = 0;
  static void each_field(auto& self, auto&& field) {
    field("unit", self.unit);
    field("min", self.min);
    field("max", self.max);
    field("buffer", self.buffer);
  }
  Result<> validate(const std::string& where) const {
    if (min < 0 || max < 0 || buffer < 0 || buffer > max || (max > 0 && min > max) ||
        (min == 0 && max == 0))
      return fail(Errc::usage, cat(where,
                                   ": expected 0 <= min <= max, 0 <= buffer <= max and a min or a "
                                   "max above 0, found min ",
                                   min, ", max ", max, ", buffer ", buffer));
    return {};
  }
  Result<double> operator()(const RewardRequest& s) const {
    const auto length =
        unit == LengthUnit::words ? count_words(s.completion) : count_characters(s.completion);
    return length_penalty(static_cast<double>(length), min, max, buffer);
  }
};

// Makes a rule from a function that scores one completion.
template <class Score>
Rule score_each(Score score) {
  Rule rule;
  if constexpr (requires { Score::check_answer(Json()); }) rule.check_answer = Score::check_answer;
  rule.score = [score = std::move(score)](std::span<const RewardRequest> requests) {
    std::vector<RuleResult> out;
    for (const auto& request : requests)
      out.push_back(Result<double>(score(request)).map([](double reward) {
        return Scored{reward, {}};
      }));
    return out;
  };
  return rule;
}

struct RegexOptions {
  std::string pattern;
  bool full = false;
  static void each_field(auto& self, auto&& field) {
    field("pattern", self.pattern);
    field("full", self.full);
  }
};

Result<Rule> make_regex(const Json& options, const std::string& where) {
  const auto read = fields_from_json<RegexOptions>(options, where);
  RETURN_IF_ERROR(read);
  if (read->pattern.empty())
    return fail(Errc::usage, cat(where, ".pattern: expected a regular expression, found none"));
  auto compiled = engine::tokenizer::Regex::compile(read->pattern, cat(where, ".pattern"));
  if (!compiled) return fail(Errc::usage, compiled.error().what);
  const auto regex = std::make_shared<const engine::tokenizer::Regex>(std::move(*compiled));
  return score_each([regex, full = read->full](const RewardRequest& s) -> Result<double> {
    if (!valid_utf8(s.completion))
      return fail(Errc::bad_input, "the completion is not valid UTF-8");
    std::vector<engine::tokenizer::Range> found;
    try {
      regex->find_all(s.completion, found);
    } catch (const Failure& failure) {
      return fail(failure);
    }
    if (!full) return found.empty() ? 0.0 : 1.0;
    return !found.empty() && found[0] == engine::tokenizer::Range{0, s.completion.size()} ? 1.0
                                                                                          : 0.0;
  });
}

template <class R>
Result<Rule> make(const Json& options, const std::string& where) {
  auto rule = fields_from_json<R>(options, where);
  RETURN_IF_ERROR(rule);
  if constexpr (requires { rule->validate(where); }) {
    RETURN_IF_ERROR(rule->validate(where));
  }
  return score_each(std::move(*rule));
}

Result<Rule> make_command(const Json& options, const std::string& where) {
  auto read = fields_from_json<CommandOptions>(options, where);
  RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(read->validate(where));
  const auto workers = static_cast<std::size_t>(read->workers);
  const bool group = read->group;
  const auto command = std::make_shared<Command>(std::move(*read), where);
  return Rule{
      [command](std::span<const RewardRequest> requests) { return command->score(requests); },
      [command] { return command->check_files(); },
      [command] { return command->start(); },
      {},
      workers,
      {.rows = true, .whole_groups = group}};
}

using Maker = Result<Rule> (*)(const Json&, const std::string&);
struct NamedMaker {
  std::string_view name;
  Maker make;
};
constexpr std::array makers = {
    NamedMaker{"exact_match", make<Exact>},
    NamedMaker{"gsm8k", make<Gsm8k>},
    NamedMaker{"boxed", make<Boxed>},
    NamedMaker{"gsm8k_published", make<PublishedGsm8k>},
    NamedMaker{"math_published", make<PublishedMath>},
    NamedMaker{"format", make<Format>},
    NamedMaker{"regex", make_regex},
    NamedMaker{"length", make<Length>},
    NamedMaker{"command", make_command},
    NamedMaker{"python", make_python},
};

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const NamedMaker& maker : makers) names.emplace_back(maker.name);
  return names;
}

Result<Rule> make_rule(std::string_view name, const Json& options, const std::string& where) {
  for (const NamedMaker& maker : makers)
    if (maker.name == name) return maker.make(options, where);
  const auto known = rule_names();
  const std::string near = nearest(name, known);
  return fail(Errc::usage, cat(where, ": unknown rule ", quote(name),
                               near.empty() ? "; the rules are "
                                            : cat("; did you mean ", near, "? The rules are "),
                               join(known, ", ")));
}

}  // namespace troupe::actors::rules
