// The transport of ranks that are threads: one mapping for all, because ThreadSanitizer cannot see that two mappings
// are the same memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/src/shm/transport.h"

namespace ddl::runtime::test {

/// The shared memory of all hosts and process sets of a job whose ranks are threads. Used by all of them at once.
class InProcessMemory {
 public:
  struct Group {
    std::shared_ptr<const MappedMemory> memory;
    Segment segment;
    Members members;
    UniqueFd doorbell;
  };

  /// cpus: of every group.
  explicit InProcessMemory(int cpus) : cpus_(cpus) {}

  int cpus() const { return cpus_; }
  /// Lays out a segment for the ranks of membership's host.
  void add(const Membership& membership, const SegmentConfig& config);
  const Group& group(const Membership& membership) const;

 private:
  using Key = std::pair<std::uint32_t, int>;  ///< generation and host
  static Key key_of(const Membership& membership) { return {membership.generation, membership.layout.own}; }

  int cpus_;
  mutable std::mutex mutex_;
  std::map<Key, Group> groups_;
};

class InProcessTransport final : public Transport {
 public:
  /// memory outlives this.
  explicit InProcessTransport(InProcessMemory& memory) : memory_(memory) {}

  const char* name() const override { return "in-process"; }
  Status is_usable(const Membership&) const override { return {}; }
  Status publish(Bootstrap& bootstrap, const SegmentConfig& config) override;
  Result<SharedGroup> connect(Bootstrap& bootstrap, const ConnectLimit& limit) override;

 private:
  InProcessMemory& memory_;
};

}  // namespace ddl::runtime::test
