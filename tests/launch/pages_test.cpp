// The version, man pages and completions that the program prints about itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"
#include "tests/launch/program.h"

namespace troupe::launch::pages_test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Pages, VersionNamesCommitInstructionSetMpiAndArrow) {
  const ProgramOutput said = run_program("--version");
  const auto found = lines(said.out);
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_THAT(found[0], StartsWith("troupe 0."));
  EXPECT_THAT(found[1], StartsWith("instruction set: "));
  EXPECT_THAT(found[2], StartsWith("MPI: "));
  EXPECT_THAT(found[3], StartsWith("Arrow: "));
}

TEST(Pages, CompletionKnowsEverySettingAndAlgorithm) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const ProgramOutput said = run_program("completion " + shell);
    ASSERT_EQ(said.code, 0) << said.err;
    const auto offers = [&](const std::string& word) {
      return said.out.find(word) != std::string::npos;
    };
    for (const config::Field& field : config::fields())
      EXPECT_TRUE(offers(field.key + "=")) << field.key;
    for (const auto& name : recipes::algorithm_names()) EXPECT_TRUE(offers(name)) << name;
    for (const auto& name : lines(run_program("man --list").out)) EXPECT_TRUE(offers(name)) << name;
  }
  EXPECT_EQ(run_program("completion ksh").code, 2);
}

// What bash offers for the last of `words`, by the script that the program prints.
std::string completed(const std::string& words) {
  const std::string script = scratch_folder() + "/complete.bash";
  std::ofstream(script) << run_program("completion bash").out << "COMP_WORDS=(" << words
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_troupe 2>/dev/null\n"
                        << "echo \"${COMPREPLY[*]}\"\n";
  const std::unique_ptr<FILE, int (*)(FILE*)> bash(popen(("bash " + script).c_str(), "r"), pclose);
  std::string out(256, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), bash.get()));
  return out;
}

TEST(Pages, BashCompletesCommandsOptionsAndValues) {
  EXPECT_EQ(completed("troupe tra"), "train\n");
  EXPECT_EQ(completed("troupe train --alg"), "--algorithm\n");
  EXPECT_EQ(completed("troupe train --algorithm dr"), "dr_grpo\n");
  EXPECT_EQ(completed("troupe train --set train.batch_s"), "train.batch_size=\n");
  EXPECT_EQ(completed("troupe launch --cluster c.yaml -- train --con"), "--config\n");
  EXPECT_EQ(completed("troupe generate --weights i"), "int8\n");
  EXPECT_EQ(completed("troupe train --config run"), "\n");  // file names, by bash itself
}

TEST(Pages, EachCommandHasAManPageWithItsOptions) {
  const ProgramOutput list = run_program("man --list");
  ASSERT_THAT(lines(list.out), testing::Contains("train"));
  for (const auto& name : lines(list.out)) {
    const ProgramOutput page = run_program("man " + name);
    ASSERT_EQ(page.code, 0) << name;
    for (const char* section : {".TH TROUPE", ".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"})
      EXPECT_THAT(page.out, HasSubstr(section)) << name;
    EXPECT_THAT(page.out, HasSubstr("\\fB\\-\\-help\\fR")) << name;
  }
  EXPECT_THAT(run_program("man generate").out, HasSubstr("\\fB\\-\\-temperature\\fR"));
  EXPECT_EQ(run_program("man nothing").code, run::exit_usage);
}

TEST(Pages, ExitCodesAreThoseOfTheDocumentation) {
  std::ifstream file(std::string(TROUPE_DOCS) + "/operations.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string manual = run_program("man").out;
  for (const auto& [code, meaning] : run::exit_codes) {
    EXPECT_THAT(page, HasSubstr(cat("\n| ", code, " | "))) << meaning;
    EXPECT_THAT(manual, HasSubstr(cat(".TP\n", code, "\n"))) << meaning;
  }
}

}  // namespace
}  // namespace troupe::launch::pages_test
