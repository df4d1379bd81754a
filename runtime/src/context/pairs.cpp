#include "runtime/src/context/pairs.h"

#include <poll.h>

#include <string>
#include <utility>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/context/process_set.h"
#include "runtime/src/context/set_memory.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

// Who two ranks are that send to each other. They find each other through the process set that they are in.

/// Carries nothing: what the two need to know of each other they have known since their set was joined.
class PairBootstrap final : public Bootstrap {
 public:
  explicit PairBootstrap(Membership membership) : membership_(std::move(membership)) {}

  const char* name() const override { return "pair"; }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view, std::string_view) override { return {}; }
  Status fence(Deadline) override { return {}; }
  Result<std::string> get(int rank, std::string_view key, Deadline) override {
    return fail(ErrorCode::kNotFound,
                "rank " + std::to_string(rank) + " of a pair puts nothing under " + std::string(key));
  }
  void tell_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Membership membership_;
};

// The connections of a pair of ranks on two hosts, made by the transport of their process set.

class PairLinks final : public LinkTransport {
 public:
  /// set and set_bootstrap outlive this. partner: the other rank, as the set counts hosts and ranks. terms: when to give
  /// up.
  PairLinks(LinkTransport& set, Bootstrap& set_bootstrap, const LinkPartner& partner, const LinkTerms& terms)
      : set_(set), set_bootstrap_(set_bootstrap), partner_(partner), terms_(terms) {}

  const char* name() const override { return set_.name(); }
  Status offer(Bootstrap&) override { return {}; }
  Result<std::vector<PeerLink>> connect(Bootstrap&, const std::vector<LinkPartner>& partners,
                                        const LinkTerms& terms) override {
    LinkTerms own = terms_;
    own.agreed = terms.agreed;
    auto links = set_.connect(set_bootstrap_, {partner_}, own);
    if (!links) return links;
    // As the pair counts them.
    links->front().host = partners.front().host;
    links->front().peer.rank = partners.front().rank;
    return links;
  }
  /// A pair has one connection, so there is nobody to be told.
  std::vector<PeerLink> take_standing() override {
    (void)set_.take_standing();
    return {};
  }
  Member who_is(Bootstrap&, int) const override { return set_.who_is(set_bootstrap_, partner_.rank); }
  std::vector<int> fds() const override { return {}; }

 private:
  LinkTransport& set_;
  Bootstrap& set_bootstrap_;
  LinkPartner partner_;
  LinkTerms terms_;
};

namespace {

/// A rank that has died listens no more either. Whoever sees its death says so within this time.
constexpr std::chrono::seconds kVerdict{1};

/// The membership of a pair, in which the lower rank of the set becomes 0.
Membership membership_of_pair(const Membership& set, int other) {
  Membership pair;
  pair.generation = set.generation;
  pair.host = set.host;
  pair.size = 2;
  pair.rank = index_in_pair(set.rank, other);
  const bool is_here = set.layout.host_of(other) == set.layout.own;
  pair.layout.hosts =
      is_here ? std::vector<std::vector<int>>{{0, 1}} : std::vector<std::vector<int>>{{0}, {1}};
  pair.layout.own = is_here ? 0 : pair.rank;
  return pair;
}

}  // namespace

Pairs::Pairs(PairsParent parent) : parent_(std::move(parent)) {}
Pairs::~Pairs() = default;

Outcome Pairs::transfer(Request request, CallDeadline deadline) {
  const int sender = request.call.root;
  request.call.root = parent_.job_ranks[static_cast<std::size_t>(sender)];
  const auto pair = with(request.peer, request.call, deadline);
  if (!pair) return tl::unexpected(pair.error());
  request.peer = -1;
  request.job_ranks = (*pair)->job_ranks();
  return (*pair)->run(deadline.seconds,
                      [&](CallDeadline until) { return (*pair)->collective(request, until); });
}

tl::expected<ProcessSet*, Failure> Pairs::with(int rank, const Call& call, CallDeadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = pairs_.find(rank); found != pairs_.end()) return found->second->set.get();
  }
  auto pair = make(rank, deadline);
  if (!pair) return tl::unexpected(give_up(rank, pair.error(), call, deadline));
  ProcessSet* const set = (*pair)->set.get();
  {
    const std::lock_guard lock(mutex_);
    pairs_.emplace(rank, *std::move(pair));
  }
  // Who told the pairs of an abort just before has not told this one.
  if (parent_.abort.is_raised()) set->tell(parent_.abort.notice());
  return set;
}

Result<std::shared_ptr<Pairs::Pair>> Pairs::make(int rank, CallDeadline deadline) const {
  const Membership& set = parent_.bootstrap.membership();
  const int other_host = set.layout.host_of(rank);
  const int other = other_host == set.layout.own ? set.layout.local_rank(rank) : -1;
  auto pair = std::make_shared<Pair>();
  pair->transports.within_host = [this, other](const Membership&, FaultInjector&) {
    return std::make_unique<PairMemory>(parent_.group, other);
  };
  pair->transports.between_hosts = [=, this](const Membership&, FaultInjector&) {
    const LinkPartner partner{other_host, rank, other_host < parent_.bootstrap.membership().layout.own};
    const LinkTerms terms{LinkUse::kPair, 0, {deadline.deadline, parent_.abort.doorbell()}};
    return std::make_unique<PairLinks>(*parent_.links, parent_.bootstrap, partner, terms);
  };
  SetSurroundings around{parent_.around.settings,
                         pair->transports,
                         parent_.around.watcher,
                         parent_.around.fault,
                         &parent_.heap,
                         parent_.around.mpi,
                         false};
  const auto job_rank = [this](int of) { return parent_.job_ranks[static_cast<std::size_t>(of)]; };
  auto joined = ProcessSet::join(around, std::make_unique<PairBootstrap>(membership_of_pair(set, rank)),
                                 {job_rank(std::min(set.rank, rank)), job_rank(std::max(set.rank, rank))},
                                 parent_.fault, parent_.on_abort, ConnectLimit{});
  if (!joined) return fail(std::move(joined.error()));
  pair->set = *std::move(joined);
  if (other >= 0) note_begun(other);
  return pair;
}

void Pairs::note_begun(int other) const {
  const Segment& segment = parent_.group.segment;
  const int own = parent_.group.index;
  const auto word = static_cast<std::size_t>(other) / 64;
  // Who leaves says so first and looks here then; here it is the other way round, so at least one sees the other.
  segment.pairs_record(own).begun[word].fetch_or(std::uint64_t{1} << (other % 64));
  // A set that has been aborted tells its pairs why; that somebody left after that explains nothing.
  if (parent_.abort.has_left(other) && !parent_.abort.is_raised())
    leave_segment(segment.pair(own, other), index_in_pair(other, own), 1, -1);
}

Failure Pairs::give_up(int rank, const Error& error, const Call& call, CallDeadline deadline) const {
  const GroupAbort& abort = parent_.abort;
  // Nobody waits in vain where no pair can be: the set goes on.
  const bool has_none = parent_.links == nullptr || error.code() == ErrorCode::kUnavailable;
  if (has_none && !abort.is_raised()) return {DDL_ERROR_UNSUPPORTED, error.message()};
  pollfd doorbell{abort.doorbell(), POLLIN, 0};
  if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kClosed) {
    const Deadline verdict = Deadline::after(kVerdict);
    while (!abort.is_raised() && !verdict.has_passed())
      (void)::poll(&doorbell, 1, verdict.poll_milliseconds());
  }
  const auto partner = [&] {
    Member other = parent_.links->who_is(parent_.bootstrap, rank);
    other.rank = parent_.job_ranks[static_cast<std::size_t>(rank)];
    return other;
  };
  if (!abort.is_raised()) {
    const Member other = partner();
    const int own = parent_.group.index;
    switch (error.code()) {
      case ErrorCode::kTimeout: abort.raise_timeout(own, deadline.seconds, call, other); break;
      case ErrorCode::kNotFound: abort.raise_told(own, AbortNotice::of(AbortReason::kLeft, other)); break;
      default: abort.raise_told(own, AbortNotice::of(AbortReason::kLost, other, error.message()));
    }
  }
  Failure failure = abort.describe(call, true);
  // Who the partner is has to be asked for, which takes long where a host is dead: only where it is told.
  const bool tells = failure.status == DDL_ERROR_TIMEOUT && parent_.links != nullptr;
  return tells ? with_awaited(std::move(failure), call, {partner()}) : failure;
}

void Pairs::tell(const AbortNotice& notice) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, pair] : pairs_) pair->set->tell(notice);
}

void Pairs::wait_forwarded(const AbortNotice& notice, Deadline deadline) const {
  // What the watching thread tells them is what is waited for, so not under the lock.
  std::map<int, std::shared_ptr<Pair>> pairs;
  {
    const std::lock_guard lock(mutex_);
    pairs = pairs_;
  }
  for (const auto& [rank, pair] : pairs) {
    pair->set->tell(notice);
    pair->set->wait_forwarded(deadline);
  }
}

void Pairs::leave() {
  std::map<int, std::shared_ptr<Pair>> pairs;
  {
    const std::lock_guard lock(mutex_);
    pairs.swap(pairs_);
  }
  const SharedGroup& group = parent_.group;
  std::vector<bool> has_begun(group.members.size(), false);
  const HostLayout& layout = parent_.bootstrap.membership().layout;
  for (const auto& [rank, pair] : pairs) {
    (void)pair->set->leave();
    if (layout.host_of(rank) == layout.own)
      has_begun[static_cast<std::size_t>(layout.local_rank(rank))] = true;
  }
  if (parent_.abort.is_raised()) return;
  // Ranks of this host that this one has never sent to may wait for its first call.
  const auto own = static_cast<std::size_t>(group.index);
  for (int other = 0; group.segment.has_pairs() && other < group.segment.members(); ++other) {
    const std::uint64_t begun = group.segment.pairs_record(other).begun[own / 64].load();
    if ((begun >> (own % 64) & 1) == 0 || has_begun[static_cast<std::size_t>(other)]) continue;
    leave_segment(group.segment.pair(group.index, other), index_in_pair(group.index, other), 1, -1);
  }
}

}  // namespace ddl::runtime
