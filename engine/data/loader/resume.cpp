#include "engine/data/loader/resume.h"

#include <numeric>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

Json file_json(const FileFingerprint& file) {
  Json out;
  // The name alone: a moved folder is the same data, and checkpoints of equal runs have equal
  // bytes.
  out.set("name", file.path.substr(file.path.find_last_of('/') + 1));
  out.set("bytes", file.bytes);
  out.set("xxh3", file.xxh3);
  return out;
}

}  // namespace

std::vector<std::uint32_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = size; i > 1; --i)
    std::swap(order[i - 1], order[uniform_below(i, seed, stream, i)]);
  return order;
}

tl::unexpected<Error> cannot_resume(std::string what) {
  return fail(Errc::bad_input, cat("cannot resume: ", what));
}

Json files_state(const std::vector<FileFingerprint>& files) {
  Json::Array list;
  for (const auto& file : files) list.push_back(file_json(file));
  return list;
}

Result<> check_same_files(const std::vector<FileFingerprint>& files, const Json& state) {
  const auto* stored = state.find("files");
  if (!stored || !stored->is_array())
    return cannot_resume("the checkpoint does not record the data files (\"files\")");
  if (stored->array().size() != files.size())
    return cannot_resume(
        cat("the run had ", stored->array().size(), " data files, now there are ", files.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto hash = get_string(stored->array()[i], "xxh3", data_state);
    RETURN_IF_ERROR(hash);
    if (*hash != files[i].xxh3)
      return cannot_resume(
          cat("the data file ", files[i].path, " has changed since (", files[i].bytes,
              " bytes, XXH3 ", files[i].xxh3, "; it was ", *hash,
              "); restore the old content, or start a new run in another output folder"));
  }
  return {};
}

Result<> check_same_shuffle(bool shuffle, std::uint64_t seed, const Json& state) {
  const auto was = get_bool(state, "shuffle", data_state);
  const auto old_seed = get_string(state, "seed", data_state);
  RETURN_IF_ERROR(was);
  RETURN_IF_ERROR(old_seed);
  if (*was != shuffle)
    return cannot_resume(cat("data.shuffle was ", *was, ", now it is ", shuffle));
  if (shuffle && *old_seed != std::to_string(seed))
    return cannot_resume(cat("the shuffling seed was ", *old_seed, ", now it is ", seed));
  return {};
}

}  // namespace troupe::engine::data
