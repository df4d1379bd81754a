// An optimizer that is cut among the ranks: each keeps the state of a slice of the parameters, and updates this slice
// (ZeRO stage 1, Rajbhandari et al. 2020).
#ifndef DDL_TRAINING_SHARDED_OPTIMIZER_HPP
#define DDL_TRAINING_SHARDED_OPTIMIZER_HPP

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/optimizer.hpp"

namespace ddl::training {

/// Parameters of one type that lie one behind the other, and are sent together.
struct Bucket {
  struct Place {
    std::size_t parameter = 0;  ///< its number
    std::size_t begin = 0;      ///< its first element in the bucket
  };
  ddl_dtype dtype = DDL_FLOAT32;
  std::vector<Place> places;
  std::size_t count = 0;  ///< elements, with those that only fill up
};

/// The last parameters come first, as their gradients do. A bucket is closed when it has max_bytes; its length is a
/// multiple of the number of ranks times 128 bytes, so all slices are equal, and begin at lines of their own.
inline std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, int ranks,
                                      std::size_t max_bytes = std::size_t{25} << 20) {
  std::vector<Bucket> buckets;
  std::map<ddl_dtype, std::size_t> open;  // the bucket of each type that has room
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& one = parameters[i];
    auto found = open.find(one.dtype);
    if (found == open.end()) {
      found = open.emplace(one.dtype, buckets.size()).first;
      buckets.emplace_back();
      buckets.back().dtype = one.dtype;
    }
    Bucket& bucket = buckets[found->second];
    bucket.places.push_back({i, bucket.count});
    bucket.count += one.count;
    if (bucket.count * ddl_dtype_size(one.dtype) >= max_bytes) open.erase(found);
  }
  for (Bucket& bucket : buckets) {
    const std::size_t element = std::max<std::size_t>(ddl_dtype_size(bucket.dtype), 1);
    const std::size_t unit = static_cast<std::size_t>(ranks) * (128 / element);
    bucket.count = (bucket.count + unit - 1) / unit * unit;
  }
  return buckets;
}

struct ShardingOptions {
  int passes = 1;  ///< backward passes before each step, whose gradients the program adds up
  std::size_t bucket_bytes = std::size_t{25} << 20;
  std::uint64_t process_set = DDL_WORLD;
};

/// Its parameters and gradients lie in buckets in the shared heap, one behind the other: the constructor moves the
/// parameters' elements there, and parameters() has their new places. When the backward pass has computed all gradients
/// of a bucket, each rank gets the mean of its slice; it updates this slice, and gathers those of the others, while other
/// buckets are still on their way. Per float parameter of Adam a rank has 8 + 8/N bytes for N ranks, instead of 16.
///
/// The result has the bits of Optimizer, whatever the number of slices. Parameters of 16 bits are updated in float, of
/// which each rank keeps its slice.
///
/// Must be destroyed before the Context. In an elastic job it is made anew in each generation, and state() of the old one
/// is loaded into it (load_state()).
template <class Rule>
class ShardedOptimizer {
 public:
  /// Collective. Throws on all ranks if their parameters differ. Elements of gradients that parameters had are not used.
  ShardedOptimizer(Context& context, std::vector<Parameter> parameters, Rule rule_of_steps,
                   ShardingOptions options = {})
      : rule(std::move(rule_of_steps)),
        context_(&context),
        options_(options),
        parameters_(std::move(parameters)) {
    ddl::detail::require(options_.passes > 0, "there is at least one backward pass before a step");
    check_alike(context, parameters_, call_options());
    const int rank = ddl_process_set_rank(context.get(), options_.process_set);
    ranks_ = ddl::detail::ranks_of(context.get(), options_.process_set);
    rank_ = static_cast<std::size_t>(rank);
    layout_ = buckets_of(parameters_, static_cast<int>(ranks_), options_.bucket_bytes);
    bucket_of_.resize(parameters_.size());
    for (std::size_t i = 0; i < layout_.size(); ++i) buckets_.push_back(make_bucket(i));
  }

  Rule rule;
  std::uint64_t steps = 0;  ///< that were made; belongs into a checkpoint
  double clip_norm = 0.0;   ///< the largest norm of all gradients together; 0: any

  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// This rank's pass has computed the gradient of the parameter with this number. From any thread.
  void ready(std::size_t number) {
    BucketState& bucket = *buckets_[bucket_of_[number]];
    const int left = --bucket.passes_left[number_in_bucket_[number]];
    if (left < 0) detail::fail_of_pass(parameters_[number].name, options_.passes);
    if (left == 0 && --bucket.missing == 0) reduce(bucket_of_[number]);
  }

  /// Waits until the gradients of all ranks are combined, and whether any of them, on any rank, is infinite or no number:
  /// for LossScale. step() may follow, or skip_step(). Collective.
  bool finish_gradients() {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (!buckets_[i]->is_reduced) reduce(i);
    }
    bool overflows_here = false;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      finish_gradient(i);
      with_slice(
          i, [&](auto* gradient) { overflows_here = overflows(gradient, slice_count(i)) || overflows_here; });
    }
    return any_rank(*context_, overflows_here, call_options());
  }

  /// Updates this rank's slice with the mean of the gradients, and begins to gather those of the others: use() waits for
  /// them. loss_scale: with what the losses were multiplied. Collective.
  void step(double loss_scale = 1.0) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (!buckets_[i]->is_reduced) reduce(i);
    }
    double factor = 1.0 / loss_scale;
    if (clip_norm > 0) factor *= clip_factor(norm() / loss_scale, clip_norm);
    ++steps;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      finish_gradient(i);
      use_bucket(i);  // a program need not have used all parameters since the last step
      update(i, factor);
      gather(i);
    }
    begin_passes();
  }

  /// In place of step(): the gradients are not used. Collective.
  void skip_step() {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (!buckets_[i]->is_reduced) reduce(i);
      finish_gradient(i);
    }
    begin_passes();
  }

  /// Waits until the parameter with this number is updated on all ranks: before the forward pass uses it. Parameters are
  /// gathered in the order of their numbers.
  void use(std::size_t number) { use_bucket(bucket_of_[number]); }
  void use_all() {
    for (std::size_t i = 0; i < buckets_.size(); ++i) use_bucket(i);
  }

  /// Sets all gradients to zero, for the first pass of the next step.
  void set_to_zero() {
    for (const auto& bucket : buckets_) std::memset(bucket->gradients.data(), 0, bucket->gradients.size());
  }

  /// The norm of the combined gradients of all parameters: squares are added in double, of the slices in rank order.
  /// Between finish_gradients() and step(), or inside step(). Collective.
  double norm() {
    double squares = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      finish_gradient(i);
      with_slice(i, [&](auto* gradient) { squares += detail::sum_of_squares(gradient, slice_count(i)); });
    }
    double sum = 0;
    for (const double one : context_->allgather(std::vector<double>{squares}, call_options())) sum += one;
    return std::sqrt(sum);
  }

  /// What this rank keeps of the parameters in its slices, without what only fills buckets up: for a checkpoint. Names
  /// are "PARAMETER.SLOT", and "PARAMETER.master" for the elements in float of parameters of 16 bits.
  std::vector<Shard> state() const {
    std::vector<Shard> shards;
    for_each_part([&](const Shard& shard, std::uint8_t*) { shards.push_back(shard); });
    return shards;
  }

  /// Fills state() from a source, as load_parameters() does: from a Checkpoint of a job of any number of ranks.
  /// Parameters of 16 bits become those that belong to the state. Collective.
  template <class Source>
  void load_state(Source& source) {
    for_each_part(
        [&](const Shard& shard, std::uint8_t* memory) { detail::load_piece(source, shard, memory); });
    use_all();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i]->master.empty()) continue;
      round_master(i);
      gather(i);
    }
    use_all();
  }

  /// Bytes of parameters, gradients and state that this rank has.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& bucket : buckets_) {
      sum += bucket->weights.size() + bucket->gradients.size() + bucket->master.size() + bucket->wide.size();
      for (const auto& slot : bucket->slots) sum += slot.size();
    }
    return sum;
  }

 private:
  struct BucketState {
    std::string reduction_name, gathering_name;
    SharedBuffer<std::uint8_t> weights, gradients;
    std::vector<std::uint64_t> counts;  ///< of each rank's slice
    /// Of this rank's slice: what the rule keeps; the elements in float where they have 16 bits, and the gradients so.
    std::vector<std::vector<std::uint8_t>> slots;
    std::vector<std::uint8_t> master, wide;
    std::vector<int> passes_left;  ///< of each of the bucket's parameters
    std::atomic<std::size_t> missing{0};
    bool is_reduced = false;  ///< it was submitted
    bool is_wide = false;
    ddl::detail::Handle reduction, gathering;  // behind what they use
  };

  /// Calls function(shard, memory) for each part of state().
  template <class Function>
  void for_each_part(Function function) const {
    const std::vector<std::string> slots = rule.slots();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      BucketState& bucket = *buckets_[i];
      const std::size_t first = rank_ * slice_count(i), last = first + slice_count(i);
      const ddl_dtype dtype = layout_[i].dtype == DDL_FLOAT64 ? DDL_FLOAT64 : DDL_FLOAT32;
      for (const Bucket::Place& place : layout_[i].places) {
        const Parameter& one = parameters_[place.parameter];
        const std::size_t begin = std::max(first, place.begin), end = std::min(last, place.begin + one.count);
        if (begin >= end) continue;
        const auto add = [&](const std::string& slot, std::vector<std::uint8_t>& values) {
          std::uint8_t* const memory = values.data() + (begin - first) * ddl_dtype_size(dtype);
          function(
              Shard{
                  one.name + "." + slot, dtype, {one.count}, begin - place.begin, end - place.begin, memory},
              memory);
        };
        if (is_half(i)) add("master", bucket.master);
        for (std::size_t slot = 0; slot < slots.size(); ++slot) add(slots[slot], bucket.slots[slot]);
      }
    }
  }

  void use_bucket(std::size_t number) {
    if (buckets_[number]->gathering.is_open()) buckets_[number]->gathering.wait();
  }

  CallOptions call_options() const {
    CallOptions options;
    options.process_set = options_.process_set;
    return options;
  }
  ddl_async_options async_options(std::int32_t priority) const {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = options_.process_set;
    options.priority = priority;
    return options;
  }

  std::size_t slice_count(std::size_t bucket) const { return layout_[bucket].count / ranks_; }
  bool is_half(std::size_t bucket) const {
    return layout_[bucket].dtype == DDL_FLOAT16 || layout_[bucket].dtype == DDL_BFLOAT16;
  }
  std::uint8_t* slice_of(std::size_t bucket, SharedBuffer<std::uint8_t>& memory) const {
    return memory.data() + rank_ * slice_count(bucket) * ddl_dtype_size(layout_[bucket].dtype);
  }

  std::unique_ptr<BucketState> make_bucket(std::size_t number) {
    const Bucket& layout = layout_[number];
    auto bucket = std::make_unique<BucketState>();
    const std::size_t element = ddl_dtype_size(layout.dtype);
    bucket->reduction_name = "sharded gradients " + std::to_string(number);
    bucket->gathering_name = "sharded parameters " + std::to_string(number);
    bucket->weights = context_->alloc<std::uint8_t>(layout.count * element);
    bucket->gradients = context_->alloc<std::uint8_t>(layout.count * element);
    bucket->counts.assign(ranks_, layout.count / ranks_);
    number_in_bucket_.resize(parameters_.size());
    for (std::size_t i = 0; i < layout.places.size(); ++i) {
      const Bucket::Place& place = layout.places[i];
      Parameter& one = parameters_[place.parameter];
      std::memcpy(bucket->weights.data() + place.begin * element, one.data, one.bytes());
      one.data = bucket->weights.data() + place.begin * element;
      one.gradient = bucket->gradients.data() + place.begin * element;
      bucket_of_[place.parameter] = number;
      number_in_bucket_[place.parameter] = i;
    }
    bucket->passes_left.assign(layout.places.size(), options_.passes);
    bucket->missing = layout.places.size();
    const std::size_t slice = layout.count / ranks_;
    const std::size_t wide = layout.dtype == DDL_FLOAT64 ? sizeof(double) : sizeof(float);
    bucket->slots.assign(rule.slots().size(), std::vector<std::uint8_t>(slice * wide, 0));
    if (element < wide) {
      bucket->master.resize(slice * wide);
      bucket->wide.resize(slice * wide);
      convert(layout.dtype, slice_of(number, bucket->weights), bucket->master.data(), slice);
    }
    return bucket;
  }

  /// 16 bits to float.
  static void convert(ddl_dtype dtype, const std::uint8_t* from, std::uint8_t* to, std::size_t count) {
    auto* const wide = reinterpret_cast<float*>(to);
    if (dtype == DDL_FLOAT16) {
      const auto* const half = reinterpret_cast<const float16*>(from);
      for (std::size_t i = 0; i < count; ++i) wide[i] = half[i];
    } else {
      const auto* const half = reinterpret_cast<const bfloat16*>(from);
      for (std::size_t i = 0; i < count; ++i) wide[i] = half[i];
    }
  }

  void round_master(std::size_t number) {
    BucketState& bucket = *buckets_[number];
    const auto* const wide = reinterpret_cast<const float*>(bucket.master.data());
    std::uint8_t* const to = slice_of(number, bucket.weights);
    for (std::size_t i = 0; i < slice_count(number); ++i) {
      if (layout_[number].dtype == DDL_FLOAT16) {
        reinterpret_cast<float16*>(to)[i] = float16(wide[i]);
      } else {
        reinterpret_cast<bfloat16*>(to)[i] = bfloat16(wide[i]);
      }
    }
  }

  /// Submits the reduction of a bucket. Gradients that were not computed are what their memory has.
  void reduce(std::size_t number) {
    BucketState& bucket = *buckets_[number];
    const ddl_async_options options = async_options(0);
    bucket.is_reduced = true;
    ddl::detail::check(ddl_reduce_scatter_async(context_->get(), bucket.reduction_name.c_str(),
                                                bucket.gradients.data(), slice_of(number, bucket.gradients),
                                                bucket.counts.data(), layout_[number].dtype, DDL_AVERAGE,
                                                &options, bucket.reduction.out()));
  }

  void finish_gradient(std::size_t number) {
    BucketState& bucket = *buckets_[number];
    if (bucket.reduction.is_open()) bucket.reduction.wait();
    widen_gradient(number);
  }
  void widen_gradient(std::size_t number) {
    BucketState& bucket = *buckets_[number];
    if (!is_half(number) || bucket.is_wide) return;
    convert(layout_[number].dtype, slice_of(number, bucket.gradients), bucket.wide.data(),
            slice_count(number));
    bucket.is_wide = true;
  }

  /// Calls function with the combined gradients of this rank's slice, of float or double.
  template <class Function>
  void with_slice(std::size_t number, Function function) {
    BucketState& bucket = *buckets_[number];
    std::uint8_t* const gradient = is_half(number) ? bucket.wide.data() : slice_of(number, bucket.gradients);
    detail::with_type(layout_[number].dtype,
                      [&](auto* type) { function(reinterpret_cast<decltype(type)>(gradient)); });
  }

  void update(std::size_t number, double factor) {
    BucketState& bucket = *buckets_[number];
    with_slice(number, [&](auto* gradient) {
      using T = std::remove_pointer_t<decltype(gradient)>;
      if (factor != 1.0) detail::scale(gradient, slice_count(number), factor);
      std::uint8_t* const weights = is_half(number) ? bucket.master.data() : slice_of(number, bucket.weights);
      std::vector<T*> slots;
      for (auto& slot : bucket.slots) slots.push_back(reinterpret_cast<T*>(slot.data()));
      rule.apply(reinterpret_cast<T*>(weights), static_cast<const T*>(gradient), slots.data(),
                 slice_count(number), steps);
    });
    if (is_half(number)) round_master(number);
  }

  /// The bucket with the first parameters first.
  void gather(std::size_t number) {
    BucketState& bucket = *buckets_[number];
    ddl_async_options options = async_options(static_cast<std::int32_t>(number) + 1);
    options.fails_if_joined = 1;  // its slice would be zeros
    ddl::detail::check(ddl_allgather_async(
        context_->get(), bucket.gathering_name.c_str(), slice_of(number, bucket.weights),
        bucket.weights.data(), slice_count(number), layout_[number].dtype, &options, bucket.gathering.out()));
  }

  void begin_passes() {
    for (const auto& bucket : buckets_) {
      std::fill(bucket->passes_left.begin(), bucket->passes_left.end(), options_.passes);
      bucket->missing = bucket->passes_left.size();
      bucket->is_reduced = bucket->is_wide = false;
    }
  }

  Context* context_;
  ShardingOptions options_;
  std::size_t ranks_ = 1, rank_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> layout_;
  std::vector<std::size_t> bucket_of_, number_in_bucket_;  // of each parameter
  std::vector<std::unique_ptr<BucketState>> buckets_;
};

}  // namespace ddl::training

#endif  // DDL_TRAINING_SHARDED_OPTIMIZER_HPP
