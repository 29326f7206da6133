// Places where a file should be and something else is; outputs that cannot be written.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace place_files {
namespace {

constexpr const char* hello = R"({"text":"hello"})";
const std::string train =
    "train --algorithm sft --set model=@ --set data.path=@/rows.jsonl --set train.batch_size=1 "
    "--set train.steps=1 --set output=";
const std::string merge = "merge --model @/base --adapter @/adapter --output @/disk/out";

const Folder& rows(const Folder& folder) {
  return folder.model().write("rows.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n");
}
const Folder& adapter(const Folder& folder) {
  return folder.directory("disk")
      .directory("base")
      .copy("golden/models/llama/config.json", "base/config.json")
      .copy("golden/models/llama/model.safetensors", "base/model.safetensors")
      .copy("golden/peft/llama-q-v", "adapter");
}

const std::vector<Case> cases = {
    {"ModelNotThere", [](const Folder&) {}, "logprobs --model @/none", 4,
     "@/none: no such directory; a Hugging Face model directory is expected"},
    {"ModelAFile", [](const Folder& f) { f.write("model", "x"); }, "logprobs --model @/model", 4,
     "@/model: is a file; a Hugging Face model directory is expected"},
    {"ModelADevice", [](const Folder&) {}, "logprobs --model /dev/zero", 7,
     "/dev/zero/config.json: cannot open for reading: Not a directory"},
    {"ConfigADirectory",
     [](const Folder& f) { f.model().remove("config.json").directory("config.json"); }, score_ids,
     7, "@/config.json: expected a regular file, found a directory"},
    {"ConfigAPipe", [](const Folder& f) { f.model().pipe("config.json"); }, score_ids, 7,
     "@/config.json: expected a regular file, found a device or pipe"},
    {"ConfigADevice", [](const Folder& f) { f.model().link("config.json", "/dev/zero"); },
     score_ids, 7, "@/config.json: expected a regular file, found a device or pipe"},
    {"ConfigALinkToItself", [](const Folder& f) { f.model().link("config.json", "config.json"); },
     score_ids, 7, "@/config.json: cannot open for reading: Too many levels of symbolic links"},
    {"WeightsADirectory",
     [](const Folder& f) { f.model().remove("model.safetensors").directory("model.safetensors"); },
     score_ids, 7, "@/model.safetensors: expected a regular file, found a directory"},
    {"WeightsAPipe", [](const Folder& f) { f.model().pipe("model.safetensors"); }, score_ids, 7,
     "@/model.safetensors: expected a regular file, found a device or pipe"},
    {"WeightsADevice", [](const Folder& f) { f.model().link("model.safetensors", "/dev/zero"); },
     score_ids, 7, "@/model.safetensors: expected a regular file, found a device or pipe"},
    {"TokenizerAPipe", [](const Folder& f) { f.model().pipe("tokenizer.json"); },
     "tokenize --model @", 7, "@/tokenizer.json: expected a regular file, found a device or pipe",
     hello},
    {"TemplateAPipe", [](const Folder& f) { f.pipe("chat.jinja"); },
     "render --template @/chat.jinja", 7,
     "@/chat.jinja: expected a regular file, found a device or pipe"},
    {"RowsAPipe", [](const Folder& f) { rows(f).pipe("rows.jsonl"); }, train + "@/out", 7,
     "@/rows.jsonl: expected a regular file, found a device or pipe"},
    {"RowsADevice", [](const Folder& f) { rows(f).link("rows.jsonl", "/dev/zero"); },
     train + "@/out", 7, "@/rows.jsonl: expected a regular file, found a device or pipe"},
    {"RowsALinkToItself", [](const Folder& f) { rows(f).link("rows.jsonl", "rows.jsonl"); },
     train + "@/out", 4, "data.path: no file or folder \"@/rows.jsonl\""},
    {"RowsADirectoryOfNothing",
     [](const Folder& f) { rows(f).remove("rows.jsonl").directory("rows.jsonl"); }, train + "@/out",
     4,
     "@/rows.jsonl: a folder without data files; known formats: .jsonl, .ndjson, .json, .csv, "
     ".tsv, .txt (each also with .gz), .parquet, "
     ".arrow"},
    {"InspectAPipe", [](const Folder& f) { f.pipe("rows.jsonl"); }, "info @/rows.jsonl", 7,
     "@/rows.jsonl: expected a regular file, found a device or pipe"},
    {"InspectADevice", [](const Folder&) {}, "info /dev/zero", 6,
     "cannot be used: unknown file type"},
    {"InspectALinkToItself", [](const Folder& f) { f.link("loop", "loop"); }, "info @/loop", 7,
     "@/loop: Too many levels of symbolic links"},
    {"InspectNothing", [](const Folder& f) { f.directory("empty"); }, "info @/empty", 6,
     "neither a model (config.json), a tokenizer (tokenizer.json, "},
    {"OutputAFile", [](const Folder& f) { rows(f).write("out", "x"); }, train + "@/out", 7,
     "@/out: cannot create: Not a directory"},
    {"OutputUnderAFile", [](const Folder& f) { rows(f).write("file", "x"); }, train + "@/file/out",
     7, "@/file/out: cannot create: Not a directory"},
    {"OutputOnAReadOnlyDisk",
     [](const Folder& f) { rows(f).directory("disk"); },
     train + "@/disk/out",
     7,
     "@/disk/out: cannot create: Read-only file system",
     "",
     {.disk = "@/disk", .read_only = true}},
    {"OutputOnAFullDisk",
     [](const Folder& f) { rows(f).directory("disk"); },
     train + "@/disk/out",
     7,
     "troupe: a checkpoint needs 3 MiB, 0 MiB are free in @/disk/out; remove files there",
     "",
     {.disk = "@/disk"}},
    {"OutputBeyondTheLongestFile",
     [](const Folder& f) { rows(f); },
     train + "@/out",
     7,
     "model.safetensors: cannot write: File too large",
     "",
     {.longest_file = 100'000}},
    {"MergedOnAFullDisk",
     [](const Folder& f) { adapter(f); },
     merge,
     7,
     "@/disk/out.partial/model.safetensors: cannot write: No space left on device",
     "",
     {.disk = "@/disk"}},
    {"MergedOnAReadOnlyDisk",
     [](const Folder& f) { adapter(f); },
     merge,
     7,
     "@/disk/out.partial: cannot create: Read-only file system",
     "",
     {.disk = "@/disk", .read_only = true}},
    {"AnswersOnAFullDisk", [](const Folder& f) { f.model(); }, "tokenize --model @ >/dev/full", 7,
     "cannot write to stdout: the reader has exited or the disk is full", hello},
    {"LookOnAFullDisk", [](const Folder& f) { f.model(); }, "info @ >/dev/full", 7,
     "cannot write to stdout: the reader has exited or the disk is full"},
    {"ExplanationOnAFullDisk", [](const Folder&) {}, "explain --reference >/dev/full", 7,
     "cannot write to stdout: the reader has exited or the disk is full"},
    {"InputADirectory", [](const Folder& f) { f.model(); }, "tokenize --model @ <@", 7,
     "cannot read stdin: "},
};

}  // namespace
}  // namespace place_files

const std::vector<Case>& place_cases() {
  return place_files::cases;
}

}  // namespace troupe::hostile
