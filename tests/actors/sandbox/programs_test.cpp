// Interpreters and compilers that reward programs use: they work in the sandbox. Each is skipped by
// name where it is not installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "actors/roles/rules/command.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::rules {
namespace {

using sandbox::Isolation;

struct Language {
  const char* name;
  const char* program;  ///< one that must exist
  const char* test;     ///< a shell command that succeeds where the program can do this at all
  std::vector<std::string> run;
};
void PrintTo(const Language& language, std::ostream* out) {
  *out << language.name;
}

// Answers the first request with 1 if BODY, which is Python, leaves True in `ok`.
std::string python(const std::string& body) {
  return "import json, sys\n"
         "for line in sys.stdin:\n"
         "  id = json.loads(line)['id']\n" +
         body + "\n  print(json.dumps({'id': id, 'reward': float(ok)}), flush=True)\n";
}
const std::string answer_in_shell =
    "read line; id=${line#*:}; id=${id%%,*}; echo \"{\\\"id\\\":$id,\\\"reward\\\":$reward}\"";

const std::vector<Language>& languages() {
  static const std::vector<Language> all{
      {"python_subprocess",
       "/usr/bin/python3",
       "true",
       {"/usr/bin/python3", "-c",
        python("  import subprocess\n"
               "  ok = subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'x', "
               "capture_output=True).returncode == 3")}},
      {"python_pool",
       "/usr/bin/python3",
       "true",
       {"/usr/bin/python3", "-c",
        python("  import multiprocessing\n"
               "  with multiprocessing.Pool(2) as pool: ok = pool.map(abs, [-1, 2]) == [1, 2]")}},
      {"python_threads",
       "/usr/bin/python3",
       "true",
       {"/usr/bin/python3", "-c",
        python("  from concurrent.futures import ThreadPoolExecutor\n"
               "  with ThreadPoolExecutor(4) as pool: ok = sum(pool.map(abs, range(-5, 1))) == "
               "15")}},
      {"python_numpy_threads",
       "/usr/bin/python3",
       "/usr/bin/python3 -c 'import numpy'",
       {"/usr/bin/python3", "-c",
        "import os\nos.environ['OMP_NUM_THREADS'] = '4'\n" +
            python("  import numpy\n  a = numpy.ones((300, 300))\n  ok = (a @ a)[0, 0] == 300")}},
      {"gcc",
       "/usr/bin/gcc",
       "true",
       {"sh", "-c",
        "cd /tmp/work 2>/dev/null || cd \"$PWD\"; printf 'int main(void){return 7;}' > a.c; "
        "gcc -O2 a.c -o a; ./a; test $? = 7 && reward=1 || reward=0; " +
            answer_in_shell}},
      {"gxx",
       "/usr/bin/g++",
       "true",
       {"sh", "-c",
        "cd /tmp/work 2>/dev/null || cd \"$PWD\"; printf '#include <thread>\\n#include "
        "<iostream>\\nint main(){std::thread([]{std::cout<<42;}).join();}' > a.cpp; "
        "g++ -O1 a.cpp -o a; test \"$(./a)\" = 42 && reward=1 || reward=0; " +
            answer_in_shell}},
      {"node",
       "/usr/bin/node",
       "true",
       {"/usr/bin/node", "-e",
        "const lines = require('readline').createInterface({input: process.stdin});\n"
        "const child = require('child_process').execFileSync('echo', ['x']).toString();\n"
        "lines.on('line', l => console.log(JSON.stringify({id: JSON.parse(l).id, reward: child "
        "=== 'x\\n' ? 1 : 0})));"}},
      {"java",
       "/usr/bin/java",
       "true",
       {"sh", "-c",
        "printf 'public class A { public static void main(String[] a) throws Exception { Thread "
        "t = new Thread(() -> System.out.print(42)); t.start(); t.join(); } }' > A.java; test "
        "\"$(java A.java)\" = 42 && reward=1 || reward=0; " +
            answer_in_shell}},
      {"bash",
       "/bin/bash",
       "true",
       {"/bin/bash", "-c",
        "x=$(cat <(echo 4) | tr 4 5); sleep 0 & wait; [[ $x == 5 ]] && reward=1 || reward=0; " +
            answer_in_shell}},
  };
  return all;
}

class Program : public testing::TestWithParam<std::tuple<Isolation, Language>> {};

TEST_P(Program, Works) {
  const auto& [isolation, language] = GetParam();
  if (const auto why = sandbox::denied(isolation); !why.empty()) GTEST_SKIP() << "SKIP: " << why;
  if (std::system(cat("test -x ", language.program, " && ", language.test, " 2>/dev/null").c_str()))
    GTEST_SKIP() << "SKIP: no " << language.name;
  if (std::string(language.name) == "python_pool" && isolation == Isolation::limits)
    GTEST_SKIP() << "SKIP: Landlock forbids /dev/shm, docs/rewards.md";
  CommandOptions options;
  options.run = language.run;
  options.timeout = options.startup = 120;
  options.limits.isolation = isolation;
  options.limits.memory_mb = 1024;
  options.limits.address_mb = 1 << 17;
  options.limits.processes = 64;
  options.limits.file_mb = 64;
  Command command(options, "reward[0]");
  const protocol::RewardRequest request{"a question", "a completion", "an answer"};
  const auto result = command.score({&request, 1})[0];
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->reward, 1);
}

INSTANTIATE_TEST_SUITE_P(Sandbox, Program,
                         testing::Combine(testing::Values(Isolation::namespaces, Isolation::limits),
                                          testing::ValuesIn(languages())),
                         [](const auto& one) {
                           const auto isolation = static_cast<std::size_t>(std::get<0>(one.param));
                           return std::string(names_of(Isolation{})[isolation]) + "_" +
                                  std::get<1>(one.param).name;
                         });

}  // namespace
}  // namespace troupe::actors::rules
