// Rules of the suite mindspeed: the answer in a text, and whether it is right.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "launch/evaluation/answer_rule.h"
#include "launch/evaluation/mindspeed/extraction.h"

namespace troupe::launch::evaluation::mindspeed {

enum class Reads {
  mmlu,            ///< mmlu_answer()
  whole,           ///< the stripped text
  letters,         ///< LetterSearch, with the options of the row
  capital,         ///< first_capital()
  bbh,             ///< bbh_answer()
  bbh_choice,      ///< bbh_reasoned_choice()
  bbh_text,        ///< bbh_reasoned_text()
  agieval_line,    ///< agieval_line()
  agieval_run,     ///< agieval_letters()
  agieval_cloze,   ///< agieval_cloze()
  gsm8k,           ///< gsm8k_answer()
  gsm8k_reasoned,  ///< gsm8k_reasoned()
  likelier,        ///< of "Yes" and "No" the likelier next token, as T and F
  likeliest,       ///< of the letters that with the smallest mean negative log-probability
  program,         ///< human_eval_program()
  fenced           ///< human_eval_fenced()
};

struct RuleSettings {
  Reads reads = Reads::whole;
  bool truth = false;       ///< bbh: the answers are yes and no, true and false, ...
  bool any_case = false;    ///< upper and lower case are the same
  bool fixed = false;       ///< without the reference's defects
  bool lenient = false;     ///< SuiteSettings::lenient
  bool maps_words = false;  ///< SuiteSettings::maps_words
  std::string dropped;      ///< a sentence of the prompt that is removed from an answer
  std::map<std::string, std::shared_ptr<const LetterSearch>> searches;  ///< by their options
};

/// The letters of a row's options, "ABCD" where it has no list of them.
std::string option_letters(const Json& row);

std::shared_ptr<const AnswerRule> make_rule(RuleSettings settings);

}  // namespace troupe::launch::evaluation::mindspeed
