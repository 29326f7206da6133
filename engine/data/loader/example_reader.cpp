#include "engine/data/loader/example_reader.h"

#include "engine/base/cancellation.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/data/layouts/steps.h"
#include "engine/data/readers/file_list.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t max_messages = 10;

bool is_truncated(const SftExample& example) {
  return example.truncated;
}
bool is_truncated(const PairExample& example) {
  return example.chosen.truncated || example.rejected.truncated;
}
bool is_truncated(const StepExample& example) {
  return example.truncated;
}
bool is_truncated(const UnpairedRow& row) {
  return row.truncated;
}
bool is_truncated(const PromptRow&) {
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

// The function that encodes the rows of one example type.
template <auto encode_row>
struct RowEncoding {
  static constexpr auto encode = encode_row;
};
template <class T>
struct EncodingOf;
template <>
struct EncodingOf<SftExample> : RowEncoding<&encode_sft> {};
template <>
struct EncodingOf<PairExample> : RowEncoding<&encode_pair> {};
template <>
struct EncodingOf<UnpairedExample> : RowEncoding<&encode_unpaired> {};
template <>
struct EncodingOf<StepExample> : RowEncoding<&encode_steps> {};
template <>
struct EncodingOf<PromptRow> : RowEncoding<&encode_prompt> {};

// A tokenizer throws if a pattern exceeds its limits; the row counts as malformed.
template <class T>
auto encoded(const Sample& sample, const TextEncoder& encoder, const EncodeOptions& options)
    -> decltype(EncodingOf<T>::encode(sample, encoder, options)) {
  try {
    return EncodingOf<T>::encode(sample, encoder, options);
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace

template <class T>
ExampleReader<T>::ExampleReader(const DataOptions& options, DataSource source,
                                const TextEncoder& encoder)
    : options_(&options), encoder_(&encoder), source_(std::move(source)) {
  layout_ = {.purpose = T::purpose,
             .layout = source_.layout,
             .columns = source_.columns,
             .tags = options.tags,
             .chat = options.chat};
  layout_.chat_template = encoder.has_chat_template();
  layout_.vocabulary = encoder.vocabulary();
}

template <class T>
Result<ExampleReader<T>> ExampleReader<T>::open(const DataOptions& options, DataSource source,
                                                const TextEncoder& encoder) {
  RETURN_IF_ERROR(check_column_names(source.columns));
  RETURN_IF_ERROR(check_tag_names(options.tags));
  RETURN_IF_ERROR(check_layout(source.layout, T::purpose));
  auto files = list_data_files(source.paths);
  RETURN_IF_ERROR(files);
  if (files->empty()) return fail(Errc::usage, "no data: data.path is empty");
  ExampleReader reader(options, std::move(source), encoder);
  reader.files_ = std::move(*files);
  return reader;
}

template <class T>
void ExampleReader<T>::add_message(const std::string& what) {
  if (report_.examples.size() < max_messages) report_.examples.push_back(what);
}

// Counts a malformed row. An error if there are more than the limit.
template <class T>
Result<> ExampleReader<T>::skip_row(const Error& error) {
  if (error.code != Errc::bad_input) return fail(error);
  ++report_.bad;
  add_message(error.what);
  const auto limit = options_->bad_row_limit;
  if (report_.bad > limit)
    return fail(
        Errc::bad_input,
        limit == 0
            ? cat(error.what,
                  " (fix the row, or set data.max_bad_rows above 0 to skip malformed rows)")
            : cat(error.what, " (malformed row ", report_.bad, "; data.max_bad_rows=", limit, ")"));
  log_warning(cat("skipping malformed row: ", error.what));
  return {};
}

// False if there is no further file.
template <class T>
Result<bool> ExampleReader<T>::open_file() {
  if (position_.file >= files_.size()) return false;
  auto reader = open_rows(files_[position_.file], options_->reading);
  RETURN_IF_ERROR(reader);
  if (position_.row > 0) RETURN_IF_ERROR((*reader)->seek(position_.row));
  reader_ = std::move(*reader);
  return true;
}

template <class T>
Result<std::vector<T>> ExampleReader<T>::next() {
  for (;;) {
    RETURN_IF_ERROR(check_cancelled());
    if (!reader_) {
      const auto opened = open_file();
      RETURN_IF_ERROR(opened);
      if (!*opened) return std::vector<T>{};
    }
    auto row = reader_->next();
    if (row && !*row) {
      reader_.reset();
      ++position_.file;
      position_.row = 0;
      continue;
    }
    ++report_.rows;
    ++position_.row;
    auto used = row ? convert(**row) : Result<std::vector<T>>(fail(row.error()));
    if (used && !used->empty()) return used;
    // Rows of an unknown layout are not malformed: no other row would be understood.
    const bool unknown_layout = row && layout_.layout == Layout::automatic;
    if (!used && unknown_layout) return used;
    if (!used) RETURN_IF_ERROR(skip_row(used.error()));
  }
}

template <class T>
Result<> ExampleReader<T>::seek(RowPosition position) {
  reader_.reset();
  position_ = position;
  return {};
}

// Counts a row that has no example: whether without a limit it would have one tells the reason.
template <class T>
void ExampleReader<T>::drop(const Row& row, const Sample& sample) {
  EncodeOptions unlimited = options_->encode;
  unlimited.max_length = 0;
  const auto whole = encoded<T>(sample, *encoder_, unlimited);
  const bool too_long = whole && whole->has_value();
  ++report_.untrainable;
  report_.too_long += too_long;
  const std::int64_t limit = options_->encode.max_length;
  add_message(cat(row.where(), !too_long ? cat(": no token to train on")
                               : options_->encode.skip_longer
                                   ? cat(": longer than ", limit, " tokens")
                                   : cat(": no token to train on within ", limit, " tokens")));
}

template <class T>
Result<std::vector<T>> ExampleReader<T>::convert(const Row& row) {
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
    drop(row, *sample);
    return std::vector<T>{};
  }
  report_.truncated += is_truncated(**example);
  return examples_of(std::move(**example));
}

template class ExampleReader<SftExample>;
template class ExampleReader<PairExample>;
template class ExampleReader<UnpairedExample>;
template class ExampleReader<StepExample>;
template class ExampleReader<PromptRow>;

}  // namespace troupe::engine::data
