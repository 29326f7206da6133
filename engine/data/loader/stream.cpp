#include "engine/data/loader/stream.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/data/loader/resume.h"

namespace troupe::engine::data {
namespace {

// Approximate memory of an example.
std::size_t bytes_of(const SftExample& example) {
  return 64 + 8 * example.ids.size();
}
std::size_t bytes_of(const PairExample& example) {
  return bytes_of(example.chosen) + bytes_of(example.rejected);
}
std::size_t bytes_of(const UnpairedExample& example) {
  return 64 + 4 * example.prompt.size() + 8 * example.answer.size();
}
std::size_t bytes_of(const StepExample& example) {
  return 64 + 8 * example.ids.size();
}
std::size_t bytes_of(const PromptRow& row) {
  return 256 + 4 * row.ids.size() + row.text.size() + row.answer.dump().size() +
         2 * row.columns.dump().size() + 2 * row.messages.dump().size();
}

// The first row of a block. `state` has its file and row.
Result<RowPosition> row_position(const Json& state, const RowSelection& selection) {
  RowPosition begin{.file = static_cast<std::size_t>(state.find("file")->integer()),
                    .row = state.find("row")->integer()};
  if (!selection.any()) return begin;
  const auto before = get_integer(state, "number", data_state);
  if (!before) return cannot_resume("data.max_samples or data.split was not set, now it is");
  begin.number = *before;
  return begin;
}

}  // namespace

template <class T>
Result<Stream<T>> Stream<T>::open(DataOptions options, const TextEncoder& encoder,
                                  const LoaderOptions& loader) {
  Stream out(std::move(options), loader);
  for (auto& source : out.options_->sources()) {
    auto reader = ExampleReader<T>::open(*out.options_, source, encoder);
    RETURN_IF_ERROR(reader);
    for (const auto& path : reader->files()) {
      const auto stamp = stamp_of(path);
      RETURN_IF_ERROR(stamp);
      auto print = sampled_fingerprint(path);
      RETURN_IF_ERROR(print);
      out.stamps_.push_back(*stamp);
      out.files_.push_back(std::move(*print));
    }
    out.sources_.push_back({.options = source, .reader = std::move(*reader)});
  }
  return out;
}

// A file with another stamp is read again: it may be a copy, or only have been touched.
template <class T>
Result<> Stream<T>::check_unchanged(const Source& source) {
  for (const std::string& path : source.reader.files()) {
    const auto at = static_cast<std::size_t>(
        std::ranges::find(files_, path, &FileFingerprint::path) - files_.begin());
    const auto stamp = stamp_of(path);
    RETURN_IF_ERROR(stamp);
    if (*stamp == stamps_[at]) continue;
    const auto print = sampled_fingerprint(path);
    RETURN_IF_ERROR(print);
    if (*print != files_[at])
      return fail(Errc::bad_input,
                  cat("the data file ", path, " was replaced while the run reads it: it had ",
                      files_[at].bytes, " bytes, XXH3 ", files_[at].xxh3, ", and now has ",
                      print->bytes, " bytes, XXH3 ", print->xxh3,
                      "; restore the old content and resume, or start a new run"));
    stamps_[at] = *stamp;
  }
  return {};
}

// Reads the next block of the pass; empty at its end.
template <class T>
Result<> Stream<T>::fill(std::size_t k) {
  auto& source = sources_[k];
  source.number += !source.block.empty();
  source.first += source.block.size();
  source.block.clear();
  source.at = 0;
  source.begin = source.reader.position();
  source.bad = source.reader.report().bad;
  std::size_t bytes = 0;
  while (static_cast<std::int64_t>(source.block.size()) < loader_.stream_rows &&
         bytes < block_bytes) {
    auto examples = source.reader.next();
    RETURN_IF_ERROR(examples);
    if (examples->empty()) break;
    for (auto& example : *examples) {
      bytes += bytes_of(example);
      source.block.push_back(std::make_shared<const T>(std::move(example)));
    }
  }
  RETURN_IF_ERROR(check_unchanged(source));
  if (loader_.shuffle)
    source.order = permutation(source.block.size(), loader_.seed,
                               permutation_stream(k, source.epoch, source.number));
  return {};
}

// Begins the next pass at the first row, unless the source has reached its limit of epochs.
template <class T>
Result<> Stream<T>::end_pass(Source& source) {
  if (source.first == 0) return source.reader.no_examples();
  if (source.epoch == 0 && source.whole) log_info(cat("data: ", source.reader.report().text()));
  if (source.size > 0 && source.size != source.first)
    return fail(Errc::bad_input, cat(source.reader.files().front(), ": had ", source.size,
                                     " examples in the previous pass, now has ", source.first,
                                     ": the file was changed during the run"));
  source.size = source.first;
  source.first = 0;
  source.number = 0;
  ++source.epoch;
  source.whole = true;
  source.done = source.options.epochs > 0 &&
                source.epoch >= static_cast<std::uint64_t>(source.options.epochs);
  source.reader.report() = {};
  return source.reader.seek({});
}

template <class T>
Result<> Stream<T>::make_ready(std::size_t k) {
  auto& source = sources_[k];
  while (!source.done && source.at == source.block.size()) {
    RETURN_IF_ERROR(fill(k));
    if (!source.block.empty()) break;
    RETURN_IF_ERROR(end_pass(source));
  }
  return {};
}

template <class T>
Result<std::optional<typename Stream<T>::Item>> Stream<T>::next() {
  std::vector<double> weights;
  std::vector<std::uint64_t> drawn;
  std::vector<bool> open;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    RETURN_IF_ERROR(make_ready(k));
    weights.push_back(sources_[k].options.weight);
    drawn.push_back(sources_[k].drawn);
    open.push_back(!sources_[k].done);
  }
  const auto chosen = next_source(weights, drawn, open);
  if (!chosen) return std::nullopt;
  auto& source = sources_[*chosen];
  const std::size_t in_block = source.order.empty() ? source.at : source.order[source.at];
  ++source.at;
  ++source.drawn;
  const auto id = source.epoch * source.size + source.first + in_block;
  return Item{source.block[in_block], id | (static_cast<std::uint64_t>(*chosen) << 52)};
}

template <class T>
Result<bool> Stream<T>::at_pass_end() {
  check(sources_.size() == 1, "Stream::at_pass_end: a mix has no passes of its own");
  const std::uint64_t pass = sources_[0].epoch;
  RETURN_IF_ERROR(make_ready(0));
  return sources_[0].epoch != pass;
}

template <class T>
Json Stream<T>::state() const {
  Json state;
  state.set("shuffle", loader_.shuffle);
  state.set("seed", std::to_string(loader_.seed));
  state.set("rows", loader_.stream_rows);
  Json::Array sources;
  for (const auto& source : sources_) {
    Json place;
    place.set("weight", source.options.weight)
        .set("epochs", source.options.epochs)
        .set("epoch", source.epoch)
        .set("drawn", source.drawn);
    place.set("file", static_cast<std::uint64_t>(source.begin.file))
        .set("row", source.begin.row)
        .set("block", source.number);
    place.set("first", source.first)
        .set("at", static_cast<std::uint64_t>(source.at))
        .set("size", source.size)
        .set("bad", source.bad);
    if (options_->selection.any()) place.set("number", source.begin.number);
    sources.push_back(std::move(place));
  }
  state.set("sources", std::move(sources));
  state.set("files", files_state(files_));
  return state;
}

template <class T>
Result<> Stream<T>::restore_source(std::size_t k, const Json& state) {
  auto& source = sources_[k];
  std::int64_t numbers[9];
  constexpr const char* names[] = {"epochs", "epoch", "drawn", "file", "row",
                                   "block",  "first", "at",    "size"};
  for (int i = 0; i < 9; ++i) {
    const auto value = get_integer(state, names[i], data_state);
    RETURN_IF_ERROR(value);
    if (*value < 0)
      return cannot_resume(cat("the checkpoint's data state has ", names[i], " ", *value));
    numbers[i] = *value;
  }
  const auto weight = get_number(state, "weight", data_state);
  const auto bad = get_integer(state, "bad", data_state);
  RETURN_IF_ERROR(weight);
  RETURN_IF_ERROR(bad);
  if (*weight != source.options.weight || numbers[0] != source.options.epochs)
    return cannot_resume(cat("source ", k + 1, " of the mix had weight ", *weight, " and epochs ",
                             numbers[0], ", now ", source.options.weight, " and ",
                             source.options.epochs));
  const auto number = [&](int i) { return static_cast<std::uint64_t>(numbers[i]); };
  source.block.clear();
  source.whole = false;
  source.epoch = number(1);
  source.drawn = number(2);
  source.number = number(5);
  source.first = number(6);
  source.size = number(8);
  source.done = source.options.epochs > 0 && numbers[1] >= source.options.epochs;
  source.reader.report().bad = *bad;
  auto begin = row_position(state, options_->selection);
  RETURN_IF_ERROR(begin);
  RETURN_IF_ERROR(source.reader.seek(*begin));
  RETURN_IF_ERROR(source.done ? Result<>() : fill(k));
  if (number(7) > source.block.size())
    return cannot_resume("the checkpoint's position is behind the end of the data");
  source.at = source.done ? 0 : number(7);
  return {};
}

template <class T>
Result<> Stream<T>::restore(const Json& state) {
  RETURN_IF_ERROR(check_same_files(files_, state));
  RETURN_IF_ERROR(check_same_shuffle(loader_.shuffle, loader_.seed, state));
  const auto rows = get_integer(state, "rows", data_state);
  if (!rows) return cannot_resume("data.stream was false, now it is true");
  if (*rows != loader_.stream_rows)
    return cannot_resume(
        cat("data.shuffle_buffer was ", *rows, ", now it is ", loader_.stream_rows));
  const auto* sources = state.find("sources");
  if (!sources || !sources->is_array() || sources->array().size() != sources_.size())
    return cannot_resume(cat("the run did not read ", sources_.size(), " sources"));
  for (std::size_t k = 0; k < sources_.size(); ++k)
    RETURN_IF_ERROR(restore_source(k, sources->array()[k]));
  return {};
}

template class Stream<SftExample>;
template class Stream<PairExample>;
template class Stream<UnpairedExample>;
template class Stream<StepExample>;
template class Stream<PromptRow>;

}  // namespace troupe::engine::data
