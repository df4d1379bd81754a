// The rendezvous store of programs that are built with Horovod and Gloo: the ranks of such a program write their
// addresses there and read those of the others. Pure: requests in, answers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "launcher/job/rank_placement.h"

namespace ddl::launcher {

/// What Horovod's variables tell the ranks of a job about their places.
struct GlooShape {
  int size = 1;                            ///< HOROVOD_SIZE
  std::map<std::string, int> local_sizes;  ///< HOROVOD_LOCAL_SIZE of each HOROVOD_HOSTNAME
  std::vector<int> cross_sizes;            ///< HOROVOD_CROSS_SIZE of each HOROVOD_LOCAL_RANK
};

/// hostnames: HOROVOD_HOSTNAME, by node.
GlooShape gloo_shape(const std::vector<RankPlacement>& ranks, const std::vector<std::string>& hostnames);

struct GlooLimits {
  /// Of one value. A rank's value has about 136 bytes for each of the others: enough for 15,000 ranks.
  std::size_t value_bytes = std::size_t{2} << 20;
  std::size_t keys = std::size_t{1} << 20;  ///< and scopes
  /// Of all keys and values. A round of n ranks takes n * n * 136 bytes: enough for 2,800 ranks.
  std::size_t bytes = std::size_t{1} << 30;
};

enum class GlooMethod : std::uint8_t { kGet, kPut, kDelete };

struct GlooRequest {
  GlooMethod method = GlooMethod::kGet;
  std::string scope;
  std::string key;
  std::string body;  ///< of kPut
  bool operator==(const GlooRequest&) const = default;
};

/// An answer of HTTP. The body is the value for 200 after kGet, a sentence for 400 and more, otherwise empty.
struct GlooAnswer {
  int status = 200;
  std::string body;
  bool operator==(const GlooAnswer&) const = default;
};

/// The longest scope or key.
inline constexpr std::size_t kMaxGlooName = 512;

/// A request of HTTP; path is what stands in its first line, and is not decoded. It must be "/SCOPE/KEY", of printable
/// ASCII. The error is the answer to give: 400, or 501 for another method.
tl::expected<GlooRequest, GlooAnswer> read_gloo_request(std::string_view method, std::string_view path,
                                                        std::string body);

/// Scopes and keys with values. In the scopes in which contexts of Gloo form, the values belong to a round, so that a
/// program can shut Horovod down and initialise it again. A copyable value; a store without history is a new one.
///
/// Such scopes are "global", "local_HOSTNAME" and "cross_LOCAL_RANK" of the job's shape, and each of these followed by
/// "_process_set_hash_" and hexadecimal digits. In each of them, every rank r of the context does the following
/// (Horovod 0.28, common/gloo/gloo_context.cc), and waits for each answer before it goes on:
///
///   PUT rank_r; GET rank_i for each i < r; PUT r; GET i for each other i, until it is there; connect to all others;
///   a barrier of all; DELETE r
///
/// In all other scopes a DELETE removes one key.
class GlooStore {
 public:
  explicit GlooStore(GlooShape shape, const GlooLimits& limits = {});

  /// 200; 404 for a key that is not there; 400 for a rank that the scope does not have; 413 and 507 over a limit.
  /// The DELETE of a key that is not there is answered by 200, as that of one that is.
  GlooAnswer apply(const GlooRequest& request);

  std::size_t keys() const { return keys_; }
  std::size_t bytes() const { return bytes_; }

 private:
  /// Rounds. The first DELETE of a round comes after the barrier. So all ranks have read by then what they need, all
  /// have written, and whatever is written or read from then on belongs to the next round. The first DELETE therefore
  /// empties the scope at once, and the ranks that have yet to DELETE are remembered; their number is that of the
  /// addresses in the scope, which is right also for a process set, whose size nobody tells the store. No next round
  /// can get to its own first DELETE while some of the last one are missing, because each rank takes part in the next
  /// barrier only after its own DELETE.
  ///
  /// A client repeats a request whose answer it did not get. A repeated PUT replaces the value, and a DELETE counts
  /// once for each rank. A rank that writes "rank_r" again before its DELETE has given the round up and begun anew:
  /// its old address, at which nobody listens any more, is removed, and no DELETE is expected from it.
  struct Scope {
    std::map<std::string, std::string, std::less<>> values;
    std::set<int> leaving;  ///< ranks of the last round whose DELETE has not come
  };
  /// Of a scope in which a context forms.
  struct Context {
    int max_ranks = 0;
    bool is_whole = true;  ///< not that of a process set: it has exactly max_ranks ranks
  };

  std::optional<Context> context_of(std::string_view scope) const;
  /// Of a scope of the job's shape.
  std::optional<int> ranks_of(std::string_view scope) const;
  GlooAnswer get(const GlooRequest& request) const;
  GlooAnswer put(const GlooRequest& request);
  void remove(const GlooRequest& request);
  void erase_value(Scope& scope, std::string_view key);
  void erase_all_values(Scope& scope);
  void forget_if_empty(const std::string& scope);

  GlooShape shape_;
  GlooLimits limits_;
  std::map<std::string, Scope, std::less<>> scopes_;
  std::size_t keys_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ddl::launcher
