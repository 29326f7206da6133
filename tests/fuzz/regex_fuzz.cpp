// Any text as a regular expression of tokenizer.json: refused, or its matches are ranges of the
// text in order, found within the limits. Input: the expression, a line end, the text.
#include <cstdint>
#include <cstdlib>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/regex.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;  // NOLINT: a program of one page
  const std::string input = repair_utf8(fuzz::text_of(data, size));
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto regex = engine::tokenizer::Regex::compile(input.substr(0, end), "fuzz");
  if (!regex) {
    if (regex.error().code != Errc::bad_input && regex.error().code != Errc::unsupported)
      std::abort();
    return 0;
  }
  const std::string text = end < input.size() ? input.substr(end + 1) : "";
  std::vector<engine::tokenizer::Range> found;
  try {
    regex->find_all(text, found);
  } catch (const Failure& failure) {
    if (failure.error().code != Errc::bad_input) std::abort();
    return 0;
  }
  std::size_t at = 0;
  for (const auto& range : found) {
    if (range.begin < at || range.end < range.begin || range.end > text.size()) std::abort();
    at = range.end;
  }
  return 0;
}
