// The seam through which ranks find each other: who is in the job, and a few bytes from each rank to all. Beside it stand what
// libddl and its PMIx module agree on, a store of what ranks have put, and the grouping of ranks by their hosts' names.
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

// The seam through which ranks find each other: who is in the job, and a few bytes from each to all.

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

/// One rank's connection to whoever started the job. Not thread-safe, but for abort_job(). The destructor leaves the job if
/// leave() was not called.
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
  virtual void notify_launcher(int event) = 0;
  /// Asks the launcher to end the job with this exit code, 1 to 255. text is for its report, if it takes one. From any
  /// thread, beside any other function. Returns within a few seconds, whatever came of it; the job may end before that.
  /// Where there is no launcher, nothing happens.
  virtual void abort_job(int /*code*/, const std::string& /*text*/) {}
  /// Says goodbye to the launcher; not collective. Only the destructor may follow.
  virtual Status leave() = 0;
};

/// What trying one bootstrap gave: a connection, or the reason why it is not to be had here.
struct BootstrapAttempt {
  std::unique_ptr<Bootstrap> bootstrap;
  std::string not_available;  ///< set if and only if bootstrap is null
};

// What libddl and its on-demand module libddl_pmix.so agree on. Only the module links libpmix, so that libddl.so runs
// where there is none.

/// Both sides are C++ of one build: a module of another version or layout is refused by this number and the version.
inline constexpr std::uint32_t kBootstrapInterface = 4;
inline constexpr char kPmixModuleFile[] = "libddl_pmix.so";
inline constexpr char kPmixFactorySymbol[] = "ddl_pmix_bootstrap_create";

/// Stores the connection, the reason why there is none, or the error in *result and returns 1; returns 0 and stores
/// nothing if the module was built for another interface or version of libddl. deadline: of waiting for the server.
using PmixFactory = int (*)(std::uint32_t interface, const char* version, std::uint32_t generation,
                            Deadline deadline, Result<BootstrapAttempt>* result);

// What one rank has put, by key, for bootstraps that hand it on themselves.

class PutValues {
 public:
  void put(std::string_view key, std::string_view value) {
    values_.insert_or_assign(std::string(key), std::string(value));
  }
  void clear() { values_.clear(); }

  /// rank: whose values these are, for the error's sentence. kNotFound.
  Result<std::string> get(int rank, std::string_view key) const;

  /// As one text, for the other ranks.
  std::string text() const;
  /// Adds what another rank's text() says, in the place of what was there under the same keys. kProtocol.
  Status add(std::string_view text);

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// Which ranks share a host, where no launcher says so: by what their hosts call themselves.

/// The ranks of each host, hosts by name. Of a membership that has generation, size and host; collective over its ranks.
Result<std::vector<std::vector<int>>> groups_by_host_name(Bootstrap& bootstrap, const Membership& membership,
                                                          Deadline deadline);

}  // namespace ddl::runtime
