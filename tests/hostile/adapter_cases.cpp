// Adapters that do not fit, or are not what their settings say.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace adapter_files {
namespace {

const std::string settings = "adapter/adapter_config.json",
                  weights = "adapter/adapter_model.safetensors";
constexpr const char* score = "logprobs --model @/base --adapter @/adapter";

const Folder& adapter(const Folder& folder) {
  return folder.directory("base")
      .copy("golden/models/llama/config.json", "base/config.json")
      .copy("golden/models/llama/model.safetensors", "base/model.safetensors")
      .copy("golden/peft/llama-q-v", "adapter");
}

auto member(std::string key, Json value) {
  return [key = std::move(key), value = std::move(value)](const Folder& folder) {
    adapter(folder).set(settings, key, value);
  };
}

const std::vector<Case> cases = {
    {"AdapterWithoutSettings", [](const Folder& f) { adapter(f).remove(settings); }, score, 4,
     "@/adapter/adapter_config.json: cannot open for reading: No such file or directory"},
    {"AdapterWithoutWeights", [](const Folder& f) { adapter(f).remove(weights); }, score, 4,
     "@/adapter/adapter_model.safetensors: cannot open for reading: No such file or directory"},
    {"AdapterAsAPickle",
     [](const Folder& f) { adapter(f).remove(weights).write("adapter/adapter_model.bin", "\x80"); },
     score, 4,
     "@/adapter: adapter_model.bin is a pickle, which is never opened: save the adapter as "
     "safetensors"},
    {"AdapterSettingsCut", [](const Folder& f) { adapter(f).cut(settings, 50); }, score, 3,
     "@/adapter/adapter_config.json: not valid JSON at line 3, column 14: syntax error while "
     "parsing object key - invalid string: missing "
     "closing quote"},
    {"AdapterSettingsAList", [](const Folder& f) { adapter(f).write(settings, "[]"); }, score, 3,
     "@/adapter/adapter_config.json: expected an object, found array"},
    {"AdapterWeightsCut", [](const Folder& f) { adapter(f).cut(weights, -5); }, score, 5,
     "@/adapter/adapter_model.safetensors: tensor "
     "\"base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight\": ends at byte 7168 of "
     "the data, but the"},
    {"AdapterOfAnotherKind", member("peft_type", "IA3"), score, 6,
     "@/adapter/adapter_config.json: \"peft_type\" must be \"LORA\", found "},
    {"AdapterOfAnUnknownSetting", member("use_magic", true), score, 6,
     "@/adapter/adapter_config.json: \"use_magic\": \"true\" is not supported and would change the "
     "results"},
    {"AdapterOfRankZero", member("r", 0), score, 3,
     "@/adapter/adapter_config.json: \"r\" must be from 1 to 65536, found 0"},
    {"AdapterOfRankTwoToThe40", member("r", std::int64_t{1} << 40), score, 3,
     "@/adapter/adapter_config.json: \"r\" must be from 1 to 65536, found 1099511627776"},
    {"AdapterOfAnotherRank", member("r", 4), score, 5,
     "@/adapter/adapter_model.safetensors: tensor "
     "\"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\": expected [4, 32] "
     "(from"},
    {"AdapterOfNoAlpha", member("lora_alpha", nullptr), score, 3,
     "@/adapter/adapter_config.json: \"lora_alpha\" must be a number, found \"null\""},
    {"AdapterOfAnAlphaBeyondFloats", member("lora_alpha", 1e300), score, 2,
     "@/adapter/adapter_config.json: alpha must not be 0 (the adapter would have no effect) or "
     "beyond "
     "1e30, found 1e+300"},
    {"AdapterOfNoModule", member("target_modules", Json::Array{"attention"}), score, 2,
     "@/adapter/adapter_config.json: targets: no linear layer of this model is named "
     "\"attention\""},
    {"AdapterOfMoreModules", member("target_modules", Json::Array{"q_proj", "k_proj", "v_proj"}),
     score, 5,
     "@/adapter/adapter_model.safetensors: expected tensor "
     "\"base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight\" (6 tensors "
     "found);"},
    {"AdapterByABlowingExpression", member("target_modules", "(.*)*(.*)*(.*)*(.*)*x"), score, 2,
     "@/adapter/adapter_config.json: targets: "},
    {"AdapterByAnOpenExpression", member("target_modules", "((q_proj"), score, 3,
     "@/adapter/adapter_config.json: targets: the regular expression "},
    {"AdapterOfFarLayers", member("layers_to_transform", Json::Array{99}), score, 2,
     "@/adapter/adapter_config.json: layers: this model has layers 0 to 1, found 99"},
    {"AdapterOfAChangedBase", member("init_lora_weights", "pissa"), score, 6,
     "@/adapter/adapter_config.json: \"init_lora_weights\": \"pissa\" also changed the base's "
     "weights"},
    {"AdapterNotANumber",
     [](const Folder& f) { adapter(f).patch(weights, -4, std::string("\0\0\xc0\x7f", 4)); }, score,
     5,
     "@/adapter/adapter_model.safetensors: tensor "
     "\"base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight\": element 127 is nan; "
     "every weight must"},
    {"AdapterOfAnotherShape", [](const Folder& f) { adapter(f).swap(weights, "[8,32]", "[32,8]"); },
     score, 5,
     "@/adapter/adapter_model.safetensors: tensor "
     "\"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\": expected [8, 32]"},
    {"AdapterOfForeignNames",
     [](const Folder& f) { adapter(f).swap(weights, "base_model.model.", "base_model_model."); },
     score, 5,
     "@/adapter/adapter_model.safetensors: expected names that begin with \"base_model.model.\", "
     "found"},
    {"AdapterOfAnotherModel",
     [](const Folder& f) { adapter(f).copy("models/stories260k/hf", "other"); },
     "logprobs --model @/other --adapter @/adapter", 5,
     "@/adapter/adapter_model.safetensors: tensor "
     "\"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\": expected [8, 64] "
     "(from"},
    {"AdapterMergedIntoAFolderThatIsThere",
     [](const Folder& f) { adapter(f).directory("out").write("out/config.json", "{}"); },
     "merge --model @/base --adapter @/adapter --output @/out", 2,
     "@/out/config.json: exists; nothing there is overwritten"},
};

}  // namespace
}  // namespace adapter_files

const std::vector<Case>& adapter_cases() {
  return adapter_files::cases;
}

}  // namespace troupe::hostile
