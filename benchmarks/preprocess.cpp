// Benchmark of `troupe preprocess`: rows of jsonl into Megatron's token files, compared in the same
// run with encoding the same documents in memory with as many threads (the work of `tokenize`).
// Usage: preprocess [FLAGS] [FOLDER TEXT...], as for `tokenize`. Loading the tokenizer is not
// counted.
#include <filesystem>
#include <utility>

#include "benchmarks/support/clock.h"
#include "benchmarks/support/documents.h"
#include "benchmarks/support/program.h"
#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/tools/preprocess/pipeline.h"
#include "launch/tools/preprocess/text_columns.h"

namespace {

using namespace troupe::benchmarks;
using troupe::cat;
using troupe::Json;
using troupe::to_text;
using troupe::value_or_throw;
using troupe::engine::tokenizer::Tokenizer;

/// Writes the documents as rows {"text"}; returns the path.
std::string write_rows(const Documents& documents, const ScratchFolder& scratch) {
  std::string rows;
  for (const std::string& text : documents.texts)
    rows += Json(Json::Object{{"text", text}}).dump() + "\n";
  const std::string path = (scratch.path() / "rows.jsonl").string();
  value_or_throw(troupe::write_file_durably(path, rows));
  return path;
}

/// Reads, encodes and writes all rows, as the command does; the files are made anew.
void preprocess(const std::string& rows,
                const troupe::launch::tools::preprocess::TextColumns& encoder,
                const Tokenizer& tokenizer, const ScratchFolder& scratch, int threads) {
  std::filesystem::remove_all(scratch.path() / "out");
  std::filesystem::create_directory(scratch.path() / "out");
  const std::string prefix = (scratch.path() / "out/rows").string();
  auto source = value_or_throw(troupe::launch::tools::preprocess::RowSource::open({rows}, 0, {}));
  auto files = value_or_throw(troupe::launch::tools::preprocess::TokenFiles::open(
      {.prefix = prefix,
       .outputs = encoder.outputs(),
       .type = troupe::engine::data::megatron::token_type_for(tokenizer.vocab_size()),
       .progress_file = prefix + ".json",
       .settings = Json::Object{}}));
  troupe::launch::tools::preprocess::Preprocessing(std::move(source), encoder, std::move(files),
                                                   threads, 0)
      .run();
}

Outcome measure(const Options& options) {
  troupe::set_log_level(troupe::LogLevel::warning);
  const ScratchFolder scratch;
  const auto words = folder_and_texts(options, scratch);
  const Documents documents = documents_of(words);
  const std::string rows = write_rows(documents, scratch);
  const auto tokenizer = value_or_throw(Tokenizer::load(words[0]));
  const auto encoder = value_or_throw(troupe::launch::tools::preprocess::TextColumns::create(
      value_or_throw(Tokenizer::load(words[0])),
      {.columns = {"text"}, .special_tokens = false, .append_eod = false}));
  std::vector<double> processor_ratios;
  double alone = 0;  // processor seconds of encoding in this round
  const Pairs pairs = in_pairs(
      options.rounds,
      [&] {
        const double start = processor_seconds();
        const double time = seconds([&] { encode_all(tokenizer, documents, options.threads); });
        alone = processor_seconds() - start;
        return documents.megabytes / time;
      },
      [&] {
        const double start = processor_seconds();
        const double time =
            seconds([&] { preprocess(rows, encoder, tokenizer, scratch, options.threads); });
        processor_ratios.push_back(alone / (processor_seconds() - start));
        return time;
      });
  const double processor_ratio = pairs.middle(processor_ratios);
  const double rate = documents.megabytes / pairs.time(), ratio = pairs.ratio(documents.megabytes);
  say(cat(documents.texts.size(), " documents, ", to_text(documents.megabytes, 2), " MB"));
  say(cat("troupe preprocess: ", to_text(rate, 2), " MB/s with ", options.threads,
          " threads, ratio ", to_text(ratio, 2), " of encoding alone, ",
          to_text(pairs.ceiling(), 2), " MB/s; ", to_text(processor_ratio, 2),
          " by processor time, which other load hardly affects"));
  return {.value = rate,
          .unit = "MB/s",
          .ceiling = pairs.ceiling(),
          .ratio = ratio,
          .peak_rss_mib = peak_rss_mib(),
          .figures = {{"processor_ratio", processor_ratio}}};
}

}  // namespace

int main(int count, char** words) {
  return run("preprocess", {.batch = 1, .words = true}, count, words, measure);
}
