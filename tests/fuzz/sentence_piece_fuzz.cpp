// Any bytes as a SentencePiece model: refused with a reason, or it encodes texts into ids of its
// pieces, and decodes these. Input: the file.
#include <cstdint>
#include <cstdlib>

#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;  // NOLINT: a program of one page
  static const fuzz::ScratchFolder folder;
  const auto tokenizer = engine::tokenizer::Tokenizer::load(
      folder.write("tokenizer.model", fuzz::text_of(data, size)));
  if (!tokenizer) {
    if (tokenizer.error().code != Errc::bad_input && tokenizer.error().code != Errc::unsupported)
      std::abort();
    return 0;
  }
  for (const char* text :
       {"", "Hello, world 123\n\n  \t<s>", "h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x99\x82",
        "aaaaaaaaaaaaaaaa"}) {
    const auto ids = tokenizer->encode(text, true);
    for (const auto id : ids)
      if (id < 0 || static_cast<std::size_t>(id) >= tokenizer->vocab_size()) std::abort();
    tokenizer->decode(ids, false);
  }
  return 0;
}
