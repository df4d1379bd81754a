// The transport of ranks that are threads: one mapping for all, because ThreadSanitizer cannot see that two mappings are
// the same memory.
#pragma once

#include <memory>
#include <vector>

#include "runtime/src/transport/transport.h"

namespace ddl::runtime::test {

class InProcessTransport final : public Transport {
 public:
  /// Lays out a segment for the ranks of one host.
  InProcessTransport(const std::vector<int>& ranks, const SegmentWish& wish, int cpus);

  const char* name() const override { return "in-process"; }
  Status is_usable(const Membership&) const override { return {}; }
  /// The wish was taken in the constructor.
  Status offer(Bootstrap&, const SegmentWish&) override { return {}; }
  Result<SharedGroup> connect(Bootstrap& bootstrap) override;

 private:
  std::shared_ptr<const MappedMemory> memory_;
  Members members_;
  UniqueFd doorbell_;
  int cpus_;
};

}  // namespace ddl::runtime::test
