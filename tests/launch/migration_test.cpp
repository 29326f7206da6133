// The tables of other tools' settings, the pages that they generate, and the answers to their keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/resolve.h"
#include "launch/tools/migration/converters.h"
#include "launch/tools/tables/flag_classes.h"
#include "launch/tools/tables/page.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace migration = tools::migration;

/// A name that a pattern means.
std::string example_of(std::string_view pattern) {
  std::string name(pattern);
  if (const auto star = name.find('*'); star != std::string::npos) name.replace(star, 1, "thing");
  return name;
}

std::string refusal(const std::string& set, const std::string& algorithm = "sft") {
  const auto got = recipes::resolve({.algorithm = algorithm,
                                     .file = "",
                                     .sets = {"model=M", "data.path=D", "output=O", set},
                                     .check_files = false,
                                     .options = {}});
  return got ? "" : got.error().what;
}

/// True if the answer names a key of the row, or gives its reason.
bool answers(const std::string& text, const tools::tables::ToolKey& row) {
  for (const tools::tables::Target& target : row.targets)
    if (text.find(target.key) != std::string::npos) return true;
  for (const std::string& key : row.hand_written)
    if (text.find(key) != std::string::npos) return true;
  return row.targets.empty() && text.find(row.remark) != std::string::npos;
}

/// "did you mean train.epochs?" for epochs: the run reads one key of that name.
bool names_the_same(const std::string& text, const std::string& name) {
  return text.find("did you mean ") != std::string::npos &&
         text.find(cat('.', name, '?')) != std::string::npos;
}

TEST(ToolTables, EveryNameOfTheFiveToolsIsAnsweredWithOurs) {
  std::size_t names = 0;
  for (const tools::tables::Tool tool : tools::tables::all_tools)
    for (const tools::tables::ToolKey& row : tools::tables::keys_of(tool))
      for (const auto pattern : row.names) {
        const std::string name = example_of(pattern);
        if (config::find_field(name) || config::is_section(name)) continue;  // the same key here
        const std::string text = refusal(name + "=1");
        EXPECT_THAT(text, HasSubstr(cat("unknown key ", name, " (--set)")));
        // The same name may have one row for each method.
        const auto rows = tools::tables::find_rows(tool, name);
        EXPECT_TRUE(
            names_the_same(text, name) ||
            std::ranges::any_of(rows, [&](const auto* each) { return answers(text, *each); }))
            << tools::tables::title_of(tool) << ": " << text;
        ++names;
      }
  EXPECT_GT(names, 1000u);
}

// A statement that something is absent is wrong from the day on which its key exists.
TEST(ToolTables, NoEquivalentNamesKeysThatDoNotExist) {
  for (const tools::tables::Tool tool : tools::tables::all_tools)
    for (const tools::tables::ToolKey& row : tools::tables::keys_of(tool)) {
      EXPECT_EQ(row.absent.empty(), row.equivalent != tools::tables::Equivalent::none)
          << tools::tables::title_of(tool) << ": " << row.names[0];
      for (const std::string& key : row.absent)
        EXPECT_FALSE(config::find_field(key) || config::is_section(key))
            << tools::tables::title_of(tool) << ": " << row.names[0]
            << " is said to have no equivalent, and " << key << " exists";
    }
}

TEST(ToolTables, EveryKeyAndValueOfOursIsValid) {
  for (const tools::tables::Tool tool : tools::tables::all_tools)
    for (const tools::tables::ToolKey& row : tools::tables::keys_of(tool)) {
      const auto valid = [&](std::string_view key, std::string_view value) {
        const config::Field* field = config::find_field(key);
        ASSERT_NE(field, nullptr) << key;
        config::YamlNode node;
        node.kind = config::YamlNode::Kind::scalar;
        node.text = value;
        if (value.starts_with('[')) node = value_or_throw(config::parse_yaml(value, "value"));
        config::RunConfig config;
        EXPECT_EQ(config::assign(*field, node, config), "") << key << ' ' << value;
        if (key == "algorithm") {
          EXPECT_NE(recipes::find_recipe(value), nullptr) << value;
        }
      };
      for (const tools::tables::Target& target : row.targets)
        EXPECT_TRUE(config::find_field(target.key) || target.key.starts_with("data.columns.") ||
                    target.key == "data.map_keys")
            << tools::tables::title_of(tool) << ": " << target.key;
      EXPECT_EQ(row.targets.empty(), row.equivalent != tools::tables::Equivalent::setting)
          << row.names[0];
      EXPECT_EQ(row.hand_written.empty(), row.equivalent != tools::tables::Equivalent::by_hand)
          << row.names[0];
      for (const std::string& key : row.hand_written)
        EXPECT_TRUE(config::find_field(key) || config::is_section(key))
            << tools::tables::title_of(tool) << ": " << key;
      EXPECT_TRUE(!row.targets.empty() || !row.remark.empty()) << row.names[0];
      for (const auto& [theirs, ours] : row.values) {
        if (ours.empty() || ours.starts_with('!')) continue;
        if (ours.find(':') == ours.npos) {
          valid(row.targets[0].key, ours);
          continue;
        }
        for (const auto part : tools::tables::pieces(ours, ',')) {
          const auto colon = part.find(':');
          valid(part.substr(0, colon), part.substr(colon + 1));
        }
      }
    }
}

TEST(ToolTables, EveryConverterExists) {
  std::size_t converters = 0;
  const migration::ForeignRun run;
  for (const tools::tables::Tool tool : tools::tables::all_tools)
    for (const tools::tables::ToolKey& row : tools::tables::keys_of(tool)) {
      if (row.converter.empty()) continue;
      migration::ImportSettings settings(tool, run);
      for (const std::string& algorithm : recipes::algorithm_names()) {
        settings.begin(algorithm, std::string(recipes::find_recipe(algorithm)->name));
        if (!settings.targets(row).empty()) break;
      }
      try {  // a Bug ends the test
        migration::convert_value(settings, row, migration::scalar_node("1"));
      } catch (const Failure&) {  // 1 is no value of this setting
      }
      ++converters;
    }
  EXPECT_GT(converters, 100u);
}

TEST(ToolTables, EveryFlagOfMegatronHasAKeyAReasonOrARow) {
  std::set<std::string> seen;
  for (const tools::tables::MegatronFlag& flag : tools::tables::megatron_flags()) {
    using enum tools::tables::FlagRule;
    EXPECT_TRUE(seen.insert(tools::tables::normal_name(flag.name)).second) << flag.name;
    EXPECT_EQ(flag.count.find_first_not_of("0123+*"), flag.count.npos) << flag.name;
    EXPECT_EQ(flag.argument.empty(),
              flag.rule == import || flag.rule == so || flag.rule == none || flag.rule == no)
        << flag.name;
    if (flag.rule == so || flag.rule == none || flag.rule == no || flag.rule == only) {
      EXPECT_NE(flag.remark, "") << flag.name;
    }
    if (flag.rule == import) {
      EXPECT_FALSE(tools::tables::find_rows(tools::tables::Tool::mindspeed,
                                            tools::tables::normal_name(flag.name))
                       .empty())
          << flag.name;
    }
    if (tools::tables::program_of(flag).empty() && (flag.rule == key || flag.rule == program)) {
      EXPECT_NE(config::find_field(flag.argument), nullptr) << flag.name;
    }
  }
  EXPECT_EQ(seen.size(), 563u);
}

struct Asked {
  const char* key;
  const char* algorithm;
  const char* answer;
};

// The names that users of other tools tried first.
TEST(ToolTables, TheNamesThatUsersTriedFirstAreAnswered) {
  for (const Asked& each : {
           Asked{"train.lr", "sft", "train.learning_rate"},
           Asked{"lora.r", "sft", "lora.rank"},
           Asked{"stage", "sft", "LLaMA-Factory: write algorithm (pt: "},
           Asked{"grpo.kl_coef", "grpo", "TRL: write grpo.beta; in GRPO"},
           Asked{"logging_steps", "sft", "write train.log_every"},
           Asked{"save_steps", "sft", "write train.save_every (-1: 0)"},
           Asked{"save_total_limit", "sft", "write train.keep_last"},
           Asked{"warmup_ratio", "sft", "did you mean train.warmup_ratio?"},
           Asked{"per_device_train_batch_size", "sft",
                 "TRL, LLaMA-Factory: write train.batch_size; x gradient_accumulation_steps x "
                 "devices"},
           Asked{"gradient_accumulation_steps", "sft", "write train.batch_size"},
           Asked{"num_train_epochs", "sft", "write train.epochs"},
           Asked{"model_name_or_path", "sft", "write model"},
           Asked{"output_dir", "sft", "write output"},
           Asked{"dataset", "sft", "write data.path"},
           Asked{"bf16", "sft", "write train.dtype (true: bf16; false: the default)"},
           Asked{"packing", "sft", "not needed: sequences are packed without padding"},
           Asked{"report_to", "sft", "TensorBoard events and metrics.jsonl are always written"},
           Asked{"cutoff_len", "sft", "LLaMA-Factory: write train.max_length"},
           Asked{"lora.target_modules", "sft", "write lora.targets"},
           Asked{"grpo.num_generations", "grpo", "TRL: write grpo.group_size"},
           Asked{"grpo.epsilon", "grpo", "TRL: write grpo.clip_low or grpo.clip_high"},
           Asked{"dpo.loss_type", "dpo", "TRL: write dpo.loss"},
           Asked{"deepspeed", "sft", "write parallel.dp or parallel.tp or parallel.zero"},
           Asked{"actor_rollout_ref.actor.kl_loss_coef", "grpo", "verl: write grpo.beta"},
           Asked{"zero_stage", "sft", "OpenRLHF: write parallel.zero"},
           Asked{"micro_train_batch_size", "sft", "train.micro_batch_tokens"},
       })
    EXPECT_THAT(refusal(cat(each.key, "=1"), each.algorithm), HasSubstr(each.answer)) << each.key;
}

TEST(ToolTables, AFileOfAnotherToolIsAnsweredKeyByKey) {
  const std::string path = testing::TempDir() + "verl.yaml";
  ASSERT_TRUE(write_file_durably(
      path, "actor_rollout_ref:\n  rollout:\n    n: 8\n  actor:\n    optim: {lr: 1e-6}\n"));
  const auto got = recipes::resolve({.algorithm = "grpo",
                                     .file = path,
                                     .sets = {"model=M", "data.path=D", "output=O", "reward=boxed"},
                                     .check_files = false,
                                     .options = {}});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr(cat("unknown key actor_rollout_ref.rollout.n (", path,
                                              ":3); verl: write grpo.group_size")));
  EXPECT_THAT(got.error().what, HasSubstr(cat("(", path, ":5); verl: write train.learning_rate")));
}

TEST(ToolTables, AlgorithmsOfOtherToolsAreNamed) {
  EXPECT_THAT(refusal("train.steps=1", "reward"), HasSubstr("TRL's reward is orm"));
  EXPECT_THAT(refusal("train.steps=1", "rm"), HasSubstr("LLaMA-Factory's rm is orm"));
  EXPECT_THAT(refusal("train.steps=1", "reinforce_plus_plus"),
              HasSubstr("verl's reinforce_plus_plus is reinforce_pp"));
  for (const char* name : {"SFT", "Dpo"}) {
    const auto got = recipes::resolve({.algorithm = name,
                                       .file = "",
                                       .sets = {"model=M", "data.path=D", "output=O"},
                                       .check_files = false,
                                       .options = {}});
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_NE(recipes::find_recipe(got->config.algorithm), nullptr);
  }
}

TEST(ToolTables, NothingIsSuggestedThatIsNotNear) {
  for (const char* key : {"train.xy", "qq", "lora.q", "zzzz.beep"})
    EXPECT_THAT(refusal(cat(key, "=1")), Not(HasSubstr("did you mean"))) << key;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return "";
  const auto start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

TEST(ToolTables, ThePagesHaveThemAsTheProgramPrintsThem) {
  for (const tools::tables::Tool tool : tools::tables::all_tools) {
    const std::string path = cat(TROUPE_DOCS "/coming-from-", name_of(tool), ".md");
    const std::string page = value_or_throw(read_file(path));
    const std::string there =
        between(page, cat("<!-- table: ", name_of(tool), " -->\n"), "<!-- end of table -->");
    EXPECT_TRUE(there == tools::tables::table_page(tool))
        << path << ": run tests/docs/update_generated.sh build/release/troupe";
  }
  EXPECT_EQ(run_program("import --table trl").out,
            tools::tables::table_page(tools::tables::Tool::trl));
}

}  // namespace
}  // namespace troupe::launch
