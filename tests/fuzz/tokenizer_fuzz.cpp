// Any text as a tokenizer.json: refused with a reason, or it encodes and decodes, and a stream of
// ids is decoded as all of them at once. Input: the file.
#include <cstdint>
#include <cstdlib>

#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe::engine::tokenizer;  // NOLINT: a program of one page

void check_decode(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool skip_special) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  text += stream.finish();
  if (text != tokenizer.decode(ids, skip_special)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::fuzz::ScratchFolder folder;
  const auto tokenizer =
      Tokenizer::load(folder.write("tokenizer.json", troupe::fuzz::text_of(data, size)));
  if (!tokenizer) return 0;
  for (const std::string_view text :
       {"", "Hello, world 123\n\n  \t<s>", "h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x99\x82",
        "\xff\xc3 a\xcc\x81 \xe2\x96\x81x"}) {
    try {
      const auto ids = tokenizer->encode(text, true);
      for (const TokenId id : ids)
        if (id < 0 || static_cast<std::size_t>(id) >= tokenizer->vocab_size()) std::abort();
      check_decode(*tokenizer, ids, false);
      check_decode(*tokenizer, ids, true);
    } catch (const troupe::Failure& failure) {
      if (failure.error().code != troupe::Errc::bad_input) throw;
    }
  }
  return 0;
}
