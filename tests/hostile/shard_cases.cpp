// Indices and shards that contradict each other.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace shard_files {
namespace {

const std::string index = "model.safetensors.index.json",
                  first = "model-00001-of-00003.safetensors",
                  second = "model-00002-of-00003.safetensors";

const Folder& sharded(const Folder& folder) {
  return folder.copy("models/stories260k/hf-bf16-sharded");
}

// Tensor model.norm.weight is said to be in this file.
auto norm_in(std::string shard) {
  return [shard = std::move(shard)](const Folder& folder) {
    sharded(folder).edit(index, [&](Json& json) {
      for (auto& [key, map] : json.object())
        if (key == "weight_map") map.set("model.norm.weight", shard);
    });
  };
}

auto index_text(std::string text) {
  return [text = std::move(text)](const Folder& folder) { sharded(folder).write(index, text); };
}

std::string many_shards(int count) {
  std::string text = "{\"weight_map\":{";
  for (int i = 0; i < count; ++i)
    text += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"" + std::to_string(i) + ".safetensors\"";
  return text + "}}";
}

const std::vector<Case> cases = {
    {"ShardMissing", [](const Folder& f) { sharded(f).remove(second); }, score_ids, 4,
     "@/model-00002-of-00003.safetensors: cannot open for reading: No such file or directory"},
    {"ShardADirectory", [](const Folder& f) { sharded(f).remove(second).directory(second); },
     score_ids, 7,
     "@/model-00002-of-00003.safetensors: expected a regular file, found a directory"},
    {"ShardCut", [](const Folder& f) { sharded(f).cut(second, -2); }, score_ids, 5,
     "@/model-00002-of-00003.safetensors: tensor \"model.layers.3.mlp.up_proj.weight\": ends at "
     "byte 177536 of the data, but the file "
     "holds 177534: it is cut"},
    {"ShardOfAnotherModel",
     [](const Folder& f) {
       sharded(f).remove(second).copy("golden/models/llama/model.safetensors", second);
     },
     score_ids, 5,
     "@/model-00002-of-00003.safetensors: no tensor \"model.layers.2.input_layernorm.weight\", "
     "which @/model.safetensors.index.json says "
     "is in this file"},
    {"ShardOutsideTheFolder", norm_in("../../x.safetensors"), score_ids, 5,
     "@/model.safetensors.index.json: tensor \"model.norm.weight\": expected the plain name of a "
     ".safetensors file of this folder, found"},
    {"ShardWithAnAbsolutePath", norm_in("/etc/x.safetensors"), score_ids, 5,
     "@/model.safetensors.index.json: tensor \"model.norm.weight\": expected the plain name of a "
     ".safetensors file of this folder, found"},
    {"ShardWithAZeroInItsName", norm_in(std::string("a\0.safetensors", 14)), score_ids, 5,
     "@/model.safetensors.index.json: tensor \"model.norm.weight\": expected the plain name of a "
     ".safetensors file of this folder, found"},
    {"ShardThatIsAPickle", norm_in("pytorch_model.bin"), score_ids, 5,
     "@/model.safetensors.index.json: tensor \"model.norm.weight\": expected the plain name of a "
     ".safetensors file of this folder, found"},
    {"ShardWithoutTheTensor", norm_in(first), score_ids, 5,
     "@/model-00001-of-00003.safetensors: no tensor \"model.norm.weight\", which "
     "@/model.safetensors.index.json says is in this file"},
    {"IndexWithoutATensor",
     index_text(R"({"weight_map":{"model.norm.weight":"model-00003-of-00003.safetensors"}})"),
     score_ids, 5,
     "@/model-00003-of-00003.safetensors: tensor "
     "\"model.layers.3.post_attention_layernorm.weight\" is not listed for this file in"},
    {"IndexEmpty", index_text(""), score_ids, 3,
     "@/model.safetensors.index.json: not valid JSON at line 1, column 0: syntax error while "
     "parsing value - unexpected end of input; "
     "expected '[', '{', or"},
    {"IndexOfNothing", index_text("{\"weight_map\":{}}"), score_ids, 5,
     "@/model.safetensors.index.json: expected \"weight_map\", an object from tensor names to file "
     "names"},
    {"IndexAList", index_text("[]"), score_ids, 5,
     "@/model.safetensors.index.json: expected \"weight_map\", an object from tensor names to file "
     "names"},
    {"IndexWithATensorTwice",
     index_text(R"({"weight_map":{"a":"a.safetensors","a":"b.safetensors"}})"), score_ids, 3,
     "@/model.safetensors.index.json: not valid JSON at line 1, column 38: the key \"a\" occurs "
     "twice in one object"},
    {"IndexOfFiveThousandShards", index_text(many_shards(5000)), score_ids, 6,
     "@/model.safetensors.index.json: more than 4096 shards"},
    {"IndexAboutItself", norm_in("model.safetensors.index.json"), score_ids, 5,
     "@/model.safetensors.index.json: tensor \"model.norm.weight\": expected the plain name of a "
     ".safetensors file of this folder, found"},
};

}  // namespace
}  // namespace shard_files

const std::vector<Case>& shard_cases() {
  return shard_files::cases;
}

}  // namespace troupe::hostile
