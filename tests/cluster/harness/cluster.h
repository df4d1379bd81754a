// The cluster on whose head this test runs (tests/cluster/cluster), and what a test does to it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"

namespace ddl::cluster {

/// For a case that this machine's cluster cannot offer: DDL_SKIP, unless clusters are required, where it is a failure.
#define DDL_CLUSTER_SKIP(reason)                                                        \
  do {                                                                                  \
    if (::ddl::cluster::is_required()) FAIL("DDL_REQUIRE_CLUSTER=1, but " << (reason)); \
    DDL_SKIP(reason);                                                                   \
  } while (false)
bool is_required();

/// What was done to the cluster is undone at the end, also of a test that failed. One at a time; one thread. What cannot
/// be done fails the test case.
class Cluster {
 public:
  Cluster() = default;
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// "node1" and so on.
  static std::vector<std::string> hosts();
  /// sshd, the first process of a host: nothing of the host outlives it. 0 if the host is dead.
  static pid_t first_process(const std::string& host);
  /// Where the head sees a path of the host's own: /tmp, /dev/shm.
  static std::string path_on(const std::string& host, const std::string& path);

  /// Links down, then everything ends at once: no peer is told.
  void kill(const std::string& host);
  void restart(const std::string& host);
  /// Nothing passes from or to the host; connections stay open.
  void partition(const std::string& host);
  void heal(const std::string& host);
  void partition(const std::string& host, const std::string& other);
  void heal(const std::string& host, const std::string& other);
  /// Not a byte and not an inode is left in the host's /tmp.
  void fill(const std::string& host);
  /// On this host the file is seen under the path, which must exist.
  void cover(const std::string& host, const std::string& path, const std::string& file);
  /// Gives the host an interface docker0 with an address that all hosts with one have.
  void twin(const std::string& host);
  /// Runs a command there as root, which must succeed.
  void on_host(const std::string& host, const std::vector<std::string>& command);

 private:
  void run(const std::vector<std::string>& words);

  struct Undo {
    std::vector<std::string> fault;
    std::vector<std::string> words;
  };
  e2e::Scratch scratch_;
  std::vector<Undo> undo_;
};

/// The login as which ddlrun is tested: root, or that of DDL_CLUSTER_LOGIN.
std::string tested_login();
/// A command as some login of the head's.
e2e::Command as_login(const std::string& login, std::vector<std::string> argv);

/// A scratch directory that all hosts see, and every login may read.
class SharedScratch : public e2e::Scratch {
 public:
  SharedScratch();
};

}  // namespace ddl::cluster
