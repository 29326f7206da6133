#include "launch/evaluation/shipped/subject_tasks.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/evaluation/shipped/subjects.h"

namespace troupe::launch::evaluation::shipped {
namespace {

using Texts = std::map<std::string, std::string>;

std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

constexpr std::string_view mmlu_dataset = R"yaml(dataset_path: cais/mmlu
process_docs: mmlu
test_split: test
fewshot_split: dev
fewshot_config:
  sampler: first_n
)yaml";

constexpr std::string_view mmlu_choices = R"yaml(output_type: multiple_choice
doc_to_text: "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:"
doc_to_choice: ["A", "B", "C", "D"]
doc_to_target: answer
metric_list:
  - metric: acc
metadata:
  version: 1.0
)yaml";

constexpr std::string_view mmlu_continuation = R"yaml(output_type: multiple_choice
doc_to_text: "Question: {{question.strip()}}\nAnswer:"
doc_to_choice: "{{choices}}"
doc_to_target: "{{answer}}"
metadata:
  version: 1.0
)yaml";

constexpr std::string_view mmlu_generative = R"yaml(output_type: generate_until
doc_to_text: "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:"
doc_to_target: "{{['A', 'B', 'C', 'D'][answer]}}"
generation_kwargs:
  until: ["</s>", "\n"]
metric_list:
  - metric: exact_match
    ignore_punctuation: true
    ignore_case: true
filter_list:
  - name: get_response
    filter:
      - function: regex
        regex_pattern: "^(.*?)(?=\\n|$)"
      - function: remove_whitespace
      - function: regex
        regex_pattern: "^(.*?)\\s*$"
      - function: take_first
metadata:
  version: 3.0
)yaml";

constexpr std::string_view chinese_choices = R"yaml(fewshot_split: dev
fewshot_config:
  sampler: first_n
output_type: multiple_choice
doc_to_choice: ["A", "B", "C", "D"]
metric_list:
  - metric: acc
  - metric: acc_norm
)yaml";

struct MmluForm {
  std::string suffix;  ///< of the tasks' names
  std::string_view keys, description;
  std::string metric, filter;
  bool alias;
};

void add_group(Texts& out, const std::string& name, const std::string& alias,
               const std::vector<std::string>& members, const std::vector<std::string>& metrics,
               const std::string& filter = "") {
  std::string text = cat("group: ", name, "\ngroup_alias: ", alias, "\ntask:\n");
  for (const std::string& member : members) text += cat("  - ", member, '\n');
  text += "aggregate_metric_list:\n";
  for (const std::string& metric : metrics)
    text += cat("  - metric: ", metric, "\n    weight_by_size: true\n",
                filter.empty() ? "" : cat("    filter_list: ", filter, '\n'));
  out[name] = text + "metadata:\n  version: 2\n";
}

void add_mmlu(Texts& out, const MmluForm& form) {
  std::vector<std::string> areas;
  for (const MmluArea& area : mmlu_areas()) {
    std::vector<std::string> members;
    for (const std::string& subject : area.subjects) {
      const std::string name = cat("mmlu_", subject, form.suffix);
      out[name] =
          cat("task: ", name, form.alias ? cat("\ntask_alias: ", subject) : "",
              "\ndataset_name: ", subject, "\ndescription: \"The following are ", form.description,
              " about ", spaced(subject), ".\\n\\n\"\n", mmlu_dataset, form.keys);
      members.push_back(name);
    }
    areas.push_back(cat("mmlu_", area.name, form.suffix));
    add_group(out, areas.back(), spaced(area.name), members, {form.metric}, form.filter);
  }
  add_group(out, "mmlu" + form.suffix,
            form.suffix.empty() ? "mmlu" : cat("mmlu (", form.suffix.substr(1), ')'), areas,
            {form.metric}, form.filter);
}

}  // namespace

void add_subjects(Texts& out) {
  add_mmlu(out, {"", mmlu_choices, "multiple choice questions (with answers)", "acc", "", true});
  add_mmlu(out, {"_continuation", mmlu_continuation, "questions (with answers)", "acc", "", false});
  add_mmlu(out, {"_generative", mmlu_generative, "multiple choice questions (with answers)",
                 "exact_match", "get_response", true});
  std::vector<std::string> members;
  for (const Subject& subject : ceval_subjects()) {
    members.push_back(cat("ceval-valid_", subject.name));
    out[members.back()] = cat(
        "task: ", members.back(), "\ndataset_path: ceval/ceval-exam\ndataset_name: ", subject.name,
        "\ndescription: \"以下是中国关于", subject.chinese,
        "的单项选择题，请选出其中的正确答案。\\n\\n\"\nvalidation_split: val\n",
        R"yaml(doc_to_text: "{{question.strip()}}\nA. {{A}}\nB. {{B}}\nC. {{C}}\nD. {{D}}\n答案：")yaml",
        "\ndoc_to_target: \"{{['A', 'B', 'C', 'D'].index(answer)}}\"\n", chinese_choices,
        "metadata:\n  version: 2.0\n");
  }
  add_group(out, "ceval-valid", "ceval-valid", members, {"acc", "acc_norm"});
  members.clear();
  for (const Subject& subject : cmmlu_subjects()) {
    members.push_back(cat("cmmlu_", subject.name));
    out[members.back()] = cat(
        "task: ", members.back(), "\ndataset_path: haonan-li/cmmlu\ndataset_name: ", subject.name,
        "\ndescription: \"以下是关于", subject.chinese,
        "的单项选择题，请直接给出正确答案的选项。\\n\\n\"\ntest_split: test\n",
        R"yaml(doc_to_text: "{{Question.strip()}}\nA. {{A}}\nB. {{B}}\nC. {{C}}\nD. {{D}}\n答案：")yaml",
        "\ndoc_to_target: \"{{['A', 'B', 'C', 'D'].index(Answer)}}\"\n", chinese_choices,
        "metadata:\n  version: 1.0\n");
  }
  add_group(out, "cmmlu", "cmmlu", members, {"acc", "acc_norm"});
}

}  // namespace troupe::launch::evaluation::shipped
