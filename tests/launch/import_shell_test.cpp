// The evaluation of shell scripts beside bash itself: the words of a command, over scripts that are
// written here and over generated ones; and what is unknown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/run.h"
#include "tests/launch/program.h"

namespace troupe::launch::tools::migration::shell {
namespace {

using testing::HasSubstr;
using Commands = std::vector<std::vector<std::string>>;

std::vector<tools::migration::shell::ScriptCommand> commands_of(
    const std::string& script, std::vector<std::string> arguments = {},
    std::map<std::string, std::string> environment = {}) {
  return tools::migration::shell::commands_of_script(
      script, {"run.sh", std::move(arguments), std::move(environment), "/"});
}

/// The words of each `prog` command.
Commands ours(const std::string& script) {
  Commands out;
  for (const tools::migration::shell::ScriptCommand& command : commands_of(script)) {
    if (command.words[0].value.text != "prog" || !command.uncertain.empty()) continue;
    out.emplace_back();
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      EXPECT_EQ(command.words[i].value.unknown, "") << script;
      out.back().push_back(command.words[i].value.text);
    }
  }
  return out;
}

/// What bash passes to `prog`, a function that prints its arguments.
Commands of_bash(const std::string& script) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/run.sh", script));
  value_or_throw(write_file_durably(
      folder + "/record.sh",
      cat("prog() { printf '<'; (( $# )) && printf '%s\\x01' \"$@\"; printf '\\x02'; }\ncd /\n"
          ". ",
          folder, "/run.sh 2>/dev/null\n")));
  const std::string command = cat("env -i PATH=/nonexistent HOME='~' /bin/bash ", folder,
                                  "/record.sh > ", folder, "/out 2> ", folder, "/err");
  EXPECT_GE(std::system(command.c_str()), 0);
  const std::string text = value_or_throw(read_file(folder + "/out"));
  Commands out;
  for (std::size_t at = text.find('<'); at < text.size(); at = text.find('<', at)) {
    out.emplace_back();
    const std::size_t end = text.find('\x02', at);
    for (++at; at < end;) {
      const std::size_t stop = text.find('\x01', at);
      out.back().push_back(text.substr(at, stop - at));
      at = stop + 1;
    }
    at = end + 1;
  }
  return out;
}

class WrittenScripts : public testing::TestWithParam<const char*> {};

TEST_P(WrittenScripts, PassTheWordsThatBashPasses) {
  const Commands expected = of_bash(GetParam());
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(ours(GetParam()), expected) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrittenScripts,
    testing::Values(
        "A=x\nB=\"$A y\"\nprog $B \"$B\" '$B' $A$A ${A}z \"${A}\"z\"\" '' \"\"\n",
        "a=(1 '2 3' $'4\\n5')\na+=(six \"se ven\")\nprog \"${a[@]}\" ${a[1]} \"${a[1]}\" ${#a[@]} "
        "\"${a[*]}\" \"${a[@]:1:2}\" \"${!a[@]}\" \"${a[-1]}\" p\"${a[@]}\"s\n",
        "a=()\nprog \"${a[@]}\" \"$@\" x ${a[@]} \"${a[@]}y\"\n",
        "A=5\nprog $((A * 2 + 1)) $((A ** 2 % 7)) $(( (A + 1) / 2 )) $((0x1f + 010)) "
        "$((A > 3 ? 1 : 0)) $((-A)) $((A << 2 | 1)) $((A++ + ++A)) $A $(( ! A )) $((1, 2))\n",
        "B=b\nprog ${A:-${B:-c}} ${A-d} \"${A:-\"x  y\"}\" ${A:-x  y} ${B:+set} ${A:+set} "
        "${A:=now} $A ${#A} \"${B:-'q'}\"\n",
        "P=/a/b.tar.gz\nprog ${P##*/} ${P%%.*} ${P#*/} ${P%.*} ${P/a/A} ${P//a/A} ${P/#\\/a/X} "
        "${P/%gz/Z} ${P:3} ${P:1:2} ${P: -2} ${P^^} ${P^} ${P%\"$X\"} ${P//[a-c]/_}\n",
        "prog a \\\n  b \\\n  c # d\nprog e \\\n  # f\nprog \"g \\\nh\" 'i \\\nj' k\\ l \\# \\$A "
        "a#b\n",
        "set -- a 'b c' d\nprog \"$@\" $# \"$2\" $*\nshift\nprog \"$@\" \"${@:2}\" \"${1:-x}\"\n"
        "set -- \nprog \"$@\" $#\n",
        "for i in 1 2 3; do [ $i -eq 2 ] && continue; prog $i; done\nfor ((i=0;i<2;i++)); do prog "
        "c$i; done\ni=0\nwhile (( i < 2 )); do i=$((i+1)); prog w$i; done\nuntil [ $i = 0 ]; do "
        "((i--)); done; prog $i\n",
        "case ab.c in x|a*) prog one;; *) prog two;; esac\ncase \"$Z\" in '') prog empty;; esac\n"
        "case 5 in [0-4]) prog low;; [5-9]) prog high ;; esac\ncase a in a) prog 1;& b) prog 2;; "
        "esac\n",
        "A=3\nif [ \"$A\" -gt 2 ] && [[ $A == 3 ]]; then prog yes; else prog no; fi\n"
        "if [[ -z $B || $A -lt 1 ]]; then prog z; fi\nif ! [ -n \"$B\" ]; then prog n; elif true; "
        "then prog t; fi\n[[ abc == a* ]] && prog glob\n[[ abc == \"a*\" ]] || prog quoted\n"
        "[ a = b -o c = c ] && prog or\n[ ] || prog none\n[[ ! ( a == b && c == c ) ]] && prog g\n",
        "f() { local A=in B; B=$1; prog \"$A\" $B \"$@\"; C=$A; return; prog never; }\nA=out\nf x "
        "'y "
        "z'\nprog $A $C \"$B\"\nfunction g { f \"$@\" g; }\ng 1\n",
        "export A=1 B='2 3'\ndeclare -a d=(x y)\nreadonly R=r\nprog $A \"$B\" ${d[1]} $R\nunset A\n"
        "prog \"[$A]\"\n",
        "declare -A m=([k]=v [\"a b\"]=c)\nm[z]=1\nprog ${m[k]} \"${m[a b]}\" ${m[z]} ${#m[@]}\n",
        "read -r -d '' T <<EOF\na b $((1+1))\n  c\nEOF\nprog $T\nread -r -d '' U <<'EOF'\n$x "
        "`y`\nEOF\n"
        "prog \"$U\"\nread L <<EOF\nfirst line\nsecond\nEOF\nprog $L\n",
        "prog {a,b}c x{1..3} {a,b{c,d}} {x} a={b,c} '{a,b}' \"{a,b}\" {3..1}\n",
        "A=1; (A=2; prog $A); prog $A; { A=3; }; prog $A; A=9 true; prog $A\n",
        "N=A\nA=v\nprog ${!N}\nx=(p q)\nx[3]=r\nprog \"${x[@]}\" ${#x[@]} \"${!x[@]}\" ${x[2]}e\n"
        "x[1]=\nprog \"${x[@]}\"\n",
        "A='a b'\nB=$A\nC=\"$A\"c\nD=$A$B\nprog $B \"$C\" \"$D\"\nA+=z\nprog \"$A\"\nA=x "
        "B=$A\nprog "
        "\"$B\"\n",
        "prog a=b c=\"d e\" +f.g=h \"i=['j','k']\" l=[m,n] o='[\"p\"]' q=\\\"r\\\" s=~/t ~/u '~'\n",
        "eval 'A=1; prog $A'\neval prog '\"x  y\"' z\ntrue && prog t || prog f\nfalse || prog f && "
        "prog g\n! false && prog nf\nprog x 2>/dev/null || true\n: | prog y\n"),
    [](const auto& info) { return cat("Script", info.index); });

/// Statements over the variables a to d and the arrays A and B.
std::string generated(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<const char*> from) {
    return std::string(from.begin()[random() % from.size()]);
  };
  const auto word = [&] {
    std::string out;
    for (std::size_t i = 0; i <= random() % 3; ++i)
      out += pick({"x",           "y z",
                   "$a",          "\"$b\"",
                   "${c:-d e}",   "\"${d:-$a}\"",
                   "'q r'",       "$((n + 2))",
                   "\"${A[@]}\"", "${B[0]}",
                   "${#A[@]}",    "${b%y*}",
                   "\"${b#x}\"",  "${a/x/\"1 2\"}",
                   "${d:+s}",     "\"\"",
                   "\\ ",         "k=v",
                   "{1,2}",       "\"${A[*]}\"",
                   "${b:1:2}",    "${a^^}"});
    return out;
  };
  std::string script = "n=5\na=3\nb='x y'\nA=(p 'q r')\n";
  for (std::size_t i = 0; i < 3 + random() % 6; ++i) {
    const std::string name = pick({"a", "b", "c", "d"}), array = pick({"A", "B"});
    switch (random() % 7) {
      case 0:
        script += cat(name, "=\"", pick({"7", "x y", "$b", "${c:-0}", "$((2 * 3))"}), "\"\n");
        break;
      case 1:
        script += cat(array, pick({"=", "+="}), "(", word(), " ", word(), ")\n");
        break;
      case 2:
        script += cat("if [ \"$", name, "\" ", pick({"=", "!="}), " 7 ]; then ", array, "+=(t ",
                      word(), "); else c=", pick({"e", "\"$a\""}), "; fi\n");
        break;
      case 3:
        script +=
            cat("case \"$", name, "\" in ", pick({"7", "x*", "?"}), ") d=in;; *) d+=o;; esac\n");
        break;
      case 4:
        script += cat("for i in ", word(), "; do ", array, "+=(\"$i\"); done\n");
        break;
      case 5:
        script += cat("[[ $", name, " == ", pick({"x*", "7", "\"$a\""}), " ]] && c=m || c=n\n");
        break;
      default:
        script += cat("prog ", word(), " ", word(), "\n");
    }
  }
  return script + "prog \"${A[@]}\" ${B[@]} \"$a\" $b \"$c\" $d " + word() + "\n";
}

// One process of bash evaluates all of them, each in a subshell.
TEST(GeneratedScripts, PassTheWordsThatBashPasses) {
  std::mt19937 random(7);
  std::string all;
  std::vector<std::string> scripts;
  for (int i = 0; i < 400; ++i) {
    scripts.push_back(generated(random));
    all += cat("(\nprog script ", i, "\n", scripts.back(), ")\n");
  }
  const Commands expected = of_bash(all), got = ours(all);
  ASSERT_GT(expected.size(), 400u);
  std::size_t script = 0;
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (expected[i].size() == 2 && expected[i][0] == "script") script = std::stoul(expected[i][1]);
    ASSERT_EQ(got[i], expected[i]) << scripts[script];
  }
  EXPECT_EQ(got.size(), expected.size());
}

/// The last word of the last command of a script, or why it is unknown.
std::string last_word(const std::vector<tools::migration::shell::ScriptCommand>& commands) {
  const tools::migration::shell::Value& value = commands.back().words.back().value;
  return value.unknown.empty() ? value.text : "? " + value.unknown;
}

TEST(UnknownValues, AreNamedWithTheirLines) {
  EXPECT_EQ(last_word(commands_of("A=1\nA=$(date)\nprog x$A")),
            "? the output of \"date\" (line 2)");
  EXPECT_EQ(last_word(commands_of("A=`date`\nB=$A\nprog $B")), "? the output of \"date\" (line 1)");
  EXPECT_EQ(last_word(commands_of("\nprog $1")), "? the script's argument 1 (line 2)");
  EXPECT_EQ(last_word(commands_of("prog ${A:?must be set}")),
            "? A, which the script requires (line 1): \"must be set\"");
  EXPECT_EQ(last_word(commands_of("set -u\nprog $A")),
            "? A (line 2), which the script does not set");
  EXPECT_EQ(last_word(commands_of(". ./env.sh\nprog $A")),
            "? A (line 2), which \"./env.sh\" (line 1) may set");
  EXPECT_EQ(last_word(commands_of("if [ -f x ]; then A=1; else A=2; fi\nprog $A")),
            "? the test -f \"x\" (line 1)");
  EXPECT_EQ(last_word(commands_of("D=$(x)\ncase $D in a) A=1;; esac\nprog ${A:-2}")),
            "? the output of \"x\" (line 1)");
  EXPECT_EQ(last_word(commands_of("prog $((1 / 0))")), "? a division by 0 in \"1 / 0\" (line 1)");
  EXPECT_EQ(last_word(commands_of("read A\nprog $A")), "? what read reads (line 1)");
  EXPECT_EQ(last_word(commands_of("A=(1)\nA+=($(x))\nprog \"${A[@]}\"")),
            "? the output of \"x\" (line 2)");
}

TEST(UnknownValues, AreKnownFromTheEnvironmentAndFromArguments) {
  EXPECT_EQ(last_word(commands_of("D=${D:-$(x)}\nprog $D", {}, {{"D", "gpu"}})), "gpu");
  EXPECT_EQ(last_word(commands_of("D=$(x)\nprog $D", {}, {{"D", "gpu"}})), "gpu");
  EXPECT_EQ(last_word(commands_of("D=cpu\nprog $D", {}, {{"D", "gpu"}})), "cpu");
  EXPECT_EQ(last_word(commands_of("A=$2\nshift 2\nprog $A \"$@\"", {"1", "two"})), "two");
  EXPECT_EQ(last_word(commands_of("prog ${1:-8}")), "8");
  EXPECT_EQ(last_word(commands_of("A=$DIR/x\nprog $A")), "/x");
  EXPECT_EQ(commands_of("A=$DIR/x\nprog $A").back().words.back().value.unset, "DIR (line 1)");
}

TEST(UnknownValues, AreNoFoldersThatAScriptPrints) {
  EXPECT_EQ(
      last_word(commands_of("prog $(cd -- \"$(dirname \"$0\")/../..\" >/dev/null 2>&1 && pwd)/x")),
      "//x");
  EXPECT_EQ(last_word(commands_of("cd /a/b\nprog $(pwd)/$(dirname /x/y/)")), "/a/b//x");
  EXPECT_EQ(last_word(commands_of("prog $(cd a && pwd && rm b)")),
            "? the output of \"cd a && pwd && rm b\" (line 1)");
}

TEST(UnknownValues, BeginWhereTheyBegin) {
  const auto commands =
      commands_of("a=(k=v$(x) w)\na+=(l=${y}$(z))\nprog \"${a[@]}\" ${a[0]} $(x)");
  std::vector<std::size_t> begins;
  std::vector<bool> open;
  for (const Field& word : commands.back().words) {
    begins.push_back(word.value.unknown.empty() ? 0 : word.value.unknown_at);
    open.push_back(word.open);
  }
  EXPECT_EQ(begins, (std::vector<std::size_t>{0, 3, 0, 2, 3, 0}));
  EXPECT_EQ(open, (std::vector<bool>{false, false, false, false, false, true}));
}

TEST(UnknownValues, MakeCommandsUncertainThatDependOnThem) {
  EXPECT_THAT(commands_of("if [ -f x ]; then prog a; fi")[0].uncertain, HasSubstr("-f"));
  EXPECT_EQ(commands_of("cd x && prog a")[0].uncertain, "");
  EXPECT_EQ(commands_of("mkdir x && prog a")[1].uncertain, "");
  EXPECT_THAT(commands_of("mkdir x || prog a")[1].uncertain, HasSubstr("mkdir"));
}

TEST(UnknownValues, ScriptsOfUnboundedWorkAreRefused) {
  for (const char* script : {"while true; do :; done", "f() { f; }; f", "for ((;;)); do A+=x; done",
                             "A=x; while true; do A=$A$A; done", "prog {1..9999}{1..9999}",
                             "f() { f; f; }; f", "eval 'x() { eval x; }; x'",
                             "prog $((1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+("
                             "1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+1))))))))))))))))))))))))"})
    EXPECT_THROW(commands_of(script), Failure) << script;
}

TEST(MalformedScripts, AreRefusedWithTheirLine) {
  for (const char* script : {"\nif true; then\n", "a\n)", "case x in", "for do", "x=(1", "{ a",
                             "[[ a", "fi", "f() {", "for ((;;", "a &&", "<"}) {
    try {
      commands_of(script);
      ADD_FAILURE() << script;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::bad_input);
      EXPECT_THAT(failure.error().what, HasSubstr("line "));
    }
  }
}

}  // namespace
}  // namespace troupe::launch::tools::migration::shell
