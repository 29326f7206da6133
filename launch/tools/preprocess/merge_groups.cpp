#include "launch/tools/preprocess/merge_groups.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/data/megatron/indexed_dataset_writer.h"

namespace troupe::launch::tools::preprocess {
namespace {

namespace fs = std::filesystem;
using engine::data::megatron::IndexedDataset;
using engine::data::megatron::IndexedDatasetWriter;

// Datasets of the folder with `key` in their names, without .idx.
Result<std::vector<std::string>> group(const std::string& folder, const std::string& key,
                                       const std::string& output) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end;
       each.increment(failed)) {
    const fs::path path = each->path();
    const std::string stem = (path.parent_path() / path.stem()).string();
    if (path.extension() == ".idx" && path.stem().string().find(key) != std::string::npos &&
        fs::path(stem).lexically_normal() != fs::path(output).lexically_normal())
      out.push_back(stem);
  }
  if (failed) return fail(Errc::not_found, cat(folder, ": ", failed.message()));
  std::ranges::sort(out);
  if (out.empty())
    return fail(Errc::not_found, cat(folder, ": no .idx file has ", quote(key), " in its name"));
  return out;
}

}  // namespace

Result<> merge_groups(const std::string& folder, const std::vector<std::string>& keys,
                      const std::string& prefix) {
  for (const std::string& key : keys) {
    const std::string output = prefix + "_" + key;
    const auto prefixes = group(folder, key, output);
    RETURN_IF_ERROR(prefixes);
    std::optional<IndexedDatasetWriter> writer;
    for (const std::string& each : *prefixes) {
      const auto dataset = IndexedDataset::open(each);
      RETURN_IF_ERROR(dataset);
      if (!writer) {
        auto created = IndexedDatasetWriter::create(output, dataset->type());
        RETURN_IF_ERROR(created);
        writer.emplace(std::move(*created));
      }
      RETURN_IF_ERROR(writer->add_dataset(*dataset));
    }
    RETURN_IF_ERROR(writer->finish());
    log_info(cat(output, ".bin: ", writer->documents(), " documents of ", prefixes->size(),
                 " datasets, ", writer->tokens(), " tokens"));
  }
  return {};
}

}  // namespace troupe::launch::tools::preprocess
