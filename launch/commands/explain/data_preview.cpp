#include "launch/commands/explain/data_preview.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/data/loader/example_reader.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::commands {

namespace {

namespace data = engine::data;

ShownExample shown(const data::SftExample& example, const data::Sample& sample,
                   const data::EncodeOptions& options) {
  return {{{"", example.ids, example.weights,
            data::parts_of(sample, sample.completion, options.train_on_prompt)}},
          {}};
}

ShownExample shown(const data::PairExample& pair, const data::Sample& sample,
                   const data::EncodeOptions&) {
  ShownExample out{
      {{"chosen", pair.chosen.ids, pair.chosen.weights, data::parts_of(sample, sample.completion)},
       {"rejected", pair.rejected.ids, pair.rejected.weights,
        data::parts_of(sample, sample.rejected)}},
      {}};
  if (pair.margin) {
    const double margin = *pair.margin;
    out.notes.push_back(cat("margin: ", margin));
    out.members.emplace_back("margin", margin);
  }
  return out;
}

ShownExample shown(const data::UnpairedExample& example, const data::Sample& sample,
                   const data::EncodeOptions& options) {
  const bool of_pair = !sample.desirable;
  ShownSequence sequence{
      example.desirable ? "desirable" : "undesirable", example.prompt,
      std::vector<float>(example.prompt.size(), 0.0f),
      data::parts_of(sample, of_pair && !example.desirable ? sample.rejected : sample.completion)};
  sequence.ids.insert(sequence.ids.end(), example.answer.begin(), example.answer.end());
  sequence.weights.insert(sequence.weights.end(), example.weights.begin(), example.weights.end());
  if (options.max_length > 0 && std::ssize(sequence.ids) > options.max_length) {
    sequence.ids.resize(static_cast<std::size_t>(options.max_length));
    sequence.weights.resize(static_cast<std::size_t>(options.max_length));
  }
  return {{std::move(sequence)}, {}};
}

ShownExample shown(const data::StepExample& example, const data::Sample& sample,
                   const data::EncodeOptions&) {
  ShownSequence sequence{"", example.ids, {}, data::parts_of(sample, Json())};
  std::vector<std::string> classes;
  Json::Array labels;
  for (const auto label : example.classes) {
    sequence.weights.push_back(label >= 0 ? 1.0f : 0.0f);
    if (label < 0) continue;
    classes.push_back(std::to_string(label));
    labels.emplace_back(label);
  }
  ShownExample out{{std::move(sequence)},
                   {cat("classes of the marked tokens: ", join(classes, ", "))}};
  out.members.emplace_back("classes", std::move(labels));
  return out;
}

ShownExample shown(const data::PromptRow& row, const data::Sample& sample,
                   const data::EncodeOptions&) {
  ShownExample out{{{"prompt", row.ids, std::vector<float>(row.ids.size(), 0.0f),
                     data::parts_of(sample, Json())}},
                   {}};
  const Json& answer = row.answer;
  const std::string text = answer.is_string() ? answer.string() : answer.dump();
  out.notes.push_back(answer.is_null() ? "no answer" : cat("answer: ", quote(text, 200)));
  if (!answer.is_null()) out.members.emplace_back("answer", answer);
  return out;
}

template <class T>
void count(const T& example, const data::Sample& sample, const data::EncodeOptions& options,
           const PreviewLimits& limits, DataPreview& out) {
  static const data::Sample not_shown;  // its texts are not needed
  const bool kept = std::ssize(out.shown) < limits.shown;
  ShownExample all = shown(example, kept ? sample : not_shown, options);
  ++out.examples;
  for (const ShownSequence& sequence : all.sequences) {
    out.lengths.push_back(std::ssize(sequence.ids));
    out.tokens += std::ssize(sequence.ids);
    out.trained_tokens += std::ranges::count_if(sequence.weights, [](float w) { return w != 0; });
  }
  if (!kept) return;
  if (!sample.tools.is_null()) all.members.emplace_back("tools", sample.tools);
  out.shown.push_back(std::move(all));
}

std::uint64_t bytes_of(const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code failed;
    const auto size = std::filesystem::file_size(file, failed);
    if (!failed) bytes += size;
  }
  return bytes;
}

// Rows from the position on.
Result<std::int64_t> count_rows(const std::vector<std::string>& files, data::RowPosition from,
                                const data::ReadOptions& options) {
  std::int64_t rows = 0;
  for (auto i = from.file; i < files.size(); ++i) {
    auto reader = data::open_rows(files[i], options);
    RETURN_IF_ERROR(reader);
    if (i == from.file) RETURN_IF_ERROR((*reader)->seek(from.row));
    for (;; ++rows) {
      const auto row = (*reader)->next();
      if (row && !*row) break;
      if (!row && row.error().code != Errc::bad_input) return fail(row);
    }
  }
  return rows;
}

std::int64_t scaled(std::int64_t examples, std::int64_t rows, std::int64_t of) {
  return std::max<std::int64_t>(
      1, std::llround(static_cast<double>(examples) * static_cast<double>(of) /
                      static_cast<double>(std::max<std::int64_t>(1, rows))));
}

// Counts the rows of a source that was not read to its end.
template <class T>
Result<> estimate_rest(const data::DataOptions& options, const PreviewLimits& limits,
                       const data::ExampleReader<T>& reader, DataPreview& out,
                       data::SourceInfo& info) {
  out.complete = false;
  const auto read = reader.position().number;
  if (bytes_of(reader.files()) > limits.counted_bytes) {
    out.rows.reset();
    return {};
  }
  const auto rest = count_rows(reader.files(), reader.position(), options.reading);
  RETURN_IF_ERROR(rest);
  auto rows = read + *rest;
  if (options.selection.first_rows > 0) rows = std::min(rows, options.selection.first_rows);
  info.size = static_cast<std::size_t>(scaled(static_cast<std::int64_t>(info.size), read, rows));
  if (out.rows) *out.rows += rows - read;
  return {};
}

template <class T>
Result<> preview_source(const data::DataOptions& options, const data::DataSource& source,
                        const data::TextEncoder& text, const PreviewLimits& limits,
                        DataPreview& out) {
  auto reader = data::ExampleReader<T>::open(options, source, text);
  RETURN_IF_ERROR(reader);
  reader->report().bad = out.report.bad;  // the limit applies to all sources together
  const auto examples = out.examples, tokens = out.tokens;
  bool ended = false;
  while (!ended && reader->position().number < limits.rows && out.tokens - tokens < limits.tokens &&
         out.examples - examples < limits.examples) {
    const auto some = reader->next();
    RETURN_IF_ERROR(some);
    ended = some->empty();
    for (const T& example : *some) count(example, reader->sample(), options.encode, limits, out);
  }
  reader->report().bad -= out.report.bad;
  if (out.examples == examples && ended) return reader->no_examples();
  data::SourceInfo info{.size = static_cast<std::size_t>(out.examples - examples),
                        .weight = source.weight,
                        .epochs = source.epochs};
  if (out.rows) *out.rows += reader->report().rows;
  if (!ended) RETURN_IF_ERROR(estimate_rest(options, limits, *reader, out, info));
  info.size = std::max<std::size_t>(1, info.size);
  out.report.add(reader->report());
  out.sources.push_back(info);
  return {};
}

template <class T>
Result<DataPreview> preview(const data::DataOptions& options, const data::TextEncoder& text,
                            PreviewLimits limits) {
  DataPreview out;
  const auto sources = options.sources();
  const auto parts = std::max<std::int64_t>(1, std::ssize(sources));
  limits.rows = std::max<std::int64_t>(1, limits.rows / parts);
  limits.tokens = std::max<std::int64_t>(1, limits.tokens / parts);
  limits.examples = std::max<std::int64_t>(1, limits.examples / parts);
  for (const auto& source : sources)
    RETURN_IF_ERROR(preview_source<T>(options, source, text, limits, out));
  return out;
}

}  // namespace

Result<DataPreview> preview_data(const config::RunConfig& config, const data::DataOptions& options,
                                 const data::TextEncoder& text, const PreviewLimits& limits) {
  switch (recipes::recipe_of(config).rows) {
    case data::Purpose::sft:
      return preview<data::SftExample>(options, text, limits);
    case data::Purpose::pairs:
      return preview<data::PairExample>(options, text, limits);
    case data::Purpose::unpaired:
      return preview<data::UnpairedExample>(options, text, limits);
    case data::Purpose::steps:
      return preview<data::StepExample>(options, text, limits);
    case data::Purpose::prompts:
      return preview<data::PromptRow>(options, text, limits);
  }
  return fail(Errc::internal, "preview_data: an unknown purpose");
}

}  // namespace troupe::launch::commands
