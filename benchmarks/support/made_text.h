// A synthetic tokenizer and a text for it, for machines without real ones.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::benchmarks {

/// Returns a byte-level BPE tokenizer.json of about `vocabulary` pieces: the letters, and prefixes
/// of words made of syllables.
std::string made_tokenizer(std::int64_t vocabulary);
/// Returns documents of about `bytes` bytes of those words, the first ones most frequent, with
/// <|endoftext|> between them.
std::string made_text(std::int64_t vocabulary, std::size_t bytes);

}  // namespace troupe::benchmarks
