// Any bytes as a pickle: refused, or every node of the graph refers to nodes that exist and every
// tensor lies in its storage.
#include <cstdint>
#include <cstdlib>

#include "engine/checkpoint/pickle/pickle_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::engine::checkpoint;  // NOLINT: a program of one page
  const auto graph = read_pickle({reinterpret_cast<const std::byte*>(data), size}, "x");
  if (!graph) return 0;
  if (graph->root >= graph->nodes.size()) std::abort();
  for (const PickleNode& node : graph->nodes)
    for (const PickleId item : node.items)
      if (item >= graph->nodes.size()) std::abort();
  for (const PickledTensor& tensor : graph->tensors)
    if (tensor.count() > tensor.storage_count || tensor.strides.size() != tensor.shape.size())
      std::abort();
  return 0;
}
