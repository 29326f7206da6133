// Models under the names of a Llama, rewritten by hand into the layout of another family.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::test {

struct StoredMatrix {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using StoredModel = std::map<std::string, StoredMatrix>;

/// A family's layout: parts of names that it writes otherwise, and modules whose rows it stores one
/// after the other under one name.
struct FileLayout {
  std::vector<std::pair<std::string, std::string>> names;
  std::vector<std::pair<std::string, std::vector<std::string>>> fusions;
};

inline std::string replaced(std::string name, const std::string& from, const std::string& to) {
  if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

inline StoredModel rewritten(const StoredModel& llama, const FileLayout& layout) {
  StoredModel joined = llama;
  for (const auto& [fused, parts] : layout.fusions)
    for (const auto& [name, first] : llama) {
      if (name.find(parts.front()) == std::string::npos) continue;
      StoredMatrix& into = joined[replaced(name, parts.front(), fused)];
      into.shape = first.shape;
      into.shape[0] = 0;
      for (const auto& part : parts) {
        const auto from = joined.extract(replaced(name, parts.front(), part));
        into.shape[0] += from.mapped().shape[0];
        into.values.insert(into.values.end(), from.mapped().values.begin(),
                           from.mapped().values.end());
      }
    }
  StoredModel out;
  for (const auto& [name, matrix] : joined) {
    std::string stored = name;
    for (const auto& [from, to] : layout.names) stored = replaced(stored, from, to);
    out[stored] = matrix;
  }
  return out;
}

inline StoredModel read_model(const std::string& folder) {
  StoredModel model;
  const auto weights = value_or_throw(engine::checkpoint::SafetensorsFolder::open(folder));
  for (const auto& place : weights.all()) {
    StoredMatrix& matrix = model[place.tensor->name];
    matrix.shape = place.tensor->shape;
    matrix.values.resize(static_cast<std::size_t>(place.tensor->count()));
    value_or_throw(place.file->read_f32(place.tensor->name, matrix.values));
  }
  return model;
}

inline void write_model(const std::string& folder, const StoredModel& model,
                        const std::string& config) {
  using engine::checkpoint::SafetensorsWriter;
  std::vector<SafetensorsWriter::Plan> plans;
  for (const auto& [name, matrix] : model)
    plans.push_back({name, engine::checkpoint::StoredType::f32, matrix.shape});
  auto writer = value_or_throw(SafetensorsWriter::create(folder + "/model.safetensors", plans));
  for (const auto& tensor : writer.tensors())
    value_or_throw(writer.write(tensor.name, model.at(tensor.name).values));
  value_or_throw(writer.finish());
  engine::checkpoint::put(folder + "/config.json", config);
}

}  // namespace troupe::test
