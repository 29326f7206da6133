#include "engine/data/loader/resume.h"

#include <numeric>

#include "engine/base/random.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

Json file_json(const FilePrint& file) {
  Json out;
  // The name alone: a moved folder is the same data, and checkpoints of equal runs have equal
  // bytes.
  out.set("name", file.path.substr(file.path.find_last_of('/') + 1)), out.set("bytes", file.bytes),
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

tl::unexpected<Error> refused(std::string what) {
  return fail(Errc::bad_input, cat("the run cannot go on where it stopped: ", what));
}

Json files_state(const std::vector<FilePrint>& files) {
  Json::Array list;
  for (const auto& file : files) list.push_back(file_json(file));
  return list;
}

Result<> same_files(const std::vector<FilePrint>& files, const Json& state) {
  const auto* stored = state.find("files");
  if (!stored || !stored->is_array())
    return refused("its checkpoint does not say which data it had read (\"files\")");
  if (stored->array().size() != files.size())
    return refused(
        cat("it had ", stored->array().size(), " data files, now there are ", files.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto hash = get_string(stored->array()[i], "xxh3", "the checkpoint's data state");
    RETURN_IF_ERROR(hash);
    if (*hash != files[i].xxh3)
      return refused(
          cat("the data file ", files[i].path, " has changed since (", files[i].bytes,
              " bytes, XXH3 ", files[i].xxh3, "; it had ", *hash,
              "); bring the old content back, or start a new run in another output folder"));
  }
  return {};
}

Result<> same_shuffle(bool shuffle, std::uint64_t seed, const Json& state) {
  const auto was = get_bool(state, "shuffle", "the checkpoint's data state");
  const auto old_seed = get_string(state, "seed", "the checkpoint's data state");
  RETURN_IF_ERROR(was);
  RETURN_IF_ERROR(old_seed);
  if (*was != shuffle) return refused(cat("data.shuffle was ", *was, ", now it is ", shuffle));
  if (shuffle && *old_seed != std::to_string(seed))
    return refused(cat("the seed of the data's order was ", *old_seed, ", now it is ", seed));
  return {};
}

}  // namespace troupe::engine::data
