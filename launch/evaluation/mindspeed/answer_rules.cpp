#include "launch/evaluation/mindspeed/answer_rules.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/jinja/case.h"
#include "launch/evaluation/mindspeed/programs.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

class Rule final : public AnswerRule {
 public:
  explicit Rule(RuleSettings settings) : settings_(std::move(settings)) {}

  Result<RuledAnswer> evaluate(const TaskItem& item, const Json& row, const ItemAnswer& answer,
                               const CodeCheck& check) const override {
    if (settings_.reads == Reads::likelier || settings_.reads == Reads::likeliest)
      return of_likelihoods(item, answer);
    const std::string& text = answer.texts.front();
    if (settings_.reads == Reads::program || settings_.reads == Reads::fenced)
      return of_program(row, text, check);
    const auto found = read(item, row, text);
    RETURN_IF_ERROR(found);
    if (!found->has_value() || (*found)->empty()) return RuledAnswer{"", false, true};
    return RuledAnswer{**found, same(**found, item.target.string()), false};
  }

 private:
  Result<RuledAnswer> of_likelihoods(const TaskItem& item, const ItemAnswer& answer) const {
    const auto& all = answer.likelihoods;
    if (settings_.reads == Reads::likelier) {
      const std::string found = all[0].logp >= all[1].logp ? "T" : "F";
      return RuledAnswer{found, found == item.target.string(), false};
    }
    const auto best = std::ranges::max_element(all, {}, &Likelihood::logp);  // the first of equals
    const std::string& found = item.choices[static_cast<std::size_t>(best - all.begin())];
    return RuledAnswer{found, same(found, item.target.string()), false};
  }

  Result<RuledAnswer> of_program(const Json& row, const std::string& text,
                                 const CodeCheck& check) const {
    Result<std::string> program = settings_.reads == Reads::program
                                      ? human_eval_program(row, text, settings_.fixed)
                                      : human_eval_fenced(row, text);
    RETURN_IF_ERROR(program);
    const auto passed = check(*program);
    RETURN_IF_ERROR(passed);
    return RuledAnswer{std::move(*program), *passed, stripped(text).empty()};
  }

  Result<std::optional<std::string>> read(const TaskItem& item, const Json& row,
                                          const std::string& given) const {
    using Found = std::optional<std::string>;
    const std::string text = left_stripped(given);
    switch (settings_.reads) {
      case Reads::mmlu:
        return mmlu_answer(text);
      case Reads::letters:
        return letter(item, row, given);
      case Reads::capital:
        return Found(word_letter(first_capital(text)));
      case Reads::bbh:
        return Found(bbh_answer(text, settings_.truth));
      case Reads::bbh_choice:
        return Found(first_line(bbh_reasoned_choice(given)));
      case Reads::bbh_text:
        return Found(first_line(bbh_reasoned_text(given, settings_.truth)));
      case Reads::agieval_line:
        return Found(agieval_line(text));
      case Reads::agieval_run:
        return Found(agieval_letters(text));
      case Reads::agieval_cloze:
        return agieval_cloze(text);
      case Reads::gsm8k:
        return gsm8k_answer(text, settings_.fixed);
      case Reads::gsm8k_reasoned:
        return gsm8k_reasoned(text, settings_.fixed);
      default:
        return Found(stripped(text));
    }
  }

  /// BoolQ: the letter of a capital that begins True, Yes, False or No.
  std::string word_letter(const std::string& capital) const {
    if (!settings_.maps_words) return capital;
    if (capital == "T" || capital == "Y") return "A";
    if (capital == "F" || capital == "N") return "B";
    // Any other capital has no letter; the reference fails there.
    return std::string_view("ABCD").find(capital) == std::string_view::npos ? "" : capital;
  }

  Result<std::optional<std::string>> letter(const TaskItem& item, const Json& row,
                                            const std::string& given) const {
    if (settings_.lenient) {
      const std::string line = first_line(stripped(given));
      const std::size_t at = line.find_first_of("ABCD");
      if (at != std::string::npos && line.substr(at, 1) == item.target.string())
        return std::optional(line.substr(at, 1));
    }
    const auto search = settings_.searches.find(option_letters(row));
    if (search == settings_.searches.end())
      return fail(Errc::bad_input, "the row has no options to search an answer for");
    auto found = search->second->find(
        settings_.dropped.empty() ? given : replaced(given, settings_.dropped, ""));
    RETURN_IF_ERROR(found);
    return std::optional(std::move(*found));
  }

  bool same(const std::string& found, const std::string& gold) const {
    if (!settings_.any_case) return found == gold;
    return engine::jinja::lower(found) == engine::jinja::lower(gold);
  }

  RuleSettings settings_;
};

}  // namespace

std::string option_letters(const Json& row) {
  const Json* options = row.find("options");
  if (options == nullptr || !options->is_array()) return "ABCD";
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(options->array().size(), 26); ++i)
    out += static_cast<char>('A' + i);
  return out;
}

std::shared_ptr<const AnswerRule> make_rule(RuleSettings settings) {
  return std::make_shared<const Rule>(std::move(settings));
}

}  // namespace troupe::launch::evaluation::mindspeed
