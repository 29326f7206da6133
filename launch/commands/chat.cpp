#include "launch/commands/chat.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/files/file.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/commands/conversation.h"
#include "launch/commands/local_chat.h"
#include "launch/commands/model_output.h"
#include "launch/commands/rank_group.h"
#include "launch/commands/remote_chat.h"
#include "launch/terminal/interruption.h"
#include "launch/terminal/line_editor.h"

namespace troupe::launch::commands {

namespace {

constexpr std::string_view chat_help =
    "/clear        forget the conversation, but not the system message\n"
    "/save FILE    write the conversation to a new file, as one row of data\n"
    "/system TEXT  set the system message; without TEXT there is none\n"
    "/help         this list\n"
    "/exit         end; Ctrl-D and, on an empty line, Ctrl-C do the same\n"
    "//TEXT        a message that begins with a slash\n"
    "Ctrl-C stops a reply. Other lines are messages; pasted text may have several.\n";

std::unique_ptr<ChatModel> make_model(const ChatOptions& options) {
  if (options.url.empty()) return std::make_unique<LocalChat>(options);
  return std::make_unique<RemoteChat>(options);
}

/// The command that a bare word is in MindSpeed's inference.py, or the line.
std::string command_of(const std::string& line) {
  const auto first = line.find_first_not_of(" \t\r\n"), last = line.find_last_not_of(" \t\r\n");
  const std::string word = line.substr(first, last + 1 - first);
  if (word == "q" || word == "quit" || word == "exit") return "/exit";
  return word == "clear" || word == "new" ? "/clear" : line;
}

class Chat {
 public:
  explicit Chat(const ChatOptions& options);
  void run();

 private:
  enum class After { go_on, end };
  After command(const std::string& line);
  void save(std::string path) const;
  void reply(const std::string& text);

  const ChatOptions& options_;
  std::unique_ptr<ChatModel> model_;
  Conversation conversation_;
  terminal::LineEditor editor_;
  std::optional<terminal::Interruption> ctrl_c_;
  ModelOutput output_;
};

Chat::Chat(const ChatOptions& options)
    : options_(options),
      model_(make_model(options)),
      conversation_(options.system),
      editor_("> ", terminal::chat_history_file()) {
  if (editor_.interactive()) ctrl_c_.emplace();
}

void Chat::run() {
  if (editor_.interactive()) std::cerr << "/help lists the commands; Ctrl-D ends the chat\n";
  std::string line;
  while (editor_.read(line)) {
    line = repair_utf8(line);
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    if (options_.bare_commands) line = command_of(line);
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
  terminal::Interruption::take();
  conversation_.ask(text);
  if (options_.history_turns > 0)
    conversation_.limit(static_cast<std::size_t>(options_.history_turns));
  auto answer = model_->reply(conversation_, output_);
  const bool stopped = terminal::Interruption::take();
  if (answer) {
    if (stopped) std::cerr << "(stopped)\n";
    return conversation_.answer(std::move(*answer));
  }
  conversation_.withdraw();
  if (!editor_.interactive()) throw Failure(answer.error());
  std::cerr << for_terminal(answer.error().what) << "\n";
}

}  // namespace

int chat(const ChatOptions& options) {
  return with_rank_group(options, [&](const GenerateOptions& in_group) {
    ChatOptions dialogue = options;
    dialogue.group = in_group.group;
    Chat(dialogue).run();
    return 0;
  });
}

}  // namespace troupe::launch::commands
