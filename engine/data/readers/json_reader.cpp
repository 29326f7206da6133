#include "engine/data/readers/json_reader.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/data/readers/line_readers.h"
#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {
namespace {

// Walks JSON text by its brackets and strings only; the parser validates the rows later.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::size_t at() const { return at_; }
  std::int64_t line() const { return line_; }

  // The next character that is not white space, 0 at the end.
  char peek() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      step();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void step() { line_ += text_[at_++] == '\n'; }

  Result<> expect(char c) {
    if (peek() != c) return wrong(cat("'", c, "'"));
    step();
    return Result<>{};
  }

  tl::unexpected<Error> wrong(std::string_view expected) {
    const bool end = peek() == '\0';
    return fail(Errc::corrupt, cat(path_, ":", line_, ": expected ", expected, ", found ",
                                   end ? std::string("the end of the file (it may be truncated)")
                                       : quote(text_.substr(at_, 20))));
  }

  Result<> skip_string() {
    for (step(); at_ < text_.size() && text_[at_] != '"'; step())
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) step();
    return expect('"');
  }

  // One value of any kind, by its brackets.
  Result<> skip_value() {
    std::string open;
    do {
      const char c = peek();
      if (c == '"') {
        RETURN_IF_ERROR(skip_string());
      } else if (c == '{' || c == '[') {
        if (open.size() > max_row_depth + 2)
          return wrong(cat("at most ", max_row_depth, " levels of brackets"));
        open += c == '{' ? '}' : ']';
        step();
      } else if (c == '}' || c == ']') {
        if (open.empty() || open.back() != c)
          return wrong(open.empty() ? "a value" : std::string_view(&open.back(), 1));
        open.pop_back();
        step();
      } else if (c == ',' || c == ':') {
        if (open.empty()) return wrong("a value");
        step();
      } else if (auto ok = skip_word(); !ok) {
        return ok;
      }
    } while (!open.empty());
    return {};
  }

 private:
  Result<> skip_word() {
    const auto begin = at_;
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n\",:[]{}").find(text_[at_]) == std::string_view::npos)
      step();
    if (at_ == begin) return wrong("a value");
    return {};
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

// Scans a list, from '[' on.
Result<std::vector<RowSpan>> scan_list(Scanner& scan) {
  std::vector<RowSpan> rows;
  scan.step();
  if (scan.peek() == ']') {
    scan.step();
    return rows;
  }
  for (;;) {
    scan.peek();
    RowSpan row{scan.at(), 0, scan.line()};
    RETURN_IF_ERROR(scan.skip_value());
    row.end = scan.at();
    rows.push_back(row);
    if (scan.peek() == ']') {
      scan.step();
      return rows;
    }
    if (scan.peek() != ',') return scan.wrong("',' or ']' after a row");
    scan.step();
  }
}

// A conversation is a list of objects too, but it is one row.
bool is_dialogue(std::string_view key) {
  return key == "messages" || key == "conversations" || key == "prompt" || key == "chosen" ||
         key == "rejected";
}

// Scans an object, from '{' on. The rows are those of its one list of objects; without one the
// object itself is the only row.
Result<std::vector<RowSpan>> scan_object(Scanner& scan, std::string_view text,
                                         const std::string& path) {
  const RowSpan whole{scan.at(), 0, scan.line()};
  std::optional<std::vector<RowSpan>> found;
  std::string name;
  scan.step();
  while (scan.peek() == '"') {
    const auto begin = scan.at() + 1;
    RETURN_IF_ERROR(scan.skip_string());
    const std::string key(text.substr(begin, scan.at() - begin - 1));
    RETURN_IF_ERROR(scan.expect(':'));
    if (scan.peek() != '[' || is_dialogue(key)) {
      RETURN_IF_ERROR(scan.skip_value());
    } else {
      auto rows = scan_list(scan);
      if (!rows) return rows;
      if (!rows->empty() && text[rows->front().begin] == '{') {
        if (found)
          return fail(Errc::unsupported, cat(path, ": two lists of rows, ", quote(name), " and ",
                                             quote(key), ": keep the one that is meant"));
        found = std::move(*rows);
        name = key;
      }
    }
    if (scan.peek() != ',') break;
    scan.step();
  }
  RETURN_IF_ERROR(scan.expect('}'));
  if (found) return std::move(*found);
  return std::vector<RowSpan>{{whole.begin, scan.at(), whole.line}};
}

}  // namespace

Result<WholeText> WholeText::open(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  WholeText out(std::move(*file));
  if (!is_gzip(out.bytes())) return out;
  auto inside = unpack(path, 64u << 20);
  RETURN_IF_ERROR(inside);
  out.unpacked_ = std::move(*inside);
  return out;
}

std::string_view WholeText::bytes() const {
  return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
}

std::string_view WholeText::text() const {
  std::string_view text = is_gzip(bytes()) ? std::string_view(unpacked_) : bytes();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

Result<std::optional<std::vector<RowSpan>>> find_rows(std::string_view text,
                                                      const std::string& path) {
  Scanner scan(text, path);
  const char first = scan.peek();
  if (first != '[' && first != '{') return scan.wrong("'[' or '{' (a JSON file of rows)");
  auto rows = first == '[' ? scan_list(scan) : scan_object(scan, text, path);
  RETURN_IF_ERROR(rows);
  if (first == '{' && scan.peek() == '{') return std::nullopt;  // one object after another: lines
  if (scan.peek() != '\0') return scan.wrong("the end of the file after the list of rows");
  return std::optional(std::move(*rows));
}

JsonReader::JsonReader(std::string path, WholeText file, std::vector<RowSpan> rows)
    : path_(std::move(path)), file_(std::move(file)), rows_(std::move(rows)) {
  share_lines_ = std::ranges::adjacent_find(rows_, {}, &RowSpan::line) != rows_.end();
}

Result<std::optional<PendingRow>> JsonReader::next_pending() {
  if (at_ == rows_.size()) return std::nullopt;
  const auto& span = rows_[at_];
  const auto index = static_cast<std::int64_t>(at_++);
  PendingRow pending{
      .row = {Json(), path_, share_lines_ ? index + 1 : span.line, index, share_lines_},
      .text = std::nullopt};
  RETURN_IF_ERROR(check_row_size(span.end - span.begin, pending.row));
  pending.text.emplace(file_.text().substr(span.begin, span.end - span.begin));
  return pending;
}

Result<> JsonReader::seek(std::int64_t index) {
  at_ = std::min(static_cast<std::size_t>(std::max<std::int64_t>(index, 0)), rows_.size());
  return {};
}

}  // namespace troupe::engine::data
