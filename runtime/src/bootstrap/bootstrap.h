// The interface through which ranks find each other: the members of the job, and a key-value store of a few bytes per
// rank. Also here: the ABI between libddl and its PMIx module, the values that a rank has put, and the grouping of
// ranks by their hosts' names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "contract/version.h"
#include "runtime/src/bootstrap/host_layout.h"

namespace ddl::runtime {

/// The members of the job, from the view of one rank.
struct Membership {
  /// The number of the context in its process, from 1: it is part of keys, so those of different contexts differ.
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

/// One rank's connection to the launcher of the job. Not thread-safe, except abort_job(). The destructor leaves the
/// job if leave() was not called.
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
  /// The value that rank put under key before the last fence().
  virtual Result<std::string> get(int rank, std::string_view key, Deadline deadline) = 0;
  /// Sends the launcher an event that it has asked for (contract/rank_process.h). No effect under other launchers.
  virtual void notify_launcher(int event) = 0;
  /// Asks the launcher to end the job with this exit code, 1 to 255. text is for its report, if it takes one. From
  /// any thread, concurrently with any other function. Returns within a few seconds, successful or not; the job may
  /// end before that. No effect without a launcher.
  virtual void abort_job(int /*code*/, const std::string& /*text*/) {}
  /// Says goodbye to the launcher; not collective. Only the destructor may follow.
  virtual Status leave() = 0;
};

/// The result of trying one bootstrap: a connection, or the reason why it is not available here.
struct BootstrapAttempt {
  std::unique_ptr<Bootstrap> bootstrap;
  std::string not_available;  ///< set if and only if bootstrap is null
};

// The ABI between libddl and its on-demand module libddl_pmix.so. Only the module links libpmix, so that libddl.so
// runs on hosts without libpmix.

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kBootstrapInterface = 6;
inline constexpr char kPmixModuleFile[] = "libddl_pmix.so";
inline constexpr char kPmixFactorySymbol[] = "ddl_pmix_bootstrap_create";

struct InterruptCheck;  // common/interruption.h

/// Stores the connection, the reason why there is none, or the error in *result and returns 1; returns 0 and stores
/// nothing if the module was built for another interface or version of libddl. is_successor: what other ranks have put
/// under the same keys may be that of processes before theirs. deadline: for waiting for the server. check: libddl's own.
using PmixFactory = int (*)(std::uint32_t interface, const char* version, std::uint32_t generation,
                            bool is_successor, Deadline deadline, InterruptCheck& check,
                            Result<BootstrapAttempt>* result);

// The values that one rank has put, by key, for bootstraps that distribute them themselves.

class PutValues {
 public:
  void put(std::string_view key, std::string_view value) {
    values_.insert_or_assign(std::string(key), std::string(value));
  }
  void clear() { values_.clear(); }

  /// rank: whose values these are, for the error message. kNotFound.
  Result<std::string> get(int rank, std::string_view key) const;

  /// All values as one text, for the other ranks.
  std::string text() const;
  /// Adds the values of another rank's text(), replacing those under the same keys. kProtocol.
  Status add(std::string_view text);

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Which ranks share a host, if no launcher says so: by the names that the hosts give themselves.

/// The ranks of each host, hosts by name. membership has generation, size and host. Collective over its ranks.
Result<std::vector<std::vector<int>>> groups_by_host_name(Bootstrap& bootstrap, const Membership& membership,
                                                          Deadline deadline);

}  // namespace ddl::runtime
