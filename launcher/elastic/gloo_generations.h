// The rendezvous of an elastic job whose ranks are programs of Horovod with Gloo: there is a store for each generation,
// and a process joins again by asking the store for its place in the next one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/gloo/gloo_store.h"
#include "launcher/job/rank_placement.h"

namespace ddl::launcher {

/// Pure: requests in, answers out. Horovod 0.28 does the following (common/gloo/gloo_context.cc, common/elastic.py):
///
/// - The first init() takes its place from HOROVOD_RANK and the like. Each later one does GET
///   /rank_and_size/HOSTNAME:LOCAL_RANK, with the local rank that the process has had so far, and waits for the answer
///   without a limit: "rank,size,local_rank,local_size,cross_rank,cross_size". An answer of 404 would end the process.
/// - Each process does PUT /worker_addresses/HOSTNAME:LOCAL_RANK. There horovodrun would send it pickled messages about
///   hosts that come and go; ddlrun sends none.
/// - A context that does not form ends the process: init() is outside of what hvd.elastic.run() repeats.
class GlooGenerations {
 public:
  struct Process {
    int member = 0;  ///< of Membership
    int launch = 0;  ///< there is one for each host
    std::string host;
  };
  struct Reply {
    std::optional<GlooAnswer> answer;  ///< nullopt: it is one of begin()'s
    std::optional<int> joins;          ///< the member that asks for its place
  };
  struct LateAnswer {
    int launch = 0;
    std::int64_t id = 0;
    GlooAnswer answer;
  };

  /// The next generation begins, with these ranks. Returns the answers for those of them that wait for their place. One
  /// that waits and is no rank gets no answer: it is ended.
  std::vector<LateAnswer> begin(const std::vector<Process>& ranks);
  /// A process of the launch asks. id: of its request, for begin().
  Reply ask(int launch, std::int64_t id, const GlooRequest& request);
  /// The ranks of the generation have formed all of their contexts.
  bool have_met() const;

 private:
  struct Waiting {
    int launch = 0;
    std::int64_t id = 0;
  };
  Reply join(int launch, std::int64_t id, const std::string& key);

  std::vector<Process> ranks_;
  std::vector<RankPlacement> places_;  ///< of ranks_
  GlooStore store_{GlooShape{}};
  std::set<std::string> expected_;  ///< scopes in which a context has not formed yet
  std::map<int, Waiting> waiting_;  ///< by member
};

}  // namespace ddl::launcher
