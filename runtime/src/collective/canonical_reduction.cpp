#include "runtime/src/collective/canonical_reduction.h"

#include <array>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/host_steps.h"

namespace ddl::runtime {

CanonicalReduction::CanonicalReduction(const Reduction& reduction, const HostLayout& layout)
    : reduction_(reduction), merge_(merge_of(reduction)), layout_(layout) {}

void CanonicalReduction::reduce(std::span<const std::byte* const> inputs, std::byte* out, std::size_t count) {
  if (count == 0) return;
  if (layout_.host_count() == 1) return reduce_chunk(reduction_, inputs, out, count);
  const std::size_t bytes = count * known_element_size(merge_.dtype);
  const auto hosts = static_cast<std::size_t>(layout_.host_count());
  partials_.resize(hosts * bytes);
  const auto partial = [&](int host) { return partials_.data() + static_cast<std::size_t>(host) * bytes; };
  std::vector<const std::byte*> local;
  for (int host = 0; host < layout_.host_count(); ++host) {
    local.clear();
    for (const int rank : layout_.hosts[static_cast<std::size_t>(host)])
      local.push_back(inputs[static_cast<std::size_t>(rank)]);
    reduce_partials(reduction_, local, partial(host), count);
  }
  for (const auto& [left, right] : tree_pairs(layout_.host_count())) {
    const std::array<const std::byte*, 2> both{partial(left), partial(right)};
    reduce_chunk(merge_, both, partial(left), count);
  }
  finish_chunk(reduction_, partial(0), out, count, layout_.rank_count());
}

}  // namespace ddl::runtime
