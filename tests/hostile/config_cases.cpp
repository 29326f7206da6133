// config.json and generation_config.json that ask for the impossible.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace config_files {
namespace {

const std::string file = "config.json", generation = "generation_config.json";

auto text(std::string bytes) {
  return [bytes = std::move(bytes)](const Folder& folder) { folder.model().write(file, bytes); };
}
auto member(std::string key, Json value) {
  return [key = std::move(key), value = std::move(value)](const Folder& folder) {
    folder.model().set(file, key, value);
  };
}
auto default_of(std::string key, Json value) {
  return [key = std::move(key), value = std::move(value)](const Folder& folder) {
    folder.model().set(generation, key, value);
  };
}
Json number(const char* digits) {
  return value_or_throw(parse_json(digits, "a number"));
}

constexpr const char* draw = "generate --model @";
constexpr const char* prompt = R"({"ids":[1,2,3]})";

const std::vector<Case> cases = {
    {"ConfigEmpty", text(""), score_ids, 3,
     "@/config.json: not valid JSON at line 1, column 0: syntax error while parsing value - "
     "unexpected end of input; expected '[', '{', or "
     "a literal"},
    {"ConfigCut", [](const Folder& f) { f.model().cut(file, -10); }, score_ids, 3,
     "@/config.json: not valid JSON at line 27, column 11: syntax error while parsing object key - "
     "invalid string: missing closing quote"},
    {"ConfigAList", text("[]"), score_ids, 3, "@/config.json: expected a JSON object, found array"},
    {"ConfigNull", text("null"), score_ids, 3, "@/config.json: expected a JSON object, found null"},
    {"ConfigNotUtf8", text("{\"a\": \"\xc3\x28\"}"), score_ids, 3,
     "@/config.json: not UTF-8 at line 1, column 7"},
    {"ConfigOfZeros", text(std::string(4096, '\0')), score_ids, 3,
     "@/config.json: not valid JSON at line 1, column 1: syntax error while parsing value - "
     "unexpected end of input; expected '[', '{', or "
     "a literal"},
    {"ConfigNestedDeeply", text(std::string(1'000'000, '[')), score_ids, 3,
     "@/config.json: not valid JSON at line 1, column 65: nested deeper than 64 levels"},
    {"ConfigWithAKeyTwice",
     [](const Folder& f) { f.model().swap(file, "{", "{\"vocab_size\":1,"); }, score_ids, 3,
     "@/config.json: not valid JSON at line 27, column 13: the key \"vocab_size\" occurs twice in "
     "one object"},
    {"ConfigWithTextBehind", [](const Folder& f) { f.model().append(file, "{}"); }, score_ids, 3,
     "@/config.json: not valid JSON at line 29, column 1: syntax error while parsing value - "
     "unexpected '{'; expected end of input"},
    {"ConfigOf17Megabytes",
     [](const Folder& f) {
       f.model().repeat(file, "{\"a\":\"", std::string(1024, 'x'), 17 * 1024, "\"}");
     },
     score_ids, 3, "@/config.json: 17825800 bytes, at most 16777216 are read"},
    {"ConfigOfMillionsOfValues",
     [](const Folder& f) { f.model().repeat(file, "{\"a\":[0", ",0", 8'000'000, "]}"); }, score_ids,
     3, "@/config.json: not valid JSON at line 1, column 2097159: more than 1048576 values"},
    {"ConfigOfMillionsOfKeys",
     [](const Folder& f) {
       std::string keys = "{\"a\":1";
       for (int i = 0; i < 1'200'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
       f.model().write(file, keys + "}");
     },
     score_ids, 3,
     "@/config.json: not valid JSON at line 1, column 11471806: more than 2097152 values"},
    {"ConfigWithANumberBeyondDoubles",
     [](const Folder& f) { f.model().swap(file, "10000.0", "1e400"); }, score_ids, 3,
     "@/config.json: not valid JSON at line 23, column 20: number overflow parsing '1e400'"},
    {"ConfigWithNotANumber", [](const Folder& f) { f.model().swap(file, "10000.0", "NaN"); },
     score_ids, 3,
     "@/config.json: not valid JSON at line 23, column 16: syntax error while parsing value - "
     "invalid literal"},
    {"ConfigWithAControlCharacter",
     [](const Folder& f) { f.model().swap(file, "LlamaForCausalLM", "Llama\x1b[2J"); }, score_ids,
     3,
     "@/config.json: not valid JSON at line 3, column 9: syntax error while parsing value - "
     "invalid string: control character U+001B (ESC) "
     "must be escaped"},
    {"ArchitectureUnknown", member("architectures", Json::Array{"MambaForCausalLM"}), score_ids, 6,
     "@/config.json: the architecture \"MambaForCausalLM\" is not supported"},
    {"ArchitectureWithAnEscape", member("architectures", Json::Array{"\x1b[2J"}), score_ids, 6,
     "@/config.json: the architecture \"\\x1b[2J\" is not supported"},
    {"ArchitectureMissing", text("{}"), score_ids, 6,
     "@/config.json: the architecture \"\" is not supported"},
    {"LayersTwoToThe62", member("num_hidden_layers", std::int64_t{1} << 62), score_ids, 3,
     "@/config.json: \"num_hidden_layers\" must be between 1 and 4096, found 4611686018427387904"},
    {"LayersTwoToThe64", member("num_hidden_layers", number("18446744073709551616")), score_ids, 3,
     "@/config.json: \"num_hidden_layers\" must be an integer, found \"18446744073709551616.0\""},
    {"LayersNegative", member("num_hidden_layers", -1), score_ids, 3,
     "@/config.json: \"num_hidden_layers\" must be between 1 and 4096, found -1"},
    {"LayersAText", member("num_hidden_layers", "5"), score_ids, 3,
     "@/config.json: \"num_hidden_layers\" must be an integer, found \"\\\"5\\\"\""},
    {"LayersAFraction", member("num_hidden_layers", 4.5), score_ids, 3,
     "@/config.json: \"num_hidden_layers\" must be an integer, found \"4.5\""},
    {"LayersNotSaid",
     [](const Folder& f) { f.model().swap(file, "\"num_hidden_layers\"", "\"layers\""); },
     score_ids, 3, "@/config.json: the key \"num_hidden_layers\" (an integer) is missing"},
    {"HeadsNone", member("num_attention_heads", 0), score_ids, 3,
     "@/config.json: \"num_attention_heads\" must be between 1 and 65536, found 0"},
    {"HeadsThatDoNotShareTheKeys", member("num_key_value_heads", 3), score_ids, 3,
     "@/config.json: num_attention_heads 8 is not a multiple of num_key_value_heads 3"},
    {"HeadSizeOdd", member("head_dim", 7), score_ids, 3,
     "@/config.json: the head size must be even for rotary positions, found 7"},
    {"VocabularyOfTwoToThe31", member("vocab_size", std::int64_t{1} << 31), score_ids, 3,
     "@/config.json: \"vocab_size\" must be between 1 and 16777216, found 2147483648"},
    {"SizesBeyondTheWeights",
     [](const Folder& f) {
       f.model()
           .set(file, "vocab_size", 1 << 24)
           .set(file, "hidden_size", 1 << 20)
           .set(file, "num_hidden_layers", 4096)
           .set(file, "intermediate_size", 1 << 20);
     },
     score_ids, 5,
     "@: config.json describes 13529224292859904 parameters, the weight files hold 260032; they "
     "do not belong to the same model"},
    {"MoreLayersThanStored", member("num_hidden_layers", 6), score_ids, 5,
     "@: config.json describes 305472 parameters, the weight files hold 260032; they do not "
     "belong to the same model"},
    {"FewerLayersThanStored", member("num_hidden_layers", 4), score_ids, 5,
     "@/model.safetensors: unexpected tensor "
     "\"model.layers.4.input_layernorm.weight\" [64]; config.json describes another "
     "model"},
    {"RopeUnknown", member("rope_scaling", Json::Object{{"rope_type", "spiral"}, {"factor", 2.0}}),
     score_ids, 6, "@/config.json: rope type \"spiral\" is not supported"},
    {"RopeOfFactorZero",
     member("rope_scaling", Json::Object{{"rope_type", "linear"}, {"factor", 0}}), score_ids, 3,
     "@/config.json: \"factor\" must be above 0, found 0"},
    {"RopeAList", member("rope_scaling", Json::Array{1}), score_ids, 3,
     "@/config.json: rope_scaling must be an object or null, found \"[1]\""},
    {"RopeThetaNegative", member("rope_theta", -1), score_ids, 3,
     "@/config.json: \"rope_theta\" must be above 0, found -1"},
    {"NormWithANegativeEpsilon", member("rms_norm_eps", -1), score_ids, 3,
     "@/config.json: rms_norm_eps must be between 0 and 1, found -1"},
    {"ActivationUnknown", member("hidden_act", "sine"), score_ids, 6, "@/config.json: hidden_act "},
    {"WeightsQuantized", member("quantization_config", Json::Object{{"bits", 4}}), score_ids, 6,
     "@/config.json: \"quantization_config\": "},
    {"EndTokenOutsideTheVocabulary", member("eos_token_id", 512), score_ids, 3,
     "@/config.json: \"eos_token_id\" must be a token id below vocab_size 512, found \"512\""},
    {"BeginTokenNegative", member("bos_token_id", -7), score_ids, 3,
     "@/config.json: \"bos_token_id\" must be a token id below vocab_size 512, found \"-7\""},
    {"RopeOfAListTooShort",
     member("rope_scaling", Json::Object{{"rope_type", "longrope"},
                                         {"short_factor", Json::Array{1.0}},
                                         {"long_factor", Json::Array{1.0}}}),
     score_ids, 3, "@/config.json: \"long_factor\" must be a list of 4 numbers, found 1 values"},
    {"RopeOfYarnWithoutAnAngle",
     [](const Folder& f) {
       f.model()
           .set(file, "rope_theta", 1.0)
           .set(file, "rope_scaling", Json::Object{{"rope_type", "yarn"}, {"factor", 2.0}});
     },
     score_ids, 3, "@/config.json: the rope parameters give frequencies that are not finite"},
    {"HeadsMoreThanWidth",
     [](const Folder& f) {
       f.model()
           .set(file, "hidden_size", 1)
           .set(file, "num_attention_heads", 65536)
           .set(file, "head_dim", nullptr);
     },
     score_ids, 3, "@/config.json: hidden_size 1 is not a multiple of num_attention_heads 65536"},
    {"LayerTypesTooFew",
     [](const Folder& f) {
       f.model()
           .set(file, "architectures", Json::Array{"Qwen2ForCausalLM"})
           .set(file, "layer_types", Json::Array{"full_attention"});
     },
     score_ids, 3,
     "@/config.json: \"layer_types\" must be a list of num_hidden_layers 5 names, found "},
    {"LayerTypesUnknown",
     [](const Folder& f) {
       f.model()
           .set(file, "architectures", Json::Array{"Qwen2ForCausalLM"})
           .set(file, "layer_types", Json::Array{"a", "b", "c", "d", "e"});
     },
     score_ids, 6, "@/config.json: \"layer_types\" has "},
    {"ExpertsUnknown", member("num_local_experts", 8), score_ids, 6,
     "@/config.json: \"num_local_experts\": "},
    {"LabelsTwoToThe40",
     [](const Folder& f) {
       f.model()
           .set(file, "architectures", Json::Array{"LlamaForSequenceClassification"})
           .set(file, "num_labels", std::int64_t{1} << 40);
     },
     score_ids, 3,
     "@/config.json: \"num_labels\" must be between 1 and 65536, found 1099511627776"},
    {"TemperatureNegative", default_of("temperature", -1), draw, 3, "temperature", prompt},
    {"TemperatureAText", default_of("temperature", "hot"), draw, 3, "temperature", prompt},
    {"BeamsTwoToThe40", default_of("num_beams", std::int64_t{1} << 40), draw, 3, "num_beams",
     prompt},
    {"TopPOfSeven", default_of("top_p", 7.0), draw, 3, "top_p", prompt},
    {"LengthTwoToThe62", default_of("max_new_tokens", std::int64_t{1} << 62), draw, 3,
     "max_new_tokens", prompt},
    {"BadWordsOutsideTheVocabulary", default_of("bad_words_ids", Json::Array{Json::Array{99999}}),
     draw, 3, "bad_words", prompt},
    {"GenerationCut", [](const Folder& f) { f.model().cut(generation, 20); }, score_ids, 3,
     "@/generation_config.json: not valid JSON at line 2, column 18: syntax error while parsing "
     "object key - invalid string: missing "
     "closing quote"},
    {"GenerationAList", [](const Folder& f) { f.model().write(generation, "[1]"); }, score_ids, 3,
     "@/generation_config.json: expected a JSON object, found array"},
    {"GenerationEndsOutsideTheVocabulary", default_of("eos_token_id", Json::Array{2, 99999}),
     score_ids, 3,
     "@/generation_config.json: \"eos_token_id\" must be a token id below vocab_size 512, found "
     "\"99999\""},
    {"GenerationEndsWithAText", default_of("eos_token_id", "</s>"), score_ids, 3,
     "@/generation_config.json: \"eos_token_id\" must be a token id below vocab_size 512, found "
     "\"\\\"</s>\\\"\""},
};

}  // namespace
}  // namespace config_files

const std::vector<Case>& config_cases() {
  return config_files::cases;
}

}  // namespace troupe::hostile
