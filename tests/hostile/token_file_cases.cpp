// Megatron's token files that contradict themselves, and progress files of `troupe preprocess`.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace token_files {
namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An index of these counts over lengths, offsets and documents.
std::string index(std::uint64_t sequences, std::uint64_t documents,
                  const std::vector<std::int32_t>& lengths,
                  const std::vector<std::int64_t>& numbers) {
  std::string out("MMIDIDX\0\0", 9);
  put(out, std::uint64_t{1});
  put(out, std::uint8_t{4});
  put(out, sequences);
  put(out, documents);
  for (const auto length : lengths) put(out, length);
  for (const auto number : numbers) put(out, number);
  return out;
}

const std::string five_tokens(20, '\1');

auto dataset(std::string index, std::string data = five_tokens) {
  return [index = std::move(index), data = std::move(data)](const Folder& folder) {
    folder.write("a.bin", data).write("a.idx", index);
  };
}

const char* const merge = "preprocess --input @ --output-prefix @/out --merge-group-keys a";

auto progress(std::string outputs) {
  return [outputs = std::move(outputs)](const Folder& folder) {
    folder.copy("models/stories260k/hf", "tok").write("a.txt", "One day.\n");
    folder.write("o.progress.json",
                 R"({"settings":{},"file":0,"row":0,"rows":0,"outputs":)" + outputs + "}");
  };
}

const std::vector<Case> cases = {
    {"TokenIndexEmpty", dataset(""), merge, 5, "@/a.idx: expected the index of a Megatron dataset"},
    {"TokenIndexOfText", dataset(std::string(100, 'x')), merge, 5,
     "@/a.idx: expected the index of a Megatron dataset"},
    {"TokenIndexOf2To64Sequences", dataset(index(~std::uint64_t{0}, 1, {}, {0})), merge, 5,
     "the file is truncated or its header is damaged"},
    {"TokenIndexWhoseSizeOverflows", dataset(index(0x1555555555555556, 1, {}, {0})), merge, 5,
     "the file is truncated or its header is damaged"},
    {"TokenIndexOfManyDocuments", dataset(index(0, 0x2000000000000001, {}, {0})), merge, 5,
     "the file is truncated or its header is damaged"},
    {"TokenIndexWithANegativeLength", dataset(index(1, 2, {-5}, {0, 0, 1})), merge, 5,
     "@/a.idx: sequence 0 has -5 tokens of 4 bytes at byte 0"},
    {"TokenIndexBeyondItsData", dataset(index(1, 2, {6}, {0, 0, 1})), merge, 5,
     "but @/a.bin has 20 bytes; the two files do not belong together"},
    {"TokenIndexWithAHugeOffset", dataset(index(1, 2, {5}, {0x7ffffffffffffff0, 0, 1})), merge, 5,
     "at byte 9223372036854775792"},
    {"TokenIndexWhoseDocumentsDescend", dataset(index(1, 3, {5}, {0, 0, 7, 1})), merge, 5,
     "@/a.idx: document 1 begins at sequence 7"},
    {"TokenIndexWithoutItsData", [](const Folder& f) { f.write("a.idx", index(0, 1, {}, {0})); },
     merge, 4, "@/a.bin: "},
    {"TokenProgressOfAnotherCommand", progress("[]"),
     "preprocess --input @/a.txt --output-prefix @/o --tokenizer-name-or-path @/tok", 2,
     "@/o.progress.json: the command that was interrupted had other settings"},
    {"TokenProgressOfGarbage",
     [](const Folder& f) {
       f.copy("models/stories260k/hf", "tok").write("a.txt", "One day.\n");
       f.write("o.progress.json", "{\"settings\":[[[[");
     },
     "preprocess --input @/a.txt --output-prefix @/o --tokenizer-name-or-path @/tok", 3,
     "@/o.progress.json"},
    {"TokenYamlOfAliases", [](const Folder& f) { f.write("a.yaml", "a: &x [1]\nb: *x\n"); },
     "preprocess @/a.yaml", 2, "@/a.yaml"},
};

}  // namespace
}  // namespace token_files

const std::vector<Case>& token_file_cases() {
  return token_files::cases;
}

}  // namespace troupe::hostile
