// The tasks of MindSpeed-LLM's inference.py as sampling settings.
#pragma once

#include <array>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

/// How completions are found; chat is a dialogue.
enum class Task { greedy, do_sample, beam_search, beam_search_with_sampling, chat };
constexpr std::array<std::string_view, 5> names_of(Task) {
  return {"greedy", "do_sample", "beam_search", "beam_search_with_sampling", "chat"};
}

/// Adds do_sample and num_beams to settings of engine/generate/sampling_params_json.h. A beam
/// search has 2 beams, as in inference.py, unless the settings have num_beams. Errc::usage when
/// they contradict the task.
Result<> set_task(Task task, Json& settings);

}  // namespace troupe::launch::commands
