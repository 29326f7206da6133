// Files of weights that lie about themselves. Format: huggingface/safetensors, README.md.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace safetensors_files {
namespace {

const std::string file = "model.safetensors";

// The model with this weight file: a header and `bytes` bytes.
auto weights(std::string header, std::int64_t bytes) {
  return [header = std::move(header), bytes](const Folder& folder) {
    folder.model().tensors(file, header, bytes);
  };
}

// A header of one F32 tensor with these members.
std::string one(const std::string& shape, const std::string& offsets,
                const std::string& dtype = "F32") {
  return R"({"model.norm.weight":{"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

std::string two(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
         R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
}

std::string many_tensors(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i)
    header += (i ? ",\"model.layers." : "\"model.layers.") + std::to_string(i) +
              R"(.x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  return header + "}";
}

const std::string deep(100000, '[');

std::string many_values(int count) {
  std::string header = "{\"a\":[0";
  for (int i = 0; i < count; ++i) header += ",0";
  return header + "]}";
}

const std::vector<Case> cases = {
    {"WeightsEmpty", [](const Folder& f) { f.model().write(file, ""); }, score_ids, 5,
     "@/model.safetensors: expected a safetensors file, which begins with an 8-byte header length; "
     "found 0 bytes"},
    {"WeightsOfSevenBytes", [](const Folder& f) { f.model().write(file, "1234567"); }, score_ids, 5,
     "@/model.safetensors: expected a safetensors file, which begins with an 8-byte header length; "
     "found 7 bytes"},
    {"WeightsThatAreAWebPage",
     [](const Folder& f) { f.model().write(file, "<!DOCTYPE html><html>404</html>"); }, score_ids,
     5,
     "@/model.safetensors: the header is said to have 5789751444030890300 bytes, but only 23 "
     "follow: the file is cut short or is not a "
     "safetensors file"},
    {"HeaderLengthOfTwoToThe63",
     [](const Folder& f) { f.model().patch(file, 0, std::string("\0\0\0\0\0\0\0\x80", 8)); },
     score_ids, 5,
     "@/model.safetensors: the header is said to have 9223372036854775808 bytes, but only 1044984 "
     "follow: the file is cut short or is not "
     "a safetensors file"},
    {"HeaderLengthThatWrapsAround",
     [](const Folder& f) { f.model().patch(file, 0, "\xf9\xff\xff\xff\xff\xff\xff\xff"); },
     score_ids, 5,
     "@/model.safetensors: the header is said to have 18446744073709551609 bytes, but only 1044984 "
     "follow: the file is cut short or is not "
     "a safetensors"},
    {"WeightsCutInTheHeader", [](const Folder& f) { f.model().cut(file, 100); }, score_ids, 5,
     "@/model.safetensors: the header is said to have 4856 bytes, but only 92 follow: the file is "
     "cut short or is not a safetensors file"},
    {"WeightsCutInTheData", [](const Folder& f) { f.model().cut(file, -1); }, score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": ends at byte 1040128 of the data, but the "
     "file holds 1040127: it is cut short or "
     "its header is wrong"},
    {"WeightsWithBytesBehind", [](const Folder& f) { f.model().append(file, "x"); }, score_ids, 5,
     "@/model.safetensors: its tensors end at byte 1040128 of the data, but the file holds "
     "1040129"},
    {"HeaderNotJson", weights("{\"a\":", 0), score_ids, 5,
     "@/model.safetensors: not valid JSON at line 1, column 5: syntax error while parsing value - "
     "unexpected end of input; expected '[', "
     "'{', or a literal"},
    {"HeaderAList", weights("[]", 0), score_ids, 5,
     "@/model.safetensors: the header must be a JSON object, found \"[]\""},
    {"HeaderNotUtf8", weights("{\"\xff\":1}", 0), score_ids, 5,
     "@/model.safetensors: not UTF-8 at line 1, column 2"},
    {"HeaderNestedDeeply", weights("{\"a\":" + deep, 0), score_ids, 5,
     "@/model.safetensors: not valid JSON at line 1, column 8: nested deeper than 3 levels"},
    {"HeaderOfMillionsOfValues",
     [](const Folder& f) { f.model().tensors(file, many_values(5'000'000), 0); }, score_ids, 6,
     "@/model.safetensors: a header of 5000003 values; at most 1048576 are read"},
    {"HeaderOf99Megabytes",
     [](const Folder& f) { f.model().tensors(file, std::string(99'000'000, ' '), 0); }, score_ids,
     6, "@/model.safetensors: a header of 99000000 bytes; at most 16777216 are read"},
    {"HundredThousandTensors",
     [](const Folder& f) { f.model().tensors(file, many_tensors(100'000), 0); }, score_ids, 5,
     "@: config.json describes 260032 parameters, the weight files hold 0"},
    {"TensorTwice",
     weights(
         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
         4),
     score_ids, 5,
     "@/model.safetensors: not valid JSON at line 1, column 57: the key \"a\" occurs twice in one "
     "object"},
    {"MemberOfATensorTwice",
     weights(R"({"a":{"dtype":"F32","dtype":"I64","shape":[1],"data_offsets":[0,4]}})", 4),
     score_ids, 5,
     "@/model.safetensors: not valid JSON at line 1, column 27: the key \"dtype\" occurs twice in "
     "one object"},
    {"TensorsOverlap", weights(two("[0,8]", "[4,12]"), 12), score_ids, 5,
     "@/model.safetensors: tensor \"b\": begins at byte 4 of the data, expected 8: it overlaps the "
     "tensor before"},
    {"TensorsOnTopOfEachOther", weights(two("[0,8]", "[0,8]"), 8), score_ids, 5,
     "@/model.safetensors: tensor \"b\": begins at byte 0 of the data, expected 8: it overlaps the "
     "tensor before"},
    {"TensorsWithAHoleBetween", weights(two("[0,8]", "[12,20]"), 20), score_ids, 5,
     "@/model.safetensors: tensor \"b\": begins at byte 12 of the data, expected 8: there is a "
     "hole before it"},
    {"TensorBehindTheEnd", weights(two("[0,8]", "[8,16]"), 12), score_ids, 5,
     "@/model.safetensors: tensor \"b\": ends at byte 16 of the data, but the file holds 12: it is "
     "cut short or its header is wrong"},
    {"TensorBackwards", weights(one("[1]", "[4,0]"), 4), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": ends at 0, before it begins at 4"},
    {"TensorAtANegativePlace", weights(one("[1]", "[-4,0]"), 4), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": \"data_offsets\" must be a list of "
     "integers >= 0, found -4"},
    {"TensorAtTenToThe30", weights(one("[1]", "[0,1e30]"), 4), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": \"data_offsets\" must be a list of "
     "integers >= 0, found 1e+30"},
    {"TensorAtThreePlaces", weights(one("[1]", "[0,4,8]"), 8), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": \"data_offsets\" must be two numbers, "
     "found 3"},
    {"SizesWhoseProductOverflows", weights(one("[4294967296,4294967296,4294967296]", "[0,4]"), 4),
     score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": the sizes [4294967296, 4294967296, "
     "4294967296] multiply to more than 2^63 bits"},
    {"SizeNegative", weights(one("[-1]", "[0,4]"), 4), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": \"shape\" must be a list of integers >= "
     "0, found -1"},
    {"SizeBeyondTheBytes", weights(one("[1000000]", "[0,4]"), 4), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": F32 [1000000] needs 4000000 bytes, found "
     "4"},
    {"DtypeUnknown", weights(one("[1]", "[0,4]", "F33"), 4), score_ids, 6,
     "@/model.safetensors: tensor \"model.norm.weight\": unknown dtype \"F33\""},
    {"DtypeOfHalfABytes", weights(one("[1]", "[0,1]", "F4"), 1), score_ids, 5,
     "@/model.safetensors: tensor \"model.norm.weight\": F4 [1] does not fill whole bytes"},
    {"TensorWithoutAName", weights(R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
     score_ids, 5, "@/model.safetensors: a tensor without a name"},
    {"TensorWithAZeroInItsName",
     weights(R"({"a\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), score_ids, 5,
     "@/model.safetensors: tensor \"a\\x00b\": control characters in its name"},
    {"MetadataOfNumbers", weights(R"({"__metadata__":{"format":1}})", 0), score_ids, 5,
     "@/model.safetensors: \"__metadata__\": \"format\" must be a string, found integer"},
    {"WeightsOfIntegers",
     [](const Folder& f) { f.model().swap(file, R"("dtype":"F32")", R"("dtype":"I32")"); },
     score_ids, 6,
     "@/model.safetensors: tensor \"model.embed_tokens.weight\": expected F32, BF16, F16 or F64, "
     "found I32"},
    {"WeightsOfAnotherShape", [](const Folder& f) { f.model().swap(file, "[512,64]", "[64,512]"); },
     score_ids, 5,
     "@/model.safetensors: tensor \"model.embed_tokens.weight\": expected [512, 64] (from "
     "config.json), found [64, 512]"},
    {"WeightMissing",
     [](const Folder& f) { f.model().swap(file, "model.norm.weight", "model.gnom.weight"); },
     score_ids, 5, "@: expected tensor \"model.norm.weight\""},
    {"WeightNotANumber",
     [](const Folder& f) { f.model().patch(file, -4, std::string("\0\0\xc0\x7f", 4)); }, score_ids,
     5,
     "@/model.safetensors: tensor \"model.norm.weight\": element 63 is nan; every weight must be "
     "finite"},
    {"WeightInfinite",
     [](const Folder& f) { f.model().patch(file, -4, std::string("\0\0\x80\xff", 4)); }, score_ids,
     5,
     "@/model.safetensors: tensor \"model.norm.weight\": element 63 is -inf; every weight must be "
     "finite"},
    {"WeightsAsAPickle",
     [](const Folder& f) { f.model().remove(file).write("pytorch_model.bin", "\x80\x02."); },
     score_ids, 4,
     "@: expected model.safetensors or model.safetensors.index.json, found neither; "
     "pytorch_model.bin is a pickle, which only `troupe convert` reads. Rewrite it as safetensors: "
     "troupe convert --from-pickle @"},
};

}  // namespace
}  // namespace safetensors_files

const std::vector<Case>& safetensors_cases() {
  return safetensors_files::cases;
}

}  // namespace troupe::hostile
