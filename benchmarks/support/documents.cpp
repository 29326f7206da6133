#include "benchmarks/support/documents.h"

#include <algorithm>
#include <string_view>
#include <thread>

#include "benchmarks/support/made_text.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

constexpr std::string_view mark = "<|endoftext|>";

}  // namespace

void Documents::add_file(const std::string& path) {
  const std::string text = value_or_throw(read_file(path));
  const std::string_view separator = text.find(mark) == std::string::npos ? "\n" : mark;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    if (end > from) {
      texts.push_back(text.substr(from, end - from));
      megabytes += 1e-6 * static_cast<double>(end - from);
    }
    from = end + separator.size();
  }
}

std::vector<std::string> folder_and_texts(const Options& options, const ScratchFolder& scratch) {
  if (options.words.size() == 1)
    throw Failure({Errc::usage, "a folder with a tokenizer wants texts behind it"});
  if (!options.words.empty()) return options.words;
  const std::string folder = scratch.path().string(), text = folder + "/text.txt";
  value_or_throw(
      write_file_durably(folder + "/tokenizer.json",
                         made_tokenizer(options.tiny() ? 1000 : options.shape.vocabulary)));
  value_or_throw(write_file_durably(
      text, made_text(options.shape.vocabulary, options.tiny() ? 10000 : 4000000)));
  return {folder, text};
}

Documents documents_of(const std::vector<std::string>& folder_and_texts) {
  Documents out;
  for (std::size_t i = 1; i < folder_and_texts.size(); ++i) out.add_file(folder_and_texts[i]);
  return out;
}

std::size_t encode(const engine::tokenizer::Tokenizer& tokenizer, const Documents& documents,
                   std::size_t first, int threads) {
  std::size_t tokens = 0;
  for (std::size_t i = first; i < documents.texts.size(); i += static_cast<std::size_t>(threads))
    tokens += tokenizer.encode(documents.texts[i], false).size();
  return tokens;
}

void encode_all(const engine::tokenizer::Tokenizer& tokenizer, const Documents& documents,
                int threads) {
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(
        [&, i] { encode(tokenizer, documents, static_cast<std::size_t>(i), threads); });
  encode(tokenizer, documents, 0, threads);
}

}  // namespace troupe::benchmarks
