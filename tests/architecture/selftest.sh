#!/bin/bash
# The lints can fail: each is shown a small tree with one fault, and must name the file; and the same tree without it, and must pass.
here=$1/tests/architecture
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
bad=0
fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{engine/{base,parallel,nn,models},transports,actors/runtime,algorithms,launch/{audit,model,run,serve},tests,benchmarks,cmake,docs}
  echo '#include "engine/base/a.h"' >"$tree/engine/nn/ok.cpp"
  touch "$tree/engine/nn/ok.h"
}
lint() {  # lint SCRIPT, or a rule of structure.py
  case $1 in
    *.sh) bash "$here/$1" "$tree" ;;
    *) python3 "$here/structure.py" "$1" "$tree" ;;
  esac
}
expect() {  # expect LINT FILE LINE: the lint passes before the file says LINE, and names the file after
  fresh
  lint "$1" >/dev/null || { echo "$1 refuses a tree without faults"; bad=1; }
  printf '%s\n' "$3" >"$tree/$2"
  if lint "$1" >"$tree.out"; then
    echo "$1 lets pass in $2: $3"
    bad=1
  elif ! grep -q "$2" "$tree.out"; then
    echo "$1 does not name $2"
    bad=1
  fi
  rm -f "$tree.out"
}
allow() {  # allow LINT FILE LINE: no fault
  fresh
  printf '%s\n' "$3" >"$tree/$2"
  lint "$1" >/dev/null || { echo "$1 refuses in $2: $3"; bad=1; }
}
expect layering.sh engine/base/a.cpp '#include "actors/runtime/node.h"'
expect layering.sh actors/a.h '#include "algorithms/sft.h"'
allow layering.sh actors/a.h '#include "engine/base/a.h"'
expect layering.sh launch/serve/a.h '#include "launch/config/run_config.h"'
expect layering.sh launch/serve/a.h '#include "algorithms/sft.h"'
expect layering.sh launch/model/a.h '#include "launch/serve/a.h"'
expect layering.sh launch/audit/a.h '#include "engine/ledger/row.h"'
expect layering.sh launch/run/a.h '#include "launch/audit/history.h"'
allow layering.sh launch/audit/a.h '#include "engine/checkpoint/manifest.h"'
allow layering.sh launch/serve/a.h '#include "launch/model/model.h"'
allow layering.sh launch/run/a.h '#include "launch/serve/a.h"'
expect engine_order.sh engine/base/a.cpp '#include "engine/nn/linear.h"'
expect engine_order.sh engine/nn/a.cpp '#include "engine/models/decoder.h"'
allow engine_order.sh engine/models/a.cpp '#include "engine/nn/linear.h"'
expect engine_order.sh engine/parallel/a.cpp '#include "engine/tensor/tensor.h"'
allow engine_order.sh engine/nn/a.cpp '#include "engine/parallel/communicator.h"'
expect fences.sh engine/nn/a.cpp '#include <Eigen/Core>'
expect fences.sh actors/a.cpp '#include <mutex>'
expect fences.sh actors/runtime/a.h '#include <asio/post.hpp>'
allow fences.sh actors/runtime/a.cpp '#include <asio/post.hpp>'
expect co_await.sh actors/a.cpp '  auto x = co_await ref.ask(Add{1, 2});'
expect co_await.sh actors/a.cpp '  auto x = co_await work({.a = 1});'
expect co_await.sh actors/a.cpp '  Pair p{1, co_await work(a)};'
expect co_await.sh actors/a.cpp '  auto x = yes ? Add{} : co_await work(a);'
expect co_await.sh actors/a.cpp '  if (co_await reply.get()) return;'
expect co_await.sh actors/a.cpp '  switch (co_await work(a)) { default: break; }'
expect co_await.sh actors/a.cpp '  auto [a, b] = co_await reply.get();'
expect co_await.sh actors/a.cpp '  co_await run([v] { use(v); });'
expect co_await.sh actors/a.cpp "  auto x = co_await work(a,
                        Add{1});"
expect co_await.sh actors/a.h 'Task<int> work(int a, Options options = {});'
allow co_await.sh actors/a.cpp '  auto x = co_await reply.get();  // with {braces} in a comment'
allow co_await.sh actors/a.cpp '  const auto x = co_await work(a, "with {braces} in a string");'
allow co_await.sh actors/a.cpp '  use(co_await reply.get());'
allow co_await.sh actors/a.cpp '  if (ready(a)) co_await work(std::move(a), b + 1);'
allow co_await.sh actors/a.cpp '  for (auto& reply : loading) co_await reply.get();'
allow co_await.sh actors/a.cpp '  batch.reward = co_await reply.get();'
allow co_await.sh actors/a.cpp '  auto close = [](Gate& g) -> Task<void> { co_await g.close(); };'
allow co_await.sh actors/a.h 'Task<int> work(int a, Options options = Options());'
expect size.sh engine/nn/long.cpp "$(seq 501)"
allow size.sh engine/nn/long.cpp "$(seq 500)"
expect paths.sh actors/a.cpp 'open("../'"shared"'/data");'
expect paths.sh actors/a.cpp 'open("/home/somebody/data");'
allow paths.sh actors/a.cpp 'open("tests/data");'
expect words.sh actors/a.h '// The crew of processes.'
expect words.sh launch/a.md 'The goodbye of a spoke.'
expect words.sh actors/a.h 'Rewards judge(const Samples& samples);'
expect words.sh engine/nn/a.cpp '  float slope = 1;'
expect words.sh engine/nn/a.cpp '  const int most_rows = 4, columns = 1;'
expect words.sh docs/a.md 'Advantages are divided by the deviation of the group.'
expect words.sh actors/a.h '// The rank is told which message is next.'
expect words.sh actors/a.h 'std::thread make(QuietThread thread);'
expect words.sh tests/a.cpp 'TEST(Rewards, AreJudgedAtTheEnd) {'
expect words.sh tests/a.cpp 'using BackOffice = Nodes;'
allow words.sh tests/a.cpp 'struct World2 : Simulation {};'
expect words.sh tests/a.cpp 'struct World : Simulation {};'
allow words.sh actors/a.h '// The supervisor of processes.'
allow words.sh engine/nn/a.cpp '  const float alibi_slope = slope;  // ALiBi'
allow words.sh engine/nn/a.cpp '  const auto almost_all = max_rows;'
allow words.sh docs/a.md 'Advantages are divided by the standard deviation of the group.'
allow words.sh docs/a.md 'An LLM judge scores the answers.'
expect own-header actors/b.cpp 'int x;'
expect own-header actors/b.cpp '#include "engine/nn/b.h"'
allow own-header actors/b.cpp '#include "actors/a.h"'
allow own-header launch/main.cpp 'int main() {}'
allow own-header tests/b.cpp 'int x;'
expect commas actors/a.h 'void f() { a = 1, b = 2; }'
expect commas actors/a.h 'void f() { if (x) a.set(1), b.set(2); }'
expect commas actors/a.h 'int f() { return into = x, into; }'
expect commas actors/a.h 'void f() { run([&] { ++a, ++b; }); }'
allow commas actors/a.h 'void f() { int a = 1, b = 2; }'
allow commas actors/a.h 'void f() { const std::map<int, int> a, b; use(a, b); }'
allow commas actors/a.h 'void f() { for (int i = 0, j = 1; i < j; ++i, --j) use({i, j}); }'
allow commas actors/a.h 'Foo::Foo(int x) : a_(x), b_{x} { use(a_, "1, 2;"); }'
expect errors actors/a.h '  if (!x) return fail(x.error());'
allow errors actors/a.h '  RETURN_IF_ERROR(x);'
expect columns actors/a.h "// $(seq -s ' ' 40)"
allow columns actors/a.h "const char* text = R\"($(seq -s ' ' 40))\";"
expect functions actors/a.h 'void f(int a, int b, int c, int d, int e, int g, int h, int i, int j);'
allow functions actors/a.h 'void f(std::map<int, int> a, int b, int c, int d, int e, int g, int h, int i);'
expect functions actors/a.h "void f() {$(yes '
  x();' | head -80)
}"
allow functions actors/a.h "namespace a {
class B {$(yes '
  void f() {
    x();
  }' | head -80)
};
}  // namespace a"
expect friends actors/a.h "$(yes '  friend class A;' | head -7)"
allow friends actors/a.h "$(yes '  friend class A;' | head -6)"
expect positional actors/a.cpp '  Snapshot snapshot{a, b, c, d, e, f, g};'
expect positional actors/a.cpp '  return {a, f(b, c), d, {e}, f, g, h};'
expect positional actors/a.cpp '  send(net::Frame{a, b, c, d, e, f, g});'
allow positional actors/a.cpp '  Snapshot snapshot{.a = a, .b = b, .c = c, .d = d, .e = e, .f = f, .g = g};'
allow positional actors/a.cpp '  return {a, f(b, c, d), e<f, g>, h, {i, j}, k};'
allow positional actors/a.cpp '  return {"a", "b", "c", "d", "e", f, g};'
allow positional actors/a.cpp 'enum class Kind { a, b, c, d, e, f, g };'
allow positional actors/a.cpp 'std::vector<int> all() {
  return {f(a), f(b), f(c), f(d), f(e), f(g), f(h)};
}'
expect nested actors/a.cpp '  Snapshot snapshot{.step = 1, .model = {.source = source}};'
allow nested actors/a.cpp '  Snapshot snapshot{.step = 1, .model = SaveOptions{.source = source}, .texts = {}};'
allow nested actors/a.cpp '  state_ = {.id = id};'
fresh
mkdir -p "$tree"/engine/nn/b
echo '#include "engine/nn/ok.h"' >"$tree/engine/nn/b/x.h"
lint ties >/dev/null || { echo "ties refuses a folder that includes the one above it"; bad=1; }
echo '#include "engine/nn/b/x.h"' >"$tree/engine/nn/ok.h"
lint ties >"$tree.out" && { echo "ties lets two folders include each other"; bad=1; }
grep -q 'engine/nn <-> engine/nn/b' "$tree.out" || { echo "ties does not name engine/nn and engine/nn/b"; bad=1; }
rm -f "$tree.out"
expect doc_names.sh docs/a.md 'The function `take_step()` trains.'
expect doc_names.sh docs/a.md 'See `engine/nn/missing.h`.'
allow doc_names.sh docs/a.md 'See `engine/nn/ok.cpp`, `NAME_loss.h` and `--set`.'
expect doc_names.sh engine/nn/a.h '// Norms (engine/nn/missing.h).'
expect doc_names.sh engine/nn/a.h '  int x;  ///< as in missing.cpp'
allow doc_names.sh engine/nn/a.h '// As nn/ok.cpp, ok.{h,cpp}, NAME.h and linux/landlock.h; http://a.org/missing.h'
# A page with a worked example: a new file, a change of it, and a name from them.
worked() {
  printf 'The header, `engine/nn/b.h`:\n```cpp\nvoid take_step();\n```\nIn `engine/nn/b.h`:\n```diff\n-%s\n+int x;\n```\n%s\n' "$1" "$2"
}
allow doc_names.sh docs/a.md "$(worked 'void take_step();' 'The function `take_step()` of `engine/nn/b.h`.')"
expect doc_names.sh docs/a.md "$(worked 'void take_step();' 'The function `other_step()`.')"
allow doc_diffs.sh docs/a.md "$(worked 'void take_step();' '')"
expect doc_diffs.sh docs/a.md "$(worked 'void other_step();' '')"
exit $bad
