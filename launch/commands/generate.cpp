#include "launch/commands/generate.h"

#include <unistd.h>
#include <iostream>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "launch/commands/chat.h"
#include "launch/commands/line_members.h"
#include "launch/commands/model_group.h"
#include "launch/commands/model_output.h"
#include "launch/commands/sampler.h"
#include "launch/model/chat_prompt.h"
#include "launch/model/json_lines.h"

namespace troupe::launch::commands {

namespace {

/// Prints the prompt and its completion as tokens arrive. The prompt is printed with the first
/// token: by then every check of prompt and settings has passed.
class Echo {
 public:
  explicit Echo(const std::vector<std::int32_t>& prompt) : prompt_(prompt) {}

  void start(const engine::tokenizer::Tokenizer& tokenizer) {
    decoder_.emplace(tokenizer, true);
    started_ = false;
  }
  void push(std::int32_t token) {
    print_prompt();
    output_.print(decoder_->push(token));
  }
  void finish() {
    print_prompt();
    output_.print_line(decoder_->finish());
  }

 private:
  void print_prompt() {
    if (std::exchange(started_, true)) return;
    for (const auto id : prompt_) output_.print(decoder_->push(id));
  }

  const std::vector<std::int32_t>& prompt_;
  std::optional<engine::tokenizer::StreamDecoder> decoder_;
  ModelOutput output_;
  bool started_ = false;
};

int stream(const GenerateOptions& options) {
  std::vector<std::int32_t> tokens;
  Echo echo(tokens);
  Sampler sampler(options,
                  [&](const engine::generate::TokenEvent& event) { echo.push(event.token); });
  tokens =
      value_or_throw(sampler.model().tokens_of(Json::Object{{"prompt", options.prompt}}, "prompt"));
  const auto& tokenizer = *value_or_throw(sampler.model().tokenizer());
  auto sampling = sampler.settings();
  if (sampling.beams.count > 1) {
    for (const auto& each : value_or_throw(sampler.generate(tokens, sampling)))
      ModelOutput().print_line(tokenizer.decode(tokens, true) + each.text);
    return 0;
  }
  const auto samples = static_cast<std::uint64_t>(std::exchange(sampling.beams.returned, 1));
  for (std::uint64_t k = 0; k < samples; ++k) {
    echo.start(tokenizer);
    value_or_throw(sampler.generate(tokens, sampling, k));
    echo.finish();
  }
  return 0;
}

/// Answers the lines of stdin.
class LineGenerator {
 public:
  explicit LineGenerator(const GenerateOptions& options)
      : sampler_(options, {}), chat_template_(options.chat_template) {}

  Result<Json> answer(const Json& line) {
    RETURN_IF_ERROR(members_.check(line));
    const auto tokens = prompt_of(line);
    RETURN_IF_ERROR(tokens);
    auto sampling = sampler_.settings();
    RETURN_IF_ERROR(read_settings(line, sampling));
    const auto generated = sampler_.generate(*tokens, sampling);
    RETURN_IF_ERROR(generated);
    const bool has_text = sampler_.model().tokenizer().has_value();
    const bool has_score = sampling.beams.count > 1;
    if (sampling.beams.returned == 1) return json_of(generated->front(), has_text, has_score);
    Json::Array all;
    for (const auto& each : *generated) all.push_back(json_of(each, has_text, has_score));
    return Json(Json::Object{{"samples", std::move(all)}});
  }

 private:
  Result<std::vector<std::int32_t>> prompt_of(const Json& line) {
    if (!line.find("messages")) return sampler_.model().tokens_of(line, "prompt");
    if (line.find("ids") || line.find("prompt"))
      return fail(Errc::bad_input, "a line has one of prompt, ids and messages");
    auto input = model::read_render_input(line, {});
    RETURN_IF_ERROR(input);
    if (!line.find("add_generation_prompt")) input->add_generation_prompt = true;
    if (!chat_prompt_) {
      auto loaded = model::ChatPrompt::load(sampler_.model().folders().text, chat_template_);
      RETURN_IF_ERROR(loaded);
      chat_prompt_.emplace(std::move(*loaded));
    }
    const auto text = chat_prompt_->render(std::move(*input));
    RETURN_IF_ERROR(text);
    return sampler_.model().tokens_of_text(*text, false);
  }

  Sampler sampler_;
  std::string chat_template_;
  std::optional<model::ChatPrompt> chat_prompt_;  // loaded for the first messages
  LineMembers members_;
};

int answer_stdin(const GenerateOptions& options) {
  LineGenerator generator(options);
  std::ios::sync_with_stdio(false);
  value_or_throw(model::answer_lines(std::cin, std::cout,
                                     [&](const Json& line) { return generator.answer(line); }));
  return 0;
}

}  // namespace

int generate(const GenerateOptions& given) {
  GenerateOptions options = given;
  if (options.task) value_or_throw(set_task(*options.task, options.settings));
  if (options.task == Task::chat) {
    if (options.has_prompt || options.settings.find("num_return_sequences"))
      throw Failure(
          {Errc::usage, "--task chat: reads messages from stdin; remove --prompt and --n"});
    ChatOptions dialogue;
    static_cast<GenerateOptions&>(dialogue) = std::move(options);
    return chat(dialogue);
  }
  const auto command = options.has_prompt ? stream : answer_stdin;
  return with_model_group(std::move(options), command);
}

}  // namespace troupe::launch::commands
