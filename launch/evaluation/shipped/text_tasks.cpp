#include "launch/evaluation/shipped/text_tasks.h"

#include <array>
#include <string_view>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::evaluation::shipped {
namespace {

using Texts = std::map<std::string, std::string>;

// Examples of chain-of-thought prompting (Wei et al. 2022, arXiv:2201.11903, table 20).
struct WorkedExample {
  const char *question, *reasoning, *answer;
};
constexpr std::array<WorkedExample, 8> worked_examples = {{
    {"There are 15 trees in the grove. Grove workers will plant trees in the grove today. After "
     "they are done, there will be 21 trees. How many trees did the grove workers plant today?",
     "There are 15 trees originally. Then there were 21 trees after some more were planted. So "
     "there must have been 21 - 15 = 6.",
     "6"},
    {"If there are 3 cars in the parking lot and 2 more cars arrive, how many cars are in the "
     "parking lot?",
     "There are originally 3 cars. 2 more cars arrive. 3 + 2 = 5.", "5"},
    {"Leah had 32 chocolates and her sister had 42. If they ate 35, how many pieces do they have "
     "left in total?",
     "Originally, Leah had 32 chocolates. Her sister had 42. So in total they had 32 + 42 = 74. "
     "After eating 35, they had 74 - 35 = 39.",
     "39"},
    {"Jason had 20 lollipops. He gave Denny some lollipops. Now Jason has 12 lollipops. How many "
     "lollipops did Jason give to Denny?",
     "Jason started with 20 lollipops. Then he had 12 after giving some to Denny. So he gave Denny "
     "20 - 12 = 8.",
     "8"},
    {"Shawn has five toys. For Christmas, he got two toys each from his mom and dad. How many toys "
     "does he have now?",
     "Shawn started with 5 toys. If he got 2 toys each from his mom and dad, then that is 4 more "
     "toys. 5 + 4 = 9.",
     "9"},
    {"There were nine computers in the server room. Five more computers were installed each day, "
     "from monday to thursday. How many computers are now in the server room?",
     "There were originally 9 computers. For each of 4 days, 5 more computers were added. So 5 * 4 "
     "= 20 computers were added. 9 + 20 is 29.",
     "29"},
    {"Michael had 58 golf balls. On tuesday, he lost 23 golf balls. On wednesday, he lost 2 more. "
     "How many golf balls did he have at the end of wednesday?",
     "Michael started with 58 golf balls. After losing 23 on tuesday, he had 58 - 23 = 35. After "
     "losing 2 more, he had 35 - 2 = 33 golf balls.",
     "33"},
    {"Olivia has $23. She bought five bagels for $3 each. How much money does she have left?",
     "Olivia had 23 dollars. 5 bagels for 3 dollars each will be 5 x 3 = 15 dollars. So she has 23 "
     "- 15 dollars left. 23 - 15 is 8.",
     "8"},
}};

// What all forms of GSM8K have; flexible-extract is the last filter.
constexpr std::string_view gsm8k_metrics = R"yaml(dataset_path: openai/gsm8k
dataset_name: main
output_type: generate_until
test_split: test
metric_list:
  - metric: exact_match
    ignore_case: true
    ignore_punctuation: false
    regexes_to_ignore: [",", "\\$", "(?s).*#### ", "\\.$"]
filter_list:
  - name: flexible-extract
    filter:
      - function: regex
        group_select: -1
        regex_pattern: "(-?[$0-9.,]{2,})|(-?[0-9]+)"
      - function: take_first
)yaml";

constexpr std::string_view gsm8k = R"yaml(training_split: train
fewshot_split: train
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs:
  until: ["Question:", "</s>", "<|im_end|>"]
  do_sample: false
  temperature: 0.0
num_fewshot: 5
metadata:
  version: 3.0
)yaml";

constexpr std::string_view gsm8k_cot = R"yaml(doc_to_text: "Q: {{question}}\nA:"
doc_to_target: "{{answer.split('####')[-1].strip() if answer is defined else target}}"
generation_kwargs:
  until: ["Q:", "</s>", "<|im_end|>"]
  do_sample: false
num_fewshot: 8
metadata:
  version: 3.0
)yaml";

constexpr std::string_view gsm8k_llama =
    R"yaml(doc_to_text: "Given the following problem, reason and give a final answer to the problem.\nProblem: {{question}}\nYour response should end with \"The final answer is [answer]\" where [answer] is the response to the problem.\n"
doc_to_target: "{{answer.split('####')[-1].strip() if answer is defined else target}}"
target_delimiter: ""
generation_kwargs:
  until: ["<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>", "<|im_end|>"]
  do_sample: false
num_fewshot: 8
metadata:
  version: 4.0
)yaml";

constexpr std::string_view bbh = R"yaml(dataset_path: SaylorTwift/bbh
output_type: generate_until
test_split: test
doc_to_target: "{{target}}"
metric_list:
  - metric: exact_match
generation_kwargs:
  until: ["</s>", "Q", "\n\n"]
  do_sample: false
  temperature: 0.0
num_fewshot: 3
)yaml";

constexpr std::string_view bbh_reasoned =
    R"yaml(doc_to_text: "Q: {{input}}\nA: Let's think step by step.\n"
target_delimiter: ""
fewshot_config:
  sampler: first_n
  samples: bbh_reasoning
filter_list:
  - name: get-answer
    filter:
      - function: regex
        regex_pattern: "(?<=the answer is )(.*)(?=.)"
      - function: take_first
metadata:
  version: 4.0
)yaml";

constexpr std::string_view bbh_direct = R"yaml(doc_to_text: "Q: {{input}}\nA:"
fewshot_config:
  sampler: first_n
  samples: bbh_answers
metadata:
  version: 2.0
)yaml";

constexpr const char* humaneval = R"yaml(dataset_path: openai/openai_humaneval
unsafe_code: true
output_type: generate_until
test_split: test
doc_to_target: "{{test}}\ncheck({{entry_point}})"
metric_list:
  - metric: pass_at_k
    k: [1]
generation_kwargs:
  until: ["\nclass", "\ndef", "\n#", "\nif", "\nprint"]
  max_gen_toks: 1024
  do_sample: false
num_fewshot: 0
)yaml";

// Strict filters come before flexible-extract.
std::string with_filter(std::string_view keys, std::string_view pattern, std::string_view select) {
  constexpr std::string_view list = "filter_list:\n";
  const std::size_t at = keys.find(list) + list.size();
  return cat(keys.substr(0, at), "  - name: strict-match\n    filter:\n      - function: regex\n",
             select, "        regex_pattern: ", pattern, "\n      - function: take_first\n",
             keys.substr(at));
}

// fewshot_config with the worked examples; `says` precedes the answer, `ends` follows it.
std::string with_examples(std::string_view says, std::string_view ends) {
  std::string out = "fewshot_config:\n  sampler: first_n\n  samples:\n";
  for (const WorkedExample& each : worked_examples)
    out += cat("    - question: ", Json(each.question).dump(), "\n      target: ",
               Json(cat(each.reasoning, ' ', says, ' ', each.answer, ends)).dump(), '\n');
  return out;
}

void add_bbh(Texts& out, const std::string& form, const std::string& group, std::string_view keys) {
  std::string members = cat("group: ", group, "\ntask:\n");
  for (const char* part : {"boolean_expressions",
                           "causal_judgement",
                           "date_understanding",
                           "disambiguation_qa",
                           "dyck_languages",
                           "formal_fallacies",
                           "geometric_shapes",
                           "hyperbaton",
                           "logical_deduction_five_objects",
                           "logical_deduction_seven_objects",
                           "logical_deduction_three_objects",
                           "movie_recommendation",
                           "multistep_arithmetic_two",
                           "navigate",
                           "object_counting",
                           "penguins_in_a_table",
                           "reasoning_about_colored_objects",
                           "ruin_names",
                           "salient_translation_error_detection",
                           "snarks",
                           "sports_understanding",
                           "temporal_sequences",
                           "tracking_shuffled_objects_five_objects",
                           "tracking_shuffled_objects_seven_objects",
                           "tracking_shuffled_objects_three_objects",
                           "web_of_lies",
                           "word_sorting"}) {
    const std::string name = cat("bbh_", form, '_', part);
    std::string generation(bbh);
    if (form == "cot_fewshot")
      generation.insert(generation.find("  until:"), "  max_gen_toks: 1024\n");
    out[name] = cat("task: ", name, "\ndataset_name: ", part, '\n', generation, keys);
    members += cat("  - ", name, '\n');
  }
  members += "aggregate_metric_list:\n  - metric: exact_match\n    weight_by_size: true\n";
  out[group] = members + "metadata:\n  version: 3.0\n";
}

}  // namespace

void add_texts(Texts& out) {
  out["gsm8k"] = cat("task: gsm8k\n",
                     with_filter(gsm8k_metrics, R"yaml("#### (\\-?[0-9\\.\\,]+)")yaml", ""), gsm8k);
  out["gsm8k_cot"] =
      cat("task: gsm8k_cot\n",
          with_filter(gsm8k_metrics, R"yaml("The answer is (\\-?[0-9\\.\\,]+).")yaml", ""),
          gsm8k_cot, with_examples("The answer is", "."));
  out["gsm8k_cot_llama"] = cat(
      "task: gsm8k_cot_llama\n",
      with_filter(gsm8k_metrics, R"yaml("The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))")yaml",
                  "        group_select: -1\n"),
      gsm8k_llama, with_examples("The final answer is", ""));
  add_bbh(out, "cot_fewshot", "bbh", bbh_reasoned);
  add_bbh(out, "cot_fewshot", "bbh_cot_fewshot", bbh_reasoned);
  add_bbh(out, "fewshot", "bbh_fewshot", bbh_direct);
  out["humaneval"] = cat("task: humaneval\ndoc_to_text: \"{{prompt}}\"\n", humaneval,
                         "filter_list:\n  - name: create_test\n    filter:\n"
                         "      - function: humaneval\nmetadata:\n  version: 1.0\n");
  out["humaneval_instruct"] = cat(
      "task: humaneval_instruct\n",
      R"yaml(doc_to_text: "Write a solution to the following problem and make sure that it passes the tests:\n```python\n{{ prompt }}\n```\n"
gen_prefix: "Here is the completed function:\n```python\n{{ prompt }}\n"
)yaml",
      humaneval,
      "filter_list:\n  - name: create_test\n    filter:\n"
      "      - function: humaneval_instruct\nmetadata:\n  version: 4.0\n");
}

}  // namespace troupe::launch::evaluation::shipped
