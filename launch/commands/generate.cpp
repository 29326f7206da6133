#include "launch/commands/generate.h"

#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/commands/chat.h"
#include "launch/commands/line_members.h"
#include "launch/commands/model_output.h"
#include "launch/commands/prompt_engine.h"
#include "launch/commands/rank_group.h"
#include "launch/model/chat_prompt.h"
#include "launch/model/json_lines.h"

namespace troupe::launch::commands {

namespace {

/// Sequences of the lines of stdin that are generated at the same time.
constexpr std::int32_t lines_at_once = 64;

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
  PromptEngine engine(options);
  tokens =
      value_or_throw(engine.model().tokens_of(Json::Object{{"prompt", options.prompt}}, "prompt"));
  const auto& tokenizer = *value_or_throw(engine.model().tokenizer());
  auto sampling = engine.prompts().settings();
  if (sampling.beams.count > 1) {
    for (const auto& each : value_or_throw(engine.generate(tokens, sampling)))
      ModelOutput().print_line(tokenizer.decode(tokens, true) + each.text);
    return 0;
  }
  const auto samples = static_cast<std::uint64_t>(std::exchange(sampling.beams.returned, 1));
  for (std::uint64_t k = 0; k < samples; ++k) {
    echo.start(tokenizer);
    value_or_throw(
        engine.generate(tokens, sampling, k, [&](const auto& event) { echo.push(event.token); }));
    echo.finish();
  }
  return 0;
}

Json number(float value) {
  return model::number_or_null(static_cast<double>(value));
}

/// {"ids", "text", "logprobs", "finish_reason"}, "top_logprobs" if requested, and "score" for a
/// beam. "text" is null without a tokenizer.
Json json_of(const engine::generate::Generation& generated, bool has_text, bool has_score) {
  Json::Array ids, logp, top;
  for (const auto id : generated.ids) ids.emplace_back(std::int64_t{id});
  for (const float value : generated.logp) logp.push_back(number(value));
  for (const auto& place : generated.top) {
    Json::Array row;
    for (const auto& each : place)
      row.push_back(Json::Object{{"id", std::int64_t{each.id}}, {"logprob", number(each.logp)}});
    top.emplace_back(std::move(row));
  }
  Json out;
  out.set("ids", std::move(ids));
  out.set("text", has_text ? Json(generated.text) : Json());
  out.set("logprobs", std::move(logp));
  if (!top.empty()) out.set("top_logprobs", std::move(top));
  out.set("finish_reason", to_string(generated.finish));
  if (has_score) out.set("score", model::number_or_null(generated.score));
  return out;
}

/// Answers the lines of stdin, several at a time.
class LineGenerator final : public model::LineAnswers {
 public:
  explicit LineGenerator(const GenerateOptions& options)
      : engine_(options),
        chat_template_(options.chat_template),
        most_(2 * static_cast<std::size_t>(options.max_sequences)) {}

  void start(const Json& line, Callback answer) override {
    auto prepared = prepare(line);
    if (!prepared) return answer(fail(prepared));
    started_.push_back(std::make_shared<Line>(Line{std::move(*prepared), std::move(answer)}));
    const SharedLine started = started_.back();
    try {
      submit(started);
    } catch (const std::exception& error) {
      started->end(fail(Errc::internal, error.what()));
    }
    forget_ended();
  }
  bool has_room() const override { return engine_.active() < most_; }
  bool idle() const override { return started_.empty(); }
  void step() override {
    try {
      engine_.step();
    } catch (const std::exception& error) {
      answer_alone(error);
    }
    forget_ended();
  }

 private:
  /// A line that is computed.
  struct Line {
    PreparedPrompt prompt;
    Callback answer;
    bool ended = false;

    void end(Result<Json> found) {
      if (!std::exchange(ended, true)) answer(std::move(found));
    }
  };
  using SharedLine = std::shared_ptr<Line>;  // the callbacks of its sequences hold it

  Result<PreparedPrompt> prepare(const Json& line) {
    RETURN_IF_ERROR(members_.check(line));
    const auto tokens = prompt_of(line);
    RETURN_IF_ERROR(tokens);
    auto sampling = engine_.prompts().settings();
    RETURN_IF_ERROR(read_settings(line, sampling));
    return engine_.prepare(*tokens, std::move(sampling));
  }
  void submit(const SharedLine& line) {
    engine_.submit(line->prompt, [this, line](const PromptEngine::Generations& found) {
      line->end(answer_of(line->prompt, found));
    });
  }
  Result<Json> answer_of(const PreparedPrompt& prompt, const PromptEngine::Generations& found) {
    RETURN_IF_ERROR(found);
    const bool has_text = engine_.model().tokenizer().has_value();
    const bool has_score = prompt.params.beams.count > 1;
    if (prompt.params.beams.returned == 1) return json_of(found->front(), has_text, has_score);
    Json::Array all;
    for (const auto& each : *found) all.push_back(json_of(each, has_text, has_score));
    return Json(Json::Object{{"samples", std::move(all)}});
  }

  /// After a step that failed, for example without memory: the lines are computed again one at a
  /// time, so that one that needs too much fails alone.
  void answer_alone(const std::exception& error) {
    engine_.discard_all();
    const std::string why = error.what();
    const bool several = started_.size() > 1;
    for (const SharedLine& line : started_) {
      if (line->ended) continue;
      try {
        if (!several) throw std::runtime_error(why);
        submit(line);
        while (!line->ended) engine_.step();
      } catch (const std::exception& failed) {
        engine_.discard_all();
        line->end(fail(Errc::internal, failed.what()));
      }
    }
  }
  void forget_ended() {
    std::erase_if(started_, [](const SharedLine& line) { return line->ended; });
  }

  Result<std::vector<std::int32_t>> prompt_of(const Json& line) {
    if (!line.find("messages")) return engine_.model().tokens_of(line, "prompt");
    if (line.find("ids") || line.find("prompt"))
      return fail(Errc::bad_input, "a line has one of prompt, ids and messages");
    auto input = model::read_render_input(line, {});
    RETURN_IF_ERROR(input);
    if (!line.find("add_generation_prompt")) input->add_generation_prompt = true;
    if (!chat_prompt_) {
      auto loaded = model::ChatPrompt::load(engine_.model().folders().text, chat_template_);
      RETURN_IF_ERROR(loaded);
      chat_prompt_.emplace(std::move(*loaded));
    }
    const auto text = chat_prompt_->render(std::move(*input));
    RETURN_IF_ERROR(text);
    return engine_.model().tokens_of_text(*text, false);
  }

  PromptEngine engine_;
  std::string chat_template_;
  std::size_t most_;                              // sequences
  std::optional<model::ChatPrompt> chat_prompt_;  // loaded for the first messages
  LineMembers members_;
  std::vector<SharedLine> started_;  // in the order of the input
};

int answer_stdin(const GenerateOptions& options) {
  LineGenerator generator(options);
  std::ios::sync_with_stdio(false);
  value_or_throw(model::answer_lines(std::cout, generator));
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
  if (!options.has_prompt) options.max_sequences = lines_at_once;
  const auto command = options.has_prompt ? stream : answer_stdin;
  return with_rank_group(std::move(options), command);
}

}  // namespace troupe::launch::commands
