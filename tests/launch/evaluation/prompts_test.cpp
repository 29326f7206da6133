// Prompts of tasks beside those of lm-evaluation-harness.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "engine/base/text/text.h"
#include "launch/evaluation/bbh_examples.h"
#include "launch/evaluation/task_data.h"
#include "launch/evaluation/task_library.h"
#include "launch/evaluation/task_result.h"

namespace troupe::launch::evaluation {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string rows_folder = std::string(TROUPE_TEST_DATA) + "/evaluation/rows";

struct Loaded {
  TaskConfig task;
  TaskRows rows;
};

Result<Loaded> load(const TaskLibrary& library, const std::string& name) {
  auto selection = library.select({name});
  RETURN_IF_ERROR(selection);
  Loaded out{selection->tasks.at(0), {}};
  RETURN_IF_ERROR(add_bbh_prompt(out.task, rows_folder + "/bbh"));
  auto rows = load_rows(out.task, {rows_folder, ""}, true);
  RETURN_IF_ERROR(rows);
  out.rows = std::move(*rows);
  return out;
}

std::string short_hash(const std::string& text) {
  return text_hash(text).substr(0, 16);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += '\0';
    out += texts[i];
  }
  return out;
}

TEST(EvaluationPrompts, AreThoseOfTheReference) {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/evaluation/prompts.jsonl");
  std::map<std::string, std::vector<Json>> expected;
  for (std::string line; std::getline(file, line);) {
    Json row = value_or_throw(parse_json(line, "prompts.jsonl"));
    const std::string task = row.find("task")->string();
    expected[task].push_back(std::move(row));
  }
  EXPECT_EQ(expected.size(), 20U);
  const TaskLibrary library = value_or_throw(TaskLibrary::load({}));
  for (const auto& [name, items] : expected) {
    const Loaded loaded = value_or_throw(load(library, name));
    PromptSettings settings;
    const Json* shots = items.front().find("shots");
    if (shots->is_integer()) settings.num_fewshot = shots->integer();
    TaskPrompts prompts = value_or_throw(TaskPrompts::create(loaded.task, loaded.rows, settings));
    ASSERT_EQ(prompts.size(), items.size()) << name;
    for (const Json& row : items) {
      const TaskItem item = value_or_throw(prompts.item(row.find("doc_id")->integer()));
      EXPECT_EQ(short_hash(item.context), row.find("context")->string())
          << name << " " << item.number << "\n"
          << item.context;
      EXPECT_EQ(short_hash(joined(item.continuations)), row.find("continuations")->string())
          << name << " " << item.number << "\n"
          << joined(item.continuations);
    }
  }
}

TEST(EvaluationPrompts, EveryShippedTaskIsRead) {
  const TaskLibrary library = value_or_throw(TaskLibrary::load({}));
  const auto all = value_or_throw(library.select(library.names()));
  EXPECT_GE(all.tasks.size(), 57 * 3 + 52 + 67 + 27 * 2 + 21 + 11U);
  EXPECT_EQ(value_or_throw(library.select({"mmlu"})).tasks.size(), 57U);
  EXPECT_EQ(value_or_throw(library.select({"mmlu"})).groups.size(), 5U);
}

std::string fresh_folder(const std::string& name) {
  const std::string out = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(out);
  std::filesystem::create_directories(out);
  return out;
}

/// The message of the refusal of a task file with this text.
std::string refusal(const std::string& text) {
  const std::string folder = fresh_folder("tasks");
  std::ofstream(folder + "/mine.yaml") << text;
  const auto library = TaskLibrary::load({folder});
  return library ? "taken" : library.error().what;
}

TEST(EvaluationPrompts, BadTaskFilesAreRefusedWithFileAndLine) {
  const std::string good =
      "task: mine\ndataset_path: rows.jsonl\ntest_split: test\ndoc_to_text: \"{{a}}\"\n"
      "doc_to_target: b\n";
  EXPECT_EQ(refusal(good), "taken");
  EXPECT_THAT(refusal(good + "process_docs: !function utils.f\n"),
              AllOf(HasSubstr("mine.yaml:6"), HasSubstr("!function"), HasSubstr("built-in")));
  EXPECT_THAT(refusal(good + "doc_to_tekst: x\n"),
              AllOf(HasSubstr("mine.yaml:6"), HasSubstr("did you mean doc_to_text?")));
  EXPECT_THAT(refusal(good + "process_docs: hellaswog\n"),
              AllOf(HasSubstr("mine.yaml:6"), HasSubstr("hellaswag")));
  EXPECT_THAT(refusal(good + "output_type: multiple_choice\n"), HasSubstr("doc_to_choice"));
  EXPECT_THAT(refusal(good + "metric_list:\n  - metric: bleu\n"), HasSubstr("no metric"));
  EXPECT_THAT(refusal(good + "doc_to_image: x\n"), HasSubstr("not supported"));
  EXPECT_THAT(refusal(good + "filter_list:\n  - name: f\n    filter:\n      - function: regexx\n"),
              HasSubstr("no filter \"regexx\""));
  EXPECT_THAT(refusal(good + "filter_list:\n  - name: f\n    filter:\n      - function: regex\n"
                             "        regex_pattern: \"(\"\n"),
              HasSubstr("regular expression"));
}

TEST(EvaluationPrompts, MissingFilesAndColumnsAreNamed) {
  const std::string folder = fresh_folder("tasks");
  std::ofstream(folder + "/mine.yaml")
      << "task: mine\ndataset_path: rows.jsonl\ntest_split: test\ndoc_to_text: \"{{c}}\"\n"
         "doc_to_target: b\n";
  std::ofstream(folder + "/rows.jsonl") << "{\"a\": \"x\", \"b\": \"y\"}\n";
  const TaskLibrary library = value_or_throw(TaskLibrary::load({folder}));
  const Loaded loaded = value_or_throw(load(library, "mine"));
  TaskPrompts prompts = value_or_throw(TaskPrompts::create(loaded.task, loaded.rows, {}));
  const auto item = prompts.item(0);
  ASSERT_FALSE(item);
  EXPECT_THAT(item.error().what, AllOf(HasSubstr("mine.yaml"), HasSubstr("doc_to_text"),
                                       HasSubstr("'c' is undefined"), HasSubstr("columns a, b")));
  const auto missing = load(library, "agieval_sat_math");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, AllOf(HasSubstr("split test"), HasSubstr("sat-math")));
  EXPECT_THAT(library.select({"mmlu_virolgy"}).error().what, HasSubstr("mmlu_virology"));
}

}  // namespace
}  // namespace troupe::launch::evaluation
