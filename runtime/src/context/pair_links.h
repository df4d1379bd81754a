// The connections of a pair of ranks on two hosts, made by the transport of their process set.
#pragma once

#include "runtime/src/transport/link_transport.h"

namespace ddl::runtime {

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

}  // namespace ddl::runtime
