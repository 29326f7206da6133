// Adapters that do not fit, or are not what their settings say.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace {

const std::string settings = "adapter/adapter_config.json", weights = "adapter/adapter_model.safetensors";
constexpr const char* score = "logprobs --model @/base --adapter @/adapter";

const Folder& adapter(const Folder& folder) {
  return folder.directory("base")
      .copy("golden/models/llama/config.json", "base/config.json")
      .copy("golden/models/llama/model.safetensors", "base/model.safetensors")
      .copy("golden/peft/llama-q-v", "adapter");
}

auto member(std::string key, Json value) {
  return [key = std::move(key), value = std::move(value)](const Folder& folder) { adapter(folder).set(settings, key, value); };
}

const std::vector<Case> cases = {
    {"AdapterWithoutSettings", [](const Folder& f) { adapter(f).remove(settings); }, score, 4, "?"},
    {"AdapterWithoutWeights", [](const Folder& f) { adapter(f).remove(weights); }, score, 4, "?"},
    {"AdapterAsAPickle", [](const Folder& f) { adapter(f).remove(weights).write("adapter/adapter_model.bin", "\x80"); }, score, 4, "?"},
    {"AdapterSettingsCut", [](const Folder& f) { adapter(f).cut(settings, 50); }, score, 3, "?"},
    {"AdapterSettingsAList", [](const Folder& f) { adapter(f).write(settings, "[]"); }, score, 3, "?"},
    {"AdapterWeightsCut", [](const Folder& f) { adapter(f).cut(weights, -5); }, score, 5, "?"},
    {"AdapterOfAnotherKind", member("peft_type", "IA3"), score, 6, "?"},
    {"AdapterOfAnUnknownSetting", member("use_magic", true), score, 6, "?"},
    {"AdapterOfRankZero", member("r", 0), score, 3, "?"},
    {"AdapterOfRankTwoToThe40", member("r", std::int64_t{1} << 40), score, 3, "?"},
    {"AdapterOfAnotherRank", member("r", 4), score, 5, "?"},
    {"AdapterOfNoAlpha", member("lora_alpha", nullptr), score, 3, "?"},
    {"AdapterOfAnAlphaBeyondFloats", member("lora_alpha", 1e300), score, 3, "?"},
    {"AdapterOfNoModule", member("target_modules", Json::Array{"attention"}), score, 3, "?"},
    {"AdapterOfMoreModules", member("target_modules", Json::Array{"q_proj", "k_proj", "v_proj"}), score, 5, "?"},
    {"AdapterByABlowingExpression", member("target_modules", "(.*)*(.*)*(.*)*(.*)*x"), score, 3, "?"},
    {"AdapterByAnOpenExpression", member("target_modules", "((q_proj"), score, 3, "?"},
    {"AdapterOfFarLayers", member("layers_to_transform", Json::Array{99}), score, 3, "?"},
    {"AdapterOfAChangedBase", member("init_lora_weights", "pissa"), score, 6, "?"},
    {"AdapterNotANumber", [](const Folder& f) { adapter(f).patch(weights, -4, std::string("\0\0\xc0\x7f", 4)); }, score, 5, "?"},
    {"AdapterOfAnotherShape", [](const Folder& f) { adapter(f).swap(weights, "[8,64]", "[64,8]"); }, score, 5, "?"},
    {"AdapterOfForeignNames", [](const Folder& f) { adapter(f).swap(weights, "base_model.model.", "base_model_model."); }, score, 5, "?"},
    {"AdapterOfAnotherModel", [](const Folder& f) { adapter(f).copy("models/stories260k/hf", "other"); },
     "logprobs --model @/other --adapter @/adapter", 5, "?"},
    {"AdapterMergedIntoAFolderThatIsThere", [](const Folder& f) { adapter(f).directory("out"); },
     "merge --model @/base --adapter @/adapter --output @/out", 2, "?"},
};

}  // namespace

const std::vector<Case>& adapter_cases() { return cases; }

}  // namespace troupe::hostile
