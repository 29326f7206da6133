#include "engine/data/dataset.h"

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/data/columns.h"
#include "engine/data/steps.h"
#include "engine/data/unpaired.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t examples_kept = 10;

// Counts rows that are left out; the limit turns one into the end of the run.
class Account {
 public:
  Account(DataReport& report, std::int64_t limit) : report_(report), limit_(limit) {}

  Result<> bad(const Error& error) {
    if (error.code != Errc::bad_input) return fail(error);
    ++report_.bad;
    keep(error.what);
    if (report_.bad > limit_)
      return fail(Errc::bad_input, limit_ == 0
                                       ? cat(error.what, " (data.max_bad_rows=0: no malformed row is left out)")
                                       : cat(error.what, " (the ", report_.bad, "th malformed row; data.max_bad_rows=", limit_, ")"));
    log_warning(cat("row left out: ", error.what));
    return {};
  }
  void untrainable(const std::string& what) { ++report_.untrainable, keep(what); }

 private:
  void keep(const std::string& what) {
    if (report_.examples.size() < examples_kept) report_.examples.push_back(what);
  }
  DataReport& report_;
  std::int64_t limit_;
};

bool was_cut(const SftExample& example) { return example.truncated; }
bool was_cut(const PairExample& example) { return example.chosen.truncated || example.rejected.truncated; }
bool was_cut(const StepExample& example) { return example.truncated; }
bool was_cut(const UnpairedRow& row) { return row.truncated; }
bool was_cut(const PromptRow&) { return false; }

template <class T>
using Encode = Result<std::optional<T>>(const Sample&, const TextEncoder&, const EncodeOptions&);

// One load: the state that its steps share.
template <class T>
class Load {
 public:
  Load(const DataOptions& options, Purpose purpose, const TextEncoder& encoder, Encode<T>* encode)
      : options_(options), encoder_(encoder), encode_(encode), account_(out_.report, options.bad_row_limit) {
    layout_ = {.purpose = purpose, .layout = options.layout, .columns = options.columns, .chat = options.chat};
    layout_.chat_template = encoder.has_chat_template(), layout_.vocabulary = encoder.vocabulary();
  }

  Result<Dataset<T>> run() {
    if (auto ok = check_column_names(options_.columns); !ok) return fail(ok.error());
    if (auto ok = check_layout(options_.layout, layout_.purpose); !ok) return fail(ok.error());
    auto files = list_data_files(options_.paths);
    if (!files) return fail(files.error());
    if (files->empty()) return fail(Errc::usage, "no data: data.path names no file");
    for (const auto& path : *files)
      if (auto ok = read(path); !ok) return fail(ok.error());
    out_.report.layout = layout_.layout;
    if (out_.examples.empty()) return fail(Errc::bad_input, cat(files->front(), ": no row to train on: ", out_.report.text()));
    if (out_.report.bad + out_.report.untrainable + out_.report.truncated > 0) log_warning(cat("data: ", out_.report.text()));
    return std::move(out_);
  }

 private:
  Result<> read(const std::string& path) {
    auto print = fingerprint(path);
    if (!print) return fail(print.error());
    out_.files.push_back(std::move(*print));
    auto reader = open_rows(path);
    if (!reader) return fail(reader.error());
    for (;;) {
      auto row = (*reader)->next();
      if (row && !*row) return {};
      ++out_.report.rows;
      auto used = row ? use(**row) : Result<>(fail(row.error()));
      if (!used)
        if (auto ok = account_.bad(used.error()); !ok) return ok;
    }
  }

  Result<> use(const Row& row) {
    if (layout_.layout == Layout::automatic) {
      auto found = detect_layout(row, layout_);
      if (!found) return fail(found.error());
      layout_.layout = *found;
    }
    auto sample = to_sample(row, layout_);
    if (!sample) return fail(sample.error());
    auto example = encoded(*sample);
    if (!example) return fail(example.error().code, cat(row.where(), ": ", example.error().what));
    if (!*example) {
      account_.untrainable(cat(row.where(), options_.encode.leave_out_longer ? ": not within " : ": nothing to train on within ",
                               options_.encode.max_length, " tokens"));
      return {};
    }
    out_.report.truncated += was_cut(**example);
    out_.examples.push_back(std::move(**example));
    return {};
  }

  // A tokenizer's patterns give up on hostile text by throwing; that is the row's fault.
  Result<std::optional<T>> encoded(const Sample& sample) {
    try {
      return encode_(sample, encoder_, options_.encode);
    } catch (const Failure& failure) { return fail(failure.error()); }
  }

  const DataOptions& options_;
  const TextEncoder& encoder_;
  Encode<T>* encode_;
  LayoutOptions layout_;
  Dataset<T> out_;
  Account account_;
};

}  // namespace

std::string DataReport::text() const {
  std::string out = cat(rows, " rows read as ", to_string(layout), ", ", rows - bad - untrainable, " used");
  if (truncated > 0) out += cat(", ", truncated, " of them cut to the maximum length");
  if (untrainable > 0) out += cat(", ", untrainable, " too long to have anything to train on");
  if (bad > 0) out += cat(", ", bad, " malformed");
  if (!examples.empty()) out += cat(" (first left out: ", examples.front(), ")");
  return out;
}

Result<Dataset<SftExample>> load_sft(const DataOptions& options, const TextEncoder& encoder) {
  return Load<SftExample>(options, Purpose::sft, encoder, &encode_sft).run();
}
Result<Dataset<PairExample>> load_pairs(const DataOptions& options, const TextEncoder& encoder) {
  return Load<PairExample>(options, Purpose::pairs, encoder, &encode_pair).run();
}
Result<Dataset<UnpairedExample>> load_unpaired(const DataOptions& options, const TextEncoder& encoder) {
  auto rows = Load<UnpairedRow>(options, Purpose::unpaired, encoder, &encode_unpaired).run();
  if (!rows) return fail(rows.error());
  Dataset<UnpairedExample> out{{}, std::move(rows->files), std::move(rows->report)};
  for (auto& row : rows->examples) std::move(row.examples.begin(), row.examples.end(), std::back_inserter(out.examples));
  return out;
}
Result<Dataset<StepExample>> load_steps(const DataOptions& options, const TextEncoder& encoder) {
  return Load<StepExample>(options, Purpose::steps, encoder, &encode_steps).run();
}
Result<Dataset<PromptRow>> load_prompts(const DataOptions& options, const TextEncoder& encoder) {
  return Load<PromptRow>(options, Purpose::prompts, encoder, &encode_prompt).run();
}

}  // namespace troupe::engine::data
