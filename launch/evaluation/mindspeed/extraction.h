// Answers in generated texts, as MindSpeed-LLM finds them (mindspeed_llm/tasks/evaluation, commit
// 3d6ffe94 of 2.2.0; the modes of reasoning are those of v26.1.0).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/evaluation/mindspeed/source_strings.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation::mindspeed {

/// str.lstrip(), and the first of str.splitlines(): "" for an empty text.
std::string left_stripped(const std::string& text);
std::string first_line(const std::string& text);

/// MMLU, direct: the last letter of the first line that a point follows, otherwise the first
/// character if it is a letter. "|" is one, as the class [A|B|C|D] has it.
std::optional<std::string> mmlu_answer(const std::string& text);
/// The first upper-case character of any script, or "".
std::string first_capital(const std::string& text);
/// BIG-Bench Hard, direct: of the first line what follows its last "(", up to a point or ")".
/// `truth`: a task of yes and no, true and false, valid and invalid: the first of these words.
std::string bbh_answer(const std::string& text, bool truth);
/// The same with reasoning: after "answer is ". A choice: its letter.
std::string bbh_reasoned_choice(const std::string& text);
std::string bbh_reasoned_text(const std::string& text, bool truth);
/// GSM8K, direct: between "The answer is " and a space. `fixed`: keeps a decimal point.
std::optional<std::string> gsm8k_answer(const std::string& text, bool fixed);
/// The same with reasoning: the last number before "Question:". `fixed`: without its commas.
std::optional<std::string> gsm8k_reasoned(const std::string& text, bool fixed);
/// AGIEval, direct: the first line without $, ( and ).
std::string agieval_line(const std::string& text);
/// Alternative: the first run of the letters A to D, or "".
std::string agieval_letters(const std::string& text);
/// Alternative, of a question without options: what is in \boxed{}, between dollar signs, after the
/// last "=", or the last number, behind "The answer is therefore" or "答案是".
std::optional<std::string> agieval_cloze(const std::string& text);

/// What counts of a match of LetterSearch: the last character, or the first group.
enum class LetterOf { last_character, first_group };

/// An ordered list of patterns, in which a point stands for any character, each searched in a text.
/// The first that matches decides; if what matches has none of the options, the next is tried. Then
/// come "X:" and the first option anywhere.
class LetterSearch {
 public:
  /// `options`: "ABCD". Errc::bad_input, unsupported, with the number of the pattern.
  static Result<LetterSearch> create(const std::vector<SourceString>& patterns,
                                     const std::string& options, LetterOf what);
  /// An option, or "". Errc::bad_input for a pattern that takes too long.
  Result<std::string> find(const std::string& text) const;

 private:
  std::vector<Regex> patterns_;
  std::string options_;
  LetterOf what_ = LetterOf::last_character;
};

}  // namespace troupe::launch::evaluation::mindspeed
