// What all process sets of a context share.
#pragma once

#include <functional>
#include <memory>

#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/common/event_log.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/rank_record.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/device/device_allocations.h"
#include "runtime/src/device/launch_order.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/shared_heap.h"
#include "runtime/src/wire/link_transport.h"
#include "runtime/src/wire/watcher.h"

namespace ddl::runtime {

/// The resources that all process sets of a context share. The context owns them, and they outlive the sets.
struct JobResources {
  Settings settings;
  TransportMaker transports;
  FaultInjector fault;                 ///< for points that are passed while ranks are connected
  std::shared_ptr<RankRecord> record;  ///< null unless the launcher has given one
  /// In the launcher's ring; if there is none, in one of the world's segment: null until the world is connected.
  std::unique_ptr<EventLog> events;
  /// Where events go now; null: nowhere.
  EventLog* log() const { return events && events->is_on() ? events.get() : nullptr; }
  Watcher watcher;
  /// Shared by the job's ranks on this host, in the memory of the world: null until the world is connected.
  std::unique_ptr<SharedHeap> heap;
  std::shared_ptr<MpiWorld> mpi;  ///< null unless MPI executes the collectives
  DeviceAllocations device_memory;
  LaunchOrder launch_order;
  /// Called before the program learns that a call of a process set has failed. set: its abort; null: the thread does not
  /// hold the set's call lock, and must not use what another thread's ddl_finalize() may destroy.
  std::function<void(const AbortDomain* set)> on_failure;
};

}  // namespace ddl::runtime
