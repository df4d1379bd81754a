// Averages the gradients of all ranks while the backward pass still computes others.
#ifndef DDL_TRAINING_GRADIENTS_HPP
#define DDL_TRAINING_GRADIENTS_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/parameters.hpp"

namespace ddl::training {

namespace detail {

[[noreturn]] inline void fail_of_pass(const std::string& name, int passes) {
  throw Error(DDL_ERROR_INVALID_ARGUMENT,
              "the gradient of \"" + name + "\" was computed more than " + std::to_string(passes) +
                  " times before the step: make the step after each pass, or set the option passes");
}

}  // namespace detail

/// What happens to a gradient that this rank's backward pass has not computed.
enum class Unused : std::uint8_t {
  kZeros,  ///< it counts as zeros, and becomes the mean of the ranks
  kKeep,   ///< the same, but if no rank has computed it, it is left as it was
};

struct GradientOptions {
  Op op = Op::average;
  /// Backward passes before each step. The program adds their gradients up, and scales the loss as it wants.
  int passes = 1;
  /// Gradients are divided by this before they are added up, and multiplied with it after: against overflow of 16 bits.
  double predivide = 1.0;
  /// What float gradients are sent as: DDL_FLOAT16, DDL_BFLOAT16, or DDL_FLOAT32.
  ddl_dtype wire = DDL_FLOAT32;
  Unused unused = Unused::kZeros;
  /// Names of parameters whose gradients are submitted when all of a group are there.
  std::vector<std::vector<std::string>> groups;
  /// The others are submitted together, too, from the last parameter on, as soon as there are at least so many bytes. A
  /// call of libddl, and the wakeup of its thread, cost as much for one small gradient as for some. 0: one by one.
  std::size_t bucket_bytes = std::size_t{8} << 20;
  std::uint64_t process_set = DDL_WORLD;
  /// For gradients in the memory of a GPU: sets bytes to zero, on stream. Then all parameters have gradients that the
  /// program has allocated, which are sent as they are, and Unused::kKeep leaves zeros where no rank has computed any.
  std::function<void(void* memory, std::size_t bytes)> zero_on_device;
  /// The stream of that GPU on which a gradient is complete that ready() is said of.
  void* stream = nullptr;
};

/// The gradients of parameters. The backward pass says ready() of each, in any order and from any thread. When it has said
/// so of all in a bucket, they are submitted by one call, and libddl combines them meanwhile with those of the other
/// ranks. finish() waits for all, before the optimizer's step. Gradients without memory of their own, and what is sent in
/// 16 bits, lie in the shared heap, where nothing has to be copied before it is sent, and one behind the other, so that a
/// bucket is one tensor of libddl's: "gradients FIRST to LAST". To Adasum each is one of its own.
///
/// Must be destroyed before the Context. In an elastic job it is made anew in each generation.
class Gradients {
 public:
  /// Collective. Throws on all ranks if their parameters differ.
  Gradients(Context& context, std::vector<Parameter> parameters, GradientOptions options = {})
      : context_(&context), options_(std::move(options)), parameters_(std::move(parameters)) {
    check_options();
    CallOptions call;
    call.process_set = options_.process_set;
    check_alike(context, parameters_, call);
    slots_.resize(parameters_.size());
    for (Slot& slot : slots_) slot.passes_left = options_.passes;
    make_buckets();
    // A gradient in the program's memory, on any rank, is a tensor of its own.
    std::vector<std::uint8_t> is_theirs;
    for (const Parameter& one : parameters_) is_theirs.push_back(one.gradient != nullptr ? 1 : 0);
    context.allreduce(is_theirs, Op::max, call);
    allocate();
    for (const auto& bucket : buckets_) make_tensors(*bucket, is_theirs);
  }

  /// Those that were given; each has a gradient.
  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// This rank's pass has computed the gradient of the parameter with this number. It belongs to libddl from now until
  /// finish(), if this was the last pass before the step. From any thread, of one parameter from one at a time.
  void ready(std::size_t number) {
    Slot& slot = slots_[number];
    if (slot.passes_left == 0) detail::fail_of_pass(parameters_[number].name, options_.passes);
    if (--slot.passes_left == 0) add(number);
  }

  /// Submits the gradients that were not computed, waits for all, and begins to count passes anew. Throws the first
  /// failure when all others are complete.
  void finish() {
    if (options_.unused == Unused::kKeep) submit_uses();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].passes_left > 0) add_missing(i);
    }
    ddl_status failure = DDL_OK;
    std::string text;
    const auto wait = [&](ddl::detail::Handle& handle) {
      try {
        handle.wait();
      } catch (const Error& error) {
        if (failure == DDL_OK) text = error.what();
        if (failure == DDL_OK) failure = error.status();
      }
    };
    if (options_.unused == Unused::kKeep) wait(uses_handle_);
    for (const auto& bucket : buckets_) {
      for (ddl_handle*& handle : bucket->handles) {
        ddl::detail::Handle owner(std::exchange(handle, nullptr));
        wait(owner);
      }
      bucket->missing = bucket->parameters.size();
    }
    for (Slot& slot : slots_) slot.passes_left = options_.passes;
    for (std::size_t i = 0; i < slots_.size(); ++i) store(i, failure == DDL_OK);
    if (failure != DDL_OK) throw Error(failure, text);
  }

  /// Whether a gradient has a meaning after finish(): always, but for Unused::kKeep, where no rank may have computed it.
  bool is_used(std::size_t number) const { return options_.unused == Unused::kZeros || uses_[number] != 0; }

  /// Sets all gradients to zero, for the first pass of the next step.
  void set_to_zero() {
    for (const Parameter& one : parameters_) set_to_zero(one);
  }

 private:
  static constexpr std::size_t kLine = 64;  // bytes; a view begins where a cache line does

  struct Slot {
    std::size_t bucket = 0;
    int passes_left = 1;
    std::uint8_t* sent = nullptr;    ///< the gradient, or its elements in 16 bits
    std::vector<std::uint8_t> kept;  ///< what the gradient was, while zeros are sent for it
  };

  /// Gradients that are submitted by one call. Its memory is made once, as ready() is called for every gradient.
  struct Bucket {
    explicit Bucket(ddl_dtype wire) : dtype(wire) {}
    ~Bucket() {
      for (ddl_handle* handle : handles) {
        if (handle != nullptr) (void)ddl_wait(handle);
      }
    }
    ddl_dtype dtype;
    std::int32_t priority = 0;
    std::size_t bytes = 0;
    std::vector<std::size_t> parameters;
    std::vector<std::string> names;  ///< of the tensors
    std::vector<ddl_tensor> tensors;
    std::vector<ddl_handle*> handles;  ///< null unless they are submitted
    std::atomic<std::size_t> missing{0};
  };

  void check_options() const {
    ddl::detail::require(options_.passes > 0, "there is at least one backward pass before a step");
    ddl::detail::require(options_.predivide > 0, "gradients can be divided only by a number above 0");
    ddl::detail::require(options_.predivide == 1.0 || options_.op == Op::average,
                         "gradients are divided in advance only for an average");
    ddl::detail::require(
        options_.wire == DDL_FLOAT32 || options_.wire == DDL_FLOAT16 || options_.wire == DDL_BFLOAT16,
        "gradients are sent as DDL_FLOAT32, DDL_FLOAT16 or DDL_BFLOAT16");
    if (!options_.zero_on_device) return;
    ddl::detail::require(options_.wire == DDL_FLOAT32, "gradients on a GPU are sent in their own type");
    for (const Parameter& one : parameters_)
      ddl::detail::require(one.gradient != nullptr || one.count == 0,
                           "a gradient on a GPU needs memory there");
  }

  void set_to_zero(const Parameter& one) const {
    if (options_.zero_on_device) {
      options_.zero_on_device(one.gradient, one.bytes());
    } else {
      std::memset(one.gradient, 0, one.bytes());
    }
  }

  void make_buckets() {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < parameters_.size(); ++i) numbers[parameters_[i].name] = i;
    std::vector<bool> is_in_group(parameters_.size());
    for (const std::vector<std::string>& group : options_.groups) {
      std::map<ddl_dtype, std::size_t> of_type;
      for (const std::string& name : group) {
        const auto found = numbers.find(name);
        if (found == numbers.end())
          throw Error(DDL_ERROR_INVALID_ARGUMENT, "a group has \"" + name + "\", which is no parameter");
        if (is_in_group[found->second])
          throw Error(DDL_ERROR_INVALID_ARGUMENT, "parameter \"" + name + "\" is in groups twice");
        is_in_group[found->second] = true;
        put(found->second, of_type);
      }
    }
    std::map<ddl_dtype, std::size_t> open;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      if (is_in_group[i]) continue;
      if (put(i, open).bytes >= options_.bucket_bytes) open.erase(wire_of(parameters_[i]));
    }
  }

  /// Into the bucket of its type, which is made if there is none.
  Bucket& put(std::size_t number, std::map<ddl_dtype, std::size_t>& of_type) {
    const Parameter& one = parameters_[number];
    const auto found = of_type.try_emplace(wire_of(one), buckets_.size()).first;
    if (found->second == buckets_.size()) buckets_.push_back(std::make_unique<Bucket>(wire_of(one)));
    Bucket& bucket = *buckets_[found->second];
    slots_[number].bucket = found->second;
    bucket.parameters.push_back(number);
    bucket.bytes += one.bytes();
    // The next forward pass needs the first parameters first.
    bucket.priority = std::max(bucket.priority, static_cast<std::int32_t>(slots_.size() - number));
    return bucket;
  }

  static std::size_t lines_of(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  /// Memory of gradients that have none, and of what is sent in 16 bits, in the order of the buckets.
  void allocate() {
    std::size_t bytes = 0;
    const auto for_each_place = [&](auto function) {
      for (const auto& bucket : buckets_) {
        for (const std::size_t number : bucket->parameters) {
          Parameter& one = parameters_[number];
          if (one.gradient == nullptr) function(one.gradient, one.bytes());
        }
        for (const std::size_t number : bucket->parameters) {
          const Parameter& one = parameters_[number];
          if (is_narrowed(one)) function(slots_[number].sent, one.count * ddl_dtype_size(bucket->dtype));
        }
      }
    };
    for_each_place([&](auto*&, std::size_t size) { bytes += lines_of(size); });
    if (bytes > 0) memory_ = context_->alloc<std::uint8_t>(bytes);
    std::fill(memory_.data(), memory_.data() + memory_.size(), std::uint8_t{0});
    std::uint8_t* next = memory_.data();
    for_each_place([&](auto*& place, std::size_t size) {
      place = next;
      next += lines_of(size);
    });
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].sent == nullptr) slots_[i].sent = static_cast<std::uint8_t*>(parameters_[i].gradient);
    }
  }

  /// One for gradients whose memory follows each other on all ranks; what lies between them is zeros, and stays so.
  void make_tensors(Bucket& bucket, const std::vector<std::uint8_t>& is_theirs) {
    enum class Place { kTheirs, kGradients, kNarrowed } before = Place::kTheirs;
    std::string first;
    for (const std::size_t number : bucket.parameters) {
      const Parameter& one = parameters_[number];
      std::uint8_t* const sent = slots_[number].sent;
      const Place place = is_narrowed(one)         ? Place::kNarrowed
                          : is_theirs[number] != 0 ? Place::kTheirs
                                                   : Place::kGradients;
      if (place == before && place != Place::kTheirs && options_.op != Op::adasum) {
        ddl_tensor& tensor = bucket.tensors.back();
        const auto bytes = static_cast<std::size_t>(sent - static_cast<std::uint8_t*>(tensor.recv));
        tensor.count = bytes / ddl_dtype_size(bucket.dtype) + one.count;
        bucket.names.back() = "gradients " + first;
        if (first.size() + one.name.size() < 1000) bucket.names.back() += " to " + one.name;
      } else {
        first = one.name;
        bucket.names.push_back("gradient " + one.name);
        bucket.tensors.push_back({nullptr, sent, sent, one.count});
      }
      before = place;
    }
    for (std::size_t i = 0; i < bucket.tensors.size(); ++i) bucket.tensors[i].name = bucket.names[i].c_str();
    bucket.handles.resize(bucket.tensors.size());
    bucket.missing = bucket.parameters.size();
  }

  bool is_narrowed(const Parameter& one) const {
    return one.dtype == DDL_FLOAT32 && options_.wire != DDL_FLOAT32;
  }

  ddl_dtype wire_of(const Parameter& one) const { return is_narrowed(one) ? options_.wire : one.dtype; }

  /// A gradient that this rank has computed.
  void add(std::size_t number) {
    const Parameter& one = parameters_[number];
    if (is_narrowed(one)) {
      const auto* const from = static_cast<const float*>(one.gradient);
      if (options_.wire == DDL_FLOAT16) {
        narrow<float16>(from, slots_[number].sent, one.count);
      } else {
        narrow<bfloat16>(from, slots_[number].sent, one.count);
      }
    }
    submit_if_last(*buckets_[slots_[number].bucket]);
  }

  /// One that this rank has not computed in all passes, or in none.
  void add_missing(std::size_t number) {
    Slot& slot = slots_[number];
    const Parameter& one = parameters_[number];
    const bool was_computed = slot.passes_left < options_.passes;
    slot.passes_left = 0;
    if (was_computed) return add(number);
    if (options_.unused == Unused::kKeep && !options_.zero_on_device) {
      const auto* const gradient = static_cast<const std::uint8_t*>(one.gradient);
      slot.kept.assign(gradient, gradient + one.bytes());
    }
    set_to_zero(one);
    add(number);
  }

  void submit_if_last(Bucket& bucket) {
    if (bucket.missing.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    ddl_async_options c = DDL_ASYNC_OPTIONS_INIT;
    c.process_set = options_.process_set;
    c.prescale = 1.0 / options_.predivide;
    c.postscale = options_.predivide;
    c.stream = options_.stream;
    c.priority = bucket.priority;
    c.zeros_if_joined = 1;
    ddl::detail::check(ddl_grouped_allreduce_async(
        context_->get(), bucket.tensors.data(), bucket.tensors.size(), bucket.dtype,
        static_cast<ddl_op>(options_.op), &c, bucket.handles.data()));
  }

  /// Which gradients any rank has computed.
  void submit_uses() {
    uses_.resize(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i)
      uses_[i] = slots_[i].passes_left < options_.passes ? 1 : 0;
    ddl_async_options c = DDL_ASYNC_OPTIONS_INIT;
    c.process_set = options_.process_set;
    c.zeros_if_joined = 1;
    ddl::detail::check(ddl_allreduce_async(context_->get(), "gradients that are used", uses_.data(),
                                           uses_.data(), uses_.size(), DDL_UINT8, DDL_MAX, &c,
                                           uses_handle_.out()));
  }

  /// Puts what was sent in 16 bits back into the gradient, or what it was if nobody has computed it, or if
  /// the ranks have failed.
  void store(std::size_t number, bool is_complete) {
    Slot& slot = slots_[number];
    const Parameter& one = parameters_[number];
    if (!is_complete || !is_used(number)) {
      if (!slot.kept.empty()) std::memcpy(one.gradient, slot.kept.data(), one.bytes());
    } else if (is_narrowed(one)) {
      if (options_.wire == DDL_FLOAT16) {
        widen<float16>(slot.sent, static_cast<float*>(one.gradient), one.count);
      } else {
        widen<bfloat16>(slot.sent, static_cast<float*>(one.gradient), one.count);
      }
    }
    slot.kept.clear();
  }

  template <class Half>
  static void narrow(const float* from, std::uint8_t* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t bits = Half(from[i]).bits;
      std::memcpy(to + 2 * i, &bits, sizeof bits);
    }
  }
  template <class Half>
  static void widen(const std::uint8_t* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Half half;
      std::memcpy(&half.bits, from + 2 * i, sizeof half.bits);
      to[i] = half;
    }
  }

  Context* context_;
  GradientOptions options_;
  std::vector<Parameter> parameters_;
  SharedBuffer<std::uint8_t> memory_;
  std::vector<std::uint8_t> uses_;
  ddl::detail::Handle uses_handle_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Bucket>>
      buckets_;  // the last: what is submitted is waited for before memory is freed
};

}  // namespace ddl::training

#endif  // DDL_TRAINING_GRADIENTS_HPP
