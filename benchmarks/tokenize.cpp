// Benchmark of encoding, document by document. Usage: tokenize [FLAGS] [FOLDER TEXT...]: texts are
// split at <|endoftext|>, or into lines if they do not contain it; without arguments a synthetic
// tokenizer of the shape's vocabulary and 4 MB of text are used. The peer is Hugging Face's
// tokenizers on one core, if python3 (or $TROUPE_PYTHON) has them.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "benchmarks/support/bandwidth.h"
#include "benchmarks/support/clock.h"
#include "benchmarks/support/documents.h"
#include "benchmarks/support/program.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/tokenizer.h"

namespace {

using namespace troupe::benchmarks;
using troupe::cat;
using troupe::to_text;
using troupe::value_or_throw;
using troupe::engine::tokenizer::Tokenizer;

// Best of the rounds in processor seconds, which other load does not affect; the peer is timed in
// the same way.
constexpr const char* python_program = R"(
import os, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    from tokenizers import Tokenizer, __version__
except ImportError:
    sys.exit()
tokenizer = Tokenizer.from_file(os.path.join(sys.argv[2], "tokenizer.json"))
documents = []
for path in sys.argv[3:]:
    text = open(path, encoding="utf-8", newline="").read()
    documents += [d for d in text.split("<|endoftext|>" if "<|endoftext|>" in text else "\n") if d]
best = float("inf")
for _ in range(int(sys.argv[1])):
    start = time.process_time()
    for document in documents:
        tokenizer.encode(document, add_special_tokens=False)
    best = min(best, time.process_time() - start)
print(sum(len(d.encode()) for d in documents) / best / 1e6, __version__)
)";

PeerAnswer ask_tokenizers(const Options& options, const std::vector<std::string>& words) {
  const char* python = std::getenv("TROUPE_PYTHON");
  std::string command =
      cat(quoted(python ? python : "python3"), " -c ", quoted(python_program), " ", options.rounds);
  for (const std::string& word : words) command += cat(" ", quoted(word));
  const std::string said = output_of(command + " 2>/dev/null");
  if (said.empty())
    return {{}, "no peer: python3, or $TROUPE_PYTHON, cannot import Hugging Face's tokenizers", 0};
  const double speed = std::strtod(said.c_str(), nullptr);
  return {speed,
          cat("Hugging Face tokenizers ",
              said.substr(said.find(' ') + 1, said.find('\n') - said.find(' ') - 1), ", ",
              to_text(speed, 2), " MB/s of processor time"),
          0};
}

Outcome measure(const Options& options) {
  const auto scratch = std::make_shared<ScratchFolder>();
  const auto words = folder_and_texts(options, *scratch);
  const Documents documents = documents_of(words);
  const auto tokenizer = value_or_throw(Tokenizer::load(words[0]));
  double best = 1e30;
  std::size_t tokens = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const double start = processor_seconds();
    tokens = encode(tokenizer, documents, 0, 1);
    best = std::min(best, processor_seconds() - start);
  }
  const double peak = peak_rss_mib();
  Bandwidth memory(options.threads, options.tiny());
  const Pairs pairs = in_pairs(
      options.rounds, [&] { return 1e3 * memory.copy(); },
      [&] { return seconds([&] { encode_all(tokenizer, documents, options.threads); }); });
  say(cat(documents.texts.size(), " documents, ", to_text(documents.megabytes, 2), " MB, ", tokens,
          " tokens"));
  say(cat("troupe: ", to_text(documents.megabytes / best, 2),
          " MB/s of processor time on one core; ", to_text(documents.megabytes / pairs.time(), 2),
          " MB/s with ", options.threads, " threads, a copy in memory ",
          to_text(pairs.ceiling(), 0), " MB/s"));
  return {documents.megabytes / pairs.time(),
          "MB/s",
          pairs.ceiling(),
          pairs.ratio(documents.megabytes),
          peak,
          [options, words, scratch] { return ask_tokenizers(options, words); },
          documents.megabytes / best};
}

}  // namespace

int main(int count, char** words) {
  return run("tokenize", {.batch = 1, .words = true}, count, words, measure);
}
