#include "engine/data/loader/example_reader.h"

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/data/layouts/steps.h"
#include "engine/data/readers/file_list.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t examples_kept = 10;

bool was_cut(const SftExample& example) {
  return example.truncated;
}
bool was_cut(const PairExample& example) {
  return example.chosen.truncated || example.rejected.truncated;
}
bool was_cut(const StepExample& example) {
  return example.truncated;
}
bool was_cut(const UnpairedRow& row) {
  return row.truncated;
}
bool was_cut(const PromptRow&) {
  return false;
}

template <class T>
std::vector<T> examples_of(T example) {
  std::vector<T> out;
  out.push_back(std::move(example));
  return out;
}
std::vector<UnpairedExample> examples_of(UnpairedRow row) {
  return std::move(row.examples);
}

// What rows of a kind are read for, and how one becomes an example.
template <Purpose for_what, auto how>
struct Reads {
  static constexpr Purpose purpose = for_what;
  static constexpr auto encode = how;
};
template <class T>
struct Kind;
template <>
struct Kind<SftExample> : Reads<Purpose::sft, &encode_sft> {};
template <>
struct Kind<PairExample> : Reads<Purpose::pairs, &encode_pair> {};
template <>
struct Kind<UnpairedExample> : Reads<Purpose::unpaired, &encode_unpaired> {};
template <>
struct Kind<StepExample> : Reads<Purpose::steps, &encode_steps> {};
template <>
struct Kind<PromptRow> : Reads<Purpose::prompts, &encode_prompt> {};

// A tokenizer's patterns give up on hostile text by throwing; that is the row's fault.
template <class T>
auto encoded(const Sample& sample, const TextEncoder& encoder, const EncodeOptions& options)
    -> decltype(Kind<T>::encode(sample, encoder, options)) {
  try {
    return Kind<T>::encode(sample, encoder, options);
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace

template <class T>
ExampleReader<T>::ExampleReader(const DataOptions& options, DataSource source,
                                const TextEncoder& encoder)
    : options_(&options), encoder_(&encoder), source_(std::move(source)) {
  layout_ = {.purpose = Kind<T>::purpose,
             .layout = source_.layout,
             .columns = source_.columns,
             .tags = options.tags,
             .chat = options.chat};
  layout_.chat_template = encoder.has_chat_template(), layout_.vocabulary = encoder.vocabulary();
}

template <class T>
Result<ExampleReader<T>> ExampleReader<T>::open(const DataOptions& options, DataSource source,
                                                const TextEncoder& encoder) {
  RETURN_IF_ERROR(check_column_names(source.columns));
  RETURN_IF_ERROR(check_tag_names(options.tags));
  RETURN_IF_ERROR(check_layout(source.layout, Kind<T>::purpose));
  auto files = list_data_files(source.paths);
  RETURN_IF_ERROR(files);
  if (files->empty()) return fail(Errc::usage, "no data: data.path names no file");
  ExampleReader reader(options, std::move(source), encoder);
  reader.files_ = std::move(*files);
  return reader;
}

template <class T>
void ExampleReader<T>::keep(const std::string& what) {
  if (report_.examples.size() < examples_kept) report_.examples.push_back(what);
}

// Counts a malformed row; the limit turns one into the end of the run.
template <class T>
Result<> ExampleReader<T>::leave_out(const Error& error) {
  if (error.code != Errc::bad_input) return fail(error);
  ++report_.bad;
  keep(error.what);
  const auto limit = options_->bad_row_limit;
  if (report_.bad > limit)
    return fail(Errc::bad_input,
                limit == 0 ? cat(error.what, " (data.max_bad_rows=0: no malformed row is left out)")
                           : cat(error.what, " (the ", report_.bad,
                                 "th malformed row; data.max_bad_rows=", limit, ")"));
  log_warning(cat("row left out: ", error.what));
  return {};
}

// False: there is no further file.
template <class T>
Result<bool> ExampleReader<T>::open_file() {
  if (place_.file >= files_.size()) return false;
  auto reader = open_rows(files_[place_.file], options_->reading);
  RETURN_IF_ERROR(reader);
  if (place_.row > 0) RETURN_IF_ERROR((*reader)->seek(place_.row));
  reader_ = std::move(*reader);
  return true;
}

template <class T>
Result<std::vector<T>> ExampleReader<T>::next() {
  for (;;) {
    if (!reader_) {
      const auto opened = open_file();
      RETURN_IF_ERROR(opened);
      if (!*opened) return std::vector<T>{};
    }
    auto row = reader_->next();
    if (row && !*row) {
      reader_.reset();
      ++place_.file, place_.row = 0;
      continue;
    }
    ++report_.rows, ++place_.row;
    auto used = row ? use(**row) : Result<std::vector<T>>(fail(row.error()));
    if (used && !used->empty()) return used;
    if (!used) RETURN_IF_ERROR(leave_out(used.error()));
  }
}

template <class T>
Result<> ExampleReader<T>::seek(Place place) {
  reader_.reset();
  place_ = place;
  return {};
}

template <class T>
Result<std::vector<T>> ExampleReader<T>::use(const Row& row) {
  if (layout_.layout == Layout::automatic) {
    auto found = detect_layout(row, layout_);
    RETURN_IF_ERROR(found);
    report_.layout = layout_.layout = *found;
  }
  report_.layout = layout_.layout;
  auto sample = to_sample(row, layout_);
  RETURN_IF_ERROR(sample);
  auto example = encoded<T>(*sample, *encoder_, options_->encode);
  if (!example) return fail(example.error().code, cat(row.where(), ": ", example.error().what));
  if (!*example) {
    ++report_.untrainable;
    keep(cat(row.where(),
             options_->encode.leave_out_longer ? ": not within " : ": nothing to train on within ",
             options_->encode.max_length, " tokens"));
    return std::vector<T>{};
  }
  report_.truncated += was_cut(**example);
  return examples_of(std::move(**example));
}

template class ExampleReader<SftExample>;
template class ExampleReader<PairExample>;
template class ExampleReader<UnpairedExample>;
template class ExampleReader<StepExample>;
template class ExampleReader<PromptRow>;

}  // namespace troupe::engine::data
