// The seam through which ranks find each other: who is in the job, and a few bytes from each to all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "runtime/src/bootstrap/host_layout.h"

namespace ddl::runtime {

/// Who is in the job, from the view of one rank.
struct Membership {
  /// Counts the contexts of one process, from 1: keys of different generations never meet.
  std::uint32_t generation = 1;
  int rank = 0;
  int size = 1;
  /// Which ranks the launcher started on which host.
  HostLayout layout;
  /// This host as the launcher calls it.
  std::string host;

  const std::vector<int>& local_members() const { return layout.local(); }
  int local_rank() const { return layout.local_rank(rank); }
};

/// One rank's connection to whoever started the job. Not thread-safe. The destructor leaves the job if leave() was
/// not called.
class Bootstrap {
 public:
  Bootstrap() = default;
  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  virtual const char* name() const = 0;  ///< static storage
  virtual const Membership& membership() const = 0;

  /// Makes value known to all ranks after the next fence(). Keys are unique for the life of the process. Values are
  /// not secret: other users of the host may be able to read them.
  virtual Status put(std::string_view key, std::string_view value) = 0;
  /// Collective over all ranks: returns when every rank has called it.
  virtual Status fence(Deadline deadline) = 0;
  /// What rank put under key before the last fence().
  virtual Result<std::string> get(int rank, std::string_view key, Deadline deadline) = 0;
  /// Tells the launcher what it has asked to be told (contract/rank_process.h). Where there is no launcher that asks,
  /// nobody listens.
  virtual void tell_launcher(int event) = 0;
  /// Says goodbye to the launcher; not collective. Only the destructor may follow.
  virtual Status leave() = 0;
};

/// What trying one bootstrap gave: a connection, or the reason why it is not to be had here.
struct BootstrapAttempt {
  std::unique_ptr<Bootstrap> bootstrap;
  std::string not_available;  ///< set if and only if bootstrap is null
};

}  // namespace ddl::runtime
