// Escape sequences in names, files and the text of models: a terminal never receives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/hostile/folder.h"

namespace troupe::hostile {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What a shell command prints to a terminal.
std::string on_terminal(const std::string& command) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(terminal, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // EIO: the command has ended
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return text;
}

class Terminal : public testing::Test {
 protected:
  ~Terminal() override { std::filesystem::remove_all(folder_.path()); }
  /// Output of the program, which is not a terminal.
  std::string said(const std::string& arguments) const {
    const std::string out = folder_.path() + ".said";
    static_cast<void>(std::system(
        cat("'" TROUPE_PROGRAM "' ", placed(arguments, folder_.path()), " >'", out, "' 2>&1")
            .c_str()));
    std::string text = read_file(out).value_or("");
    std::filesystem::remove(out);
    return text;
  }
  /// A model that can only generate the tokens with these ids.
  void model_of(const std::vector<int>& ids) const {
    folder_.model();
    Json::Array others;
    for (int id = 0; id < 512; ++id)
      if (std::ranges::find(ids, id) == ids.end()) others.emplace_back(std::int64_t{id});
    Json config = Json::Object{{"suppress_tokens", std::move(others)}, {"max_new_tokens", 6}};
    folder_.write("generation_config.json", config.dump());
  }
  static void expect_harmless(const std::string& text) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << text;
    EXPECT_THAT(text, Not(HasSubstr("\x07")));
    EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
  }
  Folder folder_{cat(testing::TempDir(), "terminal_",
                     testing::UnitTest::GetInstance()->current_test_info()->name())};
};

TEST_F(Terminal, DoesNotReceiveHostileNames) {
  for (const char* command :
       {"info @/'\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "train --config @/'\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "train --set 'x\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae=1'",
        "train --set 'model=@/\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "explain --algorithm sft --set 'data.path=@/\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "'x\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "info @ '--x\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'",
        "tokenize --model @/'\x1b]0;PWNED\x07\xc2\x9b\xe2\x80\xae'"}) {
    const std::string text = said(command);
    expect_harmless(text);
    EXPECT_THAT(text, HasSubstr("\\x1b]0;PWNED\\x07\\u009b\\u202e")) << command;
  }
}

TEST_F(Terminal, DoesNotReceiveTheMessageOfATemplate) {
  folder_.model().write(
      "tokenizer_config.json",
      R"({"chat_template": "{{ raise_exception('\u001b[31mboo\u0007\u009b\u202e') }}"})");
  const std::string text = said("info @");
  expect_harmless(text);
  EXPECT_THAT(text, HasSubstr("\\x1b[31mboo\\x07\\u009b\\u202e"));
}

// Ids of this tokenizer's bytes: 3 and the byte.
TEST_F(Terminal, DoesNotReceiveWhatAModelGenerates) {
  model_of({3 + 0x1b, 3 + 0x07});
  const std::string generate = cat("'" TROUPE_PROGRAM "' generate --model '", folder_.path(),
                                   "' --prompt a --max-new-tokens 6"),
                    text = on_terminal(generate);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("\\x1b"), HasSubstr("\\x07"))) << text;
  EXPECT_THAT(said("generate --model @ --prompt a --max-new-tokens 6"),
              testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\x07")))
      << "elsewhere the text is what the model generated";
}

// The two bytes of U+009B are two tokens.
TEST_F(Terminal, DoesNotReceiveASequenceThatIsSplitOverTokens) {
  model_of({3 + 'x'});
  const std::string text =
      on_terminal(cat("'" TROUPE_PROGRAM "' generate --model '", folder_.path(),
                      "' --prompt 'a\xc2\x9b"
                      "b\xe2\x80\xae"
                      "c' --max-new-tokens 2"));
  expect_harmless(text);
  EXPECT_THAT(text, HasSubstr("\\u009b"));
  EXPECT_THAT(text, HasSubstr("\\u202e"));
}

TEST_F(Terminal, DoesNotReceiveWhatAModelSaysInAChat) {
  model_of({3 + 0x1b, 3 + 0x07});
  folder_.write("chat_template.jinja", "{{ messages[-1]['content'] }}");
  const std::string text = on_terminal(
      cat("echo hi | '" TROUPE_PROGRAM "' chat --model '", folder_.path(), "' --max-new-tokens 6"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("\\x1b"), HasSubstr("\\x07"))) << text;
}

}  // namespace
}  // namespace troupe::hostile
