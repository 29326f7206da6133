#include "launch/evaluation/shipped/choice_tasks.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::evaluation::shipped {
namespace {

using Texts = std::map<std::string, std::string>;

std::string underscored(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

constexpr const char* boolq = R"yaml(task: boolq
dataset_path: aps/super_glue
dataset_name: boolq
process_docs: boolq
output_type: multiple_choice
training_split: train
validation_split: validation
doc_to_text: "{{passage}}\nQuestion: {{question}}?\nAnswer:"
doc_to_target: label
doc_to_choice: ["no", "yes"]
metric_list:
  - metric: acc
metadata:
  version: 2.0
)yaml";

constexpr const char* boolq_generated = R"yaml(task: boolq-seq2seq
dataset_path: aps/super_glue
dataset_name: boolq
process_docs: boolq
output_type: generate_until
training_split: train
validation_split: validation
doc_to_text: "{{passage}}\nQuestion: {{question}}?\nAnswer:"
doc_to_target: label
doc_to_choice: [" no", " yes"]
target_delimiter: ""
generation_kwargs:
  until: ["\n\n", "\n"]
  do_sample: false
  temperature: 0.0
metric_list:
  - metric: exact_match
    ignore_case: true
    ignore_punctuation: true
metadata:
  version: 0.0
)yaml";

constexpr const char* hellaswag = R"yaml(task: hellaswag
dataset_path: Rowan/hellaswag
process_docs: hellaswag
output_type: multiple_choice
training_split: train
validation_split: validation
doc_to_text: "{{query}}"
doc_to_target: "{{label}}"
doc_to_choice: choices
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 1.0
)yaml";

constexpr const char* arc = R"yaml(dataset_path: allenai/ai2_arc
process_docs: arc
output_type: multiple_choice
training_split: train
validation_split: validation
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{choices.label.index(answerKey)}}"
doc_to_choice: "{{choices.text}}"
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 1.0
)yaml";

// The text is what process_docs makes of the page; words and bytes are those of the page.
constexpr const char* wikitext = R"yaml(task: wikitext
dataset_path: EleutherAI/wikitext_document_level
dataset_name: wikitext-2-raw-v1
process_docs: wikitext
process_results: wikitext
output_type: loglikelihood_rolling
training_split: train
validation_split: validation
test_split: test
doc_to_text: ""
doc_to_target: text
metric_list:
  - metric: word_perplexity
  - metric: byte_perplexity
  - metric: bits_per_byte
metadata:
  version: 2.0
)yaml";

constexpr std::string_view agieval_choices = R"yaml(test_split: test
output_type: multiple_choice
doc_to_text: "{{query}}"
doc_to_target: "{{gold}}"
doc_to_choice: "{{choices}}"
process_results: agieval_choices
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 1.0
)yaml";

constexpr std::string_view agieval_generated = R"yaml(test_split: test
output_type: generate_until
doc_to_text: "{{query}}"
doc_to_target: "{{answer}}"
process_results: agieval_math
generation_kwargs:
  max_gen_toks: 32
  do_sample: false
  temperature: 0.0
  until: ["Q:"]
metric_list:
  - metric: acc
metadata:
  version: 1.0
)yaml";

}  // namespace

void add_choices(Texts& out) {
  out["boolq"] = boolq;
  out["boolq-seq2seq"] = boolq_generated;
  out["hellaswag"] = hellaswag;
  out["arc_easy"] = cat("task: arc_easy\ndataset_name: ARC-Easy\n", arc);
  out["arc_challenge"] = cat("task: arc_challenge\ndataset_name: ARC-Challenge\n", arc);
  out["wikitext"] = wikitext;
  std::string group = "group: agieval\ntask:\n";
  for (const char* part : {"gaokao-biology",
                           "gaokao-chemistry",
                           "gaokao-chinese",
                           "gaokao-geography",
                           "gaokao-history",
                           "gaokao-mathcloze",
                           "gaokao-mathqa",
                           "gaokao-physics",
                           "jec-qa-ca",
                           "jec-qa-kd",
                           "logiqa-zh",
                           "aqua-rat",
                           "gaokao-english",
                           "logiqa-en",
                           "lsat-ar",
                           "lsat-lr",
                           "lsat-rc",
                           "math",
                           "sat-en-without-passage",
                           "sat-en",
                           "sat-math"}) {
    const std::string name = cat("agieval_", underscored(part));
    const bool text = name == "agieval_math" || name == "agieval_gaokao_mathcloze";
    out[name] = cat("task: ", name, "\ndataset_path: hails/agieval-", part, '\n',
                    text ? agieval_generated : agieval_choices);
    group += cat("  - ", name, '\n');
  }
  out["agieval"] = group +
                   "aggregate_metric_list:\n  - metric: acc\n    weight_by_size: true\n"
                   "metadata:\n  version: 0.0\n";
}

}  // namespace troupe::launch::evaluation::shipped
