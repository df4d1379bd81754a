// libtorch: gradients of a module lie in libddl's memory, and are combined while the backward pass goes on.
//
//   ddl::Context context;
//   torch::nn::Linear model(10, 1);
//   torch::optim::SGD sgd(model->parameters(), 0.1);
//   ddl::training::broadcast_module(context, *model);
//   ddl::training::DistributedOptimizer optimizer(context, *model, sgd);
//   ...
//   optimizer.zero_grad();
//   torch::mse_loss(model->forward(x), y).backward();
//   optimizer.step();
//
// libtorch 1.13 or newer; the program links it, libddl does not. DistributedOptimizer and the broadcasts are also for
// modules on a GPU; nobody has run that yet. The rest is for tensors in CPU memory.
#ifndef DDL_TRAINING_TORCH_MODULE_HPP
#define DDL_TRAINING_TORCH_MODULE_HPP

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"
#include "ddl/training/gradients.hpp"

namespace ddl::training {

namespace detail {

inline ddl_dtype dtype_of(const torch::Tensor& tensor, const std::string& name) {
  switch (tensor.scalar_type()) {
    case torch::kFloat32: return DDL_FLOAT32;
    case torch::kFloat64: return DDL_FLOAT64;
    case torch::kFloat16: return DDL_FLOAT16;
    case torch::kBFloat16: return DDL_BFLOAT16;
    case torch::kInt64: return DDL_INT64;
    case torch::kInt32: return DDL_INT32;
    case torch::kUInt8: return DDL_UINT8;
    case torch::kBool: return DDL_BOOL;
    default: break;
  }
  throw Error(DDL_ERROR_INVALID_ARGUMENT, "\"" + name + "\" is of " +
                                              std::string(c10::toString(tensor.scalar_type())) +
                                              ", which libddl does not have");
}

inline void require_on_cpu(const torch::Tensor& tensor, const std::string& name) {
  if (!tensor.device().is_cpu())
    throw Error(DDL_ERROR_INVALID_ARGUMENT,
                "\"" + name + "\" is on " + tensor.device().str() +
                    ": of ddl/training/torch/module.hpp, only DistributedOptimizer is for modules on a GPU");
}

/// The elements at memory in the shape of tensor, and in its order if they lie there without gaps.
inline torch::Tensor view_like(const torch::Tensor& tensor, void* memory) {
  const auto options = tensor.options().requires_grad(false);
  if (tensor.is_non_overlapping_and_dense())
    return torch::from_blob(memory, tensor.sizes(), tensor.strides(), options);
  return torch::from_blob(memory, tensor.sizes(), options);
}

inline std::vector<Parameter> trained_tensors(const torch::nn::Module& module) {
  std::vector<Parameter> parameters;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& tensor = item.value();
    if (!tensor.requires_grad()) continue;
    if (!tensor.is_non_overlapping_and_dense())
      throw Error(DDL_ERROR_INVALID_ARGUMENT,
                  "the elements of \"" + item.key() + "\" do not lie one behind the other");
    parameters.push_back({item.key(), tensor.data_ptr(), nullptr, static_cast<std::size_t>(tensor.numel()),
                          dtype_of(tensor, item.key())});
  }
  return parameters;
}

/// Whether this version of libtorch tells how CUDA and HIP know a stream.
template <class Stream, class = void>
struct TellsNative : std::false_type {};
template <class Stream>
struct TellsNative<Stream, decltype(static_cast<void>(std::declval<Stream>().native_handle()))>
    : std::true_type {};

/// As CUDA and HIP know it, where null is their default stream; null if libtorch does not tell.
template <class Stream>
void* native_stream(const Stream& stream) {
  if constexpr (TellsNative<Stream>::value) return stream.native_handle();
  return nullptr;
}

/// The stream on which gradients of a module are complete when libddl gets them.
class GradientStream {
 public:
  explicit GradientStream(const torch::nn::Module& module) {
    for (const torch::Tensor& one : module.parameters()) {
      if (!one.requires_grad()) continue;
      ddl::detail::require(!device_ || *device_ == one.device(),
                           "the parameters of a module lie on one device");
      device_ = one.device();
    }
    if (is_on_gpu()) stream_ = current();
  }

  bool is_on_gpu() const { return device_ && !device_->is_cpu(); }
  void* native() const { return is_on_gpu() ? native_stream(*stream_) : nullptr; }

  /// The stream waits for what the current one, in which a backward pass may be, has got until now.
  void follow_current() const {
    if (!is_on_gpu()) return;
    const c10::Stream now = current();
    if (!TellsNative<c10::Stream>::value) return now.synchronize();
    if (now == *stream_) return;
    c10::Event event(now.device_type());
    event.record(now);
    event.block(*stream_);
  }

  void set_to_zero(void* memory, std::size_t bytes) const {
    const c10::StreamGuard guard(*stream_);
    torch::from_blob(memory, {static_cast<std::int64_t>(bytes)},
                     torch::TensorOptions().dtype(torch::kUInt8).device(*device_))
        .zero_();
    follow_current();
  }

 private:
  c10::Stream current() const { return c10::impl::VirtualGuardImpl(device_->type()).getStream(*device_); }

  c10::optional<torch::Device> device_;
  c10::optional<c10::Stream> stream_;
};

}  // namespace detail

/// The parameters of a module that are trained, by their names in it. Their memory is the module's.
inline std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  for (const auto& item : module.named_parameters()) detail::require_on_cpu(item.value(), item.key());
  return detail::trained_tensors(module);
}

/// Gives all ranks root's parameters and buffers. Collective.
inline void broadcast_module(Context& context, const torch::nn::Module& module, int root = 0,
                             const CallOptions& options = {}) {
  const torch::NoGradGuard no_gradients;
  const auto send = [&](const std::string& name, const torch::Tensor& tensor) {
    const ddl_call_options c = ddl::detail::to_c(options);
    torch::Tensor dense = tensor.cpu().contiguous();
    ddl::detail::check(ddl_broadcast(context.get(), dense.data_ptr(),
                                     static_cast<std::uint64_t>(dense.numel()), detail::dtype_of(dense, name),
                                     root, &c));
    if (!dense.is_same(tensor)) tensor.copy_(dense);
  };
  for (const auto& item : module.named_parameters()) send(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) send(item.key(), item.value());
}

/// Gives all ranks the state of root's optimizer, and its learning rates. The others' optimizers are of the same kind and
/// model, and have the same options otherwise. Collective.
inline void broadcast_optimizer(Context& context, torch::optim::Optimizer& optimizer, int root = 0,
                                const CallOptions& options = {}) {
  std::ostringstream written;
  const auto rank = ddl_process_set_rank(context.get(), options.process_set);
  if (rank == root) torch::save(optimizer, written);
  std::istringstream read(broadcast_bytes(context, written.str(), root, options));
  if (rank != root) torch::load(optimizer, read);
  // Some versions of libtorch do not load options.
  std::vector<double> rates;
  for (auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  context.broadcast(rates, root, options);
  for (std::size_t i = 0; i < rates.size(); ++i) optimizer.param_groups()[i].options().set_lr(rates[i]);
}

/// Connects a module with what combines its gradients: with Gradients, an Optimizer or a ShardedOptimizer, made of
/// parameters_of(module). The gradients of the parameters become views of the target's memory, and so do the parameters
/// where the target has moved them. When the backward pass has accumulated a gradient, target.ready() is called. The
/// hooks end with this object. It must be destroyed before the target.
template <class Target>
class ModuleHooks {
 public:
  ModuleHooks(torch::nn::Module& module, Target& target) : target_(target), stream_(module) {
    for (const auto& item : module.named_parameters()) {
      if (item.value().requires_grad()) tensors_.push_back(item.value());
    }
    const std::vector<Parameter>& parameters = target.parameters();
    ddl::detail::require(parameters.size() == tensors_.size(), "the target is of another module");
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      torch::Tensor& tensor = tensors_[i];
      if (tensor.data_ptr() != parameters[i].data)
        tensor.set_data(detail::view_like(tensor, parameters[i].data));
      views_.push_back(detail::view_like(tensor, parameters[i].gradient));
      adopt(i);
      // What accumulates the gradient lives only as long as somebody keeps it.
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(tensor));
      keys_.push_back(
          accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
              [this, i](const torch::autograd::variable_list& outputs,
                        const torch::autograd::variable_list&) {
                adopt(i);
                stream_.follow_current();
                target_.ready(i);
                return outputs;
              })));
    }
  }
  ~ModuleHooks() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) accumulators_[i]->del_post_hook(keys_[i]);
  }
  ModuleHooks(const ModuleHooks&) = delete;
  ModuleHooks& operator=(const ModuleHooks&) = delete;

  /// Sets the gradients to zero, and makes those views again that the program has replaced.
  void zero_grad() {
    const torch::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].mutable_grad() = views_[i];
      views_[i].zero_();
    }
  }

  /// Makes the gradients views again, and undefined where the target says that no rank has used them.
  void adopt_finished() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (target_.is_used(i)) {
        tensors_[i].mutable_grad() = views_[i];
      } else {
        tensors_[i].mutable_grad().reset();
      }
    }
  }

 private:
  /// The gradient's values lie in the view, whatever memory the backward pass has given to it.
  void adopt(std::size_t i) {
    const torch::NoGradGuard no_gradients;
    torch::Tensor& gradient = tensors_[i].mutable_grad();
    if (gradient.defined() && gradient.layout() == torch::kStrided &&
        gradient.data_ptr() == views_[i].data_ptr())
      return;
    if (gradient.defined()) views_[i].copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
    gradient = views_[i];
  }

  Target& target_;
  detail::GradientStream stream_;
  std::vector<torch::Tensor> tensors_, views_;
  // A shared pointer of libtorch's own, which differs between versions.
  std::vector<decltype(torch::autograd::impl::grad_accumulator(torch::Tensor()))> accumulators_;
  std::vector<std::uintptr_t> keys_;
};

/// An optimizer of libtorch whose step() uses the mean of all ranks' gradients. Must be destroyed before the Context, and
/// after the last use of the gradients.
class DistributedOptimizer {
 public:
  /// Collective. Throws on all ranks if their modules differ. optimizer is one of the module's parameters.
  DistributedOptimizer(Context& context, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       GradientOptions options = {})
      : optimizer_(optimizer),
        stream_(module),
        gradients_(context, with_memory(module), with_stream(std::move(options))),
        hooks_(module, gradients_) {
    hooks_.zero_grad();
  }

  /// Before the first backward pass of each step, in place of the optimizer's own.
  void zero_grad() { hooks_.zero_grad(); }

  /// Waits for the gradients of all ranks. step() does it, too; a program calls it to look at them before, as for
  /// clipping by torch::nn::utils::clip_grad_norm_().
  void finish() {
    gradients_.finish();
    hooks_.adopt_finished();
    is_finished_ = true;
  }

  void step() {
    if (!is_finished_) finish();
    is_finished_ = false;
    optimizer_.step();
  }

 private:
  /// Gradients on a GPU lie in memory of libtorch's.
  std::vector<Parameter> with_memory(const torch::nn::Module& module) {
    std::vector<Parameter> parameters = detail::trained_tensors(module);
    if (!stream_.is_on_gpu()) return parameters;
    const torch::NoGradGuard no_gradients;
    for (const torch::Tensor& one : module.parameters()) {
      if (!one.requires_grad()) continue;
      memory_.push_back(torch::zeros_like(one));
      parameters[memory_.size() - 1].gradient = memory_.back().data_ptr();
    }
    return parameters;
  }
  GradientOptions with_stream(GradientOptions options) {
    if (!stream_.is_on_gpu()) return options;
    options.stream = stream_.native();
    options.zero_on_device = [this](void* memory, std::size_t bytes) { stream_.set_to_zero(memory, bytes); };
    return options;
  }

  torch::optim::Optimizer& optimizer_;
  detail::GradientStream stream_;
  std::vector<torch::Tensor> memory_;
  Gradients gradients_;
  ModuleHooks<Gradients> hooks_;
  bool is_finished_ = false;
};

}  // namespace ddl::training

#endif  // DDL_TRAINING_TORCH_MODULE_HPP
