#include "engine/data/loader/example_reader.h"

#include <concepts>
#include <set>

#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"
#include "engine/data/layouts/shown.h"
#include "engine/data/layouts/steps.h"
#include "engine/data/readers/file_list.h"

namespace troupe::engine::data {
namespace {

std::int64_t cut_tokens(const SftExample& example) {
  return example.cut_tokens;
}
std::int64_t cut_tokens(const PairExample& example) {
  return example.chosen.cut_tokens + example.rejected.cut_tokens;
}
std::int64_t cut_tokens(const StepExample& example) {
  return example.cut_tokens;
}
std::int64_t cut_tokens(const UnpairedRow& row) {
  return row.cut_tokens;
}
std::int64_t cut_tokens(const PromptRow&) {
  return 0;
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

// The examples of a row, none if it has no trainable token; the report counts what is lost. A
// tokenizer throws if a pattern exceeds its limits; the row counts as malformed.
template <class T>
Result<std::vector<T>> encoded(const Sample& sample, const TextEncoder& encoder,
                               const EncodeOptions& options, DataReport& report) {
  try {
    auto row = EncodingOf<T>::encode(sample, encoder, options);
    RETURN_IF_ERROR(row);
    if (!*row) return std::vector<T>{};
    report.truncated += cut_tokens(**row) > 0;
    report.cut_tokens += cut_tokens(**row);
    return examples_of(std::move(**row));
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

Result<std::vector<SftExample>> encoded_document(const Sample& sample, const TextEncoder& encoder,
                                                 const EncodeOptions& options, DataReport& report) {
  try {
    auto pieces = encode_document(sample, encoder, options);
    RETURN_IF_ERROR(pieces);
    if (pieces->size() > 1) {
      ++report.chunked;
      report.chunks += std::ssize(*pieces);
    } else if (!pieces->empty() && pieces->front().cut_tokens > 0) {
      ++report.truncated;
      report.cut_tokens += pieces->front().cut_tokens;
    }
    return pieces;
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

// Members of the row's messages that its text does not show, as columns: "messages.name".
std::vector<std::string> unshown(const Sample& sample, const TextEncoder& encoder) {
  std::set<std::string> names;
  for (const Json* part : {&sample.completion, &sample.rejected}) {
    Json::Array messages;
    for (const Json* each : {&sample.prompt, part})
      if (each->is_array())
        messages.insert(messages.end(), each->array().begin(), each->array().end());
    for (const auto& name : unshown_members(Json(std::move(messages)), sample.tools, encoder))
      names.insert(cat("messages.", name));
  }
  if (has_unused_weight(sample.prompt)) names.insert("messages.weight");
  return {names.begin(), names.end()};
}

// Why a row has no example that would have one without max_length.
std::string why_unused(Purpose purpose, const EncodeOptions& options) {
  const auto tokens = cat(options.max_length, " tokens");
  if (options.skip_longer) return cat("longer than ", tokens);
  if (purpose == Purpose::prompts) return cat("prompt longer than ", tokens);
  if (purpose == Purpose::steps) return cat("no step ends within ", tokens);
  return cat("prompt leaves no room for an answer within ", tokens);
}

// Splits "rows.jsonl:17: what" and "rows.parquet: row 3: what" behind the place.
UnusedRows malformed_row(const std::string& message, const std::string& file) {
  UnusedRows out{.why = message, .first = file, .malformed = true, .rows = 1};
  if (!message.starts_with(file)) return out;
  constexpr std::string_view row = ": row ";
  const bool numbered = std::string_view(message).substr(file.size()).starts_with(row);
  const auto end = message.find(": ", file.size() + (numbered ? row.size() : 0));
  if (end == std::string::npos) return out;
  out.first = message.substr(0, end);
  out.why = message.substr(end + 2);
  return out;
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
  layout_.system = source_.system.empty() ? options.system : source_.system;
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
tl::unexpected<Error> ExampleReader<T>::no_examples() const {
  const auto rest = files_.size() - 1;
  const std::string where =
      cat(files_.front(), rest > 0 ? cat(" and ", rest, " more files") : std::string());
  if (options_->selection.held_out)
    return fail(Errc::bad_input, cat(where, ": data.split = ", options_->selection.split,
                                     " holds out no usable row (", report_.text(),
                                     "); raise it, or name other rows with eval.path"));
  if (report_.rows == 0)
    return fail(Errc::bad_input, cat(where, ": expected rows, found none (",
                                     rest > 0 ? "the files are" : "the file is", " empty)"));
  if (report_.rows == report_.held_out)
    return fail(Errc::bad_input, cat(where, ": data.split holds out every row of ", report_.rows));
  return fail(Errc::bad_input, cat(where, ": no row to train on: ", report_.text()));
}

// Counts a malformed row. An error if there are more than the limit.
template <class T>
Result<> ExampleReader<T>::skip_row(const Error& error) {
  if (error.code != Errc::bad_input) return fail(error);
  ++report_.bad;
  report_.add_unused(malformed_row(error.what, files_[position_.file]));
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
  const auto& selection = options_->selection;
  while (!selection.ends_before(position_.number)) {
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
    if (!row && row.error().code != Errc::bad_input) return fail(row);
    ++position_.row;
    const bool taken = selection.uses(position_.number++);
    report_.rows += taken || !selection.held_out;
    if (!taken) {
      report_.held_out += !selection.held_out;
      continue;
    }
    auto used = row ? convert(**row) : Result<std::vector<T>>(fail(row.error()));
    if (used && !used->empty()) return used;
    // Rows of an unknown layout are not malformed: no other row would be understood.
    const bool unknown_layout = row && layout_.layout == Layout::automatic;
    if (!used && unknown_layout) return used;
    if (!used) RETURN_IF_ERROR(skip_row(used.error()));
  }
  return std::vector<T>{};
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
  DataReport ignored;
  const auto whole = encoded<T>(sample, *encoder_, unlimited, ignored);
  const bool too_long = whole && !whole->empty();
  ++report_.untrainable;
  report_.too_long += too_long;
  report_.add_unused(
      {.why = too_long ? why_unused(T::purpose, options_->encode) : "no token to train on",
       .first = row.where(),
       .malformed = false,
       .rows = 1});
}

// Errc::usage for the first row of a file if its columns have another layout than the files before.
template <class T>
Result<> ExampleReader<T>::check_other_layout(const Row& row) const {
  if (source_.layout != Layout::automatic || row.index != 0 || position_.file == layout_file_)
    return {};
  const auto found = detect_layout(row, layout_);
  if (!found && options_->bad_row_limit > 0) return {};
  if (!found)
    return fail(Errc::bad_input,
                cat(found.error().what, ". The rows of ", files_[layout_file_], " have the layout ",
                    name_of(layout_.layout),
                    "; the files of a folder or a list have one layout: give each layout a source "
                    "of its own in data.mix"));
  if (*found == layout_.layout) return {};
  return fail(Errc::usage,
              cat(row.where(), ": the rows of this file have the layout ", name_of(*found),
                  ", those of ", files_[layout_file_], " have ", name_of(layout_.layout),
                  "; the files of a folder or a list have one layout: give each layout a source of "
                  "its own in data.mix"));
}

template <class T>
Result<Sample> ExampleReader<T>::sample_of(const Row& row) {
  if (layout_.layout == Layout::automatic) {
    auto found = detect_layout(row, layout_);
    RETURN_IF_ERROR(found);
    layout_.layout = *found;
    layout_file_ = position_.file;
  }
  report_.layout = layout_.layout;
  if (!layout_.system.empty() && !takes_system(layout_.layout))
    return fail(Errc::usage,
                cat("data.system: rows of the layout ", name_of(layout_.layout), " (", row.where(),
                    ") have no prompt to which a system message can be added; remove the key"));
  auto sample = to_sample(row, layout_);
  if (!sample) RETURN_IF_ERROR(check_other_layout(row));
  if (sample)
    for (const std::string& column : sample->unread) report_.add_unread(column, 1);
  return sample;
}

template <class T>
Result<std::vector<T>> ExampleReader<T>::convert(const Row& row) {
  auto sample = sample_of(row);
  RETURN_IF_ERROR(sample);
  for (const auto& member : unshown(*sample, *encoder_)) report_.add_unread(member, 1);
  Result<std::vector<T>> examples = std::vector<T>{};
  if constexpr (std::same_as<T, SftExample>)
    examples = layout_.layout == Layout::text
                   ? encoded_document(*sample, *encoder_, options_->encode, report_)
                   : encoded<T>(*sample, *encoder_, options_->encode, report_);
  else
    examples = encoded<T>(*sample, *encoder_, options_->encode, report_);
  if constexpr (std::same_as<T, PromptRow>)
    if (examples && !examples->empty() && options_->check_prompt)
      if (auto ok = options_->check_prompt(examples->front()); !ok) examples = fail(ok);
  if (!examples) return fail(examples.error().code, cat(row.where(), ": ", examples.error().what));
  if (examples->empty()) drop(row, *sample);
  sample_ = std::move(*sample);
  return examples;
}

template class ExampleReader<SftExample>;
template class ExampleReader<PairExample>;
template class ExampleReader<UnpairedExample>;
template class ExampleReader<StepExample>;
template class ExampleReader<PromptRow>;

}  // namespace troupe::engine::data
