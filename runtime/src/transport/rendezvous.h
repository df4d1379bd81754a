// Where the ranks of one host meet: the leader's socket and the proof that a rank of the job is calling.
#pragma once

#include <string>

#include "base/error.h"
#include "runtime/src/transport/wire_up_messages.h"

namespace ddl::runtime {

/// Travels through the bootstrap as text. Other users may read it there, so the leader also checks the caller's user
/// id; the nonce tells apart jobs and contexts of one user.
struct Rendezvous {
  std::string socket_name;  ///< abstract, random
  Nonce nonce{};

  static Result<Rendezvous> random();
  std::string to_text() const;
  static Result<Rendezvous> parse(std::string_view text);
};

}  // namespace ddl::runtime
