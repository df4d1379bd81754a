// What each rank of an elastic job has of its own, and the copies of it that other ranks hold: for ddl/elastic.hpp.
#ifndef DDL_SHARDS_HPP
#define DDL_SHARDS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"

namespace ddl::elastic {

/// Makes a rank's part of those that all ranks had, by rank, when there were more ranks, or fewer.
template <class T>
using Reshard = std::function<std::vector<T>(const std::vector<std::vector<T>>& parts, int rank, int size)>;

}  // namespace ddl::elastic

namespace ddl::detail {

using Bytes = std::vector<std::uint8_t>;

/// For each rank the one that holds a copy of its shards. local_ranks: of ranks that are numbered host by host. It is on
/// the host half the hosts away, or half the ranks away on the only host; the rank itself if it is alone.
inline std::vector<int> shard_holders(const std::vector<std::int32_t>& local_ranks) {
  std::vector<std::vector<int>> hosts;
  for (int rank = 0; rank < static_cast<int>(local_ranks.size()); ++rank) {
    if (rank == 0 || local_ranks[rank] == 0) hosts.emplace_back();
    hosts.back().push_back(rank);
  }
  std::vector<int> holders;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<int>& away = hosts[(host + hosts.size() / 2) % hosts.size()];
    const std::size_t apart = hosts.size() == 1 ? away.size() / 2 : 0;
    for (std::size_t i = 0; i < hosts[host].size(); ++i) holders.push_back(away[(i + apart) % away.size()]);
  }
  return holders;
}

/// The shards of a state on this rank, and copies of them and of another rank's. keep(), restore() and of_all() are
/// collective. One thread.
class Shards {
 public:
  /// Commits, and the times that ranks have come together since.
  using Version = std::pair<std::uint64_t, std::uint64_t>;

  bool empty() const { return shards_.empty(); }

  /// part outlives this.
  template <class T>
  void add(std::vector<T>& part, elastic::Reshard<T> reshard) {
    static_assert(std::is_trivially_copyable_v<T>);
    Shard shard;
    shard.read = [&part] {
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(part.data());
      return Bytes(begin, begin + part.size() * sizeof(T));
    };
    shard.write = [&part](const Bytes& bytes) { part = values_of<T>(bytes); };
    if (reshard) {
      shard.reshard = [&part, reshard](const std::vector<Bytes>& parts, int rank, int size) {
        std::vector<std::vector<T>> values;
        for (const Bytes& bytes : parts) values.push_back(values_of<T>(bytes));
        part = reshard(values, rank, size);
      };
    }
    shards_.push_back(std::move(shard));
  }

  /// Copies the parts, for this rank and for another one. It counts when all ranks have done that.
  void keep(Context& context, Version version) {
    const std::vector<std::int32_t> own{context.local_rank()};
    const std::vector<int> holders = shard_holders(context.allgather(own));
    std::vector<Bytes> to(context.size());
    to[holders[context.rank()]] = packed();
    std::vector<Bytes> received = exchange(context, to);
    Copies& copies = copies_[version];
    copies = {static_cast<std::uint64_t>(context.size()), {}};
    for (int rank = 0; rank < context.size(); ++rank) {
      if (holders[rank] == context.rank()) copies.of_rank[rank] = std::move(received[rank]);
    }
    copies.of_rank[context.rank()] = std::move(to[holders[context.rank()]]);
  }

  /// Gives this rank its parts of that version. "", or a sentence about what nobody has a copy of; the same on all
  /// ranks.
  std::string restore(Context& context, Version version) {
    const auto found = copies_.find(version);
    const Copies own = found == copies_.end() ? Copies{} : found->second;
    const auto ranks = context.allgather(std::vector<std::uint64_t>{own.ranks});
    const std::uint64_t count = *std::max_element(ranks.begin(), ranks.end());
    Bytes held(count);
    for (const auto& one : own.of_rank) held[one.first] = 1;
    const Bytes all_held = context.allgather(held);
    std::vector<int> sources;
    std::string lost;
    for (std::uint64_t rank = 0; rank < count; ++rank) {
      int source = -1;
      for (int by = context.size() - 1; by >= 0; --by) {
        // The rank itself, if it has it.
        const bool is_better = source != static_cast<int>(rank) || by == static_cast<int>(rank);
        if (all_held[by * count + rank] != 0 && is_better) source = by;
      }
      sources.push_back(source);
      if (source < 0) lost += (lost.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (!lost.empty())
      return "the shards of ranks " + lost + " of " + std::to_string(count) + " at commit " +
             std::to_string(version.first) + " are lost with the ranks that held a copy";
    if (count == static_cast<std::uint64_t>(context.size())) {
      take_own(context, own, sources);
    } else {
      take_of_all(context, own, sources);
    }
    return "";
  }

  /// The parts of all ranks, for a file.
  std::vector<Bytes> of_all(Context& context, Version version) {
    std::vector<Bytes> own(context.size());
    own[context.rank()] = copies_[version].of_rank[context.rank()];
    return gather(context, own);
  }
  /// What of_all() has returned in an earlier job, on one rank; restore() gives it to all.
  void take(Version version, std::vector<Bytes> of_all) {
    Copies& copies = copies_[version];
    copies = {of_all.size(), {}};
    for (std::size_t rank = 0; rank < of_all.size(); ++rank)
      copies.of_rank[static_cast<int>(rank)] = std::move(of_all[rank]);
  }
  /// All ranks have this version: older ones are not needed any more.
  void keep_only(Version version) {
    for (auto one = copies_.begin(); one != copies_.end();)
      one = one->first == version ? std::next(one) : copies_.erase(one);
  }

 private:
  struct Shard {
    std::function<Bytes()> read;
    std::function<void(const Bytes&)> write;
    std::function<void(const std::vector<Bytes>&, int rank, int size)> reshard;  ///< may be empty
  };
  struct Copies {
    std::uint64_t ranks = 0;       ///< that there were
    std::map<int, Bytes> of_rank;  ///< packed()
  };

  template <class T>
  static std::vector<T> values_of(const Bytes& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

  /// Each part behind its length.
  Bytes packed() const {
    Bytes all;
    for (const Shard& shard : shards_) {
      const Bytes part = shard.read();
      const std::uint64_t length = part.size();
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(&length);
      all.insert(all.end(), begin, begin + sizeof length);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  std::vector<Bytes> unpacked(const Bytes& all) const {
    std::vector<Bytes> parts;
    std::size_t at = 0;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      std::uint64_t length = 0;
      require(all.size() - at >= sizeof length,
              "the shards of another rank, or of a file, are of another program");
      std::memcpy(&length, all.data() + at, sizeof length);
      at += sizeof length;
      require(all.size() - at >= length, "the shards of another rank, or of a file, are of another program");
      parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                         all.begin() + static_cast<std::ptrdiff_t>(at + length));
      at += length;
    }
    return parts;
  }

  /// As many ranks as there were.
  void take_own(Context& context, const Copies& own, const std::vector<int>& sources) {
    std::vector<Bytes> to(context.size());
    for (const auto& one : own.of_rank) {
      if (sources[one.first] == context.rank()) to[one.first] = one.second;
    }
    const std::vector<Bytes> parts = unpacked(exchange(context, to)[sources[context.rank()]]);
    for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i].write(parts[i]);
  }

  void take_of_all(Context& context, const Copies& own, const std::vector<int>& sources) {
    for (const Shard& shard : shards_)
      require(static_cast<bool>(shard.reshard),
              "the number of ranks has changed, and a shard has no function that makes the parts anew; give "
              "it to "
              "add_shard(), or start the job with --min-np and --max-np as -np");
    std::vector<Bytes> held(sources.size());
    for (const auto& one : own.of_rank) {
      if (sources[one.first] == context.rank()) held[one.first] = one.second;
    }
    std::vector<std::vector<Bytes>> of_shard(shards_.size());
    for (const Bytes& one : gather(context, held)) {
      std::vector<Bytes> parts = unpacked(one);
      for (std::size_t i = 0; i < parts.size(); ++i) of_shard[i].push_back(std::move(parts[i]));
    }
    for (std::size_t i = 0; i < shards_.size(); ++i)
      shards_[i].reshard(of_shard[i], context.rank(), context.size());
  }

  /// The bytes for each rank; returns those from each. Collective.
  static std::vector<Bytes> exchange(Context& context, const std::vector<Bytes>& to) {
    std::vector<std::uint64_t> counts;
    const Bytes all = join(to, counts);
    const Received<std::uint8_t> received = context.alltoallv(all, counts);
    return split(received.values, received.counts);
  }

  /// own: of some places, the bytes that this rank has, and nothing at the others, which other ranks have. Returns all.
  /// Collective.
  static std::vector<Bytes> gather(Context& context, const std::vector<Bytes>& own) {
    std::vector<std::uint64_t> lengths;
    const Bytes all = join(own, lengths);
    const std::vector<std::uint64_t> all_lengths = context.allgather(lengths);
    std::vector<std::uint64_t> counts(context.size(), 0);
    for (std::size_t i = 0; i < all_lengths.size(); ++i) counts[i / own.size()] += all_lengths[i];
    const std::vector<Bytes> found = split(context.allgatherv(all, counts), all_lengths);
    std::vector<Bytes> places(own.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].empty()) places[i % own.size()] = found[i];
    }
    return places;
  }

  /// One after the other; lengths becomes that of each.
  static Bytes join(const std::vector<Bytes>& parts, std::vector<std::uint64_t>& lengths) {
    Bytes all;
    for (const Bytes& one : parts) {
      lengths.push_back(one.size());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  static std::vector<Bytes> split(const Bytes& all, const std::vector<std::uint64_t>& lengths) {
    std::vector<Bytes> parts;
    auto at = all.begin();
    for (const std::uint64_t length : lengths) {
      parts.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
      at += static_cast<std::ptrdiff_t>(length);
    }
    return parts;
  }

  std::vector<Shard> shards_;
  std::map<Version, Copies> copies_;
};

}  // namespace ddl::detail

#endif  // DDL_SHARDS_HPP
