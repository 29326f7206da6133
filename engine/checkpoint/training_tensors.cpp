#include "engine/checkpoint/training_tensors.h"

#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/files/mapped_pages.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_map.h"

namespace troupe::engine::checkpoint {
namespace {

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

Result<> load_arena(const SafetensorsFile& file, std::string_view prefix,
                    const nn::Parameters& parameters, const Tensor& arena,
                    const nn::ArenaShards* shards = nullptr) {
  check(arena.count() == (shards ? shards->count() : parameters.count()),
        "training tensors: arena of another model");
  std::int64_t at = 0;
  for (const auto& parameter : parameters.all()) {
    const std::string name = cat(prefix, parameter.name);
    const StoredTensor* stored = file.find(name);
    if (!stored)
      return fail(Errc::not_found, cat(file.path(), ": no tensor ", quote(name),
                                       "; this checkpoint cannot be resumed"));
    const Shape shape = parameter.logical_shape();
    if (stored->shape != sizes_of(shape))
      return fail(Errc::corrupt, cat(file.path(), ": tensor ", quote(name), ": expected ",
                                     shape.text(), ", found ", shape_text(stored->shape)));
    const auto floats = file.floats(name, parameter.shard, parameter.value.count());
    RETURN_IF_ERROR(floats);
    const std::int64_t end = at + parameter.value.count();
    const auto load = [&](std::int64_t first, std::int64_t count, std::int64_t to) {
      Tensor part = arena.flat(to, to + count);
      parameters.device().upload_from(part, [&](std::int64_t begin, std::span<float> into) {
        floats->read(first + begin, into);
      });
    };
    if (shards == nullptr) {
      load(0, end - at, at);
    } else {
      for (const auto& piece : shards->mine(at, end))
        load(piece.begin - at, piece.size(), piece.at);
    }
    release_pages(file.bytes(*stored));
    at = end;
  }
  return {};
}

}  // namespace

Result<> save_training_tensors(const std::string& path, TensorParts& tensors, bool with_moments,
                               bool with_master) {
  std::vector<TensorSource> sources;
  const auto add = [&](std::string_view prefix, std::size_t arena) {
    for (const auto& parameter : tensors.parameters().all())
      sources.push_back({unchanged(parameter, cat(prefix, parameter.name)), arena});
  };
  if (with_moments) {
    add("exp_avg.", exp_avg_arena);
    add("exp_avg_sq.", exp_avg_sq_arena);
  }
  if (with_master) add("master.", weights_arena);
  return tensors.write(path, StoredType::f32, sources);
}

Result<> load_training_tensors(const std::string& path, nn::Parameters& into, Tensor* exp_avg,
                               Tensor* exp_avg_sq, const nn::ArenaShards* shards) {
  const auto file = SafetensorsFile::open(path);
  RETURN_IF_ERROR(file);
  if (exp_avg) RETURN_IF_ERROR(load_arena(*file, "exp_avg.", into, *exp_avg, shards));
  if (exp_avg_sq) RETURN_IF_ERROR(load_arena(*file, "exp_avg_sq.", into, *exp_avg_sq, shards));
  const bool master = !into.all().empty() && file->find(cat("master.", into.all().front().name));
  return master ? load_arena(*file, "master.", into, into.values()) : Result<>();
}

}  // namespace troupe::engine::checkpoint
