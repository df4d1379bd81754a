// Which samples a rank trains on, in an order that is the same everywhere, and how an epoch goes on from a checkpoint.
#ifndef DDL_TRAINING_SAMPLER_HPP
#define DDL_TRAINING_SAMPLER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "ddl/error.hpp"

namespace ddl::training {

namespace detail {
using ddl::detail::require;

/// A number below bound, each as likely as the others. std::uniform_int_distribution gives other numbers in each standard
/// library; std::mt19937_64 gives the same ones in all.
template <class Generator>
std::uint64_t draw_below(Generator& generator, std::uint64_t bound) {
  // 2^64 mod bound numbers are too many for all remainders to be as likely: those at the end are drawn again.
  const std::uint64_t excess = (0 - bound) % bound;
  std::uint64_t drawn = generator();
  while (drawn > ~excess) drawn = generator();
  return drawn % bound;
}

}  // namespace detail

/// The numbers 0 to samples - 1 in an order that only seed and epoch decide: the same with every compiler, standard
/// library and machine, and any number of ranks. Takes 8 bytes a sample.
inline std::vector<std::uint64_t> permutation(std::uint64_t samples, std::uint64_t seed,
                                              std::uint64_t epoch) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value & 0xFFFF'FFFFU); };
  std::seed_seq both{low(seed), low(seed >> 32), low(epoch), low(epoch >> 32)};
  std::mt19937_64 generator(both);
  std::vector<std::uint64_t> order(samples);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t left = samples; left > 1; --left)
    std::swap(order[left - 1], order[detail::draw_below(generator, left)]);
  return order;
}

/// Where an epoch is: what a checkpoint keeps of a sampler. It fits any number of ranks.
struct SamplerState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t done = 0;  ///< samples of the epoch that all ranks together have trained on
};

/// What happens if the samples cannot be dealt evenly.
enum class Shares : std::uint8_t {
  kExact,   ///< some ranks have one sample less: end the epoch with join(), or after common_batches()
  kPadded,  ///< the first samples of the epoch are repeated until all have as many
  kCut,     ///< the last samples of the epoch are left out
};

/// The numbers of this rank's samples: of an epoch, each sample is one rank's, once. With Shares::kPadded and kCut the
/// shares are equal, as those of torch.utils.data.DistributedSampler, with drop_last as kCut.
///
/// What has been trained on is told by record(), and not by reading indices(): samples that were only prefetched are not
/// lost. After load_state() an epoch goes on behind the samples that are done, also with another number of ranks: the rest
/// of the same order is dealt anew. One thread.
class DistributedSampler {
 public:
  DistributedSampler(std::uint64_t samples, int rank, int size, bool shuffle = true, std::uint64_t seed = 0,
                     Shares shares = Shares::kExact)
      : samples_(samples), rank_(rank), size_(size), shuffle_(shuffle), shares_(shares), state_{seed, 0, 0} {
    check_rank();
  }

  std::uint64_t epoch() const { return state_.epoch; }
  /// Begins an epoch.
  void set_epoch(std::uint64_t epoch) { state_ = {state_.seed, epoch, 0}; }

  /// Says that every rank has trained on so many samples more; where the shares differ, as many as rank 0, which always
  /// has one of the largest. So its state is the one to keep.
  void record(std::uint64_t samples) {
    const std::uint64_t all = static_cast<std::uint64_t>(size_);
    const std::uint64_t left = samples_ - state_.done;
    state_.done += samples > left / all ? left : samples * all;
  }

  SamplerState state() const { return state_; }
  /// Also of a job with another number of ranks, and with its seed.
  void load_state(const SamplerState& state) {
    detail::require(state.done <= samples_,
                    "the state of a sampler has more samples than there are: it is of another data set");
    state_ = state;
  }

  /// The ranks have changed, as in an elastic job: the rest of the epoch is dealt anew.
  void set_rank(int rank, int size) {
    rank_ = rank;
    size_ = size;
    check_rank();
  }

  /// How many samples this rank has in the rest of the epoch: of indices(), if it were called now.
  std::uint64_t size() const {
    const std::uint64_t all = static_cast<std::uint64_t>(size_);
    const std::uint64_t left = samples_ - state_.done;
    const std::uint64_t above = left % all;
    if (above == 0 || shares_ == Shares::kCut) return left / all;
    const bool has_one_more = shares_ == Shares::kPadded || static_cast<std::uint64_t>(rank_) < above;
    return left / all + (has_one_more ? 1 : 0);
  }

  /// How many whole batches of this size every rank has in the rest of the epoch. A rank may have one more, or a shorter
  /// one.
  std::uint64_t common_batches(std::uint64_t batch_size) const {
    detail::require(batch_size > 0, "a batch has at least one sample");
    const std::uint64_t all = static_cast<std::uint64_t>(size_);
    const std::uint64_t left = samples_ - state_.done;
    return (left / all + (shares_ == Shares::kPadded && left % all != 0 ? 1 : 0)) / batch_size;
  }

  /// This rank's samples of the rest of the epoch, in the order in which it trains on them. Makes the order of all samples
  /// each time, so it is called once when an epoch begins or goes on.
  std::vector<std::uint64_t> indices() const {
    std::vector<std::uint64_t> order;
    if (shuffle_) order = permutation(samples_, state_.seed, state_.epoch);
    std::vector<std::uint64_t> own(size());
    std::uint64_t at = state_.done + static_cast<std::uint64_t>(rank_);
    for (std::uint64_t& index : own) {
      // Behind the end stand those that are repeated.
      const std::uint64_t place = at % samples_;
      index = shuffle_ ? order[place] : place;
      at += static_cast<std::uint64_t>(size_);
    }
    return own;
  }

 private:
  void check_rank() const {
    detail::require(size_ > 0 && rank_ >= 0 && rank_ < size_,
                    "a sampler needs the rank of this process, from 0 to size - 1");
  }

  std::uint64_t samples_;
  int rank_;
  int size_;
  bool shuffle_;
  Shares shares_;
  SamplerState state_;
};

}  // namespace ddl::training

#endif  // DDL_TRAINING_SAMPLER_HPP
