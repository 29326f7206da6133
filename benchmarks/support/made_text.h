// A tokenizer and a text for it, made up: for machines on which nobody has put real ones.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::benchmarks {

/// A byte-level BPE tokenizer.json of about `vocabulary` pieces: the letters, and the beginnings of
/// words of syllables.
std::string made_tokenizer(std::int64_t vocabulary);
/// Documents of those words, of which early ones are frequent, with <|endoftext|> between them;
/// about `bytes` long.
std::string made_text(std::int64_t vocabulary, std::size_t bytes);

}  // namespace troupe::benchmarks
