#include "launch/commands/explain/example_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/commands/explain/preview_text.h"

namespace troupe::launch::commands {

namespace {

constexpr std::size_t indent = 2;
// Tokens shown at the beginning and at the end of a sequence.
constexpr std::size_t shown_tokens = 200;
constexpr std::string_view green = "\x1b[32m", plain = "\x1b[0m";

// Text of one mask, without control characters except newlines.
struct MaskedRun {
  std::string text;
  bool trained = false;
};

// East Asian wide characters take two columns (Unicode's East_Asian_Width W and F, by blocks).
std::size_t width_of(char32_t c) {
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

// One character as it is printed: control characters of both sets, and those that change the
// direction of text, are escaped.
std::string printed(std::string_view text, const CodePoint& c) {
  if (c.value == '\n') return "\\n";
  if (c.value == '\t') return "\\t";
  if (c.value == '\r') return "\\r";
  const bool control = c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0) ||
                       (c.value >= 0x200B && c.value <= 0x200F) ||
                       (c.value >= 0x2028 && c.value <= 0x202E) ||
                       (c.value >= 0x2066 && c.value <= 0x2069);
  if (!control) return std::string(text.substr(0, c.size));
  std::string out;
  for (std::size_t i = 0; i < c.size; ++i) out += hex_escape(static_cast<unsigned char>(text[i]));
  return out;
}

// Writes characters to lines of at most preview_columns; color is switched off at the end of each
// line.
class MaskedLines {
 public:
  explicit MaskedLines(MaskStyle style) : style_(style) {}
  void run(const MaskedRun& run) {
    trained_ = run.trained;
    if (trained_ && style_ == MaskStyle::brackets) put("[[", 2);
    for (std::size_t at = 0; at < run.text.size();) {
      const auto c = code_point_at(run.text, at);
      const auto glyph = printed(std::string_view(run.text).substr(at), c);
      put(glyph, glyph.size() == c.size ? width_of(c.value) : glyph.size());
      if (c.value == '\n') break_line();
      at += c.size;
    }
    if (trained_ && style_ == MaskStyle::brackets) put("]]", 2);
    trained_ = false;
  }
  // A line of its own that is not part of the text.
  void note(std::string_view text) {
    break_line();
    put(text, text.size());
    break_line();
  }
  std::string finish() {
    break_line();
    return std::move(out_);
  }

 private:
  void put(std::string_view glyph, std::size_t width) {
    if (at_ + width > preview_columns) break_line();
    if (at_ == 0) {
      out_ += std::string(indent, ' ');
      at_ = indent;
    }
    const bool color = trained_ && style_ == MaskStyle::color;
    if (color != colored_) out_ += color ? green : plain;
    colored_ = color;
    out_ += glyph;
    at_ += width;
  }
  void break_line() {
    if (colored_) out_ += plain;
    colored_ = false;
    if (at_ > 0) out_ += '\n';
    at_ = 0;
  }

  MaskStyle style_;
  std::string out_;
  std::size_t at_ = 0;
  bool trained_ = false, colored_ = false;
};

void write_tokens(const ShownSequence& sequence, std::size_t begin, std::size_t end,
                  const TokenText& text, MaskedLines& lines) {
  const auto ids = std::span(sequence.ids).subspan(begin, end - begin);
  const auto weights = std::span(sequence.weights).subspan(begin, end - begin);
  const auto runs = token_runs(ids, weights, text);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    MaskedRun run{runs[i].text, runs[i].weight != 0};
    for (; i + 1 < runs.size() && (runs[i + 1].weight != 0) == run.trained; ++i)
      run.text += runs[i + 1].text;
    lines.run(run);
  }
}

std::string sequence_text(const ShownSequence& sequence, const TokenText& text, MaskStyle style) {
  const std::size_t size = sequence.ids.size();
  MaskedLines lines(style);
  if (size <= 2 * shown_tokens) {
    write_tokens(sequence, 0, size, text, lines);
  } else {
    write_tokens(sequence, 0, shown_tokens, text, lines);
    lines.note(cat("... ", size - 2 * shown_tokens, " tokens ..."));
    write_tokens(sequence, size - shown_tokens, size, text, lines);
  }
  return lines.finish();
}

}  // namespace

MaskStyle mask_style_of_stdout() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == 0) &&
                     term != nullptr && std::string_view(term) != "dumb";
  return color ? MaskStyle::color : MaskStyle::brackets;
}

std::string example_text(const ShownExample& example, const TokenText& text, MaskStyle style) {
  std::string out;
  for (const ShownSequence& sequence : example.sequences) {
    if (!sequence.title.empty())
      out += cat("  ", sequence.title, " (", sequence.ids.size(), " tokens):\n");
    out += sequence_text(sequence, text, style);
  }
  for (const std::string& note : example.notes) out += cat("  ", note, "\n");
  return out;
}

}  // namespace troupe::launch::commands
