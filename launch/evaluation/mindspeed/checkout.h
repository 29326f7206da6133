// Checkout: the texts that MindSpeed-LLM keeps beside its evaluation: examples of direct mode,
// patterns that find an answer, sentences of AGIEval. They are read from the user's copy of that
// program, and are no part of this one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "launch/evaluation/mindspeed/source_strings.h"

namespace troupe::launch::evaluation::mindspeed {

class Checkout {
 public:
  /// `folder`: a checkout of MindSpeed-LLM, or its folder fewshot_template, with or without the
  /// rest of the checkout around it; empty: none.
  explicit Checkout(std::string folder) : folder_(std::move(folder)) {}

  /// A file of fewshot_template, an object. Errc::usage without a folder, not_found, bad_input.
  Result<Json> examples(const std::string& file) const;
  /// The patterns of mmlu_utils.py or agi_utils.py, in their order, with a field {options}.
  Result<std::vector<SourceString>> letter_patterns(const std::string& file) const;
  /// The patterns of cmmlu_answer_finding_patterns.json.
  Result<std::vector<SourceString>> cmmlu_patterns() const;
  /// The sentence before a question of AGIEval in alternative mode, by subject.
  Result<std::map<std::string, std::string>> agieval_sentences() const;
  /// The examples before a question of GSM8K in the mode of reasoning.
  Result<std::string> gsm8k_reasoning() const;
  /// The prompt of HellaSwag, with fields {ctx}, {A}, {B}, {C}, {D}.
  Result<std::string> hellaswag_prompt() const;

 private:
  Result<std::string> find(const std::string& file, const std::string& inside) const;
  Result<std::vector<SourceString>> strings(const std::string& file, std::string_view head,
                                            const std::string& inside) const;
  std::string folder_;
};

}  // namespace troupe::launch::evaluation::mindspeed
