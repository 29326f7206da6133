#include "launch/commands/chat.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/terminal_text.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "launch/commands/chat_prompt.h"
#include "launch/commands/conversation.h"
#include "launch/commands/model_output.h"
#include "launch/commands/sampler.h"
#include "launch/terminal/interruption.h"
#include "launch/terminal/line_editor.h"

namespace troupe::launch {

namespace {

constexpr std::string_view chat_help =
    "/clear        forget the conversation, but not the system message\n"
    "/save FILE    write the conversation to a new file, as one row of data\n"
    "/system TEXT  set the system message; without TEXT there is none\n"
    "/help         this list\n"
    "/exit         end; Ctrl-D and, on an empty line, Ctrl-C do the same\n"
    "//TEXT        a message that begins with a slash\n"
    "Ctrl-C stops a reply. Other lines are messages; pasted text may have several.\n";

class Chat {
 public:
  explicit Chat(const GenerateOptions& options);
  void run();

 private:
  enum class After { go_on, end };
  After command(const std::string& line);
  void save(std::string path) const;
  void reply(const std::string& text);
  Result<> try_reply();
  Result<std::vector<std::int32_t>> fitting_prompt();

  engine::adapter::ModelFolders folders_;
  ChatPrompt prompt_;
  Sampler sampler_;
  Conversation conversation_;
  LineEditor editor_;
  std::optional<Interruption> ctrl_c_;
  std::optional<engine::tokenizer::StreamDecoder> decoder_;
  ModelOutput output_;
  std::uint64_t replies_ = 0;
};

Chat::Chat(const GenerateOptions& options)
    : folders_(value_or_throw(
          engine::adapter::model_folders(options.model.model, options.model.adapter))),
      prompt_(value_or_throw(ChatPrompt::load(folders_.text, options.chat_template))),
      sampler_(
          options,
          [this](const engine::generate::TokenEvent& event) {
            output_.print(decoder_->push(event.token));
          },
          [] { return Interruption::pending(); }),
      conversation_(options.system),
      editor_("> ", chat_history_file()) {
  if (editor_.interactive()) ctrl_c_.emplace();
}

void Chat::run() {
  if (editor_.interactive()) std::cerr << "/help lists the commands; Ctrl-D ends the chat\n";
  std::string line;
  while (editor_.read(line)) {
    line = repair_utf8(line);
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    const bool one_line = line.find('\n') == std::string::npos;
    if (line.starts_with("//")) {
      reply(line.substr(1));
    } else if (line.starts_with('/') && one_line) {
      if (command(line) == After::end) return;
    } else {
      reply(line);
    }
  }
}

Chat::After Chat::command(const std::string& line) {
  const auto space = line.find(' ');
  const std::string name = line.substr(0, space);
  const auto begin = line.find_first_not_of(' ', space);
  const std::string rest =
      space == std::string::npos || begin == std::string::npos ? "" : line.substr(begin);
  if (name == "/exit") return After::end;
  if (name == "/clear") {
    conversation_.clear();
  } else if (name == "/system") {
    conversation_.set_system(rest);
  } else if (name == "/save" && !rest.empty()) {
    save(rest);
  } else {
    if (name != "/help") std::cerr << "unknown command " << quote(line, 60) << "; the commands:\n";
    std::cerr << chat_help;
  }
  return After::go_on;
}

void Chat::save(std::string path) const {
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr) path = cat(home, path.substr(1));
  if (std::filesystem::exists(path)) {
    std::cerr << path << ": already exists; choose another name\n";
    return;
  }
  const Json row = Json::Object{{"messages", conversation_.all()}};
  const auto saved = write_file_durably(path, row.dump() + "\n");
  std::cerr << (saved ? "saved " + path : saved.error().what) << "\n";
}

void Chat::reply(const std::string& text) {
  Interruption::take();
  conversation_.ask(text);
  const auto done = try_reply();
  if (done) return;
  Interruption::take();
  conversation_.withdraw();
  if (!editor_.interactive()) throw Failure(done.error());
  std::cerr << for_terminal(done.error().what) << "\n";
}

Result<> Chat::try_reply() {
  const auto prompt = fitting_prompt();
  RETURN_IF_ERROR(prompt);
  auto sampling = sampler_.settings();
  sampling.beams.returned = 1;
  decoder_.emplace(*value_or_throw(sampler_.model().tokenizer()), true);
  const auto generated = sampler_.generate(*prompt, sampling, replies_++);
  RETURN_IF_ERROR(generated);
  const auto& best = generated->front();
  output_.print_line(sampling.beams.count > 1 ? best.text : decoder_->finish());
  if (Interruption::take()) std::cerr << "(stopped)\n";
  conversation_.answer(best.text);
  return {};
}

/// The tokens of the conversation, without its oldest turns where they leave no room for a reply.
Result<std::vector<std::int32_t>> Chat::fitting_prompt() {
  std::vector<std::int32_t> tokens;
  const auto count = [&](const Json& messages) -> Result<std::size_t> {
    engine::tokenizer::RenderInput input;
    input.messages = messages;
    input.add_generation_prompt = true;
    const auto text = prompt_.render(std::move(input));
    RETURN_IF_ERROR(text);
    auto encoded = sampler_.model().tokens_of_text(*text, false);
    RETURN_IF_ERROR(encoded);
    tokens = std::move(*encoded);
    return tokens.size();
  };
  const std::size_t context = sampler_.context(),
                    reply = std::min(sampler_.max_new_tokens(), context / 4);
  const auto left_out = conversation_.fit(count, context - reply);
  RETURN_IF_ERROR(left_out);
  if (*left_out > 0) {
    std::cerr << "(the context of " << context << " tokens is full: the oldest " << *left_out
              << (*left_out == 1 ? " turn is" : " turns are") << " no longer sent)\n";
  }
  return tokens;
}

}  // namespace

int chat(const GenerateOptions& options) {
  Chat(options).run();
  return 0;
}

}  // namespace troupe::launch
