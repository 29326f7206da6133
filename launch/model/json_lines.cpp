#include "launch/model/json_lines.h"

#include <unistd.h>

#include <cmath>
#include <iostream>
#include <istream>
#include <limits>
#include <ostream>

#include "engine/base/text.h"

namespace troupe::launch::model {

namespace {

// Bounds the memory of the token ids of one line.
constexpr std::size_t max_line = std::size_t{4} << 20;

Json error_line(std::string_view why) {
  std::string text(why);
  std::size_t bad = 0;
  while (!valid_utf8(text, &bad)) text[bad] = '?';
  return Json::Object{{"error", std::move(text)}};
}

/// False at the end of the input. A line that is too long is read to its end but not kept.
bool read_line(std::istream& in, std::string& line, bool& too_long) {
  line.clear();
  too_long = false;
  std::streambuf* buffer = in.rdbuf();
  bool any = false;
  for (int c = buffer->sbumpc(); c != std::char_traits<char>::eof(); c = buffer->sbumpc()) {
    if (c == '\n') return true;
    any = true;
    if (line.size() < max_line)
      line.push_back(static_cast<char>(c));
    else
      too_long = true;
  }
  return any;
}

Json answered(const std::string& line, bool too_long, std::size_t number,
              const std::function<Result<Json>(const Json&)>& answer) {
  if (too_long) return error_line(cat("line ", number, ": longer than ", max_line, " bytes"));
  const auto parsed = parse_json(line, cat("line ", number));
  if (!parsed) return error_line(parsed.error().what);
  if (!parsed->is_object())
    return error_line(cat("line ", number, ": expected an object, found ", parsed->type_name()));
  try {
    auto result = answer(*parsed);
    return result ? std::move(*result) : error_line(result.error().what);
  } catch (const std::exception& error) {
    return error_line(error.what());
  }
}

}  // namespace

Result<> answer_lines(std::istream& in, std::ostream& out,
                      const std::function<Result<Json>(const Json&)>& answer) {
  if (&in == &std::cin && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1)
    std::cerr
        << "reading lines of JSON from the terminal; Ctrl-D ends, --help lists what a line may "
           "have\n";
  std::string line;
  bool too_long = false;
  try {
    for (std::size_t number = 1; read_line(in, line, too_long); ++number) {
      const std::string text = answered(line, too_long, number, answer).dump();
      if (!(out << text << '\n' << std::flush))
        return fail(Errc::io, "cannot write to stdout: the reader has exited or the disk is full");
    }
  } catch (const std::ios_base::failure& failure) {  // for example, stdin is a directory
    return fail(Errc::io,
                cat("cannot read stdin: ", failure.what(), "; expected a file or pipe of lines"));
  }
  return {};
}

Json number_or_null(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

Result<std::vector<std::int32_t>> ids_of(const Json& line, std::int64_t vocabulary,
                                         std::string_view key) {
  const Json* ids = line.find(key);
  if (!ids || !ids->is_array())
    return fail(Errc::bad_input, cat("the key ", key, " must be a list of token ids"));
  const std::int64_t end =
      vocabulary > 0 ? vocabulary : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  std::vector<std::int32_t> out;
  out.reserve(ids->array().size());
  for (const Json& id : ids->array()) {
    if (!id.is_integer() || id.integer() < 0 || id.integer() >= end) {
      return fail(Errc::bad_input, cat(key, "[", out.size(), "]: expected a token id from 0 to ",
                                       end - 1, ", found ", quote(id.dump())));
    }
    out.push_back(static_cast<std::int32_t>(id.integer()));
  }
  return out;
}

}  // namespace troupe::launch::model
