// Files of settings: of runs (YAML or JSON) and of clusters.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace run_file_files {
namespace {

const std::string file = "run.yaml";
constexpr const char* explain = "explain --config @/run.yaml";
const std::string start = "algorithm: sft\nmodel: x\noutput: y\ndata:\n  path: z\n";

constexpr const char* import_run = "import @/run.yaml";

auto text(std::string bytes) {
  return [bytes = std::move(bytes)](const Folder& folder) { folder.write(file, bytes); };
}
auto more(const std::string& lines) {
  return text(start + lines);
}

std::string laughs() {
  std::string yaml = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    yaml += name + ": &" + name + " [" + before;
    for (int k = 0; k < 9; ++k) yaml += ", " + before;
    yaml += "]\n";
  }
  return yaml;
}

const Folder& prepared(const Folder& folder) {
  return folder.model().write("rows.jsonl", "{\"prompt\":\"a\",\"response\":\"b\"}\n");
}
auto cluster(std::string yaml) {
  return [yaml = std::move(yaml)](const Folder& folder) {
    prepared(folder).write("cluster.yaml", yaml);
  };
}
constexpr const char* launch =
    "launch --cluster @/cluster.yaml -- train --algorithm sft --set model=@ --set "
    "data.path=@/rows.jsonl --set output=@/out --set "
    "train.steps=1";

const std::vector<Case> cases = {
    {"SettingsOfLaughs", text(laughs()), explain, 2,
     "@/run.yaml:1: anchors (&name) are not accepted; write the value out"},
    {"SettingsWithAnAnchor", text("model: &m x\n"), explain, 2,
     "@/run.yaml:1: anchors (&name) are not accepted; write the value out"},
    {"SettingsMerged", text("<<: {model: x}\n"), explain, 2, "unknown key << (@/run.yaml:1)"},
    {"SettingsWithATag", text("model: !!python/object/apply:os.system [ls]\n"), explain, 2,
     "@/run.yaml:1: the tag \"tag:yaml.org,2002:python/object/apply:os.system\" is not accepted; "
     "write the plain value"},
    {"SettingsWithAKeyTwice", more("model: w\n"), explain, 2,
     "@/run.yaml:6: the key \"model\" stands twice (first in line 2); keep one"},
    {"SettingsNestedDeeply", text(std::string(100'000, '[')), explain, 2, "@/run.yaml:1: "},
    {"SettingsNestedByIndentation",
     [](const Folder& f) {
       std::string yaml;
       for (int i = 0; i < 1000; ++i)
         yaml += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
       f.write(file, yaml);
     },
     explain, 2, "@/run.yaml:17: nested deeper than 16 levels"},
    {"SettingsNotUtf8", text("model: \xff\n"), explain, 2,
     "@/run.yaml: byte 7 is not UTF-8; save the file as UTF-8"},
    {"SettingsOfZeros", text(std::string(1000, '\0')), explain, 2,
     "@/run.yaml:1:3: not YAML: unknown escape character:"},
    {"SettingsOf100Megabytes",
     [](const Folder& f) { f.repeat(file, "model: ", std::string(1024, 'x'), 100 * 1024, ""); },
     explain, 2, "@/run.yaml: 104857607 bytes, at most 1048576 are read"},
    {"SettingsOfAMegabyteOfKeys",
     [](const Folder& f) { f.repeat(file, "", "a: 1\n", 200'000, ""); }, explain, 2,
     "@/run.yaml:2: the key \"a\" stands twice (first in line 1); keep one"},
    {"SettingsWithTabs", text("train:\n\tsteps: 1\n"), explain, 2,
     "@/run.yaml:2:7: not YAML: illegal map value"},
    {"SettingsAList", text("- 1\n- 2\n"), explain, 2,
     "@/run.yaml: a map of keys is expected, found a list"},
    {"SettingsTwice", text("model: x\n---\nmodel: y\n"), explain, 2,
     "@/run.yaml: more than one document; keep one"},
    {"SettingUnknown", more("train:\n  stepz: 1\n"), explain, 2,
     "unknown key train.stepz (@/run.yaml:7); did you mean train.steps?"},
    {"SettingAMapForANumber", more("train:\n  steps: {a: 1}\n"), explain, 2,
     "train.steps (@/run.yaml:7): a whole number is expected, found a map"},
    {"StepsNegative", more("train:\n  steps: -1\n"), explain, 2,
     "train.steps = -1 (@/run.yaml:7): must be at least 0, at most 1000000000000; the nearest "
     "valid value is 0"},
    {"StepsTenToThe30", more("train:\n  steps: 1000000000000000000000000000000\n"), explain, 2,
     "train.steps (@/run.yaml:7): a whole number of at most 9223372036854775807 is expected, found "
     "\"1000000000000000000000000000000\""},
    {"StepsAWord", more("train:\n  steps: many\n"), explain, 2,
     "train.steps (@/run.yaml:7): a whole number is expected, found \"many\""},
    {"RateNotANumber", more("train:\n  learning_rate: .nan\n"), explain, 2,
     "train.learning_rate (@/run.yaml:7): a number is expected, found \".nan\""},
    {"RateInfinite", more("train:\n  learning_rate: 1e999\n"), explain, 2,
     "train.learning_rate (@/run.yaml:7): a number is expected, found \"1e999\""},
    {"AlgorithmUnknown", text("algorithm: magic\n"), explain, 2,
     "algorithm = magic (@/run.yaml:1): must be one of pretrain, sft, dpo, simpo, cpo, orpo, kto, "
     "orm, prm, "
     "ppo, grpo, dr_grpo, dapo, gspo, cispo, "
     "sapo, luspo,"},
    {"SettingsCutInAText", text("model: \"x"), explain, 2,
     "@/run.yaml:1:10: not YAML: illegal EOF in scalar"},
    {"SettingsAPipe", [](const Folder& f) { f.pipe(file); }, explain, 2,
     "--config: @/run.yaml: expected a regular file, found a device or pipe"},
    {"SettingsADirectory", [](const Folder& f) { f.directory(file); }, explain, 2,
     "--config: @/run.yaml: expected a regular file, found a directory"},
    {"SettingsNotThere", [](const Folder&) {}, explain, 4,
     "--config: @/run.yaml: cannot open for reading: No such file or directory"},
    {"ImportOfLaughs", text(laughs()), import_run, 2,
     "@/run.yaml:1: anchors (&name) are not accepted; write the value out"},
    {"ImportOfAList", text("[1, 2]\n"), import_run, 2,
     "@/run.yaml: a map of settings is expected, found a list"},
    {"ImportOfNothingKnown", text("a: {b: [1, {c: 2}], \"d e\": .nan}\n"), import_run, 2,
     "no setting here is one of TRL, LLaMA-Factory, verl, OpenRLHF or MindSpeed"},
    {"ImportOfNonsenseValues",
     text("stage: sft\ntemplate: [{}, []]\nlora_rank: 1e999\nlearning_rate: {a: 1}\n"
          "warmup_ratio: -.inf\nper_device_train_batch_size: 99999999999999999999\n"
          "gradient_accumulation_steps: -3\ncutoff_len: 2.5\nsave_steps: \"\"\nlora_target: "
          "\"]\"\n"),
     import_run, 2, "lora_rank 1e999 (line 3) is no value for lora.rank"},
    {"ImportOfAScriptThatDoesNotEnd",
     [](const Folder& f) {
       f.write("run.sh", "a=$a ${b ${c:-\nopenrlhf.cli.train_sft --pretrain 'x\n\\");
     },
     "import @/run.sh", 2, "Converted"},
    {"ImportOfBytes", [](const Folder& f) { f.write("run.sh", std::string("\0\xff$\n", 4)); },
     "import @/run.sh", 2, "no program of a known tool"},
    {"ClusterOfLaughs", [](const Folder& f) { prepared(f).write("cluster.yaml", laughs()); },
     launch, 2, "@/cluster.yaml:1: anchors (&name) are not accepted; write the value out"},
    {"ClusterEmpty", cluster(""), launch, 2,
     "@/cluster.yaml:1: expected a map with the key groups, found nothing"},
    {"ClusterAList", cluster("[1, 2]\n"), launch, 2,
     "@/cluster.yaml:1: expected a map with the key groups, found a list"},
    {"ClusterOfABillionProcesses", cluster("groups:\n  - role: policy\n    count: 1000000000\n"),
     launch, 2,
     "@/cluster.yaml:3: count: expected an integer from 1 to 1024, found \"1000000000\""},
    {"ClusterOfAnUnknownRole", cluster("groups:\n  - role: ghost\n    count: 1\n"), launch, 2,
     "verifier; found \"ghost\""},
    {"ClusterAPipe", [](const Folder& f) { prepared(f).pipe("cluster.yaml"); }, launch, 2,
     "--cluster: @/cluster.yaml: expected a regular file, found a device or pipe"},
};

}  // namespace
}  // namespace run_file_files

const std::vector<Case>& run_file_cases() {
  return run_file_files::cases;
}

}  // namespace troupe::hostile
