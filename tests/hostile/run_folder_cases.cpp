// Folders of runs with damaged files: info and train report them or continue.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace run_folder_files {
namespace {

const std::string manifest = "out/checkpoint-1/training/manifest.json",
                  state = "out/checkpoint-1/training/state.json",
                  weights = "out/checkpoint-1/model.safetensors", metrics = "out/metrics.jsonl";
const std::string train =
    "train --algorithm sft --set model=@ --set data.path=@/rows.jsonl --set output=@/out --set "
    "train.batch_size=1 --set train.steps=";
const std::string go_on = train + "2";
constexpr const char* look = "info @/out";

const Folder& trained(const Folder& folder) {
  return folder.model()
      .write("rows.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n")
      .prepare(train + "1");
}

const std::vector<Case> cases = {
    {"RunWithoutItsManifest", [](const Folder& f) { trained(f).remove(manifest); }, go_on, 5,
     "@/out: no checkpoint can be used: @/out/checkpoint-1/training/manifest.json: cannot open for "
     "reading: No such file or directory"},
    {"RunWithACutManifest", [](const Folder& f) { trained(f).cut(manifest, 100); }, go_on, 5,
     "@/out/checkpoint-1/training/manifest.json: not valid JSON"},
    {"RunWithAnotherStepInItsManifest",
     [](const Folder& f) { trained(f).swap(manifest, "\"step\": 1", "\"step\": 9"); }, go_on, 5,
     "@/out/checkpoint-1: expected step 1, found 9 in its manifest and 1 in its state"},
    {"RunWithAForeignFileInItsManifest",
     [](const Folder& f) { trained(f).swap(manifest, "\"path\": \"", "\"path\": \"../../"); },
     go_on, 5,
     "@/out: no checkpoint can be used: @/out/checkpoint-1/training/manifest.json: "
     "\"../../config.json\" is not a file of this folder"},
    {"RunWithChangedWeights", [](const Folder& f) { trained(f).patch(weights, -8, "12345678"); },
     go_on, 5, "@/out/checkpoint-1/model.safetensors: expected checksum \""},
    {"RunWithCutWeights", [](const Folder& f) { trained(f).cut(weights, -8); }, go_on, 5,
     "@/out: no checkpoint can be used: @/out/checkpoint-1/model.safetensors: expected 1044992 "
     "bytes, found 1044984"},
    {"RunWithoutWeights", [](const Folder& f) { trained(f).remove(weights); }, go_on, 5,
     "@/out: no checkpoint can be used: @/out/checkpoint-1/model.safetensors: cannot open for "
     "reading: No such file or directory"},
    {"RunWithAChangedState", [](const Folder& f) { trained(f).swap(state, "1", "2"); }, go_on, 5,
     "@/out/checkpoint-1/training/state.json: expected checksum \""},
    {"RunWithAFileTooMany",
     [](const Folder& f) { trained(f).write("out/checkpoint-1/other.safetensors", "x"); }, go_on, 5,
     "@/out: no checkpoint can be used: @/out/checkpoint-1/\"other.safetensors\": not listed in "
     "@/out/checkpoint-1/training/manifest.json"},
    {"RunWithChangedWeightsInspected",
     [](const Folder& f) { trained(f).patch(weights, -8, "12345678"); }, look, 5,
     "@/out/checkpoint-1/model.safetensors: expected checksum \""},
    {"RunWithGarbageForMetrics",
     [](const Folder& f) { trained(f).write(metrics, "garbage\n\x01\xff\n{\"step\":\n"); }, look, 0,
     "metrics of 0 steps"},
    {"RunWithAPipeForMetrics", [](const Folder& f) { trained(f).pipe(metrics); }, go_on, 7,
     "@/out/metrics.jsonl: expected a regular file, found a device or pipe"},
    {"RunWithADirectoryForMetrics",
     [](const Folder& f) { trained(f).remove(metrics).directory(metrics); }, go_on, 7,
     "@/out/metrics.jsonl: expected a regular file, found a directory"},
    {"RunWithALinkToNowhere",
     [](const Folder& f) { trained(f).link("out/latest", "checkpoint-77"); }, look, 4,
     "@/out/checkpoint-77/training/manifest.json: cannot open for reading: No such file or "
     "directory"},
    {"RunWithALinkToItself", [](const Folder& f) { trained(f).link("out/latest", "latest"); }, look,
     7,
     "@/out/latest/training/manifest.json: cannot open for reading: Too many levels of symbolic "
     "links"},
    {"RunWithAFolderForTheLink",
     [](const Folder& f) {
       trained(f)
           .remove("out/latest")
           .directory("out/latest/training")
           .write("out/latest/training/state.json", "{\"step\": 1, \"state\": {}}");
     },
     go_on, 2,
     "@/out/latest: expected a link to the newest checkpoint, found a folder or file; a copy that "
     "follows links makes one. Remove it if @/out/checkpoint-1 exists"},
    {"RunWithAPipeForItsStarts",
     [](const Folder& f) { trained(f).remove("out/starts.jsonl").pipe("out/starts.jsonl"); }, go_on,
     7, "@/out/starts.jsonl: cannot open for writing: "},
    {"RunWithGarbageForFingerprints",
     [](const Folder& f) {
       trained(f)
           .write("out/.fingerprints.json", "[{\"inode\": -1}, 3, {\"xxh3_128\": 7}")
           .write("out/identity.json", "\x01");
     },
     go_on, 0, "step 2"},
    {"RunOfAnotherAlgorithm", [](const Folder& f) { trained(f); },
     "train --algorithm dpo --set model=@ --set data.path=@/rows.jsonl --set output=@/out --set "
     "train.steps=2",
     2,
     "@/out/checkpoint-1 was written by algorithm \"sft\", but this run uses \"dpo\": choose "
     "another output directory"},
};

}  // namespace
}  // namespace run_folder_files

const std::vector<Case>& run_folder_cases() {
  return run_folder_files::cases;
}

}  // namespace troupe::hostile
