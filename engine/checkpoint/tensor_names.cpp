#include "engine/checkpoint/tensor_names.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

using Location = SafetensorsFolder::Location;

// Names of the embedding and the head in the files of decoder families.
constexpr std::string_view embedding_names[] = {"model.embed_tokens.weight",
                                                "transformer.wte.weight",
                                                "transformer.word_embeddings.weight",
                                                "model.tok_embeddings.weight",
                                                "transformer.embedding.word_embeddings.weight",
                                                "gpt_neox.embed_in.weight"};
constexpr std::string_view head_names[] = {"lm_head.weight", "output.weight",
                                           "transformer.output_layer.weight", "embed_out.weight"};
constexpr std::string_view head_bias = "lm_head.bias";
constexpr std::string_view base_prefixes[] = {"model.", "transformer.", "gpt_neox."};
// transformers calls a score head "score" and in a few families "classifier"; so do other
// exporters.
constexpr std::string_view score_names[] = {"score.", "classifier."};

// Files of a base model omit the prefix: "wte.weight".
std::string_view bare(std::string_view name) {
  for (const auto prefix : base_prefixes)
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

bool is_head(std::string_view name) {
  return std::ranges::find(head_names, name) != std::end(head_names);
}

bool is_embedding(std::string_view name) {
  return std::ranges::any_of(embedding_names, [&](std::string_view known) {
    return name == known || name == bare(known);
  });
}

// Buffers that old versions of transformers stored, and every version recomputes from config.json.
bool is_recomputed(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_pos_emb.inv_freq") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".attn.bias") ||
         name.ends_with(".attention.masked_bias") || name.ends_with(".attention.bias");
}

std::optional<Location> first_of(const SafetensorsFolder& folder,
                                 std::span<const std::string_view> names) {
  for (const auto name : names) {
    if (auto location = folder.find(name)) return location;
    if (auto location = folder.find(bare(name))) return location;
  }
  return std::nullopt;
}

bool equal_tensors(const Location& a, const Location& b) {
  const auto left = a.file->bytes(*a.tensor), right = b.file->bytes(*b.tensor);
  return a.tensor->type == b.tensor->type && a.tensor->shape == b.tensor->shape &&
         left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

}  // namespace

std::optional<Location> locate(const SafetensorsFolder& folder, const std::string& name,
                               bool tied) {
  if (auto location = folder.find(name)) return location;
  if (const std::string* stored =
          folder.metadata(name))  // safetensors' save_model does so for shared tensors
    if (auto location = folder.find(*stored)) return location;
  if (auto location = folder.find(bare(name))) return location;
  for (const auto score : score_names)
    if (name.starts_with(score))
      for (const auto other : score_names)
        if (auto location = folder.find(cat(other, std::string_view(name).substr(score.size()))))
          return location;
  if (tied && is_embedding(name)) return first_of(folder, head_names);
  if (tied && is_head(name)) return first_of(folder, embedding_names);
  return std::nullopt;
}

Result<> check_shape(const Location& location, const std::string& name,
                     std::vector<std::int64_t> expected) {
  if (location.tensor->shape == expected) return {};
  return fail(Errc::corrupt,
              cat(location.file->path(), ": tensor \"", name, "\": expected ", shape_text(expected),
                  " (from config.json), found ", shape_text(location.tensor->shape)));
}

tl::unexpected<Error> missing(const std::string& folder, const SafetensorsFolder& weights,
                              const std::string& name) {
  std::vector<std::string> stored;
  for (const auto& location : weights.all()) stored.push_back(location.tensor->name);
  const std::string near = nearest(name, stored);
  return fail(Errc::corrupt,
              cat(folder, ": expected tensor \"", name, "\" (", stored.size(), " tensors found)",
                  near.empty() ? "" : cat("; the nearest name is ", quote(near))));
}

Result<> check_unused(const SafetensorsFolder& weights,
                      const std::unordered_set<const StoredTensor*>& used, bool tied, bool scores) {
  for (const auto& location : weights.all()) {
    const std::string& name = location.tensor->name;
    if (used.contains(location.tensor) || is_recomputed(name)) continue;
    if (scores && (is_head(name) || name == head_bias)) continue;
    if (tied && (is_head(name) || is_embedding(name))) {
      const bool equal = std::ranges::any_of(used, [&](const StoredTensor* other) {
        return (is_head(other->name) || is_embedding(other->name)) &&
               equal_tensors(location, *weights.find(other->name));
      });
      if (equal) continue;
      return fail(Errc::corrupt, cat(location.file->path(), ": tensor \"", name,
                                     "\" differs from the embedding, but config.json ties them "
                                     "(tie_word_embeddings); set it to false to load both"));
    }
    return fail(Errc::corrupt,
                cat(location.file->path(), ": unexpected tensor ", quote(name), " ",
                    shape_text(location.tensor->shape), "; config.json describes another model"));
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
