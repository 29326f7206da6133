#include "engine/checkpoint/training_tensors.h"

#include <unordered_map>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"

namespace troupe::engine::checkpoint {
namespace {

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

// Calls visit(parameter, its stretch of the arena) in the order of the parameters.
template <class Visit>
Result<> walk(const nn::Parameters& parameters, const Tensor& arena, Visit visit) {
  check(arena.count() == parameters.count(), "training tensors: an arena of another model");
  std::int64_t at = 0;
  for (const auto& parameter : parameters.all()) {
    const std::int64_t end = at + parameter.value.count();
    Tensor part = arena.flat(at, end);
    if (auto done = visit(parameter, part); !done) return done;
    at = end;
  }
  return {};
}

Result<> load_arena(const SafetensorsFile& file, std::string_view prefix, const nn::Parameters& parameters, const Tensor& arena) {
  std::vector<float> values;
  return walk(parameters, arena, [&](const nn::Parameter& parameter, Tensor& part) -> Result<> {
    const std::string name = cat(prefix, parameter.name);
    const StoredTensor* stored = file.find(name);
    if (!stored) return fail(Errc::not_found, cat(file.path(), ": no tensor ", quote(name), "; this checkpoint cannot be continued from"));
    if (stored->shape != sizes_of(parameter.value.shape()))
      return fail(Errc::corrupt, cat(file.path(), ": tensor ", quote(name), ": expected ", parameter.value.shape().text(), ", found ",
                                     shape_text(stored->shape)));
    values.resize(static_cast<std::size_t>(part.count()));
    if (auto read = file.read_f32(name, values); !read) return read;
    parameters.device().upload(part, values);
    return {};
  });
}

}  // namespace

Result<> save_training_tensors(const std::string& path, const nn::Parameters& parameters, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                               bool with_master) {
  std::vector<SafetensorsWriter::Plan> plans;
  std::unordered_map<std::string, Tensor> parts;
  const auto plan = [&](std::string_view prefix, const Tensor& arena) {
    return walk(parameters, arena, [&](const nn::Parameter& parameter, const Tensor& part) -> Result<> {
      const std::string name = cat(prefix, parameter.name);
      plans.push_back({name, StoredType::f32, sizes_of(parameter.value.shape())});
      parts.emplace(name, part);
      return {};
    });
  };
  check(static_cast<bool>(exp_avg) == static_cast<bool>(exp_avg_sq), "training tensors: one moment without the other");
  if (exp_avg) (void)plan("exp_avg.", exp_avg), (void)plan("exp_avg_sq.", exp_avg_sq);
  if (with_master) (void)plan("master.", parameters.values());
  auto writer = SafetensorsWriter::create(path, plans);
  if (!writer) return fail(writer.error());
  for (const auto& tensor : writer->tensors())
    if (auto written = writer->write(tensor.name, ops::to_host(parameters.device(), parts.at(tensor.name))); !written) return written;
  return writer->finish();
}

Result<> load_training_tensors(const std::string& path, nn::Parameters& into, Tensor* exp_avg, Tensor* exp_avg_sq) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return fail(file.error());
  if (exp_avg)
    if (auto loaded = load_arena(*file, "exp_avg.", into, *exp_avg); !loaded) return loaded;
  if (exp_avg_sq)
    if (auto loaded = load_arena(*file, "exp_avg_sq.", into, *exp_avg_sq); !loaded) return loaded;
  const bool master = !into.all().empty() && file->find(cat("master.", into.all().front().name));
  return master ? load_arena(*file, "master.", into, into.values()) : Result<>();
}

}  // namespace troupe::engine::checkpoint
