#include "engine/base/text/terminal_text.h"

#include <gtest/gtest.h>

#include "engine/base/text/text.h"

namespace troupe {
namespace {

TEST(TerminalText, LeavesOrdinaryTextNewlinesAndTabs) {
  const std::string text = "a\tb\nh\xc3\xa9llo \xf0\x9f\x99\x82 \xd7\xa9 \\ \"";
  EXPECT_EQ(for_terminal(text), text);
  EXPECT_EQ(for_terminal(""), "");
}

TEST(TerminalText, EscapesEveryControlCharacter) {
  for (int byte = 0; byte < 0x20; ++byte) {
    if (byte == '\n' || byte == '\t') continue;
    EXPECT_EQ(for_terminal(std::string(1, static_cast<char>(byte))),
              hex_escape(static_cast<unsigned char>(byte)));
  }
  EXPECT_EQ(for_terminal("\x1b]52;c;cm0=\x07\x7f\r"), "\\x1b]52;c;cm0=\\x07\\x7f\\x0d");
  EXPECT_EQ(for_terminal("\xc2\x80|\xc2\x9b|\xc2\x9f|\xc2\xa0"),
            "\\u0080|\\u009b|\\u009f|\xc2\xa0");
}

TEST(TerminalText, EscapesBidirectionalOverrides) {
  EXPECT_EQ(for_terminal("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae"),
            "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(for_terminal("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9"),
            "\\u2066\\u2067\\u2068\\u2069");
  EXPECT_EQ(for_terminal("\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"),
            "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa")
      << "the neighbors";
}

TEST(TerminalText, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(for_terminal("a\xff\x9b z"), "a\\xff\\x9b z") << "a lone 0x9b is CSI in Latin-1";
  EXPECT_EQ(for_terminal("\xc0\x9b"), "\\xc0\\x9b") << "an overlong form";
  EXPECT_EQ(for_terminal("\xe2\x80"), "\\xe2\\x80") << "cut";
  EXPECT_EQ(for_terminal("\xc3\x1b"), "\\xc3\\x1b");
}

TEST(TerminalStream, SeesASequenceThatIsSplit) {
  for (const std::string text :
       {"a\xc2\x9b[2Jz", "\xe2\x80\xae x", "\x1b]0;a\x07", "ok \xf0\x9f\x99\x82\xff"}) {
    TerminalStream stream;
    std::string out;
    for (const char c : text) out += stream.add({&c, 1});
    out += stream.finish();
    EXPECT_EQ(out, for_terminal(text));
  }
  TerminalStream cut;
  EXPECT_EQ(cut.add("a\xe2\x80"), "a");
  EXPECT_EQ(cut.finish(), "\\xe2\\x80");
}

TEST(TerminalText, IsUsedByQuote) {
  EXPECT_EQ(quote("\xc2\x9b\xe2\x80\xae\xff\t"), "\"\\u009b\\u202e\\xff\\x09\"");
}

}  // namespace
}  // namespace troupe
