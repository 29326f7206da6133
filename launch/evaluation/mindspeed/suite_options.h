// Options of the suite mindspeed: what the command line of MindSpeed-LLM's evaluation.py selects.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::evaluation::mindspeed {

/// direct: examples of fewshot_template. chat: examples of dev as turns of a dialogue. alternative:
/// --alternative-prompt, all rows of dev. cot: --chain-of-thought, examples with reasoning.
enum class Mode { direct, chat, alternative, cot };
constexpr std::array<std::string_view, 4> names_of(Mode) {
  return {"direct", "chat", "alternative", "cot"};
}

enum class Language { en, zh };
constexpr std::array<std::string_view, 2> names_of(Language) {
  return {"en", "zh"};
}

/// Renders messages by a chat template. The second argument: whether the beginning of an answer
/// follows.
using RenderChat = std::function<Result<std::string>(const Json& messages, bool answer_follows)>;

struct SuiteSettings {
  Mode mode = Mode::direct;
  Language language = Language::en;  ///< of chat mode, and of CMMLU in alternative mode
  std::string data;                  ///< folder of the rows
  std::string checkout;              ///< of MindSpeed-LLM, for examples and patterns
  std::int64_t new_tokens = 128;
  std::uint32_t seed = 1234;         ///< of the examples of chat mode
  std::string instruction_template;  ///< of human_eval in direct mode, with a field {prompt}
  bool fixed = false;                ///< corrects the reference's defects
  bool pandas_cells = true;          ///< cells of csv files as pandas reads them
  /// MMLU, alternative: the first capital of an answer decides if it is the right one, as the
  /// reference has it without --origin-postprocess. It raises scores.
  bool lenient = false;
  bool maps_words = true;  ///< BoolQ, alternative: T and Y mean A, F and N mean B
  RenderChat plain;        ///< of a plain text as a user's message; empty: texts stay as they are
  RenderChat chat;         ///< of chat mode
};

}  // namespace troupe::launch::evaluation::mindspeed
