#include "launch/tools/preprocess/token_files.h"

#include <cstdio>
#include <filesystem>

#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::preprocess {
namespace {

using engine::data::RowPosition;
using engine::data::megatron::IndexedDatasetWriter;

// The first member that differs, as "NAME was A, now it is B".
std::string difference(const Json& before, const Json& now) {
  for (const auto& [name, value] : now.object()) {
    const Json* old = before.find(name);
    if (!old || *old != value)
      return cat(name, " was ", quote(old ? old->dump() : "missing"), ", now it is ",
                 quote(value.dump()));
  }
  return before == now ? "" : "it has settings that are not known here";
}

Result<RowPosition> position_of(const Json& progress, const std::string& path) {
  const auto file = get_integer(progress, "file", path);
  RETURN_IF_ERROR(file);
  const auto row = get_integer(progress, "row", path);
  RETURN_IF_ERROR(row);
  const auto number = get_integer(progress, "rows", path);
  RETURN_IF_ERROR(number);
  if (*file < 0 || *row < 0 || *number < 0)
    return fail(Errc::corrupt, cat(path, ": expected positions of 0 or more"));
  return RowPosition{.file = static_cast<std::size_t>(*file), .row = *row, .number = *number};
}

Result<IndexedDatasetWriter::Position> written(const Json& progress, std::size_t output,
                                               std::size_t outputs, const std::string& path) {
  const Json* list = progress.find("outputs");
  if (!list || !list->is_array() || list->array().size() != outputs)
    return fail(Errc::corrupt, cat(path, ": expected \"outputs\", a list of ", outputs));
  const auto bytes = get_integer(list->array()[output], "bytes", path);
  RETURN_IF_ERROR(bytes);
  const auto entries = get_integer(list->array()[output], "entries", path);
  RETURN_IF_ERROR(entries);
  constexpr std::int64_t most = std::int64_t{1} << 60;
  if (*bytes < 0 || *entries < 0 || *entries > most || *bytes > most)
    return fail(Errc::corrupt, cat(path, ": expected sizes of 0 or more"));
  return IndexedDatasetWriter::Position{.bytes = *bytes, .entries = *entries};
}

}  // namespace

std::string dataset_prefix(const std::string& prefix, const std::string& output) {
  return prefix + "_" + output + "_document";
}

// The progress that can be continued; null: none.
Result<Json> TokenFiles::read_progress() const {
  if (!std::filesystem::exists(options_.progress_file)) return Json();
  auto progress = read_json(options_.progress_file);
  RETURN_IF_ERROR(progress);
  const Json* settings = progress->find("settings");
  if (!settings || !settings->is_object())
    return fail(Errc::corrupt, cat(options_.progress_file,
                                   ": expected \"settings\"; remove the "
                                   "file to start over"));
  const std::string other = difference(*settings, options_.settings);
  if (!other.empty())
    return fail(Errc::usage, cat(options_.progress_file, ": the command that was interrupted had ",
                                 "other settings (", other,
                                 "); repeat that command, or remove the file to start over"));
  return progress;
}

Result<TokenFiles> TokenFiles::open(Options options) {
  TokenFiles out(std::move(options));
  const auto& own = out.options_;
  const auto progress = out.read_progress();
  RETURN_IF_ERROR(progress);
  if (!progress->is_null()) {
    const auto position = position_of(*progress, own.progress_file);
    RETURN_IF_ERROR(position);
    out.position_ = *position;
  }
  for (std::size_t i = 0; i < own.outputs.size(); ++i) {
    IndexedDatasetWriter::Position from;
    if (!progress->is_null()) {
      const auto read = written(*progress, i, own.outputs.size(), own.progress_file);
      RETURN_IF_ERROR(read);
      from = *read;
    }
    auto writer =
        IndexedDatasetWriter::open(dataset_prefix(own.prefix, own.outputs[i]), own.type, from);
    RETURN_IF_ERROR(writer);
    out.writers_.push_back(std::move(*writer));
  }
  return out;
}

Result<> TokenFiles::add(const std::vector<TokenDocument>& documents) {
  check(documents.size() == writers_.size(), "a document for each output");
  for (std::size_t i = 0; i < documents.size(); ++i) {
    for (const auto& sequence : documents[i]) RETURN_IF_ERROR(writers_[i].add_sequence(sequence));
    RETURN_IF_ERROR(writers_[i].end_document());
  }
  return {};
}

std::int64_t TokenFiles::tokens() const {
  std::int64_t sum = 0;
  for (const auto& writer : writers_) sum += writer.tokens();
  return sum;
}

std::int64_t TokenFiles::documents() const {
  return writers_.front().documents();
}

Result<> TokenFiles::save(RowPosition next) {
  Json::Array outputs;
  for (auto& writer : writers_) {
    const auto position = writer.sync();
    RETURN_IF_ERROR(position);
    outputs.push_back(Json::Object{{"bytes", position->bytes}, {"entries", position->entries}});
  }
  Json progress;
  progress.set("settings", options_.settings)
      .set("file", static_cast<std::uint64_t>(next.file))
      .set("row", next.row)
      .set("rows", next.number)
      .set("outputs", std::move(outputs));
  return write_file_durably(options_.progress_file, progress.dump(1) + "\n");
}

// The progress file goes after the last index and before the lengths: at every moment either it
// can be continued, or all indices are complete.
Result<> TokenFiles::finish(RowPosition end) {
  RETURN_IF_ERROR(save(end));
  for (auto& writer : writers_) RETURN_IF_ERROR(writer.write_index());
  if (std::remove(options_.progress_file.c_str()) != 0)
    return system_error(options_.progress_file, "remove");
  for (auto& writer : writers_) RETURN_IF_ERROR(writer.remove_entries());
  return {};
}

}  // namespace troupe::launch::tools::preprocess
