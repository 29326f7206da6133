#include "engine/data/loader/dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"
#include "engine/data/loader/example_reader.h"

namespace troupe::engine::data {

namespace {

// Distinct from the streams of permutations (sampler.h).
constexpr std::uint64_t split_stream = ~std::uint64_t{0};

// Stratum of a row: 1 / split consecutive rows form one.
std::int64_t stratum_of(std::int64_t number, double split) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(number) * split));
}

// The first row of a stratum.
std::int64_t first_of(std::int64_t stratum, double split) {
  auto row = static_cast<std::int64_t>(std::ceil(static_cast<double>(stratum) / split));
  while (row > 0 && stratum_of(row - 1, split) >= stratum) --row;
  while (stratum_of(row, split) < stratum) ++row;
  return row;
}

constexpr std::size_t sampled_blocks = 64, block_size = 1u << 20;
constexpr std::size_t hashed_at_once = 16u << 20;

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

std::string hexadecimal(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

bool is_held_out(std::int64_t number, double split, std::uint64_t seed) {
  if (!(split > 0)) return false;
  const auto stratum = stratum_of(number, split), begin = first_of(stratum, split),
             end = first_of(stratum + 1, split);
  const auto chosen = uniform_below(static_cast<std::uint64_t>(end - begin), seed, split_stream,
                                    static_cast<std::uint64_t>(stratum));
  return number == begin + static_cast<std::int64_t>(chosen);
}

bool RowSelection::uses(std::int64_t number) const {
  return split == 0 || is_held_out(number, split, seed) == held_out;
}

Result<FileFingerprint> fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  const std::unique_ptr<XXH3_state_t, FreeHash> state(XXH3_createState());
  check(state && XXH3_128bits_reset(state.get()) == XXH_OK, "xxhash: no memory");
  for (std::size_t at = 0; at < bytes.size(); at += hashed_at_once) {
    RETURN_IF_ERROR(check_cancelled());
    const auto size = std::min(hashed_at_once, bytes.size() - at);
    XXH3_128bits_update(state.get(), bytes.data() + at, size);
  }
  return FileFingerprint{path, bytes.size(), hexadecimal(XXH3_128bits_digest(state.get()))};
}

Result<FileFingerprint> sampled_fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  const auto bytes = file->bytes();
  if (bytes.size() <= sampled_blocks * block_size) return fingerprint(path);
  std::string all;
  for (std::size_t i = 0; i < sampled_blocks; ++i) {
    const auto begin = (bytes.size() - block_size) / (sampled_blocks - 1) * i;
    const auto* from = bytes.data() + (i + 1 == sampled_blocks ? bytes.size() - block_size : begin);
    const auto hash = XXH3_128bits(from, block_size);
    all += hexadecimal(hash);
  }
  return FileFingerprint{path, bytes.size(),
                         cat("sampled-", hexadecimal(XXH3_128bits(all.data(), all.size())))};
}

namespace {

constexpr std::size_t max_reasons = 16, max_unread = 32;

template <class T>
Result<> load_source(const DataOptions& options, DataSource source, const TextEncoder& encoder,
                     Dataset<T>& out) {
  SourceInfo info{.size = 0, .weight = source.weight, .epochs = source.epochs};
  const auto before = out.examples.size();
  auto reader = ExampleReader<T>::open(options, std::move(source), encoder);
  RETURN_IF_ERROR(reader);
  reader->report().bad = out.report.bad;  // the limit applies to all sources together
  for (;;) {
    auto examples = reader->next();
    RETURN_IF_ERROR(examples);
    if (examples->empty()) break;
    std::move(examples->begin(), examples->end(), std::back_inserter(out.examples));
  }
  for (const auto& path : reader->files()) {  // after the rows: of a sparse file they are an error
    auto print = fingerprint(path);
    RETURN_IF_ERROR(print);
    out.files.push_back(std::move(*print));
  }
  reader->report().bad -= out.report.bad;
  if (!reader->report().unread.empty())
    log_info(cat("data: ", reader->files().front(), ": ", reader->report().unread_text()));
  out.report.add(reader->report());
  info.size = out.examples.size() - before;
  if (info.size == 0) return reader->no_examples();
  out.sources.push_back(info);
  return {};
}

}  // namespace

std::vector<DataSource> DataOptions::sources() const {
  if (!mix.empty()) return mix;
  return {{.paths = paths,
           .weight = 1,
           .epochs = 0,
           .layout = layout,
           .columns = columns,
           .system = system}};
}

void DataReport::add_unused(const UnusedRows& more) {
  for (auto& known : unused) {
    if (known.why != more.why || known.malformed != more.malformed) continue;
    known.rows += more.rows;
    return;
  }
  if (unused.size() < max_reasons) return unused.push_back(more);
  if (unused.size() == max_reasons) unused.push_back({"other reasons", more.first, false, 0});
  unused.back().rows += more.rows;
}

void DataReport::add_unread(const std::string& column, std::int64_t rows_with_it) {
  if (const auto known = unread.find(column); known != unread.end())
    known->second += rows_with_it;
  else if (unread.size() < max_unread)
    unread.emplace(column, rows_with_it);
}

std::string DataReport::unread_text() const {
  std::vector<std::string> out;
  for (const auto& [column, count] : unread)
    out.push_back(cat(quote(column, 40), " (", count, count == 1 ? " row)" : " rows)"));
  if (unread.size() == max_unread) out.push_back("...");
  const bool prompts = layout == Layout::prompt_answer;  // whose rows reward programs get
  return out.empty() ? ""
                     : cat("unread columns", prompts ? " (but by reward programs): " : ": ",
                           join(out, ", "));
}

void DataReport::add(const DataReport& other) {
  layout = other.layout;
  rows += other.rows;
  bad += other.bad;
  untrainable += other.untrainable;
  too_long += other.too_long;
  held_out += other.held_out;
  truncated += other.truncated;
  cut_tokens += other.cut_tokens;
  chunked += other.chunked;
  chunks += other.chunks;
  for (const auto& reason : other.unused) add_unused(reason);
  for (const auto& [column, count] : other.unread) add_unread(column, count);
}

std::string DataReport::text() const {
  std::string out = cat(rows, " rows read as ", name_of(layout), ", ", used(), " used");
  if (truncated > 0)
    out += cat(", ", truncated, " of them truncated to train.max_length (", cut_tokens,
               " tokens lost)");
  if (chunked > 0)
    out += cat(", ", chunked, " of them split into ", chunks,
               " examples of at most train.max_length tokens");
  if (held_out > 0) out += cat(", ", held_out, " held out by data.split");
  for (const auto& reason : unused)
    if (!reason.malformed)
      out += cat(", ", reason.rows, " dropped: ", reason.why, " (first: ", reason.first, ")");
  const auto malformed = std::find_if(unused.begin(), unused.end(),
                                      [](const auto& reason) { return reason.malformed; });
  if (bad > 0) out += cat(", ", bad, " malformed");
  if (malformed != unused.end())
    out += cat(" (first: ", malformed->first, ": ", malformed->why, ")");
  if (!unread.empty()) out += cat("; ", unread_text());
  return out;
}

namespace {

// Documents that are far shorter than a sequence usually are lines of longer ones.
void warn_of_short_documents(const DataOptions& options, const std::vector<SftExample>& examples) {
  constexpr double usual_share = 0.05;
  const auto longest = options.encode.max_length;
  if (!options.reading.documents || examples.empty() || longest <= 0) return;
  std::vector<std::size_t> lengths;
  for (const auto& example : examples) lengths.push_back(example.ids.size());
  const auto middle = lengths.begin() + std::ssize(lengths) / 2;
  std::nth_element(lengths.begin(), middle, lengths.end());
  if (static_cast<double>(*middle) >= usual_share * static_cast<double>(longest)) return;
  log_warning(cat("data: the median document has ", *middle, " tokens, train.max_length is ",
                  longest,
                  "; if the rows are lines of longer texts, set data.sample_by, or give one row a "
                  "document"));
}
void warn_of_short_documents(const DataOptions&, const auto&) {
}

}  // namespace

template <class T>
Result<Dataset<T>> load(const DataOptions& options, const TextEncoder& encoder) {
  Dataset<T> out;
  for (auto& source : options.sources())
    RETURN_IF_ERROR(load_source(options, std::move(source), encoder, out));
  if (options.mix.empty()) out.sources.clear();
  const auto& report = out.report;
  if (report.bad + report.untrainable + report.truncated > 0)
    log_warning(cat("data: ", report.text()));
  warn_of_short_documents(options, out.examples);
  return out;
}

template Result<Dataset<SftExample>> load(const DataOptions&, const TextEncoder&);
template Result<Dataset<PairExample>> load(const DataOptions&, const TextEncoder&);
template Result<Dataset<UnpairedExample>> load(const DataOptions&, const TextEncoder&);
template Result<Dataset<StepExample>> load(const DataOptions&, const TextEncoder&);
template Result<Dataset<PromptRow>> load(const DataOptions&, const TextEncoder&);

}  // namespace troupe::engine::data
