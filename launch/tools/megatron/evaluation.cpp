#include "launch/tools/megatron/evaluation.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>

#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/evaluation/mindspeed/suite_tasks.h"
#include "launch/tools/megatron/inference.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

namespace mindspeed = evaluation::mindspeed;
using commands::SuiteOptions;

Result<std::int64_t> whole(const CommandLine& line, const char* flag, std::int64_t otherwise,
                           std::int64_t least = 1) {
  if (!line.find(flag)) return otherwise;
  const auto number = parse_number<std::int64_t>(line.value(flag));
  if (!number || *number < least || *number > 1 << 30)
    return fail(Errc::usage, cat("--", flag, ' ', quote(line.value(flag)),
                                 ": expected a whole number, at least ", least));
  return *number;
}

/// evaluation.py looks for these names one after the other, whatever the order of --task.
Result<std::vector<std::string>> task_names_of(const CommandLine& line) {
  const std::vector<std::string> order = {"cmmlu",      "mmlu_ppl", "mmlu", "gsm8k",
                                          "boolq",      "ceval",    "bbh",  "agieval",
                                          "human_eval", "hellaswag"};
  const Given* given = line.find("task");
  if (!given || given->values.empty())
    return fail(Errc::usage, cat("--task is missing: expected one of ", join(order, ", ")));
  for (const std::string& name : given->values) {
    if (name == "needlebench")
      return fail(Errc::unsupported, "--task needlebench: its long texts are not offered");
    if (std::ranges::find(order, name) == order.end())
      return fail(Errc::usage, cat("--task ", quote(name),
                                   ": evaluation.py has no such task, and "
                                   "evaluates nothing; expected one of ",
                                   join(order, ", ")));
  }
  std::vector<std::string> out;
  for (const std::string& name : order)
    if (std::ranges::find(given->values, name) != given->values.end()) out.push_back(name);
  return out;
}

Result<mindspeed::Mode> mode_of(const CommandLine& line, const std::string& task) {
  using mindspeed::Mode;
  if (line.find("alternative-prompt") && has_mode(task, Mode::alternative))
    return Mode::alternative;
  if (line.find("chain-of-thought") && has_mode(task, Mode::cot)) return Mode::cot;
  if (!line.find("prompt-type")) return Mode::direct;
  if (!has_mode(task, Mode::chat))
    return fail(Errc::usage, cat("--prompt-type with --task ", task,
                                 ": expected mmlu, ceval or cmmlu, which have dialogues"));
  return Mode::chat;
}

/// The last of --task-data-path, as evaluation.py takes it; that of mmlu_ppl names mmlu.
Result<std::string> data_of(const CommandLine& line) {
  const Given* given = line.find("task-data-path");
  if (!given || given->values.empty())
    return fail(Errc::usage, "--task-data-path is missing: the folder of the task's files");
  return given->values.back();
}

Result<> take_words(const CommandLine& line, SuiteOptions& out) {
  for (const std::string& word : line.overrides) {
    const std::size_t at = word.find('=');
    const std::string key = word.substr(0, at), value = word.substr(at + 1);
    if (key == "fewshot_data")
      out.fewshot_data = value;
    else if (key == "output")
      out.output = value;
    else
      return fail(Errc::usage, cat(quote(word),
                                   ": evaluation has no settings of a run; there are "
                                   "fewshot_data=DIR and output=DIR"));
  }
  return {};
}

Result<SuiteOptions> common_options(const CommandLine& line) {
  SuiteOptions out;
  out.suite = "mindspeed";
  out.fewshot_data = ".";  // evaluation.py is started in the folder of MindSpeed-LLM
  auto data = data_of(line);
  RETURN_IF_ERROR(data);
  out.task_data = std::move(*data);
  const auto length = whole(line, "max-new-tokens", 128),
             limit = whole(line, "max-eval-samples", 0), seed = whole(line, "seed", 1234, 0),
             batch = whole(line, "evaluation-batch-size", 1);
  for (const auto* each : {&length, &limit, &seed, &batch}) RETURN_IF_ERROR(*each);
  out.max_new_tokens = *length;
  out.limit = static_cast<double>(*limit);
  out.fewshot_seed = *seed;
  out.instruction_template = line.value("instruction-template");
  out.no_chat_template = line.find("no-chat-template") != nullptr;
  const bool origin = line.find("origin-postprocess") != nullptr;
  out.lenient = !origin;
  out.maps_words = !origin;
  if (const std::string language = line.value("eval-language", "en"); language == "zh")
    out.language = mindspeed::Language::zh;
  else if (language != "en")
    return fail(Errc::usage, cat("--eval-language ", quote(language), ": expected en or zh"));
  const std::string file = line.value("prompt-type-path"), type = line.value("prompt-type");
  out.chat_template = file.empty() || type.empty() ? type : cat(file, '#', type);
  const char* allowed = std::getenv("HF_ALLOW_CODE_EVAL");
  out.allow_code = allowed != nullptr && std::string_view(allowed) == "1";
  out.log_samples = true;
  RETURN_IF_ERROR(take_words(line, out));
  return out;
}

}  // namespace

Result<std::vector<SuiteOptions>> evaluation_tasks(const CommandLine& line) {
  const auto names = task_names_of(line);
  RETURN_IF_ERROR(names);
  const auto common = common_options(line);
  RETURN_IF_ERROR(common);
  std::vector<SuiteOptions> out;
  for (const std::string& name : *names) {
    const auto mode = mode_of(line, name);
    RETURN_IF_ERROR(mode);
    SuiteOptions options = *common;
    options.tasks = {name};
    options.mode = *mode;
    options.lenient = options.lenient && *mode == mindspeed::Mode::alternative && name == "mmlu";
    if (names->size() > 1 && !options.output.empty()) options.output += "/" + name;
    out.push_back(std::move(options));
  }
  return out;
}

std::string evaluation_table(const std::string& task, const commands::SuiteReport& report) {
  std::vector<std::array<std::string, 4>> rows = {{"", "subject", "question_n", "acc"}};
  std::int64_t count = 0, right = 0;
  for (const evaluation::TaskResult& each : report.tasks) {
    const evaluation::MetricResult& acc = each.metrics.front();
    rows.push_back({std::to_string(rows.size() - 1), each.alias, std::to_string(each.effective),
                    to_text(acc.value, 6)});
    count += each.effective;
    right += acc.passed.value_or(0);
  }
  const double mean = count > 0 ? static_cast<double>(right) / static_cast<double>(count) : 0;
  rows.push_back(
      {std::to_string(rows.size() - 1), "total", std::to_string(count), to_text(mean, 6)});
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], count_code_points(row[c]));
  std::string out = cat(task, " acc = ", right, "/", count, "=", mean, "\n");
  for (const auto& row : rows)
    for (std::size_t c = 0; c < 4; ++c) {
      const std::string space(widths[c] - count_code_points(row[c]), ' ');
      out += cat(c == 0 ? "" : "  ", c == 0 ? row[c] + space : space + row[c], c == 3 ? "\n" : "");
    }
  return out + report.facts;
}

int evaluation(const std::vector<std::string>& words) {
  const auto line = value_or_throw(read_command_line(words));
  if (transports::mpi::under_mpirun() && transports::mpi::mpirun_size() > 1)
    throw Failure(
        {Errc::usage, cat("evaluation: expected one rank, found ", transports::mpi::mpirun_size(),
                          "; one process reads a checkpoint of any division")});
  const auto tasks = value_or_throw(evaluation_tasks(line));
  const LineModel model = value_or_throw(model_of(line));
  for (const SuiteOptions& options : tasks)
    if (const auto report = commands::evaluate_suite(options, model.options))
      std::cout << evaluation_table(options.tasks.front(), *report) << std::flush;
  return 0;
}

}  // namespace troupe::launch::tools::megatron
