// How the fast device packs the operands of products, and shares packed products out to its
// threads.
#include <algorithm>

#include "engine/ops/cpu/fast_device.h"

namespace troupe::engine::ops {
namespace {

std::int64_t tiles_at_once(std::int64_t rows, std::int64_t steps) {
  return std::clamp<std::int64_t>(words_at_once / (rows * std::min(steps, panel_depth)), 2, 14);
}

/// Even parts of some panels, as many for each thread: a part begins with words that nothing has
/// fetched.
std::vector<Part> even_parts(std::int64_t panels, int threads) {
  constexpr std::int64_t most = 32;
  const std::int64_t count = threads * ((panels + threads * most - 1) / (threads * most));
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back({i * panels / count, (i + 1) * panels / count - i * panels / count});
  return parts;
}

/// Blocks of a product: by rows where it has many, else by columns, or by both where it has few of
/// either.
void cut(const PanelProduct& p, int threads, std::vector<PanelProduct>& into) {
  const std::int64_t tiles = (p.m + p.rows - 1) / p.rows, at_once = tiles_at_once(p.rows, p.steps);
  const auto add = [&](std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t columns) {
    PanelProduct part = p;
    part.m = std::min(rows, p.m - m), part.n = std::min(columns, p.n - n);
    part.a += m * p.steps, part.b += n * p.steps, part.c += m * p.ldc + n;
    into.push_back(part);
  };
  if (tiles >= 6 * threads) {
    for (const Part& part : parts_of(tiles, at_once, threads))
      add(part.first * p.rows, part.count * p.rows, 0, p.n);
    return;
  }
  const std::int64_t panels = panels_width(p.n) / panel_columns;
  if (panels >= threads) {
    for (const Part& part : even_parts(panels, threads))
      add(0, p.m, part.first * panel_columns, part.count * panel_columns);
    return;
  }
  Blocks blocks{p.m, p.n, p.rows * at_once, 512};
  blocks.cut_for(threads, p.rows, panel_columns);
  for (std::int64_t n = 0; n < p.n; n += blocks.width) {
    for (std::int64_t m = 0; m < p.m; m += blocks.height) add(m, blocks.height, n, blocks.width);
  }
}

/// A thread's own parts of each product together. ends: of each product's parts.
std::vector<PanelProduct> slice_by_slice(const std::vector<PanelProduct>& parts,
                                         const std::vector<std::int64_t>& ends, const Pool& pool) {
  std::vector<PanelProduct> all;
  for (int thread = 0; thread < pool.threads(); ++thread) {
    std::int64_t first = 0;
    for (const std::int64_t last : ends) {
      const auto [begin, end] = pool.slice(last - first, thread);
      all.insert(all.end(), parts.begin() + first + begin, parts.begin() + first + end);
      first = last;
    }
  }
  return all;
}

}  // namespace

void FastDevice::pack_panels(const Panels& with, const Packing& items, float* to) {
  const std::int64_t steps = with.steps(items.depth),
                     panels = (items.count + items.width - 1) / items.width;
  const auto pack = [&](std::int64_t panel, std::int64_t k, std::int64_t depth) {
    const std::int64_t i = panel * items.width;
    Packing part = items;
    part.from += items.items_together ? i + k * items.apart : i * items.apart + k;
    part.count = std::min(items.width, items.count - i), part.depth = depth;
    with.pack(part, to + i * steps + with.steps(k) * items.width);
  };
  if (!items.items_together) {
    return share(panels, items.width * items.depth, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t panel = begin; panel < end; ++panel)
                     pack(panel, 0, items.depth);
                 });
  }
  // Some rows of k go to all panels before the next ones are read, each thread's own: a panel alone
  // takes a line or two of each row, which may all fall into one set of a cache, and from a page of
  // its own.
  const std::int64_t rows_at_once = std::max<std::int64_t>(16, with.part);
  share((items.depth + rows_at_once - 1) / rows_at_once, rows_at_once * items.count, 1,
        [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t k = begin * rows_at_once; k < std::min(items.depth, end * rows_at_once);
               k += rows_at_once) {
            for (std::int64_t panel = 0; panel < panels; ++panel)
              pack(panel, k, std::min(rows_at_once, items.depth - k));
          }
        });
}

void FastDevice::pack_tiles(const Panels& with, const Packing& items, float* to) {
  const std::int64_t whole = items.count / items.width * items.width, rest = items.count - whole;
  Packing part = items;
  part.count = whole;
  pack_panels(with, part, to);
  if (rest == 0) return;
  part.from += whole * (items.items_together ? 1 : items.apart);
  part.count = part.width = rest;
  with.pack(part, to + whole * with.steps(items.depth));
}

void FastDevice::multiply(const Panels& with, std::span<const PanelProduct> products) {
  std::vector<PanelProduct> parts;
  std::vector<std::int64_t> ends;
  std::int64_t work = 0;
  for (const PanelProduct& p : products) {
    if (p.steps == 0) clear(p.m, p.n, p.c, p.ldc, p.accumulate);
    if (p.steps == 0) continue;
    work += p.m * p.n * p.steps;
    cut(p, p.m * p.n * p.steps < worth_waking ? 1 : pool_.threads(), parts);
    if (products.size() > 1) ends.push_back(std::ssize(parts));
  }
  if (ends.size() > 1 && pool_.threads() > 1) parts = slice_by_slice(parts, ends, pool_);
  spread(std::ssize(parts), work,
         [&](std::int64_t part, int) { with.product(parts[static_cast<std::size_t>(part)]); });
}

void FastDevice::multiply_rows(const Panels& with, std::span<const Unpacked> products) {
  const std::int64_t m = products[0].product.m, height = products[0].product.rows;
  std::int64_t steps = 0, work = 0;
  for (const auto& [left, p] : products)
    steps = std::max(steps, p.steps), work += p.m * p.n * p.steps;
  const auto parts =
      parts_of((m + height - 1) / height, tiles_at_once(height, steps), pool_.threads());
  spread(std::ssize(parts), work, [&](std::int64_t item, int worker) {
    const std::int64_t first = parts[static_cast<std::size_t>(item)].first * height;
    const std::int64_t rows =
        std::min(parts[static_cast<std::size_t>(item)].count * height, m - first);
    float* packed = score_scratch_[static_cast<std::size_t>(worker)].need(rows * steps);
    const float* packed_from = nullptr;
    for (const auto& [left, whole] : products) {
      for (std::int64_t i = 0; i < rows && left.from != packed_from; i += height) {
        const std::int64_t tall = std::min(height, rows - i);
        with.pack({left.from + (first + i) * left.apart, left.apart, tall, left.depth, tall, false},
                  packed + i * whole.steps);
      }
      packed_from = left.from;
      PanelProduct part = whole;
      part.m = rows, part.a = packed, part.c += first * part.ldc;
      with.product(part);
    }
  });
}

namespace {

/// Panels of one of several products.
struct Columns {
  std::size_t product;
  Part panels;
};
/// Parts of all their panels in a row, cut where a product ends.
std::vector<Columns> columns_of(std::span<const FastDevice::Unpacked> products, std::int64_t width,
                                std::int64_t most, int threads) {
  const auto panels = [&](std::size_t i) { return (products[i].product.n + width - 1) / width; };
  std::int64_t total = 0, before = 0;
  for (std::size_t i = 0; i < products.size(); ++i) total += panels(i);
  std::vector<Columns> columns;
  std::size_t at = 0;
  for (auto [first, count] : parts_of(total, most, threads)) {
    for (std::int64_t taken = 0; count > 0; first += taken, count -= taken) {
      while (first >= before + panels(at)) before += panels(at++);
      taken = std::min(count, before + panels(at) - first);
      columns.push_back({at, {first - before, taken}});
    }
  }
  return columns;
}

/// The columns that a thread packs next: where they lie together, fetched by the product before.
void fetch_next(const FastDevice::Unpacked& of, const Part& panels, std::int64_t width,
                PanelProduct& by) {
  const Packing& items = of.items;
  if (items.apart != items.depth) return;
  const std::int64_t n = panels.first * width,
                     columns = std::min(panels.count * width, of.product.n - n);
  by.next = items.from + n * items.apart, by.next_lines = columns * items.apart / 16;
}

}  // namespace

void FastDevice::multiply_columns(const Panels& with, std::span<const Unpacked> products) {
  const std::int64_t steps = products[0].product.steps, m = products[0].product.m;
  const bool fetches = &with != &kernels_.dots;
  const std::int64_t room = fetches ? words_beside_next : words_at_once;
  const std::int64_t most =
      std::clamp<std::int64_t>(room / (steps * with.columns), 1, 512 / with.columns);
  const std::int64_t height =
      products[0].product.rows * tiles_at_once(products[0].product.rows, steps);
  const auto parts = columns_of(products, with.columns, most, pool_.threads());
  std::int64_t work = 0;
  for (const auto& [right, p] : products) work += p.m * p.n * p.steps;
  spread(std::ssize(parts), work, [&](std::int64_t item, int worker) {
    const auto& [place, panels] = parts[static_cast<std::size_t>(item)];
    const auto& [right, whole] = products[place];
    const std::int64_t n = panels.first * with.columns;
    PanelProduct part = whole;
    part.n = std::min(panels.count * with.columns, whole.n - n);
    float* packed =
        score_scratch_[static_cast<std::size_t>(worker)].need(panels.count * with.columns * steps);
    for (std::int64_t j = 0; j < part.n; j += with.columns) {
      const std::int64_t columns = std::min(with.columns, part.n - j);
      with.pack({right.from + (n + j) * right.apart, right.apart, columns, right.depth,
                 with.columns, false},
                packed + j * steps);
    }
    part.b = packed;
    if (fetches && item + 1 < std::ssize(parts)) {
      const Columns& next = parts[static_cast<std::size_t>(item) + 1];
      fetch_next(products[next.product], next.panels, with.columns, part);
    }
    for (std::int64_t row = 0; row < m; row += height, part.next_lines = 0) {
      part.m = std::min(height, m - row), part.a = whole.a + row * steps,
      part.c = whole.c + row * whole.ldc + n;
      with.product(part);
    }
  });
}

const float* FastDevice::pack_left(const Panels& with, const Packing& items) {
  float* left = left_.need(with.steps(items.depth) * items.count);
  pack_tiles(with, items, left);
  return left;
}

}  // namespace troupe::engine::ops
