// The cluster on whose head this test runs (tests/cluster/cluster), and the faults that a test causes on it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"

namespace ddl::cluster {

/// For a case that the cluster of this machine does not support: DDL_SKIP, or a failure if clusters are required.
#define DDL_CLUSTER_SKIP(reason)                                                        \
  do {                                                                                  \
    if (::ddl::cluster::is_required()) FAIL("DDL_REQUIRE_CLUSTER=1, but " << (reason)); \
    DDL_SKIP(reason);                                                                   \
  } while (false)
bool is_required();

/// The destructor undoes all faults, also after a test that failed. One object at a time; for one thread. A command
/// that fails fails the test case.
class Cluster {
 public:
  Cluster() = default;
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// "node1" and so on.
  static std::vector<std::string> hosts();
  /// sshd, the first process of a host: all others end with it. 0 if the host is dead.
  static pid_t first_process(const std::string& host);
  /// The path on the head of a path that each host has for itself: /tmp, /dev/shm.
  static std::string path_on(const std::string& host, const std::string& path);

  /// Sets the links down, then kills all processes at once: no peer is notified.
  void kill(const std::string& host);
  /// As kill(), but the host stays dead: for the last test that uses this cluster.
  void kill_for_good(const std::string& host);
  void restart(const std::string& host);
  /// Drops all packets from and to the host; connections stay open.
  void partition(const std::string& host);
  void heal(const std::string& host);
  void partition(const std::string& host, const std::string& other);
  void heal(const std::string& host, const std::string& other);
  /// Leaves no free byte and no free inode in the host's /tmp.
  void fill(const std::string& host);
  /// On this host the file is mounted over the path, which must exist.
  void cover(const std::string& host, const std::string& path, const std::string& file);
  /// Gives the host an interface docker0 with an address that all hosts with one have.
  void twin(const std::string& host);
  /// Runs a command on the host as root; it must succeed.
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

/// The login that runs ddlrun: root, or that of DDL_CLUSTER_LOGIN.
std::string tested_login();
/// A command as a login of the head, or of another host.
e2e::Command as_login(const std::string& login, std::vector<std::string> argv,
                      const std::string& host = "head");

/// A scratch directory on all hosts that every login may read.
class SharedScratch : public e2e::Scratch {
 public:
  SharedScratch();
};

}  // namespace ddl::cluster
