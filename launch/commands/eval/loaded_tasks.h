// Tasks of `troupe eval --task` with their rows and items, of both suites.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/commands/eval/suite.h"
#include "launch/evaluation/task_library.h"
#include "launch/evaluation/task_result.h"

namespace troupe::launch::commands {

/// A task with its rows; `run.items` are those that are evaluated.
struct LoadedTask {
  evaluation::TaskRows rows;
  evaluation::TaskRun run;
};

struct LoadedSuite {
  evaluation::TaskSelection selection;
  std::vector<LoadedTask> tasks;  ///< in the order of selection.tasks, which they point to
  Json facts = Json::Object{};    ///< for the report: what the suite mindspeed was asked
};

/// Loads what the options name; an object of its own, as tasks point into it. Errc::usage,
/// not_found, bad_input, with file and line.
Result<std::unique_ptr<LoadedSuite>> load_suite(const SuiteOptions& options,
                                                const model::ModelOptions& model);

/// JSON lines with context, continuations, target and SHA-256 of each item.
void print_prompts(const std::vector<LoadedTask>& tasks);

}  // namespace troupe::launch::commands
