// troupe chat: over a pipe, and in a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/commands/conversation.h"
#include "tests/launch/program.h"
#include "tests/launch/pseudo_terminal.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

const std::string story_chat = "chat --threads 1 --max-new-tokens 4 --model ";

ProgramOutput piped(const std::string& input, const std::string& options = "") {
  return run_program(cat(story_chat, data("models/stories260k/hf"), " ", options), input);
}

Json saved(const std::string& file) {
  const Json row = value_or_throw(read_json(file));
  return *row.find("messages");
}

std::string content(const Json& messages, std::size_t index) {
  return messages.array().at(index).find("content")->string();
}

TEST(Chat, AnswersEachLineUntilTheEnd) {
  const ProgramOutput said = piped("Hello\n\nAgain\n");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 2) << "an empty line ends nothing";
}

TEST(Chat, CommandsBeginWithASlash) {
  const std::string folder = scratch_folder(), one = folder + "/one.json", two = folder + "/two";
  const ProgramOutput said =
      piped(cat("/system Be brief\nHello\n//bin is a folder\n/save ", one, "\n/save ", one,
                "\n/clear\n/system\nAgain\n/save ", two, "\n/nonsense\n/exit\n", "not sent\n"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 3) << said.out;
  const Json first = saved(one);
  ASSERT_EQ(first.array().size(), 5u);
  EXPECT_EQ(content(first, 0), "Be brief");
  EXPECT_EQ(content(first, 1), "Hello");
  EXPECT_EQ(first.array()[2].find("role")->string(), "assistant");
  EXPECT_EQ(content(first, 3), "/bin is a folder");
  const Json second = saved(two);
  ASSERT_EQ(second.array().size(), 2u);
  EXPECT_EQ(content(second, 0), "Again");
  EXPECT_THAT(said.err, HasSubstr(one + ": already exists"));
  EXPECT_THAT(said.err, HasSubstr("unknown command \"/nonsense\""));
  EXPECT_THAT(said.err, HasSubstr("/clear "));
}

TEST(Chat, ContinuesWhenTheContextIsFullWithoutItsOldestTurns) {
  std::string questions;
  for (int turn = 0; turn < 40; ++turn)
    questions += cat("Tell me a long story about the number ", turn, " and a little cat\n");
  const ProgramOutput said = piped(questions, "--system 'Tell stories'");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(std::count(said.out.begin(), said.out.end(), '\n'), 40);
  EXPECT_THAT(said.err, HasSubstr("(the context of 512 tokens is full: the oldest 1 turn is no "
                                  "longer sent)"));
}

TEST(Chat, AMessageThatNeverFitsIsRefused) {
  std::string words;
  for (int i = 0; i < 600; ++i) words += "word ";
  const ProgramOutput said = piped(words + "\n");
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.err, HasSubstr("the model has room for 508 and a reply; shorten it"));
}

TEST(Chat, TakesATemplateForAModelWithoutOne) {
  namespace fs = std::filesystem;
  const std::string folder = scratch_folder();
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    fs::copy_file(data("models/stories260k/hf/") + name, folder + "/" + name);
  const std::string command = story_chat + folder;
  const ProgramOutput none = run_program(command, "Hello\n");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("--template FILE, or the name of a prompt type"));
  const ProgramOutput named = run_program(command + " --template chatml", "Hello\n");
  EXPECT_EQ(named.code, 0) << named.err;
  ASSERT_TRUE(write_file_durably(folder + "/t.jinja", "{{ messages[0].content }}"));
  const ProgramOutput file =
      run_program(cat(command, " --template ", folder, "/t.jinja"), "Hello\n");
  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_NE(named.out, file.out);
}

TEST(Conversation, LeavesOutTheOldestTurnsAndKeepsTheSystemMessage) {
  commands::Conversation conversation("system");
  for (const char* text : {"a", "b", "c"}) {
    conversation.ask(text);
    conversation.answer(cat("to ", text));
  }
  conversation.ask("d");
  const auto count = [](const Json& messages) -> Result<std::size_t> {
    return messages.array().size();
  };
  EXPECT_EQ(value_or_throw(conversation.fit(count, 8)), 0u);
  EXPECT_EQ(value_or_throw(conversation.fit(count, 5)), 2u);
  EXPECT_EQ(value_or_throw(conversation.fit(count, 5)), 0u);
  EXPECT_EQ(content(conversation.messages(), 0), "system");
  EXPECT_EQ(content(conversation.messages(), 1), "c");
  EXPECT_EQ(conversation.all().array().size(), 8u);
  EXPECT_FALSE(conversation.fit(count, 1));
  EXPECT_EQ(conversation.messages().array().size(), 4u) << "a refusal leaves out nothing";
}

class ChatInTerminal : public testing::Test {
 protected:
  /// Model that may write 20000 tokens, and does so if `long_replies`.
  std::vector<std::string> arguments(bool long_replies = false) const {
    namespace fs = std::filesystem;
    const std::string model = folder_ + "/model";
    if (!fs::exists(model)) {
      fs::create_directories(model);
      for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json"})
        fs::copy_file(data("models/stories260k/hf/") + name, model + "/" + name);
      Json config = value_or_throw(read_json(data("models/stories260k/hf/config.json")));
      config.set("max_position_embeddings", 32768);
      EXPECT_TRUE(write_file_durably(model + "/config.json", config.dump()));
    }
    const std::string length = long_replies ? "20000" : "4";
    return {"chat",     "--threads",        "1",    "--model",          model,
            "--greedy", "--max-new-tokens", length, "--min-new-tokens", length};
  }
  // libedit never frees its copy of a line that was recalled and changed.
  std::map<std::string, std::string> environment() const {
    return {{"XDG_STATE_HOME", folder_ + "/state"},
            {"HOME", folder_},
            {"LC_ALL", "C"},
            {"ASAN_OPTIONS", "detect_leaks=0"}};
  }
  const std::string folder_ = scratch_folder();
};

constexpr const char* prompt = "> ";

TEST_F(ChatInTerminal, LinesAreEditedAndAPasteIsOneMessage) {
  PseudoTerminal terminal(arguments(), environment());
  terminal.wait_for("Ctrl-D ends the chat");
  terminal.wait_for(prompt);
  terminal.type("Helo\033[Dl\r");  // the left arrow
  terminal.wait_for(prompt);
  terminal.type("\r");
  terminal.wait_for(prompt);
  terminal.type("caf\u00e9 \033[200~one\r\rtwo\r\033[201~!\r");
  terminal.wait_for(prompt);
  terminal.type(cat("/save ", folder_, "/talk.json\r"));
  terminal.wait_for("saved ");
  terminal.wait_for(prompt);
  terminal.type("\004");
  EXPECT_EQ(terminal.wait_for_exit(), 0) << terminal.printed();
  const Json messages = saved(folder_ + "/talk.json");
  ASSERT_EQ(messages.array().size(), 4u);
  EXPECT_EQ(content(messages, 0), "Hello");
  EXPECT_EQ(content(messages, 2), "caf\u00e9 one\n\ntwo!");
}

TEST_F(ChatInTerminal, CtrlCStopsAReplyDiscardsALineAndEndsAtAnEmptyOne) {
  PseudoTerminal terminal(arguments(true), environment());
  terminal.wait_for(prompt);
  terminal.type("Once upon a time\r");
  terminal.wait_for("\r\n");
  terminal.wait_for(" ");  // a reply of 20000 tokens has begun
  terminal.type("\003");
  terminal.wait_for("(stopped)");
  terminal.wait_for(prompt);
  // Ctrl-C discards keys that are not read yet, which the terminal may have echoed: the line comes
  // from the history, which only the editor can show.
  terminal.type("\033[A");
  terminal.wait_for("Once upon a time");
  terminal.type("\003");
  terminal.wait_for(prompt);
  terminal.type(cat("/save ", folder_, "/talk.json\r"));
  terminal.wait_for("saved ");
  terminal.wait_for(prompt);
  terminal.type("\003");
  EXPECT_EQ(terminal.wait_for_exit(), 0) << terminal.printed();
  const Json messages = saved(folder_ + "/talk.json");
  ASSERT_EQ(messages.array().size(), 2u);
  EXPECT_EQ(content(messages, 0), "Once upon a time");
  EXPECT_EQ(messages.array()[1].find("role")->string(), "assistant");
}

TEST_F(ChatInTerminal, HistoryIsKeptForThisUserAlone) {
  {
    PseudoTerminal terminal(arguments(), environment());
    terminal.wait_for(prompt);
    terminal.type("a question to keep\r");
    terminal.wait_for(prompt);
    terminal.type("/exit\r");
    EXPECT_EQ(terminal.wait_for_exit(), 0) << terminal.printed();
  }
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/state/troupe/chat_history").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  PseudoTerminal terminal(arguments(), environment());
  terminal.wait_for(prompt);
  terminal.type("\033[A\033[A");  // the up arrow, twice
  terminal.wait_for("a question to keep");
  terminal.type("\003");
  terminal.wait_for(prompt);
  terminal.type("\004");
  EXPECT_EQ(terminal.wait_for_exit(), 0) << terminal.printed();
}

}  // namespace
}  // namespace troupe::launch
