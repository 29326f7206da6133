// Documents of text, and the rate of encoding them: the work of `tokenize`, with which `preprocess`
// is compared.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/support/options.h"
#include "benchmarks/support/scratch.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::benchmarks {

struct Documents {
  std::vector<std::string> texts;
  double megabytes = 0;

  /// Splits a file at <|endoftext|>, or into lines if it does not contain it.
  void add_file(const std::string& path);
};

/// The words of the command line, a folder with a tokenizer and texts; without words, a synthetic
/// tokenizer and text in `scratch`. Errc::usage without texts.
std::vector<std::string> folder_and_texts(const Options& options, const ScratchFolder& scratch);
Documents documents_of(const std::vector<std::string>& folder_and_texts);

/// Encodes every `threads`-th document, from `first` on; returns the number of tokens.
std::size_t encode(const engine::tokenizer::Tokenizer& tokenizer, const Documents& documents,
                   std::size_t first, int threads);
/// Encodes all documents with this number of threads.
void encode_all(const engine::tokenizer::Tokenizer& tokenizer, const Documents& documents,
                int threads);

}  // namespace troupe::benchmarks
