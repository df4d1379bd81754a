// The transport of ranks that are threads: one mapping for all, because ThreadSanitizer cannot see that two mappings are
// the same memory.
#pragma once

#include <memory>

#include "runtime/src/transport/transport.h"

namespace ddl::runtime::test {

class InProcessTransport final : public Transport {
 public:
  /// Lays out a segment for so many ranks.
  InProcessTransport(int ranks, const SegmentWish& wish, int cpus);

  const char* name() const override { return "in-process"; }
  Status is_usable(const Membership&) const override { return {}; }
  /// The wish was taken in the constructor.
  Result<SharedGroup> connect(Bootstrap& bootstrap, const SegmentWish& wish) override;

 private:
  std::shared_ptr<const MappedMemory> memory_;
  Members members_;
  int cpus_;
};

}  // namespace ddl::runtime::test
