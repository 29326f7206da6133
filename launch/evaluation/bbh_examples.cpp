#include "launch/evaluation/bbh_examples.h"

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::evaluation {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view reasoning_begins = "\nA: Let's think step by step.\n",
                           answer_mark = "the answer is ";

Result<std::string> prompt_text(const TaskConfig& task, const std::string& folder) {
  const std::string name = task.dataset_name + ".txt";
  for (const char* inside : {"cot-prompts", "bbh/cot-prompts", "BIG-Bench-Hard/cot-prompts"}) {
    const fs::path path = fs::path(folder) / inside / name;
    if (std::error_code ignored; fs::is_regular_file(path, ignored))
      return read_file(path.string(), 1U << 20);
  }
  return fail(Errc::not_found, cat(task.name, ": no cot-prompts/", name, " in ", folder,
                                   "; the examples are those of suzgunmirac/BIG-Bench-Hard"));
}

// "... So the answer is (A)." -> "(A)"
Result<std::string> last_answer(std::string_view reasoning) {
  const auto at = reasoning.rfind(answer_mark);
  if (at == std::string_view::npos) return fail(Errc::bad_input, "an example without an answer");
  std::string_view out = reasoning.substr(at + answer_mark.size());
  if (out.ends_with('.')) out.remove_suffix(1);
  return std::string(out);
}

Result<Json> example_of(std::string_view part, bool reasoning) {
  const auto at = part.find(reasoning_begins);
  if (at == std::string_view::npos)
    return fail(Errc::bad_input, "an example without \"A: Let's think step by step.\"");
  std::string target(part.substr(at + reasoning_begins.size()));
  while (target.ends_with('\n')) target.pop_back();
  if (!reasoning) {
    auto answer = last_answer(target);
    RETURN_IF_ERROR(answer);
    target = std::move(*answer);
  }
  return Json(Json::Object{{"input", std::string(part.substr(0, at))}, {"target", target}});
}

Result<> read_prompt(TaskConfig& task, std::string_view text, bool reasoning) {
  constexpr std::string_view line = "-----\n", question = "\n\nQ: ";
  if (const auto begin = text.find(line); begin != std::string_view::npos)
    text.remove_prefix(begin + line.size());
  auto at = text.find(question);
  if (at == std::string_view::npos) return fail(Errc::bad_input, "no example \"Q: \"");
  task.description = cat(text.substr(0, at), "\n\n");
  Json::Array samples;
  while (at != std::string_view::npos) {
    text.remove_prefix(at + question.size());
    at = text.find(question);
    auto made = example_of(text.substr(0, at), reasoning);
    RETURN_IF_ERROR(made);
    samples.push_back(std::move(*made));
  }
  task.fewshot.samples = std::move(samples);
  return {};
}

}  // namespace

Result<> add_bbh_prompt(TaskConfig& task, const std::string& folder) {
  if (!task.fewshot.samples || !task.fewshot.samples->is_string()) return {};
  const auto text = prompt_text(task, folder);
  RETURN_IF_ERROR(text);
  const bool reasoning = task.fewshot.samples->string() == bbh_reasoning;
  if (const auto read = read_prompt(task, *text, reasoning); !read)
    return fail(read.error().code,
                cat("cot-prompts/", task.dataset_name, ".txt: ", read.error().what));
  return {};
}

}  // namespace troupe::launch::evaluation
